/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/rollout_set.h"

#include "api/obj.h"
#include "base/mem.h"
#include "base/str.h"
#include "workload/pods.h"

#include <inttypes.h>
#include <stdio.h>
#include <strings.h>

#define NAME_MAX_SIZE 253
#define HASH_SIZE 8
#define ENCODED_MAX ((size_t) 1 << 20)

static const char *const phases[] = {[ROLLOUT_NEW] = "New",
                                     [ROLLOUT_PENDING] = "Pending",
                                     [ROLLOUT_RUNNING] = "Running",
                                     [ROLLOUT_COMPLETE] = "Complete",
                                     [ROLLOUT_FAILED] = "Failed"};

const char *rollout_phase_name(enum rollout_phase phase)
{
    return phases[phase];
}

enum rollout_phase rollout_phase(const struct json *rc)
{
    const char *s = obj_annotation(rc, ROLLOUT_PHASE);
    for (size_t i = 0; s && i < ARRAY_SIZE(phases); i++) {
        if (streq(s, phases[i])) {
            return (enum rollout_phase) i;
        }
    }
    return ROLLOUT_NEW;
}

bool rollout_has_ended(const struct json *rc)
{
    enum rollout_phase p = rollout_phase(rc);
    return p == ROLLOUT_COMPLETE || p == ROLLOUT_FAILED;
}

bool rollout_is_cancelled(const struct json *rc)
{
    const char *s = obj_annotation(rc, ROLLOUT_CANCELLED);
    return s && strcasecmp(s, "true") == 0;
}

int64_t rollout_version(const struct json *rc)
{
    const char *s = obj_annotation(rc, ROLLOUT_VERSION);
    int64_t n;
    return s && str_to_i64(s, 1, INT32_MAX, &n) == 0 ? n : 0;
}

int64_t rollout_desired(const struct json *rc)
{
    const char *s = obj_annotation(rc, ROLLOUT_DESIRED);
    int64_t n;
    return s && str_to_i64(s, 0, INT32_MAX, &n) == 0 ? n : -1;
}

char *rollout_set_name(const char *config, int64_t version)
{
    return xasprintf("%s-%" PRId64, config, version);
}

/* FNV-1a, 32 bits (draft-eastlake-fnv, section 2). */
static uint32_t fnv(const char *s)
{
    uint32_t h = 2166136261U;
    for (; *s; s++) {
        h = (h ^ (unsigned char) *s) * 16777619U;
    }
    return h;
}

char *rollout_pod_name(const char *base, const char *suffix)
{
    size_t size = strlen(base) + 1 + strlen(suffix);
    if (size <= NAME_MAX_SIZE) {
        return xasprintf("%s-%s", base, suffix);
    }
    int kept = (int) (NAME_MAX_SIZE - HASH_SIZE - 2 - strlen(suffix));
    return xasprintf("%.*s-%08" PRIx32 "-%s", kept, base, fnv(base), suffix);
}

/* ---- the copy of the DeploymentConfig ---- */

int rollout_decode(const struct json *rc, struct json **ret, struct err *e)
{
    const char *text = obj_annotation(rc, ROLLOUT_ENCODED);
    CLEANUP(json_free) struct json *config = NULL;
    if (!text || !*text) {
        return err_set(e, -ENOENT, "annotation %s is missing", ROLLOUT_ENCODED);
    }
    if (strlen(text) > ENCODED_MAX) {
        return err_set(e, -EINVAL, "annotation %s is larger than %zu bytes", ROLLOUT_ENCODED,
                       ENCODED_MAX);
    }
    int r = json_parse(text, strlen(text), &config, e);
    if (r < 0) {
        err_prefix(e, "annotation %s", ROLLOUT_ENCODED);
        return -EINVAL;
    }
    if (!json_is(json_get(config, "spec"), JSON_OBJECT)) {
        return err_set(e, -EINVAL, "annotation %s is no DeploymentConfig: it has no spec",
                       ROLLOUT_ENCODED);
    }
    *ret = TAKE(config);
    return 0;
}

static char *encode(const struct json *config)
{
    CLEANUP(json_free) struct json *copy = json_clone(config);
    json_set_string(copy, "apiVersion", workload_deployment_configs.api_version);
    json_set_string(copy, "kind", workload_deployment_configs.kind);
    (void) json_remove(json_get(copy, "metadata"), "managedFields");
    return json_to_text(copy);
}

/* ---- the ReplicationController ---- */

static struct json *object_or_new(const struct json *v)
{
    return json_is(v, JSON_OBJECT) ? json_clone(v) : json_object();
}

static struct json *with_labels(const struct json *labels, const char *config, const char *set)
{
    struct json *o = object_or_new(labels);
    json_set_string(o, ROLLOUT_LABEL_CONFIG, config);
    json_set_string(o, ROLLOUT_LABEL_SET, set);
    return o;
}

static struct json *make_template(const struct json *config, const char *name, const char *version)
{
    struct json *t = object_or_new(json_path(config, "spec", "template", NULL));
    struct json *meta = json_ensure_object(t, "metadata");
    json_set(meta, "labels", with_labels(json_get(meta, "labels"), obj_name(config), name));
    obj_set_annotation(t, ROLLOUT_NAME, name);
    obj_set_annotation(t, ROLLOUT_CONFIG, obj_name(config));
    obj_set_annotation(t, ROLLOUT_VERSION, version);
    return t;
}

static void annotate(struct json *rc, const struct json *config, const char *version)
{
    const struct json *spec = json_get(config, "spec");
    const char *ignore = obj_annotation(config, ROLLOUT_IGNORE);
    const char *message = json_get_text(json_path(config, "status", "details", NULL), "message");
    CLEANUP_FREE char *encoded = encode(config);
    CLEANUP_FREE char *desired =
        xasprintf("%" PRId64, MAX(json_get_int_or(json_get(spec, "replicas"), 0), 0));
    obj_set_annotation(rc, ROLLOUT_CONFIG, obj_name(config));
    obj_set_annotation(rc, ROLLOUT_VERSION, version);
    obj_set_annotation(rc, ROLLOUT_PHASE, phases[ROLLOUT_NEW]);
    obj_set_annotation(rc, ROLLOUT_DESIRED, desired);
    obj_set_annotation(rc, ROLLOUT_REPLICAS, "0");
    obj_set_annotation(rc, ROLLOUT_ENCODED, encoded);
    if (*message) {
        obj_set_annotation(rc, ROLLOUT_REASON, message);
    }
    if (ignore) {
        obj_set_annotation(rc, ROLLOUT_IGNORE, ignore);
    }
}

struct json *rollout_make_set(const struct json *config)
{
    const struct json *spec = json_get(config, "spec");
    int64_t number = json_get_int_or(json_path(config, "status", "latestVersion", NULL), 0);
    CLEANUP_FREE char *name = rollout_set_name(obj_name(config), number);
    CLEANUP_FREE char *version = xasprintf("%" PRId64, number);
    struct json *rc = obj_new(workload_replication_controllers.api_version,
                              workload_replication_controllers.kind, obj_namespace(config), name);
    struct json *meta = json_get(rc, "metadata"), *to = json_ensure_object(rc, "spec");
    struct json *labels = object_or_new(json_path(config, "metadata", "labels", NULL));
    json_set_string(labels, ROLLOUT_CONFIG, obj_name(config));
    json_set(meta, "labels", labels);
    annotate(rc, config, version);
    json_append(json_ensure_array(meta, "ownerReferences"),
                workload_owner_ref(&workload_deployment_configs, config));
    json_set_int(to, "replicas", 0); /* The deployer makes it larger. */
    json_set_int(to, "minReadySeconds", json_get_int_or(json_get(spec, "minReadySeconds"), 0));
    json_set(to, "selector", with_labels(json_get(spec, "selector"), obj_name(config), name));
    json_set(to, "template", make_template(config, name, version));
    return rc;
}

/* ---- the strategy ---- */

int64_t rollout_timeout_s(const struct json *strategy)
{
    bool rolling = streq(json_get_text(strategy, "type"), "Rolling");
    const struct json *params = json_get(strategy, rolling ? "rollingParams" : "recreateParams");
    int64_t s = json_get_int_or(json_get(params, "timeoutSeconds"), ROLLOUT_TIMEOUT_S);
    return MIN(MAX(s, 1), INT32_MAX);
}

int64_t rollout_deadline_s(const struct json *strategy)
{
    int64_t s = json_get_int_or(json_get(strategy, "activeDeadlineSeconds"), ROLLOUT_DEADLINE_S);
    return MIN(MAX(s, 1), INT32_MAX);
}

/* ---- several ---- */

static int compare_versions(const void *x, const void *y)
{
    const struct json *const *a = x, *const *b = y;
    int64_t n = rollout_version(*a), m = rollout_version(*b);
    return n != m ? (n > m ? -1 : 1) : strcmp(obj_name(*a), obj_name(*b));
}

void rollout_sort(const struct json **list, size_t n)
{
    qsort((void *) list, n, sizeof *list, compare_versions);
}

const struct json *rollout_active(const struct json *const *list, size_t n)
{
    const struct json *best = NULL;
    for (size_t i = 0; i < n; i++) {
        if (rollout_phase(list[i]) == ROLLOUT_COMPLETE &&
            (!best || rollout_version(list[i]) > rollout_version(best))) {
            best = list[i];
        }
    }
    return best;
}
