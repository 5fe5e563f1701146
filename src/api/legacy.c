/* SPDX-License-Identifier: Apache-2.0 */
#include "api/legacy.h"

/* Groups of OpenShift whose kinds are in /oapi/v1. */
static const char *const groups[] = {
    "apps.openshift.io",     "authorization.openshift.io", "build.openshift.io",
    "image.openshift.io",    "network.openshift.io",       "oauth.openshift.io",
    "project.openshift.io",  "quota.openshift.io",         "route.openshift.io",
    "security.openshift.io", "template.openshift.io",      "user.openshift.io",
};

/* Resources of these groups that are younger than the groups, or were never there. */
static const char *const younger[] = {
    "securitycontextconstraints", "templateinstances",     "brokertemplateinstances",
    "rangeallocations",           "useroauthaccesstokens",
};

static bool is_in(const char *const *list, size_t n, const char *s)
{
    for (size_t i = 0; i < n; i++) {
        if (streq(list[i], s)) {
            return true;
        }
    }
    return false;
}

bool api_legacy_has(const struct api_kind *k)
{
    return !k->custom && streq(k->version, "v1") && is_in(groups, ARRAY_SIZE(groups), k->group) &&
           !is_in(younger, ARRAY_SIZE(younger), k->plural);
}

const char *api_legacy_group(const char *resource)
{
    for (size_t i = 0; api_kinds[i]; i++) {
        if (streq(api_kinds[i]->plural, resource) && api_legacy_has(api_kinds[i])) {
            return api_kinds[i]->group;
        }
    }
    return NULL;
}

const char *api_legacy_core_group(const char *resource)
{
    return streq(resource, "securitycontextconstraints") ? "security.openshift.io" : NULL;
}
