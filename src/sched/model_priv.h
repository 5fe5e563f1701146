/* SPDX-License-Identifier: Apache-2.0 */
/* The state behind sched.h, for the files of this folder.
 *
 * A pod that has a node adds its requests, ports and terms to that node.  What pods have in common
 * is shared and counted by reference: a class (all that decides where a pod may go), a subject
 * (namespace, labels and owner: what selectors see), a term (a selector and a topology key, with
 * counters for each value of the key), a topo (the values of one key). */
#pragma once

#include "api/requests.h"
#include "base/map.h"
#include "base/mem.h"
#include "sched/sched.h"

/* Resources that nodes offer; those after SLOT_PODS are named by nodes, as they come. */
#define SLOTS 24
/* A request counts at most this much in sums, so that those of all pods fit into an int64_t. */
#define AMOUNT_MAX (INT64_MAX >> 18)
/* Terms of affinity and spreading that one pod may have.  Each is compared with all pods, so that
 * without a limit one user's pod could hold up the scheduler for seconds. */
#define TERMS_MAX 64
enum { SLOT_CPU, SLOT_MEMORY, SLOT_STORAGE, SLOT_PODS, SLOT_EXTENDED };

/* The values of one topology key. */
struct topo {
    struct list link;
    char *key;
    struct smap values; /* To the number of the value plus one. */
    size_t n_values;
    int32_t *of; /* For each node the number of its value; -1: it has no such label. */
    size_t cap;
    size_t refs;
};

/* A condition on pods, counted for each value of a topology key. */
struct term {
    struct hmap_node node;
    struct list link;
    struct hmap_node by_key; /* In 'keyed', by a key that a subject must have to match. */
    struct list loose;       /* Else among the terms without such a key. */
    bool keyed;
    char *text;
    struct json *selectors; /* Array: a pod has to match each one. */
    struct topo *topo;      /* NULL: counted for each node. */
    bool alive_only;        /* Pods that are being deleted do not count. */
    bool by_namespace;      /* A namespaceSelector is used. */
    size_t refs;
    /* By number of value (or of node): pods that match; pods that refuse such pods beside them;
     * the sum of the weights with which pods wish for them. */
    int32_t *matched, *refusing;
    int64_t *wishing;
    size_t cap;
    int64_t n_matched, n_refusing, n_wishing;
};

/* A label or the owner of a subject. */
struct subject_key {
    struct hmap_node node;
    struct subject *subject;
};

/* What selectors see of pods. */
struct subject {
    struct hmap_node node;
    struct list link;
    struct subject_key *keys;
    size_t n_keys;
    char *text, *namespace, *owner;
    struct json *labels;
    struct list pods;    /* Those that have a node. */
    struct term **terms; /* All terms that match. */
    size_t n, cap;
    size_t refs;
};

/* The relation of a pod to a term. */
struct use {
    struct term *term;
    int64_t weight; /* For preferences; negative: apart. */
};

/* A list of relations. */
struct uses {
    struct use *list;
    size_t n, cap;
};

struct spread {
    struct term *term; /* Counts pods for each node. */
    struct topo *topo;
    int64_t max_skew, min_domains;
    bool hard, affinity_counts, taints_count, self;
};

struct request {
    char *name;
    int64_t amount;
    int slot; /* -1: no node offers it. */
};

/* What the labels, taints and other lasting properties of a node mean for a class. */
struct verdict {
    uint32_t generation; /* That of the node it was made from; 0: none. */
    uint8_t reason;
    bool affinity, taints; /* What spreading asks: required affinity holds; taints are tolerated. */
    uint8_t taint;         /* SCHED_TAINT: which one. */
    uint32_t avoided;      /* Taints PreferNoSchedule that are not tolerated. */
    int32_t preferred;     /* Sum of the weights of preferred node affinity. */
    int64_t images;        /* Bytes of the class's images that the node has. */
};

struct class
{
    struct hmap_node node;
    struct list recent; /* Among the classes with verdicts. */
    char *text;
    struct json *spec; /* The members of PodSpec that matter. */
    struct subject *subject;
    struct request *requests;
    size_t n_requests;
    int64_t score_cpu, score_memory; /* Requests as scores count them. */
    struct api_host_port *ports;
    size_t n_ports;
    struct uses affinity; /* Required: each term counts pods that match all of them. */
    struct uses refuses;  /* Required anti-affinity. */
    struct uses wishes;   /* Preferred, both ways. */
    struct uses draws;    /* Required affinity, term by term: pods that match are drawn to it. */
    struct spread *spreads;
    size_t n_spreads, n_hard;
    bool too_many;    /* It has more than TERMS_MAX terms, none of which is counted. */
    bool own_spreads; /* The pod states them itself. */
    struct verdict *verdicts;
    size_t n_verdicts;
    uint32_t objects; /* Generation of volumes and claims that the verdicts were made from. */
    size_t refs;
};

struct node {
    struct hmap_node by_name;
    size_t index;
    char *name;
    bool present, runs;
    bool unschedulable;
    struct json *labels, *taints;
    struct json *images; /* Names to sizes. */
    int64_t offered[SLOTS], used[SLOTS];
    int64_t score_cpu, score_memory;
    struct list pods;
    size_t n_ports; /* Host ports of its pods. */
    uint32_t generation;
};

struct pod {
    struct hmap_node by_key;
    struct list on_node, on_subject;
    char *key, *started;
    struct class *class;
    struct node *node;
    int32_t priority;
    bool ending;
    bool placed; /* Its sums are part of the model. */
};

/* Room kept for a pod. */
struct nominee {
    struct class *class;
    struct node *node;
    int32_t priority;
};

struct sched {
    struct sched_policy policy;
    uint64_t random;
    struct hmap nodes_by_name, pods, terms, subjects, classes;
    struct hmap keyed, subject_keys; /* Terms and subjects by a label or an owner. */
    struct list loose_terms;
    struct list all_terms, all_subjects, topos;
    struct list recent; /* Classes with verdicts, the latest first. */
    size_t n_recent;
    struct node **nodes; /* By index; a freed one is NULL. */
    size_t n_nodes, cap_nodes;
    size_t n_running; /* Nodes that run containers. */
    /* The order in which nodes are looked at: zones in turn. */
    struct node **order;
    size_t n_order, cap_order, next;
    bool order_stale;
    char *slots[SLOTS];
    size_t n_slots;
    struct smap objects[SCHED_KINDS];
    struct smap nominees;
    uint32_t objects_generation, node_generation;
};

/* ---- model.c ---- */
struct node *model_node(const struct sched *s, const char *name); /* NULL: unknown. */
struct pod *model_pod(const struct sched *s, const char *key);
/* Adds the sums of the pod to its node, or takes them away; the pod stays known. */
void model_place(struct sched *s, struct pod *p);
void model_unplace(struct sched *s, struct pod *p);
/* Adds the requests and ports of a class to a node, or takes them away ('sign' -1). */
void model_count(struct node *n, const struct class *c, int sign);
const struct json *model_object(const struct sched *s, enum sched_kind kind, const char *ns,
                                const char *name);
/* Brings 'order' up to date. */
void model_order(struct sched *s);
int64_t model_at32(const int32_t *list, size_t cap, int32_t i);

/* ---- term.c ---- */
struct topo *topo_get(struct sched *s, const char *key); /* One reference for the caller. */
void topo_put(struct topo *t);
void topo_set_node(struct topo *t, const struct node *n);
/* 'selectors' is taken over; 'key' NULL: by node.  One reference for the caller. */
struct term *term_get(struct sched *s, struct json *selectors, const char *key, bool alive_only);
void term_put(struct sched *s, struct term *t);
bool term_matches(const struct sched *s, const struct term *t, const struct subject *u);
/* The counters of a term at the place of a node; the number of the place, or -1. */
int32_t term_place(const struct term *t, const struct node *n);
int64_t term_matched(const struct term *t, const struct node *n);
void term_add_matched(struct term *t, const struct node *n, int sign);
void term_add_refusing(struct term *t, const struct node *n, int sign);
void term_add_wishing(struct term *t, const struct node *n, int64_t weight);
struct subject *subject_get(struct sched *s, const struct json *pod);
void subject_put(struct sched *s, struct subject *u);
/* The labels of a namespace have changed: matches anew the terms that depend on them. */
void terms_rematch(struct sched *s);

/* ---- class.c ---- */
struct class *class_get(struct sched *s, const struct json *pod);
struct class *class_ref(struct class *c);
void class_put(struct sched *s, struct class *c);
/* Finds the slots of the requests again. */
void class_find_slots(const struct sched *s, struct class *c);

/* ---- filter.c ---- */

/* What a decision computes once for all nodes. */
struct cycle {
    struct sched *s;
    struct class *class;
    char *key;
    int32_t priority;
    char *fault; /* Owned: why the pod suits no node. */
    /* For each hard constraint and value: the pods of eligible nodes; -1: no such node. */
    struct domain_counts {
        int64_t *list;
        size_t n, domains;
        int64_t least;
    } * spreads;
    struct json *service_labels; /* Labels that serviceAffinity requires. */
    struct volume_need *needs;   /* Claims that wait for the pod; see volumes.c. */
    size_t n_needs;
};
void cycle_begin(struct cycle *c, struct sched *s, const struct json *pod);
void cycle_end(struct cycle *c);
/* Counts the constraints again after pods were placed or unplaced. */
void cycle_recount(struct cycle *c);
/* 'ret_slots' (may be NULL): the resources that are too small, as bits; the bit SLOTS: one that no
 * node offers. */
enum sched_reason cycle_check(struct cycle *c, const struct node *n, uint32_t *ret_slots);
const struct verdict *class_verdict(struct sched *s, struct class *c, const struct node *n);
/* Whether a Service selects pods of both. */
bool service_is_common(const struct sched *s, const struct subject *a, const struct subject *b);
bool ports_conflict(const struct class *c, const struct node *n);
/* The eligible nodes' pods for each value of a constraint. */
void spread_count(struct cycle *c, const struct spread *sp, bool hard, struct domain_counts *ret);

/* ---- volumes.c ---- */
/* Finds what the pod's claims ask of nodes, or the fault for which it suits none. */
void volumes_begin(struct cycle *c);
void volumes_end(struct cycle *c);
enum sched_reason volumes_check(const struct cycle *c, const struct node *n);
/* The node that was selected for a claim of the pod before; NULL: none. */
const char *volumes_selected_node(const struct cycle *c);

/* ---- score.c ---- */
/* The best of the nodes. */
struct node *score_best(struct cycle *c, struct node **fit, size_t n);

/* ---- why.c ---- */
/* Counts of causes while nodes are looked at. */
struct why {
    struct smap counts; /* Texts to numbers. */
};
void why_init(struct why *w);
void why_done(struct why *w);
void why_add(struct why *w, struct cycle *c, const struct node *n, enum sched_reason reason,
             uint32_t slots);
/* Appends "N cause, M cause", sorted. */
void why_list(const struct why *w, struct strbuf *out);
/* What helps against these reasons: a sentence; "" when there is nothing to say. */
void why_helps(uint32_t reasons, struct strbuf *out);
