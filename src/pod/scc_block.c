/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/scc_block.h"

#include "base/mem.h"

#include <stdio.h>

#define LAST_ID INT64_C(4294967294) /* 2^32 - 1 means no user (chown(2)). */

void scc_blocks_defaults(struct scc_blocks *ret)
{
    *ret = (struct scc_blocks){.first = 1000000000,
                               .size = 10000,
                               .n = 100000,
                               .sensitivity = "s0",
                               .per_level = 2,
                               .categories = 1024,
                               .per_project = 5};
}

/* ---- configuration ---- */

int scc_blocks_parse_uids(const char *text, struct scc_blocks *b, struct err *e)
{
    const char *slash = strrchr(text, '/');
    struct scc_range all;
    uint64_t size;
    CLEANUP_FREE char *range = xstrndup(text, slash ? (size_t) (slash - text) : strlen(text));
    if (!slash || strchr(range, '/') || str_to_u64(slash + 1, LAST_ID, &size) < 0 || !size ||
        scc_parse_block(range, &all, NULL) < 0) {
        return err_set(e, -EINVAL, "must be FIRST-LAST/SIZE, such as 1000000000-1999999999/10000");
    }
    uint64_t n = (uint64_t) (all.max - all.min + 1) / size;
    if (all.max > LAST_ID || n == 0 || n > UINT32_MAX / 2) {
        return err_set(e, -EINVAL, "must have a block at least, and end before 4294967295");
    }
    b->first = all.min;
    b->size = (int64_t) size;
    b->n = (uint32_t) n;
    return 0;
}

int scc_blocks_parse_levels(const char *text, struct scc_blocks *b, struct err *e)
{
    const char *slash = strchr(text, '/'), *colon = strchr(text, ':');
    const char *comma = slash ? strchr(slash, ',') : NULL;
    uint64_t count = 0, categories = 1024;
    CLEANUP_FREE char *number = slash ? xstrndup(slash + 1, strcspn(slash + 1, ",")) : xstrdup("");
    bool prefix = colon && slash == colon + 1 && colon > text &&
                  (size_t) (colon - text) < sizeof b->sensitivity &&
                  strspn(text, "s0123456789") == (size_t) (colon - text);
    if (!prefix || str_to_u64(number, SCC_MAX_CATEGORIES, &count) < 0 || !count ||
        (comma && str_to_u64(comma + 1, 1024, &categories) < 0) || categories < count) {
        return err_set(e, -EINVAL,
                       "must be SENSITIVITY:/COUNT[,CATEGORIES] with a COUNT of 1 to %d and at "
                       "most 1024 CATEGORIES, such as s0:/2",
                       SCC_MAX_CATEGORIES);
    }
    (void) snprintf(b->sensitivity, sizeof b->sensitivity, "%.*s", (int) (colon - text), text);
    b->per_level = (unsigned) count;
    b->categories = (unsigned) categories;
    return 0;
}

/* n over k; k is at most SCC_MAX_CATEGORIES and n at most 1,024, so that it fits. */
static uint64_t choose(uint64_t n, unsigned k)
{
    uint64_t r = 1;
    for (unsigned i = 1; i <= k; i++) {
        r = n < k ? 0 : r * (n - k + i) / i;
    }
    return r;
}

int scc_blocks_check(const struct scc_blocks *b, struct err *e)
{
    uint64_t levels = choose(b->categories, b->per_level);
    if (b->per_project == 0 || (uint64_t) b->n * b->per_project > levels) {
        return err_set(e, -EINVAL,
                       "%u blocks of user IDs with %u levels each need more than the %llu levels "
                       "that there are",
                       b->n, b->per_project, (unsigned long long) levels);
    }
    return 0;
}

/* ---- annotations ---- */

static void set_absent(struct json *annotations, const char *key, struct json *value)
{
    if (json_string_size(json_get(annotations, key))) {
        json_free(value);
    } else {
        json_set(annotations, key, value);
    }
}

/* The set of categories with the given rank, the largest category first: "s0:c3,c2". */
static struct json *level_of(const struct scc_blocks *b, uint64_t rank)
{
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    uint64_t category = b->categories;
    strbuf_addf(&text, "%s:", b->sensitivity);
    for (unsigned k = b->per_level; k > 0; k--) {
        while (category > 0 && choose(--category, k) > rank) {
        }
        rank -= choose(category, k);
        strbuf_addf(&text, "%sc%llu", k < b->per_level ? "," : "", (unsigned long long) category);
    }
    return json_string(strbuf_cstr(&text));
}

void scc_block_annotate(const struct scc_blocks *b, uint32_t i, struct json *annotations)
{
    long long first = b->first + (long long) i * b->size, size = b->size;
    set_absent(annotations, SCC_UIDS_ANNOTATION, json_stringf("%lld/%lld", first, size));
    set_absent(annotations, SCC_GROUPS_ANNOTATION, json_stringf("%lld/%lld", first, size));
    set_absent(annotations, SCC_LEVEL_ANNOTATION, level_of(b, (uint64_t) i * b->per_project));
}

int scc_block_find(const struct scc_blocks *b, const char *text, uint32_t *ret)
{
    struct scc_range range;
    if (!text || scc_parse_block(text, &range, NULL) < 0 || range.min < b->first ||
        (range.min - b->first) / b->size >= b->n) {
        return -ENOENT;
    }
    *ret = (uint32_t) ((range.min - b->first) / b->size);
    return 0;
}
