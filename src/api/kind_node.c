/* SPDX-License-Identifier: Apache-2.0 */
/* Node (core v1). */
#include "api/kind_util.h"
#include "api/schema_core.h"

#define ROLE_PREFIX "node-role.kubernetes.io/"
#define ROLE_LABEL "kubernetes.io/role"

static struct json *cell_status(const struct json *obj, int64_t now_ms)
{
    const char *ready = "Unknown";
    const struct json *cond;
    JSON_FOREACH (cond, json_path(obj, "status", "conditions", NULL)) {
        if (streq_null(json_path_string(cond, "type", NULL), "Ready")) {
            ready =
                streq_null(json_path_string(cond, "status", NULL), "True") ? "Ready" : "NotReady";
        }
    }
    bool cordoned = json_get_bool(json_path(obj, "spec", "unschedulable", NULL), false);
    return json_stringf("%s%s", ready, cordoned ? ",SchedulingDisabled" : "");
}

static struct json *cell_roles(const struct json *obj, int64_t now_ms)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    const struct json *labels = json_path(obj, "metadata", "labels", NULL);
    for (size_t i = 0; json_is(labels, JSON_OBJECT) && i < json_count(labels); i++) {
        const char *key = json_key_at(labels, i), *role = NULL;
        if (str_has_prefix(key, ROLE_PREFIX)) {
            role = key + strlen(ROLE_PREFIX);
        } else if (streq(key, ROLE_LABEL)) {
            role = json_get_string(json_at(labels, i));
        }
        if (role && *role) {
            strbuf_addf(&b, "%s%s", b.size ? "," : "", role);
        }
    }
    return api_cell_text(strbuf_cstr(&b), "<none>");
}

static struct json *cell_version(const struct json *obj, int64_t now_ms)
{
    return api_cell_text(json_path_string(obj, "status", "nodeInfo", "kubeletVersion", NULL), "");
}

static struct json *cell_address(const struct json *obj, const char *type)
{
    const struct json *a;
    JSON_FOREACH (a, json_path(obj, "status", "addresses", NULL)) {
        if (streq_null(json_path_string(a, "type", NULL), type)) {
            return api_cell_text(json_path_string(a, "address", NULL), "<none>");
        }
    }
    return json_string("<none>");
}

static struct json *cell_internal_ip(const struct json *obj, int64_t now_ms)
{
    return cell_address(obj, "InternalIP");
}

static struct json *cell_external_ip(const struct json *obj, int64_t now_ms)
{
    return cell_address(obj, "ExternalIP");
}

static struct json *cell_os(const struct json *obj, int64_t now_ms)
{
    return api_cell_text(json_path_string(obj, "status", "nodeInfo", "osImage", NULL), "<unknown>");
}

static struct json *cell_kernel(const struct json *obj, int64_t now_ms)
{
    return api_cell_text(json_path_string(obj, "status", "nodeInfo", "kernelVersion", NULL),
                         "<unknown>");
}

static struct json *cell_runtime(const struct json *obj, int64_t now_ms)
{
    return api_cell_text(
        json_path_string(obj, "status", "nodeInfo", "containerRuntimeVersion", NULL), "<unknown>");
}

static void validate_taints(const struct json *taints, struct api_causes *c)
{
    static const char *const effects[] = {"NoSchedule", "PreferNoSchedule", "NoExecute", NULL};
    if (!api_field_array(c, "spec.taints", taints)) {
        return;
    }
    for (size_t i = 0; i < json_count(taints); i++) {
        const struct json *t = json_at(taints, i);
        api_field_checked(c, API_FIELD("spec.taints[%zu].key", i), json_get(t, "key"), true,
                          api_check_qualified_name);
        api_field_checked(c, API_FIELD("spec.taints[%zu].value", i), json_get(t, "value"), false,
                          api_check_label_value);
        api_field_enum(c, API_FIELD("spec.taints[%zu].effect", i), json_get(t, "effect"), true,
                       effects);
    }
}

static void validate_status(const struct json *status, struct api_causes *c)
{
    if (!api_field_object(c, "status", status)) {
        return;
    }
    const struct json *list = json_get(status, "addresses");
    if (api_field_array(c, "status.addresses", list)) {
        static const char *const types[] = {"Hostname",    "InternalIP",  "ExternalIP",
                                            "InternalDNS", "ExternalDNS", NULL};
        for (size_t i = 0; i < json_count(list); i++) {
            const struct json *a = json_at(list, i);
            const char *field = API_FIELD("status.addresses[%zu].address", i);
            if (api_field_enum(c, API_FIELD("status.addresses[%zu].type", i), json_get(a, "type"),
                               true, types) &&
                str_has_suffix(json_path_string(a, "type", NULL), "IP")) {
                api_field_ip(c, field, json_get(a, "address"), true);
            } else {
                api_field_string(c, field, json_get(a, "address"), true);
            }
        }
    }
    list = json_get(status, "conditions");
    if (api_field_array(c, "status.conditions", list)) {
        static const char *const values[] = {"True", "False", "Unknown", NULL};
        for (size_t i = 0; i < json_count(list); i++) {
            const struct json *cond = json_at(list, i);
            api_field_string(c, API_FIELD("status.conditions[%zu].type", i), json_get(cond, "type"),
                             true);
            api_field_enum(c, API_FIELD("status.conditions[%zu].status", i),
                           json_get(cond, "status"), true, values);
        }
    }
}

static void validate(const struct json *obj, const struct json *old, struct api_causes *c)
{
    const struct json *spec = json_get(obj, "spec"), *old_spec = json_get(old, "spec");
    if (api_field_object(c, "spec", spec)) {
        api_field_bool(c, "spec.unschedulable", json_get(spec, "unschedulable"));
        api_field_string(c, "spec.providerID", json_get(spec, "providerID"), false);
        const struct json *cidr = json_get(spec, "podCIDR");
        api_field_cidr(c, "spec.podCIDR", cidr, false, NULL);
        if (json_get(old_spec, "podCIDR") && !json_equal(cidr, json_get(old_spec, "podCIDR"))) {
            api_forbidden(c, "spec.podCIDR",
                          "node updates may not change podCIDR except from \"\" to valid");
        }
        validate_taints(json_get(spec, "taints"), c);
    }
    validate_status(json_get(obj, "status"), c);
}

/* ---- schema ---- */

#define CORE "io.k8s.api.core.v1."

static const struct api_field taint_fields[] = {
    {"effect", &api_schema_string, "NoSchedule, PreferNoSchedule or NoExecute", true},
    {"key", &api_schema_string, "Key of the taint", true},
    {"timeAdded", &api_schema_time, "When it was added"},
    {"value", &api_schema_string, "Value of the taint"},
};
static const struct api_schema taint =
    API_OBJECT_OF(taint_fields, CORE "Taint", "What keeps pods that do not bear it off the node");

static const struct api_field config_map_source_fields[] = {
    {"kubeletConfigKey", &api_schema_string, "Key of the configuration", true},
    {"name", &api_schema_string, "Name of the config map", true},
    {"namespace", &api_schema_string, "Namespace of the config map", true},
    {"resourceVersion", &api_schema_string, "Version of the config map"},
    {"uid", &api_schema_string, "UID of the config map"},
};
static const struct api_schema config_map_source =
    API_OBJECT_OF(config_map_source_fields, CORE "ConfigMapNodeConfigSource",
                  "A config map of the agent's configuration");

static const struct api_field config_source_fields[] = {
    {"configMap", &config_map_source, "A config map"},
};
static const struct api_schema config_source = API_OBJECT_OF(
    config_source_fields, CORE "NodeConfigSource", "Where the agent's configuration comes from");

static const struct api_field node_spec_fields[] = {
    {"configSource", &config_source, "Not used any more"},
    {"externalID", &api_schema_string, "Name the node is reached by; default: its own"},
    {"podCIDR", &api_schema_string, "Range of pod addresses of the node"},
    {"podCIDRs", &api_schema_string_set, "Ranges of pod addresses of the node, podCIDR first"},
    {"providerID", &api_schema_string, "ID of the machine at the cloud provider"},
    {"taints", API_LIST_OF(&taint), "What keeps pods off the node"},
    {"unschedulable", &api_schema_boolean, "No new pods are put on the node."},
};
static const struct api_schema node_spec =
    API_OBJECT_OF(node_spec_fields, CORE "NodeSpec", "What a node is to be");

static const struct api_field node_address_fields[] = {
    {"address", &api_schema_string, "The address", true},
    {"type", &api_schema_string, "Hostname, InternalIP, ExternalIP, InternalDNS or ExternalDNS",
     true},
};
static const struct api_schema node_address =
    API_OBJECT_OF(node_address_fields, CORE "NodeAddress", "An address of the node");

static const struct api_field node_condition_fields[] = {
    {"lastHeartbeatTime", &api_schema_time, "When it was last reported"},
    {"lastTransitionTime", &api_schema_time, "When the status last changed"},
    {"message", &api_schema_string, "Details for people"},
    {"reason", &api_schema_string, "Why it last changed, in CamelCase"},
    {"status", &api_schema_string, "True, False or Unknown", true},
    {"type", &api_schema_string, "Ready, MemoryPressure, DiskPressure, NetworkUnavailable, ...",
     true},
};
static const struct api_schema node_condition =
    API_OBJECT_OF(node_condition_fields, CORE "NodeCondition", "One aspect of a node's state");

static const struct api_field config_status_fields[] = {
    {"active", &config_source, "In use"},
    {"assigned", &config_source, "To be tried"},
    {"error", &api_schema_string, "What is wrong"},
    {"lastKnownGood", &config_source, "Fallback"},
};
static const struct api_schema config_status = API_OBJECT_OF(
    config_status_fields, CORE "NodeConfigStatus", "State of the agent's configuration");

static const struct api_field daemon_endpoint_fields[] = {
    {"Port", &api_schema_int32, "Number of the port", true},
};
static const struct api_schema daemon_endpoint =
    API_OBJECT_OF(daemon_endpoint_fields, CORE "DaemonEndpoint", "Port of a daemon");

static const struct api_field daemon_endpoints_fields[] = {
    {"kubeletEndpoint", &daemon_endpoint, "The agent's"},
};
static const struct api_schema daemon_endpoints = API_OBJECT_OF(
    daemon_endpoints_fields, CORE "NodeDaemonEndpoints", "Ports of the node's daemons");

static const struct api_field node_features_fields[] = {
    {"supplementalGroupsPolicy", &api_schema_boolean, "It knows supplementalGroupsPolicy."},
};
static const struct api_schema node_features =
    API_OBJECT_OF(node_features_fields, CORE "NodeFeatures", "What the runtime can do");

static const struct api_field image_fields[] = {
    {"names", &api_schema_string_list, "Its names"},
    {"sizeBytes", &api_schema_int64, "Its size in bytes"},
};
static const struct api_schema image =
    API_OBJECT_OF(image_fields, CORE "ContainerImage", "An image on the node");

static const struct api_field swap_fields[] = {
    {"capacity", &api_schema_int64, "Bytes of swap"},
};
static const struct api_schema swap =
    API_OBJECT_OF(swap_fields, CORE "NodeSwapStatus", "Swap of the node");

static const struct api_field node_info_fields[] = {
    {"architecture", &api_schema_string, "Processor architecture"},
    {"bootID", &api_schema_string, "ID of the present boot"},
    {"containerRuntimeVersion", &api_schema_string,
     "Name and version of the runtime, NAME://VERSION"},
    {"kernelVersion", &api_schema_string, "Version of the kernel"},
    {"kubeProxyVersion", &api_schema_string, "Not used any more"},
    {"kubeletVersion", &api_schema_string, "Version of the agent"},
    {"machineID", &api_schema_string, "ID of the machine"},
    {"operatingSystem", &api_schema_string, "linux"},
    {"osImage", &api_schema_string, "Name of the operating system"},
    {"swap", &swap, "Swap of the node"},
    {"systemUUID", &api_schema_string, "UUID of the hardware"},
};
static const struct api_schema node_info =
    API_OBJECT_OF(node_info_fields, CORE "NodeSystemInfo", "What the node is");

static const struct api_field handler_features_fields[] = {
    {"recursiveReadOnlyMounts", &api_schema_boolean, "Mounts that are read-only below, too"},
    {"userNamespaces", &api_schema_boolean, "User namespaces"},
};
static const struct api_schema handler_features = API_OBJECT_OF(
    handler_features_fields, CORE "NodeRuntimeHandlerFeatures", "What a runtime handler can do");

static const struct api_field runtime_handler_fields[] = {
    {"features", &handler_features, "What it can do"},
    {"name", &api_schema_string, "Its name; empty is the default."},
};
static const struct api_schema runtime_handler =
    API_OBJECT_OF(runtime_handler_fields, CORE "NodeRuntimeHandler", "A runtime of the node");

static const struct api_field attached_volume_fields[] = {
    {"devicePath", &api_schema_string, "Path of its device", true},
    {"name", &api_schema_string, "Name of the volume", true},
};
static const struct api_schema attached_volume =
    API_OBJECT_OF(attached_volume_fields, CORE "AttachedVolume", "A volume attached to the node");

static const struct api_field node_status_fields[] = {
    {"addresses", API_PATCH_LIST(&node_address, "type"), "Addresses of the node"},
    {"allocatable", &api_schema_quantity_map, "Resources that pods can have"},
    {"capacity", &api_schema_quantity_map, "Resources of the node"},
    {"conditions", API_MAP_LIST(&node_condition, "type", "type"), "Aspects of its state"},
    {"config", &config_status, "State of the agent's configuration"},
    {"daemonEndpoints", &daemon_endpoints, "Ports of the node's daemons"},
    {"features", &node_features, "What the runtime can do"},
    {"images", API_LIST_OF(&image), "Images on the node"},
    {"nodeInfo", &node_info, "What the node is"},
    {"phase", &api_schema_string, "Not used any more"},
    {"runtimeHandlers", API_LIST_OF(&runtime_handler), "Runtimes of the node"},
    {"volumesAttached", API_LIST_OF(&attached_volume), "Volumes attached to the node"},
    {"volumesInUse", &api_schema_string_list, "Volumes that pods of the node use"},
};
static const struct api_schema node_status =
    API_OBJECT_OF(node_status_fields, CORE "NodeStatus", "What a node is");
static const struct api_field root_fields[] = {
    API_ROOT_API_VERSION,
    API_ROOT_KIND,
    API_ROOT_METADATA,
    {"spec", &node_spec, "What the node is to be"},
    {"status", &node_status, "What the node is"},
};
static const struct api_schema root =
    API_OBJECT_OF(root_fields, CORE "Node", "Node is a machine of the cluster.");

/* Where the node is reached: its name, unless something else was said (NODE-15). */
static void defaults(struct json *obj)
{
    const char *name = json_path_string(obj, "metadata", "name", NULL);
    const struct json *spec = json_get(obj, "spec");
    /* A value of another type stays for validation to refuse. */
    if (name && (!spec || json_is(spec, JSON_NULL) || json_is(spec, JSON_OBJECT))) {
        api_default_string(json_ensure_object(obj, "spec"), "externalID", name);
    }
}

static const struct api_column columns[] = {
    API_COLUMN_NAME,
    {"Status", "string", "", "The status of the node", 0, cell_status},
    {"Roles", "string", "", "The roles of the node", 0, cell_roles},
    API_COLUMN_AGE,
    {"Version", "string", "", "Version reported by the node.", 0, cell_version},
    {"Internal-IP", "string", "", "Address of the node within the cluster", 1, cell_internal_ip},
    {"External-IP", "string", "", "Address of the node from outside", 1, cell_external_ip},
    {"OS-Image", "string", "", "OS image reported by the node", 1, cell_os},
    {"Kernel-Version", "string", "", "Kernel version reported by the node", 1, cell_kernel},
    {"Container-Runtime", "string", "", "Container runtime reported by the node", 1, cell_runtime},
};
static const char *const short_names[] = {"no", NULL};
static const struct api_field_label selectable[] = {
    {"spec.unschedulable", .dflt = "false"},
    {0},
};

const struct api_kind api_kind_node = {
    .group = "",
    .version = "v1",
    .kind = "Node",
    .plural = "nodes",
    .singular = "node",
    .short_names = short_names,
    .status_subresource = true,
    .description = "Node is a host of the cluster.",
    .columns = columns,
    .n_columns = ARRAY_SIZE(columns),
    .defaults = defaults,
    .validate = validate,
    .selectable = selectable,
    .schema = &root,
};
