/* SPDX-License-Identifier: Apache-2.0 */
#include "apiserver/verbs/self.h"

#include "apiserver/cache/object.h"
#include "apiserver/request/filter.h"

#include <stdlib.h>

#define SELF "~"

bool self_is_asked(const struct request *q)
{
    return q->verb == VERB_GET && streq_null(q->name, SELF) &&
           q->kind == api_kind_find("user.openshift.io", "v1", "users");
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *) a, *(char *const *) b);
}

static struct json *sorted_groups(const struct user_info *u)
{
    struct json *list = json_array();
    CLEANUP_FREE char **groups = xcalloc(u->n_groups + 1, sizeof *groups);
    memcpy(groups, u->groups, u->n_groups * sizeof *groups);
    qsort(groups, u->n_groups, sizeof *groups, by_text);
    for (size_t i = 0; i < u->n_groups; i++) {
        json_append(list, json_string(groups[i]));
    }
    return list;
}

void handle_self(struct request *q, struct outcome *outcome)
{
    const struct user_info *u = q->user;
    if (streq(u->name, USER_ANONYMOUS)) {
        outcome_status(outcome, 403, "Forbidden", SELF,
                       "%s \"" SELF "\" is forbidden: requests to ~ must be authenticated",
                       RESOURCE_TEXT(q->kind));
        return;
    }
    const struct object *o = keyset_get(&q->ck->objects, u->name);
    CLEANUP(json_free) struct json *obj = o ? object_parse(o) : json_object();
    CLEANUP(blob_unref) struct blob *value = NULL;
    struct json *meta = json_ensure_object(obj, "metadata");
    json_set_string(meta, "name", u->name);
    json_remove(meta, "uid");
    json_set_string(meta, "uid", u->uid);
    json_set(obj, "groups", sorted_groups(u));
    object_complete(q->kind, obj);
    (void) object_encode(q->kind, obj, &value); /* It is nested no deeper than a stored User. */
    outcome_object(outcome, 200, o ? object_text(q->ck->head, value, o->revision) : TAKE(value));
}
