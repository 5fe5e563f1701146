/* SPDX-License-Identifier: Apache-2.0 */
/* Thresholds and conditions over time, the order of eviction, limits of local storage, and words. */
#include "pod/evict.h"

#include "base/timeutil.h"

#include "json_text.h"

#define S INT64_C(1000000000)
#define MI (INT64_C(1) << 20)

static void thresholds_as_they_are_written(void **state)
{
    static const struct {
        const char *item;
        enum evict_signal signal;
        bool share;
        int64_t n;
        const char *error;
    } rows[] = {
        {"memory.available<100Mi", EVICT_MEMORY, false, 100 * MI, NULL},
        {"nodefs.available<10%", EVICT_NODEFS, true, 10000, NULL},
        {"nodefs.inodesFree<5.5%", EVICT_NODEFS_INODES, true, 5500, NULL},
        {"imagefs.available<0", EVICT_IMAGEFS, false, 0, NULL},
        {"pid.available<1k", EVICT_PIDS, false, 1000, NULL},
        {"memory.available=100Mi", 0, false, 0, "is not SIGNAL<VALUE"},
        {"memory<100Mi", 0, false, 0, "\"memory\" is none of the signals"},
        {"memory.available<", 0, false, 0, "\"\": "},
        {"memory.available<101%", 0, false, 0, "is not a share from 0% to 100%"},
        {"memory.available<-1", 0, false, 0, "is not 0 or more"},
        {"memory.available<%", 0, false, 0, "\"%\": "},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct evict_amount list[EVICT_SIGNALS] = {0};
        struct err e = {0};
        int r = evict_read_threshold(rows[i].item, list, &e);
        assert_int_equal(r, rows[i].error ? -EINVAL : 0);
        if (rows[i].error) {
            assert_non_null(strstr(e.text, rows[i].error));
        } else {
            assert_true(list[rows[i].signal].set);
            assert_int_equal(list[rows[i].signal].share, rows[i].share);
            assert_int_equal(list[rows[i].signal].n, rows[i].n);
        }
    }
}

static void grace_periods(void **state)
{
    int64_t graces[EVICT_SIGNALS] = {0};
    assert_int_equal(evict_read_grace("pid.available=1m", graces, NULL), 0);
    assert_int_equal(graces[EVICT_PIDS], 60 * S);
    assert_int_equal(evict_read_grace("pid.available=1", graces, NULL), -EINVAL);
    assert_int_equal(evict_read_grace("pid.available=-1m", graces, NULL), -EINVAL);
}

static void conditions_and_needs_over_time(void **state)
{
    struct evict_settings c = {.transition_ns = 300 * S};
    struct evict_state s = {0};
    struct evict_need need;
    assert_int_equal(evict_read_threshold("memory.available<100Mi", c.hard, NULL), 0);
    assert_int_equal(evict_read_threshold("memory.available<300Mi", c.soft, NULL), 0);
    assert_int_equal(evict_read_threshold("nodefs.available<10%", c.hard, NULL), 0);
    assert_int_equal(evict_read_reclaim("memory.available=50Mi", c.reclaim, NULL), 0);
    assert_int_equal(evict_read_grace("memory.available=60s", c.soft_grace_ns, NULL), 0);
    static const struct {
        int64_t at_s, memory_mi, disk; /* 'disk' of 1000; -1: not known. */
        bool pressure, disk_pressure, needed, hard;
        enum evict_signal signal;
    } rows[] = {
        {1, 1000, 500, false, false, false, false, 0},
        {2, 300, 500, false, false, false, false, 0},
        {10, 299, 500, true, false, false, false, 0},
        {69, 299, 500, true, false, false, false, 0},
        {70, 299, 500, true, false, true, false, EVICT_MEMORY}, /* The grace is over. */
        {71, 349, 500, true, false, true, false, EVICT_MEMORY}, /* Not enough is reclaimed. */
        {72, 350, 500, true, false, false, false, 0},
        {73, 310, 500, true, false, false, false, 0},       /* Above the threshold. */
        {80, 99, 99, true, true, true, true, EVICT_MEMORY}, /* Memory comes first. */
        {81, 149, 99, true, true, true, true, EVICT_MEMORY},
        {82, 1000, 99, true, true, true, true, EVICT_NODEFS},
        {83, 1000, 100, true, true, false, false, 0},
        {84, 1000, -1, true, true, false, false, 0}, /* What is not known is no pressure. */
        {380, 1000, 500, true, true, false, false, 0},
        {381, 1000, 500, false, true, false, false, 0}, /* 300 s after it was seen last. */
        {382, 1000, 500, false, false, false, false, 0},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct evict_value v[EVICT_SIGNALS] = {
            [EVICT_MEMORY] = {rows[i].memory_mi * MI, 4096 * MI},
            [EVICT_NODEFS] = {rows[i].disk, rows[i].disk < 0 ? 0 : 1000},
        };
        print_message("at %lld s\n", (long long) rows[i].at_s);
        evict_update(&s, &c, v, rows[i].at_s * S, &need);
        assert_int_equal(s.on[EVICT_MEMORY_PRESSURE], rows[i].pressure);
        assert_int_equal(s.on[EVICT_DISK_PRESSURE], rows[i].disk_pressure);
        assert_int_equal(need.needed, rows[i].needed);
        if (need.needed) {
            assert_int_equal(need.hard, rows[i].hard);
            assert_int_equal(need.signal, rows[i].signal);
        }
    }
}

#define POD(name, more, priority, request)                                   \
    "{'metadata':{'name':'" name "'" more "},'spec':{'priority':" priority   \
    ",'containers':[{'name':'c','resources':{'requests':{'memory':'" request \
    "','ephemeral-storage':'" request "'}}}]}}"

static void the_order_of_eviction(void **state)
{
    static const struct {
        const char *pod;
        int64_t memory, disk, pids;
    } rows[] = {
        {POD("static", ",'annotations':{'kubernetes.io/config.source':'file'}", "0", "0"), 9 * MI,
         9 * MI, 90},
        {POD("critical", "", "2000000000", "0"), 9 * MI, 9 * MI, 90},
        {POD("within", "", "-5", "9Mi"), 8 * MI, 8 * MI, 3},
        {POD("important", "", "10", "1Mi"), 9 * MI, 9 * MI, 5},
        {POD("little", "", "0", "2Mi"), 4 * MI, 9 * MI, 7},
        {POD("much", "", "0", "2Mi"), 5 * MI, 3 * MI, 6},
        {POD("unknown", "", "0", "0"), -1, -1, -1},
    };
    static const struct {
        enum evict_signal signal;
        const char *order[5];
    } orders[] = {
        {EVICT_MEMORY, {"much", "little", "important", "within", "unknown"}},
        {EVICT_NODEFS, {"little", "much", "important", "within", "unknown"}},
        {EVICT_PIDS, {"within", "little", "much", "unknown", "important"}},
    };
    struct json *objects[ARRAY_SIZE(rows)];
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        objects[i] = from(rows[i].pod);
    }
    for (size_t o = 0; o < ARRAY_SIZE(orders); o++) {
        struct evict_need need = {.needed = true, .signal = orders[o].signal};
        struct evict_usage u[ARRAY_SIZE(rows)];
        size_t n = ARRAY_SIZE(rows);
        for (size_t i = 0; i < n; i++) {
            u[i] = (struct evict_usage){.pod = objects[i],
                                        .memory = rows[i].memory,
                                        .disk = rows[i].disk,
                                        .pids = rows[i].pids};
        }
        for (size_t k = 0; k < ARRAY_SIZE(orders[o].order); k++) {
            int best = evict_choose(&need, u, n);
            assert_true(best >= 0);
            assert_string_equal(json_get_text(json_get(u[best].pod, "metadata"), "name"),
                                orders[o].order[k]);
            u[best] = u[--n];
        }
        assert_int_equal(evict_choose(&need, u, n), -1); /* Only critical ones are left. */
    }
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        json_free(objects[i]);
    }
}

static void the_words_of_an_eviction(void **state)
{
    CLEANUP(json_free) struct json *pod = from(POD("a", "", "0", "10Mi"));
    const struct evict_part parts[] = {{"c", 60 * MI, 3}};
    struct evict_usage u = {.pod = pod, .containers = parts, .n_containers = 1};
    struct evict_need need = {
        .needed = true, .signal = EVICT_MEMORY, .threshold = 100 * MI, .available = 50 * MI + 1024};
    CLEANUP_FREE char *text = evict_message(&need, &u);
    assert_string_equal(text,
                        "The node was low on resource: memory. Threshold quantity: 100Mi, "
                        "available: 51201Ki. Container c was using 60Mi, request is 10Mi, has "
                        "larger consumption of memory. ");
    need.signal = EVICT_NODEFS;
    CLEANUP_FREE char *disk = evict_message(&need, &u);
    assert_string_equal(disk, "The node was low on resource: ephemeral-storage. Threshold "
                              "quantity: 100Mi, available: 51201Ki. ");
    need.signal = EVICT_PIDS;
    need.threshold = 12;
    need.available = 0;
    CLEANUP_FREE char *pids = evict_message(&need, &u);
    assert_string_equal(pids, "The node was low on resource: pids. Threshold quantity: 12, "
                              "available: 0. ");
}

static void limits_of_local_storage(void **state)
{
#define VOLUMES                                                                          \
    "'volumes':[{'name':'v','emptyDir':{'sizeLimit':'5Mi'}},{'name':'w','emptyDir':{}}," \
    "{'name':'m','emptyDir':{'medium':'Memory','sizeLimit':'1Mi'}}]"
#define LIMITED "'containers':[{'name':'c','resources':{'limits':{'ephemeral-storage':'8Mi'}}}]"
    static const struct {
        const char *spec;
        bool limited;
        int64_t volume, container, all;
        const char *message;
    } rows[] = {
        {"'containers':[{'name':'c'}]", false, 9 * MI, 9 * MI, 9 * MI, NULL},
        {VOLUMES, true, 5 * MI, 0, 5 * MI, NULL},
        {VOLUMES, true, 5 * MI + 1, 0, 5 * MI,
         "Usage of EmptyDir volume \"v\" exceeds the limit \"5Mi\". "},
        {VOLUMES, true, -1, 0, -1, NULL},
        {LIMITED, true, 0, 0, 8 * MI, NULL},
        {LIMITED, true, 0, 0, 8 * MI + 1,
         "Pod ephemeral local storage usage exceeds the total limit of containers 8Mi. "},
        {LIMITED ",'initContainers':[{'name':'i','resources':{'limits':{"
                 "'ephemeral-storage':'20Mi'}}}]",
         true, 0, 8 * MI + 1, 9 * MI,
         "Container c exceeded its local ephemeral storage limit \"8Mi\". "},
        {"'volumes':[{'name':'v','emptyDir':{'sizeLimit':'0'}}]", false, 9, 0, 0, NULL},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP_FREE char *text = xasprintf("{'spec':{%s}}", rows[i].spec);
        CLEANUP(json_free) struct json *pod = from(text);
        const struct evict_part volumes[] = {
            {"v", 0, rows[i].volume}, {"m", 0, 9 * MI}, {"w", 0, 9 * MI}};
        const struct evict_part containers[] = {{"c", 0, rows[i].container}};
        struct evict_usage u = {.pod = pod,
                                .disk = rows[i].all,
                                .containers = containers,
                                .volumes = volumes,
                                .n_containers = 1,
                                .n_volumes = ARRAY_SIZE(volumes)};
        CLEANUP_FREE char *message = evict_storage_limit(&u);
        assert_int_equal(evict_has_storage_limit(pod), rows[i].limited);
        assert_int_equal(message != NULL, rows[i].message != NULL);
        if (message) {
            assert_string_equal(message, rows[i].message);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(thresholds_as_they_are_written), cmocka_unit_test(grace_periods),
        cmocka_unit_test(conditions_and_needs_over_time), cmocka_unit_test(the_order_of_eviction),
        cmocka_unit_test(the_words_of_an_eviction),       cmocka_unit_test(limits_of_local_storage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
