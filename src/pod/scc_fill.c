/* SPDX-License-Identifier: Apache-2.0 */
/* Unset settings of a pod, filled in as the strategies of its constraints say. */
#include "api/kind_util.h"
#include "base/mem.h"
#include "pod/scc_priv.h"

#include <stdlib.h>

/* ---- capabilities ---- */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *) a, *(const char *const *) b);
}

/* Adds the texts of 'list' to 'texts', but for those in 'but'. */
static void gather(const char **texts, size_t *n, const struct json *list, const struct json *but)
{
    const struct json *item;
    JSON_FOREACH (item, list) {
        const char *s = json_get_string(item);
        if (s && !scc_has_word(but, s)) {
            texts[(*n)++] = s;
        }
    }
}

/* The texts of both lists in the order of their bytes, each once; owned. */
static struct json *joined(const struct json *a, const struct json *b, const struct json *but)
{
    size_t n = 0;
    CLEANUP_FREE const char **texts = xcalloc(json_count(a) + json_count(b) + 1, sizeof *texts);
    struct json *out = json_array();
    gather(texts, &n, a, but);
    gather(texts, &n, b, NULL);
    qsort(texts, n, sizeof *texts, by_text);
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || !streq(texts[i], texts[i - 1])) {
            json_append(out, json_string(texts[i]));
        }
    }
    return out;
}

/* Whether 'own' lacks a capability of 'wanted' that is not in 'but'. */
static bool lacks(const struct json *own, const struct json *wanted, const struct json *but)
{
    const struct json *item;
    JSON_FOREACH (item, wanted) {
        const char *s = json_get_string(item);
        if (s && !scc_has_word(own, s) && !scc_has_word(but, s)) {
            return true;
        }
    }
    return false;
}

static bool is_list(const struct json *v)
{
    return !scc_is_set(v) || json_is(v, JSON_ARRAY);
}

/* A container that drops ALL drops what the constraints require, and gets no defaults. */
static bool fill_capabilities(const struct scc *s, struct json *context)
{
    const struct json *own = json_get(context, "capabilities");
    const struct json *add = json_get(own, "add"), *drop = json_get(own, "drop");
    if ((scc_is_set(own) && !json_is(own, JSON_OBJECT)) || !is_list(add) || !is_list(drop)) {
        return false;
    }
    bool none = scc_has_word(drop, "ALL");
    bool adds = !none && lacks(add, s->default_adds, drop);
    bool drops = !none && lacks(drop, s->drops, NULL);
    if (!adds && !drops) {
        return false;
    }
    struct json *more = adds ? joined(s->default_adds, add, drop) : NULL;
    struct json *less = drops ? joined(s->drops, drop, NULL) : NULL;
    struct json *capabilities = json_ensure_object(context, "capabilities");
    json_set(capabilities, "add", more);
    json_set(capabilities, "drop", less);
    return true;
}

/* ---- SELinux, groups, seccomp ---- */

static struct json *labels_of(const struct scc_provider *p)
{
    static const char *const others[] = {"user", "role", "type"};
    struct json *o = json_object();
    json_set_string(o, "level", p->level);
    for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
        const struct json *v = json_get(p->scc->labels, others[i]);
        if (json_string_size(v)) {
            json_set(o, others[i], json_clone(v));
        }
    }
    return o;
}

static struct json *profile_object(const char *text)
{
    static const char localhost[] = "localhost/";
    bool file = str_has_prefix(text, localhost);
    struct json *o = json_object();
    json_set_string(o, "type",
                    streq(text, "unconfined") ? "Unconfined"
                    : file                    ? "Localhost"
                                              : "RuntimeDefault");
    if (file) {
        json_set_string(o, "localhostProfile", text + sizeof localhost - 1);
    }
    return o;
}

static bool fill_pod(const struct scc_provider *p, struct json *pod, struct json *context)
{
    const char *profile = scc_default_profile(p->scc);
    const struct json *noted = json_path(pod, "metadata", "annotations", SCC_SECCOMP_POD, NULL);
    bool changed = false;
    if (p->level && !scc_is_set(json_get(context, "seLinuxOptions"))) {
        json_set(context, "seLinuxOptions", labels_of(p));
        changed = true;
    }
    if (p->file_groups.n && !scc_is_set(json_get(context, "fsGroup"))) {
        json_set_int(context, "fsGroup", p->file_groups.at[0].min);
        changed = true;
    }
    const struct json *groups = json_get(context, "supplementalGroups");
    if (p->groups.n && is_list(groups) && !json_count(groups)) {
        json_append(json_ensure_array(context, "supplementalGroups"),
                    json_int(p->groups.at[0].min));
        changed = true;
    }
    if (profile && !scc_is_set(json_get(context, "seccompProfile")) && !json_string_size(noted)) {
        json_set(context, "seccompProfile", profile_object(profile));
        changed = true;
    }
    return changed;
}

/* ---- containers ---- */

/* Whether Kubernetes refuses allowPrivilegeEscalation: false beside the other settings. */
static bool must_escalate(const struct json *context)
{
    return json_get_bool(json_get(context, "privileged"), false) ||
           scc_has_word(json_path(context, "capabilities", "add", NULL), "CAP_SYS_ADMIN");
}

static bool fill_escalation(const struct scc *s, struct json *context)
{
    if (scc_is_set(json_get(context, "allowPrivilegeEscalation"))) {
        return false;
    }
    if (s->default_escalation && !must_escalate(context)) {
        json_set(context, "allowPrivilegeEscalation", json_clone(s->default_escalation));
        return true;
    }
    if (!s->escalation) {
        json_set_bool(context, "allowPrivilegeEscalation", false);
    }
    return !s->escalation;
}

/* A container with another user than root says so, which the standard `restricted` of Kubernetes
 * asks for, too. */
static bool fill_non_root(const struct scc *s, struct json *context, const struct json *pod_context)
{
    const struct json *user = scc_effective(context, pod_context, "runAsUser");
    if (scc_effective(context, pod_context, "runAsNonRoot") ||
        !(user ? json_get_int_or(user, 0) > 0 : s->user == SCC_NON_ROOT)) {
        return false;
    }
    json_set_bool(context, "runAsNonRoot", true);
    return true;
}

static bool fill_context(const struct scc_provider *p, struct json *context,
                         const struct json *pod_context)
{
    const struct scc *s = p->scc;
    bool changed = false;
    if (s->user >= SCC_USER_RANGE && !scc_effective(context, pod_context, "runAsUser")) {
        json_set_int(context, "runAsUser", p->users.min);
        changed = true;
    }
    if (p->level && !scc_effective(context, pod_context, "seLinuxOptions")) {
        json_set(context, "seLinuxOptions", labels_of(p));
        changed = true;
    }
    if (s->read_only_root && !scc_is_set(json_get(context, "readOnlyRootFilesystem"))) {
        json_set_bool(context, "readOnlyRootFilesystem", true);
        changed = true;
    }
    changed = fill_capabilities(s, context) || changed;
    changed = fill_non_root(s, context, pod_context) || changed;
    return fill_escalation(s, context) || changed;
}

static bool fill_container(const struct scc_provider *p, struct json *ct,
                           const struct json *pod_context)
{
    const struct json *had = json_get(ct, "securityContext");
    bool has = scc_is_set(had);
    if (!json_is(ct, JSON_OBJECT) || (has && !json_is(had, JSON_OBJECT))) {
        return false;
    }
    struct json *context = json_ensure_object(ct, "securityContext");
    bool changed = fill_context(p, context, pod_context);
    if (!changed && !has) {
        json_remove(ct, "securityContext");
    }
    return changed;
}

bool scc_fill(const struct scc_provider *p, struct json *pod, enum scc_part part)
{
    struct json *spec = json_get(pod, "spec"), *ct;
    const struct json *had = json_get(spec, "securityContext");
    bool whole = part == SCC_WHOLE_POD, changed = false;
    if (!json_is(spec, JSON_OBJECT) || (scc_is_set(had) && !json_is(had, JSON_OBJECT))) {
        return false;
    }
    if (whole) {
        bool has = scc_is_set(had);
        struct json *context = json_ensure_object(spec, "securityContext");
        changed = fill_pod(p, pod, context);
        if (!changed && !has) {
            json_remove(spec, "securityContext");
        }
    }
    const struct json *context = json_get(spec, "securityContext");
    for (size_t i = 0; scc_lists[i]; i++) {
        if (!whole && !streq(scc_lists[i], "ephemeralContainers")) {
            continue;
        }
        JSON_FOREACH (ct, json_get(spec, scc_lists[i])) {
            changed = fill_container(p, ct, context) || changed;
        }
    }
    return changed;
}
