/* SPDX-License-Identifier: Apache-2.0 */
/* The state of the policy compiler (policy.h), which its files share.
 *
 *     policy.c            objects in: policies, namespaces, pods, attachments; their compilation
 *     policy_addresses.c  check of reported addresses
 *     policy_sets.c       sets, classes, and the addresses in them
 *     policy_rules.c      rules of active policies, and their share in flows
 *     policy_flows.c      output as flows: the flows of each group, and their cookies
 *     policy_table.c, policy_ports.c   output as tables
 *     policy_decide.c     the rule that decides, for people
 *     policy_spec.c, policy_labels.c   parsed policies, and labels
 *
 * struct policy owns all; the other structs refer to each other by plain pointers. */
#pragma once

#include "sdn/address.h"
#include "sdn/pipeline.h"
#include "sdn/policy.h"
#include "sdn/tables.h"

/* Kinds of sets and classes: direction * 2 + role. */
enum role { ROLE_SUBJECT, ROLE_PEER };
#define N_SPACES 4
static inline unsigned space_of(enum policy_direction d, enum role r)
{
    return (unsigned) d * 2 + (unsigned) r;
}

/* NetworkPolicy rules that share a priority: their conjunctions share flows. */
#define RULES_A_BUCKET 900
#define N_BUCKETS 64
static_assert(RULES_A_BUCKET < OF_MAX_CONJUNCTIONS,
              "the conjunctions of a bucket fit into one flow");
static_assert(POLICY_MAX_RULES == RULES_A_BUCKET * N_BUCKETS,
              "the buckets have room for all rules");

#pragma GCC diagnostic push
#pragma GCC diagnostic error "-Wpadded" /* Equal lists are found as bytes. */
struct named_port {
    uint8_t proto, zero;
    uint16_t number;
    char name[16];
};
#pragma GCC diagnostic pop

/* The named ports of pods; equal lists are shared. */
struct named_ports {
    struct hmap_node node;
    uint32_t refs, n;
    struct named_port list[];
};

struct ns {
    struct hmap_node node;
    char *name;            /* NULL: the nodes. */
    struct labels *labels; /* NULL: its object is not known. */
    struct list pods, policies;
    struct scope **scopes; /* Scopes that include the namespace. */
    size_t n_scopes, scopes_cap;
};

/* A node and its HostSubnet, by which the addresses of its pods are checked. */
struct site {
    struct hmap_node node;
    struct list pods;
    uint32_t refs; /* One reference per pod, one for the HostSubnet. */
    bool known;    /* It has a HostSubnet, described by 'place'. */
    struct pod_site place;
    char name[];
};

#define POLICY_MAX_REPORTED ADDRESS_MAX_OF_NODE

struct pod {
    struct hmap_node node;
    struct list in_ns;
    struct list local; /* In p->locals while it has an address here. */
    struct ns *ns;
    struct labels *labels;
    struct named_ports *ports;
    struct endpoint *endpoints;
    struct site *site; /* NULL: this is a node, or the Pod object is unknown. */
    struct list at_site;
    uint32_t *reported; /* All addresses in the object's status. */
    uint8_t n_reported;
    struct object **subject_of; /* Policies that select it, while it has a local address. */
    uint32_t n_subject_of;
    uint32_t serial;  /* If two pods claim an address, the later one has it. */
    uint16_t n_local; /* Number of its addresses on this node. */
    bool known;       /* Its object was seen, also if it is deleted by now. */
    bool present;     /* Its object exists. */
    bool terminating; /* Its object has a deletionTimestamp. */
    char name[];
};

/* One address of a pod. */
struct endpoint {
    struct hmap_node node; /* By address; several pods may claim one. */
    struct list dirty;
    struct endpoint *next; /* Next one of the pod. */
    struct pod *pod;
    uint32_t ip;
    bool local;
    struct class *classes[N_SPACES];
};

/* The namespaces that a set selects from. */
struct scope {
    struct hmap_node node;
    struct policy_who *who;
    struct hmap sets; /* By the first label that they require. */
    size_t n_sets;
};

/* A use of a set: by a clause of a rule, or as the subject of 'object'. */
struct use {
    struct rule *rule; /* NULL: as the subject. */
    struct object *object;
    uint8_t clause; /* Number of the rule's clause; without a rule one of the two below. */
};
#define CLAUSE_ISOLATES 0      /* The subject of a NetworkPolicy, which isolates it. */
#define CLAUSE_HOLDS UINT8_MAX /* The subject of another kind: the use only keeps the set. */

/* A port name that rules resolve for a set's members, and the numbers that it has for them. */
struct by_name {
    struct policy_port_name name;
    struct template **templates;
    size_t n_templates, templates_cap;
    struct set **sets; /* Sets of members with the same number. */
    size_t n_sets, sets_cap;
};

struct set {
    struct hmap_node node, in_scope;
    struct list garbage;
    bool listed; /* In its scope. */
    struct scope *scope;
    struct policy_who *who;
    uint8_t space;
    struct set *base; /* For a set by a named port: the set without the name. */
    struct policy_port_name name;
    uint8_t proto;
    uint16_t number;
    uint64_t hash;
    struct use *uses;
    size_t n_uses, uses_cap;
    struct by_name **names;
    size_t n_names, names_cap;
    struct class **classes;
    size_t n_classes, classes_cap;
};

struct class
{
    struct hmap_node node;  /* By hash. */
    struct hmap_node by_id; /* By space and id. */
    struct list dirty;
    uint64_t hash;
    uint32_t id, refs;
    uint8_t space;
    bool isolated;     /* With tables: a subject that a NetworkPolicy isolates. */
    struct list pairs; /* With tables: the pairs that it is in. */
    uint32_t n;
    struct set *sets[];
};

struct object {
    struct hmap_node node;
    struct list link;  /* Link in its namespace, or in p->admin. */
    struct list touch; /* In p->touched. */
    struct ns *ns;
    struct policy_spec spec;
    uint64_t hash;
    size_t n_subjects; /* Local pods that it selects. */
    bool broken;       /* It could not be compiled. */
    bool active;       /* It has local subjects, and its rules are compiled. */
    struct set *subject[2];
    struct rule **rules;
    size_t n_rules, rules_cap;
    struct template **templates;
    size_t n_templates, templates_cap;
    char name[];
};

/* A rule with a named port: it becomes one rule for each number of the name. */
struct template
{
    struct object *object;
    const struct policy_rule_spec *spec;
    enum policy_direction dir;
    uint16_t index;
    struct policy_port_name name;
    struct set **bases; /* The sets whose members define the name: the subject, or the peers. */
    size_t n_bases;
    struct rule **rules;
    size_t n_rules, rules_cap;
};

struct rule {
    struct hmap_node node; /* By conj_id. */
    struct list dirty;
    struct object *object;
    const struct policy_rule_spec *spec; /* NULL: of an object that could not be compiled. */
    struct set *subject;
    struct set **peers;
    size_t n_peers;
    struct dim **dims;
    size_t n_dims, dims_cap;
    struct block **blocks; /* In tables. */
    size_t n_blocks;
    uint32_t conj_id;
    uint16_t index, priority, bucket;
    uint8_t dir, action, n_clauses;
    uint8_t table;
    bool by_name;
    uint8_t proto; /* by_name */
    uint16_t number;
    uint32_t name_hash; /* by_name: two names may have the same number. */
};

static inline bool rule_has_peers(const struct rule *r)
{
    return r->n_peers || (r->spec && !r->spec->any_peer);
}

static inline bool rule_has_ports(const struct rule *r)
{
    return r->by_name || (r->spec && !r->spec->any_port);
}

/* Whether address blocks can be peers of the rule. A named port is looked up at the receiver, which
 * has to be a pod: with egress the receiver is the peer. */
static inline bool rule_takes_blocks(const struct rule *r)
{
    return r->spec && (!r->by_name || r->dir == POLICY_INGRESS);
}

/* A port or an address block at one priority: shared by the rules that name it. */
struct dim {
    struct hmap_node node, by_cookie;
    struct list dirty;
    uint64_t cookie;
    uint8_t table;
    bool is_port;
    uint8_t proto, len; /* Number of bits of 'value' that count. */
    uint16_t priority;
    uint32_t value;
    struct dim_ref {
        struct rule *rule;
        uint8_t clause;
    } * refs;
    size_t n_refs, refs_cap;
};

/* ---- tables ---- */

/* A set of port rules; shared, immutable. */
struct ports {
    struct hmap_node node, by_id;
    struct list unused;
    uint32_t id, refs;
    struct policy_port_verdict *rows;
    size_t n;
};

/* A subject's class with a peer's class, a block, or neither (any peer). */
struct pair {
    struct hmap_node node;
    struct list of_subject, of_peer;
    struct class *subject, *peer;
    struct block *block;
    struct ports *ports; /* NULL: no rule. */
    bool isolated;
    bool stale; /* Not found again by the present update: it is removed at its end. */
};

/* An address block that rules of a direction name. */
struct block {
    struct hmap_node node, by_id;
    struct list pairs, dirty;
    struct ip4_prefix prefix;
    uint32_t id;
    uint8_t dir;
    bool there; /* The datapath has it. */
    size_t at;  /* Index among the blocks of the direction. */
    struct rule **rules;
    size_t n_rules, rules_cap;
};

struct policy {
    struct ip4_prefix local;
    struct node_rules addresses; /* Only its networks are set. */
    struct hmap sites;
    const struct policy_ops *ops;
    void *ctx;
    const struct policy_flow_ops *flows; /* NULL: no datapath takes flows. */
    void *flows_ctx;
    const struct policy_table_ops *table; /* NULL: the output is flows. */
    void *table_ctx;
    struct hmap pairs, ports, port_ids, blocks, block_ids;
    struct list unused_ports, dirty_blocks;
    struct block **sorted_blocks[2]; /* By address, wider blocks first. */
    size_t n_sorted_blocks[2];
    bool blocks_changed[2];
    struct label_pool pool;
    struct labels *no_labels;
    struct hmap named_ports;
    struct hmap namespaces, pods, endpoints, objects;
    struct ns nodes;
    struct list locals;
    struct list admin; /* Objects of the administrator's kinds. */
    struct policy_who *everybody;

    struct hmap scopes, sets, classes, class_ids, rules, dims, dim_cookies;
    size_t bucket_rules[2][N_BUCKETS];
    size_t n_admin_rules[2];
    bool admin_changed[2];
    bool meanings_changed; /* A set by a named port may have lost its last member. */

    struct list touched, dirty_endpoints, dirty_classes, dirty_rules, dirty_dims, garbage;
    uint32_t *dirty_ips;
    size_t n_dirty_ips, dirty_ips_cap;
    struct set **found[N_SPACES]; /* Scratch of endpoint_update. */
    size_t n_found[N_SPACES], found_cap[N_SPACES];
    uint32_t serial;
    size_t n_broken;
};

/* ---- policy.c ---- */
/* Sets the addresses of a pod (or node) that is not local. */
void pod_set_addresses(struct policy *p, struct pod *pod, const uint32_t *list, size_t n);

/* ---- policy_addresses.c ---- */
/* Sets the addresses in the object's status that count for policies, after checking them. */
void pod_report(struct policy *p, struct pod *pod, const struct json *obj);
void node_report(struct policy *p, struct pod *node, const struct json *obj);
/* Drops all addresses: the object was deleted. */
void pod_report_nothing(struct policy *p, struct pod *pod);
void sites_free(struct policy *p);

/* ---- policy_sets.c ---- */
struct ns *ns_find(const struct policy *p, const char *name); /* NULL: unknown. */
struct ns *ns_get(struct policy *p, const char *name);
void ns_release(struct policy *p, struct ns *ns); /* Frees it when it is empty. */
void ns_rescope(struct policy *p, struct ns *ns); /* Its labels changed. */
bool who_matches(const struct policy_who *w, const struct policy *p, const struct pod *pod);
/* The set of 'who' in 'space'; it is freed when it has no user at the end of
 * policy_compile. */
struct set *set_get(struct policy *p, unsigned space, struct policy_who *who);
void set_use(struct policy *p, struct set *s, struct rule *rule, struct object *o, uint8_t clause);
void set_unuse(struct policy *p, struct set *s, const struct rule *rule, const struct object *o,
               uint8_t clause);
void set_add_template(struct policy *p, struct set *s, struct template *t);
void set_remove_template(struct policy *p, struct set *s, struct template *t);
/* Members of 'base' for which the name has this number. */
struct set *set_by_name(struct policy *p, struct set *base, const struct policy_port_name *name,
                        uint8_t proto, uint16_t number);
void set_touch_classes(struct policy *p, struct set *s);
void pod_touch(struct policy *p, struct pod *pod);
void endpoint_touch(struct policy *p, struct endpoint *ep);
void endpoints_update(struct policy *p); /* Updates the endpoints that were touched. */
void endpoint_free(struct policy *p, struct endpoint *ep);
void ip_touch(struct policy *p, uint32_t ip);
/* Removes the sets without users, and their members from them. */
void sets_collect(struct policy *p);

/* ---- policy_rules.c ---- */
void object_activate(struct policy *p, struct object *o);
void object_deactivate(struct policy *p, struct object *o);
/* A member of the template's sets has the named port at 'number'. */
void template_expand(struct policy *p, struct template *t, uint8_t proto, uint16_t number);
void templates_collect(
    struct policy *p); /* Removes the rules of numbers that a name has no longer. */
void admin_layout(struct policy *p, enum policy_direction d); /* Priorities by rank. */

/* ---- policy_table.c ---- */
void table_emit(struct policy *p);
void table_forget_class(struct policy *p, struct class *c);
void table_join_blocks(struct policy *p, struct rule *r);
void table_leave_blocks(struct policy *p, struct rule *r);

/* ---- policy_ports.c ---- */
/* The caller owns a reference. NULL: the rules say nothing about ports. */
struct ports *ports_of_rules(struct policy *p, const struct rule *const *rules, size_t n);
void ports_unref_set(struct policy *p, struct ports *x);
void ports_collect(struct policy *p); /* Hands out the removal of sets of ports without users. */

/* ---- policy_flows.c ---- */
/* The pod that has the address, among those that claim it. */
const struct endpoint *endpoint_owner(const struct policy *p, uint32_t ip);
uint64_t class_cookie(const struct class *c);
void emit_ip(struct policy *p, uint32_t ip);
void emit_class(struct policy *p, const struct class *c);
void emit_rule(struct policy *p, const struct rule *r);
void emit_dim(struct policy *p, const struct dim *d);
void emit_nothing(struct policy *p, uint64_t cookie);
