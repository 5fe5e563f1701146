/* SPDX-License-Identifier: Apache-2.0 */
/* The Pod Security Standards: each check in each version, the order of checks, and the labels of
 * namespaces.  The texts are those of k8s.io/pod-security-admission.  In pods ' stands for ". */
#include "pod/standard.h"

#include "json_text.h"

#define LATEST POD_STANDARD_LATEST

/* The check 'id' of a version; NULL: that version does not have it. */
static const struct pod_check *check_in(const char *id, uint64_t minor)
{
    const struct pod_check *k, *found = NULL;
    for (size_t i = 0; (k = pod_check_at(i)); i++) {
        found = streq(k->id, id) && k->since <= minor ? k : found;
    }
    return found;
}

/* The check's message about the pod, "" without one; owned. */
static char *said(const char *id, uint64_t minor, const char *pod)
{
    CLEANUP(json_free) struct json *v = from(pod);
    CLEANUP_STRBUF struct strbuf detail = STRBUF_INIT;
    const struct pod_check *k = check_in(id, minor);
    const char *reason = k ? k->run(v, &detail) : NULL;
    return reason ? xasprintf("%s (%s)", reason, strbuf_cstr(&detail)) : xstrdup("");
}

/* A pod with the containers i (an init container), a, b and e (an ephemeral one). */
#define FOUR(i, a, b, e)                                                                    \
    "{'spec': {'initContainers': [{'name': 'i'" i "}], 'containers': [{'name': 'a'" a "}, " \
    "{'name': 'b'" b "}], 'ephemeralContainers': [{'name': 'e'" e "}]}}"
#define SPEC(s) "{'spec': {" s "}}"
#define ONE(c) SPEC("'containers': [{'name': 'a'" c "}]")
#define POD(context, c) SPEC("'securityContext': {" context "}, 'containers': [{'name': 'a'" c "}]")
#define NOTES(notes, c) \
    "{'metadata': {'annotations': {" notes "}}, 'spec': {'containers': [{'name': 'a'" c "}]}}"
#define CTX(s) ", 'securityContext': {" s "}"
#define WINDOWS SPEC("'os': {'name': 'windows'}, 'containers': [{'name': 'a'}]")
#define LINUX SPEC("'os': {'name': 'linux'}, 'containers': [{'name': 'a'}]")

#define APPARMOR(t) CTX("'appArmorProfile': {'type': '" t "'}")
#define SECCOMP(t) CTX("'seccompProfile': {'type': '" t "'}")
#define ADD(list) CTX("'capabilities': {'add': [" list "]}")
#define DROP_ADD(drop, list) CTX("'capabilities': {'drop': [" drop "], 'add': [" list "]}")
#define PORT(n) ", 'ports': [{'containerPort': 1, 'hostPort': " n "}]"
#define VOLUME(name, type) "{'name': '" name "', '" type "': {}}"
#define SYSCTL(name) "{'name': '" name "', 'value': '1'}"
#define SELINUX(s) CTX("'seLinuxOptions': {" s "}")
#define AA_NOTE "container.apparmor.security.beta.kubernetes.io/"
#define SC_NOTE "container.seccomp.security.alpha.kubernetes.io/"

static const struct {
    const char *id;
    uint64_t minor;
    const char *pod, *want;
} cases[] = {
    {"appArmorProfile", 0, ONE(""), ""},
    {"appArmorProfile", 0, ONE(APPARMOR("RuntimeDefault")), ""},
    {"appArmorProfile", 0, POD("'appArmorProfile': {'type': 'Localhost'}", ""), ""},
    {"appArmorProfile", 0, POD("'appArmorProfile': null", CTX("'appArmorProfile': null")), ""},
    {"appArmorProfile", 0, POD("'appArmorProfile': {'type': 'Unconfined'}", ""),
     "forbidden AppArmor profile (pod must not set AppArmor profile type to \"Unconfined\")"},
    {"appArmorProfile", 0, POD("'appArmorProfile': {}", ""),
     "forbidden AppArmor profile (pod must not set AppArmor profile type to \"\")"},
    {"appArmorProfile", 0, FOUR(APPARMOR("Z"), APPARMOR("Unconfined"), "", APPARMOR("Z")),
     "forbidden AppArmor profiles (containers \"i\", \"a\", \"e\" must not set AppArmor "
     "profile "
     "type to \"Unconfined\", \"Z\")"},
    {"appArmorProfile", 0,
     NOTES("'" AA_NOTE "a': '', '" AA_NOTE "b': 'runtime/default', '" AA_NOTE
           "c': 'localhost/x', 'other': 'unconfined'",
           ""),
     ""},
    {"appArmorProfile", 0, NOTES("'" AA_NOTE "a': 'unconfined'", ""),
     "forbidden AppArmor profile (annotation must not set AppArmor profile type to "
     "\"" AA_NOTE "a=\"unconfined\"\")"},
    {"appArmorProfile", 0,
     NOTES("'" AA_NOTE "b': 'x\\t\\\\', '" AA_NOTE "a': '\\u0001'", APPARMOR("Unconfined")),
     "forbidden AppArmor profiles (container \"a\" and annotations must not set AppArmor "
     "profile "
     "type to \"Unconfined\", \"" AA_NOTE "a=\"\\x01\"\", \"" AA_NOTE "b=\"x\\t\\\\\"\")"},

    {"capabilities_baseline", 0, ONE(""), ""},
    {"capabilities_baseline", 0,
     ONE(ADD("'AUDIT_WRITE', 'CHOWN', 'DAC_OVERRIDE', 'FOWNER', 'FSETID', 'KILL', 'MKNOD', "
             "'NET_BIND_SERVICE', 'SETFCAP', 'SETGID', 'SETPCAP', 'SETUID', 'SYS_CHROOT'")),
     ""},
    {"capabilities_baseline", 0, ONE(ADD("'NET_RAW'")),
     "non-default capabilities (container \"a\" must not include \"NET_RAW\" in "
     "securityContext.capabilities.add)"},
    {"capabilities_baseline", LATEST,
     FOUR(ADD("'SYS_TIME', 'KILL'"), "", ADD("'NET_RAW'"), ADD("'SYS_TIME'")),
     "non-default capabilities (containers \"i\", \"b\", \"e\" must not include \"NET_RAW\", "
     "\"SYS_TIME\" in securityContext.capabilities.add)"},
    {"capabilities_baseline", 0, ONE(ADD("'CAP_KILL', 'chown', 'ALL'")),
     "non-default capabilities (container \"a\" must not include \"ALL\", \"CAP_KILL\", "
     "\"chown\" "
     "in securityContext.capabilities.add)"},

    {"hostNamespaces", 0, SPEC("'hostNetwork': false, 'hostPID': null"), ""},
    {"hostNamespaces", 0, SPEC("'hostPID': true"), "host namespaces (hostPID=true)"},
    {"hostNamespaces", 0, SPEC("'hostIPC': true, 'hostPID': true, 'hostNetwork': true"),
     "host namespaces (hostNetwork=true, hostPID=true, hostIPC=true)"},
    {"hostNamespaces", 0, SPEC("'hostNetwork': 'yes'"), "host namespaces (hostNetwork=true)"},

    {"hostPathVolumes", 0, SPEC("'volumes': [" VOLUME("v", "emptyDir") "]"), ""},
    {"hostPathVolumes", 0, SPEC("'volumes': [{'name': 'v', 'hostPath': null}]"), ""},
    {"hostPathVolumes", 0, SPEC("'volumes': [" VOLUME("v", "hostPath") "]"),
     "hostPath volumes (volume \"v\")"},
    {"hostPathVolumes", 0,
     SPEC("'volumes': [" VOLUME("z", "hostPath") ", " VOLUME("a", "hostPath") "]"),
     "hostPath volumes (volumes \"z\", \"a\")"},

    {"hostPorts", 0, ONE(PORT("0")), ""},
    {"hostPorts", 0, ONE(PORT("null")), ""},
    {"hostPorts", 0, ONE(PORT("80")), "hostPort (container \"a\" uses hostPort 80)"},
    {"hostPorts", 0, FOUR(PORT("9"), PORT("80"), PORT("0"), PORT("9")),
     "hostPort (containers \"i\", \"a\", \"e\" use hostPorts 80, 9)"},
    {"hostPorts", 0, FOUR("", PORT("80"), PORT("80"), ""),
     "hostPort (containers \"a\", \"b\" use hostPort 80)"},

    {"privileged", 0, ONE(CTX("'privileged': false")), ""},
    {"privileged", 0, ONE(CTX("'privileged': null")), ""},
    {"privileged", 0, ONE(CTX("'privileged': true")),
     "privileged (container \"a\" must not set securityContext.privileged=true)"},
    {"privileged", 0, FOUR("", "", CTX("'privileged': true"), CTX("'privileged': true")),
     "privileged (containers \"b\", \"e\" must not set securityContext.privileged=true)"},

    {"procMount", 0, ONE(CTX("'procMount': 'Default'")), ""},
    {"procMount", 0, ONE(CTX("'procMount': null")), ""},
    {"procMount", 0, ONE(CTX("'procMount': 'Unmasked'")),
     "procMount (container \"a\" must not set securityContext.procMount to \"Unmasked\")"},
    {"procMount", LATEST,
     SPEC("'hostUsers': false, 'containers': [{'name': 'a'" CTX("'procMount': 'Unmasked'") "}]"),
     "procMount (container \"a\" must not set securityContext.procMount to \"Unmasked\")"},
    {"procMount", 0, FOUR(CTX("'procMount': 'b'"), CTX("'procMount': 'a'"), "", ""),
     "procMount (containers \"i\", \"a\" must not set securityContext.procMount to \"a\", "
     "\"b\")"},

    {"seLinuxOptions", 0, ONE(SELINUX("")), ""},
    {"seLinuxOptions", 0, ONE(SELINUX("'type': '', 'level': 's0:c1'")), ""},
    {"seLinuxOptions", 0,
     FOUR(SELINUX("'type': 'container_t'"), "", SELINUX("'type': 'container_init_t'"),
          SELINUX("'type': 'container_kvm_t'")),
     ""},
    {"seLinuxOptions", 30, ONE(SELINUX("'type': 'container_engine_t'")),
     "seLinuxOptions (container \"a\" set forbidden securityContext.seLinuxOptions: type "
     "\"container_engine_t\")"},
    {"seLinuxOptions", 31, ONE(SELINUX("'type': 'container_engine_t'")), ""},
    {"seLinuxOptions", 31, ONE(SELINUX("'type': 'spc_t'")),
     "seLinuxOptions (container \"a\" set forbidden securityContext.seLinuxOptions: type "
     "\"spc_t\")"},
    {"seLinuxOptions", 0, POD("'seLinuxOptions': {'user': 'u'}", ""),
     "seLinuxOptions (pod set forbidden securityContext.seLinuxOptions: user may not be set)"},
    {"seLinuxOptions", 0, POD("'seLinuxOptions': {'role': 'r'}", SELINUX("'user': 'u'")),
     "seLinuxOptions (pod and container \"a\" set forbidden securityContext.seLinuxOptions: "
     "user "
     "may not be set; role may not be set)"},
    {"seLinuxOptions", 0, ONE(SELINUX("'role': 'r'")),
     "seLinuxOptions (container \"a\" set forbidden securityContext.seLinuxOptions: role may "
     "not "
     "be set)"},
    {"seLinuxOptions", 0,
     FOUR(SELINUX("'type': 'z'"), SELINUX("'type': 'b', 'role': 'r'"), "", SELINUX("'type': 'z'")),
     "seLinuxOptions (containers \"i\", \"a\", \"e\" set forbidden "
     "securityContext.seLinuxOptions: types \"b\", \"z\"; role may not be set)"},

    {"seccompProfile_baseline", 18, ONE(SECCOMP("Unconfined")), ""},
    {"seccompProfile_baseline", 18,
     NOTES("'seccomp.security.alpha.kubernetes.io/pod': 'runtime/default', '" SC_NOTE
           "a': 'docker/default', '" SC_NOTE "absent': 'unconfined'",
           ""),
     ""},
    {"seccompProfile_baseline", 18, NOTES("'" SC_NOTE "a': 'localhost/x'", ""), ""},
    {"seccompProfile_baseline", 18, NOTES("'" SC_NOTE "a': 'unconfined'", ""),
     "seccompProfile (forbidden annotation " SC_NOTE "a=\"unconfined\")"},
    {"seccompProfile_baseline", 18,
     NOTES("'seccomp.security.alpha.kubernetes.io/pod': '', '" SC_NOTE "a': 'unconfined'", ""),
     "seccompProfile (forbidden annotations " SC_NOTE "a=\"unconfined\", "
     "seccomp.security.alpha.kubernetes.io/pod=\"\")"},
    {"seccompProfile_baseline", 19, NOTES("'" SC_NOTE "a': 'unconfined'", ""), ""},
    {"seccompProfile_baseline", 19, ONE(""), ""},
    {"seccompProfile_baseline", 19,
     POD("'seccompProfile': {'type': 'RuntimeDefault'}", SECCOMP("Localhost")), ""},
    {"seccompProfile_baseline", 19, POD("'seccompProfile': {'type': 'Unconfined'}", ""),
     "seccompProfile (pod must not set securityContext.seccompProfile.type to \"Unconfined\")"},
    {"seccompProfile_baseline", LATEST,
     FOUR(SECCOMP("Unconfined"), SECCOMP("Localhost"), SECCOMP(""), ""),
     "seccompProfile (containers \"i\", \"b\" must not set securityContext.seccompProfile.type "
     "to "
     "\"\", \"Unconfined\")"},

    {"sysctls", 0,
     POD("'sysctls': [" SYSCTL("kernel.shm_rmid_forced") ", " SYSCTL(
             "net.ipv4.ip_local_port_"
             "range") ", " SYSCTL("net.ipv4.tcp_syncookies") ", " SYSCTL("net.ipv4.ping_group_"
                                                                         "range") ", " SYSCTL("n"
                                                                                              "e"
                                                                                              "t"
                                                                                              "."
                                                                                              "i"
                                                                                              "p"
                                                                                              "v"
                                                                                              "4"
                                                                                              "."
                                                                                              "i"
                                                                                              "p"
                                                                                              "_"
                                                                                              "u"
                                                                                              "n"
                                                                                              "p"
                                                                                              "r"
                                                                                              "i"
                                                                                              "v"
                                                                                              "i"
                                                                                              "l"
                                                                                              "e"
                                                                                              "g"
                                                                                              "e"
                                                                                              "d"
                                                                                              "_"
                                                                                              "p"
                                                                                              "o"
                                                                                              "r"
                                                                                              "t"
                                                                                              "_"
                                                                                              "s"
                                                                                              "t"
                                                                                              "a"
                                                                                              "r"
                                                                                              "t") "]",
         ""),
     ""},
    {"sysctls", 0, POD("'sysctls': [" SYSCTL("vm.swappiness") ", " SYSCTL("a.b") "]", ""),
     "forbidden sysctls (vm.swappiness, a.b)"},
    {"sysctls", LATEST, POD("'sysctls': [" SYSCTL("net/ipv4/tcp_rmem") "]", ""),
     "forbidden sysctls (net/ipv4/tcp_rmem)"},
#define RESERVED POD("'sysctls': [" SYSCTL("net.ipv4.ip_local_reserved_ports") "]", "")
    {"sysctls", 26, RESERVED, "forbidden sysctls (net.ipv4.ip_local_reserved_ports)"},
    {"sysctls", 27, RESERVED, ""},
#define KEEPALIVE                                                                                       \
    POD("'sysctls': [" SYSCTL("net.ipv4.tcp_keepalive_time") ", " SYSCTL(                               \
            "net.ipv4.tcp_fin_"                                                                         \
            "timeout") ", " SYSCTL("net.ipv4.tcp_keepalive_intvl") ", " SYSCTL("net.ipv4.tcp_"          \
                                                                               "keepalive_probes") "]", \
        "")
    {"sysctls", 28, KEEPALIVE,
     "forbidden sysctls (net.ipv4.tcp_keepalive_time, net.ipv4.tcp_fin_timeout, "
     "net.ipv4.tcp_keepalive_intvl, net.ipv4.tcp_keepalive_probes)"},
    {"sysctls", 29, KEEPALIVE, ""},
#define MEMORY \
    POD("'sysctls': [" SYSCTL("net.ipv4.tcp_rmem") ", " SYSCTL("net.ipv4.tcp_wmem") "]", "")
    {"sysctls", 31, MEMORY, "forbidden sysctls (net.ipv4.tcp_rmem, net.ipv4.tcp_wmem)"},
    {"sysctls", 32, MEMORY, ""},
    {"sysctls", LATEST, MEMORY, ""},

    {"windowsHostProcess", 0, ONE(CTX("'windowsOptions': {'hostProcess': false}")), ""},
    {"windowsHostProcess", 0, POD("'windowsOptions': {'hostProcess': true}", ""),
     "hostProcess (pod must not set securityContext.windowsOptions.hostProcess=true)"},
    {"windowsHostProcess", 0, ONE(CTX("'windowsOptions': {'hostProcess': true}")),
     "hostProcess (container \"a\" must not set "
     "securityContext.windowsOptions.hostProcess=true)"},
    {"windowsHostProcess", 0,
     SPEC("'securityContext': {'windowsOptions': {'hostProcess': true}}, 'containers': "
          "[{'name': 'a'" CTX("'windowsOptions': {'hostProcess': true}") "}, {'name': 'b'" CTX(
              "'windowsOptions': {'hostProcess': true}") "}]"),
     "hostProcess (pod and containers \"a\", \"b\" must not set "
     "securityContext.windowsOptions.hostProcess=true)"},

    {"allowPrivilegeEscalation", 7, ONE(""), ""},
    {"allowPrivilegeEscalation", 8, ONE(CTX("'allowPrivilegeEscalation': false")), ""},
    {"allowPrivilegeEscalation", 8, ONE(CTX("'allowPrivilegeEscalation': true")),
     "allowPrivilegeEscalation != false (container \"a\" must set "
     "securityContext.allowPrivilegeEscalation=false)"},
    {"allowPrivilegeEscalation", LATEST,
     FOUR("", CTX("'allowPrivilegeEscalation': false"), CTX("'allowPrivilegeEscalation': null"),
          ""),
     "allowPrivilegeEscalation != false (containers \"i\", \"b\", \"e\" must set "
     "securityContext.allowPrivilegeEscalation=false)"},
    {"allowPrivilegeEscalation", 24, WINDOWS,
     "allowPrivilegeEscalation != false (container \"a\" must set "
     "securityContext.allowPrivilegeEscalation=false)"},
    {"allowPrivilegeEscalation", 25, WINDOWS, ""},
    {"allowPrivilegeEscalation", 25, LINUX,
     "allowPrivilegeEscalation != false (container \"a\" must set "
     "securityContext.allowPrivilegeEscalation=false)"},

    {"capabilities_restricted", 21, ONE(""), ""},
    {"capabilities_restricted", 22, ONE(DROP_ADD("'KILL', 'ALL'", "'NET_BIND_SERVICE'")), ""},
    {"capabilities_restricted", 22, ONE(DROP_ADD("'all', 'KILL'", "")),
     "unrestricted capabilities (container \"a\" must set "
     "securityContext.capabilities.drop=[\"ALL\"])"},
    {"capabilities_restricted", 22, ONE(DROP_ADD("'ALL'", "'KILL', 'CHOWN'")),
     "unrestricted capabilities (container \"a\" must not include \"CHOWN\", \"KILL\" in "
     "securityContext.capabilities.add)"},
    {"capabilities_restricted", LATEST,
     FOUR("", ADD("'KILL'"), DROP_ADD("'ALL'", "'KILL'"), CTX("")),
     "unrestricted capabilities (containers \"i\", \"a\", \"e\" must set "
     "securityContext.capabilities.drop=[\"ALL\"]; containers \"a\", \"b\" must not include "
     "\"KILL\" in securityContext.capabilities.add)"},
    {"capabilities_restricted", 24, WINDOWS,
     "unrestricted capabilities (container \"a\" must set "
     "securityContext.capabilities.drop=[\"ALL\"])"},
    {"capabilities_restricted", 25, WINDOWS, ""},

    {"restrictedVolumes", 0,
     SPEC("'volumes': [" VOLUME("a", "configMap") ", " VOLUME("b", "csi") ", " VOLUME(
         "c",
         "dow"
         "nwa"
         "rdA"
         "PI") ", " VOLUME("d",
                           "emptyDir") ", " VOLUME("e",
                                                   "ephemeral") ", " VOLUME("f",
                                                                            "persistentVolumeClai"
                                                                            "m") ", " VOLUME("g",
                                                                                             "proj"
                                                                                             "ecte"
                                                                                             "d") ", " VOLUME("h",
                                                                                                              "secret") "]"),
     ""},
    {"restrictedVolumes", 0, SPEC("'volumes': [" VOLUME("v", "nfs") "]"),
     "restricted volume types (volume \"v\" uses restricted volume type \"nfs\")"},
    {"restrictedVolumes", 0,
     SPEC("'volumes': [" VOLUME("z", "nfs") ", " VOLUME("y", "hostPath") ", " VOLUME("x",
                                                                                     "nfs") "]"),
     "restricted volume types (volumes \"z\", \"y\", \"x\" use restricted volume types "
     "\"hostPath\", \"nfs\")"},
    {"restrictedVolumes", 0, SPEC("'volumes': [{'name': 'v'}, " VOLUME("w", "image") "]"),
     "restricted volume types (volumes \"v\", \"w\" use restricted volume type \"unknown\")"},

    {"runAsNonRoot", 0, POD("'runAsNonRoot': true", ""), ""},
    {"runAsNonRoot", 0, ONE(CTX("'runAsNonRoot': true")), ""},
    {"runAsNonRoot", 0, ONE(""),
     "runAsNonRoot != true (pod or container \"a\" must set "
     "securityContext.runAsNonRoot=true)"},
    {"runAsNonRoot", LATEST, SPEC("'hostUsers': false, 'containers': [{'name': 'a'}]"),
     "runAsNonRoot != true (pod or container \"a\" must set "
     "securityContext.runAsNonRoot=true)"},
    {"runAsNonRoot", 0, FOUR("", CTX("'runAsNonRoot': true"), "", ""),
     "runAsNonRoot != true (pod or containers \"i\", \"b\", \"e\" must set "
     "securityContext.runAsNonRoot=true)"},
    {"runAsNonRoot", 0, POD("'runAsNonRoot': false", CTX("'runAsNonRoot': true")),
     "runAsNonRoot != true (pod must not set securityContext.runAsNonRoot=false)"},
    {"runAsNonRoot", 0, POD("'runAsNonRoot': true", CTX("'runAsNonRoot': false")),
     "runAsNonRoot != true (container \"a\" must not set securityContext.runAsNonRoot=false)"},
    {"runAsNonRoot", 0, POD("'runAsNonRoot': false", CTX("'runAsNonRoot': false")),
     "runAsNonRoot != true (pod and container \"a\" must not set "
     "securityContext.runAsNonRoot=false)"},

    {"runAsUser", 22, POD("'runAsUser': 0", ""), ""},
    {"runAsUser", 23, POD("'runAsUser': 1", CTX("'runAsUser': null")), ""},
    {"runAsUser", 23, POD("'runAsUser': 0", ""), "runAsUser=0 (pod must not set runAsUser=0)"},
    {"runAsUser", 23, ONE(CTX("'runAsUser': 0")),
     "runAsUser=0 (container \"a\" must not set runAsUser=0)"},
    {"runAsUser", LATEST,
     SPEC("'hostUsers': false, 'securityContext': {'runAsUser': 0}, 'containers': [{'name': "
          "'a'" CTX("'runAsUser': 0") "}, {'name': 'b'" CTX("'runAsUser': 0.5") "}]"),
     "runAsUser=0 (pod and containers \"a\", \"b\" must not set runAsUser=0)"},

    {"seccompProfile_restricted", 18, ONE(""), ""},
    {"seccompProfile_restricted", 19, POD("'seccompProfile': {'type': 'Localhost'}", ""), ""},
    {"seccompProfile_restricted", 19, ONE(SECCOMP("RuntimeDefault")), ""},
    {"seccompProfile_restricted", 19, ONE(""),
     "seccompProfile (pod or container \"a\" must set securityContext.seccompProfile.type to "
     "\"RuntimeDefault\" or \"Localhost\")"},
    {"seccompProfile_restricted", 19, FOUR("", SECCOMP("Localhost"), "", ""),
     "seccompProfile (pod or containers \"i\", \"b\", \"e\" must set "
     "securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\")"},
    {"seccompProfile_restricted", 19,
     POD("'seccompProfile': {'type': 'RuntimeDefault'}", SECCOMP("Unconfined")),
     "seccompProfile (container \"a\" must not set securityContext.seccompProfile.type to "
     "\"Unconfined\")"},
    {"seccompProfile_restricted", 19,
     POD("'seccompProfile': {'type': 'Unconfined'}", SECCOMP("Localhost")),
     "seccompProfile (pod must not set securityContext.seccompProfile.type to \"Unconfined\")"},
    {"seccompProfile_restricted", 24, WINDOWS,
     "seccompProfile (pod or container \"a\" must set securityContext.seccompProfile.type to "
     "\"RuntimeDefault\" or \"Localhost\")"},
    {"seccompProfile_restricted", 25, WINDOWS, ""},
    {"seccompProfile_restricted", 25, LINUX,
     "seccompProfile (pod or container \"a\" must set securityContext.seccompProfile.type to "
     "\"RuntimeDefault\" or \"Localhost\")"},
};

static void each_check_says_what_kubernetes_says(void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *got = said(cases[i].id, cases[i].minor, cases[i].pod);
        if (!streq(got, cases[i].want)) {
            fail_msg("%s: %s\ngot  %s\nwant %s", cases[i].id, cases[i].pod, got, cases[i].want);
        }
    }
}

static void every_row_of_the_table_has_a_case_that_violates_it(void **state)
{
    const struct pod_check *k;
    for (size_t i = 0; (k = pod_check_at(i)); i++) {
        bool violated = false;
        for (size_t c = 0; c < ARRAY_SIZE(cases); c++) {
            violated |= check_in(cases[c].id, cases[c].minor) == k && *cases[c].want;
        }
        if (!violated) {
            fail_msg("%s since 1.%d", k->id, (int) k->since);
        }
    }
}

static void every_type_of_a_restricted_volume_is_named(void **state)
{
    static const char *const types[] = {"hostPath",
                                        "gcePersistentDisk",
                                        "awsElasticBlockStore",
                                        "gitRepo",
                                        "nfs",
                                        "iscsi",
                                        "glusterfs",
                                        "rbd",
                                        "flexVolume",
                                        "cinder",
                                        "cephfs",
                                        "flocker",
                                        "fc",
                                        "azureFile",
                                        "vsphereVolume",
                                        "quobyte",
                                        "azureDisk",
                                        "photonPersistentDisk",
                                        "portworxVolume",
                                        "scaleIO",
                                        "storageos"};
    for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
        CLEANUP_FREE char *pod = xasprintf(SPEC("'volumes': [{'name': 'v', '%s': {}}]"), types[i]);
        CLEANUP_FREE char *got = said("restrictedVolumes", LATEST, pod);
        CLEANUP_FREE char *want = xasprintf(
            "restricted volume types (volume \"v\" uses restricted volume type \"%s\")", types[i]);
        assert_string_equal(got, want);
    }
}

/* ---- levels and versions ---- */

#define WORST                                                                                    \
    SPEC("'hostNetwork': true, 'volumes': [" VOLUME(                                             \
        "v", "hostPath") "], 'securityContext': "                                                \
                         "{'runAsUser': 0, 'sysctls': [" SYSCTL(                                 \
                             "a.b") "]}, 'containers': [{'name': 'a'" PORT("1")                  \
                             CTX("'privileged': true, 'capabilities': {'add': ['NET_RAW']}, "    \
                                 "'procMount': 'Unmasked', "                                     \
                                 "'seLinuxOptions': {'user': 'u'}, 'appArmorProfile': {'type': " \
                                 "'Unconfined'}, "                                               \
                                 "'seccompProfile': {'type': 'Unconfined'}, 'windowsOptions': "  \
                                 "{'hostProcess': true}") "}]")

static void checks_come_by_level_and_name_and_replace_each_other(void **state)
{
#define BASELINE "host namespaces, "
#define AFTER "hostPort, privileged, procMount, seLinuxOptions, "
    static const struct {
        struct pod_standard s;
        const char *want;
    } rows[] = {
        {{POD_PRIVILEGED, LATEST}, ""},
        {{POD_BASELINE, LATEST},
         "forbidden AppArmor profile, non-default capabilities, " BASELINE
         "hostPath volumes, " AFTER "seccompProfile, forbidden sysctls, hostProcess"},
        {{POD_BASELINE, 0},
         "forbidden AppArmor profile, non-default capabilities, " BASELINE
         "hostPath volumes, " AFTER "forbidden sysctls, hostProcess"},
        {{POD_RESTRICTED, 0},
         "forbidden AppArmor profile, non-default capabilities, " BASELINE AFTER
         "forbidden sysctls, hostProcess, restricted volume types, runAsNonRoot != true"},
        {{POD_RESTRICTED, 21},
         "forbidden AppArmor profile, non-default capabilities, " BASELINE AFTER
         "forbidden sysctls, hostProcess, allowPrivilegeEscalation != false, restricted volume "
         "types, runAsNonRoot != true, seccompProfile"},
        {{POD_RESTRICTED, 22},
         "forbidden AppArmor profile, " BASELINE AFTER
         "forbidden sysctls, hostProcess, allowPrivilegeEscalation != false, unrestricted "
         "capabilities, restricted volume types, runAsNonRoot != true, seccompProfile"},
        {{POD_RESTRICTED, LATEST},
         "forbidden AppArmor profile, " BASELINE AFTER
         "forbidden sysctls, hostProcess, allowPrivilegeEscalation != false, unrestricted "
         "capabilities, restricted volume types, runAsNonRoot != true, runAsUser=0, "
         "seccompProfile"},
        {{POD_RESTRICTED, 999},
         "forbidden AppArmor profile, " BASELINE AFTER
         "forbidden sysctls, hostProcess, allowPrivilegeEscalation != false, unrestricted "
         "capabilities, restricted volume types, runAsNonRoot != true, runAsUser=0, "
         "seccompProfile"},
    };
    CLEANUP(json_free) struct json *pod = from(WORST);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP_STRBUF struct strbuf reasons = STRBUF_INIT;
        size_t n = pod_standard_check(&rows[i].s, pod, &reasons, NULL);
        assert_string_equal(strbuf_cstr(&reasons), rows[i].want);
        assert_int_equal(n > 0, *rows[i].want != 0);
    }
}

static void details_are_the_words_that_users_know(void **state)
{
    static const struct pod_standard restricted = {POD_RESTRICTED, LATEST};
    CLEANUP(json_free) struct json *pod = from(ONE(""));
    CLEANUP_STRBUF struct strbuf details = STRBUF_INIT;
    assert_int_equal(pod_standard_check(&restricted, pod, NULL, &details), 4);
    assert_string_equal(
        strbuf_cstr(&details),
        "allowPrivilegeEscalation != false (container \"a\" must set "
        "securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (container "
        "\"a\" must set securityContext.capabilities.drop=[\"ALL\"]), runAsNonRoot != true (pod or "
        "container \"a\" must set securityContext.runAsNonRoot=true), seccompProfile (pod or "
        "container \"a\" must set securityContext.seccompProfile.type to \"RuntimeDefault\" or "
        "\"Localhost\")");
}

static void a_restricted_pod_passes_every_version(void **state)
{
    CLEANUP(json_free)
    struct json *pod =
        from(POD("'runAsNonRoot': true, 'seccompProfile': {'type': 'RuntimeDefault'}",
                 CTX("'allowPrivilegeEscalation': false, 'capabilities': {'drop': ['ALL']}")));
    for (uint64_t minor = 0; minor < 40; minor++) {
        struct pod_standard s = {POD_RESTRICTED, minor};
        assert_int_equal(pod_standard_check(&s, pod, NULL, NULL), 0);
    }
}

static void settings_of_a_wrong_type_are_forbidden_and_do_no_harm(void **state)
{
    static const char *const pods[] = {"[]",
                                       "{}",
                                       "null",
                                       "{'spec': 1}",
                                       "{'spec': {'containers': {}}}",
                                       "{'spec': {'containers': [null, 1, 'x', []], 'volumes': "
                                       "[null, 1], 'securityContext': 'x'}}",
                                       "{'metadata': {'annotations': ['" AA_NOTE
                                       "a']}, 'spec': {'containers': [{'name': 1, "
                                       "'ports': 1, 'securityContext': []}]}}"};
    static const struct pod_standard restricted = {POD_RESTRICTED, LATEST};
    for (size_t i = 0; i < ARRAY_SIZE(pods); i++) {
        CLEANUP(json_free) struct json *pod = from(pods[i]);
        CLEANUP_STRBUF struct strbuf details = STRBUF_INIT;
        (void) pod_standard_check(&restricted, pod, NULL, &details);
    }
    CLEANUP_FREE char *flag = said("privileged", 0, ONE(CTX("'privileged': 'false'")));
    CLEANUP_FREE char *port = said("hostPorts", 0, ONE(PORT("'0'")));
    CLEANUP_FREE char *escalation =
        said("allowPrivilegeEscalation", LATEST, ONE(CTX("'allowPrivilegeEscalation': 0")));
    CLEANUP_FREE char *root =
        said("runAsNonRoot", 0, POD("'runAsNonRoot': 'true'", CTX("'runAsNonRoot': true")));
    assert_true(*flag && *port && *escalation && *root);
}

/* ---- labels ---- */

static void versions_are_latest_or_one_and_a_number(void **state)
{
    static const struct {
        const char *text;
        bool valid;
        uint64_t minor;
    } rows[] = {
        {"latest", true, LATEST},
        {"v1.0", true, 0},
        {"v1.9", true, 9},
        {"v1.32", true, 32},
        {"v1.9223372036854775807", true, INT64_MAX},
        {"v1.9223372036854775808", false, LATEST},
        {"v1.99999999999999999999999", false, LATEST},
        {"", false, LATEST},
        {"v", false, LATEST},
        {"v1", false, LATEST},
        {"v1.", false, LATEST},
        {"v1.00", false, LATEST},
        {"v1.01", false, LATEST},
        {"v1.-1", false, LATEST},
        {"v1.+1", false, LATEST},
        {"v1.1.1", false, LATEST},
        {"v1.1 ", false, LATEST},
        {" v1.1", false, LATEST},
        {"v1.0x1", false, LATEST},
        {"v2.1", false, LATEST},
        {"V1.1", false, LATEST},
        {"1.1", false, LATEST},
        {"Latest", false, LATEST},
        {"latest1", false, LATEST},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        uint64_t minor = 77;
        bool valid = pod_version_parse(rows[i].text, &minor) == 0;
        if (valid != rows[i].valid || minor != rows[i].minor) {
            fail_msg("%s", rows[i].text);
        }
    }
}

static void levels_are_three_words(void **state)
{
    static const char *const wrong[] = {"", "Baseline", "privileged ", "restrict", "none"};
    enum pod_level level;
    assert_int_equal(pod_level_parse("privileged", &level), 0);
    assert_int_equal(level, POD_PRIVILEGED);
    assert_int_equal(pod_level_parse("baseline", &level), 0);
    assert_int_equal(level, POD_BASELINE);
    assert_int_equal(pod_level_parse("restricted", &level), 0);
    assert_int_equal(level, POD_RESTRICTED);
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        level = POD_PRIVILEGED;
        assert_int_equal(pod_level_parse(wrong[i], &level), -EINVAL);
        assert_int_equal(level, POD_RESTRICTED);
    }
}

#define L(key, value) "'pod-security.kubernetes.io/" key "': '" value "'"
#define BAD_LEVEL(key, value)                                                                     \
    "metadata.labels[pod-security.kubernetes.io/" key "]: Invalid value: \"" value "\": must be " \
    "one of privileged, baseline, restricted;"
#define BAD_VERSION(key, value)                                                                   \
    "metadata.labels[pod-security.kubernetes.io/" key "]: Invalid value: \"" value "\": must be " \
    "\"latest\" or \"v1.x\";"

static void labels_make_a_policy_and_fail_closed(void **state)
{
    static const struct {
        const char *labels, *enforce, *audit, *warn, *causes;
    } rows[] = {
        {"{}", "privileged:latest", "privileged:latest", "privileged:latest", ""},
        {"{'a': 'b'}", "privileged:latest", "privileged:latest", "privileged:latest", ""},
        {"{" L("enforce", "baseline") "}", "baseline:latest", "privileged:latest",
         "baseline:latest", ""},
        {"{" L("enforce", "privileged") ", " L("enforce-version", "v1.5") "}", "privileged:v1.5",
         "privileged:latest", "privileged:latest", ""},
        {"{" L("enforce", "restricted") ", " L("enforce-version", "v1.25") "}", "restricted:v1.25",
         "privileged:latest", "restricted:v1.25", ""},
        {"{" L("enforce", "restricted") ", " L("enforce-version", "v1.25") ", " L("warn-version",
                                                                                  "v1.22") "}",
         "restricted:v1.25", "privileged:latest", "restricted:v1.22", ""},
        {"{" L("enforce", "restricted") ", " L("warn", "privileged") "}", "restricted:latest",
         "privileged:latest", "privileged:latest", ""},
        {"{" L("audit", "baseline") ", " L("audit-version", "latest") ", " L("warn",
                                                                             "restricted") "}",
         "privileged:latest", "baseline:latest", "restricted:latest", ""},
        /* Wrong values: enforce is closed, audit and warn are open, versions are the latest. */
        {"{" L("enforce", "x") "}", "restricted:latest", "privileged:latest", "privileged:latest",
         BAD_LEVEL("enforce", "x")},
        {"{" L("enforce", "") ", " L("enforce-version", "v1.1") "}", "restricted:v1.1",
         "privileged:latest", "privileged:latest", BAD_LEVEL("enforce", "")},
        {"{" L("enforce", "baseline") ", " L("enforce-version", "x") "}", "baseline:latest",
         "privileged:latest", "baseline:latest", BAD_VERSION("enforce-version", "x")},
        {"{" L("audit", "x") ", " L("warn", "y") ", " L("audit-version", "1") ", " L("warn-version",
                                                                                     "2") "}",
         "privileged:latest", "privileged:latest", "privileged:latest",
         BAD_LEVEL("audit", "x") BAD_VERSION("audit-version", "1") BAD_LEVEL("warn", "y")
             BAD_VERSION("warn-version", "2")},
        {"{" L("enforce", "baseline") ", " L("warn", "x") "}", "baseline:latest",
         "privileged:latest", "privileged:latest", BAD_LEVEL("warn", "x")},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP(json_free) struct json *labels = from(rows[i].labels);
        CLEANUP(api_causes_done) struct api_causes c = {0};
        CLEANUP_STRBUF struct strbuf causes = STRBUF_INIT;
        struct pod_policy p;
        pod_policy_read(labels, &p, &c);
        CLEANUP_FREE char *enforce = pod_standard_text(&p.enforce);
        CLEANUP_FREE char *audit = pod_standard_text(&p.audit);
        CLEANUP_FREE char *warn = pod_standard_text(&p.warn);
        for (size_t k = 0; k < c.n; k++) {
            strbuf_addf(&causes, "%s: %s;", c.list[k].field, c.list[k].message);
        }
        assert_string_equal(enforce, rows[i].enforce);
        assert_string_equal(audit, rows[i].audit);
        assert_string_equal(warn, rows[i].warn);
        assert_string_equal(strbuf_cstr(&causes), rows[i].causes);
    }
}

static void labels_that_are_no_texts_enforce_restricted(void **state)
{
    CLEANUP(json_free) struct json *labels = from("{'pod-security.kubernetes.io/enforce': null}");
    CLEANUP(api_causes_done) struct api_causes c = {0};
    struct pod_policy p;
    pod_policy_read(labels, &p, &c);
    assert_int_equal(c.n, 1);
    assert_int_equal(p.enforce.level, POD_RESTRICTED);
    assert_false(pod_policy_is_privileged(&p));
    pod_policy_read(NULL, &p, &c);
    assert_int_equal(c.n, 1);
    assert_true(pod_policy_is_privileged(&p));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_check_says_what_kubernetes_says),
        cmocka_unit_test(every_row_of_the_table_has_a_case_that_violates_it),
        cmocka_unit_test(every_type_of_a_restricted_volume_is_named),
        cmocka_unit_test(checks_come_by_level_and_name_and_replace_each_other),
        cmocka_unit_test(details_are_the_words_that_users_know),
        cmocka_unit_test(a_restricted_pod_passes_every_version),
        cmocka_unit_test(settings_of_a_wrong_type_are_forbidden_and_do_no_harm),
        cmocka_unit_test(versions_are_latest_or_one_and_a_number),
        cmocka_unit_test(levels_are_three_words),
        cmocka_unit_test(labels_make_a_policy_and_fail_closed),
        cmocka_unit_test(labels_that_are_no_texts_enforce_restricted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
