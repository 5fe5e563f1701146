/* SPDX-License-Identifier: Apache-2.0 */
/* Writes under a lease: the header "Tenet-Lease: NAMESPACE/NAME HOLDER" makes a change
 * conditional on that Lease having that holder.
 *
 * The store makes the change in one transaction with a check that the Lease is at the revision
 * that the cache has, so that no late write of a former holder takes effect.  If the holder has
 * only renewed the Lease in the meantime, the store refuses as well; then the cache has the
 * renewed Lease, and the change is sent again. */
#include "apiserver/verbs/lease.h"

#define HEADER "Tenet-Lease"

static const char *header_of(const struct write *w)
{
    const struct request *q = w->q;
    return http_header(q->x, HEADER);
}

/* The Lease that 'text' names, if it has the holder that 'text' names; NULL: it does not. */
static const struct object *find_held(struct apiserver *a, const char *text)
{
    const char *holder = strchr(text, ' ');
    const struct api_kind *k = api_kind_find("coordination.k8s.io", "v1", "leases");
    if (!holder || !holder[1] || !k) {
        return NULL;
    }
    CLEANUP_FREE char *key = xstrndup(text, (size_t) (holder - text));
    const struct object *o = keyset_get(&cache_find(&a->cache, k)->objects, key);
    if (!o) {
        return NULL;
    }
    CLEANUP(json_free) struct json *obj = object_parse(o);
    return streq_null(json_path_string(obj, "spec", "holderIdentity", NULL), holder + 1) ? o : NULL;
}

int lease_check(struct request *q, struct outcome *outcome)
{
    const char *text = http_header(q->x, HEADER);
    if (!text || find_held(q->server, text)) {
        return 0;
    }
    outcome_lease_lost(outcome, q);
    return -EPERM;
}

bool lease_is_held(const struct write *w)
{
    const char *text = header_of(w);
    return text && find_held(w->server, text);
}

bool lease_guard(const struct write *w, char **ret_key, uint64_t *ret_at)
{
    const char *text = header_of(w);
    if (!text) {
        return false;
    }
    const struct object *o = find_held(w->server, text);
    const struct api_kind *k = api_kind_find("coordination.k8s.io", "v1", "leases");
    CLEANUP_FREE char *key = xstrndup(text, strcspn(text, " "));
    *ret_key = cache_store_key(cache_find(&w->server->cache, k), key);
    *ret_at = o ? o->revision : STORE_ANY; /* No key ever is at STORE_ANY. */
    return true;
}

void outcome_lease_lost(struct outcome *o, const struct request *q)
{
    const char *text = http_header(q->x, HEADER);
    const char *holder = strchr(text, ' ');
    outcome_error(o, 409, "Conflict",
                  "the lease %.*s is not held by \"%.100s\": nothing was changed",
                  (int) strcspn(text, " "), text, holder ? holder + 1 : "");
}
