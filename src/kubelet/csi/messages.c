/* SPDX-License-Identifier: Apache-2.0 */
#include "kubelet/csi/messages.h"

#include "wire/protobuf_shapes.h"

#define PAIRS(number, type, m) LIST(number, &map_shape, type, m.v, m.n)

static const struct pb_shape empty = {0};

SHAPE(map_shape, runtime_pair, {1, PB_ROW_TEXT, AT(runtime_pair, key), 0, NULL, PB_ROW_ALWAYS},
      {2, PB_ROW_TEXT, AT(runtime_pair, value), 0, NULL, PB_ROW_ALWAYS});

/* ---- parts ---- */

SHAPE(mount_part, csi_capability, ROW(1, TEXT, csi_capability, fs_type),
      TEXTS(2, csi_capability, flags), ROW(3, TEXT, csi_capability, group));
SHAPE(mode_part, csi_capability, ROW(1, ENUM, csi_capability, mode));
SHAPE(capability, csi_capability, VIEW_IF(1, &empty, csi_capability, is_block),
      VIEW_IF(2, &mount_part, csi_capability, is_mount), VIEW(3, &mode_part));
SHAPE(topology, csi_topology, PAIRS(1, csi_topology, segments));
SHAPE(ability_type, csi_ability, ROW(1, ENUM, csi_ability, type));
SHAPE(ability, csi_ability, VIEW(1, &ability_type));
SHAPE(abilities, csi_abilities, LIST(1, &ability, csi_abilities, v, n));

bool csi_can(const struct csi_abilities *a, int type)
{
    for (size_t i = 0; i < a->n; i++) {
        if (a->v[i].type == type) {
            return true;
        }
    }
    return false;
}

/* ---- registration and identity ---- */

SHAPE(registration, csi_registration, ROW(1, TEXT, csi_registration, type),
      ROW(2, TEXT, csi_registration, name), ROW(3, TEXT, csi_registration, endpoint),
      TEXTS(4, csi_registration, versions));
SHAPE(registration_status, csi_registration_status,
      ROW(1, BOOL, csi_registration_status, registered),
      ROW(2, TEXT, csi_registration_status, error));
SHAPE(plugin_info, csi_plugin_info, ROW(1, TEXT, csi_plugin_info, name),
      ROW(2, TEXT, csi_plugin_info, version));
SHAPE(plugin_service, csi_plugin_ability, ROW(1, ENUM, csi_plugin_ability, service));
SHAPE(plugin_ability, csi_plugin_ability, VIEW(1, &plugin_service));
SHAPE(plugin_abilities, csi_plugin_abilities, LIST(1, &plugin_ability, csi_plugin_abilities, v, n));
SHAPE(ready_value, csi_probe, ROW(1, BOOL, csi_probe, ready));
SHAPE(probe, csi_probe, VIEW_IF(1, &ready_value, csi_probe, has_ready));

/* ---- controller ---- */

SHAPE(create_range, csi_create_volume, ROW(1, I64, csi_create_volume, required_bytes),
      ROW(2, I64, csi_create_volume, limit_bytes));
SHAPE(requirement, csi_create_volume, LIST(1, &topology, csi_create_volume, requisite, n_requisite),
      LIST(2, &topology, csi_create_volume, preferred, n_preferred));
SHAPE(create_volume, csi_create_volume, ROW(1, TEXT, csi_create_volume, name),
      VIEW(2, &create_range), LIST(3, &capability, csi_create_volume, capabilities, n_capabilities),
      PAIRS(4, csi_create_volume, parameters), PAIRS(5, csi_create_volume, secrets),
      VIEW_IF(7, &requirement, csi_create_volume, has_topology));
SHAPE(volume, csi_volume, ROW(1, I64, csi_volume, capacity_bytes), ROW(2, TEXT, csi_volume, id),
      PAIRS(3, csi_volume, context), LIST(5, &topology, csi_volume, topology, n_topology));
SHAPE(created, csi_volume, VIEW(1, &volume));
SHAPE(delete_volume, csi_delete_volume, ROW(1, TEXT, csi_delete_volume, id),
      PAIRS(2, csi_delete_volume, secrets));
SHAPE(controller_publish, csi_controller_publish, ROW(1, TEXT, csi_controller_publish, id),
      ROW(2, TEXT, csi_controller_publish, node_id),
      PART(3, &capability, csi_controller_publish, capability),
      ROW(4, BOOL, csi_controller_publish, readonly), PAIRS(5, csi_controller_publish, secrets),
      PAIRS(6, csi_controller_publish, context));
SHAPE(publish_context, csi_publish_context, PAIRS(1, csi_publish_context, context));
SHAPE(controller_unpublish, csi_controller_unpublish, ROW(1, TEXT, csi_controller_unpublish, id),
      ROW(2, TEXT, csi_controller_unpublish, node_id), PAIRS(3, csi_controller_unpublish, secrets));
SHAPE(controller_range, csi_controller_expand, ROW(1, I64, csi_controller_expand, required_bytes),
      ROW(2, I64, csi_controller_expand, limit_bytes));
SHAPE(controller_expand, csi_controller_expand, ROW(1, TEXT, csi_controller_expand, id),
      VIEW(2, &controller_range), PAIRS(3, csi_controller_expand, secrets),
      PART(4, &capability, csi_controller_expand, capability));
SHAPE(expanded, csi_expanded, ROW(1, I64, csi_expanded, capacity_bytes),
      ROW(2, BOOL, csi_expanded, node_expansion_required));

/* ---- node ---- */

SHAPE(node_stage, csi_node_stage, ROW(1, TEXT, csi_node_stage, id),
      PAIRS(2, csi_node_stage, publish_context), ROW(3, TEXT, csi_node_stage, staging_path),
      PART(4, &capability, csi_node_stage, capability), PAIRS(5, csi_node_stage, secrets),
      PAIRS(6, csi_node_stage, context));
SHAPE(node_unstage, csi_node_unstage, ROW(1, TEXT, csi_node_unstage, id),
      ROW(2, TEXT, csi_node_unstage, staging_path));
SHAPE(node_publish, csi_node_publish, ROW(1, TEXT, csi_node_publish, id),
      PAIRS(2, csi_node_publish, publish_context), ROW(3, TEXT, csi_node_publish, staging_path),
      ROW(4, TEXT, csi_node_publish, target_path),
      PART(5, &capability, csi_node_publish, capability), ROW(6, BOOL, csi_node_publish, readonly),
      PAIRS(7, csi_node_publish, secrets), PAIRS(8, csi_node_publish, context));
SHAPE(node_unpublish, csi_node_unpublish, ROW(1, TEXT, csi_node_unpublish, id),
      ROW(2, TEXT, csi_node_unpublish, target_path));
SHAPE(node_stats, csi_node_stats, ROW(1, TEXT, csi_node_stats, id),
      ROW(2, TEXT, csi_node_stats, path), ROW(3, TEXT, csi_node_stats, staging_path));
SHAPE(usage, csi_usage, ROW(1, I64, csi_usage, available), ROW(2, I64, csi_usage, total),
      ROW(3, I64, csi_usage, used), ROW(4, ENUM, csi_usage, unit));
SHAPE(condition, csi_usages, ROW(1, BOOL, csi_usages, abnormal), ROW(2, TEXT, csi_usages, message));
SHAPE(usages, csi_usages, LIST(1, &usage, csi_usages, v, n), VIEW(2, &condition));
SHAPE(node_range, csi_node_expand, ROW(1, I64, csi_node_expand, required_bytes),
      ROW(2, I64, csi_node_expand, limit_bytes));
SHAPE(node_expand, csi_node_expand, ROW(1, TEXT, csi_node_expand, id),
      ROW(2, TEXT, csi_node_expand, path), VIEW(3, &node_range),
      ROW(4, TEXT, csi_node_expand, staging_path),
      PART(5, &capability, csi_node_expand, capability), PAIRS(6, csi_node_expand, secrets));
SHAPE(node_info, csi_node_info, ROW(1, TEXT, csi_node_info, node_id),
      ROW(2, I64, csi_node_info, max_volumes), PART(3, &topology, csi_node_info, topology));

/* ---- methods ---- */

#define REGISTRATION(m) "/pluginregistration.Registration/" m
#define IDENTITY(m) "/csi.v1.Identity/" m
#define CONTROLLER(m) "/csi.v1.Controller/" m
#define NODE(m) "/csi.v1.Node/" m

const struct csi_method csi_methods[CSI_METHODS] = {
    [CSI_PLUGIN_GET_INFO] = {REGISTRATION("GetInfo"), &empty, &registration},
    [CSI_PLUGIN_NOTIFY] = {REGISTRATION("NotifyRegistrationStatus"), &registration_status, &empty},
    [CSI_GET_PLUGIN_INFO] = {IDENTITY("GetPluginInfo"), &empty, &plugin_info},
    [CSI_GET_PLUGIN_CAPABILITIES] = {IDENTITY("GetPluginCapabilities"), &empty, &plugin_abilities},
    [CSI_PROBE] = {IDENTITY("Probe"), &empty, &probe},
    [CSI_CREATE_VOLUME] = {CONTROLLER("CreateVolume"), &create_volume, &created},
    [CSI_DELETE_VOLUME] = {CONTROLLER("DeleteVolume"), &delete_volume, &empty},
    [CSI_CONTROLLER_PUBLISH] = {CONTROLLER("ControllerPublishVolume"), &controller_publish,
                                &publish_context},
    [CSI_CONTROLLER_UNPUBLISH] = {CONTROLLER("ControllerUnpublishVolume"), &controller_unpublish,
                                  &empty},
    [CSI_CONTROLLER_EXPAND] = {CONTROLLER("ControllerExpandVolume"), &controller_expand, &expanded},
    [CSI_CONTROLLER_GET_CAPABILITIES] = {CONTROLLER("ControllerGetCapabilities"), &empty,
                                         &abilities},
    [CSI_NODE_STAGE] = {NODE("NodeStageVolume"), &node_stage, &empty},
    [CSI_NODE_UNSTAGE] = {NODE("NodeUnstageVolume"), &node_unstage, &empty},
    [CSI_NODE_PUBLISH] = {NODE("NodePublishVolume"), &node_publish, &empty},
    [CSI_NODE_UNPUBLISH] = {NODE("NodeUnpublishVolume"), &node_unpublish, &empty},
    [CSI_NODE_GET_VOLUME_STATS] = {NODE("NodeGetVolumeStats"), &node_stats, &usages},
    [CSI_NODE_EXPAND] = {NODE("NodeExpandVolume"), &node_expand, &expanded},
    [CSI_NODE_GET_CAPABILITIES] = {NODE("NodeGetCapabilities"), &empty, &abilities},
    [CSI_NODE_GET_INFO] = {NODE("NodeGetInfo"), &empty, &node_info},
};
