/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/workloads/template.h"

#include "api/label_selector.h"

#include <fnmatch.h>

bool kind_is(const struct api_kind *k, const char *group, const char *name)
{
    return streq(k->group, group) && streq(k->kind, name);
}

bool kind_is_dc(const struct api_kind *k)
{
    return kind_is(k, DC_GROUP, "DeploymentConfig");
}

static bool is_job_template(const struct api_kind *k)
{
    return streq(k->group, "batch") &&
           (streq(k->kind, "CronJob") || streq(k->kind, "ScheduledJob"));
}

struct json *template_of(const struct api_kind *k, const struct json *object)
{
    if (kind_is(k, "", "Pod")) {
        return (struct json *) object;
    }
    if (kind_is(k, "", "PodTemplate")) {
        return json_get(object, "template");
    }
    return is_job_template(k) ? json_path(object, "spec", "jobTemplate", "spec", "template", NULL)
                              : json_path(object, "spec", "template", NULL);
}

const char *template_path(const struct api_kind *k)
{
    return kind_is(k, "", "Pod")           ? ""
           : kind_is(k, "", "PodTemplate") ? "template"
           : is_job_template(k)            ? "spec.jobTemplate.spec.template"
                                           : "spec.template";
}

int template_each_container(struct json *template, const char *pattern, bool init,
                            template_container_fn *fn, void *ctx, struct err *e)
{
    static const char *const lists[] = {"containers", "initContainers"};
    int n = 0;
    for (size_t i = 0; i < (init ? 2u : 1u); i++) {
        struct json *c;
        JSON_FOREACH (c, json_path(template, "spec", lists[i], NULL)) {
            const char *name = json_get_text(c, "name");
            if (fnmatch(pattern, name, 0) != 0) {
                continue;
            }
            int r = fn ? fn(ctx, c, e) : 0;
            if (r < 0) {
                return r;
            }
            n++;
        }
    }
    return n;
}

struct json *template_named(const struct json *list, const char *name)
{
    struct json *o;
    JSON_FOREACH (o, list) {
        if (streq(json_get_text(o, "name"), name)) {
            return o;
        }
    }
    return NULL;
}

bool template_remove_named(struct json *list, const char *name)
{
    for (size_t i = 0; i < json_count(list); i++) {
        if (streq(json_get_text(json_at(list, i), "name"), name)) {
            return json_remove_at(list, i);
        }
    }
    return false;
}

bool template_has_replicas(const struct json *object)
{
    return json_is(json_path(object, "spec", "replicas", NULL), JSON_NUMBER);
}

void template_selector(const struct json *object, struct strbuf *out)
{
    label_selector_write(json_path(object, "spec", "selector", NULL), out);
}

int64_t number_at(const struct json *o, const char *a, const char *b, int64_t dflt)
{
    return json_get_int_or(json_path(o, a, b, NULL), dflt);
}

const char *annotation_of(const struct json *object, const char *key)
{
    return json_path_string(object, "metadata", "annotations", key, NULL);
}
