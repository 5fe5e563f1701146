/* SPDX-License-Identifier: Apache-2.0 */
/* Random clusters that change: at each moment the model and the naive filters agree on every node,
 * and a decision takes a node if and only if one is suitable.
 *
 * SCHED_SEED and SCHED_ROUNDS in the environment choose the first cluster and their number. */
#include "naive.h"
#include "rng.h"
#include "sched/sched.h"

#include "base/mem.h"

#include <setjmp.h>
#include <stdio.h>

#include <cmocka.h>

#define NODES 10
#define PODS 24
#define STEPS 30

static struct {
    struct json *nodes[NODES], *pods[PODS], *namespaces[3];
    size_t n_nodes, n_pods;
    unsigned named;
} w;

static const char *const spaces[] = {"one", "two", "three"};
static const char *const apps[] = {"a", "b", "c"};
static const char *const keys[] = {"kubernetes.io/hostname", "zone", "rack"};
static const char *const taint_keys[] = {"t1", "t2", "node.kubernetes.io/unschedulable"};
static const char *const effects[] = {"NoSchedule", "NoExecute", "PreferNoSchedule"};

static struct json *object(const char *ns, const char *name)
{
    struct json *o = json_object(), *meta = json_ensure_object(o, "metadata");
    if (ns) {
        json_set_string(meta, "namespace", ns);
    }
    json_set_string(meta, "name", name);
    json_ensure_object(meta, "labels");
    return o;
}

static void label(struct json *o, const char *key, const char *value)
{
    json_set_string(json_path(o, "metadata", "labels", NULL), key, value);
}

/* ---- nodes ---- */

static void set_amount(struct json *list, const char *name, unsigned n)
{
    json_set(list, name, json_stringf("%u", n));
}

static struct json *random_node(const char *name)
{
    static const char *const zones[] = {"z1", "z2", "z3"};
    static const char *const racks[] = {"1", "2", "3", "x"};
    struct json *o = object(NULL, name), *spec = json_ensure_object(o, "spec");
    struct json *status = json_ensure_object(o, "status");
    struct json *offered = json_ensure_object(status, "allocatable");
    label(o, "kubernetes.io/hostname", name);
    if (chance(80)) {
        label(o, "zone", PICK(zones));
    }
    if (chance(60)) {
        label(o, "rack", PICK(racks));
    }
    for (unsigned i = chance(30) ? 1 + below(2) : 0; i; i--) {
        struct json *t = json_append(json_ensure_array(spec, "taints"), json_object());
        json_set_string(t, "key", taint_keys[below(2)]);
        json_set_string(t, "value", chance(50) ? "v" : "");
        json_set_string(t, "effect", PICK(effects));
    }
    if (chance(10)) {
        json_set_bool(spec, "unschedulable", true);
    }
    set_amount(offered, "cpu", 1 + below(4));
    set_amount(offered, "memory", 100 + below(400));
    set_amount(offered, "pods", 2 + below(8));
    if (chance(30)) {
        set_amount(offered, "example.com/card", 1 + below(2));
    }
    if (chance(90)) {
        json_set_string(json_ensure_object(status, "nodeInfo"), "containerRuntimeVersion", "x://1");
    }
    struct json *ready = json_append(json_ensure_array(status, "conditions"), json_object());
    json_set_string(ready, "type", "Ready");
    json_set_string(ready, "status", "True");
    return o;
}

/* ---- pods ---- */

static void expression(struct json *list, const char *key, bool nodes)
{
    static const char *const operators[] = {"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"};
    static const char *const values[] = {"z1", "z2", "1", "2", "a", "b"};
    struct json *r = json_append(list, json_object());
    unsigned op = below(nodes ? 6 : 4);
    json_set_string(r, "key", key);
    json_set_string(r, "operator", operators[op]);
    for (unsigned i = op < 2 ? 1 + below(3) : 0; i; i--) {
        json_append(json_ensure_array(r, "values"), json_string(PICK(values)));
    }
    if (op >= 4) {
        json_append(json_ensure_array(r, "values"), json_string(chance(50) ? "1" : "2"));
    }
}

static struct json *random_selector(void)
{
    struct json *s = json_object();
    if (chance(70)) {
        json_set_string(json_ensure_object(s, "matchLabels"), "app", PICK(apps));
    }
    if (chance(30)) {
        expression(json_ensure_array(s, "matchExpressions"), "app", false);
    }
    return s;
}

static void pod_term(struct json *list)
{
    struct json *t = json_append(list, json_object());
    json_set_string(t, "topologyKey", PICK(keys));
    if (chance(95)) {
        json_set(t, "labelSelector", random_selector());
    }
    if (chance(20)) {
        json_append(json_ensure_array(t, "namespaces"), json_string(PICK(spaces)));
    }
    if (chance(20)) {
        struct json *s = json_set(t, "namespaceSelector", json_object());
        if (chance(70)) {
            json_set_string(json_ensure_object(s, "matchLabels"), "team", PICK(apps));
        }
    }
}

static void random_affinity(struct json *spec)
{
#define REQUIRED "requiredDuringSchedulingIgnoredDuringExecution"
    struct json *a = json_ensure_object(spec, "affinity");
    if (chance(30)) {
        struct json *terms =
            json_ensure_array(json_ensure_object(json_ensure_object(a, "nodeAffinity"), REQUIRED),
                              "nodeSelectorTerms");
        for (unsigned i = 1 + below(2); i; i--) {
            struct json *t = json_append(terms, json_object());
            if (chance(80)) {
                expression(json_ensure_array(t, "matchExpressions"), keys[1 + below(2)], true);
            }
            if (chance(30)) {
                struct json *r = json_append(json_ensure_array(t, "matchFields"), json_object());
                json_set_string(r, "key", "metadata.name");
                json_set_string(r, "operator", chance(50) ? "In" : "NotIn");
                json_append(json_ensure_array(r, "values"), json_stringf("n%u", below(NODES)));
            }
        }
    }
    for (unsigned i = chance(25) ? 1 + below(2) : 0; i; i--) {
        pod_term(json_ensure_array(json_ensure_object(a, "podAffinity"), REQUIRED));
    }
    for (unsigned i = chance(25) ? 1 + below(2) : 0; i; i--) {
        pod_term(json_ensure_array(json_ensure_object(a, "podAntiAffinity"), REQUIRED));
    }
}

static void random_spread(struct json *spec)
{
    for (unsigned i = chance(25) ? 1 + below(2) : 0; i; i--) {
        struct json *k =
            json_append(json_ensure_array(spec, "topologySpreadConstraints"), json_object());
        json_set_string(k, "topologyKey", PICK(keys));
        json_set_int(k, "maxSkew", 1 + below(2));
        json_set_string(k, "whenUnsatisfiable", chance(80) ? "DoNotSchedule" : "ScheduleAnyway");
        json_set(k, "labelSelector", random_selector());
        if (chance(20)) {
            json_set_int(k, "minDomains", 1 + below(4));
        }
        if (chance(30)) {
            json_set_string(k, "nodeAffinityPolicy", "Ignore");
        }
        if (chance(30)) {
            json_set_string(k, "nodeTaintsPolicy", "Honor");
        }
    }
}

static void random_container(struct json *list, bool init)
{
    static const char *const addresses[] = {"0.0.0.0", "10.0.0.1", "10.0.0.2"};
    struct json *c = json_append(list, json_object());
    struct json *r = json_ensure_object(json_ensure_object(c, "resources"), "requests");
    if (chance(60)) {
        json_set(r, "cpu", json_stringf("%um", 100 + below(900)));
    }
    if (chance(60)) {
        set_amount(r, "memory", 10 + below(100));
    }
    if (chance(5)) {
        set_amount(r, "example.com/card", 1);
    }
    if (init && chance(50)) {
        json_set_string(c, "restartPolicy", "Always");
    }
    if (!init && chance(20)) {
        struct json *p = json_append(json_ensure_array(c, "ports"), json_object());
        json_set_int(p, "hostPort", 80 + below(2));
        json_set_string(p, "protocol", chance(70) ? "TCP" : "UDP");
        if (chance(60)) {
            json_set_string(p, "hostIP", PICK(addresses));
        }
    }
}

static struct json *random_pod(void)
{
    CLEANUP_FREE char *name = xasprintf("p%u", w.named++);
    struct json *o = object(PICK(spaces), name), *spec = json_ensure_object(o, "spec");
    label(o, "app", PICK(apps));
    if (chance(30)) {
        label(o, "tier", PICK(apps));
    }
    for (unsigned i = 1 + below(2); i; i--) {
        random_container(json_ensure_array(spec, "containers"), false);
    }
    for (unsigned i = chance(20) ? 1 + below(3) : 0; i; i--) {
        random_container(json_ensure_array(spec, "initContainers"), true);
    }
    if (chance(10)) {
        set_amount(json_ensure_object(spec, "overhead"), "memory", 20);
    }
    if (chance(20)) {
        json_set_string(json_ensure_object(spec, "nodeSelector"), "zone", chance(50) ? "z1" : "z2");
    }
    for (unsigned i = chance(40) ? 1 + below(2) : 0; i; i--) {
        struct json *t = json_append(json_ensure_array(spec, "tolerations"), json_object());
        bool exists = chance(50);
        json_set_string(t, "operator", exists ? "Exists" : "Equal");
        if (!exists || chance(80)) {
            json_set_string(t, "key", PICK(taint_keys));
        }
        json_set_string(t, "value", !exists && chance(50) ? "v" : "");
        if (chance(50)) {
            json_set_string(t, "effect", PICK(effects));
        }
    }
    random_affinity(spec);
    random_spread(spec);
    return o;
}

/* ---- the comparison ---- */

static void fail_about(const struct json *pod, const struct json *node, bool want, int got)
{
    CLEANUP_FREE char *p = json_to_text(pod), *n = json_to_text(node);
    print_error("pod %s\nnode %s\n", p, n);
    for (size_t i = 0; i < w.n_pods; i++) {
        CLEANUP_FREE char *t = json_to_text(w.pods[i]);
        print_error("with %s\n", t);
    }
    fail_msg("naive: %s, model: reason %d", want ? "fits" : "does not fit", got);
}

static size_t compare(struct sched *s, const struct json *pod)
{
    const struct naive_cluster c = {w.nodes,  w.pods,       w.n_nodes,
                                    w.n_pods, w.namespaces, ARRAY_SIZE(w.namespaces)};
    size_t n = 0;
    bool chosen = false;
    struct sched_decision d;
    sched_decide(s, pod, &d);
    for (size_t i = 0; i < w.n_nodes; i++) {
        const char *name = json_path_string(w.nodes[i], "metadata", "name", NULL);
        bool want = naive_fits(&c, pod, w.nodes[i]);
        int got = (int) sched_check(s, pod, name);
        if (want != (got == SCHED_FITS)) {
            fail_about(pod, w.nodes[i], want, got);
        }
        n += want;
        chosen = chosen || (want && streq_null(d.node, name));
    }
    assert_int_equal(d.n_fit, n);
    assert_int_equal(d.node != NULL, n > 0);
    assert_int_equal(chosen, n > 0);
    assert_int_equal(d.why != NULL, n == 0);
    sched_decision_done(&d);
    return n;
}

/* ---- changes ---- */

static void remove_pod(struct sched *s, size_t i)
{
    CLEANUP_FREE char *key = sched_pod_key(w.pods[i]);
    sched_remove_pod(s, key);
    json_free(w.pods[i]);
    w.pods[i] = w.pods[--w.n_pods];
}

static void change_node(struct sched *s)
{
    size_t i = below(NODES);
    CLEANUP_FREE char *name = xasprintf("n%zu", i);
    size_t at = 0;
    while (at < w.n_nodes &&
           !streq(json_path_string(w.nodes[at], "metadata", "name", NULL), name)) {
        at++;
    }
    if (at < w.n_nodes && chance(20)) {
        sched_remove_node(s, name);
        json_free(w.nodes[at]);
        w.nodes[at] = w.nodes[--w.n_nodes];
        return;
    }
    struct json *node = random_node(name);
    (void) sched_set_node(s, node);
    if (at < w.n_nodes) {
        json_free(w.nodes[at]);
    } else {
        w.n_nodes++;
    }
    w.nodes[at] = node;
}

static void change_namespace(struct sched *s, size_t i)
{
    json_free(w.namespaces[i]);
    w.namespaces[i] = object(NULL, spaces[i]);
    label(w.namespaces[i], "team", PICK(apps));
    sched_set(s, SCHED_NAMESPACE, w.namespaces[i]);
}

static void place(struct sched *s, struct json *pod)
{
    if (w.n_pods == PODS) {
        remove_pod(s, below(PODS));
    }
    CLEANUP_FREE char *name = xasprintf("n%u", below(NODES));
    json_set_string(json_get(pod, "spec"), "nodeName", name);
    if (chance(10)) {
        json_set_string(json_get(pod, "metadata"), "deletionTimestamp", "2026-01-01T00:00:00Z");
    }
    sched_set_pod(s, pod, name);
    w.pods[w.n_pods++] = pod;
}

static void run_cluster(uint64_t seed, size_t *fits, size_t *decisions)
{
    rng_start(seed);
    CLEANUP(sched_free) struct sched *s = sched_new(seed);
    for (size_t i = 0; i < ARRAY_SIZE(spaces); i++) {
        change_namespace(s, i);
    }
    for (size_t i = 0; i < NODES; i++) {
        change_node(s);
    }
    for (size_t i = 0; i < STEPS; i++) {
        struct json *pod = random_pod();
        *fits += compare(s, pod) > 0;
        ++*decisions;
        place(s, pod);
        if (chance(20)) {
            change_node(s);
        }
        if (chance(10)) {
            change_namespace(s, below(3));
        }
        if (w.n_pods && chance(10)) {
            remove_pod(s, below(w.n_pods));
        }
    }
    while (w.n_pods) {
        json_free(w.pods[--w.n_pods]);
    }
    while (w.n_nodes) {
        json_free(w.nodes[--w.n_nodes]);
    }
    for (size_t i = 0; i < ARRAY_SIZE(w.namespaces); i++) {
        w.namespaces[i] = json_free(w.namespaces[i]);
    }
}

static void random_clusters(void **state)
{
    uint64_t rounds = rng_setting("SCHED_ROUNDS", 300), first;
    size_t fits = 0, decisions = 0;
    first = rng_first_seed("SCHED_SEED", rounds, "clusters");
    for (uint64_t i = 0; i < rounds; i++) {
        run_cluster(first + i, &fits, &decisions);
    }
    /* Neither answer is rare, so that both are tested. */
    assert_in_range(fits, decisions / 5, decisions - decisions / 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_clusters)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
