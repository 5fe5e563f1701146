/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/rollout.h"

#include "base/mem.h"
#include "base/str.h"

int64_t rollout_share(const struct json *share, int64_t total, bool round_up)
{
    const char *s = json_get_string(share);
    int64_t percent;
    if (!s) {
        return MAX(json_get_int_or(share, 0), 0);
    }
    CLEANUP_FREE char *number = xstrndup(s, strcspn(s, "%"));
    if (!str_has_suffix(s, "%") || str_to_i64(number, 0, INT32_MAX, &percent) < 0) {
        return 0;
    }
    return (percent * total + (round_up ? 99 : 0)) / 100;
}

void rollout_bounds(const struct json *surge, const struct json *unavailable, int64_t desired,
                    int64_t *ret_surge, int64_t *ret_unavailable)
{
    *ret_surge = rollout_share(surge, desired, true);
    *ret_unavailable = rollout_share(unavailable, desired, false);
    if (!*ret_surge && !*ret_unavailable) {
        *ret_unavailable = 1;
    }
    *ret_unavailable = MIN(*ret_unavailable, desired);
}

static int64_t count_old(const struct rollout *r)
{
    int64_t n = 0;
    for (size_t i = 0; i < r->n_old; i++) {
        n += r->old_set[i]->replicas;
    }
    return n;
}

int64_t rollout_new_size(const struct rollout *r, int64_t present)
{
    int64_t most = r->desired + r->surge, all = count_old(r) + present;
    if (present > r->desired) {
        return r->desired;
    }
    return all >= most ? present : present + MIN(most - all, r->desired - present);
}

/* Takes up to 'most' pods that are not available from the old sets. */
static int64_t drop_unhealthy(struct rollout *r, int64_t most)
{
    int64_t dropped = 0;
    for (size_t i = 0; i < r->n_old && dropped < most; i++) {
        struct rollout_set *s = r->old_set[i];
        int64_t n = MIN(most - dropped, s->replicas - s->available);
        if (n > 0) {
            s->replicas -= n;
            dropped += n;
        }
    }
    return dropped;
}

bool rollout_shrink_old(struct rollout *r)
{
    int64_t least = r->desired - r->unavailable;
    int64_t fresh = r->new_set ? r->new_set->replicas : 0;
    int64_t available = r->new_set ? r->new_set->available : 0;
    /* Pods of the new set that are not available yet will take the place of old ones. */
    int64_t budget = count_old(r) + fresh - least - (fresh - available);
    if (count_old(r) == 0 || budget <= 0) {
        return false;
    }
    int64_t dropped = drop_unhealthy(r, budget);
    for (size_t i = 0; i < r->n_old; i++) {
        available += r->old_set[i]->available;
    }
    int64_t spare = available - least;
    for (size_t i = 0; i < r->n_old && spare > 0; i++) {
        struct rollout_set *s = r->old_set[i];
        int64_t n = MIN(s->replicas, spare);
        s->replicas -= n;
        spare -= n;
        dropped += n;
    }
    return dropped > 0;
}

bool rollout_single(const struct rollout *r, struct rollout_set **ret)
{
    struct rollout_set *active = r->new_set && r->new_set->replicas ? r->new_set : NULL;
    size_t n = active != NULL;
    for (size_t i = 0; i < r->n_old; i++) {
        if (r->old_set[i]->replicas) {
            active = r->old_set[i];
            n++;
        }
    }
    if (n > 1) {
        return false;
    }
    struct rollout_set *latest = r->new_set ? r->new_set
                                 : r->n_old ? r->old_set[r->n_old - 1]
                                            : NULL;
    *ret = n ? active : latest;
    return true;
}

/* ---- in proportion ---- */

struct sized {
    struct rollout_set *set;
    size_t age; /* The oldest has 0. */
    bool grows;
};

/* The largest first; of equal ones the newer when pods are added, the older when they are taken. */
static int compare_sizes(const void *x, const void *y)
{
    const struct sized *a = x, *b = y;
    if (a->set->replicas != b->set->replicas) {
        return a->set->replicas > b->set->replicas ? -1 : 1;
    }
    return (a->age > b->age) == a->grows ? -1 : 1;
}

/* 'a' / 'b', rounded to the nearest whole number, halves away from 0. */
static int64_t divide_rounded(int64_t a, int64_t b)
{
    return a >= 0 ? (2 * a + b) / (2 * b) : -((2 * -a + b) / (2 * b));
}

/* How much the size of a set changes with the bound of all pods. */
static int64_t fraction(const struct rollout *r, const struct rollout_set *s)
{
    int64_t before = s->max_replicas ? s->max_replicas : r->status_replicas;
    if (r->desired == 0) {
        return -s->replicas;
    }
    if (before <= 0) {
        return 0;
    }
    return divide_rounded(s->replicas * (r->desired + r->surge), before) - s->replicas;
}

void rollout_spread(struct rollout *r)
{
    struct sized *list = xcalloc(r->n_old + 1, sizeof *list);
    size_t n = 0;
    int64_t all = 0, added = 0;
    for (size_t i = 0; i <= r->n_old; i++) {
        struct rollout_set *s = i < r->n_old ? r->old_set[i] : r->new_set;
        if (s && s->replicas > 0) {
            list[n++] = (struct sized){.set = s, .age = i};
            all += s->replicas;
        }
    }
    int64_t missing = (r->desired > 0 ? r->desired + r->surge : 0) - all;
    for (size_t i = 0; i < n; i++) {
        list[i].grows = missing > 0;
    }
    qsort(list, n, sizeof *list, compare_sizes);
    for (size_t i = 0; i < n && missing != 0; i++) {
        int64_t left = missing - added, part = fraction(r, list[i].set);
        part = left == 0 ? 0 : missing > 0 ? MIN(part, left) : MAX(part, left);
        list[i].set->replicas += part;
        added += part;
    }
    if (n && missing != 0) {
        list[0].set->replicas = MAX(list[0].set->replicas + missing - added, 0);
    }
    for (size_t i = 0; i < n; i++) {
        list[i].set->replicas = MAX(list[i].set->replicas, 0);
    }
    free(list);
}
