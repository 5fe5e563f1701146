/* SPDX-License-Identifier: Apache-2.0 */
/* Constraints: their object as it is read once, their order, and the values of a project. */
#include "base/mem.h"
#include "pod/scc_priv.h"

#include <stdlib.h>
#include <strings.h>

const char *const scc_lists[] = {"initContainers", "containers", "ephemeralContainers", NULL};

bool scc_has_word(const struct json *list, const char *word)
{
    const struct json *item;
    JSON_FOREACH (item, list) {
        if (streq_null(json_get_string(item), word)) {
            return true;
        }
    }
    return false;
}

const struct json *scc_effective(const struct json *context, const struct json *pod_context,
                                 const char *key)
{
    const struct json *own = json_get(context, key), *pods = json_get(pod_context, key);
    return scc_is_set(own) ? own : scc_is_set(pods) ? pods : NULL;
}

/* ---- the object ---- */

static bool allows(const struct json *obj, const char *key)
{
    return json_get_bool(json_get(obj, key), false);
}

static bool is_strategy(const struct json *obj, const char *key, const char *type)
{
    return streq_null(json_path_string(obj, key, "type", NULL), type);
}

/* A strategy that is not known is the strictest one. */
static enum scc_user_strategy user_strategy(const struct json *obj)
{
    return is_strategy(obj, "runAsUser", "RunAsAny")           ? SCC_ANY_USER
           : is_strategy(obj, "runAsUser", "MustRunAsNonRoot") ? SCC_NON_ROOT
           : is_strategy(obj, "runAsUser", "MustRunAsRange")   ? SCC_USER_RANGE
                                                               : SCC_ONE_USER;
}

static unsigned points_of(const struct scc *s);

struct scc *scc_new(const struct json *obj)
{
    struct scc *s = NEW(struct scc);
    struct json *o = s->obj = json_clone(obj);
    const struct json *escalation = json_get(o, "allowPrivilegeEscalation");
    const struct json *by_default = json_get(o, "defaultAllowPrivilegeEscalation");
    const char *name = json_path_string(o, "metadata", "name", NULL);
    s->name = name ? name : "";
    s->priority = json_get_int_or(json_get(o, "priority"), 0);
    s->privileged = allows(o, "allowPrivilegedContainer");
    s->host_network = allows(o, "allowHostNetwork");
    s->host_ports = allows(o, "allowHostPorts");
    s->host_pid = allows(o, "allowHostPID");
    s->host_ipc = allows(o, "allowHostIPC");
    s->host_paths = allows(o, "allowHostDirVolumePlugin");
    s->read_only_root = allows(o, "readOnlyRootFilesystem");
    s->own_users = streq_null(json_path_string(o, "userNamespaceLevel", NULL), "RequirePodLevel");
    s->escalation = !scc_is_set(escalation) || json_get_bool(escalation, false);
    s->default_escalation = json_is(by_default, JSON_BOOL) ? by_default : NULL;
    s->user = user_strategy(o);
    s->one_level = !is_strategy(o, "seLinuxContext", "RunAsAny");
    s->own_file_groups = !is_strategy(o, "fsGroup", "RunAsAny");
    s->own_groups = !is_strategy(o, "supplementalGroups", "RunAsAny");
    s->labels = json_path(o, "seLinuxContext", "seLinuxOptions", NULL);
    s->default_adds = json_get(o, "defaultAddCapabilities");
    s->drops = json_get(o, "requiredDropCapabilities");
    s->adds = json_get(o, "allowedCapabilities");
    s->volumes = json_get(o, "volumes");
    s->drivers = json_get(o, "allowedFlexVolumes");
    s->profiles = json_get(o, "seccompProfiles");
    s->unsafe = json_get(o, "allowedUnsafeSysctls");
    s->forbidden = json_get(o, "forbiddenSysctls");
    s->all_adds = scc_has_word(s->adds, "*");
    s->all_volumes = scc_has_word(s->volumes, "*");
    s->points = points_of(s);
    return s;
}

struct scc *scc_free(struct scc *s)
{
    if (s) {
        json_free(s->obj);
        free(s);
    }
    return NULL;
}

const char *scc_name(const struct scc *s)
{
    return s->name;
}

const struct json *scc_object(const struct scc *s)
{
    return s->obj;
}

bool scc_names_subject(const struct scc *s, const char *user, char *const *groups, size_t n)
{
    const struct json *named = json_get(s->obj, "groups");
    bool found = scc_has_word(json_get(s->obj, "users"), user);
    for (size_t i = 0; i < n && !found; i++) {
        found = scc_has_word(named, groups[i]);
    }
    return found;
}

char *scc_profile_text(const struct json *profile)
{
    const char *type = json_path_string(profile, "type", NULL);
    const char *file = json_path_string(profile, "localhostProfile", NULL);
    if (streq_null(type, "RuntimeDefault")) {
        return xstrdup("runtime/default");
    }
    if (streq_null(type, "Unconfined")) {
        return xstrdup("unconfined");
    }
    return streq_null(type, "Localhost") && file ? xasprintf("localhost/%s", file) : NULL;
}

const char *scc_default_profile(const struct scc *s)
{
    const struct json *item;
    JSON_FOREACH (item, s->profiles) {
        if (json_string_size(item) && !streq(json_get_string(item), "*")) {
            return json_get_string(item);
        }
    }
    return NULL;
}

/* ---- order ---- */

enum {
    POINTS_PRIVILEGED = 1600000,
    POINTS_HOST_PORTS = 800000,
    POINTS_HOST_NETWORK = 400000,
    POINTS_HOST_VOLUMES = 200000,
    POINTS_OTHER_VOLUMES = 100000,
    POINTS_ANY_USER = 40000,
    POINTS_NON_ROOT = 30000,
    POINTS_USER_RANGE = 20000,
    POINTS_ONE_USER = 10000,
    POINTS_CAPABILITIES = 5000,
    POINTS_ADD_ONE = 300,
    POINTS_ALLOW_ALL = 4000,
    POINTS_ALLOW_ONE = 10,
    POINTS_DROP_ALL = 3000,
    POINTS_DROP_ONE = 50,
    POINTS_CAPABILITIES_MAX = 9999,
};

/* Whether a list of capabilities has ALL, in any case. */
static bool has_all(const struct json *list)
{
    const struct json *item;
    JSON_FOREACH (item, list) {
        if (json_get_string(item) && strcasecmp(json_get_string(item), "ALL") == 0) {
            return true;
        }
    }
    return false;
}

static int capability_points(const struct scc *s)
{
    int n = POINTS_CAPABILITIES + POINTS_ADD_ONE * (int) json_count(s->default_adds);
    n += s->all_adds || has_all(s->adds) ? POINTS_ALLOW_ALL
                                         : POINTS_ALLOW_ONE * (int) json_count(s->adds);
    n -= has_all(s->drops) ? POINTS_DROP_ALL : POINTS_DROP_ONE * (int) json_count(s->drops);
    return n < 0 ? 0 : n > POINTS_CAPABILITIES_MAX ? POINTS_CAPABILITIES_MAX : n;
}

static unsigned volume_points(const struct scc *s)
{
    static const char *const trivial[] = {"secret",      "configMap", "emptyDir",
                                          "downwardAPI", "projected", "none"};
    const struct json *item;
    bool others = false;
    if (s->all_volumes || scc_has_word(s->volumes, "hostPath")) {
        return POINTS_HOST_VOLUMES;
    }
    JSON_FOREACH (item, s->volumes) {
        bool known = false;
        for (size_t i = 0; i < ARRAY_SIZE(trivial); i++) {
            known |= streq_null(json_get_string(item), trivial[i]);
        }
        others |= !known;
    }
    return others ? POINTS_OTHER_VOLUMES : 0;
}

static unsigned points_of(const struct scc *s)
{
    static const unsigned users[] = {[SCC_ANY_USER] = POINTS_ANY_USER,
                                     [SCC_NON_ROOT] = POINTS_NON_ROOT,
                                     [SCC_USER_RANGE] = POINTS_USER_RANGE,
                                     [SCC_ONE_USER] = POINTS_ONE_USER};
    return (s->privileged ? POINTS_PRIVILEGED : 0) + (s->host_ports ? POINTS_HOST_PORTS : 0) +
           (s->host_network ? POINTS_HOST_NETWORK : 0) + volume_points(s) +
           (s->one_level ? POINTS_ONE_USER : POINTS_ANY_USER) + users[s->user] +
           (unsigned) capability_points(s);
}

unsigned scc_points(const struct scc *s)
{
    return s->points;
}

int scc_compare(const struct scc *a, const struct scc *b)
{
    if (a->priority != b->priority) {
        return a->priority > b->priority ? -1 : 1;
    }
    if (a->points != b->points) {
        return a->points < b->points ? -1 : 1;
    }
    return strcmp(a->name, b->name);
}

/* ---- the values of a project ---- */

static int parse_block(const char *text, size_t size, struct scc_range *ret, struct err *e)
{
    CLEANUP_FREE char *copy = xstrndup(text, size);
    char *mark = strpbrk(copy, "/-");
    bool length = mark && *mark == '/';
    uint64_t first, second;
    if (mark) {
        *mark++ = '\0';
    }
    if (!mark || str_to_u64(copy, INT64_MAX / 2, &first) < 0 ||
        str_to_u64(mark, INT64_MAX / 2, &second) < 0) {
        return err_set(e, -EINVAL, "\"%.*s\" is not in the form START/LENGTH or START-END",
                       (int) (size > 80 ? 80 : size), text);
    }
    if (length ? second == 0 : second < first) {
        return err_set(e, -EINVAL, "the block \"%.*s\" is empty", (int) (size > 80 ? 80 : size),
                       text);
    }
    *ret = (struct scc_range){(int64_t) first, (int64_t) (length ? first + second - 1 : second)};
    return 0;
}

int scc_parse_block(const char *text, struct scc_range *ret, struct err *e)
{
    return parse_block(text, strlen(text), ret, e);
}

/* Blocks joined by commas.  The caller frees ret->at. */
static int parse_blocks(const char *text, struct scc_ranges *ret, struct err *e)
{
    size_t n = 0;
    CLEANUP_FREE struct scc_range *list = xcalloc(SCC_MAX_BLOCKS, sizeof *list);
    for (const char *s = text;; s++) {
        size_t size = strcspn(s, ",");
        if (n == SCC_MAX_BLOCKS) {
            return err_set(e, -EINVAL, "there are more than %d blocks", SCC_MAX_BLOCKS);
        }
        int r = parse_block(s, size, &list[n++], e);
        if (r < 0) {
            return r;
        }
        s += size;
        if (!*s) {
            break;
        }
    }
    *ret = (struct scc_ranges){TAKE(list), n};
    return 0;
}

/* The text of the annotation; NULL: there is none, and '*e' says so. */
static const char *annotation(const struct json *annotations, const char *key, struct err *e)
{
    const struct json *v = json_get(annotations, key);
    if (!json_string_size(v)) {
        (void) err_set(e, -EINVAL,
                       v ? "found annotation %s but it was empty" : "unable to find annotation %s",
                       key);
        return NULL;
    }
    return json_get_string(v);
}

static int bind_users(struct scc_provider *p, const struct json *annotations, struct err *e)
{
    const struct json *user = json_get(p->scc->obj, "runAsUser"), *uid = json_get(user, "uid");
    const struct json *min = json_get(user, "uidRangeMin"), *max = json_get(user, "uidRangeMax");
    if (p->scc->user == SCC_ONE_USER) {
        int r = json_get_int(uid, &p->users.min);
        p->users.max = p->users.min;
        return r < 0 ? err_set(e, -EINVAL, "MustRunAs requires a UID") : 0;
    }
    if (p->scc->user != SCC_USER_RANGE) {
        return 0;
    }
    if (scc_is_set(min) || scc_is_set(max)) {
        return json_get_int(min, &p->users.min) < 0 || json_get_int(max, &p->users.max) < 0
                   ? err_set(e, -EINVAL, "MustRunAsRange requires a UIDRangeMin and a UIDRangeMax")
                   : 0;
    }
    const char *text = annotation(annotations, SCC_UIDS_ANNOTATION, e);
    return text ? scc_parse_block(text, &p->users, e) : -EINVAL;
}

static int bind_level(struct scc_provider *p, const struct json *annotations, struct err *e)
{
    const char *own = json_path_string(p->scc->labels, "level", NULL);
    if (!p->scc->one_level) {
        return 0;
    }
    p->level = own && *own ? own : annotation(annotations, SCC_LEVEL_ANNOTATION, e);
    return p->level ? 0 : -EINVAL;
}

/* 'first_only': only the first ID of the project's first block belongs to the range. */
static int bind_groups(const struct json *strategy, bool first_only, const struct json *annotations,
                       struct scc_ranges *ret, struct err *e)
{
    const struct json *ranges = json_get(strategy, "ranges");
    size_t n = json_count(ranges);
    if (n) {
        ret->at = xcalloc(n, sizeof *ret->at);
        for (size_t i = 0; i < n; i++) {
            const struct json *r = json_at(ranges, i);
            ret->at[i] = (struct scc_range){json_get_int_or(json_get(r, "min"), 0),
                                            json_get_int_or(json_get(r, "max"), 0)};
        }
        ret->n = n;
        return 0;
    }
    const char *key =
        json_get(annotations, SCC_GROUPS_ANNOTATION) ? SCC_GROUPS_ANNOTATION : SCC_UIDS_ANNOTATION;
    const char *text = annotation(annotations, key, e);
    int r = text ? parse_blocks(text, ret, e) : -EINVAL;
    if (r == 0 && first_only) {
        ret->n = 1;
        ret->at[0].max = ret->at[0].min;
    }
    return r;
}

int scc_provider_init(struct scc_provider *ret, const struct scc *s, const char *ns,
                      const struct json *annotations, struct err *e)
{
    struct scc_provider p = {.scc = s};
    struct err cause = {0};
    const char *what = "uid";
    int r = bind_users(&p, annotations, &cause);
    if (r == 0) {
        what = "mcs";
        r = bind_level(&p, annotations, &cause);
    }
    if (r == 0 && s->own_file_groups) {
        what = "group";
        r = bind_groups(json_get(s->obj, "fsGroup"), true, annotations, &p.file_groups, &cause);
    }
    if (r == 0 && s->own_groups) {
        what = "group";
        r = bind_groups(json_get(s->obj, "supplementalGroups"), false, annotations, &p.groups,
                        &cause);
    }
    if (r < 0) {
        scc_provider_done(&p);
        return err_set(e, -EINVAL,
                       "unable to find pre-allocated %s annotation for namespace %s while trying "
                       "to configure SCC %s: %s",
                       what, ns, s->name, cause.text);
    }
    *ret = p;
    return 0;
}

void scc_provider_done(struct scc_provider *p)
{
    free(p->file_groups.at);
    free(p->groups.at);
    *p = (struct scc_provider){0};
}
