/* SPDX-License-Identifier: Apache-2.0 */
#include "apiserver/admission/integrity.h"

#include "api/kinds/netnamespace.h"
#include "apiserver/admission/plugins.h"

#include <stdio.h>

#define NETWORK_GROUP "network.openshift.io"

static const struct numbered {
    const char *plural, *field, *hold_key;
} numbered[] = {
    {"hostsubnets", "subnet", STORE_HOLD_SUBNETS},
    {"netnamespaces", "netid", STORE_HOLD_VNIDS},
};

static const struct numbered *numbered_of(const struct api_kind *k)
{
    for (size_t i = 0; i < ARRAY_SIZE(numbered); i++) {
        if (streq(k->group, NETWORK_GROUP) && streq(k->plural, numbered[i].plural)) {
            return &numbered[i];
        }
    }
    return NULL;
}

static void fail_unreadable(const struct request *q, const char *key, struct outcome *outcome)
{
    outcome_error(outcome, 500, "InternalError",
                  "Internal error occurred: the store has an object that cannot be read: %s%.200s: "
                  "see \"tenet store check\", or for etcd restore or delete that key",
                  q->ck->prefix, key);
}

/* Whether the response reveals which objects exist. */
static bool reveals_objects(const struct request *q)
{
    const char *version = http_query(q->x, "resourceVersion");
    bool goes_on = version && *version && !streq(version, "0");
    return q->verb != VERB_CREATE && !(q->verb == VERB_WATCH && goes_on);
}

int integrity_check_readable(struct request *q, struct outcome *outcome)
{
    if (!reveals_objects(q)) {
        return 0;
    }
    CLEANUP_FREE char *key = q->name ? cache_key(q->namespace, q->name) : NULL;
    const char *bad = cache_unreadable(q->ck, key, q->namespace);
    if (bad) {
        fail_unreadable(q, bad, outcome);
    }
    return bad ? -EBADMSG : 0;
}

/* ---- numbers ---- */

static const char *annotation(const struct json *obj, const char *key)
{
    return json_get_string(json_get(json_path(obj, "metadata", "annotations", NULL), key));
}

/* The texts of all numbers that the object has or requests; absent ones are "". */
static void numbers_of(const struct numbered *n, const struct json *obj, char ret[3][64])
{
    const struct json *v = json_get(obj, n->field);
    const char *texts[3] = {json_is(v, JSON_NUMBER) ? json_number_text(v) : json_get_string(v),
                            annotation(obj, NET_NEXT_ID), annotation(obj, NET_PREVIOUS_ID)};
    for (size_t i = 0; i < 3; i++) {
        snprintf(ret[i], 64, "%s", texts[i] ? texts[i] : "");
    }
}

/* Whether 'obj' has a number that 'old' does not have; VNID 0 does not count,
 * because it is shared by all global projects. */
static bool gives_number(const struct numbered *n, const struct json *obj, const struct json *old)
{
    char now[3][64], before[3][64];
    numbers_of(n, obj, now);
    numbers_of(n, old, before);
    for (size_t i = 0; i < 3; i++) {
        bool known = !*now[i] || streq(now[i], "0");
        for (size_t j = 0; j < 3; j++) {
            known |= streq(now[i], before[j]);
        }
        if (!known) {
            return true;
        }
    }
    return false;
}

int integrity_check_number(struct request *q, const struct json *obj, const struct json *old,
                           struct outcome *outcome)
{
    const struct numbered *n = numbered_of(q->kind);
    if (!n) {
        return 0;
    }
    const char *known = annotation(obj, ANNOTATION_NUMBER_KNOWN);
    const char *bad = cache_unreadable(q->ck, NULL, NULL);
    bool blocked = bad || cache_unknown_value(&q->server->cache, n->hold_key, NULL);
    if (!blocked || !gives_number(n, obj, old) || (known && streq(known, "true"))) {
        return 0;
    }
    outcome_error(
        outcome, 403, "Forbidden",
        "no %s is given out: the store lost %s, whose %s may be in use: put the lost objects "
        "back with the annotation " ANNOTATION_NUMBER_KNOWN
        "=true, then run \"tenet store release %s\"",
        n->field, bad ? bad : "damaged objects", n->field, n->plural);
    return -EACCES;
}

const char *integrity_error(const struct apiserver *a)
{
    static char text[320];
    for (size_t i = 0; i < a->cache.n_kinds; i++) {
        const struct cache_kind *ck = a->cache.kinds[i];
        const char *bad = cache_unreadable(ck, NULL, NULL);
        if (bad) {
            snprintf(text, sizeof text, "an object cannot be read: %s%.200s", ck->prefix, bad);
            return text;
        }
    }
    return NULL;
}
