/* SPDX-License-Identifier: Apache-2.0 */
/* An object {nodes, there, pods, namespaces, services, claims, volumes, budgets, policy} as an API
 * server might give it: 'there' are pods that have nodes.  Whatever is in it, a decision takes a
 * node that suits the pod, and the search for victims leaves the model as it was. */
#include "base/mem.h"
#include "sched/sched.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define PODS_MAX 16

static void fill(struct sched *s, const struct json *v)
{
    static const struct {
        const char *key;
        enum sched_kind kind;
    } kinds[] = {{"namespaces", SCHED_NAMESPACE},
                 {"services", SCHED_SERVICE},
                 {"claims", SCHED_CLAIM},
                 {"volumes", SCHED_VOLUME},
                 {"budgets", SCHED_BUDGET}};
    const struct json *o;
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        JSON_FOREACH (o, json_get(v, kinds[i].key)) {
            sched_set(s, kinds[i].kind, o);
        }
    }
    JSON_FOREACH (o, json_get(v, "there")) {
        sched_set_pod(s, o, json_get_text(json_get(o, "spec"), "nodeName"));
    }
    JSON_FOREACH (o, json_get(v, "nodes")) {
        (void) sched_set_node(s, o);
    }
}

static void set_policy(struct sched *s, const struct json *policy)
{
    CLEANUP_SCHED_POLICY struct sched_policy p = {0};
    CLEANUP_FREE char *text = policy ? json_to_text(policy) : NULL;
    if (text && sched_policy_parse(text, strlen(text), &p, NULL, NULL) == 0) {
        sched_set_policy(s, &p);
    }
}

static void decide(struct sched *s, const struct json *pod)
{
    struct sched_decision d, again;
    struct sched_preemption p;
    sched_decide(s, pod, &d);
    if (d.node && sched_check(s, pod, d.node) != SCHED_FITS) {
        __builtin_trap();
    }
    sched_preempt(s, pod, &p);
    sched_decide(s, pod, &again);
    if (again.n_fit != d.n_fit || (!d.node && again.reasons != d.reasons)) {
        __builtin_trap();
    }
    sched_nominate(s, pod, p.node ? p.node : d.node);
    sched_preemption_done(&p);
    sched_decision_done(&again);
    CLEANUP_FREE char *node = d.node ? xstrdup(d.node) : NULL;
    sched_decision_done(&d);
    if (node) {
        sched_set_pod(s, pod, node);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(json_free) struct json *v = NULL;
    const struct json *o;
    size_t n = 0;
    if (json_parse((const char *) data, size, &v, NULL) < 0) {
        return 0;
    }
    CLEANUP(sched_free) struct sched *s = sched_new(1);
    set_policy(s, json_get(v, "policy"));
    fill(s, v);
    JSON_FOREACH (o, json_get(v, "pods")) {
        if (n++ < PODS_MAX) {
            decide(s, o);
        }
    }
    JSON_FOREACH (o, json_get(v, "there")) {
        CLEANUP_FREE char *key = sched_pod_key(o);
        sched_remove_pod(s, key);
    }
    JSON_FOREACH (o, json_get(v, "nodes")) {
        sched_remove_node(s, json_get_text(json_get(o, "metadata"), "name"));
    }
    return 0;
}
