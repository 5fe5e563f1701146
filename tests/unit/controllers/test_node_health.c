/* SPDX-License-Identifier: Apache-2.0 */
/* The pure parts of the node life-cycle controller and of the scheduler's queue. */
#include "api/condition.h"
#include "base/mem.h"
#include "controllers/lifecycle/node_health.h"
#include "controllers/scheduling/pending.h"
#include "controllers/scheduling/scheduler_metrics.h"

#include "base/str.h"

#include <setjmp.h>
#include <string.h>

#include <cmocka.h>

#define T0 INT64_C(1767225600000) /* 2026-01-01T00:00:00Z */

/* Parses a text in which ' stands for ". */
static struct json *parse(const char *text)
{
    CLEANUP_FREE char *s = xstrdup(text);
    struct json *o = NULL;
    for (char *p = s; *p; p++) {
        *p = *p == '\'' ? '"' : *p;
    }
    assert_int_equal(json_parse(s, strlen(s), &o, NULL), 0);
    return o;
}

static char *taints(const struct json *node)
{
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    const struct json *t;
    JSON_FOREACH (t, json_path(node, "spec", "taints", NULL)) {
        strbuf_addf(&out, "%s%s:%s", out.size ? " " : "", json_get_text(t, "key"),
                    json_get_text(t, "effect"));
    }
    return strbuf_steal(&out);
}

static void conditions_become_taints(void **state)
{
    static const struct {
        const char *conditions, *spec;
        bool evicts;
        const char *want;
    } cases[] = {
        {"{'type':'Ready','status':'True'}", "{}", true, ""},
        {"{'type':'Ready','status':'False'}", "{}", false,
         "node.kubernetes.io/not-ready:NoSchedule"},
        {"{'type':'Ready','status':'False'}", "{}", true,
         "node.kubernetes.io/not-ready:NoSchedule node.kubernetes.io/not-ready:NoExecute"},
        {"{'type':'Ready','status':'Unknown'}", "{}", true,
         "node.kubernetes.io/unreachable:NoSchedule node.kubernetes.io/unreachable:NoExecute"},
        {"{'type':'Ready','status':'True'},{'type':'MemoryPressure','status':'True'},"
         "{'type':'DiskPressure','status':'True'},{'type':'PIDPressure','status':'True'},"
         "{'type':'NetworkUnavailable','status':'True'}",
         "{'unschedulable':true}", true,
         "node.kubernetes.io/memory-pressure:NoSchedule "
         "node.kubernetes.io/disk-pressure:NoSchedule node.kubernetes.io/pid-pressure:NoSchedule "
         "node.kubernetes.io/network-unavailable:NoSchedule "
         "node.kubernetes.io/unschedulable:NoSchedule"},
        /* What an administrator set stays; what no longer holds goes. */
        {"{'type':'Ready','status':'True'}",
         "{'taints':[{'key':'mine','effect':'NoExecute'},"
         "{'key':'node.kubernetes.io/unreachable','effect':'NoExecute'}]}",
         true, "mine:NoExecute"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *text = xasprintf("{'spec':%s,'status':{'conditions':[%s]}}",
                                            cases[i].spec, cases[i].conditions);
        CLEANUP(json_free) struct json *node = parse(text);
        (void) node_health_set_taints(node, cases[i].evicts, T0);
        CLEANUP_FREE char *got = taints(node);
        assert_string_equal(got, cases[i].want);
        assert_false(node_health_set_taints(node, cases[i].evicts, T0 + 1000));
    }
}

static void a_silent_kubelet_leaves_nothing_known(void **state)
{
    CLEANUP(json_free)
    struct json *node = parse("{'status':{'conditions':[{'type':'Ready','status':'True'},"
                              "{'type':'NetworkUnavailable','status':'False'}]}}");
    assert_true(node_health_mark_unknown(node, T0));
    assert_int_equal(node_health_state(node), NODE_UNKNOWN);
    assert_string_equal(json_get_text(condition_find(node, "Ready"), "reason"),
                        "NodeStatusUnknown");
    assert_string_equal(json_get_text(condition_find(node, "DiskPressure"), "reason"),
                        "NodeStatusNeverUpdated");
    /* The kubelet does not keep this one. */
    assert_string_equal(json_get_text(condition_find(node, "NetworkUnavailable"), "status"),
                        "False");
    assert_false(node_health_mark_unknown(node, T0 + 1000));
}

static void pods_leave_after_the_time_they_tolerate(void **state)
{
    static const struct {
        const char *tolerations, *taints;
        int64_t want; /* Seconds after T0; -1: never. */
    } cases[] = {
        {"", "{'key':'k','effect':'NoSchedule'}", -1},
        {"", "{'key':'k','effect':'NoExecute','timeAdded':'2026-01-01T00:00:00Z'}", 0},
        {"",
         "{'key':'node.kubernetes.io/unreachable','effect':'NoExecute',"
         "'timeAdded':'2026-01-01T00:00:00Z'}",
         300},
        {"{'operator':'Exists'}", "{'key':'k','effect':'NoExecute'}", -1},
        {"{'key':'k','operator':'Exists','tolerationSeconds':7}",
         "{'key':'k','effect':'NoExecute','timeAdded':'2026-01-01T00:00:00Z'}", 7},
        {"{'key':'k','operator':'Exists','tolerationSeconds':-7}",
         "{'key':'k','effect':'NoExecute','timeAdded':'2026-01-01T00:00:00Z'}", 0},
        {"{'operator':'Exists','tolerationSeconds':9},{'operator':'Exists'}",
         "{'key':'k','effect':'NoExecute','timeAdded':'2026-01-01T00:00:00Z'}", 9},
        {"{'key':'a','operator':'Exists','tolerationSeconds':9},"
         "{'key':'b','operator':'Exists','tolerationSeconds':5}",
         "{'key':'a','effect':'NoExecute','timeAdded':'2026-01-01T00:00:00Z'},"
         "{'key':'b','effect':'NoExecute','timeAdded':'2026-01-01T00:00:10Z'}",
         9},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *p = xasprintf("{'spec':{'tolerations':[%s]}}", cases[i].tolerations);
        CLEANUP_FREE char *n = xasprintf("{'spec':{'taints':[%s]}}", cases[i].taints);
        CLEANUP(json_free) struct json *pod = parse(p);
        CLEANUP(json_free) struct json *node = parse(n);
        int64_t want = cases[i].want < 0 ? -1 : T0 + cases[i].want * 1000;
        assert_int_equal(node_health_leave_ms(pod, node), want);
    }
}

static void few_nodes_lose_their_pods_at_once(void **state)
{
    static const struct {
        struct zone_health z;
        uint64_t want;
    } cases[] = {
        {{10, 1}, 10000}, {{10, 5}, 10000},   {{10, 6}, 0},        {{10, 10}, 10000},
        {{3, 2}, 10000},  {{100, 54}, 10000}, {{100, 55}, 100000},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        assert_int_equal(node_health_pause_ms(&cases[i].z), cases[i].want);
    }
}

/* ---- the queue ---- */

static void assert_takes(struct pending *p, uint64_t now, const char *want)
{
    const char *key = pending_take(p, now);
    assert_string_equal(key ? key : "", want);
}

static void the_most_important_comes_first(void **state)
{
    struct pending *p = pending_new();
    pending_add(p, "n/c", 0, "2026-01-01T00:00:02Z");
    pending_add(p, "n/b", 0, "2026-01-01T00:00:01Z");
    pending_add(p, "n/a", -5, "2026-01-01T00:00:00Z");
    pending_add(p, "n/d", 9, "2026-01-01T00:00:09Z");
    pending_add(p, "n/e", 0, "2026-01-01T00:00:01Z");
    pending_remove(p, "n/c");
    assert_takes(p, 0, "n/d");
    assert_takes(p, 0, "n/b");
    assert_takes(p, 0, "n/e");
    assert_takes(p, 0, "n/a");
    assert_takes(p, 0, "");
    assert_int_equal(pending_size(p), 4);
    pending_free(p);
}

static void events_help_against_their_reasons_alone(void **state)
{
    struct pending *p = pending_new();
    pending_add(p, "n/a", 0, "");
    assert_takes(p, 0, "n/a");
    pending_put_back(p, "n/a", 2, 0);
    assert_takes(p, 5000, "");
    pending_move(p, 1, 5000);
    assert_takes(p, 5000, "");
    pending_move(p, 2, 5000);
    assert_takes(p, 5000, "n/a");
    /* The second delay is 2 s: an event before its end counts at its end. */
    pending_put_back(p, "n/a", 2, 5000);
    pending_move(p, 2, 5100);
    assert_int_equal(pending_due_ms(p), 7000);
    assert_takes(p, 6999, "");
    assert_takes(p, 7000, "n/a");
    /* An event while it is tried may have come too late for the attempt. */
    pending_move(p, 1, 7000);
    pending_put_back(p, "n/a", 2, 7000);
    assert_takes(p, 11000, "n/a");
    /* Without any event it is tried again after 5 minutes. */
    pending_put_back(p, "n/a", 2, 11000);
    assert_takes(p, 11000 + PENDING_WAIT_MAX_MS - 1, "");
    assert_takes(p, 11000 + PENDING_WAIT_MAX_MS, "n/a");
    /* The delay grows to 10 s and no further. */
    for (unsigned i = 0; i < 5; i++) {
        pending_retry(p, "n/a", 1000000 + i * 20000);
        assert_takes(p, 1000000 + i * 20000 + PENDING_BACKOFF_MAX_MS - 1, "");
        assert_takes(p, 1000000 + i * 20000 + PENDING_BACKOFF_MAX_MS, "n/a");
    }
    pending_free(p);
}

static void what_is_on_its_way_has_no_delay(void **state)
{
    struct pending *p = pending_new();
    pending_add(p, "n/a", 0, "");
    assert_takes(p, 0, "n/a");
    pending_hold(p, "n/a", 2, 0);
    pending_move(p, 1, 10);
    assert_takes(p, 10, "");
    pending_move(p, 2, 10);
    assert_takes(p, 10, "n/a");
    /* An event while it is tried counts at once. */
    pending_move(p, 2, 10);
    pending_hold(p, "n/a", 2, 10);
    assert_takes(p, 10, "n/a");
    pending_hold(p, "n/a", 2, 10);
    assert_takes(p, 10 + PENDING_WAIT_MAX_MS - 1, "");
    assert_takes(p, 10 + PENDING_WAIT_MAX_MS, "n/a");
    pending_free(p);
}

static void waiting_pods_are_counted(void **state)
{
    static const char *const keys[] = {"n/active", "n/taken", "n/backs-off", "n/waits"};
    struct pending *p = pending_new();
    struct scheduler_facts facts = {.gated = 7, .attempts = {3, 2, 1}, .preemptions = 5};
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    for (size_t i = ARRAY_SIZE(keys); i-- > 0;) {
        pending_add(p, keys[i], (int32_t) i, "");
        if (i) {
            assert_takes(p, 0, keys[i]);
        }
    }
    pending_retry(p, "n/backs-off", 0);
    pending_put_back(p, "n/waits", 2, 0);
    pending_count(p, &facts.active, &facts.backoff, &facts.unschedulable);
    prom_write(&scheduler_metrics, &facts, &out);
    static const char *const lines[] = {
        "scheduler_pending_pods{queue=\"active\"} 2\n",
        "scheduler_pending_pods{queue=\"backoff\"} 1\n",
        "scheduler_pending_pods{queue=\"unschedulable\"} 1\n",
        "scheduler_pending_pods{queue=\"gated\"} 7\n",
        "scheduler_schedule_attempts_total{profile=\"default-scheduler\",result=\"scheduled\"} 3\n",
        "{profile=\"default-scheduler\",result=\"unschedulable\"} 2\n",
        "{profile=\"default-scheduler\",result=\"error\"} 1\n",
        "scheduler_preemption_attempts_total 5\n",
    };
    for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
        assert_non_null(strstr(strbuf_cstr(&out), lines[i]));
    }
    pending_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conditions_become_taints),
        cmocka_unit_test(a_silent_kubelet_leaves_nothing_known),
        cmocka_unit_test(pods_leave_after_the_time_they_tolerate),
        cmocka_unit_test(few_nodes_lose_their_pods_at_once),
        cmocka_unit_test(the_most_important_comes_first),
        cmocka_unit_test(events_help_against_their_reasons_alone),
        cmocka_unit_test(what_is_on_its_way_has_no_delay),
        cmocka_unit_test(waiting_pods_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
