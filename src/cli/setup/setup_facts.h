/* SPDX-License-Identifier: Apache-2.0 */
/* Gathers the facts about this host that setup_checks.h judges.
 *
 * Nothing is changed: features of the kernel are tried in a network namespace that ends with the
 * call.  What cannot be read stays zero.  Calls block; from one thread. */
#pragma once

#include "cli/setup/setup_checks.h"

/* Where the facts are read: the folders that setup uses. */
struct setup_places {
    const char *state_dir;    /* Its nearest folder that exists is measured. */
    const char *cni_conf_dir; /* "/etc/cni/net.d" */
    const char *endpoints;    /* Of etcd, with commas between; NULL: none. */
};
/* The caller releases '*ret' by setup_facts_done. 'roles': enum setup_role. */
void setup_facts_read(const struct setup_places *p, unsigned roles, struct setup_facts *ret);
/* Whether systemd is process 1. */
bool setup_has_systemd(void);
