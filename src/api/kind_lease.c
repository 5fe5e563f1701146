/* SPDX-License-Identifier: Apache-2.0 */
/* Lease (coordination.k8s.io/v1): who of several does something now, and until when without a sign of life. */
#include "api/kind_util.h"
#include "api/schema.h"

#include "base/timeutil.h"

static struct json *cell_holder(const struct json *obj, int64_t now_ms)
{
    return api_cell_text(json_path_string(obj, "spec", "holderIdentity", NULL), "");
}

static void check_time(struct api_causes *c, const char *field, const struct json *v)
{
    int64_t ms;
    if (api_field_string(c, field, v, false) && time_parse(json_get_string(v), &ms) < 0) {
        api_invalid(c, field, v, "must be an RFC 3339 time, (e.g. 2006-01-02T15:04:05.000000Z)");
    }
}

static void validate(const struct json *obj, const struct json *old, struct api_causes *c)
{
    const struct json *spec = json_get(obj, "spec");
    int64_t n;
    if (!api_field_object(c, "spec", spec)) {
        return;
    }
    api_field_string(c, "spec.holderIdentity", json_get(spec, "holderIdentity"), false);
    api_field_int(c, "spec.leaseDurationSeconds", json_get(spec, "leaseDurationSeconds"), false, 1,
                  INT32_MAX, &n);
    api_field_int(c, "spec.leaseTransitions", json_get(spec, "leaseTransitions"), false, 0,
                  INT32_MAX, &n);
    check_time(c, "spec.acquireTime", json_get(spec, "acquireTime"));
    check_time(c, "spec.renewTime", json_get(spec, "renewTime"));
}

static const struct api_field spec_fields[] = {
    {"acquireTime", &api_schema_micro_time, "When the holder got it"},
    {"holderIdentity", &api_schema_string, "Who holds it; empty: nobody"},
    {"leaseDurationSeconds", &api_schema_int32, "Seconds after renewTime for which it counts"},
    {"leaseTransitions", &api_schema_int32, "How often it changed hands"},
    {"preferredHolder", &api_schema_string, "Who should get it next"},
    {"renewTime", &api_schema_micro_time, "When the holder last renewed it"},
    {"strategy", &api_schema_string, "How the next holder is chosen"},
};
static const struct api_schema spec = API_OBJECT_OF(
    spec_fields, "io.k8s.api.coordination.v1.LeaseSpec", "Who holds a lease, and until when");
static const struct api_field root_fields[] = {
    API_ROOT_API_VERSION,
    API_ROOT_KIND,
    API_ROOT_METADATA,
    {"spec", &spec, "Who holds the lease, and until when"},
};
static const struct api_schema root =
    API_OBJECT_OF(root_fields, "io.k8s.api.coordination.v1.Lease",
                  "Lease says who of several does something now.");

static const struct api_column columns[] = {
    API_COLUMN_NAME,
    {"Holder", "string", "", "Who holds the lease now", 0, cell_holder},
    API_COLUMN_AGE,
};

const struct api_kind api_kind_lease = {
    .group = "coordination.k8s.io",
    .version = "v1",
    .kind = "Lease",
    .plural = "leases",
    .singular = "lease",
    .namespaced = true,
    .description = "Lease says who of several does something now, and until when it counts without "
                   "being renewed.",
    .columns = columns,
    .n_columns = ARRAY_SIZE(columns),
    .validate = validate,
    .create_on_update = true,
    .schema = &root,
};
