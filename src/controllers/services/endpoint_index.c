/* SPDX-License-Identifier: Apache-2.0 */
#include "controllers/services/endpoint_index.h"

#include "base/mem.h"

static void free_set(void *p)
{
    smap_done(p);
    free(p);
}

void endpoint_index_init(struct endpoint_index *x)
{
    smap_init(&x->pods, NULL);
    smap_init(&x->by_label, free_set);
    smap_init(&x->services, free_set);
}

void endpoint_index_done(struct endpoint_index *x)
{
    struct smap_entry *se;
    SMAP_FOREACH (se, &x->pods) {
        endpoint_pod_free(se->value);
    }
    smap_done(&x->pods);
    smap_done(&x->by_label);
    smap_done(&x->services);
}

static void set_add(struct smap *sets, const char *name, const char *key, void *value)
{
    struct smap *set = smap_get(sets, name);
    if (!set) {
        set = NEW(struct smap);
        smap_init(set, NULL);
        smap_set(sets, name, set);
    }
    smap_set(set, key, value);
}

static void set_remove(struct smap *sets, const char *name, const char *key)
{
    struct smap *set = smap_get(sets, name);
    if (set) {
        (void) smap_remove(set, key);
        if (!smap_size(set)) {
            (void) smap_remove(sets, name);
        }
    }
}

static char *label_name(const char *ns, const char *label)
{
    return xasprintf("%s %s", ns, label);
}

struct endpoint_pod *endpoint_index_put(struct endpoint_index *x, const char *key,
                                        struct endpoint_pod *pod)
{
    struct endpoint_pod *old = smap_take(&x->pods, key);
    for (size_t i = 0; old && i < old->n_labels; i++) {
        CLEANUP_FREE char *name = label_name(old->namespace, old->labels[i]);
        set_remove(&x->by_label, name, key);
    }
    for (size_t i = 0; pod && i < pod->n_labels; i++) {
        CLEANUP_FREE char *name = label_name(pod->namespace, pod->labels[i]);
        set_add(&x->by_label, name, key, pod);
    }
    if (pod) {
        smap_set(&x->pods, key, pod);
    }
    return old;
}

/* The index key of the i-th label of the selector of a service in 'ns';
 * owned, NULL: the selector has fewer labels. */
static char *selector_name(const char *ns, size_t ns_size, const struct json *selector, size_t i)
{
    if (!json_is(selector, JSON_OBJECT) || i >= json_count(selector)) {
        return NULL;
    }
    const char *value = json_get_string(json_at(selector, i));
    return xasprintf("%.*s %s=%s", (int) ns_size, ns, json_key_at(selector, i), value ? value : "");
}

void endpoint_index_select(struct endpoint_index *x, const char *service, const struct json *old,
                           const struct json *selector)
{
    CLEANUP_FREE char *was = selector_name(service, strcspn(service, "/"), old, 0);
    CLEANUP_FREE char *now = selector_name(service, strcspn(service, "/"), selector, 0);
    if (was) {
        set_remove(&x->services, was, service);
    }
    if (now) {
        set_add(&x->services, now, service, x);
    }
}

void endpoint_index_services(const struct endpoint_index *x, const struct endpoint_pod *pod,
                             void (*fn)(void *ctx, const char *service), void *ctx)
{
    for (size_t i = 0; i < pod->n_labels; i++) {
        CLEANUP_FREE char *name = label_name(pod->namespace, pod->labels[i]);
        const struct smap *set = smap_get(&x->services, name);
        struct smap_entry *se;
        if (set) {
            SMAP_FOREACH (se, set) {
                fn(ctx, se->key);
            }
        }
    }
}

size_t endpoint_index_pods(const struct endpoint_index *x, const char *ns,
                           const struct json *selector, struct endpoint_pod ***ret)
{
    const struct smap *best = NULL;
    char *name;
    for (size_t i = 0; (name = selector_name(ns, strlen(ns), selector, i)); i++) {
        const struct smap *set = smap_get(&x->by_label, name);
        free(name);
        if (!set) {
            *ret = NULL; /* No pod has this label. */
            return 0;
        }
        best = !best || smap_size(set) < smap_size(best) ? set : best;
    }
    size_t n = 0;
    *ret = NULL;
    if (best) {
        struct smap_entry *se;
        *ret = xcalloc(smap_size(best), sizeof **ret);
        SMAP_FOREACH (se, best) {
            if (endpoint_pod_matches(se->value, selector)) {
                (*ret)[n++] = se->value;
            }
        }
    }
    return n;
}
