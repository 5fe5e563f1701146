/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/cri/messages.h"

#include "wire/protobuf_shapes.h"

#define PAIRS(number, type, m) LIST(number, &map_shape, type, m.v, m.n)

/* ---- what several messages have ---- */

static const struct pb_shape empty = {0};

/* A map's entry; a KeyValue is read and written alike, but for empty values. */
SHAPE(map_shape, runtime_pair, {1, PB_ROW_TEXT, AT(runtime_pair, key), 0, NULL, PB_ROW_ALWAYS},
      {2, PB_ROW_TEXT, AT(runtime_pair, value), 0, NULL, PB_ROW_ALWAYS});
SHAPE(key_value, runtime_pair, ROW(1, TEXT, runtime_pair, key), ROW(2, TEXT, runtime_pair, value));
SHAPE(text, cri_text, ROW(1, TEXT, cri_text, text));

struct i64 {
    int64_t v;
};
struct u64 {
    uint64_t v;
};
SHAPE(i64_value, i64, ROW(1, I64, i64, v));
SHAPE(u64_value, u64, ROW(1, U64, u64, v));

SHAPE(namespaces, runtime_namespaces, ROW(1, ENUM, runtime_namespaces, network),
      ROW(2, ENUM, runtime_namespaces, pid), ROW(3, ENUM, runtime_namespaces, ipc),
      ROW(4, TEXT_OR_NULL, runtime_namespaces, target_id));
SHAPE(selinux, runtime_selinux, ROW(1, TEXT_OR_NULL, runtime_selinux, user),
      ROW(2, TEXT_OR_NULL, runtime_selinux, role), ROW(3, TEXT_OR_NULL, runtime_selinux, type),
      ROW(4, TEXT_OR_NULL, runtime_selinux, level));
SHAPE(profile, runtime_profile, ROW(1, ENUM, runtime_profile, type),
      ROW(2, TEXT, runtime_profile, localhost));

SHAPE(hugepages, runtime_hugepages, ROW(1, TEXT, runtime_hugepages, size),
      ROW(2, U64, runtime_hugepages, limit));
SHAPE(resources, runtime_resources, ROW(1, I64, runtime_resources, cpu_period),
      ROW(2, I64, runtime_resources, cpu_quota), ROW(3, I64, runtime_resources, cpu_shares),
      ROW(4, I64, runtime_resources, memory_limit), ROW(5, I64, runtime_resources, oom_score_adj),
      LIST(8, &hugepages, runtime_resources, hugepages, n_hugepages),
      PAIRS(9, runtime_resources, unified));

/* ---- PodSandboxConfig ---- */

SHAPE(sandbox_metadata, runtime_sandbox_spec, ROW(1, TEXT, runtime_sandbox_spec, name),
      ROW(2, TEXT, runtime_sandbox_spec, uid), ROW(3, TEXT, runtime_sandbox_spec, namespace),
      ROW(4, U32, runtime_sandbox_spec, attempt));
SHAPE(dns_config, runtime_sandbox_spec, TEXTS(1, runtime_sandbox_spec, dns_servers),
      TEXTS(2, runtime_sandbox_spec, dns_searches), TEXTS(3, runtime_sandbox_spec, dns_options));
SHAPE(port_mapping, runtime_port, ROW(1, ENUM, runtime_port, protocol),
      ROW(2, U16, runtime_port, container_port), ROW(3, U16, runtime_port, host_port),
      ROW(4, TEXT, runtime_port, host_ip));
SHAPE(sandbox_security, runtime_security, PART_ALWAYS(1, &namespaces, runtime_security, namespaces),
      PART(2, &selinux, runtime_security, selinux),
      PART_IF(3, &i64_value, runtime_security, user, has_user),
      ROW(4, BOOL, runtime_security, readonly_rootfs),
      {5, PB_ROW_I64S, AT(runtime_security, groups), AT(runtime_security, n_groups), NULL, 0},
      ROW(6, BOOL, runtime_security, privileged),
      PART_IF(8, &i64_value, runtime_security, group, has_group),
      PART_IF(9, &profile, runtime_security, seccomp, seccomp.given),
      PART_IF(10, &profile, runtime_security, apparmor, apparmor.given));
SHAPE(sandbox_linux, runtime_sandbox_spec, ROW(1, TEXT, runtime_sandbox_spec, cgroup_parent),
      PART_ALWAYS(2, &sandbox_security, runtime_sandbox_spec, security),
      PAIRS(3, runtime_sandbox_spec, sysctls), PART(4, &resources, runtime_sandbox_spec, overhead),
      PART(5, &resources, runtime_sandbox_spec, resources));
SHAPE(sandbox_config, runtime_sandbox_spec, VIEW(1, &sandbox_metadata),
      ROW(2, TEXT, runtime_sandbox_spec, hostname),
      ROW(3, TEXT, runtime_sandbox_spec, log_directory), VIEW(4, &dns_config),
      LIST(5, &port_mapping, runtime_sandbox_spec, ports, n_ports),
      PAIRS(6, runtime_sandbox_spec, labels), PAIRS(7, runtime_sandbox_spec, annotations),
      VIEW_ALWAYS(8, &sandbox_linux));

/* ---- ContainerConfig ---- */

SHAPE(container_metadata, runtime_container_spec, ROW(1, TEXT, runtime_container_spec, name),
      ROW(2, U32, runtime_container_spec, attempt));
SHAPE(container_image, runtime_container_spec, ROW(1, TEXT, runtime_container_spec, image));
SHAPE(mount, runtime_mount, ROW(1, TEXT, runtime_mount, container_path),
      ROW(2, TEXT, runtime_mount, host_path), ROW(3, BOOL, runtime_mount, readonly),
      ROW(4, BOOL, runtime_mount, selinux_relabel), ROW(5, ENUM, runtime_mount, propagation));
SHAPE(device, runtime_device, ROW(1, TEXT, runtime_device, container_path),
      ROW(2, TEXT, runtime_device, host_path), ROW(3, TEXT, runtime_device, permissions));
SHAPE(capabilities, runtime_security, TEXTS(1, runtime_security, add_capabilities),
      TEXTS(2, runtime_security, drop_capabilities));
SHAPE(container_security, runtime_security, VIEW(1, &capabilities),
      ROW(2, BOOL, runtime_security, privileged),
      PART_ALWAYS(3, &namespaces, runtime_security, namespaces),
      PART(4, &selinux, runtime_security, selinux),
      PART_IF(5, &i64_value, runtime_security, user, has_user),
      ROW(6, TEXT_OR_NULL, runtime_security, username),
      ROW(7, BOOL, runtime_security, readonly_rootfs),
      {8, PB_ROW_I64S, AT(runtime_security, groups), AT(runtime_security, n_groups), NULL, 0},
      ROW(11, BOOL, runtime_security, no_new_privs),
      PART_IF(12, &i64_value, runtime_security, group, has_group),
      TEXTS(13, runtime_security, masked_paths), TEXTS(14, runtime_security, readonly_paths),
      PART_IF(15, &profile, runtime_security, seccomp, seccomp.given),
      PART_IF(16, &profile, runtime_security, apparmor, apparmor.given));
SHAPE(container_linux, runtime_container_spec,
      PART_ALWAYS(1, &resources, runtime_container_spec, resources),
      PART_ALWAYS(2, &container_security, runtime_container_spec, security));
SHAPE(container_config, runtime_container_spec, VIEW(1, &container_metadata),
      VIEW(2, &container_image), TEXTS(3, runtime_container_spec, command),
      TEXTS(4, runtime_container_spec, args), ROW(5, TEXT, runtime_container_spec, working_dir),
      LIST(6, &key_value, runtime_container_spec, env.v, env.n),
      LIST(7, &mount, runtime_container_spec, mounts, n_mounts),
      LIST(8, &device, runtime_container_spec, devices, n_devices),
      PAIRS(9, runtime_container_spec, labels), PAIRS(10, runtime_container_spec, annotations),
      ROW(11, TEXT, runtime_container_spec, log_path),
      ROW(12, BOOL, runtime_container_spec, stdin_open),
      ROW(13, BOOL, runtime_container_spec, stdin_once), ROW(14, BOOL, runtime_container_spec, tty),
      VIEW_ALWAYS(15, &container_linux));

/* ---- requests ---- */

SHAPE(run_sandbox, cri_run_sandbox, REF(1, &sandbox_config, cri_run_sandbox, config),
      ROW(2, TEXT, cri_run_sandbox, handler));
SHAPE(sandbox_filter, cri_list, ROW(1, TEXT, cri_list, id), PAIRS(3, cri_list, labels));
SHAPE(container_filter, cri_list, ROW(1, TEXT, cri_list, id), PAIRS(4, cri_list, labels));
SHAPE(list_sandboxes, cri_list, VIEW(1, &sandbox_filter));
SHAPE(list_containers, cri_list, VIEW(1, &container_filter));
SHAPE(create_container, cri_create_container, ROW(1, TEXT, cri_create_container, sandbox_id),
      REF(2, &container_config, cri_create_container, config),
      REF(3, &sandbox_config, cri_create_container, sandbox));
SHAPE(stop_container, cri_stop_container, ROW(1, TEXT, cri_stop_container, id),
      ROW(2, I64, cri_stop_container, timeout_s));
SHAPE(update_resources, cri_update_resources, ROW(1, TEXT, cri_update_resources, id),
      REF(2, &resources, cri_update_resources, resources));
SHAPE(exec_sync, cri_exec_sync, ROW(1, TEXT, cri_exec_sync, id), TEXTS(2, cri_exec_sync, cmd),
      ROW(3, I64, cri_exec_sync, timeout_s));
SHAPE(exec, cri_exec, ROW(1, TEXT, cri_exec, id), TEXTS(2, cri_exec, cmd),
      ROW(3, BOOL, cri_exec, streams.tty), ROW(4, BOOL, cri_exec, streams.in),
      ROW(5, BOOL, cri_exec, streams.out), ROW(6, BOOL, cri_exec, streams.err));
SHAPE(attach, cri_exec, ROW(1, TEXT, cri_exec, id), ROW(2, BOOL, cri_exec, streams.in),
      ROW(3, BOOL, cri_exec, streams.tty), ROW(4, BOOL, cri_exec, streams.out),
      ROW(5, BOOL, cri_exec, streams.err));
SHAPE(port_forward, cri_port_forward, ROW(1, TEXT, cri_port_forward, sandbox_id),
      {2, PB_ROW_I64S, AT(cri_port_forward, ports), AT(cri_port_forward, n_ports), NULL, 0});
SHAPE(image_request, cri_text, VIEW(1, &text));
SHAPE(auth, runtime_auth, ROW(1, TEXT, runtime_auth, username),
      ROW(2, TEXT, runtime_auth, password), ROW(3, TEXT, runtime_auth, auth),
      ROW(4, TEXT, runtime_auth, server_address), ROW(5, TEXT, runtime_auth, identity_token),
      ROW(6, TEXT, runtime_auth, registry_token));
SHAPE(pull_spec, cri_pull_image, ROW(1, TEXT, cri_pull_image, image));
SHAPE(pull_image, cri_pull_image, VIEW(1, &pull_spec), REF(2, &auth, cri_pull_image, auth),
      REF(3, &sandbox_config, cri_pull_image, sandbox));
SHAPE(subscribe, containerd_subscribe, TEXTS(1, containerd_subscribe, filters));

/* ---- answers ---- */

SHAPE(version, cri_version, ROW(1, TEXT, cri_version, version),
      ROW(2, TEXT, cri_version, runtime_name), ROW(3, TEXT, cri_version, runtime_version),
      ROW(4, TEXT, cri_version, runtime_api_version));

SHAPE(condition, cri_condition, ROW(1, TEXT, cri_condition, type),
      ROW(2, BOOL, cri_condition, status), ROW(3, TEXT, cri_condition, reason),
      ROW(4, TEXT, cri_condition, message));
SHAPE(conditions, cri_status, LIST(1, &condition, cri_status, conditions, n_conditions));
SHAPE(status, cri_status, VIEW(1, &conditions));

SHAPE(has_metadata, runtime_sandbox, ROW(1, TEXT, runtime_sandbox, name),
      ROW(2, TEXT, runtime_sandbox, uid), ROW(3, TEXT, runtime_sandbox, namespace),
      ROW(4, U32, runtime_sandbox, attempt));
SHAPE(network_status, runtime_sandbox, ROW(1, TEXT_OR_NULL, runtime_sandbox, ip),
      LIST(2, &text, runtime_sandbox, more_ips.v, more_ips.n));
SHAPE(has_options, runtime_sandbox, ROW(1, ENUM, runtime_sandbox, network));
SHAPE(has_namespaces, runtime_sandbox, VIEW(2, &has_options));
SHAPE(has_linux, runtime_sandbox, VIEW(1, &has_namespaces));
SHAPE(sandbox_item, runtime_sandbox, ROW(1, TEXT, runtime_sandbox, id), VIEW(2, &has_metadata),
      ROW(3, NOT_BOOL, runtime_sandbox, ready), ROW(4, I64, runtime_sandbox, created_ns),
      PAIRS(5, runtime_sandbox, labels), PAIRS(6, runtime_sandbox, annotations));
SHAPE(sandbox_full, runtime_sandbox, ROW(1, TEXT, runtime_sandbox, id), VIEW(2, &has_metadata),
      ROW(3, NOT_BOOL, runtime_sandbox, ready), ROW(4, I64, runtime_sandbox, created_ns),
      VIEW(5, &network_status), VIEW(6, &has_linux), PAIRS(7, runtime_sandbox, labels),
      PAIRS(8, runtime_sandbox, annotations));
SHAPE(sandboxes, cri_sandboxes, LIST(1, &sandbox_item, cri_sandboxes, v, n));
SHAPE(sandbox_status, cri_sandboxes, LIST(1, &sandbox_full, cri_sandboxes, v, n));

SHAPE(is_named, runtime_container, ROW(1, TEXT, runtime_container, name),
      ROW(2, U32, runtime_container, attempt));
SHAPE(is_of_image, runtime_container, ROW(1, TEXT, runtime_container, image));
SHAPE(container_item, runtime_container, ROW(1, TEXT, runtime_container, id),
      ROW(2, TEXT, runtime_container, sandbox_id), VIEW(3, &is_named), VIEW(4, &is_of_image),
      ROW(5, TEXT, runtime_container, image_ref), ROW(6, ENUM, runtime_container, state),
      ROW(7, I64, runtime_container, created_ns), PAIRS(8, runtime_container, labels),
      PAIRS(9, runtime_container, annotations));
SHAPE(container_full, runtime_container, ROW(1, TEXT, runtime_container, id), VIEW(2, &is_named),
      ROW(3, ENUM, runtime_container, state), ROW(4, I64, runtime_container, created_ns),
      ROW(5, I64, runtime_container, started_ns), ROW(6, I64, runtime_container, finished_ns),
      ROW(7, I32, runtime_container, exit_code), VIEW(8, &is_of_image),
      ROW(9, TEXT, runtime_container, image_ref), ROW(10, TEXT, runtime_container, reason),
      ROW(11, TEXT, runtime_container, message), PAIRS(12, runtime_container, labels),
      PAIRS(13, runtime_container, annotations), ROW(15, TEXT, runtime_container, log_path));
SHAPE(containers, cri_containers, LIST(1, &container_item, cri_containers, v, n));
SHAPE(container_status, cri_containers, LIST(1, &container_full, cri_containers, v, n));

SHAPE(exec_result, runtime_exec_result,
      {1, PB_ROW_BYTES, AT(runtime_exec_result, out), AT(runtime_exec_result, out_size), NULL, 0},
      {2, PB_ROW_BYTES, AT(runtime_exec_result, err), AT(runtime_exec_result, err_size), NULL, 0},
      ROW(3, I32, runtime_exec_result, exit_code));

SHAPE(image, runtime_image, ROW(1, TEXT, runtime_image, id), TEXTS(2, runtime_image, tags),
      TEXTS(3, runtime_image, digests), ROW(4, U64, runtime_image, size),
      PART_IF(5, &i64_value, runtime_image, user, has_user), ROW(6, TEXT, runtime_image, username),
      ROW(8, BOOL, runtime_image, pinned));
SHAPE(images, cri_images, LIST(1, &image, cri_images, v, n));

SHAPE(fs_id, runtime_filesystem, ROW(1, TEXT, runtime_filesystem, mountpoint));
SHAPE(filesystem, runtime_filesystem, VIEW(2, &fs_id),
      PART(3, &u64_value, runtime_filesystem, used_bytes),
      PART(4, &u64_value, runtime_filesystem, used_inodes));
SHAPE(filesystems, cri_filesystems, LIST(1, &filesystem, cri_filesystems, v, n));

SHAPE(event_sandbox, cri_event, ROW(1, TEXT, cri_event, sandbox_id));
SHAPE(event, cri_event, ROW(1, TEXT, cri_event, container_id), VIEW(4, &event_sandbox));

SHAPE(any, containerd_envelope, ROW(1, TEXT, containerd_envelope, type),
      {2, PB_ROW_BYTES, AT(containerd_envelope, event), AT(containerd_envelope, event_size), NULL,
       0});
SHAPE(envelope, containerd_envelope, ROW(2, TEXT, containerd_envelope, namespace),
      ROW(3, TEXT, containerd_envelope, topic), VIEW(4, &any));

static const struct pb_row exit_rows[] = {
    ROW(1, TEXT, containerd_exit, container_id),
    ROW(2, TEXT, containerd_exit, exec_id),
};
const struct pb_shape containerd_exit_shape = PB_SHAPE(struct containerd_exit, exit_rows);
SHAPE(deleted_at, containerd_delete, ROW(1, I64, containerd_delete, at_s),
      ROW(2, I64, containerd_delete, at_ns));
static const struct pb_row delete_rows[] = {
    ROW(1, TEXT, containerd_delete, container_id),
    ROW(3, I64, containerd_delete, exit_status),
    VIEW(4, &deleted_at),
};
const struct pb_shape containerd_delete_shape = PB_SHAPE(struct containerd_delete, delete_rows);
const struct pb_shape containerd_id_shape = PB_SHAPE(struct cri_text, text_rows);

/* ---- methods ---- */

#define RUNTIME(m) "/runtime.v1.RuntimeService/" m
#define IMAGE(m) "/runtime.v1.ImageService/" m

const struct cri_method cri_methods[CRI_METHODS] = {
    [CRI_VERSION] = {RUNTIME("Version"), &text, &version},
    [CRI_STATUS] = {RUNTIME("Status"), &empty, &status},
    [CRI_RUN_SANDBOX] = {RUNTIME("RunPodSandbox"), &run_sandbox, &text},
    [CRI_STOP_SANDBOX] = {RUNTIME("StopPodSandbox"), &text, &empty},
    [CRI_REMOVE_SANDBOX] = {RUNTIME("RemovePodSandbox"), &text, &empty},
    [CRI_SANDBOX_STATUS] = {RUNTIME("PodSandboxStatus"), &text, &sandbox_status},
    [CRI_LIST_SANDBOXES] = {RUNTIME("ListPodSandbox"), &list_sandboxes, &sandboxes},
    [CRI_CREATE_CONTAINER] = {RUNTIME("CreateContainer"), &create_container, &text},
    [CRI_START_CONTAINER] = {RUNTIME("StartContainer"), &text, &empty},
    [CRI_STOP_CONTAINER] = {RUNTIME("StopContainer"), &stop_container, &empty},
    [CRI_REMOVE_CONTAINER] = {RUNTIME("RemoveContainer"), &text, &empty},
    [CRI_CONTAINER_STATUS] = {RUNTIME("ContainerStatus"), &text, &container_status},
    [CRI_LIST_CONTAINERS] = {RUNTIME("ListContainers"), &list_containers, &containers},
    [CRI_UPDATE_RESOURCES] = {RUNTIME("UpdateContainerResources"), &update_resources, &empty},
    [CRI_REOPEN_LOG] = {RUNTIME("ReopenContainerLog"), &text, &empty},
    [CRI_EXEC_SYNC] = {RUNTIME("ExecSync"), &exec_sync, &exec_result},
    [CRI_EXEC] = {RUNTIME("Exec"), &exec, &text},
    [CRI_ATTACH] = {RUNTIME("Attach"), &attach, &text},
    [CRI_PORT_FORWARD] = {RUNTIME("PortForward"), &port_forward, &text},
    [CRI_LIST_IMAGES] = {IMAGE("ListImages"), &empty, &images},
    [CRI_IMAGE_STATUS] = {IMAGE("ImageStatus"), &image_request, &images},
    [CRI_PULL_IMAGE] = {IMAGE("PullImage"), &pull_image, &text},
    [CRI_REMOVE_IMAGE] = {IMAGE("RemoveImage"), &image_request, &empty},
    [CRI_IMAGE_FS_INFO] = {IMAGE("ImageFsInfo"), &empty, &filesystems},
    [CRI_EVENTS] = {RUNTIME("GetContainerEvents"), &empty, &event},
    [CONTAINERD_EVENTS] = {"/containerd.services.events.v1.Events/Subscribe", &subscribe,
                           &envelope},
};
