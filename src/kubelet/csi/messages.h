/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of the Container Storage Interface (csi.v1, github.com/container-storage-interface/spec) and of
 * the registration of plug-ins (pluginregistration.v1), as far as a node and a controller of storage
 * need them.
 *
 * Tables of wire/protobuf_rows.h: the same rows write and read a message, thus tests serve the methods by
 * them.  A driver's answer is bytes from outside; its size is bounded by CSI_MESSAGE_MAX and by the store
 * that it is read into.  Pure. */
#pragma once

#include "runtime/runtime_spec.h"
#include "wire/protobuf_rows.h"

#define CSI_MESSAGE_MAX ((size_t) 1 << 20)
#define CSI_STORE_MAX ((size_t) 4 << 20)

enum csi_method_id {
    CSI_PLUGIN_GET_INFO, /* Of a registration socket. */
    CSI_PLUGIN_NOTIFY,
    CSI_GET_PLUGIN_INFO,
    CSI_GET_PLUGIN_CAPABILITIES,
    CSI_PROBE,
    CSI_CREATE_VOLUME,
    CSI_DELETE_VOLUME,
    CSI_CONTROLLER_PUBLISH,
    CSI_CONTROLLER_UNPUBLISH,
    CSI_CONTROLLER_EXPAND,
    CSI_CONTROLLER_GET_CAPABILITIES,
    CSI_NODE_STAGE,
    CSI_NODE_UNSTAGE,
    CSI_NODE_PUBLISH,
    CSI_NODE_UNPUBLISH,
    CSI_NODE_GET_VOLUME_STATS,
    CSI_NODE_EXPAND,
    CSI_NODE_GET_CAPABILITIES,
    CSI_NODE_GET_INFO,
    CSI_METHODS,
};

struct csi_method {
    const char *path; /* "/csi.v1.Node/NodeGetInfo" */
    const struct pb_shape *request, *response;
};
extern const struct csi_method csi_methods[CSI_METHODS];

/* ---- parts ---- */

/* VolumeCapability.AccessMode.Mode */
enum csi_access_mode {
    CSI_MODE_UNKNOWN = 0,
    CSI_SINGLE_NODE_WRITER = 1,
    CSI_SINGLE_NODE_READER_ONLY = 2,
    CSI_MULTI_NODE_READER_ONLY = 3,
    CSI_MULTI_NODE_SINGLE_WRITER = 4,
    CSI_MULTI_NODE_MULTI_WRITER = 5,
    CSI_SINGLE_NODE_SINGLE_WRITER = 6,
    CSI_SINGLE_NODE_MULTI_WRITER = 7,
};

struct csi_capability {
    bool is_block, is_mount;
    const char *fs_type; /* Of a mount; "": the driver's default. */
    struct runtime_texts flags;
    const char *group; /* The GID that the files get; "": none. */
    int mode;          /* enum csi_access_mode */
};

struct csi_topology {
    struct runtime_pairs segments;
};

/* A number of a list of capabilities, as NodeServiceCapability.RPC.Type. */
struct csi_ability {
    int type;
};
struct csi_abilities {
    const struct csi_ability *v;
    size_t n;
};
/* ControllerServiceCapability.RPC.Type */
enum { CSI_CAN_CREATE_DELETE = 1, CSI_CAN_PUBLISH = 2, CSI_CAN_EXPAND = 9 };
/* NodeServiceCapability.RPC.Type */
enum {
    CSI_NODE_CAN_STAGE = 1,
    CSI_NODE_CAN_STATS = 2,
    CSI_NODE_CAN_EXPAND = 3,
    CSI_NODE_CAN_SINGLE_WRITER = 5,
    CSI_NODE_CAN_GROUP = 6,
};
bool csi_can(const struct csi_abilities *a, int type);

/* ---- registration ---- */

struct csi_registration {
    const char *type, *name, *endpoint;
    struct runtime_texts versions;
};
struct csi_registration_status {
    bool registered;
    const char *error;
};

/* ---- identity ---- */

struct csi_plugin_info {
    const char *name, *version;
};
struct csi_plugin_ability {
    int service; /* 1: it has controller methods; 2: volumes are not reachable from all nodes. */
};
struct csi_plugin_abilities {
    const struct csi_plugin_ability *v;
    size_t n;
};
struct csi_probe {
    bool has_ready, ready; /* Without 'has_ready' it is ready. */
};

/* ---- controller ---- */

struct csi_create_volume {
    const char *name;
    int64_t required_bytes, limit_bytes;
    const struct csi_capability *capabilities;
    size_t n_capabilities;
    struct runtime_pairs parameters, secrets;
    bool has_topology;
    const struct csi_topology *requisite, *preferred;
    size_t n_requisite, n_preferred;
};
struct csi_volume {
    int64_t capacity_bytes;
    const char *id;
    struct runtime_pairs context;
    const struct csi_topology *topology;
    size_t n_topology;
};
struct csi_delete_volume {
    const char *id;
    struct runtime_pairs secrets;
};
struct csi_controller_publish {
    const char *id, *node_id;
    struct csi_capability capability;
    bool readonly;
    struct runtime_pairs secrets, context;
};
struct csi_publish_context {
    struct runtime_pairs context;
};
struct csi_controller_unpublish {
    const char *id, *node_id;
    struct runtime_pairs secrets;
};
struct csi_controller_expand {
    const char *id;
    int64_t required_bytes, limit_bytes;
    struct runtime_pairs secrets;
    struct csi_capability capability;
};
struct csi_expanded {
    int64_t capacity_bytes;
    bool node_expansion_required; /* Of the controller's answer. */
};

/* ---- node ---- */

struct csi_node_stage {
    const char *id;
    struct runtime_pairs publish_context;
    const char *staging_path;
    struct csi_capability capability;
    struct runtime_pairs secrets, context;
};
struct csi_node_unstage {
    const char *id, *staging_path;
};
struct csi_node_publish {
    const char *id;
    struct runtime_pairs publish_context;
    const char *staging_path, *target_path;
    struct csi_capability capability;
    bool readonly;
    struct runtime_pairs secrets, context;
};
struct csi_node_unpublish {
    const char *id, *target_path;
};
struct csi_node_stats {
    const char *id, *path, *staging_path;
};
struct csi_usage {
    int64_t available, total, used;
    int unit; /* 1: bytes; 2: inodes. */
};
struct csi_usages {
    const struct csi_usage *v;
    size_t n;
    bool abnormal;
    const char *message;
};
struct csi_node_expand {
    const char *id, *path;
    int64_t required_bytes, limit_bytes;
    const char *staging_path;
    struct csi_capability capability;
    struct runtime_pairs secrets;
};
struct csi_node_info {
    const char *node_id;
    int64_t max_volumes; /* 0: no limit is known. */
    struct csi_topology topology;
};
