/* SPDX-License-Identifier: Apache-2.0 */
#include "controllers/security/join_tokens.h"

#include "base/base64.h"
#include "base/mem.h"
#include "base/timeutil.h"
#include "client/join_token.h"
#include "controller/obj.h"

#define LOOK_MAX_MS (24 * 3600000LL) /* Longest time between checks, because clocks may be set. */

struct join_tokens {
    struct informer *secrets;
};

int64_t join_tokens_left_ms(const struct json *secret, int64_t now_ms)
{
    const struct json *v = json_path(secret, "data", "expiration", NULL);
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    int64_t until;
    if (!json_is(v, JSON_STRING) ||
        base64_decode(json_get_string(v), json_string_size(v), &b) < 0 ||
        time_parse(strbuf_cstr(&b), &until) < 0) {
        /* An unreadable token is never valid, and is kept so that its author can see it. */
        return -1;
    }
    return MAX(until - now_ms, (int64_t) 0);
}

static void deleted_one(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    if (error < 0 && error != -ENOENT) {
        work_retry(w, error, "delete an expired bootstrap token", text);
    } else {
        work_done(w);
    }
}

static void begin(void *ctx, struct work *w, const char *key)
{
    struct join_tokens *j = ctx;
    const struct json *secret = informer_get(j->secrets, key);
    int64_t left = secret ? join_tokens_left_ms(secret, time_wall_ms()) : -1;
    if (left < 0 || !streq(obj_namespace(secret), JOIN_TOKEN_NAMESPACE)) {
        work_done(w);
    } else if (left > 0) {
        work_wait(w, (uint64_t) MIN(left, LOOK_MAX_MS));
    } else {
        CLEANUP_FREE char *path =
            api_path("v1", "secrets", JOIN_TOKEN_NAMESPACE, obj_name(secret), NULL);
        work_request(w, "DELETE", path, NULL, deleted_one);
    }
}

static int start(const struct controller_env *env, const void *config, void **ret, struct err *e)
{
    *ret = NEW(struct join_tokens);
    return 0;
}

static const struct controller_watch watches[] = {
    {.api_version = "v1",
     .plural = "secrets",
     .fields = "type=" JOIN_TOKEN_TYPE,
     .informer = CONTROLLER_INFORMER(struct join_tokens, secrets)},
};

const struct controller join_tokens_controller = {
    .name = "join_tokens",
    .watches = watches,
    .n_watches = ARRAY_SIZE(watches),
    .parallel = 1,
    .start = start,
    .reconcile = begin,
    .stop = free,
};
