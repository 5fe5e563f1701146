/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/policy.h"

#include "base/mem.h"

#define WEIGHT_MAX 1000000

static const struct {
    const char *name;
    unsigned filters; /* 0: nothing to check here. */
} predicates[] = {
    {"GeneralPredicates", SCHED_FILTER_NODE_NAME | SCHED_FILTER_NODE_AFFINITY | SCHED_FILTER_PORTS |
                              SCHED_FILTER_RESOURCES},
    {"PodFitsResources", SCHED_FILTER_RESOURCES},
    {"PodFitsHostPorts", SCHED_FILTER_PORTS},
    {"PodFitsPorts", SCHED_FILTER_PORTS},
    {"HostName", SCHED_FILTER_NODE_NAME},
    {"MatchNodeSelector", SCHED_FILTER_NODE_AFFINITY},
    {"PodToleratesNodeTaints", SCHED_FILTER_TAINTS},
    {"MatchInterPodAffinity", SCHED_FILTER_POD_AFFINITY},
    {"EvenPodsSpread", SCHED_FILTER_SPREAD},
    {"CheckVolumeBinding", SCHED_FILTER_VOLUMES},
    {"NoVolumeZoneConflict", SCHED_FILTER_VOLUMES},
    {"NoDiskConflict", 0},
    {"MaxEBSVolumeCount", 0},
    {"MaxGCEPDVolumeCount", 0},
    {"MaxAzureDiskVolumeCount", 0},
    {"MaxCSIVolumeCountPred", 0},
    {"CheckNodeMemoryPressure", SCHED_FILTER_TAINTS},
    {"CheckNodeDiskPressure", SCHED_FILTER_TAINTS},
    {"CheckNodePIDPressure", SCHED_FILTER_TAINTS},
    {"CheckNodeCondition", SCHED_FILTER_TAINTS},
    {"CheckNodeUnschedulable", 0},
    {"PodToleratesNodeNoExecuteTaints", 0},
};

static const struct {
    const char *name;
    int score; /* -1: every node gets the same. */
} priorities[] = {
    {"SelectorSpreadPriority", SCORE_SPREAD},
    {"ServiceSpreadingPriority", SCORE_SPREAD},
    {"EvenPodsSpreadPriority", SCORE_SPREAD},
    {"InterPodAffinityPriority", SCORE_POD_AFFINITY},
    {"LeastRequestedPriority", SCORE_LEAST_ALLOCATED},
    {"MostRequestedPriority", SCORE_MOST_ALLOCATED},
    {"BalancedResourceAllocation", SCORE_BALANCED},
    {"NodePreferAvoidPodsPriority", -1},
    {"NodeAffinityPriority", SCORE_NODE_AFFINITY},
    {"TaintTolerationPriority", SCORE_TAINTS},
    {"ImageLocalityPriority", SCORE_IMAGES},
    {"EqualPriority", -1},
    {"ResourceLimitsPriority", -1},
};

void sched_policy_default(struct sched_policy *ret)
{
    *ret = (struct sched_policy){
        .filters = SCHED_FILTERS_ALL,
        .weights = {[SCORE_TAINTS] = 3,
                    [SCORE_NODE_AFFINITY] = 2,
                    [SCORE_SPREAD] = 2,
                    [SCORE_POD_AFFINITY] = 2,
                    [SCORE_LEAST_ALLOCATED] = 1,
                    [SCORE_BALANCED] = 1,
                    [SCORE_IMAGES] = 1},
    };
}

void sched_policy_done(struct sched_policy *p)
{
    for (size_t i = 0; i < p->n_label_scores; i++) {
        free(p->label_scores[i].label);
    }
    for (size_t i = 0; i < p->n_label_filters; i++) {
        free(p->label_filters[i].label);
    }
    for (size_t i = 0; i < p->n_service_affinity; i++) {
        free(p->service_affinity[i]);
    }
    free(p->label_scores);
    free(p->label_filters);
    free(p->service_affinity);
    *p = (struct sched_policy){0};
}

static void add_label_score(struct sched_policy *p, struct sched_label_score add)
{
    add.label = xstrdup(add.label);
    p->label_scores =
        xreallocarray(p->label_scores, p->n_label_scores + 1, sizeof *p->label_scores);
    p->label_scores[p->n_label_scores++] = add;
}

static void add_label_filter(struct sched_policy *p, const char *label, bool presence)
{
    p->label_filters =
        xreallocarray(p->label_filters, p->n_label_filters + 1, sizeof *p->label_filters);
    p->label_filters[p->n_label_filters++] = (struct sched_label_filter){xstrdup(label), presence};
}

static void add_service_affinity(struct sched_policy *p, const char *label)
{
    p->service_affinity =
        xreallocarray(p->service_affinity, p->n_service_affinity + 1, sizeof *p->service_affinity);
    p->service_affinity[p->n_service_affinity++] = xstrdup(label);
}

void sched_policy_copy(const struct sched_policy *p, struct sched_policy *ret)
{
    struct sched_policy out = {.filters = p->filters};
    memcpy(out.weights, p->weights, sizeof out.weights);
    for (size_t i = 0; i < p->n_label_scores; i++) {
        add_label_score(&out, p->label_scores[i]);
    }
    for (size_t i = 0; i < p->n_label_filters; i++) {
        add_label_filter(&out, p->label_filters[i].label, p->label_filters[i].presence);
    }
    for (size_t i = 0; i < p->n_service_affinity; i++) {
        add_service_affinity(&out, p->service_affinity[i]);
    }
    *ret = out;
}

static void ignore(struct strbuf *ignored, const char *name)
{
    if (ignored) {
        strbuf_addf(ignored, "%s%s", ignored->size ? " " : "", name);
    }
}

/* The labels of the argument 'labels'; each has to be a text. */
static int take_labels(struct sched_policy *p, const char *name, const struct json *argument,
                       bool affinity, struct err *e)
{
    const struct json *labels = json_get(argument, "labels"), *label;
    bool presence = json_get_bool(json_get(argument, "presence"), false);
    if (!json_count(labels)) {
        return err_set(e, -EINVAL, "predicate \"%.80s\": argument.labels is empty", name);
    }
    JSON_FOREACH (label, labels) {
        const char *text = json_get_string(label);
        if (!text || !*text) {
            return err_set(e, -EINVAL, "predicate \"%.80s\": a label is not a text", name);
        }
        if (affinity) {
            add_service_affinity(p, text);
        } else {
            add_label_filter(p, text, presence);
        }
    }
    return 0;
}

static int take_predicate(struct sched_policy *p, const struct json *o, struct strbuf *ignored,
                          struct err *e)
{
    const char *name = json_get_text(o, "name");
    const struct json *argument = json_get(o, "argument");
    const struct json *affinity = json_get(argument, "serviceAffinity");
    const struct json *presence = json_get(argument, "labelsPresence");
    if (json_is(affinity, JSON_OBJECT) || json_is(presence, JSON_OBJECT)) {
        return take_labels(p, name, affinity ? affinity : presence, affinity, e);
    }
    for (size_t i = 0; i < ARRAY_SIZE(predicates); i++) {
        if (streq(predicates[i].name, name)) {
            p->filters |= predicates[i].filters;
            if (!predicates[i].filters) {
                ignore(ignored, name);
            }
            return 0;
        }
    }
    return err_set(e, -EINVAL,
                   "predicate \"%.80s\" is not known, and has no argument serviceAffinity or "
                   "labelsPresence",
                   name);
}

static int take_priority(struct sched_policy *p, const struct json *o, struct strbuf *ignored,
                         struct err *e)
{
    const char *name = json_get_text(o, "name");
    const struct json *argument = json_get(o, "argument");
    const struct json *anti = json_get(argument, "serviceAntiAffinity");
    const struct json *preference = json_get(argument, "labelPreference");
    int64_t weight = json_get_int_or(json_get(o, "weight"), 0);
    if (weight < 1 || weight > WEIGHT_MAX) {
        return err_set(e, -EINVAL, "priority \"%.80s\": weight is not in 1-%d", name, WEIGHT_MAX);
    }
    if (json_is(anti, JSON_OBJECT) || json_is(preference, JSON_OBJECT)) {
        const char *label = json_get_text(anti ? anti : preference, "label");
        if (!*label) {
            return err_set(e, -EINVAL, "priority \"%.80s\": its argument has no label", name);
        }
        add_label_score(
            p, (struct sched_label_score){(char *) label, weight, anti,
                                          json_get_bool(json_get(preference, "presence"), false)});
        return 0;
    }
    for (size_t i = 0; i < ARRAY_SIZE(priorities); i++) {
        if (streq(priorities[i].name, name)) {
            if (priorities[i].score < 0) {
                ignore(ignored, name);
            } else {
                p->weights[priorities[i].score] += weight;
            }
            return 0;
        }
    }
    return err_set(e, -EINVAL,
                   "priority \"%.80s\" is not known, and has no argument serviceAntiAffinity or "
                   "labelPreference",
                   name);
}

static int take_all(const struct json *o, struct sched_policy *p, struct strbuf *ignored,
                    struct err *e)
{
    const char *kind = json_path_string(o, "kind", NULL);
    const struct json *item;
    int r = 0;
    if (!streq_null(kind, "Policy")) {
        return err_set(e, -EINVAL, "its kind is \"%.80s\", not \"Policy\"", kind ? kind : "");
    }
    if (json_count(json_get(o, "extenders")) || json_count(json_get(o, "extenderConfigs"))) {
        return err_set(e, -ENOTSUP,
                       "extenders are not supported: run a scheduler of your own and "
                       "name it in spec.schedulerName of the pods");
    }
    JSON_FOREACH (item, json_get(o, "predicates")) {
        r = r < 0 ? r : take_predicate(p, item, ignored, e);
    }
    JSON_FOREACH (item, json_get(o, "priorities")) {
        r = r < 0 ? r : take_priority(p, item, ignored, e);
    }
    return r;
}

int sched_policy_parse(const char *text, size_t size, struct sched_policy *ret,
                       struct strbuf *ignored, struct err *e)
{
    CLEANUP(json_free) struct json *o = NULL;
    CLEANUP_SCHED_POLICY struct sched_policy p = {0}, defaults;
    int r = json_parse(text, size, &o, e);
    if (r < 0) {
        return r;
    }
    sched_policy_default(&defaults);
    r = take_all(o, &p, ignored, e);
    if (r < 0) {
        return r;
    }
    /* A list that is absent keeps the defaults; one that is there replaces them. */
    if (!json_get(o, "predicates")) {
        p.filters = defaults.filters;
    }
    if (!json_get(o, "priorities")) {
        memcpy(p.weights, defaults.weights, sizeof p.weights);
    }
    /* Policy files are older than spreading constraints, which pods state themselves, and than the
     * binding of local volumes. */
    p.filters |= SCHED_FILTER_SPREAD | SCHED_FILTER_VOLUMES;
    *ret = p;
    p = (struct sched_policy){0};
    return 0;
}
