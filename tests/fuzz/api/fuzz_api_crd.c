/* SPDX-License-Identifier: Apache-2.0 */
/* The first line is an openAPIV3Schema, the rest an object.  What is taken for a structural schema makes a kind, by
 * which the object is pruned, defaulted and checked: twice is the same as once. */
#include "api/crd/crd.h"
#include "api/schema.h"
#include "api/table/table.h"
#include "base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char text[] =
    "{\"metadata\":{\"name\":\"widgets.example.com\"},\"spec\":{\"group\":\"example.com\","
    "\"scope\":\"Cluster\",\"names\":{\"plural\":\"widgets\",\"singular\":\"widget\","
    "\"kind\":\"Widget\",\"listKind\":\"WidgetList\"},\"versions\":[{\"name\":\"v1\","
    "\"served\":true,\"storage\":true,\"schema\":{}}]}}";

static void use(const struct api_kind *k, struct json *obj)
{
    CLEANUP(api_causes_done) struct api_causes causes = {0};
    CLEANUP_STRBUF struct strbuf row = STRBUF_INIT;
    api_schema_prune(k->schema, obj, NULL);
    api_schema_default(k->schema, obj);
    CLEANUP(json_free) struct json *again = json_clone(obj);
    api_schema_prune(k->schema, again, NULL);
    api_schema_default(k->schema, again);
    if (!json_equal(again, obj)) {
        __builtin_trap();
    }
    api_schema_validate(k->schema, obj, &causes);
    api_table_row(k, obj, "null", 4, API_INCLUDE_NONE, 0, &row);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *nl = size ? memchr(data, '\n', size) : NULL;
    CLEANUP(json_free) struct json *schema = NULL;
    CLEANUP(json_free) struct json *obj = NULL;
    CLEANUP(json_free) struct json *def = NULL;
    CLEANUP(crd_unref) struct crd *c = NULL;
    struct api_registry none = {0};
    if (!nl || json_parse((const char *) data, (size_t) (nl - data), &schema, NULL) < 0 ||
        json_parse((const char *) nl + 1, size - (size_t) (nl + 1 - data), &obj, NULL) < 0 ||
        !json_is(obj, JSON_OBJECT)) {
        return 0;
    }
    json_parse(text, sizeof(text) - 1, &def, NULL);
    json_set(json_get(json_at(json_path(def, "spec", "versions", NULL), 0), "schema"),
             "openAPIV3Schema", TAKE(schema));
    (void) crd_settle(def, &none, NULL, 0);
    if (crd_new(def, &c, NULL) == 0) {
        use(crd_stored(c), obj);
    }
    return 0;
}
