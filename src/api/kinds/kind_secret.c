/* SPDX-License-Identifier: Apache-2.0 */
/* Secret (core v1): confidential data. Causes never repeat its values. */
#include "api/kind_util.h"
#include "api/kinds.h"

#include "base/base64.h"
#include "base/mem.h"

#define MAX_BYTES ((size_t) 1 << 20)
#define TYPE_TOKEN "kubernetes.io/service-account-token"
#define ACCOUNT_NAME "kubernetes.io/service-account.name"

/* stringData is copied into data, and not stored. */
void kind_secret_prepare(struct json *obj, const struct json *old)
{
    const struct json *text = json_get(obj, "stringData"), *data = json_get(obj, "data");
    bool usable = json_is(text, JSON_OBJECT) &&
                  (!data || json_is(data, JSON_NULL) || json_is(data, JSON_OBJECT));
    for (size_t i = 0; i < json_count(text); i++) {
        usable = usable && json_is(json_at(text, i), JSON_STRING);
    }
    if (text && !usable && !json_is(text, JSON_NULL)) {
        return; /* Left to validation, which refuses it. */
    }
    if (json_is(data, JSON_NULL)) {
        json_remove(obj, "data");
    }
    for (size_t i = 0; i < json_count(text); i++) {
        CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
        const struct json *v = json_at(text, i);
        base64_encode(json_get_string(v), json_string_size(v), &b);
        json_set(json_ensure_object(obj, "data"), json_key_at(text, i),
                 json_string(strbuf_cstr(&b)));
    }
    json_remove(obj, "stringData");
}

static void validate_data(const struct json *data, struct api_causes *c)
{
    size_t total = 0;
    for (size_t i = 0; i < json_count(data); i++) {
        const char *field = API_FIELD("data[%.60s]", json_key_at(data, i));
        const struct json *v = json_at(data, i);
        CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
        const char *wrong = api_check_config_key(json_key_at(data, i));
        if (wrong) {
            api_invalid(c, field, NULL, "%s", wrong);
        }
        if (base64_decode(json_get_string(v), json_string_size(v), &b) < 0) {
            api_invalid(c, field, NULL, "must be base64");
        }
        total += b.size;
        if (b.data) {
            explicit_bzero(b.data, b.size);
        }
    }
    if (total > MAX_BYTES) {
        api_too_long(c, "data", MAX_BYTES);
    }
}

/* The key, if it is there, holds a JSON object, or null. */
static void validate_json(const struct json *data, const char *key, struct api_causes *c)
{
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    CLEANUP(json_free) struct json *v = NULL;
    const struct json *encoded = json_get(data, key);
    if (json_is(encoded, JSON_STRING) &&
        base64_decode(json_get_string(encoded), json_string_size(encoded), &text) == 0) {
        bool parsed = json_parse(strbuf_cstr(&text), text.size, &v, NULL) == 0;
        if (!parsed || (!json_is(v, JSON_OBJECT) && !json_is(v, JSON_NULL))) {
            CLEANUP(json_free) struct json *hidden = json_string("<secret contents redacted>");
            api_invalid(c, API_FIELD("data[%s]", key), hidden,
                        parsed ? "must be a JSON object" : "must be JSON");
        }
    }
    if (text.data) {
        explicit_bzero(text.data, text.size);
    }
}

void kind_secret_validate(const struct json *obj, const struct json *old, struct api_causes *c)
{
    static const struct {
        const char *type, *keys[2];
    } demands[] = {
        {"kubernetes.io/dockercfg", {".dockercfg"}},
        {"kubernetes.io/dockerconfigjson", {".dockerconfigjson"}},
        {"kubernetes.io/tls", {"tls.crt", "tls.key"}},
    };
    const char *type = json_path_string(obj, "type", NULL);
    const struct json *data = json_get(obj, "data");
    validate_data(data, c);
    for (size_t i = 0; type && i < ARRAY_SIZE(demands); i++) {
        for (size_t j = 0; j < 2 && streq(type, demands[i].type) && demands[i].keys[j]; j++) {
            if (!json_get(data, demands[i].keys[j])) {
                api_required(c, API_FIELD("data[%s]", demands[i].keys[j]), "");
            }
        }
    }
    if (streq_null(type, "kubernetes.io/dockerconfigjson")) {
        validate_json(data, ".dockerconfigjson", c);
    } else if (streq_null(type, "kubernetes.io/dockercfg")) {
        validate_json(data, ".dockercfg", c);
    }
    if (streq_null(type, "kubernetes.io/ssh-auth") &&
        !json_string_size(json_get(data, "ssh-privatekey"))) {
        api_required(c, "data[ssh-privatekey]", "");
    }
    if (streq_null(type, "kubernetes.io/basic-auth") && !json_get(data, "username") &&
        !json_get(data, "password")) {
        api_required(c, "data[username]", "");
        api_required(c, "data[password]", "");
    }
    const struct json *account = json_path(obj, "metadata", "annotations", ACCOUNT_NAME, NULL);
    if (streq_null(type, TYPE_TOKEN) && json_string_size(account) == 0) {
        api_required(c, "metadata.annotations[" ACCOUNT_NAME "]", "");
    }
    if (json_get_bool(json_get(old, "immutable"), false)) {
        const struct json *before = json_get(old, "data");
        if (!json_get_bool(json_get(obj, "immutable"), false)) {
            api_forbidden(c, "immutable", "field is immutable when `immutable` is set");
        }
        if (json_count(before) != json_count(data) ||
            (json_count(data) && !json_equal(before, data))) {
            api_forbidden(c, "data", "field is immutable when `immutable` is set");
        }
    }
}
