/* SPDX-License-Identifier: Apache-2.0 */
/* Interned labels, and selectors over them. */
#include "sdn/policy_spec.h"

#include "base/mem.h"

void label_pool_init(struct label_pool *p)
{
    hmap_init(&p->labels);
    hmap_init(&p->sets);
}

void label_pool_done(struct label_pool *p)
{
    assert(p->labels.n == 0 && p->sets.n == 0);
    hmap_done(&p->labels);
    hmap_done(&p->sets);
}

static uint32_t pair_hash(const char *key, const char *value)
{
    return hash_string(key) * 31 + hash_string(value);
}

struct label *label_get(struct label_pool *p, const char *key, const char *value)
{
    uint32_t hash = pair_hash(key, value);
    struct label *l;
    HMAP_FOREACH_WITH_HASH (l, struct label, node, hash, &p->labels) {
        if (streq(l->text, key) && streq(l->text + l->value_at, value)) {
            l->refs++;
            return l;
        }
    }
    size_t k = strlen(key) + 1, v = strlen(value) + 1;
    l = xmalloc(sizeof *l + k + v);
    l->refs = 1;
    l->value_at = (uint32_t) k;
    memcpy(l->text, key, k);
    memcpy(l->text + k, value, v);
    hmap_insert(&p->labels, &l->node, hash);
    return l;
}

void label_unref(struct label_pool *p, struct label *l)
{
    if (--l->refs == 0) {
        hmap_remove(&p->labels, &l->node);
        free(l);
    }
}

static int by_address(const void *a, const void *b)
{
    const struct label *x = *(struct label *const *) a, *y = *(struct label *const *) b;
    return x < y ? -1 : x > y;
}

struct labels *labels_get(struct label_pool *p, const struct json *map)
{
    size_t n = 0, count = json_is(map, JSON_OBJECT) ? json_count(map) : 0;
    struct labels *l = xcalloc(1, sizeof *l + count * sizeof(struct label *));
    for (size_t i = 0; i < count; i++) {
        const char *value = json_get_string(json_at(map, i));
        if (value) {
            l->list[n++] = label_get(p, json_key_at(map, i), value);
        }
    }
    l->n = (uint32_t) n;
    if (n) {
        qsort(l->list, n, sizeof(struct label *), by_address);
    }
    uint32_t hash = hash32(l->list, n * sizeof(struct label *));
    struct labels *same;
    HMAP_FOREACH_WITH_HASH (same, struct labels, node, hash, &p->sets) {
        if (same->n == n && memcmp(same->list, l->list, n * sizeof(struct label *)) == 0) {
            same->refs++;
            for (size_t i = 0; i < n; i++) {
                label_unref(p, l->list[i]);
            }
            free(l);
            return same;
        }
    }
    l->refs = 1;
    hmap_insert(&p->sets, &l->node, hash);
    return l;
}

struct labels *labels_unref(struct label_pool *p, struct labels *l)
{
    if (l && --l->refs == 0) {
        hmap_remove(&p->sets, &l->node);
        for (size_t i = 0; i < l->n; i++) {
            label_unref(p, l->list[i]);
        }
        free(l);
    }
    return NULL;
}

/* ---- matching ---- */

static bool has_pair(const struct labels *l, const struct label *pair)
{
    for (size_t i = 0; i < l->n; i++) {
        if (l->list[i] == pair) {
            return true;
        }
    }
    return false;
}

static const char *value_of(const struct labels *l, const char *key)
{
    for (size_t i = 0; i < l->n; i++) {
        if (streq(l->list[i]->text, key)) {
            return l->list[i]->text + l->list[i]->value_at;
        }
    }
    return NULL;
}

static bool expr_matches(const struct selector_expr *x, const struct labels *l)
{
    const char *value = value_of(l, x->key);
    bool listed = false;
    for (size_t i = 0; value && i < x->n_values; i++) {
        listed |= streq(value, x->values[i]);
    }
    switch (x->op) {
    case SELECTOR_IN:
        return listed;
    case SELECTOR_NOT_IN: /* Labels without the key match as well. */
        return !listed;
    case SELECTOR_EXISTS:
        return value != NULL;
    default:
        return value == NULL;
    }
}

bool selector_matches(const struct selector *s, const struct labels *l)
{
    for (size_t i = 0; i < s->n_pairs; i++) {
        if (!has_pair(l, s->pairs[i])) {
            return false;
        }
    }
    for (size_t i = 0; i < s->n_exprs; i++) {
        if (!expr_matches(&s->exprs[i], l)) {
            return false;
        }
    }
    return true;
}
