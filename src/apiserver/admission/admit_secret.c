/* SPDX-License-Identifier: Apache-2.0 */
/* TokenSecrets: the server puts the token into a Secret of type
 * kubernetes.io/service-account-token.
 *
 * Only the API server has the key that signs tokens, so the controller of these Secrets writes them
 * without one.  The response contains the token; it is therefore made only for a client that has
 * the right "create" on serviceaccounts/token, as the controllers do. */
#include "apiserver/admission/plugins.h"

#include "apiserver/access/authz.h"
#include "apiserver/access/satoken.h"
#include "apiserver/access/security.h"
#include "base/base64.h"

#define TOKEN_TYPE "kubernetes.io/service-account-token"
#define ANNOTATION_NAME "kubernetes.io/service-account.name"
#define ANNOTATION_UID "kubernetes.io/service-account.uid"

static const char *annotation(const struct json *obj, const char *key)
{
    return json_get_string(json_path(obj, "metadata", "annotations", key, NULL));
}

int secret_admit(struct request *q, struct json *obj, const struct json *old,
                 struct outcome *outcome)
{
    struct security *s = q->server->security;
    const char *type = json_path_string(obj, "type", NULL);
    const char *account = annotation(obj, ANNOTATION_NAME), *uid = annotation(obj, ANNOTATION_UID);
    const char *name = json_path_string(obj, "metadata", "name", NULL);
    bool has_token = json_string_size(json_path(obj, "data", "token", NULL)) > 0;
    bool is_complete = json_string_size(json_path(obj, "data", "namespace", NULL)) > 0;
    if (!s->keys || !is_complete || !name || !account || !streq_null(type, TOKEN_TYPE) ||
        (uid && has_token) || json_path(obj, "metadata", "deletionTimestamp", NULL) ||
        !authz_may(s, q->user, "create", "", "serviceaccounts/token", q->namespace, account)) {
        return 0;
    }
    CLEANUP(json_free)
    struct json *sa = security_live_object(s, "serviceaccounts", q->namespace, account, uid);
    if (!sa) {
        /* The account may be created later: the controller then writes the Secret again. */
        return 0;
    }
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    CLEANUP_FREE char *token = satoken_issue(s->keys, sa, name);
    base64_encode(token, strlen(token), &text);
    json_set_string(json_ensure_object(obj, "data"), "token", strbuf_cstr(&text));
    struct json *annotations =
        json_ensure_object(json_ensure_object(obj, "metadata"), "annotations");
    json_set_string(annotations, ANNOTATION_UID, json_path_string(sa, "metadata", "uid", NULL));
    return 1;
}
