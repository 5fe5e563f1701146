/* SPDX-License-Identifier: Apache-2.0 */
/* NetNamespace (network.openshift.io/v1): the virtual network of a project. */
#include "api/kind_util.h"
#include "api/kinds.h"
#include "api/kinds/netnamespace.h"
#include "api/schema.h"

int net_change_parse(const char *text, enum net_change *ret, const char **ret_project,
                     struct err *e)
{
    static const char join[] = "join:";
    /* oc's parser accepts any text after the colon of the other two; only an empty one is
     * accepted here. */
    if (streq(text, "isolate") || streq(text, "isolate:")) {
        *ret = NET_ISOLATE;
    } else if (streq(text, "global") || streq(text, "global:")) {
        *ret = NET_GLOBAL;
    } else if (strncmp(text, join, sizeof join - 1) == 0 &&
               !api_check_dns_label(text + sizeof join - 1)) {
        *ret = NET_JOIN;
        *ret_project = text + sizeof join - 1;
        return 0;
    } else {
        return err_set(e, -EINVAL, "must be join:PROJECT, isolate or global");
    }
    *ret_project = "";
    return 0;
}

int net_id_parse(const char *text, uint32_t *ret)
{
    uint64_t id;
    if (str_to_u64(text, NET_ID_MAX, &id) < 0) {
        return -EINVAL;
    }
    *ret = (uint32_t) id;
    return 0;
}

/* A value stored before does not prevent other changes of the object. */
static void validate_annotations(const struct json *map, const struct json *old, const char *name,
                                 struct api_causes *c)
{
    static const char *const ids[] = {NET_NEXT_ID, NET_PREVIOUS_ID};
    const struct json *v = json_get(map, NET_CHANGE);
    enum net_change change;
    const char *project;
    struct err e = {0};
    if (v && !json_equal(v, json_get(old, NET_CHANGE))) {
        if (net_change_parse(json_get_string(v), &change, &project, &e) < 0) {
            api_invalid(c, "metadata.annotations[" NET_CHANGE "]", v, "%s", e.text);
        } else if (change == NET_ISOLATE && streq_null(name, "default")) {
            api_invalid(c, "metadata.annotations[" NET_CHANGE "]", v,
                        "network isolation for project \"default\" is forbidden");
        }
    }
    for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
        uint32_t id;
        v = json_get(map, ids[i]);
        if (v && net_id_parse(json_get_string(v), &id) < 0) {
            api_invalid(c, API_FIELD("metadata.annotations[%s]", ids[i]), v,
                        "must be a decimal number between 0 and %d, inclusive", NET_ID_MAX);
        }
    }
}

void kind_net_namespace_validate(const struct json *obj, const struct json *old,
                                 struct api_causes *c)
{
    const char *name = json_path_string(obj, "metadata", "name", NULL);
    const struct json *netname = json_get(obj, "netname"), *netid = json_get(obj, "netid");
    int64_t id = json_get_int_or(netid, 0);
    if (!streq_null(json_get_string(netname), name)) {
        api_invalid(c, "netname", netname, "must be the same as metadata.name: \"%s\"", name);
    }
    if (id > 0 && id < NET_ID_FIRST) {
        api_invalid(c, "netid", netid, "1 to %d are reserved", NET_ID_FIRST - 1);
    }
    validate_annotations(json_path(obj, "metadata", "annotations", NULL),
                         json_path(old, "metadata", "annotations", NULL), name, c);
}
