/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/template_hash.h"

#include "base/mem.h"

#include <stdio.h>

struct member {
    const char *key;
    const struct json *value;
};

static int compare_members(const void *a, const void *b)
{
    return strcmp(((const struct member *) a)->key, ((const struct member *) b)->key);
}

/* Writes the value with its members in the order of their names; the depth is that of JSON. */
static void write_sorted(const struct json *v, struct strbuf *out)
{
    size_t n = json_count(v);
    if (json_is(v, JSON_OBJECT)) {
        struct member *list = xcalloc(n + 1, sizeof *list);
        for (size_t i = 0; i < n; i++) {
            list[i] = (struct member){json_key_at(v, i), json_at(v, i)};
        }
        qsort(list, n, sizeof *list, compare_members);
        strbuf_addc(out, '{');
        for (size_t i = 0; i < n; i++) {
            json_write_string(list[i].key, strlen(list[i].key), out);
            strbuf_addc(out, ':');
            write_sorted(list[i].value, out);
        }
        strbuf_addc(out, '}');
        free(list);
    } else if (json_is(v, JSON_ARRAY)) {
        strbuf_addc(out, '[');
        for (size_t i = 0; i < n; i++) {
            write_sorted(json_at(v, i), out);
            strbuf_addc(out, ',');
        }
        strbuf_addc(out, ']');
    } else {
        json_write(v, 0, out);
    }
}

void template_hash(const struct json *value, int64_t collisions, char out[TEMPLATE_HASH_SIZE])
{
    static const char letters[] = "bcdfghjklmnpqrstvwxz2456789";
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    write_sorted(value, &text);
    if (collisions) {
        strbuf_addf(&text, "%lld", (long long) collisions);
    }
    snprintf(out, TEMPLATE_HASH_SIZE, "%u", hash32(text.data, text.size));
    for (char *p = out; *p; p++) {
        *p = letters[(unsigned char) *p % (sizeof letters - 1)];
    }
}

/* The metadata without the label of the hash; owned. */
static struct json *plain_metadata(const struct json *template)
{
    struct json *meta = json_clone(json_get(template, "metadata"));
    struct json *labels = json_get(meta, "labels");
    if (labels) {
        (void) json_remove(labels, LABEL_TEMPLATE_HASH);
    }
    if (meta && !json_count(labels)) {
        (void) json_remove(meta, "labels");
    }
    return meta ? meta : json_object();
}

bool template_equal(const struct json *a, const struct json *b)
{
    const struct json *x = json_get(a, "spec"), *y = json_get(b, "spec");
    if (!x || !y || !json_equal(x, y)) {
        return false;
    }
    CLEANUP(json_free) struct json *am = plain_metadata(a);
    CLEANUP(json_free) struct json *bm = plain_metadata(b);
    return json_equal(am, bm);
}
