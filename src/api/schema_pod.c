/* SPDX-License-Identifier: Apache-2.0 */
/* Schema of pods (core v1). */
#include "api/schema_core.h"

#define CORE "io.k8s.api.core.v1."

static const struct api_schema node_labels = {
    .type = API_OBJECT, .others = &api_schema_string, .atomic = true};

static const struct api_field selector_requirement_fields[] = {
    {"key", &api_schema_string, "Label or field of the node", true},
    {"operator", &api_schema_string, "In, NotIn, Exists, DoesNotExist, Gt or Lt", true},
    {"values", &api_schema_string_list, "Values of the operator"},
};
static const struct api_schema selector_requirement = API_OBJECT_OF(
    selector_requirement_fields, CORE "NodeSelectorRequirement", "A key, an operator and values");

static const struct api_field selector_term_fields[] = {
    {"matchExpressions", API_LIST_OF(&selector_requirement), "Requirements on labels"},
    {"matchFields", API_LIST_OF(&selector_requirement), "Requirements on fields"},
};
static const struct api_schema selector_term = {
    .type = API_OBJECT,
    .definition = CORE "NodeSelectorTerm",
    .description = "Requirements, all of which must hold",
    .fields = selector_term_fields,
    .n_fields = ARRAY_SIZE(selector_term_fields),
    .atomic = true,
};

static const struct api_field node_selector_fields[] = {
    {"nodeSelectorTerms", API_LIST_OF(&selector_term), "The terms", true},
};
static const struct api_schema node_selector = {
    .type = API_OBJECT,
    .definition = CORE "NodeSelector",
    .description = "Terms, one of which must hold",
    .fields = node_selector_fields,
    .n_fields = ARRAY_SIZE(node_selector_fields),
    .atomic = true,
};

static const struct api_field preferred_term_fields[] = {
    {"preference", &selector_term, "What is wished", true},
    {"weight", &api_schema_int32, "1 to 100", true},
};
static const struct api_schema preferred_term =
    API_OBJECT_OF(preferred_term_fields, CORE "PreferredSchedulingTerm", "A wish with its weight");

static const struct api_field node_affinity_fields[] = {
    {"preferredDuringSchedulingIgnoredDuringExecution", API_LIST_OF(&preferred_term), "Wishes"},
    {"requiredDuringSchedulingIgnoredDuringExecution", &node_selector, "Demands"},
};
static const struct api_schema node_affinity = API_OBJECT_OF(
    node_affinity_fields, CORE "NodeAffinity", "Which nodes the pod may or should run on");

static const struct api_field affinity_term_fields[] = {
    {"labelSelector", &api_schema_label_selector, "Pods that count"},
    {"matchLabelKeys", &api_schema_string_list, "Labels whose values must be the pod's"},
    {"mismatchLabelKeys", &api_schema_string_list, "Labels whose values must not be the pod's"},
    {"namespaceSelector", &api_schema_label_selector, "Namespaces that count"},
    {"namespaces", &api_schema_string_list, "Namespaces that count, by name"},
    {"topologyKey", &api_schema_string, "Label of nodes whose equal values mean near", true},
};
static const struct api_schema affinity_term =
    API_OBJECT_OF(affinity_term_fields, CORE "PodAffinityTerm", "Pods, and what is near them");

static const struct api_field weighted_term_fields[] = {
    {"podAffinityTerm", &affinity_term, "What is wished", true},
    {"weight", &api_schema_int32, "1 to 100", true},
};
static const struct api_schema weighted_term =
    API_OBJECT_OF(weighted_term_fields, CORE "WeightedPodAffinityTerm", "A wish with its weight");

static const struct api_field pod_affinity_fields[] = {
    {"preferredDuringSchedulingIgnoredDuringExecution", API_LIST_OF(&weighted_term), "Wishes"},
    {"requiredDuringSchedulingIgnoredDuringExecution", API_LIST_OF(&affinity_term), "Demands"},
};
static const struct api_schema pod_affinity =
    API_OBJECT_OF(pod_affinity_fields, CORE "PodAffinity", "Pods that it may or should be near");

static const struct api_field pod_anti_affinity_fields[] = {
    {"preferredDuringSchedulingIgnoredDuringExecution", API_LIST_OF(&weighted_term), "Wishes"},
    {"requiredDuringSchedulingIgnoredDuringExecution", API_LIST_OF(&affinity_term), "Demands"},
};
static const struct api_schema pod_anti_affinity = API_OBJECT_OF(
    pod_anti_affinity_fields, CORE "PodAntiAffinity", "Pods that it must or should not be near");

static const struct api_field affinity_fields[] = {
    {"nodeAffinity", &node_affinity, "Which nodes"},
    {"podAffinity", &pod_affinity, "Near which pods"},
    {"podAntiAffinity", &pod_anti_affinity, "Not near which pods"},
};
static const struct api_schema affinity =
    API_OBJECT_OF(affinity_fields, CORE "Affinity", "Where the pod may or should run");

static const struct api_field dns_option_fields[] = {
    {"name", &api_schema_string, "Name of the option"},
    {"value", &api_schema_string, "Its value"},
};
static const struct api_schema dns_option =
    API_OBJECT_OF(dns_option_fields, CORE "PodDNSConfigOption", "An option of the resolver");

static const struct api_field dns_config_fields[] = {
    {"nameservers", &api_schema_string_list, "Addresses of name servers"},
    {"options", API_LIST_OF(&dns_option), "Options of the resolver"},
    {"searches", &api_schema_string_list, "Domains to search"},
};
static const struct api_schema dns_config =
    API_OBJECT_OF(dns_config_fields, CORE "PodDNSConfig", "Settings of the resolver");

static const struct api_field host_alias_fields[] = {
    {"hostnames", &api_schema_string_list, "Names of the address"},
    {"ip", &api_schema_string, "The address", true},
};
static const struct api_schema host_alias =
    API_OBJECT_OF(host_alias_fields, CORE "HostAlias", "A line of the hosts file");

static const struct api_field pod_os_fields[] = {
    {"name", &api_schema_string, "linux or windows", true},
};
static const struct api_schema pod_os =
    API_OBJECT_OF(pod_os_fields, CORE "PodOS", "Operating system of the containers");

static const struct api_field readiness_gate_fields[] = {
    {"conditionType", &api_schema_string, "Type of the condition", true},
};
static const struct api_schema readiness_gate = API_OBJECT_OF(
    readiness_gate_fields, CORE "PodReadinessGate", "A condition that readiness depends on");

static const struct api_field pod_claim_fields[] = {
    {"name", &api_schema_string, "Name within the pod", true},
    {"resourceClaimName", &api_schema_string, "Name of the claim"},
    {"resourceClaimTemplateName", &api_schema_string, "Name of the template of the claim"},
};
static const struct api_schema pod_claim =
    API_OBJECT_OF(pod_claim_fields, CORE "PodResourceClaim", "A resource claim of the pod");

static const struct api_field scheduling_gate_fields[] = {
    {"name", &api_schema_string, "Name of the gate", true},
};
static const struct api_schema scheduling_gate =
    API_OBJECT_OF(scheduling_gate_fields, CORE "PodSchedulingGate",
                  "What must be removed before the pod is scheduled");

static const struct api_field toleration_fields[] = {
    {"effect", &api_schema_string, "NoSchedule, PreferNoSchedule or NoExecute; all when empty"},
    {"key", &api_schema_string, "Key of the taint; all when empty"},
    {"operator", &api_schema_string, "Exists or Equal; Equal by default"},
    {"tolerationSeconds", &api_schema_int64,
     "How long a NoExecute taint is borne; for ever by default"},
    {"value", &api_schema_string, "Value of the taint"},
};
static const struct api_schema toleration =
    API_OBJECT_OF(toleration_fields, CORE "Toleration", "A taint that the pod bears");

static const struct api_field spread_fields[] = {
    {"labelSelector", &api_schema_label_selector, "Pods that count"},
    {"matchLabelKeys", &api_schema_string_list, "Labels whose values must be the pod's"},
    {"maxSkew", &api_schema_int32, "How uneven it may be", true},
    {"minDomains", &api_schema_int32, "Least number of domains"},
    {"nodeAffinityPolicy", &api_schema_string, "Honor or Ignore"},
    {"nodeTaintsPolicy", &api_schema_string, "Honor or Ignore"},
    {"topologyKey", &api_schema_string, "Label of nodes whose values are the domains", true},
    {"whenUnsatisfiable", &api_schema_string, "DoNotSchedule or ScheduleAnyway", true},
};
static const struct api_schema spread = API_OBJECT_OF(
    spread_fields, CORE "TopologySpreadConstraint", "How pods spread over a topology");

static const struct api_schema pod_claims = {
    .type = API_ARRAY,
    .items = &pod_claim,
    .list_type = API_LIST_MAP,
    .keys = (const char *const[]){"name", NULL},
    .patch_key = "name",
    .retain_keys = true,
};
static const struct api_schema pod_volumes = {
    .type = API_ARRAY,
    .items = &api_schema_volume,
    .list_type = API_LIST_MAP,
    .keys = (const char *const[]){"name", NULL},
    .patch_key = "name",
    .retain_keys = true,
};

static const struct api_field pod_spec_fields[] = {
    {"activeDeadlineSeconds", &api_schema_int64, "Seconds after which it is ended"},
    {"affinity", &affinity, "Where it may or should run"},
    {"automountServiceAccountToken", &api_schema_boolean, "Mount a token of the service account."},
    {"containers", API_MAP_LIST(&api_schema_container, "name", "name"),
     "Programs of the pod. Cannot be added or removed."},
    {"dnsConfig", &dns_config, "Settings of the resolver"},
    {"dnsPolicy", &api_schema_string,
     "ClusterFirstWithHostNet, ClusterFirst, Default or None; ClusterFirst by default"},
    {"enableServiceLinks", &api_schema_boolean, "Tell services by environment variables."},
    {"ephemeralContainers", API_MAP_LIST(&api_schema_ephemeral_container, "name", "name"),
     "Containers added to look into it"},
    {"hostAliases", API_MAP_LIST(&host_alias, "ip", "ip"), "Lines of the hosts file"},
    {"hostIPC", &api_schema_boolean, "Use the node's IPC namespace."},
    {"hostNetwork", &api_schema_boolean, "Use the node's network."},
    {"hostPID", &api_schema_boolean, "Use the node's PID namespace."},
    {"hostUsers", &api_schema_boolean, "Use the node's user namespace."},
    {"hostname", &api_schema_string, "Name of the host; the pod's by default"},
    {"imagePullSecrets", API_MAP_LIST(&api_schema_local_ref, "name", "name"),
     "Secrets for pulling images"},
    {"initContainers", API_MAP_LIST(&api_schema_container, "name", "name"),
     "Containers that are run one by one before the others"},
    {"nodeName", &api_schema_string, "Node that it is bound to"},
    {"nodeSelector", &node_labels, "Labels that its node must have"},
    {"os", &pod_os, "Operating system of the containers"},
    {"overhead", &api_schema_quantity_map, "Resources that the runtime itself takes"},
    {"preemptionPolicy", &api_schema_string, "Never or PreemptLowerPriority"},
    {"priority", &api_schema_int32, "Its priority; more is more important."},
    {"priorityClassName", &api_schema_string, "Name of the priority class"},
    {"readinessGates", API_LIST_OF(&readiness_gate), "Conditions that readiness depends on"},
    {"resourceClaims", &pod_claims, "Resource claims of the pod"},
    {"resources", &api_schema_resources, "Resources of the pod as a whole"},
    {"restartPolicy", &api_schema_string, "Always, OnFailure or Never; Always by default"},
    {"runtimeClassName", &api_schema_string, "Name of the runtime class"},
    {"schedulerName", &api_schema_string, "Who schedules it"},
    {"schedulingGates", API_MAP_LIST(&scheduling_gate, "name", "name"),
     "What must be removed before it is scheduled"},
    {"securityContext", &api_schema_pod_security, "Security settings of all containers"},
    {"serviceAccount", &api_schema_string, "Old name of serviceAccountName"},
    {"serviceAccountName", &api_schema_string, "Service account it runs as"},
    {"setHostnameAsFQDN", &api_schema_boolean, "The host's name is the full name."},
    {"shareProcessNamespace", &api_schema_boolean, "Containers see each other's processes."},
    {"subdomain", &api_schema_string, "Subdomain of the host's full name"},
    {"terminationGracePeriodSeconds", &api_schema_int64,
     "Seconds that it is given to end; 30 by default"},
    {"tolerations", API_LIST_OF(&toleration), "Taints that it bears"},
    {"topologySpreadConstraints",
     API_MAP_LIST(&spread, "topologyKey", "topologyKey", "whenUnsatisfiable"),
     "How pods spread over a topology"},
    {"volumes", &pod_volumes, "Volumes that containers can mount"},
};
const struct api_schema api_schema_pod_spec =
    API_OBJECT_OF(pod_spec_fields, CORE "PodSpec", "What a pod is to be");

static const struct api_field pod_condition_fields[] = {
    {"lastProbeTime", &api_schema_time, "When it was last looked at"},
    {"lastTransitionTime", &api_schema_time, "When the status last changed"},
    {"message", &api_schema_string, "Details for people"},
    {"observedGeneration", &api_schema_int64, "Generation that the condition was made from"},
    {"reason", &api_schema_string, "Why it last changed, in CamelCase"},
    {"status", &api_schema_string, "True, False or Unknown", true},
    {"type", &api_schema_string, "PodScheduled, Ready, Initialized, ContainersReady, ...", true},
};
static const struct api_schema pod_condition =
    API_OBJECT_OF(pod_condition_fields, CORE "PodCondition", "One aspect of a pod's state");

static const struct api_field state_running_fields[] = {
    {"startedAt", &api_schema_time, "When it started"},
};
static const struct api_schema state_running =
    API_OBJECT_OF(state_running_fields, CORE "ContainerStateRunning", "A container that runs");

static const struct api_field state_terminated_fields[] = {
    {"containerID", &api_schema_string, "ID of the container, TYPE://ID"},
    {"exitCode", &api_schema_int32, "Exit status", true},
    {"finishedAt", &api_schema_time, "When it ended"},
    {"message", &api_schema_string, "Details"},
    {"reason", &api_schema_string, "Why it ended"},
    {"signal", &api_schema_int32, "Signal that ended it"},
    {"startedAt", &api_schema_time, "When it started"},
};
static const struct api_schema state_terminated = API_OBJECT_OF(
    state_terminated_fields, CORE "ContainerStateTerminated", "A container that ended");

static const struct api_field state_waiting_fields[] = {
    {"message", &api_schema_string, "Details"},
    {"reason", &api_schema_string, "Why it does not run yet"},
};
static const struct api_schema state_waiting = API_OBJECT_OF(
    state_waiting_fields, CORE "ContainerStateWaiting", "A container that does not run yet");

static const struct api_field container_state_fields[] = {
    {"running", &state_running, "It runs."},
    {"terminated", &state_terminated, "It ended."},
    {"waiting", &state_waiting, "It does not run yet."},
};
static const struct api_schema container_state =
    API_OBJECT_OF(container_state_fields, CORE "ContainerState", "Waiting, running or terminated");

static const struct api_field resource_health_fields[] = {
    {"health", &api_schema_string, "Healthy, Unhealthy or Unknown"},
    {"resourceID", &api_schema_string, "ID of the device", true},
};
static const struct api_schema resource_health =
    API_OBJECT_OF(resource_health_fields, CORE "ResourceHealth", "Health of a device");

static const struct api_field resource_status_fields[] = {
    {"name", &api_schema_string, "Name of the resource", true},
    {"resources", API_MAP_LIST(&resource_health, NULL, "resourceID"), "Health of its devices"},
};
static const struct api_schema resource_status =
    API_OBJECT_OF(resource_status_fields, CORE "ResourceStatus", "State of a resource");

static const struct api_field linux_user_fields[] = {
    {"gid", &api_schema_int64, "Group", true},
    {"supplementalGroups", API_LIST_OF(&api_schema_int64), "More groups"},
    {"uid", &api_schema_int64, "User", true},
};
static const struct api_schema linux_user =
    API_OBJECT_OF(linux_user_fields, CORE "LinuxContainerUser", "User of a process");

static const struct api_field container_user_fields[] = {
    {"linux", &linux_user, "User of a Linux container"},
};
static const struct api_schema container_user = API_OBJECT_OF(
    container_user_fields, CORE "ContainerUser", "User that the first process runs as");

static const struct api_field mount_status_fields[] = {
    {"mountPath", &api_schema_string, "Path in the container", true},
    {"name", &api_schema_string, "Name of the volume", true},
    {"readOnly", &api_schema_boolean, "It is read-only."},
    {"recursiveReadOnly", &api_schema_string, "Disabled or Enabled"},
};
static const struct api_schema mount_status =
    API_OBJECT_OF(mount_status_fields, CORE "VolumeMountStatus", "State of a mount");

static const struct api_field container_status_fields[] = {
    {"allocatedResources", &api_schema_quantity_map, "Resources that the node set aside"},
    {"allocatedResourcesStatus", API_MAP_LIST(&resource_status, "name", "name"),
     "State of its resources"},
    {"containerID", &api_schema_string, "ID of the container, TYPE://ID"},
    {"image", &api_schema_string, "Image that it runs"},
    {"imageID", &api_schema_string, "ID of the image"},
    {"lastState", &container_state, "State before the latest start"},
    {"name", &api_schema_string, "Name of the container", true},
    {"ready", &api_schema_boolean, "It is ready."},
    {"resources", &api_schema_resources, "Resources that it has"},
    {"restartCount", &api_schema_int32, "How often it was started anew"},
    {"started", &api_schema_boolean, "It has started."},
    {"state", &container_state, "Its present state"},
    {"stopSignal", &api_schema_string, "Signal that stops it"},
    {"user", &container_user, "User that the first process runs as"},
    {"volumeMounts", API_MAP_LIST(&mount_status, "mountPath", "mountPath"), "State of its mounts"},
};
static const struct api_schema container_status =
    API_OBJECT_OF(container_status_fields, CORE "ContainerStatus", "State of a container");

static const struct api_field host_ip_fields[] = {
    {"ip", &api_schema_string, "The address", true},
};
static const struct api_schema host_ip =
    API_OBJECT_OF(host_ip_fields, CORE "HostIP", "An address of the node");

static const struct api_field pod_ip_fields[] = {
    {"ip", &api_schema_string, "The address", true},
};
static const struct api_schema pod_ip =
    API_OBJECT_OF(pod_ip_fields, CORE "PodIP", "An address of the pod");

static const struct api_field claim_status_fields[] = {
    {"name", &api_schema_string, "Name within the pod", true},
    {"resourceClaimName", &api_schema_string, "Name of the claim"},
};
static const struct api_schema claim_status = API_OBJECT_OF(
    claim_status_fields, CORE "PodResourceClaimStatus", "Claim that was made for the pod");

static const struct api_field pod_status_fields[] = {
    {"conditions", API_MAP_LIST(&pod_condition, "type", "type"), "Aspects of its state"},
    {"containerStatuses", API_LIST_OF(&container_status), "State of the containers"},
    {"ephemeralContainerStatuses", API_LIST_OF(&container_status),
     "State of the ephemeral containers"},
    {"hostIP", &api_schema_string, "Address of its node"},
    {"hostIPs", API_PATCH_LIST(&host_ip, "ip"), "Addresses of its node"},
    {"initContainerStatuses", API_LIST_OF(&container_status), "State of the init containers"},
    {"message", &api_schema_string, "Details for people"},
    {"nominatedNodeName", &api_schema_string, "Node that it may get"},
    {"observedGeneration", &api_schema_int64, "Generation that the status was made from"},
    {"phase", &api_schema_string, "Pending, Running, Succeeded, Failed or Unknown"},
    {"podIP", &api_schema_string, "Address of the pod"},
    {"podIPs", API_MAP_LIST(&pod_ip, "ip", "ip"), "Addresses of the pod, podIP first"},
    {"qosClass", &api_schema_string, "Guaranteed, Burstable or BestEffort"},
    {"reason", &api_schema_string, "Why it is in this state, in CamelCase"},
    {"resize", &api_schema_string, "State of a change of its resources"},
    {"resourceClaimStatuses", API_MAP_LIST(&claim_status, "name", "name"),
     "Claims that were made for it"},
    {"startTime", &api_schema_time, "When the node took it"},
};
static const struct api_schema pod_status =
    API_OBJECT_OF(pod_status_fields, CORE "PodStatus", "What a pod is");

static const struct api_field template_fields[] = {
    {"metadata", &api_schema_object_meta, "Labels and annotations of the pod"},
    {"spec", &api_schema_pod_spec, "What the pod is to be"},
};
const struct api_schema api_schema_pod_template =
    API_OBJECT_OF(template_fields, CORE "PodTemplateSpec", "A pod to be made");

static const struct api_field pod_fields[] = {
    API_ROOT_API_VERSION,
    API_ROOT_KIND,
    API_ROOT_METADATA,
    {"spec", &api_schema_pod_spec, "What the pod is to be"},
    {"status", &pod_status, "What the pod is"},
};
const struct api_schema api_schema_pod =
    API_OBJECT_OF(pod_fields, CORE "Pod", "Pod is one or more containers that share an address.");
