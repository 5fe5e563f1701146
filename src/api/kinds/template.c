/* SPDX-License-Identifier: Apache-2.0 */
#include "api/kinds/template.h"

#include "api/kind_util.h"
#include "api/kinds/kind_pod.h"
#include "api/label_selector.h"

/* ---- defaults ---- */

struct json *template_prepare(struct json *obj, const struct json *old)
{
    if (!old) {
        json_set(obj, "status", json_object());
    }
    (void) api_default_object(obj, "status");
    return api_default_object(obj, "spec");
}

struct json *template_ensure(struct json *spec, const char *key)
{
    struct json *template = spec ? api_default_object(spec, key) : NULL;
    return template && api_default_object(template, "spec") ? template : NULL;
}

void template_default(struct json *template)
{
    pod_default_spec(json_get(template, "spec"), false);
}

/* ---- checks ---- */

static void check_restarts(struct api_causes *c, const char *field, const struct json *spec,
                           const char *owner)
{
    static const char *const always[] = {"Always", NULL};
    const struct json *policy = json_get(spec, "restartPolicy");
    bool is_always = streq_null(json_get_string(policy), "Always");
    if (!owner && is_always) {
        api_required(c, API_FIELD("%s.restartPolicy", field),
                     "valid values: \"OnFailure\", \"Never\"");
    } else if (owner && !is_always) {
        api_unsupported(c, API_FIELD("%s.restartPolicy", field), policy, always);
    }
    if (owner && json_get(spec, "activeDeadlineSeconds")) {
        api_forbidden(c, API_FIELD("%s.activeDeadlineSeconds", field),
                      "activeDeadlineSeconds in %s is not Supported", owner);
    }
}

void template_check(struct api_causes *c, const char *field, const struct json *template,
                    const struct json *old, const char *owner)
{
    if (old && json_equal(old, template)) {
        return;
    }
    pod_validate_template(c, field, template);
    check_restarts(c, API_FIELD("%s.spec", field), json_get(template, "spec"), owner);
}

void template_check_selector(struct api_causes *c, const struct json *obj, const struct json *old,
                             const char *kind)
{
    const struct json *selector = json_path(obj, "spec", "selector", NULL);
    const struct json *labels = json_path(obj, "spec", "template", "metadata", "labels", NULL);
    label_selector_check(c, "spec.selector", selector);
    if (label_selector_is_empty(selector)) {
        api_invalid(c, "spec.selector", selector, "empty selector is invalid for %s", kind);
    } else if (!label_selector_matches(selector, labels)) {
        api_invalid(c, "spec.template.metadata.labels", labels,
                    "`selector` does not match template `labels`");
    }
    if (old) {
        api_field_immutable(c, "spec.selector", selector, json_path(old, "spec", "selector", NULL));
    }
}

void template_check_counts(struct api_causes *c, const struct json *obj, const char *const *counts,
                           const char *most)
{
    const struct json *status = json_get(obj, "status");
    int64_t all = json_get_int_or(json_get(status, most), 0);
    for (size_t i = 0; counts[i]; i++) {
        const struct json *v = json_get(status, counts[i]);
        if (json_get_int_or(v, 0) > all) {
            api_invalid(c, API_FIELD("status.%s", counts[i]), v, "cannot be greater than status.%s",
                        most);
        }
    }
}

/* ---- cells ---- */

/* The innermost member "template" of an object, and what it is in. */
static const struct json *find_template(const struct json *obj, const struct json **ret_spec)
{
    const struct json *spec = json_get(obj, "spec"), *job = json_get(spec, "jobTemplate");
    spec = job ? json_get(job, "spec") : spec;
    *ret_spec = spec;
    return json_get(json_get(obj, "template") ? obj : spec, "template");
}

static struct json *join(const struct json *obj, const char *member)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    const struct json *spec, *ct, *template = find_template(obj, &spec);
    JSON_FOREACH (ct, json_path(template, "spec", "containers", NULL)) {
        const char *s = json_path_string(ct, member, NULL);
        strbuf_addf(&b, "%s%s", b.size ? "," : "", s ? s : "");
    }
    return json_string(strbuf_cstr(&b));
}

struct json *api_cell_containers(const struct json *obj, int64_t now_ms)
{
    return join(obj, "name");
}

struct json *api_cell_images(const struct json *obj, int64_t now_ms)
{
    return join(obj, "image");
}

struct json *api_cell_selector(const struct json *obj, int64_t now_ms)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    const struct json *spec;
    (void) find_template(obj, &spec);
    label_selector_write(json_get(spec, "selector"), &b);
    return api_cell_text(strbuf_cstr(&b), "<none>");
}
