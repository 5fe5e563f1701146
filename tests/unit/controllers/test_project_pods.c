/* SPDX-License-Identifier: Apache-2.0 */
/* What pods and templates of pods may ask for when a user with role edit writes them:
 * one case a field. */
#include "project.h"

#include "api/kinds/pod_restrictions.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define PODS "/api/v1/namespaces/red/pods"

static int set_up(void **state)
{
    *state = project_new();
    return 0;
}

static int tear_down(void **state)
{
    harness_free(*state);
    return 0;
}

/* ---- the cases ---- */

/* Members of a pod's spec, of its annotations, and of a container. */
struct refused {
    const char *member, *field, *why;
};
static const struct refused of_spec[] = {
    {"'hostNetwork':true", "spec.hostNetwork", "Host network is not allowed to be used"},
    {"'hostPID':true", "spec.hostPID", "Host PID is not allowed to be used"},
    {"'hostIPC':true", "spec.hostIPC", "Host IPC is not allowed to be used"},
    {"'volumes':[{'name':'v','hostPath':{'path':'/'}}]", "spec.volumes[0]",
     "hostPath volumes are not allowed to be used"},
    {"'volumes':[{'name':'a','emptyDir':{}},{'name':'v','nfs':{'server':'s','path':'/'}}]",
     "spec.volumes[1]", "nfs volumes are not allowed to be used"},
    {"'volumes':[{'name':'v','csi':{'driver':'d'}}]", "spec.volumes[0]",
     "csi volumes are not allowed to be used"},
    {"'volumes':[{'name':'v','gitRepo':{'repository':'r'}}]", "spec.volumes[0]",
     "gitRepo volumes are not allowed to be used"},
    {"'securityContext':{'runAsUser':0}", "spec.containers[0].securityContext.runAsUser",
     "must be in the ranges: [1000010000, 1000019999]"},
    {"'securityContext':{'runAsUser':4294967296}", "spec.containers[0].securityContext.runAsUser",
     "must be in the ranges"},
    {"'securityContext':{'runAsUser':1000000000}", "spec.containers[0].securityContext.runAsUser",
     "must be in the ranges"}, /* Of another project. */
    {"'securityContext':{'fsGroup':0}", "spec.securityContext.fsGroup",
     "0 is not an allowed group"},
    {"'securityContext':{'fsGroup':1000010001}", "spec.securityContext.fsGroup",
     "1000010001 is not an allowed group"},
    {"'securityContext':{'seLinuxOptions':{'type':'spc_t'}}",
     "spec.securityContext.seLinuxOptions.type", "must be "},
    {"'securityContext':{'seLinuxOptions':{'level':'s0:c1,c0'}}",
     "spec.securityContext.seLinuxOptions.level", "must be s0:c3,c2"},
    {"'securityContext':{'seccompProfile':{'type':'Unconfined'}}",
     "spec.securityContext.seccompProfile", "unconfined is not an allowed seccomp profile"},
    {"'securityContext':{'appArmorProfile':{'type':'Unconfined'}}",
     "spec.securityContext.appArmorProfile.type", "only the profile RuntimeDefault is allowed"},
    {"'securityContext':{'windowsOptions':{'hostProcess':true}}",
     "spec.securityContext.windowsOptions.hostProcess", "Host processes are not allowed"},
    {"'securityContext':{'sysctls':[{'name':'net.ipv4.tcp_syncookies','value':'1'},"
     "{'name':'kernel.msgmax','value':'1'}]}",
     "spec.securityContext.sysctls[1]", "unsafe sysctl \"kernel.msgmax\" is not allowed"},
    {"'securityContext':{'sysctls':[{'name':'net/ipv4/ip_forward','value':'1'}]}",
     "spec.securityContext.sysctls[0]", "unsafe sysctl \"net/ipv4/ip_forward\" is not allowed"},
    {"'priorityClassName':'system-node-critical'", "spec.priorityClassName",
     "the system's priority classes"},
    {"'priority':2000000000", "spec.priority", "must be 1000000000 or less"},
};
static const struct refused of_annotations[] = {
    {"'seccomp.security.alpha.kubernetes.io/pod':'unconfined'",
     "metadata.annotations[seccomp.security.alpha.kubernetes.io/pod]",
     "unconfined is not an allowed seccomp profile"},
    {"'container.seccomp.security.alpha.kubernetes.io/c':'localhost/x'",
     "metadata.annotations[container.seccomp.security.alpha.kubernetes.io/c]",
     "localhost/x is not an allowed seccomp profile"},
    {"'container.apparmor.security.beta.kubernetes.io/c':'unconfined'",
     "metadata.annotations[container.apparmor.security.beta.kubernetes.io/c]",
     "only the profile runtime/default is allowed"},
    {"'security.alpha.kubernetes.io/sysctls':'kernel.msgmax=1'",
     "metadata.annotations[security.alpha.kubernetes.io/sysctls]", "spec.securityContext.sysctls"},
    {"'security.alpha.kubernetes.io/unsafe-sysctls':'kernel.msgmax=1'",
     "metadata.annotations[security.alpha.kubernetes.io/unsafe-sysctls]",
     "unsafe sysctls are not allowed"},
    {"'pod.alpha.kubernetes.io/init-containers':'[]'",
     "metadata.annotations[pod.alpha.kubernetes.io/init-containers]", "spec.initContainers"},
    {"'pod.beta.kubernetes.io/init-containers':'[]'",
     "metadata.annotations[pod.beta.kubernetes.io/init-containers]", "spec.initContainers"},
    {"'pod.network.openshift.io/assign-macvlan':'true'",
     "metadata.annotations[pod.network.openshift.io/assign-macvlan]",
     "an interface on the node's network is not allowed"},
};
static const struct refused of_container[] = {
    {"'ports':[{'containerPort':53},{'containerPort':53,'protocol':'UDP','hostPort':53}]",
     "ports[1].hostPort", "Host ports are not allowed to be used"},
    {"'securityContext':{'privileged':true}", "securityContext.privileged",
     "Privileged containers are not allowed"},
    {"'securityContext':{'allowPrivilegeEscalation':true}",
     "securityContext.allowPrivilegeEscalation", "Allowing privilege escalation"},
    {"'securityContext':{'capabilities':{'add':['NET_BIND_SERVICE','SYS_ADMIN']}}",
     "securityContext.capabilities.add[1]", "capability may not be added"},
    {"'securityContext':{'capabilities':{'add':['ALL']}}", "securityContext.capabilities.add[0]",
     "capability may not be added"},
    {"'securityContext':{'runAsUser':0}", "securityContext.runAsUser", "must be in the range"},
    {"'securityContext':{'runAsUser':-1}", "securityContext.runAsUser", "must be in the range"},
    {"'securityContext':{'capabilities':{'add':['NET_RAW'],'drop':['ALL']}}",
     "securityContext.capabilities.add[0]", "capability may not be added"},
    {"'securityContext':{'seccompProfile':{'type':'Unconfined'}}", "securityContext.seccompProfile",
     "unconfined is not an allowed seccomp profile"},
    {"'securityContext':{'seccompProfile':{'type':'Localhost','localhostProfile':'x'}}",
     "securityContext.seccompProfile", "localhost/x is not an allowed seccomp profile"},
    {"'securityContext':{'appArmorProfile':{'type':'Localhost','localhostProfile':'x'}}",
     "securityContext.appArmorProfile.type", "only the profile RuntimeDefault is allowed"},
    {"'securityContext':{'seLinuxOptions':{'level':'s0:c1,c0'}}",
     "securityContext.seLinuxOptions.level", "must be s0:c3,c2"},
    {"'securityContext':{'procMount':'Unmasked'}", "securityContext.procMount",
     "only the mount Default is allowed"},
    {"'securityContext':{'windowsOptions':{'hostProcess':true}}",
     "securityContext.windowsOptions.hostProcess", "Host processes are not allowed"},
    {"'volumeMounts':[{'name':'v','mountPath':'/v','mountPropagation':'Bidirectional'}]",
     "volumeMounts[0].mountPropagation", "mounts are not allowed to reach the node"},
    {"'livenessProbe':{'httpGet':{'port':80,'host':'127.0.0.1'}}", "livenessProbe.httpGet.host",
     "the node may only connect to the pod itself"},
    {"'readinessProbe':{'tcpSocket':{'port':80,'host':'10.0.0.1'}}",
     "readinessProbe.tcpSocket.host", "the node may only connect to the pod itself"},
    {"'startupProbe':{'httpGet':{'port':80,'host':'node'}}", "startupProbe.httpGet.host",
     "the node may only connect to the pod itself"},
    {"'lifecycle':{'postStart':{'httpGet':{'port':80,'host':'node'}}}",
     "lifecycle.postStart.httpGet.host", "the node may only connect to the pod itself"},
    {"'lifecycle':{'preStop':{'tcpSocket':{'port':80,'host':'node'}}}",
     "lifecycle.preStop.tcpSocket.host", "the node may only connect to the pod itself"},
};
static const char *const container_lists[] = {"containers", "initContainers",
                                              "ephemeralContainers"};

/* One case in one place: the annotations and the spec of a pod, and the cause. */
struct one {
    char *annotations, *spec, *field;
    const char *why;
};

static void one_donep(struct one *o)
{
    free(o->annotations);
    free(o->spec);
    free(o->field);
}

#define GOOD "'containers':[{'name':'c','image':'i'}]"

static size_t n_cases(void)
{
    return ARRAY_SIZE(of_spec) + ARRAY_SIZE(of_annotations) +
           ARRAY_SIZE(of_container) * ARRAY_SIZE(container_lists);
}

static struct one case_at(size_t i)
{
    if (i < ARRAY_SIZE(of_spec)) {
        return (struct one){xstrdup(""), xasprintf(GOOD ",%s", of_spec[i].member),
                            xstrdup(of_spec[i].field), of_spec[i].why};
    }
    i -= ARRAY_SIZE(of_spec);
    if (i < ARRAY_SIZE(of_annotations)) {
        return (struct one){xstrdup(of_annotations[i].member), xstrdup(GOOD),
                            xstrdup(of_annotations[i].field), of_annotations[i].why};
    }
    i -= ARRAY_SIZE(of_annotations);
    const struct refused *r = &of_container[i % ARRAY_SIZE(of_container)];
    size_t k = i / ARRAY_SIZE(of_container);
    const char *list = container_lists[k];
    /* The second of its list, so that the first cannot stand for all. */
    return (struct one){xstrdup(""),
                        k == 0 ? xasprintf("'containers':[{'name':'c','image':'i'},"
                                           "{'name':'d','image':'i',%s}]",
                                           r->member)
                               : xasprintf(GOOD ",'%s':[{'name':'a','image':'i'},"
                                                "{'name':'d','image':'i',%s}]",
                                           list, r->member),
                        xasprintf("spec.%s[1].%s", list, r->field), r->why};
}

/* Whether the answer is a refusal that names the field, in its message and in its causes. */
static void check_refusal(const struct answer *a, const char *field, const char *why)
{
    CLEANUP_FREE char *text = xasprintf("provider restricted: %s: ", field);
    const struct json *c, *causes = json_path(a->body, "details", "causes", NULL);
    bool told = false;
    JSON_FOREACH (c, causes) {
        told |= streq(json_path_string(c, "field", NULL), field) &&
                strstr(json_path_string(c, "message", NULL), why) != NULL;
    }
    if (a->status != 403 || !told || !strstr(at(a, "message"), text)) {
        fail_msg("%s: %s: %d: %s", field, why, a->status, a->text);
    }
}

static char *pod_of(const struct one *o, const char *name)
{
    return xasprintf("{'metadata':{'name':'%s','annotations':{%s}},'spec':{%s}}", name,
                     o->annotations, o->spec);
}

static void a_pod_gets_no_more_than_restricted_on_creation(void **state)
{
    struct harness *h = *state;
    for (size_t i = 0; i < n_cases(); i++) {
        CLEANUP(one_done) struct one o = case_at(i);
        CLEANUP_FREE char *name = xasprintf("p%zu", i);
        CLEANUP_FREE char *body = pod_of(&o, name);
        CLEANUP_ANSWER struct answer a = by(h, "eve", "POST", PODS, body);
        check_refusal(&a, o.field, o.why);
    }
    CLEANUP_ANSWER struct answer none = by(h, "eve", "GET", PODS, NULL);
    assert_int_equal(json_count(json_get(none.body, "items")), 0);
}

static void a_pod_gets_no_more_than_restricted_by_an_update(void **state)
{
    struct harness *h = *state;
    check_by(h, "eve", "POST", PODS, "{'metadata':{'name':'good'},'spec':{" GOOD "}}", 201, NULL);
    for (size_t i = 0; i < n_cases(); i++) {
        CLEANUP(one_done) struct one o = case_at(i);
        CLEANUP_FREE char *put = pod_of(&o, "good");
        CLEANUP_FREE char *patch =
            xasprintf("{'metadata':{'annotations':{%s}},'spec':{%s}}", o.annotations, o.spec);
        if (streq(o.field, "spec.hostNetwork")) {
            continue; /* No update changes it, whoever asks. */
        }
        CLEANUP_ANSWER struct answer a = by(h, "eve", "PUT", PODS "/good", put);
        check_refusal(&a, o.field, o.why);
        CLEANUP_ANSWER struct answer b = by(h, "eve", "PATCH", PODS "/good", patch);
        check_refusal(&b, o.field, o.why);
    }
}

static void an_annotation_alone_is_judged(void **state)
{
    struct harness *h = *state;
    check_by(h, "eve", "POST", PODS, "{'metadata':{'name':'good'},'spec':{" GOOD "}}", 201, NULL);
    for (size_t i = 0; i < ARRAY_SIZE(of_annotations); i++) {
        CLEANUP_FREE char *patch =
            xasprintf("{'metadata':{'annotations':{%s}}}", of_annotations[i].member);
        CLEANUP_ANSWER struct answer a = by(h, "eve", "PATCH", PODS "/good", patch);
        check_refusal(&a, of_annotations[i].field, of_annotations[i].why);
    }
}

static void apply_and_generated_names_are_no_way_round(void **state)
{
    struct harness *h = *state;
    static const char apply[] = "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":"
                                "\"x\"},\"spec\":{\"hostPID\":true,\"containers\":[{\"name\":\"c\","
                                "\"image\":\"i\"}]}}";
    CLEANUP_ANSWER struct answer a =
        ask_as(h, "eve", "PATCH", PODS "/x?fieldManager=m", "application/apply-patch+yaml", apply);
    check_refusal(&a, "spec.hostPID", "Host PID");
    CLEANUP_ANSWER struct answer b =
        by(h, "eve", "POST", PODS,
           "{'metadata':{'generateName':'x-'},'spec':{'hostPID':true," GOOD "}}");
    check_refusal(&b, "spec.hostPID", "Host PID");
    check_by(h, "eve", "POST", PODS "?dryRun=All",
             "{'metadata':{'name':'x'},'spec':{'hostPID':true," GOOD "}}", 403, NULL);
}

static void every_field_is_named_at_once(void **state)
{
    struct harness *h = *state;
    static const char *const unusable[] = {"nonroot-v2",     "nonroot",     "hostmount-anyuid",
                                           "hostnetwork-v2", "hostnetwork", "hostaccess",
                                           "privileged"};
    CLEANUP_STRBUF struct strbuf want = STRBUF_INIT;
    strbuf_adds(&want,
                "pods \"x\" is forbidden: unable to validate against any security context "
                "constraint: [provider \"anyuid\": Forbidden: not usable by user or "
                "serviceaccount, provider \"restricted-v2\": Forbidden: not usable by user or "
                "serviceaccount, provider restricted: spec.hostNetwork: Invalid value: true: Host "
                "network is not allowed to be used, provider restricted: "
                "spec.containers[0].ports[0].hostPort: Invalid value: 53: Host ports are not "
                "allowed to be used, provider restricted: spec.volumes[0]: Invalid value: "
                "\"hostPath\": hostPath volumes are not allowed to be used");
    for (size_t i = 0; i < ARRAY_SIZE(unusable); i++) {
        strbuf_addf(&want, ", provider \"%s\": Forbidden: not usable by user or serviceaccount",
                    unusable[i]);
    }
    strbuf_adds(&want, "]; change the pod, or ask an administrator for constraints that allow it: "
                       "tenet adm policy add-scc-to-user SCC -z default -n red");
    CLEANUP_ANSWER struct answer a =
        by(h, "eve", "POST", PODS,
           "{'metadata':{'name':'x'},'spec':{'hostNetwork':true,'volumes':[{'name':'v',"
           "'hostPath':{'path':'/'}}],'containers':[{'name':'c','image':'i','ports':["
           "{'containerPort':53,'hostPort':53}]}]}}");
    assert_int_equal(a.status, 403);
    assert_string_equal(at(&a, "message"), strbuf_cstr(&want));
    assert_int_equal(json_count(json_path(a.body, "details", "causes", NULL)), 3);
}

/* ---- what is allowed ---- */

static void what_restricted_gives_is_allowed(void **state)
{
    struct harness *h = *state;
    static const char *const specs[] = {
        GOOD,
        GOOD ",'hostNetwork':false,'hostPID':false,'hostIPC':null,'hostUsers':false",
        GOOD ",'nodeName':'n1','tolerations':[{'operator':'Exists'}],'priority':0,"
             "'shareProcessNamespace':true",
        GOOD
        ",'volumes':[{'name':'a','configMap':{'name':'m'}},{'name':'b','emptyDir':{}},"
        "{'name':'c','downwardAPI':{}},{'name':'d','secret':{'secretName':'s'}},"
        "{'name':'e','persistentVolumeClaim':{'claimName':'c'}},"
        "{'name':'f','projected':{'sources':[]}},{'name':'g'},"
        "{'name':'h','image':{'reference':'r'}},{'name':'i','ephemeral':{'volumeClaimTemplate':{"
        "'spec':{'accessModes':['ReadWriteOnce'],'resources':{'requests':{'storage':'1Gi'}}}}}}"
        "]",
        GOOD ",'securityContext':{'runAsUser':1000010000,'runAsGroup':0,'supplementalGroups':[0],"
             "'fsGroup':1000010000,'seLinuxOptions':{'level':'s0:c2,c3'},"
             "'seccompProfile':{'type':'RuntimeDefault'},"
             "'sysctls':[{'name':'net.ipv4.ip_unprivileged_port_start','value':'0'}]}",
        "'securityContext':{'runAsUser':1000019999},'containers':[{'name':'c','image':'i',"
        "'securityContext':{'runAsNonRoot':false}}]",
        "'containers':[{'name':'c','image':'i','ports':[{'containerPort':80,'hostPort':0}],"
        "'securityContext':{'capabilities':{'drop':['ALL']},"
        "'runAsUser':1000010001,'runAsNonRoot':false,'privileged':false,'procMount':'Default'},"
        "'livenessProbe':{'httpGet':{'port':80}},"
        "'volumeMounts':[{'name':'v','mountPath':'/v','mountPropagation':'HostToContainer'}]}],"
        "'volumes':[{'name':'v'}]",
    };
    for (size_t i = 0; i < ARRAY_SIZE(specs); i++) {
        CLEANUP_FREE char *body =
            xasprintf("{'metadata':{'name':'ok%zu','annotations':{"
                      "'seccomp.security.alpha.kubernetes.io/pod':'runtime/default',"
                      "'example.com/x':'unconfined'}},'spec':{%s}}",
                      i, specs[i]);
        check_by(h, "eve", "POST", PODS, body, 201, NULL);
    }
}

static void what_is_left_open_is_filled_in(void **state)
{
    struct harness *h = *state;
    CLEANUP_ANSWER struct answer a =
        by(h, "eve", "POST", PODS,
           "{'metadata':{'name':'x'},'spec':{'initContainers':[{'name':'a','image':'i',"
           "'securityContext':{'runAsUser':1000010005,'capabilities':{'drop':['ALL']}}}],"
           "'containers':[{'name':'c','image':'i','securityContext':{'capabilities':"
           "{'drop':['CHOWN','KILL']}}}]}}");
    assert_int_equal(a.status, 201);
    assert_string_equal(at(&a, "spec.securityContext.seccompProfile.type"), "RuntimeDefault");
    assert_string_equal(at(&a, "spec.securityContext.seLinuxOptions.level"), "s0:c3,c2");
    assert_non_null(strstr(a.text, "\"fsGroup\":1000010000"));
    assert_non_null(strstr(a.text, "\"openshift.io/scc\":\"restricted\""));
    const struct json *spec = json_get(a.body, "spec");
    for (size_t i = 0; i < 2; i++) {
        const struct json *list = json_get(spec, i ? "initContainers" : "containers");
        const struct json *context = json_get(json_at(list, 0), "securityContext");
        CLEANUP_FREE char *drop = json_to_text(json_path(context, "capabilities", "drop", NULL));
        assert_true(json_is(json_get(context, "allowPrivilegeEscalation"), JSON_BOOL));
        assert_false(json_get_bool(json_get(context, "allowPrivilegeEscalation"), true));
        assert_true(json_get_bool(json_get(context, "runAsNonRoot"), false));
        assert_int_equal(json_get_int_or(json_get(context, "runAsUser"), 0),
                         i ? 1000010005 : 1000010000);
        assert_string_equal(drop, i ? "[\"ALL\"]"
                                    : "[\"CHOWN\",\"KILL\",\"MKNOD\",\"SETGID\",\"SETUID\"]");
    }
    /* An update fills nothing in: it may not change these settings. */
    check_by(h, "eve", "PUT", PODS "/x",
             "{'metadata':{'name':'x'},'spec':{'initContainers':[{'name':'a','image':'i'}],"
             "'containers':[{'name':'c','image':'j'}]}}",
             403, "it would change the pod, which an update may not");
    check_by(h, "eve", "PATCH", PODS "/x", "{'spec':{'activeDeadlineSeconds':5}}", 200,
             "\"openshift.io/scc\":\"restricted\"");
    /* An administrator's pods run as any user. */
    CLEANUP_ANSWER struct answer c =
        ask(h, "POST", PODS,
            "{\"metadata\":{\"name\":\"y\"},\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":"
            "\"i\"}]}}");
    assert_int_equal(c.status, 201);
    assert_non_null(strstr(c.text, "\"openshift.io/scc\":\"anyuid\""));
    assert_null(strstr(c.text, "allowPrivilegeEscalation"));
    assert_null(strstr(c.text, "runAsUser"));
}

/* ---- who is exempt ---- */

#define WILD "{'metadata':{'name':'%s'},'spec':{'hostPID':true,'serviceAccountName':'%s'," GOOD "}}"

static void leave_is_the_verb_use_of_user_or_account_in_the_namespace(void **state)
{
    struct harness *h = *state;
    static const char rbac[] = "/apis/rbac.authorization.k8s.io/v1";
    CLEANUP_FREE char *bindings = xasprintf("%s/namespaces/red/rolebindings", rbac);
    CLEANUP_FREE char *roles = xasprintf("%s/clusterroles", rbac);
    CLEANUP_FREE char *others = xasprintf("%s/namespaces/blue/rolebindings", rbac);
    by_master(h, "POST", roles,
              "{'metadata':{'name':'scc'},'rules':[{'verbs':['use'],'apiGroups':"
              "['security.openshift.io'],'resources':['securitycontextconstraints'],"
              "'resourceNames':['privileged']}]}");
    by_master(h, "POST", roles,
              "{'metadata':{'name':'other'},'rules':[{'verbs':['use'],'apiGroups':"
              "['security.openshift.io'],'resources':['securitycontextconstraints'],"
              "'resourceNames':['anyuid']},{'verbs':['get','create'],'apiGroups':"
              "['security.openshift.io'],'resources':['securitycontextconstraints']}]}");
    static const char binding[] =
        "{'metadata':{'name':'%s'},'roleRef':{'apiGroup':'rbac.authorization.k8s.io','kind':"
        "'ClusterRole','name':'%s'},'subjects':[{'kind':'ServiceAccount','name':'%s','namespace':"
        "'%s'}]}";
    const struct {
        const char *path, *name, *role, *account, *ns;
    } given[] = {
        {bindings, "ours", "scc", "strong", "red"},
        {bindings, "weak", "other", "weak", "red"},
        {bindings, "theirs", "scc", "guest", "blue"},
        {others, "elsewhere", "scc", "abroad", "red"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(given); i++) {
        CLEANUP_FREE char *body =
            xasprintf(binding, given[i].name, given[i].role, given[i].account, given[i].ns);
        by_master(h, "POST", given[i].path, body);
    }
    give_role(h, "blue", "eve", "scc");
    const struct {
        const char *account;
        int want;
    } cases[] = {{"strong", 201}, {"weak", 403}, {"guest", 403}, {"abroad", 403}, {"default", 403}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *body = xasprintf(WILD, cases[i].account, cases[i].account);
        check_by(h, "eve", "POST", PODS, body, cases[i].want, NULL);
    }
    /* The old name of the field is as good as the new one, which counts where they differ. */
    check_by(h, "eve", "POST", PODS,
             "{'metadata':{'name':'old'},'spec':{'hostPID':true,'serviceAccount':'strong'," GOOD
             "}}",
             201, "\"serviceAccountName\":\"strong\"");
    check_by(h, "eve", "POST", PODS,
             "{'metadata':{'name':'z'},'spec':{'hostPID':true,'serviceAccount':'strong',"
             "'serviceAccountName':'weak'," GOOD "}}",
             403, NULL);
    give_role(h, "red", "eve", "scc");
    CLEANUP_FREE char *body = xasprintf(WILD, "now", "default");
    check_by(h, "eve", "POST", PODS, body, 201, NULL);
}

static void roles_of_projects_have_no_such_leave(void **state)
{
    struct harness *h = *state;
    CLEANUP_FREE char *body = xasprintf(WILD, "x", "default");
    check_by(h, "ada", "POST", PODS, body, 403, "unable to validate");
    check_by(h, "vic", "POST", PODS, body, 403, "cannot create resource");
    /* cluster-admin in the project has it. */
    give_role(h, "red", "joe", "cluster-admin");
    check_by(h, "joe", "POST", PODS, body, 201, NULL);
}

static void an_administrators_pod_can_be_labelled_but_not_changed(void **state)
{
    struct harness *h = *state;
    by_master(h, "POST", PODS,
              "{'metadata':{'name':'x','annotations':{'seccomp.security.alpha.kubernetes.io/pod':"
              "'unconfined'}},'spec':{'hostNetwork':true," GOOD "}}");
    check_by(h, "eve", "PATCH", PODS "/x",
             "{'metadata':{'labels':{'a':'b'},'annotations':{'example.com/c':'d'}}}", 200, NULL);
    check_by(h, "eve", "PATCH", PODS "/x", "{'spec':{'activeDeadlineSeconds':5}}", 403,
             "spec.hostNetwork");
    check_by(h, "eve", "PATCH", PODS "/x",
             "{'metadata':{'annotations':{'seccomp.security.alpha.kubernetes.io/pod':'localhost/"
             "x'}}}",
             403, "seccomp");
    /* To take away what was refused is no way in, either: the rest would be as it was. */
    check_by(h, "eve", "PATCH", PODS "/x",
             "{'metadata':{'annotations':{'seccomp.security.alpha.kubernetes.io/pod':null}}}", 403,
             "spec.hostNetwork");
    by_master(h, "PATCH", PODS "/x", "{'spec':{'activeDeadlineSeconds':5}}");
    by_master(h, "PATCH", PODS "/x/status", "{'status':{'phase':'Running'}}");
    check_by(h, "eve", "DELETE", PODS "/x", NULL, 200, NULL);
}

/* ---- templates ---- */

#define CONFIGS "/apis/apps.openshift.io/v1/namespaces/red/deploymentconfigs"

static char *config_of(const char *name, const char *annotations, const char *spec)
{
    return xasprintf("{'apiVersion':'apps.openshift.io/v1','kind':'DeploymentConfig','metadata':"
                     "{'name':'%s'},'spec':{'selector':{'a':'b'},'template':{'metadata':{'labels':{"
                     "'a':'b'},'annotations':{%s}},'spec':{%s}}}}",
                     name, annotations, spec);
}

/* The whole reply to a request by the user, with its headers; owned. */
static char *reply_by(struct harness *h, const char *user, const char *method, const char *path,
                      const char *body)
{
    CLEANUP_FREE char *json = quoted(body);
    CLEANUP_FREE char *text =
        xasprintf("%s %s HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer loopback\r\n"
                  "Impersonate-User: %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
                  "Connection: close\r\n\r\n%s",
                  method, path, user,
                  streq(method, "PATCH") ? "application/merge-patch+json" : "application/json",
                  strlen(json), json);
    return ask_raw(h, text);
}

/* Checks the status, and that there is a warning about pods with this text (NULL: none). */
static void check_warning(struct harness *h, const char *method, const char *path, const char *body,
                          const char *status, const char *warning)
{
    CLEANUP_FREE char *reply = reply_by(h, "eve", method, path, body);
    const char *told = strstr(reply, "pods of this template would be refused");
    if (!strstr(reply, status) || (warning ? !told || !strstr(told, warning) : told != NULL)) {
        fail_msg("%s %s: not %s with %s, but %s", method, path, status, warning ? warning : "none",
                 reply);
    }
}

static void a_template_is_stored_with_a_warning(void **state)
{
    struct harness *h = *state;
    CLEANUP_FREE char *good = config_of("good", "", GOOD);
    CLEANUP_FREE char *wild = config_of("wild", "", "'hostNetwork':true," GOOD);
    check_warning(h, "POST", CONFIGS, good, " 201 ", NULL);
    CLEANUP_ANSWER struct answer a = by(h, "eve", "GET", CONFIGS "/good", NULL);
    assert_null(strstr(a.text, "fsGroup")); /* Only pods are changed. */
    check_warning(h, "POST", CONFIGS, wild, " 201 ",
                  "provider restricted: spec.template.spec.hostNetwork: Invalid value: true");
    /* An update of something else says nothing about it. */
    check_warning(h, "PATCH", CONFIGS "/wild", "{'spec':{'replicas':3}}", " 200 ", NULL);
    check_warning(h, "PATCH", CONFIGS "/good", "{'spec':{'template':{'spec':{'hostIPC':true}}}}",
                  " 200 ", "pods of this template would be refused");
}

/* A pod of the controller of 'account', as the user who may do everything writes it. */
#define OWNED                                                                                  \
    "{'metadata':{'name':'%s','ownerReferences':[{'apiVersion':'apps/v1','kind':'ReplicaSet'," \
    "'name':'r','uid':'u','controller':%s}]},'spec':{'serviceAccountName':'%s','hostPID':"     \
    "true," GOOD "}}"

static void pods_of_an_all_powerful_controller_have_the_rights_of_their_account(void **state)
{
    struct harness *h = *state;
    give_role(h, "red", "operator", "cluster-admin");
    by_master(h, "POST", "/apis/rbac.authorization.k8s.io/v1/namespaces/red/rolebindings",
              "{'metadata':{'name':'strong'},'roleRef':{'apiGroup':'rbac.authorization.k8s.io',"
              "'kind':'ClusterRole','name':'system:openshift:scc:privileged'},'subjects':[{'kind':"
              "'ServiceAccount','name':'strong','namespace':'red'}]}");
    const struct {
        const char *name, *controller, *account;
        int want;
    } cases[] = {{"weak", "true", "default", 403},
                 {"strong", "true", "strong", 201},
                 {"own", "false", "default", 201}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *body =
            xasprintf(OWNED, cases[i].name, cases[i].controller, cases[i].account);
        CLEANUP_FREE char *text = quoted(body);
        CLEANUP_FREE char *dry = xasprintf("%s?dryRun=All", PODS);
        check_by(h, "operator", "POST", dry, body, cases[i].want, NULL);
        CLEANUP_ANSWER struct answer a = ask(h, "POST", PODS, text);
        assert_int_equal(a.status, cases[i].want);
    }
}

/* The kinds of controllers that are compiled in; %s are members of the pod's spec. */
static const struct {
    const char *path, *field, *body;
} compiled_in[] = {
#define LABELLED "'metadata':{'labels':{'a':'b'}},'spec':{%s" GOOD "}"
#define OWNER "'selector':{'matchLabels':{'a':'b'}},'template':{" LABELLED "}"
    {"/api/v1/namespaces/red/replicationcontrollers", "spec.template.",
     "{'metadata':{'name':'x'},'spec':{'template':{" LABELLED "}}}"},
    {"/apis/apps/v1/namespaces/red/deployments", "spec.template.",
     "{'metadata':{'name':'x'},'spec':{" OWNER "}}"},
    {"/apis/apps/v1/namespaces/red/replicasets", "spec.template.",
     "{'metadata':{'name':'x'},'spec':{" OWNER "}}"},
    {"/apis/apps/v1/namespaces/red/statefulsets", "spec.template.",
     "{'metadata':{'name':'x'},'spec':{" OWNER "}}"},
    {"/apis/apps/v1/namespaces/red/daemonsets", "spec.template.",
     "{'metadata':{'name':'x'},'spec':{" OWNER "}}"},
    {"/apis/batch/v1/namespaces/red/jobs", "spec.template.",
     "{'metadata':{'name':'x'},'spec':{'template':{'spec':{'restartPolicy':'Never',%s" GOOD "}}}}"},
    {"/apis/batch/v1/namespaces/red/cronjobs", "spec.jobTemplate.spec.template.",
     "{'metadata':{'name':'x'},'spec':{'schedule':'@daily','jobTemplate':{'spec':{'template':{"
     "'spec':{'restartPolicy':'Never',%s" GOOD "}}}}}}"},
};

/* The author is told what will happen to the pods, by any verb. */
static void templates_of_the_kinds_of_controllers_are_judged(void **state)
{
    struct harness *h = *state;
    for (size_t i = 0; i < ARRAY_SIZE(compiled_in); i++) {
        const char *path = compiled_in[i].path;
        CLEANUP_FREE char *one = xasprintf("%s/x", path);
        CLEANUP_FREE char *dry = xasprintf("%s?dryRun=All", path);
        CLEANUP_FREE char *good = xasprintf(compiled_in[i].body, "");
        CLEANUP_FREE char *bad = xasprintf(compiled_in[i].body, "'hostNetwork':true,");
        CLEANUP_FREE char *field = xasprintf("%sspec.hostNetwork", compiled_in[i].field);
        check_by(h, "vic", "POST", path, good, 403, "cannot create resource");
        check_warning(h, "POST", dry, bad, " 201 ", field);
        check_warning(h, "POST", path, good, " 201 ", NULL);
        check_by(h, "eve", "PATCH", one, "{'metadata':{'labels':{'l':'v'}}}", 200, NULL);
        check_by(h, "eve", "DELETE", one, NULL, 200, NULL);
    }
}

/* Where templates are, of kinds that are served and of others. */
static const struct {
    const char *group, *plural, *path, *before, *after;
} templates[] = {
    {"apps", "deployments", "spec.template.", "{'spec':{'template':", "}}"},
    {"apps", "replicasets", "spec.template.", "{'spec':{'template':", "}}"},
    {"apps", "statefulsets", "spec.template.", "{'spec':{'template':", "}}"},
    {"apps", "daemonsets", "spec.template.", "{'spec':{'template':", "}}"},
    {"apps.openshift.io", "deploymentconfigs", "spec.template.", "{'spec':{'template':", "}}"},
    {"", "deploymentconfigs", "spec.template.", "{'spec':{'template':", "}}"},
    {"", "replicationcontrollers", "spec.template.", "{'spec':{'template':", "}}"},
    {"", "podtemplates", "template.", "{'template':", "}"},
    {"batch", "jobs", "spec.template.", "{'spec':{'template':", "}}"},
    {"batch", "cronjobs", "spec.jobTemplate.spec.template.",
     "{'spec':{'jobTemplate':{'spec':{'template':", "}}}}"},
    {"batch", "scheduledjobs", "spec.jobTemplate.spec.template.",
     "{'spec':{'jobTemplate':{'spec':{'template':", "}}}}"},
    {"extensions", "deployments", "spec.template.", "{'spec':{'template':", "}}"},
    {"extensions", "daemonsets", "spec.template.", "{'spec':{'template':", "}}"},
    {"extensions", "replicasets", "spec.template.", "{'spec':{'template':", "}}"},
    {"extensions", "jobs", "spec.template.", "{'spec':{'template':", "}}"},
};

static void templates_of_all_kinds_are_found(void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE(templates); i++) {
        const char *path = pod_restrictions_path(templates[i].group, templates[i].plural);
        CLEANUP_FREE char *body = xasprintf("%s{'spec':{'priorityClassName':'system-x'}}%s",
                                            templates[i].before, templates[i].after);
        CLEANUP_FREE char *text = quoted(body);
        CLEANUP_FREE char *field = xasprintf("%sspec.priorityClassName", templates[i].path);
        CLEANUP(json_free) struct json *obj = NULL;
        CLEANUP(api_causes_done) struct api_causes causes = {0};
        assert_int_equal(json_parse(text, strlen(text), &obj, NULL), 0);
        assert_string_equal(path, templates[i].path);
        pod_restrictions_check(pod_restrictions_find(obj, path), path, false, &causes);
        assert_int_equal(causes.n, 1);
        assert_string_equal(causes.list[0].field, field);
    }
    assert_string_equal(pod_restrictions_path("", "pods"), "");
    assert_null(pod_restrictions_path("apps", "pods"));
    assert_null(pod_restrictions_path("", "deployments"));
}

#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_pod_gets_no_more_than_restricted_on_creation),
        T(a_pod_gets_no_more_than_restricted_by_an_update),
        T(an_annotation_alone_is_judged),
        T(apply_and_generated_names_are_no_way_round),
        T(every_field_is_named_at_once),
        T(what_restricted_gives_is_allowed),
        T(what_is_left_open_is_filled_in),
        T(leave_is_the_verb_use_of_user_or_account_in_the_namespace),
        T(roles_of_projects_have_no_such_leave),
        T(an_administrators_pod_can_be_labelled_but_not_changed),
        T(a_template_is_stored_with_a_warning),
        T(pods_of_an_all_powerful_controller_have_the_rights_of_their_account),
        T(templates_of_the_kinds_of_controllers_are_judged),
        cmocka_unit_test(templates_of_all_kinds_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
