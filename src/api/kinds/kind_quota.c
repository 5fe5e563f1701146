/* SPDX-License-Identifier: Apache-2.0 */
/* ResourceQuota and LimitRange (core v1): the rules beyond their descriptions, in the words of
 * kube-apiserver. */
#include "api/kind_util.h"
#include "api/kinds.h"
#include "api/kinds/template.h"

/* ---- cells ---- */

/* "pods: 1/4, secrets: 2/9" of the resources that are limits, or of the others. */
static struct json *usage(const struct json *obj, bool limits)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    const struct json *hard = json_path(obj, "status", "hard", NULL);
    for (size_t i = 0; json_is(hard, JSON_OBJECT) && i < json_count(hard); i++) {
        const char *name = json_key_at(hard, i), *most = json_get_string(json_at(hard, i));
        const char *used = json_path_string(obj, "status", "used", name, NULL);
        if (str_has_prefix(name, "limits.") == limits) {
            strbuf_addf(&b, "%s%s: %s/%s", b.size ? ", " : "", name, used ? used : "0",
                        most ? most : "?");
        }
    }
    return json_string(strbuf_cstr(&b));
}

struct json *kind_resource_quota_cell_request(const struct json *obj, int64_t now_ms)
{
    return usage(obj, false);
}

struct json *kind_resource_quota_cell_limit(const struct json *obj, int64_t now_ms)
{
    return usage(obj, true);
}

/* ---- rules ---- */

void kind_resource_quota_prepare(struct json *obj, const struct json *old)
{
    (void) template_prepare(obj, old);
}

void kind_resource_quota_validate(const struct json *obj, const struct json *old,
                                  struct api_causes *c)
{
    static const char *const fixed[] = {"scopes", "scopeSelector"};
    const struct json *spec = json_get(obj, "spec"), *hard = json_get(spec, "hard");
    for (size_t i = 0; i < json_count(hard); i++) {
        const char *name = json_key_at(hard, i), *wrong = api_check_qualified_name(name);
        if (wrong) {
            CLEANUP(json_free) struct json *v = json_string(name);
            api_invalid(c, API_FIELD("spec.hard[%s]", name), v, "%s", wrong);
        }
    }
    for (size_t i = 0; i < ARRAY_SIZE(fixed) && old; i++) {
        api_field_immutable(c, API_FIELD("spec.%s", fixed[i]), json_get(spec, fixed[i]),
                            json_path(old, "spec", fixed[i], NULL));
    }
}

void kind_limit_range_validate(const struct json *obj, const struct json *old, struct api_causes *c)
{
    const struct json *list = json_path(obj, "spec", "limits", NULL);
    for (size_t i = 0; i < json_count(list); i++) {
        const struct json *type = json_get(json_at(list, i), "type");
        for (size_t k = 0; k < i; k++) {
            if (json_equal(json_get(json_at(list, k), "type"), type)) {
                api_duplicate(c, API_FIELD("spec.limits[%zu].type", i), type);
                break;
            }
        }
    }
}
