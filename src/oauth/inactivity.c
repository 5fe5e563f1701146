/* SPDX-License-Identifier: Apache-2.0 */
#include "oauth/inactivity.h"

#include "base/mem.h"
#include "base/timeutil.h"

void oauth_uses_init(struct oauth_uses *u)
{
    *u = (struct oauth_uses){0};
    smap_init(&u->by_name, NULL);
}

void oauth_uses_done(struct oauth_uses *u)
{
    for (size_t i = 0; i < u->n; i++) {
        free(u->heap[i]);
    }
    free(TAKE(u->heap));
    u->n = u->cap = 0;
    smap_done(&u->by_name);
}

static void swap(struct oauth_uses *u, size_t a, size_t b)
{
    struct oauth_use *use = u->heap[a];
    u->heap[a] = u->heap[b];
    u->heap[b] = use;
}

static bool is_before(const struct oauth_uses *u, size_t a, size_t b)
{
    return u->heap[a]->due_ms < u->heap[b]->due_ms;
}

void oauth_uses_record(struct oauth_uses *u, const char *name, int64_t seen_ms, int64_t end_ms)
{
    struct oauth_use *use = smap_get(&u->by_name, name);
    if (use) {
        use->seen_ms = MAX(use->seen_ms, seen_ms);
        return;
    }
    use = xcalloc(1, sizeof *use + strlen(name) + 1);
    use->seen_ms = seen_ms;
    use->due_ms = end_ms - OAUTH_INACTIVITY_LEAD_MS;
    memcpy(use->name, name, strlen(name) + 1);
    smap_set(&u->by_name, name, use);
    if (u->n == u->cap) {
        u->cap = u->cap ? 2 * u->cap : 16;
        u->heap = xreallocarray(u->heap, u->cap, sizeof(struct oauth_use *));
    }
    u->heap[u->n] = use;
    for (size_t i = u->n++; i > 0 && is_before(u, i, (i - 1) / 2); i = (i - 1) / 2) {
        swap(u, i, (i - 1) / 2);
    }
}

int64_t oauth_uses_due_ms(const struct oauth_uses *u)
{
    return u->n ? MAX(u->heap[0]->due_ms, INT64_C(0)) : -1;
}

struct oauth_use *oauth_uses_take(struct oauth_uses *u, int64_t now_ms)
{
    if (!u->n || u->heap[0]->due_ms > now_ms) {
        return NULL;
    }
    struct oauth_use *use = u->heap[0];
    u->heap[0] = u->heap[--u->n];
    for (size_t i = 0, child = 1; child < u->n; child = 2 * i + 1) {
        child += child + 1 < u->n && is_before(u, child + 1, child);
        if (!is_before(u, child, i)) {
            break;
        }
        swap(u, i, child);
        i = child;
    }
    (void) smap_take(&u->by_name, use->name);
    return use;
}

static int created(const struct json *token, int64_t *ret)
{
    const char *text = json_path_string(token, "metadata", "creationTimestamp", NULL);
    return text ? time_parse(text, ret) : -EINVAL;
}

int64_t oauth_inactivity_end_ms(const struct json *token)
{
    int64_t at, timeout = json_get_int_or(json_get(token, "inactivityTimeoutSeconds"), 0);
    return timeout > 0 && timeout <= INT32_MAX && created(token, &at) == 0 ? at + timeout * 1000
                                                                           : -1;
}

int64_t oauth_inactivity_next_s(const struct json *token, int64_t seen_ms, int64_t timeout_s)
{
    int64_t now = json_get_int_or(json_get(token, "inactivityTimeoutSeconds"), 0);
    int64_t expires = json_get_int_or(json_get(token, "expiresIn"), 0);
    int64_t at;
    if (now <= 0 || timeout_s < 0 || created(token, &at) < 0) {
        return -1;
    }
    if (timeout_s == 0) {
        return 0;
    }
    int64_t next = MIN((seen_ms - at) / 1000 + timeout_s, (int64_t) INT32_MAX);
    next = expires > 0 ? MIN(next, expires) : next;
    return next > now ? next : -1;
}
