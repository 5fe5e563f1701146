/* SPDX-License-Identifier: Apache-2.0 */
#include "controllers/security/default_sccs.h"

#include "base/mem.h"
#include "controller/obj.h"
#include "pod/scc.h"

#define DESCRIPTION "kubernetes.io/description"
#define ANY "RunAsAny"
#define ONE "MustRunAs"
#define RANGE "MustRunAsRange"
#define NON_ROOT "MustRunAsNonRoot"

/* Words are separated by blanks.  The volumes are those of projects: ephemeral ones are claims, and
 * images are as harmless as those of containers. */
#define VOLUMES "configMap downwardAPI emptyDir ephemeral image persistentVolumeClaim projected "
#define HOST_VOLUMES \
    "configMap downwardAPI emptyDir ephemeral hostPath image persistentVolumeClaim projected "
#define DROPS "KILL MKNOD SETUID SETGID"

/* As in OpenShift 3.11 but for `restricted`, which also forbids to gain privileges, and has the
 * runtime's seccomp profile, as restricted-v2 of OpenShift 4. */
static const struct row {
    const char *name;
    int64_t priority; /* 0: none. */
    bool privileged, host, network_only, host_paths;
    bool no_escalation;
    const char *labels, *user, *file_group, *groups;  /* Strategies. */
    const char *volumes, *drops, *profiles, *may_add; /* Words. */
    const char *users, *members;
    const char *description;
} rows[] = {
    {.name = "anyuid",
     .priority = 10,
     .labels = ONE,
     .user = ANY,
     .file_group = ANY,
     .groups = ANY,
     .volumes = VOLUMES "secret",
     .drops = "MKNOD",
     .members = "system:cluster-admins",
     .description = "Like restricted, but pods run as any user and with any group."},
    {.name = "hostaccess",
     .host = true,
     .host_paths = true,
     .labels = ONE,
     .user = RANGE,
     .file_group = ONE,
     .groups = ANY,
     .volumes = HOST_VOLUMES "secret",
     .drops = DROPS,
     .description = "All namespaces, ports and directories of the node, with the user IDs and the "
                    "SELinux level of the project. WARNING: such a pod can take over its node. "
                    "Grant with caution."},
    {.name = "hostmount-anyuid",
     .host_paths = true,
     .labels = ONE,
     .user = ANY,
     .file_group = ANY,
     .groups = ANY,
     .volumes = HOST_VOLUMES "nfs secret",
     .drops = "MKNOD",
     .users = "system:serviceaccount:openshift-infra:pv-recycler-controller",
     .description = "Directories of the node, as any user, root included: for the recycler of "
                    "persistent volumes. WARNING: such a pod can take over its node. Grant with "
                    "caution."},
    {.name = "hostnetwork",
     .network_only = true,
     .labels = ONE,
     .user = RANGE,
     .file_group = ONE,
     .groups = ONE,
     .volumes = VOLUMES "secret",
     .drops = DROPS,
     .description = "The network and the ports of the node, with the user IDs and the SELinux "
                    "level of the project."},
    {.name = "hostnetwork-v2",
     .network_only = true,
     .no_escalation = true,
     .labels = ONE,
     .user = RANGE,
     .file_group = ONE,
     .groups = ONE,
     .volumes = VOLUMES "secret",
     .drops = "ALL",
     .may_add = "NET_BIND_SERVICE",
     .profiles = "runtime/default",
     .description = "Like hostnetwork, but containers drop all capabilities and gain no "
                    "privileges."},
    {.name = "nonroot",
     .labels = ONE,
     .user = NON_ROOT,
     .file_group = ANY,
     .groups = ANY,
     .volumes = VOLUMES "secret",
     .drops = DROPS,
     .description = "Like restricted, but pods run as any user other than root, which the pod or "
                    "its image names."},
    {.name = "nonroot-v2",
     .no_escalation = true,
     .labels = ONE,
     .user = NON_ROOT,
     .file_group = ANY,
     .groups = ANY,
     .volumes = VOLUMES "secret",
     .drops = "ALL",
     .may_add = "NET_BIND_SERVICE",
     .profiles = "runtime/default",
     .description = "Like nonroot, but containers drop all capabilities and gain no privileges."},
    {.name = "privileged",
     .privileged = true,
     .host = true,
     .host_paths = true,
     .labels = ANY,
     .user = ANY,
     .file_group = ANY,
     .groups = ANY,
     .volumes = "*",
     .profiles = "*",
     .users = "system:serviceaccount:default:registry system:serviceaccount:default:router "
              "system:serviceaccount:openshift-infra:build-controller",
     .members = "system:cluster-admins system:nodes",
     .description = "Everything: privileged containers, all that the node has, any user, group "
                    "and SELinux label. WARNING: such a pod is root on its node. It is meant for "
                    "the administration of the cluster. Grant with caution."},
    {.name = "restricted",
     .no_escalation = true,
     .labels = ONE,
     .user = RANGE,
     .file_group = ONE,
     .groups = ANY,
     .volumes = VOLUMES "secret",
     .drops = DROPS,
     .profiles = "runtime/default",
     .members = "system:authenticated",
     .description = "Nothing of the node; the user IDs and the SELinux level of the project. "
                    "Every authenticated user may use it."},
    {.name = "restricted-v2",
     .no_escalation = true,
     .labels = ONE,
     .user = RANGE,
     .file_group = ONE,
     .groups = ANY,
     .volumes = VOLUMES "secret",
     .drops = "ALL",
     .may_add = "NET_BIND_SERVICE",
     .profiles = "runtime/default",
     .description = "Like restricted, but containers drop all capabilities. No user may use it "
                    "before an administrator says so."},
};

const char *const default_scc_names[] = {
    "anyuid",  "hostaccess", "hostmount-anyuid", "hostnetwork", "hostnetwork-v2",
    "nonroot", "nonroot-v2", "privileged",       "restricted",  "restricted-v2",
    NULL};

static struct json *words(const char *s)
{
    struct json *list = json_array();
    while (s && *s) {
        size_t n = strcspn(s, " ");
        json_append(list, json_string_n(s, n));
        s += n + (s[n] == ' ');
    }
    return list;
}

static void set_strategy(struct json *o, const char *key, const char *type)
{
    json_set_string(json_ensure_object(o, key), "type", type);
}

static struct json *scc_object_of(const struct row *r)
{
    struct json *o = obj_new(SCC_GROUP "/v1", "SecurityContextConstraints", NULL, r->name);
    obj_set_annotation(o, DESCRIPTION, r->description);
    if (r->priority) {
        json_set_int(o, "priority", r->priority);
    }
    json_set_bool(o, "allowPrivilegedContainer", r->privileged);
    json_set_bool(o, "allowPrivilegeEscalation", !r->no_escalation);
    json_set_bool(o, "allowHostDirVolumePlugin", r->host_paths);
    json_set_bool(o, "allowHostNetwork", r->host || r->network_only);
    json_set_bool(o, "allowHostPorts", r->host || r->network_only);
    json_set_bool(o, "allowHostPID", r->host);
    json_set_bool(o, "allowHostIPC", r->host);
    if (r->drops) {
        json_set(o, "requiredDropCapabilities", words(r->drops));
    }
    if (r->may_add) {
        json_set(o, "allowedCapabilities", words(r->may_add));
    }
    if (r->privileged) {
        json_set(o, "allowedCapabilities", words("*"));
        json_set(o, "allowedUnsafeSysctls", words("*"));
    }
    json_set(o, "volumes", words(r->volumes));
    set_strategy(o, "seLinuxContext", r->labels);
    set_strategy(o, "runAsUser", r->user);
    set_strategy(o, "fsGroup", r->file_group);
    set_strategy(o, "supplementalGroups", r->groups);
    if (r->profiles) {
        json_set(o, "seccompProfiles", words(r->profiles));
    }
    json_set(o, "users", words(r->users));
    json_set(o, "groups", words(r->members));
    return o;
}

struct json *default_sccs(void)
{
    struct json *list = json_array();
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        json_append(list, scc_object_of(&rows[i]));
    }
    return list;
}
