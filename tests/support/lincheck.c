/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that histories are linearizable: reads lines "KEY BEGIN END KIND FROM VALUE DONE" from standard input.
 *
 * KIND is read, write or swap; END is "-" when the outcome is not known; values are numbers, 0 for an absent key,
 * which all keys are at first.  Exit status 0: all keys are linearizable; 1: the line names one that is not;
 * 2: the input cannot be read. */
#include "linear.h"

#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct history {
    struct linear_op *ops;
    size_t n, cap;
};

static void history_free(void *p)
{
    struct history *h = p;
    free(h->ops);
    free(h);
}

static int parse_line(char *line, char **ret_key, struct linear_op *ret)
{
    static const char *const kinds[] = {
        [LINEAR_READ] = "read", [LINEAR_WRITE] = "write", [LINEAR_SWAP] = "swap"};
    char *field[8] = {0};
    size_t n = 0;
    for (char *rest = line, *word; (word = strsep(&rest, " \n")) && n < ARRAY_SIZE(field);) {
        if (*word) {
            field[n++] = word;
        }
    }
    uint64_t done = 0;
    size_t kind = 0;
    while (n == 7 && kind < ARRAY_SIZE(kinds) && !streq(field[3], kinds[kind])) {
        kind++;
    }
    *ret = (struct linear_op){.end = LINEAR_UNKNOWN, .kind = (enum linear_kind) kind};
    if (n != 7 || kind == ARRAY_SIZE(kinds) ||
        str_to_u64(field[1], UINT64_MAX - 1, &ret->begin) < 0 ||
        (!streq(field[2], "-") && str_to_u64(field[2], UINT64_MAX - 1, &ret->end) < 0) ||
        str_to_i64(field[4], INT64_MIN, INT64_MAX, &ret->from) < 0 ||
        str_to_i64(field[5], INT64_MIN, INT64_MAX, &ret->value) < 0 ||
        str_to_u64(field[6], 1, &done) < 0 || ret->end < ret->begin) {
        return -EINVAL;
    }
    ret->done = done;
    *ret_key = field[0];
    return 0;
}

int main(void)
{
    char line[512];
    struct smap keys;
    size_t total = 0;
    int status = 0;
    smap_init(&keys, history_free);
    for (size_t i = 1; fgets(line, sizeof line, stdin); i++) {
        char *key;
        struct linear_op op;
        if (parse_line(line, &key, &op) < 0) {
            fprintf(stderr, "lincheck: line %zu is no operation\n", i);
            smap_done(&keys);
            return 2;
        }
        struct history *h = smap_get(&keys, key);
        if (!h) {
            h = NEW(struct history);
            smap_set(&keys, key, h);
        }
        h->ops = grow(h->ops, &h->cap, h->n + 1, sizeof *h->ops);
        h->ops[h->n++] = op;
        total++;
    }
    struct smap_entry *node;
    SMAP_FOREACH (node, &keys) {
        const struct history *h = node->value;
        if (!linear_check(h->ops, h->n, LINEAR_ABSENT)) {
            printf("not linearizable: key %s, %zu operations\n", node->key, h->n);
            status = 1;
        }
    }
    if (status == 0) {
        printf("linearizable: %zu operations\n", total);
    }
    smap_done(&keys);
    return status;
}
