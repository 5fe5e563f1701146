/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/resources.h"

#include "api/kinds/kind_pod.h"
#include "api/requests.h"
#include "base/mem.h"
#include "pod/pod.h"

#define QUOTA_MIN_US 1000
#define OOM_GUARANTEED (-997)
#define OOM_BEST_EFFORT 1000
#define OOM_BURSTABLE_MIN 3
#define NODE_CRITICAL_PRIORITY INT64_C(2000001000)

int64_t pod_amount(const struct json *pod, const char *which, const char *name)
{
    size_t n = pod_count_containers(pod);
    for (size_t i = 0; i < n && streq(which, "limits"); i++) {
        enum pod_container_kind kind;
        const struct json *c = pod_container_at(pod, i, &kind);
        if (kind != POD_EPHEMERAL && api_container_amount(c, which, name, 0) == 0) {
            return -1;
        }
    }
    return api_pod_amount(json_get(pod, "spec"), which, name, 0);
}

int64_t pod_cpu_shares(int64_t milli)
{
    __int128 shares = milli > 0 ? (__int128) milli * 1024 / 1000 : 0;
    return (int64_t) MIN(MAX(shares, (__int128) POD_CPU_SHARES_MIN), (__int128) POD_CPU_SHARES_MAX);
}

/* The base-2 logarithm of 'v' times 2^20. */
static int64_t log2_scaled(int64_t v)
{
    int64_t result = 0;
    int bits = 63 - __builtin_clzll((unsigned long long) v);
    unsigned __int128 x = ((unsigned __int128) v << 40) >> bits; /* 1 to 2, scaled by 2^40. */
    for (int i = 0; i < 20; i++) {
        x = x * x >> 40;
        result <<= 1;
        if (x >> 41) {
            x >>= 1;
            result |= 1;
        }
    }
    return ((int64_t) bits << 20) + result;
}

/* 10 to the power 'e' / 2^20, rounded up, for exponents of 0 to 4. */
static int64_t power_of_10(int64_t e)
{
    int64_t low = 1, high = 10000;
    /* log2(10) * 2^20 */
    int64_t want = (int64_t) ((__int128) e * 3483294 >> 20);
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (log2_scaled(middle) + 1 >= want) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

int64_t pod_cpu_weight(int64_t shares)
{
    /* opencontainers/cgroups: 10^(L*L/612 + 125*L/612 - 7/34) with L = log2(shares). */
    int64_t s = MIN(MAX(shares, (int64_t) POD_CPU_SHARES_MIN), (int64_t) POD_CPU_SHARES_MAX);
    if (s == POD_CPU_SHARES_MIN) {
        return 1;
    }
    if (s == POD_CPU_SHARES_MAX) {
        return 10000;
    }
    int64_t l = log2_scaled(s);
    int64_t e = (int64_t) ((((__int128) l * l >> 20) + (__int128) 125 * l) / 612) -
                (int64_t) 7 * (1 << 20) / 34;
    return power_of_10(MAX(e, (int64_t) 0));
}

int64_t pod_cpu_quota(int64_t milli)
{
    if (milli <= 0) {
        return -1;
    }
    __int128 quota = (__int128) milli * POD_CPU_PERIOD_US / 1000;
    return (int64_t) MAX(MIN(quota, (__int128) INT64_MAX), (__int128) QUOTA_MIN_US);
}

int64_t pod_oom_score_adj(const struct json *pod, const struct json *container, int64_t capacity)
{
    const char *qos = pod_qos_class(json_get(pod, "spec"));
    if (pod_priority(pod) >= NODE_CRITICAL_PRIORITY || streq(qos, "Guaranteed")) {
        return OOM_GUARANTEED;
    }
    if (streq(qos, "BestEffort")) {
        return OOM_BEST_EFFORT;
    }
    int64_t request = MAX(api_container_amount(container, "requests", "memory", -1), (int64_t) 0);
    int64_t adj = 1000 - (capacity > 0 ? (int64_t) ((__int128) 1000 * request / capacity) : 0);
    return MIN(MAX(adj, (int64_t) OOM_BURSTABLE_MIN), (int64_t) OOM_BEST_EFFORT - 1);
}

/* "hugepages-2Mi" as CRI writes it: "2MB". */
static const char *page_size(const char *resource, struct arena *a)
{
    const char *size = resource + strlen("hugepages-");
    size_t digits = strspn(size, "0123456789");
    char unit = size[digits] == 'G' ? 'G' : size[digits] == 'K' ? 'K' : 'M';
    return arena_printf(a, "%.*s%cB", (int) digits, size, unit);
}

void pod_container_resources(const struct json *pod, const struct json *container, int64_t capacity,
                             struct arena *a, struct runtime_resources *ret)
{
    int64_t request = api_container_amount(container, "requests", "cpu", -1);
    int64_t limit = api_container_amount(container, "limits", "cpu", -1);
    int64_t memory = api_container_amount(container, "limits", "memory", -1);
    /* What has no limit is 0, not set: crun 1.8 writes -1 in a form that the kernel refuses. */
    *ret = (struct runtime_resources){
        .cpu_shares = pod_cpu_shares(request),
        .cpu_period = POD_CPU_PERIOD_US,
        .cpu_quota = MAX(pod_cpu_quota(limit), (int64_t) 0),
        .memory_limit = MAX(memory, (int64_t) 0),
        .oom_score_adj = pod_oom_score_adj(pod, container, capacity),
    };
    const struct json *limits = json_path(container, "resources", "limits", NULL);
    struct runtime_hugepages *pages = ARENA_NEW(a, struct runtime_hugepages, json_count(limits));
    for (size_t i = 0; i < json_count(limits); i++) {
        const char *key = json_key_at(limits, i);
        int64_t n = api_amount(limits, key, 0);
        if (str_has_prefix(key, "hugepages-")) {
            pages[ret->n_hugepages++] =
                (struct runtime_hugepages){.size = page_size(key, a), .limit = (uint64_t) n};
        }
    }
    ret->hugepages = pages;
}

char *pod_cgroup_parent(const struct json *pod, const char *root, bool systemd, struct arena *a)
{
    const char *qos = pod_qos_class(json_get(pod, "spec"));
    const char *class = streq(qos, "Burstable")    ? "burstable"
                        : streq(qos, "BestEffort") ? "besteffort"
                                                   : NULL;
    const char *top = streq(root, "/") ? "" : root;
    if (!systemd) {
        return arena_printf(a, "%s/kubepods%s%s/pod%s", top, class ? "/" : "", class ? class : "",
                            pod_uid(pod));
    }
    char *uid = arena_strdup(a, pod_uid(pod));
    for (char *p = uid; *p; p++) {
        *p = *p == '-' ? '_' : *p;
    }
    return arena_printf(a, "kubepods%s%s-pod%s.slice", class ? "-" : "", class ? class : "", uid);
}

static void add_value(struct pod_cgroup_value *v, size_t *n, const char *controller,
                      const char *file, const char *value)
{
    v[(*n)++] = (struct pod_cgroup_value){.controller = controller, .file = file, .value = value};
}

size_t pod_cgroup_values(const struct json *pod, bool v2, int64_t pids_max, struct arena *a,
                         struct pod_cgroup_value **ret)
{
    struct pod_cgroup_value *v = ARENA_NEW(a, struct pod_cgroup_value, 8);
    size_t n = 0;
    int64_t shares = pod_cpu_shares(pod_amount(pod, "requests", "cpu"));
    int64_t quota = pod_cpu_quota(pod_amount(pod, "limits", "cpu"));
    int64_t memory = pod_amount(pod, "limits", "memory");
    if (streq(pod_qos_class(json_get(pod, "spec")), "BestEffort")) {
        shares = POD_CPU_SHARES_MIN;
    }
    if (v2) {
        add_value(v, &n, "cpu", "cpu.weight",
                  arena_printf(a, "%lld", (long long) pod_cpu_weight(shares)));
        if (quota > 0) {
            add_value(v, &n, "cpu", "cpu.max",
                      arena_printf(a, "%lld %d", (long long) quota, POD_CPU_PERIOD_US));
        }
        if (memory > 0) {
            add_value(v, &n, "memory", "memory.max", arena_printf(a, "%lld", (long long) memory));
        }
    } else {
        add_value(v, &n, "cpu", "cpu.shares", arena_printf(a, "%lld", (long long) shares));
        if (quota > 0) {
            add_value(v, &n, "cpu", "cpu.cfs_period_us", arena_printf(a, "%d", POD_CPU_PERIOD_US));
            add_value(v, &n, "cpu", "cpu.cfs_quota_us", arena_printf(a, "%lld", (long long) quota));
        }
        if (memory > 0) {
            add_value(v, &n, "memory", "memory.limit_in_bytes",
                      arena_printf(a, "%lld", (long long) memory));
        }
    }
    if (pids_max > 0) {
        add_value(v, &n, "pids", "pids.max", arena_printf(a, "%lld", (long long) pids_max));
    }
    *ret = v;
    return n;
}

/* ---- groups of classes ---- */

const char *pod_class_group(enum pod_class_group g)
{
    static const char *const names[POD_CLASS_GROUPS] = {"", "/burstable", "/besteffort"};
    return names[g];
}

size_t pod_class_group_values(enum pod_class_group g, const struct json *const *pods, size_t n_pods,
                              int64_t milli_cpu, int64_t memory, bool v2, struct arena *a,
                              struct pod_cgroup_value **ret)
{
    struct pod_cgroup_value *v = ARENA_NEW(a, struct pod_cgroup_value, 2);
    size_t n = 0;
    int64_t milli = g == POD_GROUP_ALL ? milli_cpu : 0;
    for (size_t i = 0; i < n_pods && g == POD_GROUP_BURSTABLE; i++) {
        if (streq(pod_qos_class(json_get(pods[i], "spec")), "Burstable")) {
            int64_t request = pod_amount(pods[i], "requests", "cpu");
            milli = milli > INT64_MAX - request ? INT64_MAX : milli + request;
        }
    }
    int64_t shares = pod_cpu_shares(milli);
    add_value(v, &n, "cpu", v2 ? "cpu.weight" : "cpu.shares",
              arena_printf(a, "%lld", (long long) (v2 ? pod_cpu_weight(shares) : shares)));
    if (g == POD_GROUP_ALL && memory > 0) {
        add_value(v, &n, "memory", v2 ? "memory.max" : "memory.limit_in_bytes",
                  arena_printf(a, "%lld", (long long) memory));
    }
    *ret = v;
    return n;
}
