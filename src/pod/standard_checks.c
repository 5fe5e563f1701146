/* SPDX-License-Identifier: Apache-2.0 */
/* The checks of the Pod Security Standards, and their table.  A setting of a wrong type counts as
 * the forbidden value; such a pod is refused by validation in any case. */
#include "base/mem.h"
#include "pod/pod.h"
#include "pod/standard.h"

#include <stdlib.h>

/* ---- texts ---- */

/* Owned texts, in the order in which they came. */
struct names {
    char **list;
    size_t n, cap;
};

static void names_done(struct names *s)
{
    for (size_t i = 0; i < s->n; i++) {
        free(s->list[i]);
    }
    free(s->list);
}

static void names_donep(struct names *s)
{
    names_done(s);
}
#define CLEANUP_NAMES __attribute__((cleanup(names_donep)))

/* The text is taken over. */
static void names_take(struct names *s, char *text)
{
    s->list = grow(s->list, &s->cap, s->n + 1, sizeof *s->list);
    s->list[s->n++] = text;
}

static void names_add(struct names *s, const char *text)
{
    names_take(s, xstrdup(text));
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *) a, *(char *const *) b);
}

/* Sorts the texts, and drops the second of two that are equal. */
static void names_sort(struct names *s)
{
    size_t kept = 0;
    if (s->n) {
        qsort(s->list, s->n, sizeof *s->list, by_bytes);
    }
    for (size_t i = 0; i < s->n; i++) {
        if (kept && streq(s->list[kept - 1], s->list[i])) {
            free(s->list[i]);
        } else {
            s->list[kept++] = s->list[i];
        }
    }
    s->n = kept;
}

/* Appends 'a, b', or '"a", "b"' with 'quote' a quotation mark. */
static void add_joined(struct strbuf *out, const struct names *s, const char *quote)
{
    for (size_t i = 0; i < s->n; i++) {
        strbuf_addf(out, "%s%s%s%s", i ? ", " : "", quote, s->list[i], quote);
    }
}

/* Appends 'container "a"' or 'containers "a", "b"'. */
static void add_list(struct strbuf *out, const char *singular, const char *plural,
                     const struct names *s)
{
    strbuf_addf(out, "%s ", s->n == 1 ? singular : plural);
    add_joined(out, s, "\"");
}

static void add_containers(struct strbuf *out, const struct names *containers)
{
    add_list(out, "container", "containers", containers);
}

/* Appends 'pod and container "a"', the places that have a forbidden value. */
static void add_setters(struct strbuf *out, bool pod, const struct names *containers)
{
    strbuf_adds(out, pod ? containers->n ? "pod and " : "pod" : "");
    if (containers->n) {
        add_containers(out, containers);
    }
}

/* 's' in quotation marks as Go's %q writes it; owned. */
static char *go_quoted(const char *s)
{
    static const char plain[] = "\a\b\f\n\r\t\v\\\"", letters[] = "abfnrtv\\\"";
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    strbuf_addc(&b, '"');
    for (; *s; s++) {
        const char *special = strchr(plain, *s);
        if (special) {
            strbuf_addf(&b, "\\%c", letters[special - plain]);
        } else if ((unsigned char) *s < 0x20 || *s == 0x7f) {
            strbuf_addf(&b, "\\x%02x", (unsigned) *s);
        } else {
            strbuf_addc(&b, *s);
        }
    }
    strbuf_addc(&b, '"');
    return strbuf_steal(&b);
}

/* ---- values ---- */

static bool is_set(const struct json *v)
{
    return v && !json_is(v, JSON_NULL);
}

static bool is_false(const struct json *v)
{
    return json_is(v, JSON_BOOL) && !json_get_bool(v, true);
}

/* Whether a flag is set that is false when it is absent. */
static bool is_on(const struct json *v)
{
    return is_set(v) && !is_false(v);
}

static const char *text_of(const struct json *v)
{
    const char *s = json_get_string(v);
    return s ? s : "";
}

static bool is_one_of(const char *s, const char *const *words)
{
    while (*words && !streq(*words, s)) {
        words++;
    }
    return *words != NULL;
}

static const struct json *pod_context(const struct json *pod)
{
    return json_path(pod, "spec", "securityContext", NULL);
}

/* The i-th container with its security context (NULL: none); NULL: there are no more. */
static const struct json *container_at(const struct json *pod, size_t i,
                                       const struct json **ret_context)
{
    enum pod_container_kind kind;
    const struct json *c = i < pod_count_containers(pod) ? pod_container_at(pod, i, &kind) : NULL;
    *ret_context = json_get(c, "securityContext");
    return c;
}

static const char *name_of(const struct json *c)
{
    return json_get_text(c, "name");
}

/* Whether the pod says that it is for Windows, whose containers have none of Linux's settings:
 * validation refuses them there. */
static bool is_windows(const struct json *pod)
{
    return streq(text_of(json_path(pod, "spec", "os", "name", NULL)), "windows");
}

/* ---- baseline ---- */

#define APPARMOR_NOTE "container.apparmor.security.beta.kubernetes.io/"
#define SECCOMP_NOTE_POD "seccomp.security.alpha.kubernetes.io/pod"
#define SECCOMP_NOTE "container.seccomp.security.alpha.kubernetes.io/"

static const char *const good_profiles[] = {"RuntimeDefault", "Localhost", NULL};

/* Whether the security context has a profile of this kind with a forbidden type, which is added to
 * 'types'. */
static bool has_bad_profile(const struct json *context, const char *kind, struct names *types)
{
    const struct json *profile = json_get(context, kind);
    const char *type = json_get_text(profile, "type");
    if (!is_set(profile) || is_one_of(type, good_profiles)) {
        return false;
    }
    names_add(types, type);
    return true;
}

static bool is_good_apparmor_note(const char *profile)
{
    return !*profile || streq(profile, "runtime/default") || str_has_prefix(profile, "localhost/");
}

static const char *check_apparmor(const struct json *pod, struct strbuf *detail)
{
    CLEANUP_NAMES struct names containers = {0}, types = {0}, set = {0};
    const struct json *notes = json_path(pod, "metadata", "annotations", NULL), *c, *context;
    bool bad_pod = has_bad_profile(pod_context(pod), "appArmorProfile", &types);
    for (size_t i = 0; (c = container_at(pod, i, &context)); i++) {
        if (has_bad_profile(context, "appArmorProfile", &types)) {
            names_add(&containers, name_of(c));
        }
    }
    for (size_t i = 0; i < json_count(notes); i++) {
        const char *key = json_key_at(notes, i), *value = text_of(json_at(notes, i));
        if (key && str_has_prefix(key, APPARMOR_NOTE) && !is_good_apparmor_note(value)) {
            CLEANUP_FREE char *shown = go_quoted(value);
            names_take(&set, xasprintf("%s=%s", key, shown));
        }
    }
    if (!bad_pod && !containers.n && !set.n) {
        return NULL;
    }
    names_sort(&types);
    names_sort(&set);
    add_setters(detail, bad_pod, &containers);
    if (set.n) {
        strbuf_addf(detail, "%s%s", bad_pod || containers.n ? " and " : "",
                    set.n == 1 ? "annotation" : "annotations");
    }
    for (size_t i = 0; i < set.n; i++) {
        names_add(&types, set.list[i]); /* They follow the sorted types. */
    }
    strbuf_adds(detail, " must not set AppArmor profile type to ");
    add_joined(detail, &types, "\"");
    return types.n == 1 ? "forbidden AppArmor profile" : "forbidden AppArmor profiles";
}

/* Adds the capabilities that the container adds and that are not in 'allowed'; returns whether
 * there are any. */
static bool adds_capabilities(const struct json *context, const char *const *allowed,
                              struct names *bad)
{
    const struct json *list = json_path(context, "capabilities", "add", NULL), *v;
    size_t before = bad->n;
    JSON_FOREACH (v, list) {
        if (!is_one_of(text_of(v), allowed)) {
            names_add(bad, text_of(v));
        }
    }
    return bad->n > before;
}

/* Appends which containers add which capabilities. */
static void add_capabilities(struct strbuf *detail, const struct names *containers,
                             struct names *bad)
{
    names_sort(bad);
    add_containers(detail, containers);
    strbuf_adds(detail, " must not include ");
    add_joined(detail, bad, "\"");
    strbuf_adds(detail, " in securityContext.capabilities.add");
}

static const char *check_capabilities_baseline(const struct json *pod, struct strbuf *detail)
{
    static const char *const allowed[] = {
        "AUDIT_WRITE",      "CHOWN",   "DAC_OVERRIDE", "FOWNER",  "FSETID", "KILL",       "MKNOD",
        "NET_BIND_SERVICE", "SETFCAP", "SETGID",       "SETPCAP", "SETUID", "SYS_CHROOT", NULL};
    CLEANUP_NAMES struct names containers = {0}, bad = {0};
    const struct json *c, *context;
    for (size_t i = 0; (c = container_at(pod, i, &context)); i++) {
        if (adds_capabilities(context, allowed, &bad)) {
            names_add(&containers, name_of(c));
        }
    }
    if (!containers.n) {
        return NULL;
    }
    add_capabilities(detail, &containers, &bad);
    return "non-default capabilities";
}

static const char *check_host_namespaces(const struct json *pod, struct strbuf *detail)
{
    static const char *const fields[] = {"hostNetwork", "hostPID", "hostIPC"};
    CLEANUP_NAMES struct names bad = {0};
    for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
        if (is_on(json_path(pod, "spec", fields[i], NULL))) {
            names_take(&bad, xasprintf("%s=true", fields[i]));
        }
    }
    add_joined(detail, &bad, "");
    return bad.n ? "host namespaces" : NULL;
}

static const char *check_host_paths(const struct json *pod, struct strbuf *detail)
{
    CLEANUP_NAMES struct names bad = {0};
    const struct json *v;
    JSON_FOREACH (v, json_path(pod, "spec", "volumes", NULL)) {
        if (is_set(json_get(v, "hostPath"))) {
            names_add(&bad, name_of(v));
        }
    }
    if (!bad.n) {
        return NULL;
    }
    add_list(detail, "volume", "volumes", &bad);
    return "hostPath volumes";
}

/* Adds the host ports of the container; returns whether there are any. */
static bool has_host_ports(const struct json *c, struct names *bad)
{
    size_t before = bad->n;
    const struct json *v;
    JSON_FOREACH (v, json_get(c, "ports")) {
        const struct json *port = json_get(v, "hostPort");
        if (is_set(port) && json_get_int_or(port, -1) != 0) {
            names_take(bad, json_to_text(port));
        }
    }
    return bad->n > before;
}

static const char *check_host_ports(const struct json *pod, struct strbuf *detail)
{
    CLEANUP_NAMES struct names containers = {0}, bad = {0};
    const struct json *c, *context;
    for (size_t i = 0; (c = container_at(pod, i, &context)); i++) {
        if (has_host_ports(c, &bad)) {
            names_add(&containers, name_of(c));
        }
    }
    if (!containers.n) {
        return NULL;
    }
    names_sort(&bad);
    add_containers(detail, &containers);
    strbuf_addf(detail, " %s %s ", containers.n == 1 ? "uses" : "use",
                bad.n == 1 ? "hostPort" : "hostPorts");
    add_joined(detail, &bad, "");
    return "hostPort";
}

static const char *check_privileged(const struct json *pod, struct strbuf *detail)
{
    CLEANUP_NAMES struct names containers = {0};
    const struct json *c, *context;
    for (size_t i = 0; (c = container_at(pod, i, &context)); i++) {
        if (is_on(json_get(context, "privileged"))) {
            names_add(&containers, name_of(c));
        }
    }
    if (!containers.n) {
        return NULL;
    }
    add_containers(detail, &containers);
    strbuf_adds(detail, " must not set securityContext.privileged=true");
    return "privileged";
}

static const char *check_proc_mount(const struct json *pod, struct strbuf *detail)
{
    CLEANUP_NAMES struct names containers = {0}, bad = {0};
    const struct json *c, *context;
    for (size_t i = 0; (c = container_at(pod, i, &context)); i++) {
        const struct json *v = json_get(context, "procMount");
        if (is_set(v) && !streq(text_of(v), "Default")) {
            names_add(&containers, name_of(c));
            names_add(&bad, text_of(v));
        }
    }
    if (!containers.n) {
        return NULL;
    }
    names_sort(&bad);
    add_containers(detail, &containers);
    strbuf_adds(detail, " must not set securityContext.procMount to ");
    add_joined(detail, &bad, "\"");
    return "procMount";
}

/* The forbidden SELinux options of a pod and its containers. */
struct selinux {
    struct names types;
    bool user, role;
};

static bool has_bad_label(const struct json *context, const char *const *allowed,
                          struct selinux *bad)
{
    const struct json *v = json_get(context, "seLinuxOptions");
    const char *type = json_get_text(v, "type");
    bool bad_type = !is_one_of(type, allowed);
    bool user = *json_get_text(v, "user"), role = *json_get_text(v, "role");
    if (bad_type) {
        names_add(&bad->types, type);
    }
    bad->user |= user;
    bad->role |= role;
    return bad_type || user || role;
}

static const char *check_selinux(const struct json *pod, const char *const *allowed,
                                 struct strbuf *detail)
{
    CLEANUP_NAMES struct names containers = {0};
    struct selinux bad = {0};
    const struct json *c, *context;
    bool bad_pod = has_bad_label(pod_context(pod), allowed, &bad);
    for (size_t i = 0; (c = container_at(pod, i, &context)); i++) {
        if (has_bad_label(context, allowed, &bad)) {
            names_add(&containers, name_of(c));
        }
    }
    if (bad_pod || containers.n) {
        const char *sep = "";
        add_setters(detail, bad_pod, &containers);
        strbuf_adds(detail, " set forbidden securityContext.seLinuxOptions: ");
        if (bad.types.n) {
            names_sort(&bad.types);
            add_list(detail, "type", "types", &bad.types);
            sep = "; ";
        }
        if (bad.user) {
            strbuf_addf(detail, "%suser may not be set", sep);
            sep = "; ";
        }
        strbuf_addf(detail, "%s%s", bad.role ? sep : "", bad.role ? "role may not be set" : "");
    }
    names_done(&bad.types);
    return bad_pod || containers.n ? "seLinuxOptions" : NULL;
}

static const char *check_selinux_0(const struct json *pod, struct strbuf *detail)
{
    static const char *const types[] = {"", "container_t", "container_init_t", "container_kvm_t",
                                        NULL};
    return check_selinux(pod, types, detail);
}

static const char *check_selinux_31(const struct json *pod, struct strbuf *detail)
{
    static const char *const types[] = {
        "", "container_t", "container_init_t", "container_kvm_t", "container_engine_t", NULL};
    return check_selinux(pod, types, detail);
}

/* Adds 'key="value"' if the annotation is there with a forbidden profile. */
static void judge_seccomp_note(const struct json *notes, const char *key, struct names *bad)
{
    const struct json *v = json_get(notes, key);
    const char *s = text_of(v);
    if (v && !streq(s, "runtime/default") && !streq(s, "docker/default") &&
        !str_has_prefix(s, "localhost/")) {
        CLEANUP_FREE char *shown = go_quoted(s);
        names_take(bad, xasprintf("%s=%s", key, shown));
    }
}

static const char *check_seccomp_notes(const struct json *pod, struct strbuf *detail)
{
    CLEANUP_NAMES struct names bad = {0};
    const struct json *notes = json_path(pod, "metadata", "annotations", NULL), *c, *context;
    judge_seccomp_note(notes, SECCOMP_NOTE_POD, &bad);
    for (size_t i = 0; (c = container_at(pod, i, &context)); i++) {
        CLEANUP_FREE char *key = xasprintf(SECCOMP_NOTE "%s", name_of(c));
        judge_seccomp_note(notes, key, &bad);
    }
    if (!bad.n) {
        return NULL;
    }
    names_sort(&bad);
    strbuf_addf(detail, "forbidden %s ", bad.n == 1 ? "annotation" : "annotations");
    add_joined(detail, &bad, "");
    return "seccompProfile";
}

/* 'required': each container needs a profile, its own or the pod's. */
static const char *check_seccomp(const struct json *pod, bool required, struct strbuf *detail)
{
    CLEANUP_NAMES struct names bad = {0}, without = {0}, types = {0};
    const struct json *c, *context;
    bool bad_pod = has_bad_profile(pod_context(pod), "seccompProfile", &types);
    bool pod_has = !bad_pod && is_set(json_get(pod_context(pod), "seccompProfile"));
    for (size_t i = 0; (c = container_at(pod, i, &context)); i++) {
        if (has_bad_profile(context, "seccompProfile", &types)) {
            names_add(&bad, name_of(c));
        } else if (!pod_has && !is_set(json_get(context, "seccompProfile"))) {
            names_add(&without, name_of(c));
        }
    }
    if (bad_pod || bad.n) {
        names_sort(&types);
        add_setters(detail, bad_pod, &bad);
        strbuf_adds(detail, " must not set securityContext.seccompProfile.type to ");
        add_joined(detail, &types, "\"");
        return "seccompProfile";
    }
    if (required && without.n) {
        strbuf_adds(detail, "pod or ");
        add_containers(detail, &without);
        strbuf_adds(detail, " must set securityContext.seccompProfile.type to \"RuntimeDefault\" "
                            "or \"Localhost\"");
        return "seccompProfile";
    }
    return NULL;
}

static const char *check_seccomp_baseline(const struct json *pod, struct strbuf *detail)
{
    return check_seccomp(pod, false, detail);
}

/* The sysctls that Kubernetes calls safe, and the version of the standards since which each is. */
static const struct {
    const char *name;
    uint64_t since;
} safe_sysctls[] = {
    {"kernel.shm_rmid_forced", 0},
    {"net.ipv4.ip_local_port_range", 0},
    {"net.ipv4.tcp_syncookies", 0},
    {"net.ipv4.ping_group_range", 0},
    {"net.ipv4.ip_unprivileged_port_start", 0},
    {"net.ipv4.ip_local_reserved_ports", 27},
    {"net.ipv4.tcp_keepalive_time", 29},
    {"net.ipv4.tcp_fin_timeout", 29},
    {"net.ipv4.tcp_keepalive_intvl", 29},
    {"net.ipv4.tcp_keepalive_probes", 29},
    {"net.ipv4.tcp_rmem", 32},
    {"net.ipv4.tcp_wmem", 32},
};

static bool is_safe_sysctl(const char *name, uint64_t minor)
{
    bool safe = false;
    for (size_t i = 0; i < ARRAY_SIZE(safe_sysctls); i++) {
        safe |= safe_sysctls[i].since <= minor && streq(safe_sysctls[i].name, name);
    }
    return safe;
}

static const char *check_sysctls(const struct json *pod, uint64_t minor, struct strbuf *detail)
{
    CLEANUP_NAMES struct names bad = {0};
    const struct json *v;
    JSON_FOREACH (v, json_get(pod_context(pod), "sysctls")) {
        if (!is_safe_sysctl(name_of(v), minor)) {
            names_add(&bad, name_of(v));
        }
    }
    add_joined(detail, &bad, "");
    return bad.n ? "forbidden sysctls" : NULL;
}

static const char *check_sysctls_0(const struct json *pod, struct strbuf *detail)
{
    return check_sysctls(pod, 0, detail);
}

static const char *check_sysctls_27(const struct json *pod, struct strbuf *detail)
{
    return check_sysctls(pod, 27, detail);
}

static const char *check_sysctls_29(const struct json *pod, struct strbuf *detail)
{
    return check_sysctls(pod, 29, detail);
}

static const char *check_sysctls_32(const struct json *pod, struct strbuf *detail)
{
    return check_sysctls(pod, 32, detail);
}

static const char *check_host_process(const struct json *pod, struct strbuf *detail)
{
    CLEANUP_NAMES struct names containers = {0};
    const struct json *c, *context;
    bool bad_pod = is_on(json_path(pod_context(pod), "windowsOptions", "hostProcess", NULL));
    for (size_t i = 0; (c = container_at(pod, i, &context)); i++) {
        if (is_on(json_path(context, "windowsOptions", "hostProcess", NULL))) {
            names_add(&containers, name_of(c));
        }
    }
    if (!bad_pod && !containers.n) {
        return NULL;
    }
    add_setters(detail, bad_pod, &containers);
    strbuf_adds(detail, " must not set securityContext.windowsOptions.hostProcess=true");
    return "hostProcess";
}

/* ---- restricted ---- */

static const char *check_escalation_8(const struct json *pod, struct strbuf *detail)
{
    CLEANUP_NAMES struct names containers = {0};
    const struct json *c, *context;
    for (size_t i = 0; (c = container_at(pod, i, &context)); i++) {
        if (!is_false(json_get(context, "allowPrivilegeEscalation"))) {
            names_add(&containers, name_of(c));
        }
    }
    if (!containers.n) {
        return NULL;
    }
    add_containers(detail, &containers);
    strbuf_adds(detail, " must set securityContext.allowPrivilegeEscalation=false");
    return "allowPrivilegeEscalation != false";
}

static const char *check_escalation_25(const struct json *pod, struct strbuf *detail)
{
    return is_windows(pod) ? NULL : check_escalation_8(pod, detail);
}

static bool drops_all(const struct json *context)
{
    const struct json *v;
    bool found = false;
    JSON_FOREACH (v, json_path(context, "capabilities", "drop", NULL)) {
        found |= streq(text_of(v), "ALL");
    }
    return found;
}

static const char *check_capabilities_22(const struct json *pod, struct strbuf *detail)
{
    static const char *const allowed[] = {"NET_BIND_SERVICE", NULL};
    CLEANUP_NAMES struct names keeping = {0}, adding = {0}, bad = {0};
    const struct json *c, *context;
    for (size_t i = 0; (c = container_at(pod, i, &context)); i++) {
        if (!drops_all(context)) {
            names_add(&keeping, name_of(c));
        }
        if (adds_capabilities(context, allowed, &bad)) {
            names_add(&adding, name_of(c));
        }
    }
    if (keeping.n) {
        add_containers(detail, &keeping);
        strbuf_adds(detail, " must set securityContext.capabilities.drop=[\"ALL\"]");
    }
    if (adding.n) {
        strbuf_adds(detail, keeping.n ? "; " : "");
        add_capabilities(detail, &adding, &bad);
    }
    return keeping.n || adding.n ? "unrestricted capabilities" : NULL;
}

static const char *check_capabilities_25(const struct json *pod, struct strbuf *detail)
{
    return is_windows(pod) ? NULL : check_capabilities_22(pod, detail);
}

/* The type of a volume that restricted does not have; NULL: it may have this volume. */
static const char *bad_volume_type(const struct json *volume)
{
    static const char *const allowed[] = {"configMap", "csi",       "downwardAPI",
                                          "emptyDir",  "ephemeral", "persistentVolumeClaim",
                                          "projected", "secret"};
    static const char *const known[] = {"hostPath",
                                        "gcePersistentDisk",
                                        "awsElasticBlockStore",
                                        "gitRepo",
                                        "nfs",
                                        "iscsi",
                                        "glusterfs",
                                        "rbd",
                                        "flexVolume",
                                        "cinder",
                                        "cephfs",
                                        "flocker",
                                        "fc",
                                        "azureFile",
                                        "vsphereVolume",
                                        "quobyte",
                                        "azureDisk",
                                        "photonPersistentDisk",
                                        "portworxVolume",
                                        "scaleIO",
                                        "storageos"};
    for (size_t i = 0; i < ARRAY_SIZE(allowed); i++) {
        if (is_set(json_get(volume, allowed[i]))) {
            return NULL;
        }
    }
    for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
        if (is_set(json_get(volume, known[i]))) {
            return known[i];
        }
    }
    return "unknown";
}

static const char *check_volumes(const struct json *pod, struct strbuf *detail)
{
    CLEANUP_NAMES struct names bad = {0}, types = {0};
    const struct json *v;
    JSON_FOREACH (v, json_path(pod, "spec", "volumes", NULL)) {
        const char *type = bad_volume_type(v);
        if (type) {
            names_add(&bad, name_of(v));
            names_add(&types, type);
        }
    }
    if (!bad.n) {
        return NULL;
    }
    names_sort(&types);
    add_list(detail, "volume", "volumes", &bad);
    strbuf_adds(detail, bad.n == 1 ? " uses " : " use ");
    add_list(detail, "restricted volume type", "restricted volume types", &types);
    return "restricted volume types";
}

static const char *check_non_root(const struct json *pod, struct strbuf *detail)
{
    CLEANUP_NAMES struct names bad = {0}, without = {0};
    const struct json *c, *context, *of_pod = json_get(pod_context(pod), "runAsNonRoot");
    bool pod_has = json_get_bool(of_pod, false), bad_pod = is_set(of_pod) && !pod_has;
    for (size_t i = 0; (c = container_at(pod, i, &context)); i++) {
        const struct json *own = json_get(context, "runAsNonRoot");
        if (is_set(own) && !json_get_bool(own, false)) {
            names_add(&bad, name_of(c));
        } else if (!is_set(own) && !pod_has) {
            names_add(&without, name_of(c));
        }
    }
    if (bad_pod || bad.n) {
        add_setters(detail, bad_pod, &bad);
        strbuf_adds(detail, " must not set securityContext.runAsNonRoot=false");
    } else if (without.n) {
        strbuf_adds(detail, "pod or ");
        add_containers(detail, &without);
        strbuf_adds(detail, " must set securityContext.runAsNonRoot=true");
    }
    return bad_pod || bad.n || without.n ? "runAsNonRoot != true" : NULL;
}

static bool is_root(const struct json *context)
{
    const struct json *v = json_get(context, "runAsUser");
    return is_set(v) && json_get_int_or(v, 0) == 0;
}

static const char *check_user(const struct json *pod, struct strbuf *detail)
{
    CLEANUP_NAMES struct names containers = {0};
    const struct json *c, *context;
    bool bad_pod = is_root(pod_context(pod));
    for (size_t i = 0; (c = container_at(pod, i, &context)); i++) {
        if (is_root(context)) {
            names_add(&containers, name_of(c));
        }
    }
    if (!bad_pod && !containers.n) {
        return NULL;
    }
    add_setters(detail, bad_pod, &containers);
    strbuf_adds(detail, " must not set runAsUser=0");
    return "runAsUser=0";
}

static const char *check_seccomp_19(const struct json *pod, struct strbuf *detail)
{
    return check_seccomp(pod, true, detail);
}

static const char *check_seccomp_25(const struct json *pod, struct strbuf *detail)
{
    return is_windows(pod) ? NULL : check_seccomp_19(pod, detail);
}

/* ---- the table ---- */

#define CAPABILITIES "capabilities_baseline"
#define HOST_PATHS "hostPathVolumes"
#define SECCOMP "seccompProfile_baseline"

static const struct pod_check checks[] = {
    {"appArmorProfile", POD_BASELINE, 0, check_apparmor, NULL},
    {CAPABILITIES, POD_BASELINE, 0, check_capabilities_baseline, NULL},
    {"hostNamespaces", POD_BASELINE, 0, check_host_namespaces, NULL},
    {HOST_PATHS, POD_BASELINE, 0, check_host_paths, NULL},
    {"hostPorts", POD_BASELINE, 0, check_host_ports, NULL},
    {"privileged", POD_BASELINE, 0, check_privileged, NULL},
    {"procMount", POD_BASELINE, 0, check_proc_mount, NULL},
    {"seLinuxOptions", POD_BASELINE, 0, check_selinux_0, NULL},
    {"seLinuxOptions", POD_BASELINE, 31, check_selinux_31, NULL},
    {SECCOMP, POD_BASELINE, 0, check_seccomp_notes, NULL},
    {SECCOMP, POD_BASELINE, 19, check_seccomp_baseline, NULL},
    {"sysctls", POD_BASELINE, 0, check_sysctls_0, NULL},
    {"sysctls", POD_BASELINE, 27, check_sysctls_27, NULL},
    {"sysctls", POD_BASELINE, 29, check_sysctls_29, NULL},
    {"sysctls", POD_BASELINE, 32, check_sysctls_32, NULL},
    {"windowsHostProcess", POD_BASELINE, 0, check_host_process, NULL},
    {"allowPrivilegeEscalation", POD_RESTRICTED, 8, check_escalation_8, NULL},
    {"allowPrivilegeEscalation", POD_RESTRICTED, 25, check_escalation_25, NULL},
    {"capabilities_restricted", POD_RESTRICTED, 22, check_capabilities_22, CAPABILITIES},
    {"capabilities_restricted", POD_RESTRICTED, 25, check_capabilities_25, CAPABILITIES},
    {"restrictedVolumes", POD_RESTRICTED, 0, check_volumes, HOST_PATHS},
    {"runAsNonRoot", POD_RESTRICTED, 0, check_non_root, NULL},
    {"runAsUser", POD_RESTRICTED, 23, check_user, NULL},
    {"seccompProfile_restricted", POD_RESTRICTED, 19, check_seccomp_19, SECCOMP},
    {"seccompProfile_restricted", POD_RESTRICTED, 25, check_seccomp_25, SECCOMP},
};

const struct pod_check *pod_check_at(size_t i)
{
    return i < ARRAY_SIZE(checks) ? &checks[i] : NULL;
}
