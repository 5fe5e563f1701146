/* SPDX-License-Identifier: Apache-2.0 */
/* Reviews: TokenReview and SelfSubjectReview (authentication.k8s.io/v1), access reviews (authorization.k8s.io/v1). */
#include "api/kind_util.h"
#include "api/kinds.h"

static void validate_strings(const char *field, const struct json *v, const char *const *keys,
                             struct api_causes *c)
{
    if (!api_field_object(c, field, v)) {
        return;
    }
    for (size_t i = 0; keys[i]; i++) {
        api_field_string(c, API_FIELD("%s.%s", field, keys[i]), json_get(v, keys[i]), false);
    }
}

static void validate_access_spec(const struct json *spec, struct api_causes *c)
{
    static const char *const resource[] = {"namespace", "verb",        "group", "version",
                                           "resource",  "subresource", "name",  NULL};
    static const char *const path[] = {"path", "verb", NULL};
    const struct json *r = json_get(spec, "resourceAttributes");
    const struct json *p = json_get(spec, "nonResourceAttributes");
    bool has_r = json_is(r, JSON_OBJECT), has_p = json_is(p, JSON_OBJECT);
    validate_strings("spec.resourceAttributes", r, resource, c);
    validate_strings("spec.nonResourceAttributes", p, path, c);
    if (has_r && has_p) {
        api_invalid(c, "spec.nonResourceAttributes", p,
                    "cannot be specified in combination with resourceAttributes");
    } else if (!has_r && !has_p) {
        api_invalid(c, "spec.resourceAttributes", NULL,
                    "exactly one of nonResourceAttributes or resourceAttributes must be specified");
    }
}

static void validate_subject_spec(const struct json *spec, struct api_causes *c)
{
    const struct json *groups = json_get(spec, "groups"), *extra = json_get(spec, "extra");
    validate_access_spec(spec, c);
    bool user = api_field_string(c, "spec.user", json_get(spec, "user"), false);
    api_field_string(c, "spec.uid", json_get(spec, "uid"), false);
    if (api_field_array(c, "spec.groups", groups)) {
        for (size_t i = 0; i < json_count(groups); i++) {
            api_field_string(c, API_FIELD("spec.groups[%zu]", i), json_at(groups, i), true);
        }
    }
    if (!user && json_count(groups) == 0) {
        api_invalid(c, "spec.user", json_get(spec, "user"),
                    "at least one of user or group must be specified");
    }
    if (api_field_object(c, "spec.extra", extra)) {
        for (size_t i = 0; i < json_count(extra); i++) {
            api_field_array(c, API_FIELD("spec.extra[%.60s]", json_key_at(extra, i)),
                            json_at(extra, i));
        }
    }
}

void kind_subject_access_review_validate(const struct json *obj, const struct json *old,
                                         struct api_causes *c)
{
    validate_subject_spec(json_get(obj, "spec"), c);
}

void kind_local_subject_access_review_validate(const struct json *obj, const struct json *old,
                                               struct api_causes *c)
{
    const struct json *spec = json_get(obj, "spec");
    const struct json *ns = json_path(spec, "resourceAttributes", "namespace", NULL);
    validate_subject_spec(spec, c);
    if (json_get(spec, "nonResourceAttributes")) {
        api_invalid(c, "spec.nonResourceAttributes", NULL, "disallowed on this kind of request");
    }
    if (!streq_null(json_get_string(ns), json_path_string(obj, "metadata", "namespace", NULL))) {
        api_invalid(c, "spec.resourceAttributes.namespace", ns, "must match metadata.namespace");
    }
}

void kind_self_subject_access_review_validate(const struct json *obj, const struct json *old,
                                              struct api_causes *c)
{
    validate_access_spec(json_get(obj, "spec"), c);
}

void kind_self_subject_rules_review_validate(const struct json *obj, const struct json *old,
                                             struct api_causes *c)
{
    api_field_string(c, "spec.namespace", json_path(obj, "spec", "namespace", NULL), true);
}

void kind_token_review_validate(const struct json *obj, const struct json *old,
                                struct api_causes *c)
{
    static const char field[] = "spec.audiences";
    const struct json *list = json_path(obj, "spec", "audiences", NULL);
    api_field_string(c, "spec.token", json_path(obj, "spec", "token", NULL), true);
    if (api_field_array(c, field, list)) {
        for (size_t i = 0; i < json_count(list); i++) {
            api_field_string(c, API_FIELD("%s[%zu]", field, i), json_at(list, i), true);
        }
    }
}
