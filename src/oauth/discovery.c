/* SPDX-License-Identifier: Apache-2.0 */
#include "oauth/discovery.h"

#include "wire/json.h"

static struct json *texts(const char *const *list)
{
    struct json *a = json_array();
    for (; *list; list++) {
        json_append(a, json_string(*list));
    }
    return a;
}

void oauth_discovery_write(const char *issuer, struct strbuf *out)
{
    /* The scopes are those that OpenShift advertises, in its order. */
    static const char *const scopes[] = {"user:full",          "user:info",
                                         "user:check-access",  "user:list-scoped-projects",
                                         "user:list-projects", NULL};
    static const char *const responses[] = {"code", "token", NULL};
    static const char *const grants[] = {"authorization_code", "implicit", NULL};
    static const char *const methods[] = {"plain", "S256", NULL};
    CLEANUP(json_free) struct json *o = json_object();
    json_set_string(o, "issuer", issuer);
    json_set(o, "authorization_endpoint", json_stringf("%s/oauth/authorize", issuer));
    json_set(o, "token_endpoint", json_stringf("%s/oauth/token", issuer));
    json_set(o, "scopes_supported", texts(scopes));
    json_set(o, "response_types_supported", texts(responses));
    json_set(o, "grant_types_supported", texts(grants));
    json_set(o, "code_challenge_methods_supported", texts(methods));
    json_write(o, 2, out);
}
