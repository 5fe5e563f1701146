/* SPDX-License-Identifier: Apache-2.0 */
#include "controllers/templates/catalog.h"

#include "api/obj.h"
#include "base/log.h"
#include "base/mem.h"
#include "controllers/security/default_roles.h"
#include "controllers/templates/catalog_data.h"
#include "wire/yaml.h"

#include <stdlib.h>

LOG_MODULE("bootstrap");

#define TEMPLATES "template.openshift.io/v1"

struct catalog {
    struct json *want;
    size_t pending, written;
};

struct json *catalog_templates(void)
{
    struct json *list = NULL, *t;
    if (yaml_parse_all((const char *) catalog_yaml, catalog_yaml_size, &list, NULL) < 0) {
        abort();
    }
    JSON_FOREACH (t, list) {
        obj_set_annotation(t, CATALOG_AUTOUPDATE, "true");
    }
    return list;
}

struct json *catalog_updated(const struct json *want, const struct json *have)
{
    static const char *const parts[] = {"message", "objects", "parameters", "labels"};
    const struct json *notes = json_path(want, "metadata", "annotations", NULL);
    if (streq_null(obj_annotation(have, CATALOG_AUTOUPDATE), "false")) {
        return NULL;
    }
    CLEANUP(json_free) struct json *out = json_clone(have);
    for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
        const struct json *v = json_get(want, parts[i]);
        if (v) {
            json_set(out, parts[i], json_clone(v));
        } else {
            (void) json_remove(out, parts[i]);
        }
    }
    for (size_t i = 0; i < json_count(notes); i++) {
        obj_set_annotation(out, json_key_at(notes, i), json_get_string(json_at(notes, i)));
    }
    return json_equal(out, have) ? NULL : TAKE(out);
}

static char *path_of(const char *name)
{
    return api_path(TEMPLATES, "templates", SHARED_NAMESPACE, name, NULL);
}

static void finish(struct catalog *c, struct work *w)
{
    work_done(w);
    if (--c->pending == 0) {
        log_info("templates are in place", "written=%zu", c->written);
    }
}

static void written(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    struct catalog *c = ctx;
    if (error < 0) {
        work_retry(w, error, "write a template of the catalogue", text);
        return;
    }
    c->written++;
    finish(c, w);
}

static const struct json *wanted(const struct catalog *c, const char *name)
{
    const struct json *t;
    JSON_FOREACH (t, c->want) {
        if (streq(obj_name(t), name)) {
            return t;
        }
    }
    return NULL;
}

static void got(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    struct catalog *c = ctx;
    const struct json *want = wanted(c, work_key(w));
    if (error < 0 && error != -ENOENT) {
        work_retry(w, error, "read a template of the catalogue", text);
        return;
    }
    CLEANUP_FREE char *path = path_of(error < 0 ? NULL : work_key(w));
    CLEANUP(json_free) struct json *updated = error < 0 ? NULL : catalog_updated(want, obj);
    if (error < 0) {
        work_request(w, "POST", path, want, written);
    } else if (updated) {
        work_request(w, "PUT", path, updated, written);
    } else {
        finish(c, w);
    }
}

static void reconcile(void *ctx, struct work *w, const char *key)
{
    CLEANUP_FREE char *path = path_of(key);
    work_request(w, "GET", path, NULL, got);
}

static int start(const struct controller_env *env, const void *config, void **ret, struct err *e)
{
    struct catalog *c = NEW(struct catalog);
    const struct json *t;
    c->want = catalog_templates();
    c->pending = json_count(c->want);
    JSON_FOREACH (t, c->want) {
        workqueue_add(env->queue, obj_name(t));
    }
    *ret = c;
    return 0;
}

static void stop(void *state)
{
    struct catalog *c = state;
    json_free(c->want);
    free(c);
}

const struct controller catalog_controller = {
    .name = "catalog",
    .parallel = 4,
    .start = start,
    .reconcile = reconcile,
    .stop = stop,
};
