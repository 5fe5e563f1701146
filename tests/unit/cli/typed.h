/* SPDX-License-Identifier: Apache-2.0 */
/* Commands as they are typed. Each runs in a child of the test, whose API server answers it. */
#pragma once

#include "../apiserver/harness.h"
#include "cli/command.h"

struct outcome {
    bool ended;
    int status;
    char *out, *err; /* Owned. */
};
/* The command of this name; fails the test if there is none. */
const struct command *typed_find(const char *name);
/* Runs 'line' (words with a blank between); with the option --server when 'h' is given and the line
 * has no --kubeconfig.  The loop of 'h' goes on meanwhile. */
struct outcome typed_run(struct harness *h, const char *line);

struct typed_row {
    const char *line;
    int status;
    /* What is printed, whole, or when it ends in "..." its beginning; NULL: anything. */
    const char *out, *err;
};
/* Runs each line, and fails the test when one is not as its row says. */
void typed_check(struct harness *h, const struct typed_row *rows, size_t n);
