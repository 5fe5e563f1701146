/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "cli/workloads/rollout.h"
#include "cli/workloads/template.h"

#include <inttypes.h>
#include <stdio.h>

static int64_t latest_version(const struct target *g)
{
    return number_at(g->object, "status", "latestVersion", 0);
}

static const char *namespace_of(const struct target *g)
{
    return json_path_string(g->object, "metadata", "namespace", NULL);
}

static bool is_paused(const struct target *g)
{
    return json_get_bool(json_path(g->object, "spec", "paused", NULL), false);
}

/* Reads the ReplicationController of the latest version; NULL in '*ret': there is none. */
static int latest_rc(struct targets *t, const struct target *g, struct json **ret)
{
    CLEANUP_FREE char *name = xasprintf("%s-%" PRId64, target_name(g), latest_version(g));
    CLEANUP_FREE char *path = api_path("v1", "replicationcontrollers", namespace_of(g), name, NULL);
    struct err e = {0};
    int r = api_request_sync(t->s.client, "GET", path, NULL, NULL, NULL, ret, &e);
    if (r == -ENOENT) {
        *ret = NULL;
        return 0;
    }
    return r < 0 ? session_fail(&t->s, &e, NULL) : 0;
}

/* A POST of an object of the group to a subresource. */
static int post(struct targets *t, const struct target *g, const char *subresource,
                struct json *body, struct json **ret, struct err *e)
{
    CLEANUP_FREE char *path = target_path(g, subresource);
    CLEANUP_FREE char *query = xasprintf("%s%s", path, target_query(t));
    return api_request_sync(t->s.client, "POST", query, NULL, NULL, body, ret, e);
}

static struct json *request_new(const struct target *g, const char *kind)
{
    struct json *o = json_object();
    json_set_string(o, "apiVersion", DC_GROUP "/v1");
    json_set_string(o, "kind", kind);
    json_set_string(o, "name", target_name(g));
    return o;
}

int dc_start(struct targets *t, const struct target *g, bool again, struct json **ret)
{
    CLEANUP(json_free) struct json *rc = NULL;
    CLEANUP(json_free) struct json *body = request_new(g, "DeploymentRequest");
    struct err e = {0};
    if (is_paused(g)) {
        return session_error("cannot deploy a paused deployment config");
    }
    if (latest_rc(t, g, &rc) != 0) {
        return 1;
    }
    if (rc && !dc_phase_is_terminal(rc)) {
        return session_error("#%" PRId64 " is already in progress (%s).", latest_version(g),
                             dc_phase(rc));
    }
    if (t->dry_run == DRY_RUN_CLIENT) {
        *ret = json_clone(g->object);
        return 0;
    }
    json_set_bool(body, "latest", !again);
    json_set_bool(body, "force", true);
    if (post(t, g, "instantiate", body, ret, &e) < 0) {
        return session_fail(&t->s, &e, NULL);
    }
    return 0;
}

static int merge_annotations(struct targets *t, const struct json *rc, struct json *annotations)
{
    CLEANUP(json_free) struct json *patch = json_object();
    CLEANUP_FREE char *path = api_path("v1", "replicationcontrollers",
                                       json_path_string(rc, "metadata", "namespace", NULL),
                                       json_path_string(rc, "metadata", "name", NULL), NULL);
    struct err e = {0};
    json_set(json_ensure_object(patch, "metadata"), "annotations", annotations);
    return api_request_sync(t->s.client, "PATCH", path, NULL, PATCH_MERGE, patch, NULL, &e) < 0
               ? session_fail(&t->s, &e, NULL)
               : 0;
}

int dc_cancel(struct targets *t, const struct target *g, size_t *ret_n, int64_t *ret_latest,
              char ret_phase[16])
{
    CLEANUP_HISTORY struct history h = {0};
    *ret_n = 0;
    if (history_load(t, g, &h) != 0) {
        return 1;
    }
    if (h.n == 0) {
        return session_error("there have been no replication controllers for %s/%s",
                             namespace_of(g), target_name(g));
    }
    for (size_t i = h.n; i > 0; i--) {
        const struct json *rc = h.entries[i - 1].object;
        if (dc_phase_is_terminal(rc)) {
            continue;
        }
        struct json *annotations = json_object();
        json_set_string(annotations, DC_CANCELLED, "true");
        json_set_string(annotations, DC_REASON, "cancelled by the user");
        if (merge_annotations(t, rc, annotations) != 0) {
            return 1;
        }
        ++*ret_n;
    }
    *ret_latest = h.entries[h.n - 1].revision;
    (void) snprintf(ret_phase, 16, "%s", dc_phase(h.entries[h.n - 1].object));
    return 0;
}

/* Deletes the deployer pod and pods of hooks, so that new ones can take their names. */
static int delete_helpers(struct targets *t, const struct json *rc)
{
    CLEANUP_STRBUF struct strbuf path = STRBUF_INIT;
    const char *ns = json_path_string(rc, "metadata", "namespace", NULL);
    CLEANUP_FREE char *base = api_path("v1", "pods", ns, NULL, NULL);
    CLEANUP_FREE char *labels =
        xasprintf("%s=%s", DC_HELPER_FOR, json_path_string(rc, "metadata", "name", NULL));
    CLEANUP(json_free) struct json *list = NULL;
    struct err e = {0};
    strbuf_adds(&path, base);
    resource_query(&path, "labelSelector", labels);
    if (api_request_sync(t->s.client, "GET", strbuf_cstr(&path), NULL, NULL, NULL, &list, &e) < 0) {
        return session_fail(&t->s, &e, NULL);
    }
    const struct json *pod;
    JSON_FOREACH (pod, json_get(list, "items")) {
        CLEANUP_FREE char *one =
            api_path("v1", "pods", ns, json_path_string(pod, "metadata", "name", NULL), NULL);
        CLEANUP_FREE char *now = xasprintf("%s?gracePeriodSeconds=0", one);
        int r = api_request_sync(t->s.client, "DELETE", now, NULL, NULL, NULL, NULL, &e);
        if (r < 0 && r != -ENOENT) {
            return session_fail(&t->s, &e, NULL);
        }
    }
    return 0;
}

static void lower(const char *s, char out[16])
{
    size_t i = 0;
    for (; s[i] && i < 15; i++) {
        out[i] = s[i] >= 'A' && s[i] <= 'Z' ? (char) (s[i] - 'A' + 'a') : s[i];
    }
    out[i] = '\0';
}

int dc_retry(struct targets *t, const struct target *g)
{
    CLEANUP(json_free) struct json *rc = NULL;
    const char *name = target_name(g);
    int64_t latest = latest_version(g);
    if (is_paused(g)) {
        return session_error("unable to retry paused deployment config \"%s\"", name);
    }
    if (latest == 0) {
        return session_error("no rollouts found for \"%s\"", name);
    }
    if (latest_rc(t, g, &rc) != 0) {
        return 1;
    }
    if (!rc) {
        return session_error("unable to find the latest rollout (#%" PRId64
                             ").\nYou can start a new rollout with 'tenet rollout latest dc/%s'.",
                             latest, name);
    }
    if (!streq(dc_phase(rc), "Failed")) {
        char phase[16];
        lower(dc_phase(rc), phase);
        return session_error("rollout #%" PRId64
                             " is %s; only failed deployments can be retried.\n%s%s'.",
                             latest, phase,
                             streq(phase, "complete")
                                 ? "You can start a new deployment with 'tenet rollout latest dc/"
                                 : "Optionally, you can cancel this deployment with 'tenet rollout "
                                   "cancel dc/",
                             name);
    }
    if (delete_helpers(t, rc) != 0) {
        return 1;
    }
    struct json *annotations = json_object();
    json_set_string(annotations, DC_PHASE, "New");
    json_set(annotations, DC_REASON, json_null());
    json_set(annotations, DC_CANCELLED, json_null());
    return merge_annotations(t, rc, annotations);
}

/* The ReplicationController to go back to; NULL: there is none. */
static const struct history_entry *find_target(const struct history *h, const struct target *g,
                                               int64_t revision)
{
    for (size_t i = h->n; i > 0; i--) {
        const struct history_entry *entry = &h->entries[i - 1];
        if (revision > 0 ? entry->revision == revision
                         : entry->revision < latest_version(g) &&
                               streq(dc_phase(entry->object), "Complete")) {
            return entry;
        }
    }
    return NULL;
}

int dc_roll_back(struct targets *t, const struct target *g, int64_t revision,
                 const char *const *parts, struct json **ret, char **ret_from)
{
    CLEANUP_HISTORY struct history h = {0};
    CLEANUP(json_free) struct json *body = request_new(g, "DeploymentConfigRollback");
    CLEANUP(json_free) struct json *made = NULL;
    CLEANUP_FREE char *path = target_path(g, NULL);
    CLEANUP_FREE char *query = xasprintf("%s%s", path, target_query(t));
    struct json *spec = json_ensure_object(body, "spec");
    struct err e = {0};
    if (is_paused(g)) {
        return session_error("cannot rollback a paused deployment config");
    }
    if (history_load(t, g, &h) != 0) {
        return 1;
    }
    const struct history_entry *to = find_target(&h, g, revision);
    if (!to) {
        return session_error("couldn't find deployment for rollback");
    }
    const char *from = json_path_string(to->object, "metadata", "name", NULL);
    json_set_string(json_ensure_object(spec, "from"), "name", from);
    json_set_int(spec, "revision", to->revision);
    for (size_t i = 0; parts[i]; i++) {
        json_set_bool(spec, parts[i], true);
    }
    if (post(t, g, "rollback", body, &made, &e) < 0) {
        return session_fail(&t->s, &e, NULL);
    }
    /* The server only makes it: the client stores it. */
    bool only_show = t->dry_run == DRY_RUN_CLIENT || t->output;
    if (!only_show && api_request_sync(t->s.client, "PUT", query, NULL, NULL, made, ret, &e) < 0) {
        return session_fail(&t->s, &e, NULL);
    }
    if (only_show) {
        *ret = TAKE(made);
    }
    *ret_from = xstrdup(from);
    return 0;
}
