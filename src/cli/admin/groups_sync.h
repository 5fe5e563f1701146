/* SPDX-License-Identifier: Apache-2.0 */
/* The commands "tenet adm groups sync" and "prune": groups of the API server from a directory. */
#pragma once

#include "cli/session.h"

struct groups_sync_options {
    const char *config, *type, *whitelist, *blacklist; /* NULL: not given. */
    bool confirm;
};
/* Runs the command.  'names' are more lines of the whitelist; NULL at the end.  Returns the exit
 * status. */
int groups_sync_run(struct session *s, bool prune, const struct groups_sync_options *o,
                    char *const *names);
