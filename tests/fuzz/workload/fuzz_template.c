/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz: templates, from JSON of any shape. What is processed is not larger than its limits allow,
 * and has no reference to a parameter but in values; patterns make values within their limit. */
#include "base/mem.h"
#include "workload/template_instance.h"
#include "workload/template_process.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The same bytes each time, so that a crash is found again. */
static void zeros(void *p, size_t size)
{
    memset(p, 0, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP_FREE char *text = xstrndup((const char *) data, size);
    CLEANUP_STRBUF struct strbuf value = STRBUF_INIT;
    CLEANUP(json_free) struct json *template = NULL;
    CLEANUP(json_free) struct json *out = NULL;
    CLEANUP(api_causes_done) struct api_causes causes = {0};
    if (template_generate(text, zeros, &value, NULL) == 0 && value.size > TEMPLATE_MAX_GENERATED) {
        __builtin_trap();
    }
    if (json_parse((const char *) data, size, &template, NULL) < 0 ||
        !json_is(template, JSON_OBJECT)) {
        return 0;
    }
    CLEANUP_FREE char *before = json_to_text(template);
    int r = template_process(template, zeros, &out, &causes);
    CLEANUP_FREE char *after = json_to_text(template);
    if (!streq(before, after) || (r < 0) != (causes.n > 0) || (r < 0) != !out) {
        __builtin_trap();
    }
    const struct json *objects = json_get(out, "objects");
    for (size_t i = 0; i < json_count(objects); i++) {
        (void) template_object_depends(objects, i);
        (void) template_object_state(json_at(objects, i));
    }
    return 0;
}
