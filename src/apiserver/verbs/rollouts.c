/* SPDX-License-Identifier: Apache-2.0 */
#include "apiserver/verbs/rollouts.h"

#include "api/obj.h"
#include "apiserver/verbs/fields.h"
#include "apiserver/verbs/write.h"
#include "workload/rollout_request.h"
#include "workload/rollout_set.h"

#include <inttypes.h>

#define GROUP "apps.openshift.io"
#define VERSION "v1"
#define CONFIGS "deploymentconfigs"

/* Kinds of bodies, for errors. */
static const struct api_kind request_kind = {.group = GROUP,
                                             .version = VERSION,
                                             .kind = "DeploymentRequest",
                                             .plural = "deploymentrequests"};

static const struct api_kind rollback_kind = {.group = GROUP,
                                              .version = VERSION,
                                              .kind = "DeploymentConfigRollback",
                                              .plural = "deploymentconfigrollbacks"};

static bool is_config(const struct request *q)
{
    return streq(q->kind->group, GROUP) && streq(q->kind->plural, CONFIGS);
}

bool rollouts_are_asked(const struct request *q)
{
    bool part = streq(q->subresource, "instantiate") || streq(q->subresource, "rollback");
    return q->verb == VERB_CREATE && is_config(q) && part;
}

/* The object as it is now; NULL: there is none. */
static struct json *find(const struct request *q, const char *group, const char *plural,
                         const char *name)
{
    const struct api_kind *k = api_kind_find(group, VERSION, plural);
    const struct cache_kind *ck = cache_find(&q->server->cache, k);
    CLEANUP_FREE char *key = cache_key(q->namespace, name);
    const struct object *o = ck ? keyset_get(&ck->objects, key) : NULL;
    return o ? object_parse_as(o, k) : NULL;
}

static struct json *find_set(const struct request *q, const char *config, int64_t version)
{
    CLEANUP_FREE char *name = rollout_set_name(config, version);
    return find(q, "", "replicationcontrollers", name);
}

static int64_t latest_version(const struct json *config)
{
    return json_get_int_or(json_path(config, "status", "latestVersion", NULL), 0);
}

static int check_kind(const struct json *body, const char *kind, struct outcome *outcome)
{
    const char *has = json_get_text(body, "kind"), *version = json_get_text(body, "apiVersion");
    if (json_is(body, JSON_OBJECT) && (!*has || streq(has, kind)) &&
        (!*version || streq(version, GROUP "/" VERSION))) {
        return 0;
    }
    outcome_error(outcome, 400, "BadRequest",
                  "the body of the request is no %s of " GROUP "/" VERSION, kind);
    return -EINVAL;
}

/* ---- instantiate ---- */

static int check_request(const struct request *q, const struct json *body, struct outcome *outcome)
{
    const char *name = json_get_text(body, "name");
    if (check_kind(body, request_kind.kind, outcome) < 0) {
        return -EINVAL;
    }
    if (!*name) {
        outcome_invalid_field(outcome, &request_kind, "", "name",
                              "Invalid value: \"\": name of the deployment config is missing");
        return -EINVAL;
    }
    if (!streq(name, q->name)) {
        outcome_error(outcome, 400, "BadRequest",
                      "name in URL does not match name in DeploymentRequest object");
        return -EINVAL;
    }
    return 0;
}

static void answer_nothing(const char *name, struct outcome *outcome)
{
    struct json *o = json_object();
    json_set_string(o, "kind", "Status");
    json_set_string(o, "apiVersion", "v1");
    json_set(o, "metadata", json_object());
    json_set(o, "message", json_stringf("deployment config \"%s\" cannot be instantiated", name));
    json_set_int(o, "code", 204);
    outcome_json(outcome, 201, NULL, o);
}

/* The copy of the DeploymentConfig in its latest ReplicationController, '*ret' NULL: there was no
 * rollout yet. */
static int find_latest(const struct request *q, const struct json *config, struct json **ret,
                       struct outcome *outcome)
{
    int64_t version = latest_version(config);
    struct err e = {0};
    *ret = NULL;
    if (version == 0) {
        return 0;
    }
    CLEANUP(json_free) struct json *rc = find_set(q, q->name, version);
    if (!rc) {
        CLEANUP_FREE char *name = rollout_set_name(q->name, version);
        outcome_not_found(outcome, api_kind_find("", "v1", "replicationcontrollers"), name);
        return -ENOENT;
    }
    int r = rollout_decode(rc, ret, &e);
    if (r < 0) {
        outcome_error(outcome, 500, "InternalError", "Internal error occurred: %s", e.text);
    }
    return r;
}

static void instantiated(struct write *w, uint64_t revision, struct outcome *outcome)
{
    outcome_object(outcome, 201, object_text(w->ck->head, w->value, revision));
}

/* Fills the outcome unless the DeploymentConfig can begin a rollout; 'obj' then has it. */
static int begin(struct write *w, struct json *obj, struct outcome *outcome)
{
    struct request *q = w->q;
    CLEANUP(json_free) struct json *was = NULL;
    if (json_get_bool(json_path(obj, "spec", "paused", NULL), false)) {
        CLEANUP_FREE char *why =
            xasprintf("Invalid value: true: deployment config \"%s\" is paused "
                      "- unpause to request a new deployment",
                      q->name);
        outcome_invalid_field(outcome, &request_kind, q->name, "spec.paused", why);
        return -EINVAL;
    }
    if (find_latest(q, obj, &was, outcome) < 0) {
        return -EINVAL;
    }
    switch (rollout_instantiate(obj, was, json_get_bool(json_get(w->body, "force"), false))) {
    case ROLLOUT_BEGINS:
        return 0;
    case ROLLOUT_IS_LATEST:
        answer_nothing(q->name, outcome);
        break;
    case ROLLOUT_UNRESOLVED:
        outcome_error(
            outcome, 400, "BadRequest",
            "cannot trigger a deployment for \"%s\" because it contains unresolved images",
            q->name);
        break;
    }
    return -EINVAL;
}

static void attempt_instantiate(struct write *w, struct outcome *outcome)
{
    struct request *q = w->q;
    struct object *base = keyset_get(&w->ck->objects, w->key);
    CLEANUP(json_free) struct json *old = base ? object_parse_as(base, q->kind) : NULL;
    CLEANUP(json_free) struct json *obj = old ? json_clone(old) : NULL;
    bool same = false;
    if (!base) {
        outcome_not_found(outcome, q->kind, q->name);
        return;
    }
    if (begin(w, obj, outcome) < 0) {
        return;
    }
    struct json *meta = json_get(obj, "metadata");
    json_set_int(meta, "generation", json_get_int_or(json_get(meta, "generation"), 0) + 1);
    struct blob *value = write_finish(w, obj, old, &same, outcome);
    if (!value) {
        return;
    }
    if (q->dry_run) {
        outcome_object(outcome, 201, object_text(w->ck->head, value, base->revision));
        blob_unref(value);
    } else {
        write_put(w, base, value, outcome);
    }
}

static void handle_instantiate(struct request *q, struct outcome *outcome)
{
    struct json *body = NULL;
    if (write_begin(q, outcome) < 0 || write_read_body(q, &body, outcome) < 0) {
        return;
    }
    CLEANUP(json_free) struct json *own = body;
    if (check_request(q, body, outcome) < 0) {
        return;
    }
    CLEANUP_FREE char *key = cache_key(q->namespace, q->name);
    struct write *w = write_new(q, q->ck, key, attempt_instantiate);
    w->body = TAKE(own);
    w->stored = instantiated;
    outcome_take_over(outcome);
    write_try(w);
}

/* ---- rollback ---- */

static int refuse(const char *name, const char *why, struct outcome *outcome)
{
    CLEANUP_FREE char *text = xasprintf("Invalid value: \"%s\": %s", name, why);
    outcome_invalid_field(outcome, &rollback_kind, name, "name", text);
    return -EINVAL;
}

static int check_rollback(const struct request *q, const struct json *body, struct outcome *outcome)
{
    CLEANUP(api_causes_done) struct api_causes causes = {0};
    const struct json *name = json_get(body, "name");
    const struct json *revision = json_path(body, "spec", "revision", NULL);
    if (!json_string_size(name)) {
        api_required(&causes, "name", "name of the deployment config is missing");
    } else if (api_check_dns_subdomain(json_get_string(name))) {
        api_invalid(&causes, "name", name, "name of the deployment config is invalid");
    }
    if (json_get_int_or(revision, 0) < 0) {
        api_invalid(&causes, "spec.revision", revision, "must be non-negative");
    }
    if (causes.n) {
        outcome_invalid(outcome, &rollback_kind, json_get_text(body, "name"), &causes);
        return -EINVAL;
    }
    if (q->name && !streq(json_get_string(name), q->name)) {
        outcome_error(outcome, 400, "BadRequest",
                      "name in URL does not match name in DeploymentConfigRollback object");
        return -EINVAL;
    }
    return 0;
}

static int check_revision(const char *name, const struct json *config, int64_t revision,
                          struct outcome *outcome)
{
    int64_t latest = latest_version(config);
    CLEANUP_FREE char *none = xasprintf("no previous deployment exists for \"%s/%s\"",
                                        obj_namespace(config), obj_name(config));
    CLEANUP_FREE char *same = xasprintf("version %" PRId64 " is already the latest", revision);
    return latest == 0          ? refuse(name, "cannot rollback an undeployed config", outcome)
           : latest == 1        ? refuse(name, none, outcome)
           : latest == revision ? refuse(name, same, outcome)
                                : 0;
}

static void set_annotations(struct json *config, const struct json *more)
{
    for (size_t i = 0; i < json_count(more); i++) {
        const char *value = json_get_string(json_at(more, i));
        if (value) {
            obj_set_annotation(config, json_key_at(more, i), value);
        }
    }
}

static void answer_rollback(const struct request *q, const struct json *body,
                            struct outcome *outcome)
{
    int64_t revision = json_get_int_or(json_path(body, "spec", "revision", NULL), 0);
    CLEANUP(json_free) struct json *config = find(q, GROUP, CONFIGS, q->name);
    CLEANUP(json_free) struct json *to = NULL;
    struct err e = {0};
    if (!config) {
        CLEANUP_FREE char *why =
            xasprintf("cannot get deployment config \"%s\": " CONFIGS "." GROUP " \"%s\" not found",
                      q->name, q->name);
        (void) refuse(q->name, why, outcome);
        return;
    }
    if (check_revision(q->name, config, revision, outcome) < 0) {
        return;
    }
    revision = revision ? revision : latest_version(config) - 1;
    CLEANUP(json_free) struct json *rc = find_set(q, q->name, revision);
    if (!rc) {
        CLEANUP_FREE char *why =
            xasprintf("replicationcontrollers \"%s-%" PRId64 "\" not found", q->name, revision);
        (void) refuse(q->name, why, outcome);
        return;
    }
    if (rollout_decode(rc, &to, &e) < 0) {
        CLEANUP_FREE char *why =
            xasprintf("couldn't decode deployment config from deployment: %s", e.text);
        (void) refuse(q->name, why, outcome);
        return;
    }
    set_annotations(config, json_get(body, "updatedAnnotations"));
    rollout_go_back(config, to, json_get(body, "spec"));
    CLEANUP_FREE char *version = request_api_version(q);
    json_set_string(config, "apiVersion", version);
    json_set_string(config, "kind", "DeploymentConfig");
    outcome_json(outcome, 201, NULL, TAKE(config));
}

static void handle_rollback(struct request *q, struct outcome *outcome)
{
    CLEANUP(json_free) struct json *body = NULL;
    if (write_begin(q, outcome) == 0 && write_read_body(q, &body, outcome) == 0 &&
        check_kind(body, rollback_kind.kind, outcome) == 0 &&
        check_rollback(q, body, outcome) == 0) {
        /* /oapi/v1/.../deploymentconfigrollbacks has the name in its body only. */
        q->name = q->name ? q->name : json_get_text(body, "name");
        answer_rollback(q, body, outcome);
    }
}

void handle_rollouts(struct request *q, struct outcome *outcome)
{
    if (streq(q->subresource, "instantiate")) {
        handle_instantiate(q, outcome);
    } else {
        handle_rollback(q, outcome);
    }
}
