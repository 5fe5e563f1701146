/* SPDX-License-Identifier: Apache-2.0 */
/* The history of a DaemonSet or StatefulSet: ControllerRevisions, each a patch that brings the
 * template back.  kubectl's rollout history and undo read them.  Pure. */
#pragma once

#include "workload/pods.h"

/* The label of pods, and of a DaemonSet's revisions, that names the revision. */
#define REVISION_LABEL "controller-revision-hash"

struct revisions {
    struct workload_child *list; /* Those of the owner, the oldest number first. */
    size_t n;
    const struct json *update; /* That of the present template; NULL: it is created. */
    char *update_name;         /* Its name; owned. */
    char *update_hash;         /* Its hash; owned. */
};

/* Claims the owner's revisions of 'list' (which is reordered), and finds the one of the present
 * template.  If there is none, or another one is newer, the plan gets the write. */
void revisions_load(struct workload_plan *p, const struct workload_kind *owner_kind,
                    const struct json *owner, struct workload_child *list, size_t n,
                    struct revisions *ret);
void revisions_done(struct revisions *r);
/* The revision of this name; NULL: unknown. */
const struct json *revisions_find(const struct revisions *r, const char *name);
const char *revision_hash(const struct json *revision); /* "": it has none. */
/* The template of a revision; NULL: it has none. */
const struct json *revision_template(const struct json *revision);
/* Deletes the oldest beyond the owner's revisionHistoryLimit, except those whose name 'lives'
 * accepts. */
void revisions_clean_up(struct workload_plan *p, const struct json *owner,
                        const struct revisions *r, bool (*lives)(void *ctx, const struct json *rev),
                        void *ctx);
/* The member 'met' of the plan: another object has the name. */
bool revision_name_is_met(struct json *object, const struct workload_write *w,
                          const struct json *live);
