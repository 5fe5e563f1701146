/* SPDX-License-Identifier: Apache-2.0 */
/* MutatingWebhookConfiguration and ValidatingWebhookConfiguration (admissionregistration.k8s.io/v1):
 * defaults, and the rules of ValidateMutatingWebhookConfiguration and ValidateWebhook beyond their
 * descriptions. */
#include "api/kind_util.h"
#include "api/kinds.h"
#include "api/label_selector.h"
#include "base/mem.h"
#include "base/str.h"

#include <strings.h>

#define REVIEW_VERSION "v1"

void kind_mutating_webhook_configuration_defaults(struct json *obj)
{
    struct json *list = json_get(obj, "webhooks");
    for (size_t i = 0; i < json_count(list); i++) {
        struct json *hook = json_at(list, i);
        if (json_is(hook, JSON_OBJECT)) {
            (void) api_default_object(hook, "namespaceSelector");
            (void) api_default_object(hook, "objectSelector");
        }
    }
}

/* ---- names and places ---- */

/* A DNS name of three labels at least, as Kubernetes demands of names of webhooks. */
static void check_name(struct api_causes *c, const char *field, const struct json *v)
{
    const char *name = json_get_string(v), *why;
    size_t dots = 0;
    if (!name || !*name) {
        api_required(c, field, "");
        return;
    }
    for (const char *p = name; *p; p++) {
        dots += *p == '.';
    }
    if ((why = api_check_dns_subdomain(name))) {
        api_invalid(c, field, v, "%s", why);
    } else if (dots < 2) {
        api_invalid(c, field, v,
                    "should be a domain with at least three segments separated by dots");
    }
}

static void check_url(struct api_causes *c, const char *field, const struct json *v)
{
    const char *url = json_get_string(v);
    const char *form = "desired format: https://host[/path]";
    if (strncasecmp(url, "https://", 8) != 0) {
        api_invalid(c, field, v, "'https' is the only allowed URL scheme; %s", form);
        return;
    }
    const char *host = url + 8;
    size_t n = strcspn(host, "/?#");
    if (n == 0) {
        api_invalid(c, field, v, "host must be specified; %s", form);
    } else if (memchr(host, '@', n)) {
        api_invalid(c, field, v, "user information is not permitted in the URL; %s", form);
    }
    if (strchr(host, '#')) {
        api_invalid(c, field, v, "fragments are not permitted in the URL; %s", form);
    } else if (strchr(host, '?')) {
        api_invalid(c, field, v, "query parameters are not permitted in the URL; %s", form);
    }
    for (const char *p = url; *p; p++) {
        if (*p <= ' ' || *p == '\x7f' || *p == '\\' || *p == '"') {
            api_invalid(c, field, v,
                        "blanks, control characters, quotes and backslashes are not "
                        "permitted in the URL");
            return;
        }
    }
}

static void check_service(struct api_causes *c, const char *field, const struct json *service)
{
    const struct json *path = json_get(service, "path");
    const char *text = json_get_string(path);
    CLEANUP_FREE char *at = xasprintf("%s.path", field);
    if (!text) {
        return;
    }
    if (*text != '/') {
        api_invalid(c, at, path, "must start with a '/'");
    }
    for (const char *p = text; *p; p++) {
        if (*p <= ' ' || *p == '\x7f' || strchr("?#\\\"", *p)) {
            api_invalid(c, at, path, "must be a path without blanks, query and fragment");
            return;
        }
    }
}

static void check_place(struct api_causes *c, const char *field, const struct json *config)
{
    const struct json *url = json_get(config, "url"), *service = json_get(config, "service");
    if ((url != NULL) == (service != NULL)) {
        api_required(c, field, "exactly one of url or service is required");
    } else if (url) {
        CLEANUP_FREE char *at = xasprintf("%s.url", field);
        check_url(c, at, url);
    } else {
        CLEANUP_FREE char *at = xasprintf("%s.service", field);
        check_service(c, at, service);
    }
}

/* ---- rules ---- */

/* A list of a rule: not empty, without empty values, and "*" stands alone. */
static void check_values(struct api_causes *c, const char *field, const struct json *list,
                         const char *what, bool may_be_empty)
{
    bool any = false;
    if (!json_count(list)) {
        api_required(c, field, "");
        return;
    }
    for (size_t i = 0; i < json_count(list); i++) {
        const char *s = json_get_string(json_at(list, i));
        any = any || streq(s, "*");
        if (!*s && !may_be_empty) {
            api_required(c, API_FIELD("%s[%zu]", field, i), "");
        }
    }
    if (any && json_count(list) > 1) {
        api_invalid(c, field, list, "if '*' is present, must not specify other %s", what);
    }
}

/* "pods", "pods/status", "pods/" "*", "*" "/scale", "*" "/" "*": a wide one leaves no room for
 * narrower ones. */
static void check_resources(struct api_causes *c, const char *field, const struct json *list)
{
    bool all_parts = false, all = false;
    if (!json_count(list)) {
        api_required(c, field, "");
        return;
    }
    for (size_t i = 0; i < json_count(list); i++) {
        const struct json *v = json_at(list, i);
        const char *s = json_get_string(v), *slash = strchr(s, '/');
        const char *at = API_FIELD("%s[%zu]", field, i);
        if (!*s) {
            api_required(c, at, "");
        } else if (slash && (slash == s || !slash[1] || strchr(slash + 1, '/'))) {
            api_invalid(c, at, v, "must be RESOURCE or RESOURCE/SUBRESOURCE");
        }
        all_parts = all_parts || streq(s, "*/*");
        all = all || streq(s, "*");
    }
    if (all_parts && json_count(list) > 1) {
        api_invalid(c, field, list, "if '*/*' is present, must not specify other resources");
    } else if (all) {
        for (size_t i = 0; i < json_count(list); i++) {
            const char *s = json_get_string(json_at(list, i));
            if (!streq(s, "*") && !strchr(s, '/')) {
                api_invalid(c, field, list,
                            "if '*' is present, must not specify other resources without "
                            "subresources");
                return;
            }
        }
    }
}

static void check_rule(struct api_causes *c, const char *field, const struct json *rule)
{
    static const struct {
        const char *key, *what;
        bool may_be_empty;
    } lists[] = {{"operations", "operations", false},
                 {"apiGroups", "API groups", true},
                 {"apiVersions", "API versions", false}};
    for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
        check_values(c, API_FIELD("%s.%s", field, lists[i].key), json_get(rule, lists[i].key),
                     lists[i].what, lists[i].may_be_empty);
    }
    check_resources(c, API_FIELD("%s.resources", field), json_get(rule, "resources"));
}

/* ---- a webhook ---- */

static void check_versions(struct api_causes *c, const char *field, const struct json *list)
{
    const struct json *v;
    JSON_FOREACH (v, list) {
        if (streq_null(json_get_string(v), REVIEW_VERSION)) {
            return;
        }
    }
    if (!json_count(list)) {
        api_required(c, field, "must specify one of " REVIEW_VERSION);
    } else {
        api_invalid(c, field, list, "must include at least one of " REVIEW_VERSION);
    }
}

static void check_webhook(struct api_causes *c, const char *field, const struct json *hook)
{
    const struct json *rules = json_get(hook, "rules");
    check_name(c, API_FIELD("%s.name", field), json_get(hook, "name"));
    check_place(c, API_FIELD("%s.clientConfig", field), json_get(hook, "clientConfig"));
    check_versions(c, API_FIELD("%s.admissionReviewVersions", field),
                   json_get(hook, "admissionReviewVersions"));
    for (size_t i = 0; i < json_count(rules); i++) {
        check_rule(c, API_FIELD("%s.rules[%zu]", field, i), json_at(rules, i));
    }
    label_selector_check(c, API_FIELD("%s.namespaceSelector", field),
                         json_get(hook, "namespaceSelector"));
    label_selector_check(c, API_FIELD("%s.objectSelector", field),
                         json_get(hook, "objectSelector"));
    /* A condition that is not evaluated would send the webhook writes that it must not see. */
    if (json_count(json_get(hook, "matchConditions"))) {
        api_forbidden(c, API_FIELD("%s.matchConditions", field),
                      "the API server evaluates no expressions in CEL yet");
    }
}

void kind_mutating_webhook_configuration_validate(const struct json *obj, const struct json *old,
                                                  struct api_causes *c)
{
    const struct json *list = json_get(obj, "webhooks");
    CLEANUP(json_free) struct json *seen = json_object();
    for (size_t i = 0; i < json_count(list); i++) {
        const struct json *hook = json_at(list, i), *name = json_get(hook, "name");
        check_webhook(c, API_FIELD("webhooks[%zu]", i), hook);
        if (json_get(seen, json_get_text(hook, "name"))) {
            api_duplicate(c, API_FIELD("webhooks[%zu].name", i), name);
        }
        json_set_bool(seen, json_get_text(hook, "name"), true);
    }
}
