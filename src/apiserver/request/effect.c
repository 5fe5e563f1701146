/* SPDX-License-Identifier: Apache-2.0 */
#include "apiserver/request/effect.h"

#include "apiserver/request/respond.h"

/* Deletions take effect with every kind. */
static bool is_write(const struct request *q)
{
    return q->verb == VERB_CREATE || q->verb == VERB_UPDATE || q->verb == VERB_PATCH;
}

int effect_check_write(const struct request *q, struct outcome *outcome)
{
    if (q->kind->effect != API_EFFECT_REFUSED || !is_write(q)) {
        return 0;
    }
    outcome_status(outcome, 403, "Forbidden", q->name,
                   "%s is forbidden: objects of this kind are not accepted because they are not "
                   "enforced yet: %s",
                   RESOURCE_TEXT(q->kind), q->kind->missing);
    return -EACCES;
}

void effect_warn(struct request *q)
{
    if (q->kind && q->kind->effect == API_EFFECT_NONE && is_write(q)) {
        CLEANUP_FREE char *text = xasprintf("stored, not acted upon yet: %s", q->kind->missing);
        request_warn(q, "-", text);
    }
}
