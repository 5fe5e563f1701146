/* SPDX-License-Identifier: Apache-2.0 */
/* {"live": ..., "config": ..., "fields": ...}: the configuration is pruned, validated and applied to the live object
 * by two managers, and the result changed back by a third, as a pod and as an object without a schema; the set of
 * fields is checked and calculated with. */
#include "api/patch/apply.h"

#include "base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds) {
        __builtin_trap();
    }
}

static void ignore(void *ctx, const char *path)
{
    check(*path == '.' || *path == '[');
}

/* NULL: it cannot be applied. */
static struct json *apply(const struct api_kind *k, const struct json *live,
                          const struct json *config, const char *manager, bool force)
{
    const struct api_manager m = {
        .name = manager, .applies = true, .subresource = "", .now_ms = 1000};
    CLEANUP(api_causes_done) struct api_causes conflicts = {0};
    CLEANUP_FREE char *text = NULL;
    struct json *out = NULL;
    struct err e = {0};
    int r = api_apply(k, live, config, &m, force, &out, &conflicts, &text, &e);
    check((r == 0) == (out != NULL) && (r != -EEXIST) == (conflicts.n == 0));
    return out;
}

/* What the server's own record must be like, whatever was in it before. */
static void check_record(const struct json *obj)
{
    const struct json *entry;
    JSON_FOREACH (entry, json_path(obj, "metadata", "managedFields", NULL)) {
        fieldset_foreach(json_get(entry, "fieldsV1"), ignore, NULL);
    }
}

static void run(const struct api_kind *k, const struct json *live, const struct json *given)
{
    const struct api_schema *s = api_kind_schema(k);
    CLEANUP(json_free) struct json *config = json_clone(given);
    CLEANUP(api_paths_done) struct api_paths unknown = {0};
    CLEANUP(api_causes_done) struct api_causes causes = {0};
    api_schema_prune(s, config, &unknown);
    api_schema_validate(s, config, &causes);
    CLEANUP(json_free) struct json *once = apply(k, live, config, "a", true);
    if (!once) {
        return;
    }
    check_record(once);
    if (!json_path(once, "metadata", "managedFields", NULL)) {
        return; /* Nothing was applied, and nobody else owns anything: there is no record to go on from. */
    }
    /* Applied again it changes nothing, and needs no force. */
    CLEANUP(json_free) struct json *twice = apply(k, once, config, "a", false);
    check(twice && json_equal(once, twice));
    CLEANUP(json_free) struct json *other = apply(k, once, config, "b", false);
    check(other != NULL);
    CLEANUP(json_free) struct json *back = json_clone(live ? live : config);
    const struct api_manager m = {.name = "u", .subresource = "", .now_ms = 2000};
    json_remove(json_ensure_object(back, "metadata"), "managedFields");
    api_managed_update(k, other, back, &m);
    check_record(back);
    json_free(apply(k, back, config, "a", false));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct api_kind open = {
        .group = "g", .version = "v1", .kind = "Open", .plural = "opens", .singular = "open"};
    CLEANUP(json_free) struct json *input = NULL;
    if (json_parse((const char *) data, size, &input, NULL) < 0) {
        return 0;
    }
    const struct json *live = json_get(input, "live"), *config = json_get(input, "config");
    const struct json *fields = json_get(input, "fields");
    if (fieldset_is_valid(fields)) {
        CLEANUP(json_free) struct json *sum = json_clone(fields);
        CLEANUP(json_free) struct json *both = fieldset_intersect(fields, fields);
        fieldset_add(sum, fields);
        check(json_equal(sum, fields));
        fieldset_foreach(fields, ignore, NULL);
        fieldset_subtract(both, fields);
        fieldset_subtract(sum, fields);
        CLEANUP(json_free) struct json *none = fieldset_intersect(sum, fields);
        check(fieldset_is_empty(none) && fieldset_is_empty(both));
    }
    if (json_is(config, JSON_OBJECT) && (!live || json_is(live, JSON_OBJECT))) {
        run(api_kind_find("", "v1", "pods"), live, config);
        run(&open, live, config);
    }
    return 0;
}
