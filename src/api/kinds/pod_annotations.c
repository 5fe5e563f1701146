/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of annotations with a meaning: mirrored pods, the cost of deletion, and profiles of seccomp
 * and AppArmor, which older clients name so. */
#include "api/kind_util.h"
#include "api/kinds/pod_priv.h"
#include "base/mem.h"

#define SECCOMP_POD "seccomp.security.alpha.kubernetes.io/pod"
#define SECCOMP_CONTAINER "container.seccomp.security.alpha.kubernetes.io/"
#define APPARMOR_CONTAINER "container.apparmor.security.beta.kubernetes.io/"
#define LOCALHOST "localhost/"
#define MIRROR "kubernetes.io/config.mirror"
#define DELETION_COST "controller.kubernetes.io/pod-deletion-cost"

static void check_seccomp(const struct pod_rules *r, const char *field, const struct json *v)
{
    const char *s = json_get_string(v) ? json_get_string(v) : "";
    if (str_has_prefix(s, LOCALHOST)) {
        CLEANUP(json_free) struct json *path = json_string(s + strlen(LOCALHOST));
        pod_check_local_path(r, field, path);
    } else if (!streq(s, "runtime/default") && !streq(s, "docker/default") &&
               !streq(s, "unconfined")) {
        api_invalid(r->c, field, v, "must be a valid seccomp profile");
    }
}

static void check_apparmor(const struct pod_rules *r, const char *field, const char *key,
                           const struct json *v)
{
    CLEANUP(json_free) struct json *name = json_string(key + strlen(APPARMOR_CONTAINER));
    const char *s = json_get_string(v) ? json_get_string(v) : "";
    bool found = false;
    for (size_t i = 0; i < POD_N_LISTS; i++) {
        found |= pod_find_named(json_get(r->spec, pod_lists[i]), name) != NULL;
    }
    if (!found) {
        api_invalid(r->c, field, name, "container not found");
    }
    if (*s && !streq(s, "runtime/default") && !streq(s, "unconfined") &&
        !str_has_prefix(s, LOCALHOST)) {
        api_invalid(r->c, field, v, "invalid AppArmor profile name: \"%.253s\"", s);
    }
}

static bool is_cost(const char *s)
{
    int64_t n;
    const char *digits = s + (*s == '-');
    return str_to_i64(s, INT32_MIN, INT32_MAX, &n) == 0 && *s != '+' &&
           (*digits != '0' || (digits == s && !digits[1]));
}

void pod_check_annotations(const struct pod_rules *r, const char *field,
                           const struct json *annotations)
{
    for (size_t i = 0; i < json_count(annotations) && r->c->n < API_MAX_CAUSES; i++) {
        const char *key = json_key_at(annotations, i);
        const char *at = API_FIELD("%s[%.128s]", field, key);
        const struct json *v = json_at(annotations, i);
        if (streq(key, MIRROR) && json_string_size(json_get(r->spec, "nodeName")) == 0) {
            api_invalid(r->c, at, v, "must set spec.nodeName if mirror pod annotation is set");
        } else if (streq(key, DELETION_COST) && !is_cost(json_get_string(v))) {
            api_invalid(r->c, at, v, "must be a 32bit integer");
        } else if (streq(key, SECCOMP_POD) || str_has_prefix(key, SECCOMP_CONTAINER)) {
            check_seccomp(r, API_FIELD("%s.%.128s", field, key), v);
        } else if (str_has_prefix(key, APPARMOR_CONTAINER)) {
            check_apparmor(r, at, key, v);
        }
    }
}

/* ---- annotations beside the fields that replace them ---- */

static const struct profile {
    const char *what, *member, *prefix;
} profiles[] = {
    {"seccomp", "seccompProfile", SECCOMP_CONTAINER},
    {"apparmor", "appArmorProfile", APPARMOR_CONTAINER},
};

/* 'field' is that of the security settings with the profile 'v'. */
static void check_match(const struct pod_rules *r, const char *field, const struct profile *p,
                        const struct json *v, const struct json *annotation)
{
    const char *type = json_get_text(v, "type"), *says = json_get_string(annotation);
    const char *path = json_get_text(v, "localhostProfile");
    if (!v || !says) {
        return;
    }
    bool local = streq(type, "Localhost"), named = str_has_prefix(says, LOCALHOST);
    bool usual = streq(says, "runtime/default") ||
                 (streq(p->what, "seccomp") && streq(says, "docker/default"));
    if ((streq(type, "Unconfined") && !streq(says, "unconfined")) ||
        (streq(type, "RuntimeDefault") && !usual) || (local && !named)) {
        api_forbidden(r->c, API_FIELD("%s.%s.type", field, p->member),
                      "%s type in annotation and field must match", p->what);
    } else if (local && !streq(says + strlen(LOCALHOST), path)) {
        api_forbidden(r->c, API_FIELD("%s.%s.localhostProfile", field, p->member),
                      "%s profile in annotation and field must match", p->what);
    }
}

void pod_check_profiles(const struct pod_rules *r, const char *field,
                        const struct json *annotations)
{
    const struct json *ours = json_get(r->spec, "securityContext");
    bool windows = streq(json_get_text(json_get(r->spec, "os"), "name"), "windows");
    check_match(r, API_FIELD("%s.securityContext", field), &profiles[0],
                json_get(ours, profiles[0].member), json_get(annotations, SECCOMP_POD));
    for (size_t list = 0; list < POD_N_LISTS; list++) {
        const struct json *containers = json_get(r->spec, pod_lists[list]);
        for (size_t i = 0; i < json_count(containers); i++) {
            const struct json *ct = json_at(containers, i);
            const char *at = API_FIELD("%s.%s[%zu].securityContext", field, pod_lists[list], i);
            for (size_t k = 0; k < ARRAY_SIZE(profiles); k++) {
                const struct profile *p = &profiles[k];
                CLEANUP_FREE char *key = xasprintf("%s%s", p->prefix, json_get_text(ct, "name"));
                const struct json *v = json_path(ct, "securityContext", p->member, NULL);
                /* A container has the pod's profile of AppArmor, and of seccomp its own only. */
                v = !v && k == 1 ? json_get(ours, p->member) : v;
                if (k == 0 || !windows) {
                    check_match(r, at, p, v, json_get(annotations, key));
                }
            }
        }
    }
}

/* ---- changes ---- */

/* Annotations that a pod has from its creation on: it stays mirrored or not, and its containers
 * keep their profiles. */
static const char *fixed_noun(const char *key)
{
    return streq(key, MIRROR)                        ? "mirror pod annotation"
           : str_has_prefix(key, APPARMOR_CONTAINER) ? "AppArmor annotations"
                                                     : NULL;
}

void pod_check_annotation_update(struct api_causes *c, const struct json *now,
                                 const struct json *before)
{
    for (size_t i = 0; json_is(before, JSON_OBJECT) && i < json_count(before); i++) {
        const char *key = json_key_at(before, i), *noun = fixed_noun(key);
        const struct json *is = noun ? json_get(now, key) : NULL;
        if (noun && !(is && json_equal(is, json_at(before, i)))) {
            api_forbidden(c, API_FIELD("metadata.annotations[%.128s]", key),
                          "may not remove or update %s", noun);
        }
    }
    for (size_t i = 0; i < json_count(now); i++) {
        const char *key = json_key_at(now, i), *noun = fixed_noun(key);
        if (noun && !json_get(before, key)) {
            api_forbidden(c, API_FIELD("metadata.annotations[%.128s]", key), "may not add %s",
                          noun);
        }
    }
}
