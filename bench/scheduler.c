/* SPDX-License-Identifier: Apache-2.0 */
/* Decisions of the scheduler a second: each chooses a node for a pod among all nodes, and counts
 * the pod on it.
 *
 * plain: pods with requests alone, of 50 applications.
 * The others, too, have requests: "selector" pods a node selector and tolerations; "spread" pods
 * DoNotSchedule over zones; "anti-affinity" pods by host within the application; "affinity" pods
 * stay in the zone of their application; "preferred" pods like labels of nodes, and dislike hosts
 * with pods of their application.  mixed: all of them.
 * first: the first decision for an application, which compares the labels and taints of the nodes.
 * preemption: on nodes that are full of pods with a lower priority; a decision that finds no node,
 * the choice of a victim, its removal, and the decision for its room.
 * Nothing is written: an API server that takes the Bindings is the limit of a cluster.
 *
 * The seconds are those of the processor: other work of the host does not count.
 *
 * There is no peer: no other scheduler can be run on the same model without an API server.
 *
 * usage: bench_scheduler [NODES [PODS]] */
#include "measure.h"

#include "base/mem.h"
#include "base/str.h"
#include "sched/sched.h"

#include <stdio.h>
#include <time.h>

#define APPS 50

static uint64_t cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t) t.tv_sec * UINT64_C(1000000000) + (uint64_t) t.tv_nsec;
}

static struct json *parse(const char *text)
{
    struct json *o = NULL;
    struct err e = {0};
    if (json_parse(text, strlen(text), &o, &e) < 0) {
        fprintf(stderr, "%s: %s\n", e.text, text);
        exit(1);
    }
    return o;
}

static void add_nodes(struct sched *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        CLEANUP_FREE char *text = xasprintf(
            "{\"metadata\":{\"name\":\"n%zu\",\"labels\":{\"kubernetes.io/hostname\":\"n%zu\","
            "\"topology.kubernetes.io/zone\":\"z%zu\",\"disk\":\"%s\"}},"
            "\"spec\":{\"taints\":[%s]},\"status\":{\"allocatable\":{\"cpu\":\"32\","
            "\"memory\":\"128Gi\",\"pods\":\"110\"},"
            "\"nodeInfo\":{\"containerRuntimeVersion\":\"containerd://1.6.20\"},"
            "\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}",
            i, i, i % 3, i % 2 ? "ssd" : "hdd",
            i % 10 ? "" : "{\"key\":\"reserved\",\"effect\":\"NoSchedule\"}");
        CLEANUP(json_free) struct json *o = parse(text);
        (void) sched_set_node(s, o);
    }
}

/* The members of a pod's spec beside its requests.  Each '@' stands for its application. */
static const struct {
    const char *name, *spec;
} sorts[] = {
    {"plain pods", ""},
    {"pods with a selector",
     ",\"nodeSelector\":{\"disk\":\"ssd\"},\"tolerations\":[{\"key\":\"reserved\",\"operator\":"
     "\"Exists\"}]"},
    {"pods that spread",
     ",\"topologySpreadConstraints\":[{\"maxSkew\":1,\"topologyKey\":"
     "\"topology.kubernetes.io/zone\",\"whenUnsatisfiable\":\"DoNotSchedule\",\"labelSelector\":{"
     "\"matchLabels\":{\"app\":\"@\"}}}]"},
    {"pods with anti-affinity",
     ",\"affinity\":{\"podAntiAffinity\":{\"requiredDuringSchedulingIgnoredDuringExecution\":[{"
     "\"topologyKey\":\"kubernetes.io/hostname\",\"labelSelector\":{\"matchLabels\":{\"app\":"
     "\"@\"}}}]}}"},
    {"pods with affinity",
     ",\"affinity\":{\"podAffinity\":{\"requiredDuringSchedulingIgnoredDuringExecution\":[{"
     "\"topologyKey\":\"topology.kubernetes.io/zone\",\"labelSelector\":{\"matchLabels\":{"
     "\"app\":\"@\"}}}]}}"},
    {"pods with preferences",
     ",\"affinity\":{\"nodeAffinity\":{\"preferredDuringSchedulingIgnoredDuringExecution\":[{"
     "\"weight\":10,\"preference\":{\"matchExpressions\":[{\"key\":\"disk\",\"operator\":\"In\","
     "\"values\":[\"ssd\"]}]}}]},\"podAntiAffinity\":{"
     "\"preferredDuringSchedulingIgnoredDuringExecution\":[{\"weight\":10,\"podAffinityTerm\":{"
     "\"topologyKey\":\"kubernetes.io/hostname\",\"labelSelector\":{\"matchLabels\":{\"app\":"
     "\"@\"}}}}]}}"},
};
#define MIXED ARRAY_SIZE(sorts)

static struct json *pod(size_t i, size_t sort)
{
    size_t app = i % APPS;
    CLEANUP_STRBUF struct strbuf spec = STRBUF_INIT;
    for (const char *p = sorts[sort == MIXED ? app % MIXED : sort].spec; *p; p++) {
        if (*p == '@') {
            strbuf_addf(&spec, "a%zu", app);
        } else {
            strbuf_add(&spec, p, 1);
        }
    }
    CLEANUP_FREE char *text = xasprintf(
        "{\"metadata\":{\"name\":\"p%zu\",\"namespace\":\"n\",\"labels\":{\"app\":\"a%zu\"}},"
        "\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"i\",\"resources\":{\"requests\":{"
        "\"cpu\":\"100m\",\"memory\":\"200Mi\"}}}]%s}}",
        i, app, strbuf_cstr(&spec));
    return parse(text);
}

static void place(struct sched *s, const struct json *p)
{
    struct sched_decision d;
    sched_decide(s, p, &d);
    if (!d.node) {
        fprintf(stderr, "no node for a pod: %s\n", d.why);
        exit(1);
    }
    CLEANUP_FREE char *node = xstrdup(d.node);
    sched_set_pod(s, p, node);
    sched_decision_done(&d);
}

/* Decisions a second; the pods are made before. */
static double run(size_t n_nodes, size_t n_pods, size_t sort, double *ret_first_ms)
{
    CLEANUP(sched_free) struct sched *s = sched_new(1);
    CLEANUP_FREE struct json **pods = xcalloc(n_pods, sizeof(struct json *));
    uint64_t first_ns = 0;
    add_nodes(s, n_nodes);
    for (size_t i = 0; i < n_pods; i++) {
        pods[i] = pod(i, sort);
    }
    uint64_t start = cpu_ns();
    for (size_t i = 0; i < n_pods; i++) {
        place(s, pods[i]);
        if (i + 1 == APPS) {
            first_ns = cpu_ns() - start;
        }
    }
    double ms = (double) (cpu_ns() - start) / 1e6;
    for (size_t i = 0; i < n_pods; i++) {
        json_free(pods[i]);
    }
    *ret_first_ms = (double) first_ns / 1e6 / APPS;
    return (double) n_pods * 1000 / ms;
}

static struct json *large_pod(const char *name, size_t i, int priority)
{
    CLEANUP_FREE char *text = xasprintf(
        "{\"metadata\":{\"name\":\"%s%zu\",\"namespace\":\"n\"},\"spec\":{\"priority\":%d,"
        "\"containers\":[{\"name\":\"c\",\"image\":\"i\",\"resources\":{\"requests\":{"
        "\"cpu\":\"8\"}}}],\"tolerations\":[{\"operator\":\"Exists\"}]}}",
        name, i, priority);
    return parse(text);
}

/* Preemptions a second on nodes that have four pods each and no room. */
static double run_preemption(size_t n_nodes, size_t n_pods)
{
    CLEANUP(sched_free) struct sched *s = sched_new(1);
    uint64_t took = 0;
    add_nodes(s, n_nodes);
    for (size_t i = 0; i < n_nodes * 4; i++) {
        CLEANUP(json_free) struct json *p = large_pod("low", i, 0);
        CLEANUP_FREE char *node = xasprintf("n%zu", i / 4);
        sched_set_pod(s, p, node);
    }
    for (size_t i = 0; i < n_pods; i++) {
        CLEANUP(json_free) struct json *p = large_pod("high", i, 1000);
        uint64_t start = cpu_ns();
        struct sched_decision d;
        struct sched_preemption v;
        sched_decide(s, p, &d);
        sched_preempt(s, p, &v);
        if (d.node || !v.node || v.n_victims != 1) {
            fprintf(stderr, "pod %zu: it should need one victim: %s\n", i, v.why ? v.why : "");
            exit(1);
        }
        sched_remove_pod(s, v.victims[0]);
        place(s, p);
        took += cpu_ns() - start;
        sched_decision_done(&d);
        sched_preemption_done(&v);
    }
    return (double) n_pods * 1e9 / (double) took;
}

int main(int argc, char **argv)
{
    size_t nodes = argc > 1 ? measure_number(argv[1], 1, 100000) : 5000;
    size_t pods = argc > 2 ? measure_number(argv[2], APPS, 1000000) : 50000;
    double first = 0;
    printf("%zu nodes, %zu pods, decisions/s\n", nodes, pods);
    for (size_t sort = 0; sort <= MIXED; sort++) {
        const char *name = sort == MIXED ? "mixed pods" : sorts[sort].name;
        double n = run(nodes, pods, sort, &first);
        printf("%-26s%8.0f\n", name, n);
        measure_result(name, n, "decisions/s", NULL, 0);
    }
    printf("%-26s%8.2f ms\n", "first of an application", first);
    measure_result("first pod of an application", first, "ms", NULL, 0);
    double n = run_preemption(nodes, MIN(nodes, pods) / 5);
    printf("%-26s%8.0f\n", "preemptions", n);
    measure_result("preemptions", n, "preemptions/s", NULL, 0);
    return 0;
}
