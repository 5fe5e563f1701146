/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz: quotas and limits.  The bytes are a list of a ResourceQuotaSpec, a LimitRange and an object.
 * No amount is negative, counting an object and then counting it again gives the same, and an object
 * that adds nothing is not refused. */
#include "base/mem.h"
#include "quota/limits.h"
#include "quota/quota.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_kind(const struct quota_spec *s, const char *plural, const struct json *obj)
{
    int64_t add[QUOTA_MAX_ITEMS], again[QUOTA_MAX_ITEMS], none[QUOTA_MAX_ITEMS];
    quota_total used[QUOTA_MAX_ITEMS] = {0};
    CLEANUP_STRBUF struct strbuf why = STRBUF_INIT;
    quota_spec_charge(s, "", plural, true, obj, add);
    quota_spec_charge(s, "", plural, true, obj, again);
    quota_spec_charge(s, "", plural, false, NULL, none);
    for (size_t i = 0; i < s->n; i++) {
        if (add[i] < 0 || add[i] != again[i] || none[i] != 0) {
            __builtin_trap();
        }
        used[i] = (quota_total) add[i] * 1000;
    }
    (void) quota_spec_refuses(s, "q", used, add, &why);
    if (quota_spec_refuses(s, "q", used, none, &why)) {
        __builtin_trap();
    }
    json_free(quota_spec_status(s, used));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const kinds[] = {"pods", "services", "persistentvolumeclaims", "secrets"};
    CLEANUP(json_free) struct json *v = NULL;
    if (json_parse((const char *) data, size, &v, NULL) < 0 || json_count(v) < 3) {
        return 0;
    }
    CLEANUP(quota_spec_free) struct quota_spec *s = quota_spec_new(json_at(v, 0));
    const struct json *range = json_at(v, 1);
    struct json *obj = json_at(v, 2);
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        check_kind(s, kinds[i], obj);
    }
    free(quota_spec_missing(s, obj));
    free(limits_check(range, obj, false));
    free(limits_check(range, obj, true));
    if (json_is(obj, JSON_OBJECT) && limits_fill_pod(range, obj) && limits_fill_pod(range, obj)) {
        __builtin_trap();
    }
    return 0;
}
