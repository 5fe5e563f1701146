/* SPDX-License-Identifier: Apache-2.0 */
/* CertificateSigningRequest (certificates.k8s.io/v1): requests a certificate from the cluster's
 * authority. The server sets the requesting user; the subresource approval grants or denies it,
 * status has the certificate. */
#include "api/kind_util.h"
#include "api/kinds.h"
#include "api/schema.h"

#include "base/timeutil.h"

void kind_certificate_signing_request_prepare(struct json *obj, const struct json *old)
{
    if (!old) {
        json_set(obj, "status", json_object());
    } else if (json_get(old, "spec")) {
        json_set(obj, "spec", json_clone(json_get(old, "spec")));
    }
}

static bool is_verdict(const struct json *condition)
{
    const char *type = json_path_string(condition, "type", NULL);
    return streq_null(type, "Approved") || streq_null(type, "Denied");
}

/* approval changes only the conditions; status keeps an existing verdict. */
void kind_certificate_signing_request_merge_part(const char *subresource, struct json *out,
                                                 const struct json *obj)
{
    const struct json *given = json_get(obj, "status"), *c;
    struct json *status = json_ensure_object(out, "status");
    if (streq(subresource, "approval")) {
        const struct json *conditions = json_get(given, "conditions");
        json_set(status, "conditions", conditions ? json_clone(conditions) : json_array());
        api_schema_default(api_kind_certificate_signing_request.schema, out);
        return;
    }
    struct json *list = json_array();
    JSON_FOREACH (c, json_get(status, "conditions")) {
        if (is_verdict(c)) {
            json_append(list, json_clone(c));
        }
    }
    JSON_FOREACH (c, json_get(given, "conditions")) {
        if (!is_verdict(c)) {
            json_append(list, json_clone(c));
        }
    }
    json_set(out, "status", json_is(given, JSON_OBJECT) ? json_clone(given) : json_object());
    json_set(json_get(out, "status"), "conditions", list);
}

/* "example.com/signer": a domain and a path. */
const char *csr_check_signer(const char *s)
{
    const char *slash = strchr(s, '/');
    CLEANUP_STRBUF struct strbuf domain = STRBUF_INIT;
    if (!slash || !slash[1] || strlen(s) > 571) {
        return "must be a fully qualified domain and path of the form 'example.com/signer-name'";
    }
    strbuf_add(&domain, s, (size_t) (slash - s));
    return api_check_dns_subdomain(strbuf_cstr(&domain)) ? "its domain is not a DNS subdomain"
                                                         : api_check_path_segment(slash + 1);
}

static void validate_conditions(const struct json *list, struct api_causes *c)
{
    static const char *const statuses[] = {"True", NULL};
    bool approved = false, denied = false;
    for (size_t i = 0; i < json_count(list); i++) {
        const struct json *item = json_at(list, i), *status = json_get(item, "status");
        const char *type = json_path_string(item, "type", NULL);
        if (is_verdict(item) && !streq(json_get_string(status), "True")) {
            api_unsupported(c, API_FIELD("status.conditions[%zu].status", i), status, statuses);
        }
        approved |= streq(type, "Approved");
        denied |= streq(type, "Denied");
    }
    if (approved && denied) {
        api_invalid(c, "status.conditions", NULL,
                    "Approved and Denied conditions are mutually exclusive");
    }
}

/* A verdict stays. */
static void validate_verdict(const struct json *list, const struct json *old, struct api_causes *c)
{
    const struct json *before, *now;
    JSON_FOREACH (before, old) {
        bool there = !is_verdict(before);
        JSON_FOREACH (now, list) {
            there |= json_equal(json_get(now, "type"), json_get(before, "type"));
        }
        if (!there) {
            api_forbidden(c, "status.conditions",
                          "updates may not remove a condition of type \"%s\"",
                          json_path_string(before, "type", NULL));
        }
    }
}

void kind_certificate_signing_request_validate(const struct json *obj, const struct json *old,
                                               struct api_causes *c)
{
    const struct json *conditions = json_path(obj, "status", "conditions", NULL);
    if (json_count(json_path(obj, "spec", "usages", NULL)) == 0) {
        api_required(c, "spec.usages", "usages must be provided");
    }
    validate_conditions(conditions, c);
    validate_verdict(conditions, json_path(old, "status", "conditions", NULL), c);
}

struct json *kind_certificate_signing_request_cell_duration(const struct json *obj, int64_t now_ms)
{
    char text[32];
    int64_t s = json_get_int_or(json_path(obj, "spec", "expirationSeconds", NULL), -1);
    if (s < 0) {
        return json_string("<none>");
    }
    time_format_age(s * 1000, text);
    return json_string(text);
}

struct json *kind_certificate_signing_request_cell_condition(const struct json *obj, int64_t now_ms)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    const struct json *c;
    JSON_FOREACH (c, json_path(obj, "status", "conditions", NULL)) {
        const char *type = json_path_string(c, "type", NULL);
        strbuf_addf(&b, "%s%s", b.size ? "," : "", type ? type : "");
    }
    if (!b.size) {
        strbuf_adds(&b, "Pending");
    }
    if (json_string_size(json_path(obj, "status", "certificate", NULL))) {
        strbuf_adds(&b, ",Issued");
    }
    return json_string(strbuf_cstr(&b));
}
