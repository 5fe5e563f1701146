/* SPDX-License-Identifier: Apache-2.0 */
/* Network policies as values: from objects of the API to selectors, address ranges and port
 * ranges. Pure.
 *
 * Labels are interned in a 'struct label_pool': a pod's labels are a sorted array of pointers,
 * shared by all pods with the same, and a selector's "key=value" is one pointer compare. Objects
 * are checked again here, as they may have been stored before the API knew the kind; the error
 * names the field.
 *
 * A spec owns all it points to, and holds its labels in the pool, which must outlive it. */
#pragma once

#include "base/ip.h"
#include "base/map.h"
#include "wire/json.h"

/* ---- labels ---- */

struct label {
    struct hmap_node node;
    uint32_t refs;
    uint32_t value_at; /* Offset of the value in 'text'. */
    char text[];       /* Key, NUL, value, NUL. */
};

/* An interned set of labels, each key once. */
struct labels {
    struct hmap_node node;
    uint32_t refs;
    uint32_t n;
    struct label *list[]; /* By address. */
};

struct label_pool {
    struct hmap labels, sets;
};

void label_pool_init(struct label_pool *p);
void label_pool_done(struct label_pool *p); /* All references were given back. */
/* One label; the caller owns a reference. */
struct label *label_get(struct label_pool *p, const char *key, const char *value);
void label_unref(struct label_pool *p, struct label *l);
/* The labels of the object 'map' (metadata.labels; NULL: none); the caller owns a reference. */
struct labels *labels_get(struct label_pool *p, const struct json *map);
struct labels *labels_unref(struct label_pool *p, struct labels *l);

enum selector_op { SELECTOR_IN, SELECTOR_NOT_IN, SELECTOR_EXISTS, SELECTOR_NOT_EXISTS };
struct selector_expr {
    enum selector_op op;
    char *key;
    char **values;
    size_t n_values;
};
struct selector {
    struct label **pairs; /* matchLabels, by key. */
    size_t n_pairs;
    struct selector_expr *exprs;
    size_t n_exprs;
};
bool selector_matches(const struct selector *s, const struct labels *l);

/* ---- specs ---- */

enum policy_kind { POLICY_NETWORK, POLICY_ADMIN, POLICY_BASELINE };
enum policy_action { POLICY_ALLOW, POLICY_DENY, POLICY_PASS };
enum policy_direction { POLICY_EGRESS, POLICY_INGRESS };

/* A selection of pods (or nodes): those of a namespace, or of the namespaces of a selector. */
struct policy_who {
    uint32_t refs;
    bool nodes; /* Selects nodes by 'pods'. */
    char *ns;   /* NULL: 'namespaces' selects. */
    struct selector namespaces, pods;
    char *scope_text; /* Canonical text of the namespaces. */
    char *pods_text;  /* Canonical text of the pod selector. */
};

struct policy_port_range {
    uint8_t proto; /* IP protocol; 6, 17 or 132. */
    uint16_t first, last;
};
struct policy_port_name {
    uint8_t proto; /* 0: any. */
    char name[16];
};

struct policy_rule_spec {
    enum policy_action action;
    char *name;    /* Name of the AdminNetworkPolicy rule; may be NULL. */
    bool any_peer; /* The peer has no condition. */
    bool any_port;
    struct policy_who **peers;
    size_t n_peers;
    struct ip4_prefix *blocks; /* Disjoint and minimal. */
    size_t n_blocks;
    struct policy_port_range *ports; /* Disjoint, by protocol and port. */
    size_t n_ports;
    struct policy_port_name *named;
    size_t n_named;
};

struct policy_spec {
    enum policy_kind kind;
    int priority;               /* For POLICY_ADMIN: 0-1000, 0 comes first. */
    struct policy_who *subject; /* NULL: unknown; it may be any pod (of the namespace). */
    bool isolates[2];           /* POLICY_NETWORK: by direction. */
    struct policy_rule_spec *rules[2];
    size_t n_rules[2];
};

/* 'ns' of POLICY_NETWORK.  On failure (-EINVAL, the field named) '*ret' has the valid parts:
 * subject, priority and policy types, or the widest ones in place of invalid ones, and no rules;
 * the caller frees it as well. */
int policy_spec_parse(struct label_pool *pool, enum policy_kind kind, const char *ns,
                      const struct json *obj, struct policy_spec *ret, struct err *e);
void policy_spec_done(struct label_pool *pool, struct policy_spec *s);
/* Selects every pod; the caller owns a reference. */
struct policy_who *policy_who_everybody(void);
struct policy_who *policy_who_unref(struct label_pool *pool, struct policy_who *w);

/* Calls 'fn' for the fewest aligned blocks that cover first..last of a space of 'bits' bits. */
void range_to_blocks(uint32_t first, uint32_t last, unsigned bits,
                     void (*fn)(void *ctx, uint32_t value, unsigned len), void *ctx);
