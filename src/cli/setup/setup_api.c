/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/setup/setup_api.h"

#include "base/base64.h"
#include "base/mem.h"
#include "base/timeutil.h"
#include "cli/admin/join_command.h"

#include <poll.h>

#define USER_AGENT "tenet-setup/" TENET_VERSION
#define SECRETS "/api/v1/namespaces/" JOIN_TOKEN_NAMESPACE "/secrets"
#define POLL_MS 200

int setup_api_get(const char *kubeconfig, const char *path, struct json **ret, struct err *e)
{
    CLEANUP(loop_free) struct loop *loop = loop_new();
    CLEANUP(api_client_free) struct api_client *client = NULL;
    int r = api_client_from_kubeconfig(loop, kubeconfig, USER_AGENT, &client, e);
    return r < 0 ? r : api_request_sync(client, "GET", path, NULL, NULL, NULL, ret, e);
}

bool setup_api_answers(const char *kubeconfig, uint64_t wait_ms, struct err *e)
{
    uint64_t until = time_mono_ms() + wait_ms;
    for (;;) {
        CLEANUP(json_free) struct json *o = NULL;
        if (setup_api_get(kubeconfig, "/api/v1/namespaces/kube-system", &o, e) == 0) {
            return true;
        }
        if (time_mono_ms() >= until) {
            return false;
        }
        poll(NULL, 0, POLL_MS);
    }
}

/* ---- the line for a node ---- */

/* A value of the Secret as owned text; "" when absent. */
static char *text_of(const struct json *secret, const char *key)
{
    const struct json *v = json_path(secret, "data", key, NULL);
    struct strbuf b = STRBUF_INIT;
    if (json_is(v, JSON_STRING)) {
        (void) base64_decode(json_get_string(v), json_string_size(v), &b);
    }
    return strbuf_steal(&b);
}

/* Whether the Secret is an unused token of setup that is valid for long enough. */
static bool is_usable(const struct json *secret, const char *description, int64_t now_ms,
                      int64_t *ret_until_ms)
{
    CLEANUP_FREE char *text = text_of(secret, "description");
    CLEANUP_FREE char *single = text_of(secret, JOIN_TOKEN_SINGLE);
    CLEANUP_FREE char *used = text_of(secret, JOIN_TOKEN_USED);
    CLEANUP_FREE char *node = text_of(secret, JOIN_TOKEN_NODE);
    CLEANUP_FREE char *expiration = text_of(secret, "expiration");
    return streq(text, description) && streq(single, "true") && !*used && !*node &&
           time_parse(expiration, ret_until_ms) == 0 &&
           *ret_until_ms - now_ms > JOIN_COMMAND_TTL_S * 1000 / 2;
}

/* -ENOENT: there is none. */
static int find_token(struct api_client *client, const char *description,
                      char token[JOIN_TOKEN_SIZE], int64_t *ret_until_ms, struct err *e)
{
    CLEANUP(json_free) struct json *all = NULL;
    const struct json *secret;
    int r = api_request_sync(client, "GET", SECRETS "?fieldSelector=type%3D" JOIN_TOKEN_TYPE, NULL,
                             NULL, NULL, &all, e);
    if (r < 0) {
        return r;
    }
    JSON_FOREACH (secret, json_get(all, "items")) {
        if (!is_usable(secret, description, time_wall_ms(), ret_until_ms)) {
            continue;
        }
        CLEANUP_FREE char *id = text_of(secret, "token-id");
        CLEANUP_FREE char *value = text_of(secret, "token-secret");
        CLEANUP_FREE char *whole = xasprintf("%s.%s", id, value);
        if (join_token_is_token(whole)) {
            memcpy(token, whole, JOIN_TOKEN_SIZE);
            return 0;
        }
    }
    return -ENOENT;
}

int setup_join_line(const char *kubeconfig, const char *description, char **ret,
                    int64_t *ret_until_ms, struct err *e)
{
    __attribute__((cleanup(kubeconfig_done))) struct kubeconfig k = {0};
    CLEANUP(loop_free) struct loop *loop = loop_new();
    CLEANUP(api_client_free) struct api_client *client = NULL;
    char token[JOIN_TOKEN_SIZE] = "";
    int r = kubeconfig_load(kubeconfig, &k, e);
    if (r < 0 || (r = api_client_with(loop, &k, USER_AGENT, &client, e)) < 0) {
        return r;
    }
    r = find_token(client, description, token, ret_until_ms, e);
    if (r == -ENOENT) {
        struct join_token_spec spec = {.description = description,
                                       .until_ms = time_wall_ms() + JOIN_COMMAND_TTL_S * 1000,
                                       .single_use = true};
        *ret_until_ms = spec.until_ms;
        r = join_command_token(client, &spec, token, e);
    }
    if (r == 0) {
        r = join_command_text(&k, token, ret, e);
    }
    explicit_bzero(token, sizeof token);
    return r;
}
