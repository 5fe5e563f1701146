/* SPDX-License-Identifier: Apache-2.0 */
/* Webhooks as their configurations describe them, and the writes that they are for.
 *
 * A list of webhooks is immutable and counted: a write that is under way keeps the list with which
 * it began.  Pure; loop's thread only. */
#pragma once

#include "api/kind.h"

enum webhook_operation {
    WEBHOOK_CREATE,
    WEBHOOK_UPDATE,
    WEBHOOK_DELETE,
    WEBHOOK_CONNECT,
    WEBHOOK_OPERATION_MAX
};
extern const char *const webhook_operation_names[WEBHOOK_OPERATION_MAX]; /* "CREATE" */

/* One webhook of a configuration. */
struct webhook {
    char *configuration, *name;
    const struct json *spec; /* Its element of the configuration, in the list's tree. */
    bool mutates;            /* It is of a MutatingWebhookConfiguration. */
    bool ignores;            /* failurePolicy: Ignore. */
    bool equivalent;         /* matchPolicy: Equivalent. */
    bool reinvoked;          /* reinvocationPolicy: IfNeeded. */
    unsigned timeout_s;
    /* The server: at 'host' and 'port' of a URL, or behind a service. */
    bool by_service;
    char *host; /* Name in its certificate: the URL's host, or NAME.NAMESPACE.svc. */
    char *service, *namespace;
    uint16_t port;
    char *path;     /* At least "/". */
    char *location; /* For messages: "https://HOST:PORT/PATH". */
    char *ca;       /* PEM; NULL: the system's authorities. */
};

struct webhook_list {
    unsigned refs;
    struct json **trees; /* The configurations. */
    size_t n_trees;
    struct webhook *hooks; /* In the order of configurations by name, and in each of its list. */
    size_t n, cap;
    bool mutates;
};
/* A list with one reference and without webhooks. */
struct webhook_list *webhook_list_new(bool mutates);
/* Adds the webhooks of a configuration, whose tree is taken over. */
void webhook_list_add(struct webhook_list *l, struct json *configuration);
struct webhook_list *webhook_list_ref(struct webhook_list *l);
struct webhook_list *webhook_list_unref(struct webhook_list *l); /* NULL is fine; returns NULL. */

/* The objects and paths of rules. */
struct webhook_target {
    enum webhook_operation operation;
    const char *subresource; /* "": none. */
    const char *namespace;   /* Namespace of the object; NULL: none.  Of a Namespace: its name. */
    /* Labels of that namespace; NULL: it has none.  Not read without a namespace. */
    const struct json *namespace_labels;
    const struct json *obj, *old; /* Either may be NULL. */
};
/* Whether a rule names the operation on the resource of kind 'k'. */
bool webhook_has_rule(const struct webhook *h, const struct api_kind *k,
                      const struct webhook_target *t);
/* Whether the selectors of the webhook select the namespace and the object. */
bool webhook_selects(const struct webhook *h, const struct webhook_target *t);
