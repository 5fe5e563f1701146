/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/admin/join_command.h"

#include "base/mem.h"

#define HTTPS "https://"

int join_command_token(struct api_client *client, const struct join_token_spec *spec,
                       char token[JOIN_TOKEN_SIZE], struct err *e)
{
    CLEANUP(json_free) struct json *secret = join_token_new(spec, token);
    CLEANUP_FREE char *path = api_path("v1", "secrets", JOIN_TOKEN_NAMESPACE, NULL, NULL);
    return api_request_sync(client, "POST", path, NULL, NULL, secret, NULL, e);
}

int join_command_text(const struct kubeconfig *k, const char *token, char **ret, struct err *e)
{
    char pin[PKI_PIN_SIZE];
    if (!str_has_prefix(k->server, HTTPS)) {
        return err_set(e, -EINVAL,
                       "the server %s has no HTTPS: a host that joins could not know it",
                       k->server);
    }
    if (!k->ca) {
        return err_set(e, -EINVAL, "the kubeconfig has no certificate-authority");
    }
    int r = pki_cert_pin(k->ca, pin, e);
    if (r < 0) {
        return err_prefix(e, "certificate-authority"), r;
    }
    const char *host = k->server + strlen(HTTPS);
    CLEANUP_FREE char *text = join_text(token, pin);
    *ret = xasprintf("tenet setup node --join %s %.*s", text, (int) strcspn(host, "/"), host);
    explicit_bzero(text, strlen(text));
    return 0;
}
