/* SPDX-License-Identifier: Apache-2.0 */
/* PodTemplate (core v1): rules beyond its description. */
#include "api/kind_util.h"
#include "api/kinds.h"
#include "api/kinds/kind_pod.h"
#include "api/kinds/template.h"

struct json *kind_pod_template_cell_labels(const struct json *obj, int64_t now_ms)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    const struct json *labels = json_path(obj, "template", "metadata", "labels", NULL);
    for (size_t i = 0; i < json_count(labels); i++) {
        const char *value = json_get_string(json_at(labels, i));
        strbuf_addf(&b, "%s%s=%s", i ? "," : "", json_key_at(labels, i), value ? value : "");
    }
    return api_cell_text(strbuf_cstr(&b), "<none>");
}

void kind_pod_template_prepare(struct json *obj, const struct json *old)
{
    (void) template_ensure(obj, "template");
}

void kind_pod_template_defaults(struct json *obj)
{
    template_default(json_get(obj, "template"));
}

void kind_pod_template_validate(const struct json *obj, const struct json *old,
                                struct api_causes *c)
{
    const struct json *template = json_get(obj, "template"), *before = json_get(old, "template");
    if (!before || !json_equal(template, before)) {
        pod_validate_template(c, "template", template);
    }
}
