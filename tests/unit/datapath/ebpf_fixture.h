/* SPDX-License-Identifier: Apache-2.0 */
/* What unit tests of the datapath "ebpf" share: whether they can run here, and a place
 * of their own. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "datapath/ebpf/program.h"

/* The exit status of main: of the tests; 77, which meson counts as skipped, where the kernel lacks
 * what the programs need, and why is printed. */
#define EBPF_TESTS(features, tests, set_up, tear_down) \
    (ebpf_fixture_probe(features) ? cmocka_run_group_tests(tests, set_up, tear_down) : 77)
bool ebpf_fixture_probe(struct program_features *ret);

void ebpf_put(int map, const void *key, const void *value);

/* A folder with a bpffs at "bpf", and network and mount namespaces without a name, in which the
 * process stays: the namespaces and the bpffs with its links go with the process, also when it is
 * killed. */
struct ebpf_place {
    char folder[64];
};
/* 0; else -1, nothing is left, and why is printed.  'name' is the test's: the folder is
 * "/tmp/tenet-NAME-PID". */
int ebpf_place_enter(struct ebpf_place *p, const char *name);
/* 0, or -1: something is left. */
int ebpf_place_leave(struct ebpf_place *p);
