/* SPDX-License-Identifier: Apache-2.0 */
/* SecurityContextConstraints (security.openshift.io/v1): cells, defaults and rules, as OpenShift
 * 3.11 has them.  pod/scc.h judges pods by them. */
#include "api/kind_util.h"
#include "api/kinds.h"
#include "base/mem.h"

#include <stdlib.h>

#define MAX_SYSCTL 253

/* Types of volumes, in the order of the alphabet as the original sorts them, except for "*",
 * "hostPath" and "none". */
static const char *const volume_types[] = {
    "awsElasticBlockStore",
    "azureDisk",
    "azureFile",
    "cephFS",
    "cinder",
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "fc",
    "flexVolume",
    "flocker",
    "gcePersistentDisk",
    "gitRepo",
    "glusterfs",
    "image",
    "iscsi",
    "nfs",
    "persistentVolumeClaim",
    "photonPersistentDisk",
    "portworxVolume",
    "projected",
    "quobyte",
    "rbd",
    "scaleIO",
    "secret",
    "storageOS",
    "vsphere",
};

/* ---- cells ---- */

/* "[a b]", as Go prints a list of texts. */
static struct json *list_cell(const struct json *list)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    const struct json *item;
    JSON_FOREACH (item, list) {
        strbuf_addf(&b, "%s%s", b.size ? " " : "",
                    json_get_string(item) ? json_get_string(item) : "");
    }
    return json_stringf("[%s]", strbuf_cstr(&b));
}

struct json *kind_security_context_constraints_cell_caps(const struct json *obj, int64_t now_ms)
{
    return list_cell(json_get(obj, "allowedCapabilities"));
}

struct json *kind_security_context_constraints_cell_volumes(const struct json *obj, int64_t now_ms)
{
    return list_cell(json_get(obj, "volumes"));
}

struct json *kind_security_context_constraints_cell_priority(const struct json *obj, int64_t now_ms)
{
    int64_t n;
    return json_get_int(json_get(obj, "priority"), &n) == 0 ? json_stringf("%lld", (long long) n)
                                                            : json_string("<none>");
}

/* ---- defaults ---- */

static bool has_word(const struct json *list, const char *word)
{
    const struct json *item;
    JSON_FOREACH (item, list) {
        if (streq_null(json_get_string(item), word)) {
            return true;
        }
    }
    return false;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *) a, *(const char *const *) b);
}

/* Adds the texts to 'list' in the order of their bytes, each once. */
static void append_sorted(struct json *list, const char **texts, size_t n)
{
    qsort(texts, n, sizeof *texts, by_text);
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || !streq(texts[i], texts[i - 1])) {
            json_append(list, json_string(texts[i]));
        }
    }
}

/* Joins the list of volumes with allowHostDirVolumePlugin, which wins: it adds hostPath, or removes
 * it and writes "*" out as all other types.  No list means all types, an empty one none. */
static void default_volumes(struct json *obj)
{
    const struct json *given = json_get(obj, "volumes");
    bool absent = !given || json_is(given, JSON_NULL);
    bool host = json_get_bool(json_get(obj, "allowHostDirVolumePlugin"), false);
    bool all = absent || has_word(given, "*");
    if (!absent && !json_is(given, JSON_ARRAY)) {
        return; /* Validation refuses it. */
    }
    size_t n = 0, count = json_count(given);
    CLEANUP_FREE const char **texts = xcalloc(count + ARRAY_SIZE(volume_types) + 2, sizeof *texts);
    for (size_t i = 0; i < count; i++) {
        const char *text = json_get_string(json_at(given, i));
        if (!text) {
            return;
        }
        if (host || (!streq(text, "*") && !streq(text, "hostPath"))) {
            texts[n++] = text;
        }
    }
    if (all && host && absent) {
        texts[n++] = "*";
    } else if (!all && host) {
        texts[n++] = "hostPath";
    } else if (all && !host) {
        for (size_t i = 0; i < ARRAY_SIZE(volume_types); i++) {
            texts[n++] = volume_types[i];
        }
    }
    if (!n) {
        texts[n++] = "none";
    }
    struct json *list = json_array();
    append_sorted(list, texts, n);
    json_set(obj, "volumes", list);
}

static void default_strategy(struct json *obj, const char *key)
{
    struct json *strategy = api_default_object(obj, key);
    if (strategy) {
        api_default_string(strategy, "type", "RunAsAny");
    }
}

void kind_security_context_constraints_defaults(struct json *obj)
{
    const struct json *escalation = json_get(obj, "allowPrivilegeEscalation");
    default_strategy(obj, "fsGroup");
    default_strategy(obj, "supplementalGroups");
    default_volumes(obj);
    if (!escalation || json_is(escalation, JSON_NULL)) {
        json_set_bool(obj, "allowPrivilegeEscalation", true);
    }
}

/* ---- validation ---- */

static bool is_one_of(const char *s, const char *const *words)
{
    while (*words && !streq_null(s, *words)) {
        words++;
    }
    return *words != NULL;
}

static void check_not_negative(struct api_causes *c, const char *field, const struct json *v,
                               const char *why)
{
    int64_t n;
    if (json_get_int(v, &n) == 0 && n < 0) {
        api_invalid(c, field, v, "%s", why);
    }
}

/* A strategy's type; 'words' is the same list as a text. */
static void check_type(struct api_causes *c, const char *field, const struct json *strategy,
                       const char *const *types, const char *words)
{
    const struct json *type = json_get(strategy, "type");
    if (!is_one_of(json_get_string(type), types)) {
        CLEANUP(json_free) struct json *none = json_string("");
        api_invalid(c, field, type ? type : none, "invalid strategy type.  Valid values are %s",
                    words);
    }
}

static void check_user(struct api_causes *c, const struct json *user)
{
    static const char *const types[] = {"MustRunAs", "MustRunAsNonRoot", "MustRunAsRange",
                                        "RunAsAny", NULL};
    const struct json *min = json_get(user, "uidRangeMin"), *max = json_get(user, "uidRangeMax");
    const char *type = json_get_text(user, "type");
    int64_t first = 0, last = 0;
    check_type(c, "runAsUser.type", user, types,
               "MustRunAs, MustRunAsNonRoot, MustRunAsRange, RunAsAny");
    check_not_negative(c, "runAsUser.uid", json_get(user, "uid"), "uid cannot be negative");
    check_not_negative(c, "runAsUser.uidRangeMin", min, "uidRangeMin cannot be negative");
    check_not_negative(c, "runAsUser.uidRangeMax", max, "uidRangeMax cannot be negative");
    bool has_min = json_get_int(min, &first) == 0, has_max = json_get_int(max, &last) == 0;
    if (has_min && has_max && first > last) {
        api_invalid(c, "runAsUser.uidRangeMin", min, "min cannot be greater than max");
    }
    if (streq(type, "MustRunAsRange") && has_min != has_max) {
        api_required(c, has_min ? "runAsUser.uidRangeMax" : "runAsUser.uidRangeMin",
                     "uidRangeMin and uidRangeMax must be set together");
    }
    if (streq(type, "MustRunAs") && !json_is(json_get(user, "uid"), JSON_NUMBER)) {
        api_required(c, "runAsUser.uid", "the strategy MustRunAs requires a uid");
    }
}

static void check_groups(struct api_causes *c, const char *field, const struct json *strategy)
{
    static const char *const types[] = {"MustRunAs", "RunAsAny", NULL};
    const struct json *ranges = json_get(strategy, "ranges"), *type = json_get(strategy, "type");
    if (!is_one_of(json_get_string(type), types)) {
        api_unsupported(c, API_FIELD("%s.type", field), type, types);
    }
    for (size_t i = 0; i < json_count(ranges); i++) {
        const struct json *range = json_at(ranges, i), *min = json_get(range, "min");
        const struct json *max = json_get(range, "max");
        const char *at = API_FIELD("%s.ranges[%zu].min", field, i);
        check_not_negative(c, at, min, "min cannot be negative");
        check_not_negative(c, API_FIELD("%s.ranges[%zu].max", field, i), max,
                           "max cannot be negative");
        if (json_get_int_or(min, 0) > json_get_int_or(max, 0)) {
            api_invalid(c, at, range, "min cannot be greater than max");
        }
    }
}

static void check_capabilities(struct api_causes *c, const struct json *obj)
{
    static const char *const others[] = {"defaultAddCapabilities", "allowedCapabilities"};
    const struct json *drops = json_get(obj, "requiredDropCapabilities"), *item;
    for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
        JSON_FOREACH (item, json_get(obj, others[i])) {
            if (has_word(drops, json_get_string(item))) {
                api_invalid(c, others[i], item,
                            "capability is listed in %s and requiredDropCapabilities", others[i]);
            }
        }
    }
    if (has_word(json_get(obj, "allowedCapabilities"), "*") && json_count(drops)) {
        api_invalid(c, "requiredDropCapabilities", drops,
                    "required capabilities must be empty when all capabilities are allowed by a "
                    "wildcard");
    }
}

static void check_volumes(struct api_causes *c, const struct json *obj)
{
    const struct json *volumes = json_get(obj, "volumes");
    const struct json *drivers = json_get(obj, "allowedFlexVolumes");
    if (has_word(volumes, "none") && json_count(volumes) > 1) {
        api_invalid(c, "volumes", volumes, "if 'none' is specified, no other values are allowed");
    }
    if (json_count(drivers) && !has_word(volumes, "*") && !has_word(volumes, "flexVolume")) {
        api_invalid(c, "allowedFlexVolumes", drivers,
                    "volumes does not include 'flexVolume' or '*', so no flex volumes are allowed");
        return;
    }
    for (size_t i = 0; i < json_count(drivers); i++) {
        if (!json_string_size(json_get(json_at(drivers, i), "driver"))) {
            api_required(c, API_FIELD("allowedFlexVolumes[%zu].driver", i),
                         "must specify a driver");
        }
    }
}

/* Parts of lower case letters, digits, "-" and "_", joined by "."; "*" may stand at the end. */
static bool is_sysctl_pattern(const char *s)
{
    static const char inner[] = "abcdefghijklmnopqrstuvwxyz0123456789-_.";
    size_t n = strspn(s, inner);
    bool star = s[n] == '*' && !s[n + 1];
    return strlen(s) <= MAX_SYSCTL && (star || (n && !s[n])) && *s != '.' && *s != '-' &&
           *s != '_' && !strstr(s, "..") && (star || !strchr("._-", s[n - 1]));
}

static void check_sysctls(struct api_causes *c, const char *field, const struct json *list)
{
    for (size_t i = 0; i < json_count(list); i++) {
        const char *s = json_get_string(json_at(list, i)), *at = API_FIELD("%s[%zu]", field, i);
        if (!s || !*s) {
            api_invalid(c, at, json_at(list, i), "empty sysctl not allowed");
        } else if (!is_sysctl_pattern(s)) {
            api_invalid(c, at, json_at(list, i),
                        "must have at most %d characters and be the name of a sysctl, such as "
                        "kernel.msgmax, or the beginning of one before *",
                        MAX_SYSCTL);
        }
    }
    if (has_word(list, "*") && json_count(list) > 1) {
        api_forbidden(c, field, "if '*' is present, must not specify other sysctls");
    }
}

/* Whether a name fits both patterns. */
static bool patterns_overlap(const char *a, const char *b)
{
    size_t n = strlen(a), k = strlen(b);
    bool a_star = n && a[n - 1] == '*', b_star = k && b[k - 1] == '*';
    n -= a_star;
    k -= b_star;
    size_t least = n < k ? n : k;
    return strncmp(a, b, least) == 0 && (n == k || (n < k ? a_star : b_star));
}

static void check_overlap(struct api_causes *c, const struct json *obj)
{
    const struct json *allowed = json_get(obj, "allowedUnsafeSysctls"), *forbidden;
    for (size_t i = 0; i < json_count(allowed); i++) {
        const char *s = json_get_string(json_at(allowed, i));
        JSON_FOREACH (forbidden, json_get(obj, "forbiddenSysctls")) {
            if (patterns_overlap(s, json_get_string(forbidden))) {
                api_invalid(c, API_FIELD("allowedUnsafeSysctls[%zu]", i), json_at(allowed, i),
                            "sysctl overlaps with %s", json_get_string(forbidden));
            }
        }
    }
}

void kind_security_context_constraints_validate(const struct json *obj, const struct json *old,
                                                struct api_causes *c)
{
    static const char *const types[] = {"MustRunAs", "RunAsAny", NULL};
    bool escalates = json_get_bool(json_get(obj, "defaultAllowPrivilegeEscalation"), false);
    check_not_negative(c, "priority", json_get(obj, "priority"), "priority cannot be negative");
    check_user(c, json_get(obj, "runAsUser"));
    check_type(c, "seLinuxContext.type", json_get(obj, "seLinuxContext"), types,
               "MustRunAs, RunAsAny");
    check_groups(c, "fsGroup", json_get(obj, "fsGroup"));
    check_groups(c, "supplementalGroups", json_get(obj, "supplementalGroups"));
    check_capabilities(c, obj);
    if (escalates && !json_get_bool(json_get(obj, "allowPrivilegeEscalation"), true)) {
        api_invalid(c, "defaultAllowPrivilegeEscalation",
                    json_get(obj, "defaultAllowPrivilegeEscalation"),
                    "Cannot set DefaultAllowPrivilegeEscalation to true without also setting "
                    "AllowPrivilegeEscalation to true");
    }
    check_volumes(c, obj);
    check_sysctls(c, "allowedUnsafeSysctls", json_get(obj, "allowedUnsafeSysctls"));
    check_sysctls(c, "forbiddenSysctls", json_get(obj, "forbiddenSysctls"));
    check_overlap(c, obj);
}
