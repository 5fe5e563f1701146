/* SPDX-License-Identifier: Apache-2.0 */
/* A pod judged by its constraints: each setting that they do not allow is a cause, in OpenShift's
 * words. */
#include "base/mem.h"
#include "pod/scc_priv.h"

#include <stdlib.h>

/* The judgement of one pod. */
struct judging {
    const struct scc_provider *p;
    const struct scc *s;
    const char *path;
    const struct json *pod, *spec, *context; /* The pod's security context. */
    struct api_causes *c;
};

/* Only absent, null and false are false: another type is refused. */
static bool is_false(const struct json *v)
{
    return !scc_is_set(v) || (json_is(v, JSON_BOOL) && !json_get_bool(v, true));
}

static bool is_true(const struct json *v)
{
    return json_is(v, JSON_BOOL) && json_get_bool(v, false);
}

static bool is_within(int64_t n, const struct scc_ranges *ranges)
{
    bool found = false;
    for (size_t i = 0; i < ranges->n && !found; i++) {
        found = n >= ranges->at[i].min && n <= ranges->at[i].max;
    }
    return found;
}

static const struct json *annotations_of(const struct judging *j)
{
    const struct json *list = json_path(j->pod, "metadata", "annotations", NULL);
    return json_is(list, JSON_OBJECT) ? list : NULL;
}

/* Refuses a security context of a wrong type; returns whether there is one to be judged. */
static bool has_context(struct api_causes *c, const char *at, const struct json *context)
{
    if (scc_is_set(context) && !json_is(context, JSON_OBJECT)) {
        api_invalid(c, at, context, "must be an object");
        return false;
    }
    return true;
}

/* ---- the pod ---- */

static void check_host(const struct judging *j)
{
    const struct {
        const char *field;
        bool allowed;
        const char *why;
    } namespaces[] = {
        {"hostPID", j->s->host_pid, "Host PID is not allowed to be used"},
        {"hostNetwork", j->s->host_network, "Host network is not allowed to be used"},
        {"hostIPC", j->s->host_ipc, "Host IPC is not allowed to be used"},
    };
    const struct json *users = json_get(j->spec, "hostUsers");
    for (size_t i = 0; i < ARRAY_SIZE(namespaces); i++) {
        const struct json *v = json_get(j->spec, namespaces[i].field);
        if (!namespaces[i].allowed && !is_false(v)) {
            api_invalid(j->c, API_FIELD("%sspec.%s", j->path, namespaces[i].field), v, "%s",
                        namespaces[i].why);
        }
    }
    if (j->s->own_users && (!scc_is_set(users) || !is_false(users))) {
        CLEANUP(json_free) struct json *yes = json_bool(true);
        api_invalid(j->c, API_FIELD("%sspec.hostUsers", j->path), scc_is_set(users) ? users : yes,
                    "must be false");
    }
}

static const char *text_of(const struct json *labels, const char *key)
{
    const char *s = json_path_string(labels, key, NULL);
    return s ? s : "";
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *) a, *(char *const *) b);
}

#define MAX_CATEGORIES 64

/* Splits "c1,c0" in place, and sorts the parts.  Returns their number; 0: there are too many. */
static size_t split_categories(char *s, char *parts[MAX_CATEGORIES])
{
    size_t n = 0;
    for (char *rest = s, *part; (part = strsep(&rest, ",")) != NULL;) {
        if (n == MAX_CATEGORIES) {
            return 0;
        }
        parts[n++] = part;
    }
    qsort(parts, n, sizeof *parts, by_text);
    return n;
}

/* Whether two levels have the same sensitivity and the same categories, in any order. */
static bool same_level(const char *a, const char *b)
{
    size_t n = strcspn(a, ":");
    char *a_parts[MAX_CATEGORIES], *b_parts[MAX_CATEGORIES];
    if (streq(a, b)) {
        return true;
    }
    if (a[n] != ':' || strncmp(a, b, n + 1) != 0) {
        return false;
    }
    CLEANUP_FREE char *a_rest = xstrdup(a + n + 1), *b_rest = xstrdup(b + n + 1);
    size_t a_n = split_categories(a_rest, a_parts), b_n = split_categories(b_rest, b_parts);
    bool same = a_n && a_n == b_n;
    for (size_t i = 0; i < a_n && same; i++) {
        same = streq(a_parts[i], b_parts[i]);
    }
    return same;
}

static void check_labels(const struct judging *j, const char *at, const struct json *labels)
{
    static const char *const others[] = {"role", "type", "user"};
    if (!j->s->one_level) {
        return;
    }
    if (!json_is(labels, JSON_OBJECT)) {
        api_required(j->c, API_FIELD("%s.seLinuxOptions", at), "");
        return;
    }
    if (!same_level(j->p->level, text_of(labels, "level"))) {
        CLEANUP(json_free) struct json *v = json_string(text_of(labels, "level"));
        api_invalid(j->c, API_FIELD("%s.seLinuxOptions.level", at), v, "must be %s", j->p->level);
    }
    for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
        const char *want = text_of(j->s->labels, others[i]);
        if (!streq(want, text_of(labels, others[i]))) {
            CLEANUP(json_free) struct json *v = json_string(text_of(labels, others[i]));
            api_invalid(j->c, API_FIELD("%s.seLinuxOptions.%s", at, others[i]), v, "must be %s",
                        want);
        }
    }
}

static void check_groups(const struct judging *j, const char *at)
{
    const struct json *one = json_get(j->context, "fsGroup");
    const struct json *list = json_get(j->context, "supplementalGroups");
    CLEANUP(json_free) struct json *none = json_array();
    int64_t n;
    if (j->p->file_groups.n && !scc_is_set(one)) {
        api_invalid(j->c, API_FIELD("%s.fsGroup", at), none,
                    "unable to validate empty groups against required ranges");
    } else if (j->p->file_groups.n &&
               (json_get_int(one, &n) < 0 || !is_within(n, &j->p->file_groups))) {
        CLEANUP(json_free) struct json *groups = json_array();
        CLEANUP_FREE char *text = json_to_text(one);
        json_append(groups, json_clone(one));
        api_invalid(j->c, API_FIELD("%s.fsGroup", at), groups, "%.32s is not an allowed group",
                    text);
    }
    if (j->p->groups.n && !json_count(list)) {
        api_invalid(j->c, API_FIELD("%s.supplementalGroups", at), none,
                    "unable to validate empty groups against required ranges");
    }
    for (size_t i = 0; j->p->groups.n && i < json_count(list); i++) {
        if (json_get_int(json_at(list, i), &n) < 0 || !is_within(n, &j->p->groups)) {
            CLEANUP_FREE char *text = json_to_text(json_at(list, i));
            api_invalid(j->c, API_FIELD("%s.supplementalGroups", at), list,
                        "%.32s is not an allowed group", text);
        }
    }
}

/* ---- seccomp ---- */

/* 'text' NULL: the pod names no profile, or one of a type that is not known. */
static void check_profile(const struct judging *j, const char *field, const char *text)
{
    const struct json *item, *list = j->s->profiles;
    bool any = scc_has_word(list, "*");
    if (any || (!json_count(list) && !text)) {
        return;
    }
    if (!json_count(list)) {
        api_forbidden(j->c, field, "seccomp may not be set");
        return;
    }
    static const char *const defaults[] = {"runtime/default", "docker/default"};
    bool found = scc_has_word(list, text ? text : ""), by_default = false, allowed = false;
    for (size_t i = 0; i < ARRAY_SIZE(defaults); i++) {
        by_default |= streq_null(text, defaults[i]);
        allowed |= scc_has_word(list, defaults[i]);
    }
    if (found || (by_default && allowed)) {
        return;
    }
    CLEANUP_STRBUF struct strbuf valid = STRBUF_INIT;
    JSON_FOREACH (item, list) {
        strbuf_addf(&valid, "%s%s", valid.size ? " " : "",
                    json_get_string(item) ? json_get_string(item) : "");
    }
    api_forbidden(j->c, field, "%.128s is not an allowed seccomp profile. Valid values are [%s]",
                  text ? text : "", strbuf_cstr(&valid));
}

/* A profile by its field; a value that names none is judged as a text that no list has. */
static void check_profile_field(const struct judging *j, const char *at, const struct json *profile)
{
    CLEANUP_FREE char *text = scc_profile_text(profile);
    check_profile(j, API_FIELD("%s.seccompProfile", at), text ? text : "unknown");
}

/* Field and annotation are judged each: kubelets differ in which one they take. */
static void check_pod_profile(const struct judging *j, const char *at)
{
    const struct json *field = json_get(j->context, "seccompProfile");
    const struct json *noted = json_get(annotations_of(j), SCC_SECCOMP_POD);
    if (scc_is_set(field)) {
        check_profile_field(j, at, field);
    }
    if (json_string_size(noted)) {
        check_profile(j, API_FIELD("%smetadata.annotations[%s]", j->path, SCC_SECCOMP_POD),
                      json_get_string(noted));
    }
    if (!scc_is_set(field) && !json_string_size(noted)) {
        check_profile(j, API_FIELD("%s.seccompProfile", at), NULL);
    }
}

static void check_container_profiles(const struct judging *j)
{
    const struct json *list = annotations_of(j);
    for (size_t i = 0; i < json_count(list); i++) {
        const char *key = json_key_at(list, i), *text = json_get_string(json_at(list, i));
        if (str_has_prefix(key, SCC_SECCOMP_CONTAINER)) {
            check_profile(j, API_FIELD("%smetadata.annotations[%.160s]", j->path, key),
                          text ? text : "unknown");
        }
    }
}

/* ---- sysctls ---- */

/* The sysctls that Kubernetes calls safe: each affects the pod alone, and uses no memory or
 * processes of other pods. */
static const char *const safe_sysctls[] = {
    "kernel.shm_rmid_forced",           "net.ipv4.ip_local_port_range",
    "net.ipv4.ip_local_reserved_ports", "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.ping_group_range",        "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",     "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_keepalive_time",      "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_syncookies",          "net.ipv4.tcp_wmem",
};

static bool is_safe(const char *name)
{
    bool found = false;
    for (size_t i = 0; i < ARRAY_SIZE(safe_sysctls) && !found; i++) {
        found = streq(safe_sysctls[i], name);
    }
    return found;
}

/* Whether a pattern of the list fits: a name, or the beginning of one before "*". */
static bool fits_pattern(const struct json *patterns, const char *name)
{
    const struct json *item;
    JSON_FOREACH (item, patterns) {
        const char *s = json_get_string(item);
        size_t n = s ? strlen(s) : 0;
        if (n && (s[n - 1] == '*' ? strncmp(s, name, n - 1) == 0 : streq(s, name))) {
            return true;
        }
    }
    return false;
}

static void check_sysctls(const struct judging *j, const char *at)
{
    const struct json *list = json_get(j->context, "sysctls");
    for (size_t i = 0; i < json_count(list); i++) {
        const char *given = json_path_string(json_at(list, i), "name", NULL);
        CLEANUP_FREE char *name = xstrdup(given ? given : "");
        const char *field = API_FIELD("%s.sysctls[%zu]", at, i);
        for (char *s = name; *s; s++) {
            *s = *s == '/' ? '.' : *s; /* Both separate the parts of a name. */
        }
        const char *written = given ? given : ""; /* The kernel takes both forms. */
        if (fits_pattern(j->s->forbidden, name) || fits_pattern(j->s->forbidden, written)) {
            api_forbidden(j->c, field, "sysctl \"%.128s\" is not allowed", written);
        } else if (!is_safe(written) && !fits_pattern(j->s->unsafe, written)) {
            api_forbidden(j->c, field, "unsafe sysctl \"%.128s\" is not allowed", written);
        }
    }
}

/* ---- volumes ---- */

/* The name of a volume's type: that of its field but for three. */
static const char *volume_type(const char *field)
{
    static const struct {
        const char *field, *type;
    } others[] = {{"cephfs", "cephFS"}, {"storageos", "storageOS"}, {"vsphereVolume", "vsphere"}};
    for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
        if (streq(others[i].field, field)) {
            return others[i].type;
        }
    }
    return field;
}

static bool is_namespace_file(const struct json *api)
{
    const struct json *items = json_get(api, "items");
    bool only = json_count(items) > 0;
    for (size_t i = 0; i < json_count(items); i++) {
        only &= streq_null(json_path_string(json_at(items, i), "fieldRef", "fieldPath", NULL),
                           "metadata.namespace");
    }
    return only;
}

/* Whether the projected volume has no more than what comes with a service account: its token, the
 * authority's certificate and the name of the namespace. */
static bool is_of_account(const struct json *projected)
{
    const struct json *sources = json_get(projected, "sources");
    bool only = json_count(sources) > 0;
    for (size_t i = 0; i < json_count(sources) && only; i++) {
        const struct json *source = json_at(sources, i);
        const char *map = json_path_string(source, "configMap", "name", NULL);
        only &= json_is(source, JSON_OBJECT);
        for (size_t k = 0; only && k < json_count(source); k++) {
            const char *key = json_key_at(source, k);
            only &= !scc_is_set(json_at(source, k)) || streq(key, "serviceAccountToken") ||
                    (streq(key, "configMap") && (streq_null(map, "kube-root-ca.crt") ||
                                                 streq_null(map, "openshift-service-ca.crt"))) ||
                    (streq(key, "downwardAPI") && is_namespace_file(json_at(source, k)));
        }
    }
    return only;
}

static bool allows_type(const struct scc *s, const char *type, const struct json *source)
{
    if (streq(type, "hostPath") && !s->host_paths) {
        return false;
    }
    return s->all_volumes || scc_has_word(s->volumes, type) ||
           (streq(type, "projected") && scc_has_word(s->volumes, "secret") &&
            is_of_account(source));
}

static void check_driver(const struct judging *j, const char *at, const struct json *source)
{
    const struct json *driver = json_get(source, "driver"), *item;
    bool found = !json_count(j->s->drivers);
    JSON_FOREACH (item, j->s->drivers) {
        found |= streq_null(json_get_string(driver), json_get_text(item, "driver"));
    }
    if (!found) {
        CLEANUP(json_free) struct json *none = json_string("");
        api_invalid(j->c, API_FIELD("%s.driver", at), driver ? driver : none,
                    "Flexvolume driver is not allowed to be used");
    }
}

/* Each source of a volume is judged, so that none hides behind another one. */
static void check_volume(const struct judging *j, const char *at, const struct json *volume)
{
    size_t sources = 0;
    if (!json_is(volume, JSON_OBJECT)) {
        api_invalid(j->c, at, volume, "must be an object");
        return;
    }
    for (size_t i = 0; i <= json_count(volume); i++) {
        bool end = i == json_count(volume);
        const char *key = end ? "emptyDir" : json_key_at(volume, i);
        const struct json *source = json_at(volume, i);
        if (end ? sources > 0 : streq(key, "name") || !scc_is_set(source)) {
            continue; /* A volume without a source is an emptyDir. */
        }
        sources++;
        const char *type = volume_type(key);
        if (!allows_type(j->s, type, source)) {
            CLEANUP(json_free) struct json *v = json_string(type);
            api_invalid(j->c, at, v, "%.64s volumes are not allowed to be used", type);
        } else if (streq(type, "flexVolume")) {
            check_driver(j, at, source);
        }
    }
}

/* ---- containers ---- */

static void check_user(const struct judging *j, const char *at, const struct json *context)
{
    const struct scc *s = j->s;
    const struct json *user = scc_effective(context, j->context, "runAsUser");
    const struct json *non_root = scc_effective(context, j->context, "runAsNonRoot");
    const char *field = API_FIELD("%s.runAsUser", at);
    const char *root_field = API_FIELD("%s.runAsNonRoot", at);
    int64_t n = 0;
    bool number = !user || json_get_int(user, &n) == 0;
    if (s->user == SCC_ANY_USER) {
        return;
    }
    if (s->user == SCC_NON_ROOT) {
        if (!non_root && !user) {
            api_required(j->c, root_field, "must be true");
        } else if (non_root && !is_true(non_root)) {
            api_invalid(j->c, root_field, non_root, "must be true");
        } else if (user && (!number || n == 0)) {
            api_invalid(j->c, field, user, "running with the root UID is forbidden");
        }
    } else if (!user) {
        api_required(j->c, field, "");
    } else if (!number || n < j->p->users.min || n > j->p->users.max) {
        if (s->user == SCC_ONE_USER) {
            api_invalid(j->c, field, user, "must be: %lld", (long long) j->p->users.min);
        } else {
            api_invalid(j->c, field, user, "must be in the ranges: [%lld, %lld]",
                        (long long) j->p->users.min, (long long) j->p->users.max);
        }
    }
}

static void check_capabilities(const struct judging *j, const char *at, const struct json *context)
{
    const struct scc *s = j->s;
    const struct json *own = json_get(context, "capabilities"), *item;
    const struct json *add = json_get(own, "add"), *drop = json_get(own, "drop");
    if (!scc_is_set(own)) {
        if (json_count(s->default_adds) || json_count(s->drops)) {
            CLEANUP(json_free) struct json *none = json_null();
            api_invalid(j->c, API_FIELD("%s.capabilities", at), none,
                        "required capabilities are not set on the securityContext");
        }
        return;
    }
    if (s->all_adds) {
        return;
    }
    if (scc_is_set(add) && !json_is(add, JSON_ARRAY)) {
        api_invalid(j->c, API_FIELD("%s.capabilities.add", at), add, "must be a list");
    }
    for (size_t i = 0; i < json_count(add); i++) {
        const char *name = json_get_string(json_at(add, i));
        if (!name || (!scc_has_word(s->adds, name) && !scc_has_word(s->default_adds, name))) {
            api_invalid(j->c, API_FIELD("%s.capabilities.add[%zu]", at, i), json_at(add, i),
                        "capability may not be added");
        }
    }
    JSON_FOREACH (item, s->drops) {
        const char *name = json_get_string(item);
        if (name && !scc_has_word(drop, name) && !scc_has_word(drop, "ALL")) {
            CLEANUP(json_free) struct json *none = json_null();
            api_invalid(j->c, API_FIELD("%s.capabilities.drop", at), drop ? drop : none,
                        "%s is required to be dropped but was not found", name);
        }
    }
}

static void check_switches(const struct judging *j, const char *at, const struct json *context)
{
    const struct scc *s = j->s;
    const struct json *privileged = json_get(context, "privileged");
    const struct json *root = json_get(context, "readOnlyRootFilesystem");
    const struct json *escalation = json_get(context, "allowPrivilegeEscalation");
    CLEANUP(json_free) struct json *none = json_null();
    if (!s->privileged && !is_false(privileged)) {
        api_invalid(j->c, API_FIELD("%s.privileged", at), privileged,
                    "Privileged containers are not allowed");
    }
    if (s->read_only_root && !is_true(root)) {
        api_invalid(j->c, API_FIELD("%s.readOnlyRootFilesystem", at), root ? root : none,
                    scc_is_set(root)
                        ? "ReadOnlyRootFilesystem must be set to true"
                        : "ReadOnlyRootFilesystem may not be nil and must be set to true");
    }
    if (!s->escalation && (!scc_is_set(escalation) || !is_false(escalation))) {
        api_invalid(j->c, API_FIELD("%s.allowPrivilegeEscalation", at),
                    escalation ? escalation : none,
                    "Allowing privilege escalation for containers is not allowed");
    }
}

static void check_ports(const struct judging *j, const char *at, const struct json *ports)
{
    for (size_t i = 0; i < json_count(ports) && !j->s->host_ports; i++) {
        const struct json *port = json_get(json_at(ports, i), "hostPort");
        int64_t n;
        if (scc_is_set(port) && (json_get_int(port, &n) < 0 || n != 0)) {
            api_invalid(j->c, API_FIELD("%s.ports[%zu].hostPort", at, i), port,
                        "Host ports are not allowed to be used");
        }
    }
}

static void check_container(const struct judging *j, const char *at, const struct json *ct)
{
    const struct json *context = json_get(ct, "securityContext");
    const struct json *profile = json_get(context, "seccompProfile");
    const char *own = API_FIELD("%s.securityContext", at);
    check_ports(j, at, json_get(ct, "ports"));
    if (!has_context(j->c, own, context)) {
        return;
    }
    check_switches(j, own, context);
    check_user(j, own, context);
    if (scc_is_set(json_get(context, "seLinuxOptions"))) {
        check_labels(j, own, json_get(context, "seLinuxOptions"));
    }
    check_capabilities(j, own, context);
    if (scc_is_set(profile)) {
        check_profile_field(j, own, profile);
    }
}

void scc_check(const struct scc_provider *p, const struct json *pod, const char *path,
               struct api_causes *c)
{
    struct judging j = {.p = p, .s = p->scc, .path = path, .pod = pod, .c = c};
    j.spec = json_get(pod, "spec");
    j.context = json_get(j.spec, "securityContext");
    const struct json *volumes = json_get(j.spec, "volumes");
    const char *at = API_FIELD("%sspec.securityContext", path);
    check_host(&j);
    if (has_context(c, at, j.context)) {
        check_labels(&j, at, json_get(j.context, "seLinuxOptions"));
        check_groups(&j, at);
        check_pod_profile(&j, at);
        check_sysctls(&j, at);
    }
    check_container_profiles(&j);
    for (size_t k = 0; scc_lists[k]; k++) {
        const struct json *list = json_get(j.spec, scc_lists[k]);
        for (size_t i = 0; i < json_count(list); i++) {
            check_container(&j, API_FIELD("%sspec.%s[%zu]", path, scc_lists[k], i),
                            json_at(list, i));
        }
    }
    for (size_t i = 0; i < json_count(volumes); i++) {
        check_volume(&j, API_FIELD("%sspec.volumes[%zu]", path, i), json_at(volumes, i));
    }
}
