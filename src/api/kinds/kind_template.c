/* SPDX-License-Identifier: Apache-2.0 */
/* Template and TemplateInstance (template.openshift.io/v1): rules beyond their descriptions. */
#include "api/kind_util.h"
#include "api/kinds.h"
#include "base/mem.h"

#define DESCRIPTION_SIZE 80 /* Bytes of a description in a table. */

/* ---- cells ---- */

struct json *kind_template_cell_description(const struct json *obj, int64_t now_ms)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    const char *text = json_path_string(obj, "metadata", "annotations", "description", NULL);
    text = text ? text : "";
    size_t n = strcspn(text, "\n");
    bool cut = text[n] != '\0';
    if (n + (cut ? 3 : 0) > DESCRIPTION_SIZE) {
        n = DESCRIPTION_SIZE - 3;
        while (n > 0 && ((unsigned char) text[n] & 0xc0) == 0x80) {
            n--; /* Not within a character of UTF-8. */
        }
        while (n > 0 && text[n - 1] == ' ') {
            n--;
        }
        cut = true;
    }
    strbuf_add(&b, text, n);
    strbuf_adds(&b, cut ? "..." : "");
    return json_string(strbuf_cstr(&b));
}

struct json *kind_template_cell_parameters(const struct json *obj, int64_t now_ms)
{
    const struct json *list = json_get(obj, "parameters"), *p;
    size_t n = json_count(list), blank = 0, generated = 0;
    JSON_FOREACH (p, list) {
        bool empty = !*json_get_text(p, "value");
        generated += empty && *json_get_text(p, "generate");
        blank += empty && !*json_get_text(p, "generate");
    }
    return blank       ? json_stringf("%zu (%zu blank)", n, blank)
           : generated ? json_stringf("%zu (%zu generated)", n, generated)
                       : json_stringf("%zu (all set)", n);
}

/* ---- checks ---- */

static bool is_parameter_name(const char *s)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    return s[strspn(s, letters)] == '\0';
}

/* The body of a template at 'prefix' ("spec.template.", or "").  Names and values of labels may
 * contain parameters, so they are checked only where they have none. */
static void check_body(struct api_causes *c, const char *prefix, const struct json *template)
{
    const struct json *list = json_get(template, "parameters"), *labels;
    CLEANUP(json_free) struct json *seen = json_object();
    CLEANUP(json_free) struct json *plain = json_object();
    for (size_t i = 0; i < json_count(list); i++) {
        const struct json *name = json_get(json_at(list, i), "name");
        const char *field = API_FIELD("%sparameters[%zu].name", prefix, i);
        const char *text = json_get_text(json_at(list, i), "name");
        if (!*text) {
            api_required(c, field, NULL);
        } else if (!is_parameter_name(text)) {
            api_invalid(c, field, name, "does not match ^[a-zA-Z0-9\\_]+$");
        } else if (json_get(seen, text)) {
            api_duplicate(c, field, name);
        }
        json_set_bool(seen, text, true);
    }
    labels = json_get(template, "labels");
    for (size_t i = 0; i < json_count(labels); i++) {
        const char *value = json_get_string(json_at(labels, i));
        if (!strstr(json_key_at(labels, i), "${") && value && !strstr(value, "${")) {
            json_set_string(plain, json_key_at(labels, i), value);
        }
    }
    api_validate_labels(c, API_FIELD("%slabels", prefix), plain);
}

void kind_template_validate(const struct json *obj, const struct json *old, struct api_causes *c)
{
    check_body(c, "", obj);
}

/* The spec cannot be changed, so a client may leave out what the server has put in. */
void kind_template_instance_prepare(struct json *obj, const struct json *old)
{
    struct json *spec = json_get(obj, "spec");
    const struct json *requester = json_path(old, "spec", "requester", NULL);
    if (!old) {
        json_set(obj, "status", json_object());
    } else if (json_is(spec, JSON_OBJECT) && !json_get(spec, "requester") && requester) {
        json_set(spec, "requester", json_clone(requester));
    }
}

void kind_template_instance_validate(const struct json *obj, const struct json *old,
                                     struct api_causes *c)
{
    const struct json *spec = json_get(obj, "spec"), *secret = json_get(spec, "secret");
    if (old) {
        api_field_immutable(c, "spec", spec, json_get(old, "spec"));
        return;
    }
    check_body(c, "spec.template.", json_get(spec, "template"));
    if (secret && !*json_get_text(secret, "name")) {
        api_required(c, "spec.secret.name", NULL);
    } else if (secret && api_check_dns_subdomain(json_get_text(secret, "name"))) {
        api_invalid(c, "spec.secret.name", json_get(secret, "name"), "%s",
                    api_check_dns_subdomain(json_get_text(secret, "name")));
    }
    if (!*json_get_text(json_get(spec, "requester"), "username")) {
        api_required(c, "spec.requester.username", NULL);
    }
}
