/* SPDX-License-Identifier: Apache-2.0 */
/* ConfigMap (core v1): configuration as texts or bytes by key. */
#include "api/kind_util.h"
#include "api/kinds.h"
#include "api/schema.h"

#define SIZE_MAX_BYTES ((size_t) 1 << 20) /* Limit of all values together. */

struct json *kind_config_map_cell_data(const struct json *obj, int64_t now_ms)
{
    return json_int(
        (int64_t) (json_count(json_get(obj, "data")) + json_count(json_get(obj, "binaryData"))));
}

static size_t validate_keys(const char *field, const struct json *map, const struct json *other,
                            struct api_causes *c)
{
    size_t size = 0;
    for (size_t i = 0; i < json_count(map); i++) {
        const char *key = json_key_at(map, i), *wrong = api_check_config_key(key);
        CLEANUP(json_free) struct json *v = json_string(key);
        size += strlen(key) + json_string_size(json_at(map, i));
        if (wrong) {
            api_invalid(c, API_FIELD("%s[%.80s]", field, key), v, "%s", wrong);
        } else if (json_get(other, key)) {
            api_invalid(c, API_FIELD("%s[%.80s]", field, key), v,
                        "duplicate of key present in data");
        }
    }
    return size;
}

static bool equal(const struct json *a, const struct json *b)
{
    return json_count(a) == 0 ? json_count(b) == 0 : b && json_equal(a, b);
}

void kind_config_map_validate(const struct json *obj, const struct json *old, struct api_causes *c)
{
    const struct json *data = json_get(obj, "data"), *bytes = json_get(obj, "binaryData");
    size_t size = validate_keys("data", data, NULL, c);
    size += validate_keys("binaryData", bytes, data, c);
    if (size > SIZE_MAX_BYTES) {
        api_too_long(c, "", SIZE_MAX_BYTES);
    }
    if (!json_get_bool(json_get(old, "immutable"), false)) {
        return;
    }
    if (!json_get_bool(json_get(obj, "immutable"), false)) {
        api_forbidden(c, "immutable", "field is immutable when `immutable` is set");
    }
    if (!equal(data, json_get(old, "data"))) {
        api_forbidden(c, "data", "field is immutable when `immutable` is set");
    }
    if (!equal(bytes, json_get(old, "binaryData"))) {
        api_forbidden(c, "binaryData", "field is immutable when `immutable` is set");
    }
}
