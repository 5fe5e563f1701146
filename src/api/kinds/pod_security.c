/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of security settings: profiles, kernel parameters, namespaces of the host, and what pods
 * of another operating system cannot have. */
#include "api/kind_util.h"
#include "api/kinds/pod_priv.h"
#include "base/mem.h"

#include <ctype.h>

#define PROFILE_PATH_MAX 4095
#define SYSCTL_MAX 253
#define CREDENTIAL_MAX ((size_t) 64 << 10)
#define DOMAIN_MAX 256
#define USER_MAX 104

/* ---- profiles ---- */

static const char *const profile_types[] = {"Localhost", "RuntimeDefault", "Unconfined", NULL};

/* Whether the type is known; 'what' names the setting in the text for an absent one. */
static bool check_profile_type(const struct pod_rules *r, const char *field, const struct json *v,
                               const char *what)
{
    if (json_string_size(json_get(v, "type")) == 0) {
        api_required(r->c, API_FIELD("%s.type", field), "type is required when %s is set", what);
        return false;
    }
    return api_field_enum(r->c, API_FIELD("%s.type", field), json_get(v, "type"), true,
                          profile_types);
}

static void check_seccomp(const struct pod_rules *r, const char *field, const struct json *v)
{
    const struct json *path = json_get(v, "localhostProfile");
    const char *at = API_FIELD("%s.localhostProfile", field);
    if (!v) {
        return;
    }
    (void) check_profile_type(r, field, v, "seccompProfile");
    if (!streq(json_get_text(v, "type"), "Localhost")) {
        if (path) {
            api_invalid(r->c, at, path, "can only be set when seccomp type is Localhost");
        }
    } else if (!path) {
        api_required(r->c, at, "must be set when seccomp type is Localhost");
    } else {
        pod_check_local_path(r, at, path);
    }
}

static void check_apparmor(const struct pod_rules *r, const char *field, const struct json *v)
{
    const struct json *name = json_get(v, "localhostProfile");
    const char *at = API_FIELD("%s.localhostProfile", field);
    const char *s = json_get_text(v, "localhostProfile");
    size_t n = json_string_size(name);
    if (!v || !check_profile_type(r, field, v, "appArmorProfile")) {
        return;
    }
    if (!streq(json_get_text(v, "type"), "Localhost")) {
        if (name) {
            api_invalid(r->c, at, name, "can only be set when AppArmor type is Localhost");
        }
    } else if (n == 0) {
        api_required(r->c, at, "must be set when AppArmor type is Localhost");
    } else if (isspace((unsigned char) s[0]) || isspace((unsigned char) s[n - 1])) {
        api_invalid(r->c, at, name, "must not be padded with whitespace");
    } else if (n > PROFILE_PATH_MAX) {
        api_too_long(r->c, at, PROFILE_PATH_MAX);
    }
}

/* ---- Windows ---- */

static bool is_domain(const char *s, size_t n)
{
    size_t bad = strcspn(s, "\\/:*?\"<>|");
    bool dns = n > 0 && isalnum((unsigned char) s[n - 1]);
    if (n > 0 && n <= 15 && *s != '.' && bad >= n) {
        return true; /* A NetBIOS name. */
    }
    for (size_t i = 0, start = 0; i < n && dns; i++) {
        dns = s[i] == '.' ? i > start && i - start <= 63 && s[i - 1] != '-'
                          : isalnum((unsigned char) s[i]) || (s[i] == '-' && i > start);
        start = s[i] == '.' ? i + 1 : start;
    }
    return dns;
}

/* The fault of the user name "[DOMAIN\]USER"; NULL: it has none. */
static const char *wrong_user_name(const char *s)
{
    const char *slash = strchr(s, '\\'), *user = slash ? slash + 1 : s;
    size_t n = slash ? (size_t) (slash - s) : 0, length = strlen(user);
    for (const char *p = s; *p; p++) {
        if (iscntrl((unsigned char) *p)) {
            return "runAsUserName cannot contain control characters";
        }
    }
    if (slash && strchr(user, '\\')) {
        return "runAsUserName cannot contain more than one backslash";
    }
    if (n >= DOMAIN_MAX) {
        return "runAsUserName's Domain length must be under 256 characters";
    }
    if (slash && !is_domain(s, n)) {
        return "runAsUserName's Domain doesn't match the NetBios nor the DNS format";
    }
    if (length == 0) {
        return "runAsUserName's User cannot be empty";
    }
    if (length > USER_MAX) {
        return "runAsUserName's User length must not be longer than 104 characters";
    }
    if (strspn(user, ". ") == length) {
        return "runAsUserName's User cannot contain only periods or spaces";
    }
    return user[strcspn(user, "\"/:;|=,+*?<>@[]")]
               ? "runAsUserName's User cannot contain the following characters: "
                 "\"/\\:;|=,+*?<>@[]"
               : NULL;
}

static void check_windows(const struct pod_rules *r, const char *field, const struct json *v)
{
    const struct json *user = json_get(v, "runAsUserName");
    const struct json *credential = json_get(v, "gmsaCredentialSpec");
    const char *at = API_FIELD("%s.runAsUserName", field);
    const char *wrong = json_string_size(user) ? wrong_user_name(json_get_string(user)) : NULL;
    if (credential && json_string_size(credential) == 0) {
        api_invalid(r->c, API_FIELD("%s.gmsaCredentialSpec", field), credential,
                    "gmsaCredentialSpec cannot be an empty string");
    } else if (json_string_size(credential) > CREDENTIAL_MAX) {
        api_invalid(r->c, API_FIELD("%s.gmsaCredentialSpec", field), credential,
                    "gmsaCredentialSpec size must be under 64 KiB");
    }
    if (user && json_string_size(user) == 0) {
        api_invalid(r->c, at, user, "runAsUserName cannot be an empty string");
    } else if (wrong) {
        api_invalid(r->c, at, user, "%s", wrong);
    }
}

/* ---- containers ---- */

void pod_check_container_security(const struct pod_rules *r, const char *field,
                                  const struct json *context)
{
    const struct json *mount = json_get(context, "procMount"), *cap;
    bool kept = json_get_bool(json_get(context, "allowPrivilegeEscalation"), true);
    if (streq(json_get_text(context, "procMount"), "Unmasked") &&
        json_get_bool(json_get(r->spec, "hostUsers"), true)) {
        api_invalid(r->c, API_FIELD("%s.procMount", field), mount,
                    "`hostUsers` must be false to use `Unmasked`");
    }
    check_seccomp(r, API_FIELD("%s.seccompProfile", field), json_get(context, "seccompProfile"));
    if (!kept && pod_has_set(context, "privileged")) {
        api_invalid(r->c, field, context,
                    "cannot set `allowPrivilegeEscalation` to false and `privileged` to true");
    }
    JSON_FOREACH (cap, kept ? NULL : json_path(context, "capabilities", "add", NULL)) {
        if (streq_null(json_get_string(cap), "CAP_SYS_ADMIN")) {
            api_invalid(r->c, field, context,
                        "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` "
                        "CAP_SYS_ADMIN");
        }
    }
    check_windows(r, API_FIELD("%s.windowsOptions", field), json_get(context, "windowsOptions"));
    check_apparmor(r, API_FIELD("%s.appArmorProfile", field), json_get(context, "appArmorProfile"));
}

/* ---- kernel parameters ---- */

/* Segments of lower-case letters, digits, "-" and "_", between dots or slashes. */
static bool is_sysctl(const char *s)
{
    if (strlen(s) > SYSCTL_MAX) {
        return false;
    }
    for (bool begin = true;; s++) {
        bool plain = (*s >= 'a' && *s <= 'z') || (*s >= '0' && *s <= '9');
        bool end = !*s || *s == '.' || *s == '/';
        if (end && (begin || s[-1] == '-' || s[-1] == '_')) {
            return false;
        }
        if (!end && !plain && (begin || (*s != '-' && *s != '_'))) {
            return false;
        }
        if (!*s) {
            return true;
        }
        begin = end;
    }
}

/* Whether the parameter belongs to the namespace of the network (else: of IPC).  Both "." and "/"
 * separate segments: the first of them does, and the other is part of a name. */
static bool is_of_namespace(const char *name, bool network)
{
    static const char *const of_ipc[] = {"kernel.sem", "kernel.shm", "kernel.msg", "fs.mqueue."};
    CLEANUP_FREE char *s = xstrdup(name);
    bool slashes = s[strcspn(s, "./")] == '/', ipc = false;
    for (char *p = s; slashes && *p; p++) {
        *p = *p == '/' ? '.' : *p == '.' ? '/' : *p;
    }
    for (size_t i = 0; i < ARRAY_SIZE(of_ipc); i++) {
        ipc |= str_has_prefix(s, of_ipc[i]);
    }
    return network ? str_has_prefix(s, "net.") : ipc;
}

static void check_sysctls(const struct pod_rules *r, const char *field, const struct json *list)
{
    struct smap seen;
    smap_init(&seen, NULL);
    for (size_t i = 0; i < json_count(list); i++) {
        const struct json *name = json_get(json_at(list, i), "name");
        const char *s = json_get_text(json_at(list, i), "name");
        const char *at = API_FIELD("%s[%zu].name", field, i);
        if (!*s) {
            api_required(r->c, at, "");
        } else if (!is_sysctl(s)) {
            api_invalid(r->c, at, name,
                        "must have at most 253 characters and match regex "
                        "^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$");
        } else if (smap_get(&seen, s)) {
            api_duplicate(r->c, at, name);
        }
        if (pod_has_set(r->spec, "hostNetwork") && is_of_namespace(s, true)) {
            api_invalid(r->c, at, name, "may not be specified when 'hostNetwork' is true");
        } else if (pod_has_set(r->spec, "hostIPC") && is_of_namespace(s, false)) {
            api_invalid(r->c, at, name, "may not be specified when 'hostIPC' is true");
        }
        smap_set(&seen, s, &seen);
    }
    smap_done(&seen);
}

/* ---- operating systems ---- */

typedef void container_fn(const struct pod_rules *r, const char *field, const struct json *context);

static void each_context(const struct pod_rules *r, const char *field, container_fn *fn)
{
    for (size_t list = 0; list < POD_N_LISTS; list++) {
        const struct json *containers = json_get(r->spec, pod_lists[list]);
        for (size_t i = 0; i < json_count(containers); i++) {
            fn(r, API_FIELD("%s.%s[%zu].securityContext", field, pod_lists[list], i),
               json_get(json_at(containers, i), "securityContext"));
        }
    }
}

static void check_linux(const struct pod_rules *r, const char *field, const struct json *context)
{
    if (json_get(context, "windowsOptions")) {
        api_forbidden(r->c, API_FIELD("%s.windowsOptions", field),
                      "windows options cannot be set for a linux pod");
    }
}

static void refuse_on_windows(const struct pod_rules *r, const char *field, const struct json *v,
                              const char *const *keys)
{
    for (size_t i = 0; keys[i]; i++) {
        const struct json *set = json_get(v, keys[i]);
        if (set && (!json_is(set, JSON_ARRAY) || json_count(set))) {
            api_forbidden(r->c, API_FIELD("%s.%s", field, keys[i]),
                          "cannot be set for a windows pod");
        }
    }
}

static void check_windows_container(const struct pod_rules *r, const char *field,
                                    const struct json *context)
{
    static const char *const keys[] = {"appArmorProfile",
                                       "seLinuxOptions",
                                       "seccompProfile",
                                       "capabilities",
                                       "readOnlyRootFilesystem",
                                       "privileged",
                                       "allowPrivilegeEscalation",
                                       "procMount",
                                       "runAsUser",
                                       "runAsGroup",
                                       NULL};
    refuse_on_windows(r, field, context, keys);
}

static void check_windows_pod(const struct pod_rules *r, const char *field)
{
    static const char *const of_context[] = {"appArmorProfile",     "seLinuxOptions",
                                             "seccompProfile",      "fsGroup",
                                             "fsGroupChangePolicy", "sysctls",
                                             "runAsUser",           "runAsGroup",
                                             "supplementalGroups",  "supplementalGroupsPolicy",
                                             "seLinuxChangePolicy", NULL};
    static const char *const of_spec[] = {"hostUsers", "shareProcessNamespace", NULL};
    static const char *const flags[] = {"hostPID", "hostIPC"};
    refuse_on_windows(r, API_FIELD("%s.securityContext", field),
                      json_get(r->spec, "securityContext"), of_context);
    refuse_on_windows(r, field, r->spec, of_spec);
    for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
        if (pod_has_set(r->spec, flags[i])) {
            api_forbidden(r->c, API_FIELD("%s.%s", field, flags[i]),
                          "cannot be set for a windows pod");
        }
    }
    each_context(r, field, check_windows_container);
}

static void check_os(const struct pod_rules *r, const char *field)
{
    static const char *const known[] = {"linux", "windows", NULL};
    const struct json *os = json_get(r->spec, "os"), *name = json_get(os, "name");
    if (!os) {
        return;
    }
    if (json_string_size(name) == 0) {
        api_required(r->c, API_FIELD("%s.os.name", field), "cannot be empty");
    } else if (streq(json_get_string(name), "linux")) {
        check_linux(r, API_FIELD("%s.securityContext", field),
                    json_get(r->spec, "securityContext"));
        each_context(r, field, check_linux);
    } else if (streq(json_get_string(name), "windows")) {
        check_windows_pod(r, field);
    } else {
        api_unsupported(r->c, API_FIELD("%s.os", field), name, known);
    }
}

/* ---- the host of Windows ---- */

/* Containers that run in the host are all or none, and in its network. */
static void check_host_process(const struct pod_rules *r, const char *field)
{
    const struct json *ours =
        json_path(r->spec, "securityContext", "windowsOptions", "hostProcess", NULL);
    CLEANUP(json_free) struct json *empty = json_string("");
    CLEANUP(json_free) struct json *no = json_bool(false);
    size_t all = 0, in_host = 0;
    for (size_t list = 0; list < POD_N_LISTS; list++) {
        const struct json *containers = json_get(r->spec, pod_lists[list]);
        for (size_t i = 0; i < json_count(containers); i++) {
            const struct json *own = json_path(json_at(containers, i), "securityContext",
                                               "windowsOptions", "hostProcess", NULL);
            if (ours && own && !json_equal(ours, own)) {
                api_invalid(r->c,
                            API_FIELD("%s.%s[%zu].securityContext.windowsOptions.hostProcess",
                                      field, pod_lists[list], i),
                            own,
                            "pod hostProcess value must be identical if both are specified, was %s",
                            json_get_bool(ours, false) ? "true" : "false");
            }
            in_host += json_get_bool(own ? own : ours, false);
            all++;
        }
    }
    if (in_host && in_host != all) {
        api_invalid(r->c, field, empty,
                    "If pod contains any hostProcess containers then all containers must be "
                    "HostProcess containers");
    }
    if (in_host && !pod_has_set(r->spec, "hostNetwork")) {
        api_invalid(r->c, API_FIELD("%s.hostNetwork", field), no,
                    "hostNetwork must be true if pod contains any hostProcess containers");
    }
}

/* ---- the pod ---- */

/* A pod with users of its own has no other namespace of the host. */
static void check_host_users(const struct pod_rules *r, const char *field)
{
    static const struct {
        const char *key, *shown;
    } flags[] = {{"hostNetwork", "hostNetwork"}, {"hostPID", "HostPID"}, {"hostIPC", "HostIPC"}};
    bool host = json_get_bool(json_get(r->spec, "hostUsers"), true);
    for (size_t i = 0; i < ARRAY_SIZE(flags) && !host; i++) {
        if (pod_has_set(r->spec, flags[i].key)) {
            api_forbidden(r->c, API_FIELD("%s.%s", field, flags[i].shown),
                          "when `pod.Spec.HostUsers` is false");
        }
    }
}

void pod_check_security(const struct pod_rules *r, const char *field)
{
    const struct json *context = json_get(r->spec, "securityContext");
    const struct json *share = json_get(r->spec, "shareProcessNamespace");
    const char *at = API_FIELD("%s.securityContext", field);
    if (json_get_bool(share, false) && pod_has_set(r->spec, "hostPID")) {
        api_invalid(r->c, API_FIELD("%s.shareProcessNamespace", at), share,
                    "ShareProcessNamespace and HostPID cannot both be enabled");
    }
    check_sysctls(r, API_FIELD("%s.sysctls", at), json_get(context, "sysctls"));
    check_seccomp(r, API_FIELD("%s.seccompProfile", at), json_get(context, "seccompProfile"));
    check_windows(r, API_FIELD("%s.windowsOptions", at), json_get(context, "windowsOptions"));
    check_apparmor(r, API_FIELD("%s.appArmorProfile", at), json_get(context, "appArmorProfile"));
    check_host_process(r, field);
    check_host_users(r, field);
    check_os(r, field);
}
