/* SPDX-License-Identifier: Apache-2.0 */
/* Events about service accounts that cannot be OAuth clients.
 *
 * Anybody may ask for a login of any account.  So the Events are few: one for each account and
 * reason, which is counted at most once a minute, and EVENTS_MAX writes a minute in all.  The
 * recorder of the controllers is a client of the API, which this server cannot use. */
#include "apiserver/oauth/oauth_priv.h"

#include "apiserver/cache/object.h"
#include "base/log.h"
#include "base/timeutil.h"
#include "base/xxh64.h"

LOG_MODULE("oauth");

#define EVENT_REASON "NoSAOAuthRedirectURIs"
#define MINUTE_MS 60000
#define EVENTS_MAX 25
#define MESSAGE_MAX 1000
#define NAME_MAX_BYTES 230

static void stored(void *ctx, int error, uint64_t revision)
{
    if (error < 0 && error != -ESTALE) {
        log_debug("an event was not stored", "error=%d", error);
    }
}

static bool may_write(struct oauth_server *s)
{
    uint64_t now = time_mono_ms();
    if (!s->events_ms || now - s->events_ms >= MINUTE_MS) {
        s->events_ms = now;
        s->n_events = 0;
    }
    return s->n_events++ < EVENTS_MAX;
}

static struct json *make(const struct cache_kind *ck, const struct json *account, const char *ns,
                         const char *name, const char *message, const char *now)
{
    const struct json *meta = json_get(account, "metadata");
    struct json *o = json_object(), *about = json_ensure_object(o, "involvedObject");
    struct json *own = json_ensure_object(o, "metadata");
    json_set_string(own, "name", name);
    json_set_string(own, "namespace", ns);
    json_set_string(about, "apiVersion", "v1");
    json_set_string(about, "kind", "ServiceAccount");
    json_set_string(about, "namespace", ns);
    json_set_string(about, "name", json_get_text(meta, "name"));
    json_set_string(about, "uid", json_get_text(meta, "uid"));
    json_set_string(about, "resourceVersion", json_get_text(meta, "resourceVersion"));
    json_set_string(json_ensure_object(o, "source"), "component", "tenet-oauth");
    json_set_string(o, "type", "Warning");
    json_set_string(o, "reason", EVENT_REASON);
    json_set_string(o, "message", message);
    json_set_string(o, "firstTimestamp", now);
    object_prepare_create(ck->kind, o, time_wall_ms());
    return o;
}

void events_no_redirects(struct oauth_server *s, const struct json *account, const char *why)
{
    struct cache_kind *ck = objects_kind(s, "", "events");
    const struct json *meta = json_get(account, "metadata");
    const char *ns = json_get_text(meta, "namespace");
    CLEANUP_FREE char *message =
        xasprintf("system:serviceaccount:%s:%s has no redirectURIs; set " OAUTH_SA_URI_PREFIX
                  "<some-value>=<redirect> or create a dynamic URI using " OAUTH_SA_REFERENCE_PREFIX
                  "<some-value>=<reference>: %.*s",
                  ns, json_get_text(meta, "name"), MESSAGE_MAX, why);
    CLEANUP_FREE char *name = xasprintf("%.*s.%016llx", NAME_MAX_BYTES, json_get_text(meta, "name"),
                                        (unsigned long long) xxh64(message, strlen(message), 0));
    CLEANUP_FREE char *key = cache_key(ns, name);
    struct object *base = NULL;
    CLEANUP(json_free) struct json *o = ck ? objects_find(s, "", "events", key, &base) : NULL;
    char now[TIME_TEXT_SIZE];
    int64_t last = 0, count = 0, wall = time_wall_ms();
    time_format_s(wall, now);
    (void) time_parse(json_get_text(o, "lastTimestamp"), &last);
    if (!ck || (o && wall - last < MINUTE_MS) || !may_write(s)) {
        return;
    }
    (void) json_get_int(json_get(o, "count"), &count);
    if (!o) {
        o = make(ck, account, ns, name, message, now);
    }
    json_set_string(o, "lastTimestamp", now);
    json_set_int(o, "count", count + 1);
    objects_put(s, ck, key, o, base, &(struct store_terms){0}, stored, NULL);
}
