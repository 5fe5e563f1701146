/* SPDX-License-Identifier: Apache-2.0 */
/* Which security context constraints would allow the pods of files: a part of "tenet adm policy",
 * which owns everything here. */
#pragma once

#include "cli/kubectl/manifest.h"
#include "cli/session.h"

struct policy_review {
    struct manifests m;
    bool accounts_only; /* The question is about service accounts, not about a user. */
    const char *user;   /* NULL: not given. */
    const struct json *groups, *accounts; /* Arrays of names. */
};
/* Asks about each object, and prints a table.  Returns the exit status. */
int policy_review_run(struct session *s, const struct policy_review *r);
