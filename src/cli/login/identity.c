/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/login/identity.h"

#include "base/mem.h"

#define SELF_API "user.openshift.io/v1"
#define REVIEW_API "authentication.k8s.io/v1"

int identity_ask(struct api_client *c, char **ret, struct err *e)
{
    CLEANUP_FREE char *self = api_path(SELF_API, "users", NULL, "~", NULL);
    CLEANUP_FREE char *review = api_path(REVIEW_API, "selfsubjectreviews", NULL, NULL, NULL);
    CLEANUP(json_free) struct json *answer = NULL;
    int r = api_request_sync(c, "GET", self, NULL, NULL, NULL, &answer, e);
    const char *name = r == 0 ? json_path_string(answer, "metadata", "name", NULL) : NULL;
    if (r == -ENOENT) {
        CLEANUP(json_free) struct json *body = json_object();
        json_set_string(body, "kind", "SelfSubjectReview");
        json_set_string(body, "apiVersion", REVIEW_API);
        r = api_request_sync(c, "POST", review, NULL, NULL, body, &answer, e);
        name = r == 0 ? json_path_string(answer, "status", "userInfo", "username", NULL) : NULL;
    }
    if (r < 0) {
        return r;
    }
    if (!name || !*name) {
        return err_set(e, -EPROTO, "the server's answer names no user");
    }
    *ret = xstrdup(name);
    return 0;
}
