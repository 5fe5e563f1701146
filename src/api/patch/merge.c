/* SPDX-License-Identifier: Apache-2.0 */
#include "api/patch/merge.h"

#include "base/map.h"
#include "base/mem.h"

/* ---- merging ---- */

/* Makes an index of the list's elements by their keys; the list owns the values. */
static void index_list(const struct api_schema *s, const struct json *list, struct smap *ret)
{
    CLEANUP_STRBUF struct strbuf key = STRBUF_INIT;
    const struct json *item;
    smap_init(ret, NULL);
    JSON_FOREACH (item, list) {
        strbuf_reset(&key);
        api_schema_element_key(s, item, &key);
        smap_set(ret, key.data, (void *) item);
    }
}

static bool is_in(const struct api_schema *s, const struct smap *index, const struct json *item,
                  struct strbuf *key)
{
    strbuf_reset(key);
    api_schema_element_key(s, item, key);
    return smap_get(index, key->data) != NULL;
}

/* Appends the elements of 'config' from '*at' on to 'out', up to and including the next one that the
 * target has as well: it is merged with the target's element, which is taken out of 'have'. */
static void append_next(const struct api_schema *s, struct json *out, const struct json *config,
                        size_t *at, struct smap *have, struct strbuf *key)
{
    while (*at < json_count(config)) {
        const struct json *item = json_at(config, (*at)++);
        strbuf_reset(key);
        api_schema_element_key(s, item, key);
        struct json *was = smap_take(have, key->data);
        if (!was) {
            json_append(out, json_clone(item));
            continue;
        }
        struct json *merged = json_clone(was);
        if (json_is(merged, JSON_OBJECT) && api_schema_is_granular(api_schema_items(s), merged) &&
            json_is(item, JSON_OBJECT)) {
            api_merge(api_schema_items(s), merged, item);
        } else {
            json_free(merged);
            merged = json_clone(item);
        }
        json_append(out, merged);
        return;
    }
}

/* Returns the merged list. Elements that only 'target' has keep their positions. The positions of
 * common elements are filled in the order of 'config'; new elements come before the common element
 * that follows them in 'config', or at the end. */
static struct json *merge_lists(const struct api_schema *s, const struct json *target,
                                const struct json *config)
{
    struct json *out = json_array();
    const struct json *item;
    struct smap have, wanted;
    CLEANUP_STRBUF struct strbuf key = STRBUF_INIT;
    size_t at = 0;
    index_list(s, target, &have);
    index_list(s, config, &wanted);
    JSON_FOREACH (item, target) {
        if (is_in(s, &wanted, item, &key)) {
            append_next(s, out, config, &at, &have, &key);
        } else {
            json_append(out, json_clone(item));
        }
    }
    while (at < json_count(config)) {
        append_next(s, out, config, &at, &have, &key);
    }
    smap_done(&have);
    smap_done(&wanted);
    return out;
}

void api_merge(const struct api_schema *s, struct json *target, const struct json *config)
{
    for (size_t i = 0; i < json_count(config); i++) {
        const char *name = json_key_at(config, i);
        const struct json *v = json_at(config, i);
        struct json *have = json_get(target, name);
        const struct api_schema *member = api_schema_member(s, name);
        if (!have || json_type(have) != json_type(v) || !api_schema_is_granular(member, v)) {
            json_set(target, name, json_clone(v));
        } else if (json_is(v, JSON_OBJECT)) {
            api_merge(member, have, v);
        } else {
            json_set(target, name, merge_lists(member, have, v));
        }
    }
}

/* ---- removing ---- */

/* Whether no set of fields has anything of 'v': an empty list of which elements are owned one by
 * one, or a structure with nothing but such lists. */
static bool is_hollow(const struct api_schema *s, const struct json *v)
{
    if (!api_schema_is_granular(s, v)) {
        return false;
    }
    size_t n = json_count(v);
    bool hollow = json_is(v, JSON_ARRAY) ? n == 0 : n > 0;
    for (size_t i = 0; hollow && i < n; i++) {
        const struct api_field *f = api_schema_field(s, json_key_at(v, i));
        hollow = f && is_hollow(f->schema, json_at(v, i));
    }
    return hollow;
}

static bool remove_from(const struct api_schema *s, struct json *v, const struct json *last,
                        const struct json *owned, bool root);

/* 'v' is an object: removes its members in 'last' that 'owned' does not have, both sets of fields.
 * As in the library of Kubernetes' API server, a declared field that is hollow stays, and a
 * structure that becomes hollow is removed, though 'owned' has it.  Returns whether 'v' itself has
 * become hollow; a list does not, because the library makes it null. */
static bool remove_members(const struct api_schema *s, struct json *v, const struct json *last,
                           const struct json *owned, bool root)
{
    CLEANUP_STRBUF struct strbuf key = STRBUF_INIT;
    bool hollow = true, lost = false;
    for (size_t i = json_count(v); i-- > 0;) {
        struct json *child = json_at(v, i);
        strbuf_reset(&key);
        strbuf_addf(&key, "f:%s", json_key_at(v, i));
        const char *name = key.data + 2;
        const struct json *was = json_get(last, key.data), *owners = json_get(owned, key.data);
        const struct api_schema *member = api_schema_member(s, name);
        bool declared = api_schema_field(s, name) != NULL;
        if (declared && is_hollow(member, child)) {
            continue;
        }
        /* The metadata stays, even when no set has any of it: sets leave out the fields that only the
         * server decides. */
        bool is_metadata = root && streq(name, "metadata");
        /* A declared field stays for the sake of what is owned below it; a key of a map has to be
         * owned itself. */
        bool stays =
            !was || (declared ? owners != NULL : !fieldset_has(was) || fieldset_has(owners));
        if (!stays && !is_metadata) {
            json_remove(v, name);
        } else if (was && remove_from(member, child, was, owners, false) && declared &&
                   !is_metadata) {
            json_remove(v, name);
            lost = true;
        } else {
            hollow = false;
        }
    }
    return hollow && (lost || json_count(v));
}

/* The same for the elements of the array 'v'. */
static void remove_elements(const struct api_schema *s, struct json *v, const struct json *last,
                            const struct json *owned)
{
    size_t n = json_count(v);
    CLEANUP_FREE struct json **all = xcalloc(n + 1, sizeof(struct json *));
    CLEANUP_STRBUF struct strbuf key = STRBUF_INIT;
    for (size_t i = n; i-- > 0;) {
        all[i] = json_take_at(v, i);
    }
    for (size_t i = 0; i < n; i++) {
        strbuf_reset(&key);
        api_schema_element_key(s, all[i], &key);
        const struct json *was = json_get(last, key.data), *owners = json_get(owned, key.data);
        if (was && fieldset_has(was) && !fieldset_has(owners)) {
            json_free(all[i]);
            continue;
        }
        if (was) {
            (void) remove_from(api_schema_items(s), all[i], was, owners, false);
        }
        json_append(v, all[i]);
    }
}

static bool remove_from(const struct api_schema *s, struct json *v, const struct json *last,
                        const struct json *owned, bool root)
{
    if (!api_schema_is_granular(s, v)) {
        return false;
    }
    if (json_is(v, JSON_OBJECT)) {
        return remove_members(s, v, last, owned, root);
    }
    remove_elements(s, v, last, owned);
    return false;
}

void api_remove_fields(const struct api_schema *s, struct json *obj, const struct json *last,
                       const struct json *owned)
{
    (void) remove_from(s, obj, last, owned, true);
}

static void drop_below(const struct api_schema *s, struct json *obj, const struct json *before);

/* Returns whether the value became empty; otherwise this is done below it. */
static bool drop_or_descend(const struct api_schema *s, struct json *v, const struct json *before)
{
    if (!v || json_type(v) != json_type(before) || !api_schema_is_granular(s, before)) {
        return false;
    }
    if (json_count(v) == 0 && json_count(before)) {
        return true;
    }
    drop_below(s, v, before);
    return false;
}

static void drop_below(const struct api_schema *s, struct json *v, const struct json *before)
{
    if (json_is(v, JSON_OBJECT)) {
        for (size_t i = json_count(before); i-- > 0;) {
            const char *name = json_key_at(before, i);
            if (drop_or_descend(api_schema_member(s, name), json_get(v, name),
                                json_at(before, i))) {
                json_remove(v, name);
            }
        }
        return;
    }
    CLEANUP_STRBUF struct strbuf key = STRBUF_INIT;
    const struct json *item;
    struct smap have;
    index_list(s, v, &have);
    JSON_FOREACH (item, before) {
        strbuf_reset(&key);
        api_schema_element_key(s, item, &key);
        /* An element that is an object has its keys, so it is not empty. */
        (void) drop_or_descend(api_schema_items(s), smap_get(&have, key.data), item);
    }
    smap_done(&have);
}

void api_drop_emptied(const struct api_schema *s, struct json *obj, const struct json *before)
{
    for (size_t i = 0; i < json_count(before); i++) {
        const char *name = json_key_at(before, i);
        const struct api_schema *member = api_schema_member(s, name);
        bool is_map = !member || member->n_fields == 0;
        if (drop_or_descend(member, json_get(obj, name), json_at(before, i)) && is_map) {
            json_remove(obj, name);
        }
    }
}
