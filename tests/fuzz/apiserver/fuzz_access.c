/* SPDX-License-Identifier: Apache-2.0 */
/* What is read from a request before it is known who asks: Authorization headers, attributes; and audit policies.
 * The first byte chooses. */
#include "apiserver/access/audit_policy.h"
#include "apiserver/access/authn.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void attributes(const char *text)
{
    CLEANUP(attributes_done) struct attributes a;
    const char *fields = strchr(text, '?');
    CLEANUP_FREE char *path = fields ? xstrndup(text, (size_t) (fields - text)) : xstrdup(text);
    attributes_parse(&a, "GET", path, false, fields ? fields + 1 : NULL);
    CLEANUP_FREE char *resource = attributes_resource_text(&a);
    /* A name that a selector demands may have any character. */
    if (!str_has_prefix(resource, a.resource) || strchr(a.resource, '/') ||
        strchr(a.namespace, '/') || strchr(a.subresource, '/') ||
        (!fields && strchr(a.name, '/'))) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size) {
        return 0;
    }
    CLEANUP_FREE char *text = xstrndup((const char *) data + 1, size - 1);
    const char *token;
    if (*data == 'h') {
        if (authn_bearer(text, &token) == 0 && (!*token || strpbrk(token, " \t\r\n,"))) {
            abort();
        }
    } else if (*data == 'a') {
        attributes(text);
    } else {
        struct audit_policy *p = NULL;
        if (audit_policy_parse(text, strlen(text), &p, NULL) == 0) {
            CLEANUP(attributes_done) struct attributes a;
            CLEANUP(user_unref) struct user_info *u = user_new("jane");
            attributes_parse(&a, "GET", "/api/v1/namespaces/red/pods/p/log", false, NULL);
            audit_policy_decide(p, u, &a);
            audit_policy_decide(p, NULL, &a);
        }
        audit_policy_free(p);
    }
    return 0;
}
