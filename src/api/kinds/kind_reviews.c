/* SPDX-License-Identifier: Apache-2.0 */
/* Access reviews (authorization.k8s.io/v1): rules beyond their descriptions. */
#include "api/kind_util.h"
#include "api/kinds.h"

static void validate_access_spec(const struct json *spec, struct api_causes *c)
{
    const struct json *r = json_get(spec, "resourceAttributes");
    const struct json *p = json_get(spec, "nonResourceAttributes");
    if (r && p) {
        api_invalid(c, "spec.nonResourceAttributes", p,
                    "cannot be specified in combination with resourceAttributes");
    } else if (!r && !p) {
        api_invalid(c, "spec.resourceAttributes", NULL,
                    "exactly one of nonResourceAttributes or resourceAttributes must be specified");
    }
}

static void validate_subject_spec(const struct json *spec, struct api_causes *c)
{
    const struct json *user = json_get(spec, "user");
    validate_access_spec(spec, c);
    if (json_string_size(user) == 0 && json_count(json_get(spec, "groups")) == 0) {
        api_invalid(c, "spec.user", user, "at least one of user or group must be specified");
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
