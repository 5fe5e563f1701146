/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/security.h"

#include "base/str.h"
#include "pod/pod.h"

static const char *const masked[] = {
    "/proc/asound",     "/proc/acpi",        "/proc/interrupts",
    "/proc/kcore",      "/proc/keys",        "/proc/latency_stats",
    "/proc/timer_list", "/proc/timer_stats", "/proc/sched_debug",
    "/proc/scsi",       "/sys/firmware",     "/sys/devices/virtual/powercap"};
static const char *const read_only[] = {"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys",
                                        "/proc/sysrq-trigger"};
/* Sysctls that no pod can harm others with (pkg/kubelet/sysctl/safe_sysctls.go). */
static const char *const safe_sysctls[] = {"kernel.shm_rmid_forced",
                                           "net.ipv4.ip_local_port_range",
                                           "net.ipv4.tcp_syncookies",
                                           "net.ipv4.ping_group_range",
                                           "net.ipv4.ip_unprivileged_port_start",
                                           "net.ipv4.ip_local_reserved_ports",
                                           "net.ipv4.tcp_keepalive_time",
                                           "net.ipv4.tcp_fin_timeout",
                                           "net.ipv4.tcp_keepalive_intvl",
                                           "net.ipv4.tcp_keepalive_probes",
                                           "net.ipv4.tcp_rmem",
                                           "net.ipv4.tcp_wmem"};

static const struct json *pod_setting(const struct json *pod, const char *key)
{
    return json_path(pod, "spec", "securityContext", key, NULL);
}

/* A setting of the container, or else of the pod; 'container' may be NULL. */
static const struct json *setting(const struct json *pod, const struct json *container,
                                  const char *key)
{
    const struct json *own = json_path(container, "securityContext", key, NULL);
    return own && !json_is(own, JSON_NULL) ? own : pod_setting(pod, key);
}

/* ---- namespaces ---- */

static void set_namespaces(const struct json *pod, const struct json *container,
                           const char *target_id, struct runtime_namespaces *ret)
{
    const struct json *spec = json_get(pod, "spec");
    bool shared = json_get_bool(json_get(spec, "shareProcessNamespace"), false);
    bool host_pid = json_get_bool(json_get(spec, "hostPID"), false);
    bool host_ipc = json_get_bool(json_get(spec, "hostIPC"), false);
    ret->network = pod_uses_host_network(pod) ? RUNTIME_NS_NODE : RUNTIME_NS_POD;
    ret->ipc = host_ipc ? RUNTIME_NS_NODE : RUNTIME_NS_POD;
    ret->pid = host_pid ? RUNTIME_NS_NODE : shared ? RUNTIME_NS_POD : RUNTIME_NS_CONTAINER;
    if (container && target_id && ret->pid == RUNTIME_NS_CONTAINER) {
        ret->pid = RUNTIME_NS_TARGET;
        ret->target_id = target_id;
    }
}

/* ---- profiles ---- */

/* A path below a directory that cannot leave it. */
static bool is_below(const char *path)
{
    const char *p = path;
    if (!*p || *p == '/') {
        return false;
    }
    while (*p) {
        size_t n = strcspn(p, "/");
        if (n == 2 && p[0] == '.' && p[1] == '.') {
            return false;
        }
        p += n + (p[n] == '/');
    }
    return true;
}

static int set_profile(const struct json *profile, const char *what, const char *dir,
                       struct arena *a, struct runtime_profile *ret, struct err *e)
{
    const char *type = json_get_text(profile, "type");
    const char *file = json_get_text(profile, "localhostProfile");
    if (!profile || json_is(profile, JSON_NULL)) {
        return 0;
    }
    ret->given = true;
    if (streq(type, "RuntimeDefault")) {
        ret->type = RUNTIME_PROFILE_DEFAULT;
    } else if (streq(type, "Unconfined")) {
        ret->type = RUNTIME_PROFILE_UNCONFINED;
    } else if (streq(type, "Localhost") && dir && is_below(file)) {
        ret->type = RUNTIME_PROFILE_LOCALHOST;
        ret->localhost = arena_printf(a, "%s/%s", dir, file);
    } else if (streq(type, "Localhost") && !dir && *file) {
        ret->type = RUNTIME_PROFILE_LOCALHOST;
        ret->localhost = file;
    } else if (streq(type, "Localhost")) {
        return err_set(e, -EINVAL,
                       "%s.localhostProfile: \"%s\" is not a path below the node's "
                       "directory of profiles",
                       what, file);
    } else {
        return err_set(e, -EINVAL, "%s.type: \"%s\" is not supported", what, type);
    }
    return 0;
}

static int set_profiles(const struct json *pod, const struct json *container,
                        const struct pod_security_config *conf, struct arena *a,
                        struct runtime_security *ret, struct err *e)
{
    int r = set_profile(setting(pod, container, "seccompProfile"), "seccompProfile",
                        conf->seccomp_dir, a, &ret->seccomp, e);
    if (r == 0) {
        r = set_profile(setting(pod, container, "appArmorProfile"), "appArmorProfile", NULL, a,
                        &ret->apparmor, e);
    }
    if (r == 0 && !ret->seccomp.given) {
        /* As in Kubernetes without the option seccompDefault. */
        ret->seccomp = (struct runtime_profile){.given = true, .type = RUNTIME_PROFILE_UNCONFINED};
    }
    return r;
}

/* ---- users, labels, capabilities ---- */

static const char *text_or_null(const struct json *o, const char *key)
{
    const char *s = json_get_text(o, key);
    return *s ? s : NULL;
}

static bool set_id(const struct json *v, int64_t *ret)
{
    return v && json_get_int(v, ret) == 0;
}

static int set_users(const struct json *pod, const struct json *container, struct arena *a,
                     struct runtime_security *ret, struct err *e)
{
    const struct json *more = pod_setting(pod, "supplementalGroups");
    int64_t fs_group;
    ret->has_user = set_id(setting(pod, container, "runAsUser"), &ret->user);
    ret->has_group = set_id(setting(pod, container, "runAsGroup"), &ret->group);
    bool has_fs_group = set_id(pod_setting(pod, "fsGroup"), &fs_group);
    int64_t *groups = ARENA_NEW(a, int64_t, json_count(more) + 1);
    const struct json *g;
    JSON_FOREACH (g, more) {
        if (json_get_int(g, &groups[ret->n_groups++]) < 0) {
            return err_set(e, -EINVAL, "supplementalGroups: an item is not a number");
        }
    }
    if (has_fs_group) {
        groups[ret->n_groups++] = fs_group;
    }
    ret->groups = groups;
    return 0;
}

static void set_selinux(const struct json *pod, const struct json *container,
                        struct runtime_selinux *ret)
{
    const struct json *own = json_path(container, "securityContext", "seLinuxOptions", NULL);
    const struct json *all = pod_setting(pod, "seLinuxOptions");
    const struct json *s = own ? own : all;
    *ret = (struct runtime_selinux){.user = text_or_null(s, "user"),
                                    .role = text_or_null(s, "role"),
                                    .type = text_or_null(s, "type"),
                                    .level = text_or_null(s, "level")};
}

static void set_capabilities(const struct json *list, struct arena *a, struct runtime_texts *ret)
{
    const char **v = ARENA_NEW(a, const char *, json_count(list));
    const struct json *item;
    JSON_FOREACH (item, list) {
        const char *s = json_get_string(item);
        if (s && *s) {
            v[ret->n++] = str_has_prefix(s, "CAP_") ? s + 4 : s;
        }
    }
    ret->v = v;
}

static void set_paths(const struct json *container, bool privileged, struct runtime_security *ret)
{
    const char *mount = json_get_text(json_get(container, "securityContext"), "procMount");
    if (!privileged && !streq(mount, "Unmasked")) {
        ret->masked_paths = (struct runtime_texts){masked, ARRAY_SIZE(masked)};
        ret->readonly_paths = (struct runtime_texts){read_only, ARRAY_SIZE(read_only)};
    }
}

static bool any_is_privileged(const struct json *pod)
{
    size_t n = pod_count_containers(pod);
    for (size_t i = 0; i < n; i++) {
        const struct json *c = pod_container_at(pod, i, NULL);
        if (json_get_bool(json_path(c, "securityContext", "privileged", NULL), false)) {
            return true;
        }
    }
    return false;
}

int pod_security(const struct json *pod, const struct json *container, const char *target_id,
                 const struct pod_security_config *conf, struct arena *a,
                 struct runtime_security *ret, struct err *e)
{
    struct runtime_security s = {0};
    const struct json *own = json_get(container, "securityContext");
    int r = set_users(pod, container, a, &s, e);
    if (r < 0) {
        return r;
    }
    set_namespaces(pod, container, target_id, &s.namespaces);
    set_selinux(pod, container, &s.selinux);
    s.privileged =
        container ? json_get_bool(json_get(own, "privileged"), false) : any_is_privileged(pod);
    if (container) {
        const struct json *escalate = json_get(own, "allowPrivilegeEscalation");
        s.no_new_privs = json_is(escalate, JSON_BOOL) && !json_get_bool(escalate, true);
        s.readonly_rootfs = json_get_bool(json_get(own, "readOnlyRootFilesystem"), false);
        set_capabilities(json_path(own, "capabilities", "add", NULL), a, &s.add_capabilities);
        set_capabilities(json_path(own, "capabilities", "drop", NULL), a, &s.drop_capabilities);
        set_paths(container, s.privileged, &s);
    }
    r = set_profiles(pod, container, conf, a, &s, e);
    if (r == 0) {
        *ret = s;
    }
    return r;
}

int pod_check_non_root(const struct json *pod, const struct json *container,
                       const struct runtime_image *image, struct err *e)
{
    const char *name = json_get_text(container, "name");
    int64_t user;
    if (!json_get_bool(setting(pod, container, "runAsNonRoot"), false)) {
        return 0;
    }
    if (set_id(setting(pod, container, "runAsUser"), &user)) {
        return user != 0 ? 0
                         : err_set(e, -EPERM,
                                   "container's runAsUser breaks non-root policy (pod: "
                                   "\"%s_%s(%s)\", container: %s)",
                                   pod_name(pod), pod_namespace(pod), pod_uid(pod), name);
    }
    if (image->username && *image->username) {
        return err_set(e, -EPERM,
                       "container has runAsNonRoot and image has non-numeric user (%s), cannot "
                       "verify user is non-root (pod: \"%s_%s(%s)\", container: %s)",
                       image->username, pod_name(pod), pod_namespace(pod), pod_uid(pod), name);
    }
    if (!image->has_user || image->user == 0) {
        return err_set(e, -EPERM,
                       "container has runAsNonRoot and image will run as root (pod: "
                       "\"%s_%s(%s)\", container: %s)",
                       pod_name(pod), pod_namespace(pod), pod_uid(pod), name);
    }
    return 0;
}

/* ---- sysctls ---- */

static bool is_allowed(const char *name, const struct pod_security_config *conf)
{
    for (size_t i = 0; i < ARRAY_SIZE(safe_sysctls); i++) {
        if (streq(safe_sysctls[i], name)) {
            return true;
        }
    }
    for (const char *const *p = conf->allowed_sysctls; p && *p; p++) {
        size_t n = strlen(*p);
        bool wild = n > 0 && (*p)[n - 1] == '*';
        if (wild ? strncmp(*p, name, n - 1) == 0 : streq(*p, name)) {
            return true;
        }
    }
    return false;
}

int pod_sysctls(const struct json *pod, const struct pod_security_config *conf, struct arena *a,
                struct runtime_pairs *ret, struct err *e)
{
    const struct json *list = pod_setting(pod, "sysctls"), *item;
    struct runtime_pair *v = ARENA_NEW(a, struct runtime_pair, json_count(list));
    struct runtime_pairs pairs = {.v = v};
    bool host_net = pod_uses_host_network(pod);
    bool host_ipc = json_get_bool(json_path(pod, "spec", "hostIPC", NULL), false);
    JSON_FOREACH (item, list) {
        /* "net/ipv4/x" is another way to write "net.ipv4.x". */
        char *name = arena_strdup(a, json_get_text(item, "name"));
        for (char *p = name; *p; p++) {
            *p = *p == '/' ? '.' : *p;
        }
        if (!is_allowed(name, conf)) {
            return err_set(e, -EPERM, "forbidden sysctl: \"%s\" not allowlisted", name);
        }
        if ((host_net && str_has_prefix(name, "net.")) ||
            (host_ipc && !str_has_prefix(name, "net."))) {
            return err_set(e, -EPERM, "forbidden sysctl: \"%s\" not allowed with host %s enabled",
                           name, str_has_prefix(name, "net.") ? "net" : "ipc");
        }
        v[pairs.n++] = (struct runtime_pair){name, json_get_text(item, "value")};
    }
    *ret = pairs;
    return 0;
}
