/* SPDX-License-Identifier: Apache-2.0 */
/* NetNamespace (network.openshift.io/v1): the virtual network of a project. */
#include "api/kind_util.h"
#include "api/schema.h"

#define VNID_MAX 0xffffff
#define VNID_FIRST 10 /* 1 to 9 are reserved. */

static void validate(const struct json *obj, const struct json *old, struct api_causes *c)
{
    const char *name = json_path_string(obj, "metadata", "name", NULL);
    const struct json *netname = json_get(obj, "netname"), *netid = json_get(obj, "netid");
    int64_t id;
    if (api_field_string(c, "netname", netname, true) &&
        !streq_null(json_get_string(netname), name)) {
        api_invalid(c, "netname", netname, "must be the same as metadata.name: \"%s\"", name);
    }
    if (api_field_int(c, "netid", netid, true, 0, VNID_MAX, &id) && id > 0 && id < VNID_FIRST) {
        api_invalid(c, "netid", netid, "1 to %d are reserved", VNID_FIRST - 1);
    }
    api_field_ip4_list(c, "egressIPs", json_get(obj, "egressIPs"));
    if (old) {
        api_field_immutable(c, "netname", netname, json_get(old, "netname"));
    }
}

static struct json *cell_netid(const struct json *obj, int64_t now_ms)
{
    return json_int(json_get_int_or(json_get(obj, "netid"), 0));
}

static struct json *cell_egress_ips(const struct json *obj, int64_t now_ms)
{
    return api_cell_list(json_get(obj, "egressIPs"));
}

/* ---- schema ---- */

#define NETWORK "com.github.openshift.api.network.v1."

static const struct api_field root_fields[] = {
    API_ROOT_API_VERSION,
    {"egressIPs", &api_schema_string_list,
     "Source addresses of the project's traffic to outside; the first one that is carried counts"},
    API_ROOT_KIND,
    API_ROOT_METADATA,
    {"netid", &api_schema_int64, "Virtual network id; 0 reaches all"},
    {"netname", &api_schema_string, "Name of the project"},
};
static const struct api_schema root =
    API_OBJECT_OF(root_fields, NETWORK "NetNamespace",
                  "NetNamespace describes the virtual network of a project.");

static const struct api_column columns[] = {
    API_COLUMN_NAME,
    {"NetID", "integer", "", "Virtual network id; 0 reaches all", 0, cell_netid},
    {"Egress IPs", "string", "", "Source addresses of the project's traffic to outside", 0,
     cell_egress_ips},
    API_COLUMN_AGE_WIDE,
};
static const struct api_field_label selectable[] = {
    {"netid"},
    {0},
};

const struct api_kind api_kind_net_namespace = {
    .group = "network.openshift.io",
    .version = "v1",
    .kind = "NetNamespace",
    .plural = "netnamespaces",
    .singular = "netnamespace",
    .description = "NetNamespace describes the virtual network of a project.",
    .columns = columns,
    .n_columns = ARRAY_SIZE(columns),
    .check_name = api_check_path_segment,
    .validate = validate,
    .selectable = selectable,
    .schema = &root,
};
