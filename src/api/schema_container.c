/* SPDX-License-Identifier: Apache-2.0 */
/* Schema of a pod's containers (core v1). */
#include "api/schema_core.h"

#define CORE "io.k8s.api.core.v1."

static const struct api_schema protocol = {.type = API_STRING, .key_default = "TCP"};

static const struct api_field config_map_key_fields[] = {
    {"key", &api_schema_string, "Key to take", true},
    {"name", &api_schema_string, "Name of the config map"},
    {"optional", &api_schema_boolean, "The config map or its key may be missing."},
};
static const struct api_schema config_map_key = {
    .type = API_OBJECT,
    .definition = CORE "ConfigMapKeySelector",
    .description = "A key of a config map",
    .fields = config_map_key_fields,
    .n_fields = ARRAY_SIZE(config_map_key_fields),
    .atomic = true,
};

static const struct api_field secret_key_fields[] = {
    {"key", &api_schema_string, "Key to take", true},
    {"name", &api_schema_string, "Name of the secret"},
    {"optional", &api_schema_boolean, "The secret or its key may be missing."},
};
static const struct api_schema secret_key = {
    .type = API_OBJECT,
    .definition = CORE "SecretKeySelector",
    .description = "A key of a secret",
    .fields = secret_key_fields,
    .n_fields = ARRAY_SIZE(secret_key_fields),
    .atomic = true,
};

static const struct api_field env_source_fields[] = {
    {"configMapKeyRef", &config_map_key, "A key of a config map"},
    {"fieldRef", &api_schema_object_field, "A field of the pod"},
    {"resourceFieldRef", &api_schema_resource_field, "Requests or limits of a container"},
    {"secretKeyRef", &secret_key, "A key of a secret"},
};
static const struct api_schema env_source =
    API_OBJECT_OF(env_source_fields, CORE "EnvVarSource", "Where a variable's value comes from");

static const struct api_field env_var_fields[] = {
    {"name", &api_schema_string, "Name of the variable", true},
    {"value", &api_schema_string, "Its value; $(NAME) stands for another variable."},
    {"valueFrom", &env_source, "Where the value comes from"},
};
static const struct api_schema env_var =
    API_OBJECT_OF(env_var_fields, CORE "EnvVar", "A variable of the environment");

static const struct api_field config_map_env_fields[] = {
    {"name", &api_schema_string, "Name of the config map"},
    {"optional", &api_schema_boolean, "The config map may be missing."},
};
static const struct api_schema config_map_env = API_OBJECT_OF(
    config_map_env_fields, CORE "ConfigMapEnvSource", "A config map whose keys become variables");

static const struct api_field secret_env_fields[] = {
    {"name", &api_schema_string, "Name of the secret"},
    {"optional", &api_schema_boolean, "The secret may be missing."},
};
static const struct api_schema secret_env = API_OBJECT_OF(secret_env_fields, CORE "SecretEnvSource",
                                                          "A secret whose keys become variables");

static const struct api_field env_from_fields[] = {
    {"configMapRef", &config_map_env, "The config map"},
    {"prefix", &api_schema_string, "Put in front of each name"},
    {"secretRef", &secret_env, "The secret"},
};
static const struct api_schema env_from =
    API_OBJECT_OF(env_from_fields, CORE "EnvFromSource", "Variables by the keys of an object");

static const struct api_field container_port_fields[] = {
    {"containerPort", &api_schema_int32, "Number of the port, 1 to 65535", true},
    {"hostIP", &api_schema_string, "Address of the node to bind to"},
    {"hostPort", &api_schema_int32, "Port of the node"},
    {"name", &api_schema_string, "Name of the port, unique within the pod"},
    {"protocol", &protocol, "UDP, TCP or SCTP; TCP by default"},
};
static const struct api_schema container_port = API_OBJECT_OF(
    container_port_fields, CORE "ContainerPort", "A port that the container listens on");

static const struct api_field exec_action_fields[] = {
    {"command", &api_schema_string_list, "The command and its arguments; no shell runs it."},
};
static const struct api_schema exec_action =
    API_OBJECT_OF(exec_action_fields, CORE "ExecAction", "A command in the container");

static const struct api_field http_header_fields[] = {
    {"name", &api_schema_string, "Name of the header", true},
    {"value", &api_schema_string, "Its value", true},
};
static const struct api_schema http_header =
    API_OBJECT_OF(http_header_fields, CORE "HTTPHeader", "A header of a request");

static const struct api_field http_action_fields[] = {
    {"host", &api_schema_string, "Host to connect to; the pod by default"},
    {"httpHeaders", API_LIST_OF(&http_header), "Headers to send"},
    {"path", &api_schema_string, "Path to ask for"},
    {"port", &api_schema_int_or_string, "Number or name of the port", true},
    {"scheme", &api_schema_string, "HTTP or HTTPS; HTTP by default"},
};
static const struct api_schema http_action =
    API_OBJECT_OF(http_action_fields, CORE "HTTPGetAction", "A request by HTTP");

static const struct api_field tcp_action_fields[] = {
    {"host", &api_schema_string, "Host to connect to; the pod by default"},
    {"port", &api_schema_int_or_string, "Number or name of the port", true},
};
static const struct api_schema tcp_action =
    API_OBJECT_OF(tcp_action_fields, CORE "TCPSocketAction", "A connection by TCP");

static const struct api_field grpc_action_fields[] = {
    {"port", &api_schema_int32, "Number of the port", true},
    {"service", &api_schema_string, "Service to ask about"},
};
static const struct api_schema grpc_action =
    API_OBJECT_OF(grpc_action_fields, CORE "GRPCAction", "A health check by gRPC");

static const struct api_field sleep_action_fields[] = {
    {"seconds", &api_schema_int64, "Its length in seconds", true},
};
static const struct api_schema sleep_action =
    API_OBJECT_OF(sleep_action_fields, CORE "SleepAction", "A pause");

static const struct api_field lifecycle_handler_fields[] = {
    {"exec", &exec_action, "A command in the container"},
    {"httpGet", &http_action, "A request by HTTP"},
    {"sleep", &sleep_action, "A pause"},
    {"tcpSocket", &tcp_action, "Not used; kept for old objects"},
};
static const struct api_schema lifecycle_handler =
    API_OBJECT_OF(lifecycle_handler_fields, CORE "LifecycleHandler",
                  "What is done at a turn of a container's life");

static const struct api_field lifecycle_fields[] = {
    {"postStart", &lifecycle_handler, "After it was created"},
    {"preStop", &lifecycle_handler, "Before it is ended"},
    {"stopSignal", &api_schema_string, "Signal that stops it"},
};
static const struct api_schema lifecycle = API_OBJECT_OF(
    lifecycle_fields, CORE "Lifecycle", "What is done when a container started or is to stop");

static const struct api_field probe_fields[] = {
    {"exec", &exec_action, "A command in the container"},
    {"failureThreshold", &api_schema_int32, "Failures in a row that count; 3 by default"},
    {"grpc", &grpc_action, "A health check by gRPC"},
    {"httpGet", &http_action, "A request by HTTP"},
    {"initialDelaySeconds", &api_schema_int32, "Seconds after the start before the first probe"},
    {"periodSeconds", &api_schema_int32, "Seconds between probes; 10 by default"},
    {"successThreshold", &api_schema_int32, "Successes in a row that count; 1 by default"},
    {"tcpSocket", &tcp_action, "A connection by TCP"},
    {"terminationGracePeriodSeconds", &api_schema_int64,
     "Seconds that a failed container is given to end"},
    {"timeoutSeconds", &api_schema_int32, "Seconds until a probe counts as failed; 1 by default"},
};
static const struct api_schema probe =
    API_OBJECT_OF(probe_fields, CORE "Probe", "How a container is asked for its health");

static const struct api_field resource_claim_fields[] = {
    {"name", &api_schema_string, "Name of one of the pod's resource claims", true},
    {"request", &api_schema_string, "Request of the claim"},
};
static const struct api_schema resource_claim = API_OBJECT_OF(
    resource_claim_fields, CORE "ResourceClaim", "A claim of the pod that the container uses");

static const struct api_field resources_fields[] = {
    {"claims", API_MAP_LIST(&resource_claim, NULL, "name"),
     "Resource claims that the container uses"},
    {"limits", &api_schema_quantity_map, "Most that it may use"},
    {"requests", &api_schema_quantity_map, "Least that it needs"},
};
const struct api_schema api_schema_resources = API_OBJECT_OF(
    resources_fields, CORE "ResourceRequirements", "Compute resources of a container");

static const struct api_field resize_policy_fields[] = {
    {"resourceName", &api_schema_string, "cpu or memory", true},
    {"restartPolicy", &api_schema_string, "NotRequired or RestartContainer", true},
};
static const struct api_schema resize_policy =
    API_OBJECT_OF(resize_policy_fields, CORE "ContainerResizePolicy",
                  "What a change of a resource does to the container");

static const struct api_field capabilities_fields[] = {
    {"add", &api_schema_string_list, "Capabilities to add"},
    {"drop", &api_schema_string_list, "Capabilities to drop"},
};
static const struct api_schema capabilities =
    API_OBJECT_OF(capabilities_fields, CORE "Capabilities", "Privileges added and dropped");

static const struct api_field selinux_options_fields[] = {
    {"level", &api_schema_string, "Level label"},
    {"role", &api_schema_string, "Role label"},
    {"type", &api_schema_string, "Type label"},
    {"user", &api_schema_string, "User label"},
};
static const struct api_schema selinux_options =
    API_OBJECT_OF(selinux_options_fields, CORE "SELinuxOptions", "SELinux labels");

static const struct api_field seccomp_profile_fields[] = {
    {"localhostProfile", &api_schema_string, "Path of a profile on the node"},
    {"type", &api_schema_string, "Localhost, RuntimeDefault or Unconfined", true},
};
static const struct api_schema seccomp_profile =
    API_OBJECT_OF(seccomp_profile_fields, CORE "SeccompProfile", "Which system calls are allowed");

static const struct api_field app_armor_profile_fields[] = {
    {"localhostProfile", &api_schema_string, "Name of a profile on the node"},
    {"type", &api_schema_string, "Localhost, RuntimeDefault or Unconfined", true},
};
static const struct api_schema app_armor_profile =
    API_OBJECT_OF(app_armor_profile_fields, CORE "AppArmorProfile", "AppArmor's profile");

static const struct api_field windows_options_fields[] = {
    {"gmsaCredentialSpec", &api_schema_string, "Contents of the GMSA credential"},
    {"gmsaCredentialSpecName", &api_schema_string, "Name of the GMSA credential"},
    {"hostProcess", &api_schema_boolean, "Run in the host's namespaces."},
    {"runAsUserName", &api_schema_string, "User who runs the process"},
};
static const struct api_schema windows_options = API_OBJECT_OF(
    windows_options_fields, CORE "WindowsSecurityContextOptions", "Settings for Windows");

static const struct api_field container_security_fields[] = {
    {"allowPrivilegeEscalation", &api_schema_boolean,
     "A process may gain more privileges than its parent."},
    {"appArmorProfile", &app_armor_profile, "AppArmor's profile"},
    {"capabilities", &capabilities, "Privileges added and dropped"},
    {"privileged", &api_schema_boolean, "Run with all privileges of the host."},
    {"procMount", &api_schema_string, "Kind of /proc: Default or Unmasked"},
    {"readOnlyRootFilesystem", &api_schema_boolean, "The root filesystem is read-only."},
    {"runAsGroup", &api_schema_int64, "Group of the process"},
    {"runAsNonRoot", &api_schema_boolean, "Refuse to run as user 0."},
    {"runAsUser", &api_schema_int64, "User of the process"},
    {"seLinuxOptions", &selinux_options, "SELinux labels"},
    {"seccompProfile", &seccomp_profile, "Which system calls are allowed"},
    {"windowsOptions", &windows_options, "Settings for Windows"},
};
static const struct api_schema container_security = API_OBJECT_OF(
    container_security_fields, CORE "SecurityContext", "Security settings of a container");

static const struct api_field sysctl_fields[] = {
    {"name", &api_schema_string, "Name of the parameter", true},
    {"value", &api_schema_string, "Its value", true},
};
static const struct api_schema sysctl =
    API_OBJECT_OF(sysctl_fields, CORE "Sysctl", "A kernel parameter");

static const struct api_field pod_security_fields[] = {
    {"appArmorProfile", &app_armor_profile, "AppArmor's profile"},
    {"fsGroup", &api_schema_int64, "Group that owns the volumes"},
    {"fsGroupChangePolicy", &api_schema_string,
     "When volumes are given to it: Always or OnRootMismatch"},
    {"runAsGroup", &api_schema_int64, "Group of the processes"},
    {"runAsNonRoot", &api_schema_boolean, "Refuse to run as user 0."},
    {"runAsUser", &api_schema_int64, "User of the processes"},
    {"seLinuxChangePolicy", &api_schema_string,
     "How volumes are labelled: MountOption or Recursive"},
    {"seLinuxOptions", &selinux_options, "SELinux labels"},
    {"seccompProfile", &seccomp_profile, "Which system calls are allowed"},
    {"supplementalGroups", API_LIST_OF(&api_schema_int64), "More groups of the processes"},
    {"supplementalGroupsPolicy", &api_schema_string,
     "Merge or Strict: whether the image's groups count"},
    {"sysctls", API_LIST_OF(&sysctl), "Kernel parameters of the pod's namespaces"},
    {"windowsOptions", &windows_options, "Settings for Windows"},
};
const struct api_schema api_schema_pod_security = API_OBJECT_OF(
    pod_security_fields, CORE "PodSecurityContext", "Security settings of all containers of a pod");

static const struct api_field volume_device_fields[] = {
    {"devicePath", &api_schema_string, "Path in the container", true},
    {"name", &api_schema_string, "Name of the claim's volume", true},
};
static const struct api_schema volume_device =
    API_OBJECT_OF(volume_device_fields, CORE "VolumeDevice", "A block device in the container");

static const struct api_field volume_mount_fields[] = {
    {"mountPath", &api_schema_string, "Path in the container", true},
    {"mountPropagation", &api_schema_string, "None, HostToContainer or Bidirectional"},
    {"name", &api_schema_string, "Name of the volume", true},
    {"readOnly", &api_schema_boolean, "Mount it read-only."},
    {"recursiveReadOnly", &api_schema_string,
     "Disabled, IfPossible or Enabled: mounts below are read-only, too."},
    {"subPath", &api_schema_string, "Path within the volume"},
    {"subPathExpr", &api_schema_string, "Path within the volume, with variables"},
};
static const struct api_schema volume_mount =
    API_OBJECT_OF(volume_mount_fields, CORE "VolumeMount", "A volume in the container");

static const struct api_field container_fields[] = {
    {"args", &api_schema_string_list, "Arguments of the command; the image's by default"},
    {"command", &api_schema_string_list, "What is run; the image's entry point by default"},
    {"env", API_MAP_LIST(&env_var, "name", "name"), "Variables of the environment"},
    {"envFrom", API_LIST_OF(&env_from), "Objects whose keys become variables"},
    {"image", &api_schema_string, "Name of the image"},
    {"imagePullPolicy", &api_schema_string, "Always, Never or IfNotPresent"},
    {"lifecycle", &lifecycle, "What is done when it started or is to stop"},
    {"livenessProbe", &probe, "When it fails, the container is started anew."},
    {"name", &api_schema_string, "Name of the container, a DNS label unique within the pod", true},
    {"ports", API_MAP_LIST(&container_port, "containerPort", "containerPort", "protocol"),
     "Ports that the container listens on"},
    {"readinessProbe", &probe, "While it fails, no service sends traffic."},
    {"resizePolicy", API_LIST_OF(&resize_policy), "What a change of its resources does"},
    {"resources", &api_schema_resources, "Compute resources that it needs and may use"},
    {"restartPolicy", &api_schema_string, "Always, for an init container that keeps running"},
    {"securityContext", &container_security, "Security settings"},
    {"startupProbe", &probe, "Until it succeeds, the others are not asked."},
    {"stdin", &api_schema_boolean, "Keep standard input open."},
    {"stdinOnce", &api_schema_boolean, "Close standard input after the first client."},
    {"terminationMessagePath", &api_schema_string,
     "File with the last message; /dev/termination-log by default"},
    {"terminationMessagePolicy", &api_schema_string, "File or FallbackToLogsOnError"},
    {"tty", &api_schema_boolean, "Give it a terminal."},
    {"volumeDevices", API_MAP_LIST(&volume_device, "devicePath", "devicePath"),
     "Block devices that it uses"},
    {"volumeMounts", API_MAP_LIST(&volume_mount, "mountPath", "mountPath"),
     "Volumes that it mounts"},
    {"workingDir", &api_schema_string, "Directory that it starts in"},
};
const struct api_schema api_schema_container =
    API_OBJECT_OF(container_fields, CORE "Container", "A program of the pod, run from an image");

static const struct api_field ephemeral_container_fields[] = {
    {"args", &api_schema_string_list, "Arguments of the command; the image's by default"},
    {"command", &api_schema_string_list, "What is run; the image's entry point by default"},
    {"env", API_MAP_LIST(&env_var, "name", "name"), "Variables of the environment"},
    {"envFrom", API_LIST_OF(&env_from), "Objects whose keys become variables"},
    {"image", &api_schema_string, "Name of the image"},
    {"imagePullPolicy", &api_schema_string, "Always, Never or IfNotPresent"},
    {"lifecycle", &lifecycle, "What is done when it started or is to stop"},
    {"livenessProbe", &probe, "When it fails, the container is started anew."},
    {"name", &api_schema_string, "Name of the container, a DNS label unique within the pod", true},
    {"ports", API_MAP_LIST(&container_port, "containerPort", "containerPort", "protocol"),
     "Ports that the container listens on"},
    {"readinessProbe", &probe, "While it fails, no service sends traffic."},
    {"resizePolicy", API_LIST_OF(&resize_policy), "What a change of its resources does"},
    {"resources", &api_schema_resources, "Compute resources that it needs and may use"},
    {"restartPolicy", &api_schema_string, "Always, for an init container that keeps running"},
    {"securityContext", &container_security, "Security settings"},
    {"startupProbe", &probe, "Until it succeeds, the others are not asked."},
    {"stdin", &api_schema_boolean, "Keep standard input open."},
    {"stdinOnce", &api_schema_boolean, "Close standard input after the first client."},
    {"targetContainerName", &api_schema_string, "Container whose namespaces it shares"},
    {"terminationMessagePath", &api_schema_string,
     "File with the last message; /dev/termination-log by default"},
    {"terminationMessagePolicy", &api_schema_string, "File or FallbackToLogsOnError"},
    {"tty", &api_schema_boolean, "Give it a terminal."},
    {"volumeDevices", API_MAP_LIST(&volume_device, "devicePath", "devicePath"),
     "Block devices that it uses"},
    {"volumeMounts", API_MAP_LIST(&volume_mount, "mountPath", "mountPath"),
     "Volumes that it mounts"},
    {"workingDir", &api_schema_string, "Directory that it starts in"},
};
const struct api_schema api_schema_ephemeral_container =
    API_OBJECT_OF(ephemeral_container_fields, CORE "EphemeralContainer",
                  "A container added to a running pod, to look into it");
