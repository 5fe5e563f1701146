/* SPDX-License-Identifier: Apache-2.0 */
/* Access reviews of OpenShift (authorization.openshift.io/v1): rules beyond their descriptions. */
#include "api/kind_util.h"
#include "api/kinds.h"

void kind_openshift_subject_access_review_validate(const struct json *obj, const struct json *old,
                                                   struct api_causes *c)
{
    bool path = json_get_bool(json_get(obj, "isNonResourceURL"), false);
    const char *field = path ? "path" : "resource";
    if (json_string_size(json_get(obj, field)) == 0) {
        api_required(c, field, "");
    }
}

void kind_subject_rules_review_validate(const struct json *obj, const struct json *old,
                                        struct api_causes *c)
{
    const struct json *spec = json_get(obj, "spec");
    if (json_string_size(json_get(spec, "user")) == 0 &&
        json_count(json_get(spec, "groups")) == 0) {
        api_required(c, "spec.user", "at least one of user or groups must be specified");
    }
}
