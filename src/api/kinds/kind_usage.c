/* SPDX-License-Identifier: Apache-2.0 */
/* PodMetrics (metrics.k8s.io/v1beta1): the sums of its containers. */
#include "api/kinds.h"
#include "api/quantity.h"
#include "base/mem.h"

#include <inttypes.h>

static struct json *sum(const struct json *obj, const char *resource, int exponent, int64_t unit,
                        const char *suffix)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    const struct json *c;
    int64_t all = 0, n;
    JSON_FOREACH (c, json_get(obj, "containers")) {
        const char *text = json_path_string(c, "usage", resource, NULL);
        if (text && api_quantity_value(text, exponent, &n, NULL) == 0 && n > 0) {
            all = n > INT64_MAX - all ? INT64_MAX : all + n;
        }
    }
    CLEANUP_FREE char *text = xasprintf("%" PRId64 "%s", all / unit, suffix);
    api_quantity_format(text, false, &b, NULL);
    return json_string(strbuf_cstr(&b));
}

struct json *kind_pod_metrics_cell_cpu(const struct json *obj, int64_t now_ms)
{
    return sum(obj, "cpu", -9, 1, "n");
}

struct json *kind_pod_metrics_cell_memory(const struct json *obj, int64_t now_ms)
{
    return sum(obj, "memory", 0, 1024, "Ki");
}
