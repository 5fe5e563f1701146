/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/evict.h"

#include "api/quantity.h"
#include "api/requests.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/timeutil.h"
#include "pod/pod.h"

#define NS INT64_C(1000000000)
#define WHOLE INT64_C(100000) /* 100 % in thousandths of a percent. */
#define STORAGE "ephemeral-storage"

static const struct {
    const char *name, *resource;
    enum evict_condition condition;
} signals[EVICT_SIGNALS] = {
    [EVICT_MEMORY] = {"memory.available", "memory", EVICT_MEMORY_PRESSURE},
    [EVICT_NODEFS] = {"nodefs.available", STORAGE, EVICT_DISK_PRESSURE},
    [EVICT_NODEFS_INODES] = {"nodefs.inodesFree", "inodes", EVICT_DISK_PRESSURE},
    [EVICT_IMAGEFS] = {"imagefs.available", STORAGE, EVICT_DISK_PRESSURE},
    [EVICT_IMAGEFS_INODES] = {"imagefs.inodesFree", "inodes", EVICT_DISK_PRESSURE},
    [EVICT_PIDS] = {"pid.available", "pids", EVICT_PID_PRESSURE},
};

const char *evict_signal_name(enum evict_signal s)
{
    return signals[s].name;
}

/* ---- settings ---- */

/* Splits "SIGNAL<VALUE" or "SIGNAL=VALUE". */
static int split(const char *item, char sign, enum evict_signal *ret, const char **ret_value,
                 struct err *e)
{
    const char *at = strchr(item, sign);
    if (!at) {
        return err_set(e, -EINVAL, "\"%s\" is not SIGNAL%cVALUE, such as %s", item, sign,
                       sign == '<' ? "memory.available<100Mi" : "memory.available=500Mi");
    }
    for (size_t i = 0; i < EVICT_SIGNALS; i++) {
        if (strlen(signals[i].name) == (size_t) (at - item) &&
            strncmp(item, signals[i].name, (size_t) (at - item)) == 0) {
            *ret = (enum evict_signal) i;
            *ret_value = at + 1;
            return 0;
        }
    }
    return err_set(e, -EINVAL,
                   "\"%.*s\" is none of the signals memory.available, nodefs.available, "
                   "nodefs.inodesFree, imagefs.available, imagefs.inodesFree and pid.available",
                   (int) (at - item), item);
}

static int read_amount(const char *text, struct evict_amount *ret, struct err *e)
{
    size_t size = strlen(text);
    bool share = size && text[size - 1] == '%';
    CLEANUP_FREE char *number = xstrndup(text, size - share);
    struct evict_amount a = {.set = true, .share = share};
    int r = api_quantity_value(number, share ? -3 : 0, &a.n, e);
    if (r < 0) {
        return err_prefix(e, "\"%s\"", text);
    }
    if (a.n < 0 || (share && a.n > WHOLE)) {
        return err_set(e, -EINVAL, "\"%s\" is not %s", text,
                       share ? "a share from 0% to 100%" : "0 or more");
    }
    *ret = a;
    return 0;
}

static int read_item(const char *item, char sign, struct evict_amount list[EVICT_SIGNALS],
                     struct err *e)
{
    enum evict_signal s;
    const char *value;
    struct evict_amount a;
    int r = split(item, sign, &s, &value, e);
    r = r < 0 ? r : read_amount(value, &a, e);
    if (r == 0 && list) {
        list[s] = a;
    }
    return r;
}

int evict_read_threshold(const char *item, struct evict_amount list[EVICT_SIGNALS], struct err *e)
{
    return read_item(item, '<', list, e);
}

int evict_read_reclaim(const char *item, struct evict_amount list[EVICT_SIGNALS], struct err *e)
{
    return read_item(item, '=', list, e);
}

int evict_read_grace(const char *item, int64_t list_ns[EVICT_SIGNALS], struct err *e)
{
    enum evict_signal s;
    const char *value;
    int64_t ns;
    int r = split(item, '=', &s, &value, e);
    if (r == 0 && (time_parse_duration(value, &ns) < 0 || ns < 0)) {
        r = err_set(e, -EINVAL, "\"%s\" is not a duration such as 5m or 1m30s", value);
    }
    if (r == 0 && list_ns) {
        list_ns[s] = ns;
    }
    return r;
}

/* ---- signals ---- */

int64_t evict_amount_of(const struct evict_amount *a, int64_t capacity)
{
    return !a->set ? 0 : a->share ? (int64_t) ((__int128) capacity * a->n / WHOLE) : a->n;
}

/* Whether the signal is below its threshold; one that was before has to get above it by what is to be
 * reclaimed. */
static bool is_met(const struct evict_amount *threshold, const struct evict_amount *reclaim,
                   const struct evict_value *v, bool before)
{
    int64_t limit = evict_amount_of(threshold, v->capacity);
    int64_t more = before ? evict_amount_of(reclaim, v->capacity) : 0;
    return threshold->set && v->capacity > 0 &&
           v->available < (limit > INT64_MAX - more ? INT64_MAX : limit + more);
}

void evict_update(struct evict_state *s, const struct evict_settings *c,
                  const struct evict_value v[EVICT_SIGNALS], int64_t now_ns, struct evict_need *ret)
{
    *ret = (struct evict_need){0};
    for (size_t i = 0; i < EVICT_SIGNALS; i++) {
        bool soft = is_met(&c->soft[i], &c->reclaim[i], &v[i], s->met[i].soft);
        s->met[i].hard = is_met(&c->hard[i], &c->reclaim[i], &v[i], s->met[i].hard);
        s->met[i].soft_since_ns = soft && s->met[i].soft ? s->met[i].soft_since_ns : now_ns;
        s->met[i].soft = soft;
        if (soft || s->met[i].hard) {
            s->on[signals[i].condition] = true;
            s->seen_ns[signals[i].condition] = now_ns;
        }
        bool ripe = soft && now_ns - s->met[i].soft_since_ns >= c->soft_grace_ns[i];
        if (!ret->needed && (s->met[i].hard || ripe)) {
            const struct evict_amount *t = s->met[i].hard ? &c->hard[i] : &c->soft[i];
            *ret = (struct evict_need){.needed = true,
                                       .signal = (enum evict_signal) i,
                                       .hard = s->met[i].hard,
                                       .threshold = evict_amount_of(t, v[i].capacity),
                                       .available = v[i].available};
        }
    }
    for (size_t i = 0; i < EVICT_CONDITIONS; i++) {
        s->on[i] =
            s->on[i] && (s->seen_ns[i] == now_ns || now_ns - s->seen_ns[i] < c->transition_ns);
    }
}

/* ---- which pod ---- */

static int64_t usage_of(enum evict_signal s, const struct evict_usage *u)
{
    int64_t n = s == EVICT_MEMORY                                       ? u->memory
                : s == EVICT_NODEFS || s == EVICT_IMAGEFS               ? u->disk
                : s == EVICT_NODEFS_INODES || s == EVICT_IMAGEFS_INODES ? u->inodes
                                                                        : u->pids;
    return MAX(n, (int64_t) 0);
}

/* The use above the request; what cannot be requested is used above it. */
static int64_t excess_of(enum evict_signal s, const struct evict_usage *u)
{
    bool requested = s == EVICT_MEMORY || s == EVICT_NODEFS || s == EVICT_IMAGEFS;
    int64_t request =
        requested ? api_pod_amount(json_get(u->pod, "spec"), "requests", signals[s].resource, 0)
                  : 0;
    return usage_of(s, u) - request;
}

/* Whether 'a' goes before 'b'. */
static bool goes_before(enum evict_signal s, const struct evict_usage *a,
                        const struct evict_usage *b)
{
    int64_t x = excess_of(s, a), y = excess_of(s, b);
    int64_t p = pod_priority(a->pod), q = pod_priority(b->pod);
    if (s != EVICT_PIDS && (x > 0) != (y > 0)) {
        return x > 0;
    }
    return p != q ? p < q : x > y;
}

int evict_choose(const struct evict_need *need, const struct evict_usage *pods, size_t n)
{
    int best = -1;
    for (size_t i = 0; i < n; i++) {
        if (!pod_is_critical(pods[i].pod) &&
            (best < 0 || goes_before(need->signal, &pods[i], &pods[best]))) {
            best = (int) i;
        }
    }
    return best;
}

/* ---- words ---- */

/* Appends an amount as Kubernetes writes one of the format BinarySI. */
static void add_binary(struct strbuf *out, int64_t n)
{
    static const char *const units[] = {"", "Ki", "Mi", "Gi", "Ti"};
    size_t u = 0;
    while (n && n % 1024 == 0 && u + 1 < ARRAY_SIZE(units)) {
        n /= 1024;
        u++;
    }
    strbuf_addf(out, "%lld%s", (long long) n, units[u]);
}

static const struct json *container_of(const struct json *pod, const char *name)
{
    const struct json *c = pod_container_named(pod, name, NULL);
    return json_get(c, "resources");
}

char *evict_message(const struct evict_need *need, const struct evict_usage *pod)
{
    struct strbuf out = STRBUF_INIT;
    const char *resource = signals[need->signal].resource;
    bool memory = need->signal == EVICT_MEMORY, disk = streq(resource, STORAGE);
    strbuf_addf(&out, "The node was low on resource: %s. Threshold quantity: ", resource);
    add_binary(&out, need->threshold);
    strbuf_adds(&out, ", available: ");
    add_binary(&out, need->available);
    strbuf_adds(&out, ". ");
    for (size_t i = 0; i < pod->n_containers && (memory || disk); i++) {
        const struct evict_part *c = &pod->containers[i];
        int64_t uses = memory ? c->memory : c->disk;
        const struct json *resources = container_of(pod->pod, c->name);
        int64_t request = api_amount(json_get(resources, "requests"), resource, 0);
        if (uses > request) {
            strbuf_addf(&out, "Container %s was using ", c->name);
            add_binary(&out, uses);
            strbuf_adds(&out, ", request is ");
            add_binary(&out, request);
            strbuf_addf(&out, ", has larger consumption of %s. ", resource);
        }
    }
    return strbuf_steal(&out);
}

/* ---- limits of local storage ---- */

bool evict_measures_volume(const struct json *volume)
{
    const struct json *source = json_get(volume, "emptyDir");
    return source && !*json_get_text(source, "medium");
}

/* The limit of an emptyDir on disk as it is written; NULL: it has none. */
static const char *size_limit(const struct json *volume)
{
    const char *text = json_get_text(json_get(volume, "emptyDir"), "sizeLimit");
    return evict_measures_volume(volume) && *text && !streq(text, "0") ? text : NULL;
}

bool evict_has_storage_limit(const struct json *pod)
{
    const struct json *v;
    JSON_FOREACH (v, json_path(pod, "spec", "volumes", NULL)) {
        if (size_limit(v)) {
            return true;
        }
    }
    return api_pod_amount(json_get(pod, "spec"), "limits", STORAGE, 0) > 0;
}

static const struct evict_part *part_of(const struct evict_part *list, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++) {
        if (streq(list[i].name, name)) {
            return &list[i];
        }
    }
    return NULL;
}

char *evict_storage_limit(const struct evict_usage *u)
{
    const struct json *spec = json_get(u->pod, "spec"), *v;
    JSON_FOREACH (v, json_get(spec, "volumes")) {
        const char *name = json_get_text(v, "name"), *limit = size_limit(v);
        const struct evict_part *p = part_of(u->volumes, u->n_volumes, name);
        if (limit && p && p->disk > api_amount(json_get(v, "emptyDir"), "sizeLimit", INT64_MAX)) {
            return xasprintf("Usage of EmptyDir volume \"%s\" exceeds the limit \"%s\". ", name,
                             limit);
        }
    }
    int64_t all = api_pod_amount(spec, "limits", STORAGE, 0);
    if (all > 0 && u->disk > all) {
        struct strbuf out = STRBUF_INIT;
        strbuf_adds(&out,
                    "Pod ephemeral local storage usage exceeds the total limit of containers ");
        add_binary(&out, all);
        strbuf_adds(&out, ". ");
        return strbuf_steal(&out);
    }
    for (size_t i = 0; i < u->n_containers; i++) {
        const struct json *limits = json_get(container_of(u->pod, u->containers[i].name), "limits");
        int64_t limit = api_amount(limits, STORAGE, 0);
        if (limit > 0 && u->containers[i].disk > limit) {
            return xasprintf("Container %s exceeded its local ephemeral storage limit \"%s\". ",
                             u->containers[i].name, json_get_text(limits, STORAGE));
        }
    }
    return NULL;
}
