/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/model_priv.h"

/* The words of Kubernetes where it has them, and what helps. */
static const struct {
    const char *text, *helps;
} reasons[SCHED_REASONS] = {
    [SCHED_NO_CONTAINERS] = {"node(s) run no containers", "start a kubelet on them"},
    [SCHED_UNSCHEDULABLE] = {"node(s) were unschedulable", "uncordon a node"},
    [SCHED_NODE_NAME] = {"node(s) didn't match the requested node name", NULL},
    [SCHED_TAINT] = {NULL, "tolerate or remove the taint"},
    [SCHED_NODE_AFFINITY] = {"node(s) didn't match Pod's node affinity/selector",
                             "label a node as the pod asks"},
    [SCHED_LABEL_PRESENCE] = {"node(s) didn't have the requested labels",
                              "see labelsPresence in the scheduler's policy"},
    [SCHED_SERVICE_AFFINITY] = {"node(s) didn't match service affinity",
                                "see serviceAffinity in the scheduler's policy"},
    [SCHED_VOLUME_AFFINITY] = {"node(s) had volume node affinity conflict",
                               "the pod's volume can be reached from other nodes only"},
    [SCHED_VOLUME_LIMIT] = {"node(s) exceed max volume count", "add a node"},
    [SCHED_VOLUME_BIND] = {"node(s) didn't find available persistent volumes to bind",
                           "make a PersistentVolume that the claim can get, or a storage class "
                           "with a provisioner"},
    [SCHED_VOLUME_CAPACITY] = {"node(s) did not have enough free storage",
                               "free storage on a node, or request less"},
    [SCHED_PORTS] = {"node(s) didn't have free ports for the requested pod ports",
                     "use a Service instead of the host port, or add a node"},
    [SCHED_RESOURCES] = {NULL, "add a node, end other pods, or request less"},
    [SCHED_SPREAD_LABEL] = {"node(s) didn't match pod topology spread constraints (missing "
                            "required label)",
                            "label the nodes with the topology key"},
    [SCHED_SPREAD] = {"node(s) didn't match pod topology spread constraints",
                      "add a node where there are fewer such pods, or raise maxSkew"},
    [SCHED_POD_AFFINITY] = {"node(s) didn't match pod affinity rules",
                            "start the pods that it wants beside it"},
    [SCHED_POD_ANTI_AFFINITY] = {"node(s) didn't match pod anti-affinity rules", "add a node"},
    [SCHED_EXISTING_ANTI_AFFINITY] = {"node(s) didn't satisfy existing pods anti-affinity rules",
                                      "add a node"},
};

void why_init(struct why *w)
{
    smap_init(&w->counts, NULL);
}

void why_done(struct why *w)
{
    smap_done(&w->counts);
}

static void count(struct why *w, const char *text)
{
    uintptr_t n = (uintptr_t) smap_get(&w->counts, text);
    smap_set(&w->counts, text, (void *) (n + 1));
}

static void count_slots(struct why *w, const struct cycle *c, uint32_t slots)
{
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    for (size_t i = 0; i < c->class->n_requests; i++) {
        int slot = c->class->requests[i].slot;
        if (slot == SLOT_PODS && slots & (UINT32_C(1) << slot)) {
            count(w, "Too many pods");
        } else if (slots & (UINT32_C(1) << (slot < 0 ? SLOTS : slot))) {
            strbuf_reset(&text);
            strbuf_addf(&text, "Insufficient %s", c->class->requests[i].name);
            count(w, strbuf_cstr(&text));
        }
    }
}

void why_add(struct why *w, struct cycle *c, const struct node *n, enum sched_reason reason,
             uint32_t slots)
{
    if (reason == SCHED_RESOURCES) {
        count_slots(w, c, slots);
    } else if (reason == SCHED_TAINT) {
        const struct json *t = json_at(n->taints, class_verdict(c->s, c->class, n)->taint);
        CLEANUP_FREE char *text = xasprintf("node(s) had untolerated taint {%s: %s}",
                                            json_get_text(t, "key"), json_get_text(t, "value"));
        count(w, text);
    } else if (reasons[reason].text) {
        count(w, reasons[reason].text);
    }
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *) a, *(char *const *) b);
}

void why_list(const struct why *w, struct strbuf *out)
{
    size_t n = smap_size(&w->counts), i = 0;
    CLEANUP_FREE char **lines = xcalloc(n + 1, sizeof *lines);
    struct smap_entry *e;
    SMAP_FOREACH (e, &w->counts) {
        lines[i++] = xasprintf("%zu %s", (size_t) (uintptr_t) e->value, e->key);
    }
    qsort(lines, n, sizeof *lines, by_text);
    for (i = 0; i < n; i++) {
        strbuf_addf(out, "%s%s", i ? ", " : "", lines[i]);
        free(lines[i]);
    }
}

void why_helps(uint32_t seen, struct strbuf *out)
{
    bool any = false;
    for (size_t i = 0; i < SCHED_REASONS; i++) {
        const char *helps = seen & SCHED_BIT(i) ? reasons[i].helps : NULL;
        bool said = false;
        for (size_t k = 0; k < i && helps; k++) {
            said =
                said || (seen & SCHED_BIT(k) && reasons[k].helps && streq(reasons[k].helps, helps));
        }
        if (helps && !said) {
            strbuf_addf(out, "%s%s", any ? "; or " : " What helps: ", helps);
            any = true;
        }
    }
    strbuf_adds(out, any ? "." : "");
}
