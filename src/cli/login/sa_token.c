/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/login/sa_token.h"

#include "base/mem.h"

int sa_token_request(struct session *s, const char *account, uint64_t seconds,
                     const struct json *audiences, char **ret, struct err *e)
{
    CLEANUP_FREE char *path = api_path("v1", "serviceaccounts", s->ns, account, "token");
    CLEANUP(json_free) struct json *body = json_object(), *answer = NULL;
    struct json *spec = json_ensure_object(body, "spec");
    json_set_string(body, "kind", "TokenRequest");
    json_set_string(body, "apiVersion", "authentication.k8s.io/v1");
    if (seconds) {
        json_set_int(spec, "expirationSeconds", (int64_t) seconds);
    }
    if (audiences) {
        json_set(spec, "audiences", json_clone(audiences));
    }
    int r = api_request_sync(s->client, "POST", path, NULL, NULL, body, &answer, e);
    if (r < 0) {
        return r;
    }
    const char *token = json_path_string(answer, "status", "token", NULL);
    if (!token) {
        return err_set(e, -EPROTO, "the server's answer has no token");
    }
    *ret = xstrdup(token);
    return 0;
}
