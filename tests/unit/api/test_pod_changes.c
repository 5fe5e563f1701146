/* SPDX-License-Identifier: Apache-2.0 */
/* What may change of a pod, of its status and of a template. */
#include "pod_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define OLD                                                                                    \
    "{'spec':{'nodeName':'n','activeDeadlineSeconds':50,'tolerations':[{'key':'a','operator':" \
    "'Exists','effect':'NoExecute','tolerationSeconds':300}],'initContainers':[{'name':'i',"   \
    "'image':'i'}]}}"
#define GATED                                                                          \
    "{'spec':{'schedulingGates':[{'name':'g'},{'name':'h'}],'nodeSelector':{'a':'b'}," \
    "'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{"   \
    "'nodeSelectorTerms':[{'matchExpressions':[{'key':'z','operator':'Exists'}]}]}}}}}"
#define TERMS(t)                                                                              \
    "{'spec':{'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{" \
    "'nodeSelectorTerms':" t "}}}}}"
#define TERM_FIELD                                                               \
    "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution." \
    "nodeSelectorTerms"
#define NO_OTHER(path)                                                                         \
    "Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"      \
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only "    \
    "additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be " \
    "set to 1 if it was previously negative)\nspec." path " was changed"

static void an_update_changes_what_it_may(void **state)
{
    static const struct {
        const char *old, *patch, *field, *says;
    } rows[] = {
        {OLD, "{'metadata':{'labels':{'a':'b'}}}", NULL, NULL},
        {OLD, "{'spec':{'containers':[{'name':'c','image':'i:2','imagePullPolicy':'Always'}]}}",
         NULL, NULL},
        {OLD, "{'spec':{'initContainers':[{'name':'i','image':'i:2','imagePullPolicy':'Always'}]}}",
         NULL, NULL},
        {OLD, "{'spec':{'containers':[{'name':'c','image':''}]}}", "spec.containers[0].image",
         "Required value"},
        {OLD, "{'spec':{'containers':[{'name':'c','image':'i','command':['x']}]}}", "spec",
         NO_OTHER("containers[0].command")},
        {OLD, "{'spec':{'containers':[{'name':'d','image':'i'}]}}", "spec",
         NO_OTHER("containers[0].name")},
        {OLD, "{'spec':{'containers':[{'name':'c','image':'i'},{'name':'d','image':'i'}]}}",
         "spec.containers", "Forbidden: pod updates may not add or remove containers"},
        {OLD, "{'spec':{'initContainers':null}}", "spec.initContainers",
         "Forbidden: pod updates may not add or remove containers"},
        {OLD, "{'spec':{'ephemeralContainers':[{'name':'e','image':'i'}]}}", "spec",
         NO_OTHER("ephemeralContainers")},
        {OLD, "{'spec':{'nodeName':'m'}}", "spec", NO_OTHER("nodeName")},
        {OLD, "{'spec':{'nodeName':null}}", "spec", NO_OTHER("nodeName")},
        {"{}", "{'spec':{'nodeName':'m'}}", "spec", NO_OTHER("nodeName")},
        {OLD, "{'spec':{'hostNetwork':true}}", "spec", NO_OTHER("hostNetwork")},
        {OLD, "{'spec':{'hostNetwork':false}}", NULL, NULL},
        {OLD, "{'spec':{'automountServiceAccountToken':false}}", "spec",
         NO_OTHER("automountServiceAccountToken")},
        {OLD, "{'spec':{'nodeSelector':{'a':'b'}}}", "spec", NO_OTHER("nodeSelector")},
        {OLD, "{'spec':{'volumes':[{'name':'v'}]}}", "spec", NO_OTHER("volumes")},
        {OLD, "{'spec':{'securityContext':{'runAsUser':0}}}", "spec",
         NO_OTHER("securityContext.runAsUser")},
        {OLD,
         "{'spec':{'containers':[{'name':'c','image':'i','resources':{'limits':{'cpu':'1'}}}]"
         "}}",
         "spec", NO_OTHER("containers[0].resources.limits")},
        {OLD, "{'spec':{'activeDeadlineSeconds':50}}", NULL, NULL},
        {OLD, "{'spec':{'activeDeadlineSeconds':49}}", NULL, NULL},
        {"{}", "{'spec':{'activeDeadlineSeconds':49}}", NULL, NULL},
        {OLD, "{'spec':{'activeDeadlineSeconds':51}}", "spec.activeDeadlineSeconds",
         "Invalid value: 51: must be less than or equal to previous value"},
        {OLD, "{'spec':{'activeDeadlineSeconds':null}}", "spec.activeDeadlineSeconds",
         "Invalid value: null: must not update from a positive integer to nil value"},
        {OLD,
         "{'spec':{'tolerations':[{'operator':'Exists'},{'key':'a','operator':'Exists','effect':"
         "'NoExecute','tolerationSeconds':1}]}}",
         NULL, NULL},
        {OLD, "{'spec':{'tolerations':null}}", "spec.tolerations",
         "Forbidden: existing toleration can not be modified except its tolerationSeconds"},
        {OLD, "{'spec':{'tolerations':[{'key':'a','operator':'Exists'}]}}", "spec.tolerations",
         "Forbidden: existing toleration can not be modified except its tolerationSeconds"},
        {"{'spec':{'terminationGracePeriodSeconds':-3}}",
         "{'spec':{'terminationGracePeriodSeconds':1}}", NULL, NULL},
        {"{'spec':{'terminationGracePeriodSeconds':-3}}",
         "{'spec':{'terminationGracePeriodSeconds':2}}", "spec",
         NO_OTHER("terminationGracePeriodSeconds")},
        {"{}", "{'spec':{'terminationGracePeriodSeconds':1}}", "spec",
         NO_OTHER("terminationGracePeriodSeconds")},
        {OLD, "{'spec':{'schedulingGates':[{'name':'x'}]}}", "spec.schedulingGates[0].name",
         "Forbidden: only deletion is allowed, but found new scheduling gate 'x'"},
        {GATED, "{'spec':{'schedulingGates':[{'name':'h'}]}}", NULL, NULL},
        {GATED, "{'spec':{'schedulingGates':null}}", NULL, NULL},
        {GATED, "{'spec':{'nodeSelector':{'c':'d'}}}", NULL, NULL},
        {GATED, "{'spec':{'nodeSelector':{'a':'c'}}}", "spec.nodeSelector",
         "Invalid value: {\"a\":\"c\"}: only additions to spec.nodeSelector are allowed (no "
         "mutations or deletions)"},
        {GATED,
         TERMS("[{'matchExpressions':[{'key':'z','operator':'Exists'},{'key':'y',"
               "'operator':'Exists'}]}]"),
         NULL, NULL},
        {GATED, TERMS("[{'matchExpressions':[{'key':'y','operator':'Exists'}]}]"), TERM_FIELD "[0]",
         "Invalid value: {\"matchExpressions\":[{\"key\":\"y\",\"operator\":\"Exists\"}]}: only "
         "additions are allowed (no mutations or deletions)"},
        {GATED, TERMS("[{'matchFields':[]},{}]"), TERM_FIELD,
         "Invalid value: [{\"matchFields\":[]},{}]: no additions/deletions to non-empty "
         "NodeSelectorTerms list are allowed"},
        {GATED, "{'spec':{'affinity':{'podAffinity':{}}}}", NULL, NULL},
        {GATED,
         "{'spec':{'affinity':{'podAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':[{"
         "'topologyKey':'z'}]}}}}",
         "spec", NO_OTHER("affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution")},
        {"{'metadata':{'annotations':{'kubernetes.io/config.mirror':'m'}},'spec':{'nodeName':'n'}}",
         "{'metadata':{'annotations':{'kubernetes.io/config.mirror':'x'}}}",
         "metadata.annotations[kubernetes.io/config.mirror]",
         "Forbidden: may not remove or update mirror pod annotation"},
        {OLD, "{'metadata':{'annotations':{'kubernetes.io/config.mirror':'x'}}}",
         "metadata.annotations[kubernetes.io/config.mirror]",
         "Forbidden: may not add mirror pod annotation"},
        {OLD,
         "{'metadata':{'annotations':{'container.apparmor.security.beta.kubernetes.io/c':''}}}",
         "metadata.annotations[container.apparmor.security.beta.kubernetes.io/c]",
         "Forbidden: may not add AppArmor annotations"},
        {"{'metadata':{'annotations':{'container.apparmor.security.beta.kubernetes.io/c':"
         "'localhost/a'}}}",
         "{'metadata':{'annotations':null}}",
         "metadata.annotations[container.apparmor.security.beta.kubernetes.io/c]",
         "Forbidden: may not remove or update AppArmor annotations"},
        {OLD, "{'metadata':{'annotations':{'controller.kubernetes.io/pod-deletion-cost':'x'}}}",
         "metadata.annotations[controller.kubernetes.io/pod-deletion-cost]",
         "Invalid value: \"x\": must be a 32bit integer"},
        {OLD, "{'metadata':{'annotations':{'controller.kubernetes.io/pod-deletion-cost':'7'}}}",
         NULL, NULL},
    };
    const struct api_kind *k = rig_kind("pods");
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP(json_free) struct json *old = rig_stored("pods", SAMPLE, rows[i].old);
        CLEANUP(json_free) struct json *patch = rig_parse(rows[i].patch);
        CLEANUP(api_causes_done) struct api_causes c = {0};
        struct json *obj = json_clone(old);
        api_patch_merge(&obj, patch);
        rig_complete(k, obj, old);
        api_validate_object(k, obj, old, &c);
        json_free(obj);
        rig_expect(&c, rows[i].patch, rows[i].field, rows[i].says);
    }
}

/* A pod that a server without some rule or default stored can still be labelled, and get a status. */
static void a_pod_that_is_older_than_a_rule_can_be_changed(void **state)
{
    const struct api_kind *k = rig_kind("pods");
    CLEANUP(json_free)
    struct json *old =
        rig_parse("{'metadata':{'name':'p','namespace':'red'},'spec':{'nodeName':'n',"
                  "'containers':[{'name':'c'}]},'status':{'phase':'Running'}}");
    CLEANUP(json_free) struct json *obj = json_clone(old);
    CLEANUP(api_causes_done) struct api_causes c = {0};
    json_set_string(json_ensure_object(json_get(obj, "metadata"), "labels"), "a", "b");
    rig_complete(k, obj, old);
    api_validate_object(k, obj, old, &c);
    rig_expect(&c, "label", NULL, NULL);
    CLEANUP(json_free) struct json *wish = json_clone(old);
    json_set_string(json_get(wish, "status"), "podIP", "10.1.0.2");
    CLEANUP(json_free) struct json *out = json_clone(old);
    k->merge_part("status", out, wish);
    api_validate_part(k, "status", out, old, &c);
    rig_expect(&c, "status", NULL, NULL);
}

static void a_template_that_is_older_than_a_rule_stays(void **state)
{
    static const char *const kinds[] = {
        "deployments", "replicasets", "daemonsets", "statefulsets", "replicationcontrollers",
        "jobs",        "podtemplates"};
    static const char text[] =
        "{'metadata':{'name':'p','namespace':'red'},'spec':{'selector':{%s},'manualSelector':true,"
        "'template':%s},'template':%s}";
    static const char template[] = "{'metadata':{'labels':{'a':'b'}},'spec':{'restartPolicy':'%s',"
                                   "'containers':[{'name':'c'}]}}";
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        const struct api_kind *k = rig_kind(kinds[i]);
        bool plain = streq(kinds[i], "replicationcontrollers");
        CLEANUP_FREE char *t = xasprintf(template, streq(kinds[i], "jobs") ? "Never" : "Always");
        CLEANUP_FREE char *whole =
            xasprintf(text, plain ? "'a':'b'" : "'matchLabels':{'a':'b'}", t, t);
        CLEANUP(json_free) struct json *old = rig_stored(kinds[i], whole, NULL);
        api_schema_prune(k->schema, old, NULL);
        CLEANUP(json_free) struct json *obj = json_clone(old);
        CLEANUP(api_causes_done) struct api_causes fresh = {0};
        CLEANUP(api_causes_done) struct api_causes c = {0};
        bool bare = streq(kinds[i], "podtemplates");
        api_validate_object(k, obj, NULL, &fresh);
        rig_expect(&fresh, kinds[i],
                   bare ? "template.spec.containers[0].image"
                        : "spec.template.spec.containers[0].image",
                   "Required value");
        json_set_string(json_ensure_object(json_get(obj, "metadata"), "labels"), "c", "d");
        api_validate_object(k, obj, old, &c);
        rig_expect(&c, kinds[i], NULL, NULL);
    }
}

static void a_status_keeps_its_rules(void **state)
{
#define ENDED "{'name':'c','state':{'terminated':{'exitCode':%d}}}"
    static const struct {
        const char *policy, *before, *after, *field, *says;
    } rows[] = {
        {"Always", "", "'podIP':'10.1.0.2','podIPs':[{'ip':'10.1.0.2'},{'ip':'::1'}]", NULL, NULL},
        {"Always", "", "'podIP':'10.1.0.2','podIPs':[{'ip':'10.1.0.3'}]", "status.podIPs[0].ip",
         "Invalid value: \"10.1.0.3\": must be the same as status.podIP"},
        {"Always", "", "'podIP':'10.1.0.2','podIPs':[{'ip':'10.1.0.2'},{'ip':'10.1.0.3'}]",
         "status.podIPs",
         "Invalid value: [{\"ip\":\"10.1.0.2\"},{\"ip\":\"10.1.0.3\"}]: may specify no more than "
         "one IP for each IP family"},
        {"Always", "", "'podIPs':[{'ip':'x'}]", "status.podIPs[0].ip",
         "Invalid value: \"x\": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"},
        {"Always", "", "'hostIP':'10.1.0.2','hostIPs':[{'ip':'10.1.0.3'}]", "status.hostIPs[0].ip",
         "Invalid value: \"10.1.0.3\": must be equal to `hostIP`"},
        {"Always", "", "'hostIP':'10.1.0.2','hostIPs':[{'ip':'10.1.0.2'},{'ip':'10.1.0.3'}]",
         "status.hostIPs",
         "Invalid value: [{\"ip\":\"10.1.0.2\"},{\"ip\":\"10.1.0.3\"}]: may specify no more than "
         "one IP for each IP family"},
        {"Always", "", "'nominatedNodeName':'A'", "status.nominatedNodeName",
         "Invalid value: \"A\": a lowercase RFC 1123 subdomain must consist of lower case "
         "alphanumeric characters, '-' or '.', and must start and end with an alphanumeric "
         "character (e.g. 'example.com', regex used for validation is "
         "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"},
        {"Always", "", "'qosClass':'Guaranteed'", "status.qosClass",
         "Invalid value: \"Guaranteed\": field is immutable"},
        {"Always", "", "'conditions':[{'type':'a/b/c','status':'True'}]",
         "status.conditions[0].type",
         "Invalid value: \"a/b/c\": name part must consist of alphanumeric characters, '-', '_' or "
         "'.', and must start and end with an alphanumeric character (e.g. 'MyName',  or "
         "'my.name',  or '123-abc', regex used for validation is "
         "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"},
        {"Always", "", "'resourceClaimStatuses':[{'name':'x'}]",
         "status.resourceClaimStatuses[0].name",
         "Invalid value: \"x\": must match the name of an entry in `spec.resourceClaims`"},
        {"Never", "{'name':'c','state':{'terminated':{'exitCode':1}}}",
         "'containerStatuses':[{'name':'c','state':{'running':{}}}]",
         "status.containerStatuses[0].state",
         "Forbidden: may not be transitioned to non-terminated state"},
        {"OnFailure", "{'name':'c','state':{'terminated':{'exitCode':0}}}",
         "'containerStatuses':[{'name':'c','state':{'waiting':{}}}]",
         "status.containerStatuses[0].state",
         "Forbidden: may not be transitioned to non-terminated state"},
        {"OnFailure", "{'name':'c','state':{'terminated':{'exitCode':1}}}",
         "'containerStatuses':[{'name':'c','state':{'running':{}}}]", NULL, NULL},
        {"Always", "{'name':'c','state':{'terminated':{'exitCode':0}}}",
         "'containerStatuses':[{'name':'c','state':{'running':{}}}]", NULL, NULL},
    };
    const struct api_kind *k = rig_kind("pods");
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP_FREE char *policy = xasprintf("{'spec':{'restartPolicy':'%s'}}", rows[i].policy);
        CLEANUP(json_free) struct json *old = rig_stored("pods", SAMPLE, policy);
        CLEANUP(json_free) struct json *out = json_clone(old);
        CLEANUP_FREE char *text = xasprintf("{'status':{'phase':'Running',%s}}", rows[i].after);
        CLEANUP(json_free) struct json *wish = rig_parse(text);
        CLEANUP(api_causes_done) struct api_causes c = {0};
        if (*rows[i].before) {
            json_append(json_ensure_array(json_get(old, "status"), "containerStatuses"),
                        rig_parse(rows[i].before));
        }
        k->merge_part("status", out, wish);
        api_typed_complete(k->schema, out);
        api_validate_part(k, "status", out, old, &c);
        rig_expect(&c, text, rows[i].field, rows[i].says);
        if (!rows[i].field) {
            assert_string_equal(json_path_string(out, "status", "qosClass", NULL), "BestEffort");
        }
    }
}

static void a_status_has_its_address_in_both_fields(void **state)
{
    static const struct {
        const char *given, *ip, *ips;
    } rows[] = {
        {"{'status':{'podIP':'10.1.0.2'}}", "10.1.0.2", "[{\"ip\":\"10.1.0.2\"}]"},
        {"{'status':{'podIPs':[{'ip':'10.1.0.2'},{'ip':'::1'}]}}", "10.1.0.2",
         "[{\"ip\":\"10.1.0.2\"},{\"ip\":\"::1\"}]"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP(json_free) struct json *out = rig_stored("pods", SAMPLE, NULL);
        CLEANUP(json_free) struct json *wish = rig_parse(rows[i].given);
        rig_kind("pods")->merge_part("status", out, wish);
        CLEANUP_FREE char *ips = json_to_text(json_path(out, "status", "podIPs", NULL));
        assert_string_equal(json_path_string(out, "status", "podIP", NULL), rows[i].ip);
        assert_string_equal(ips, rows[i].ips);
    }
}

static void ephemeral_containers_are_added_and_stay(void **state)
{
#define EPHEMERAL(more) "[{'name':'e','image':'i'" more "}]"
    static const char no[] = "Forbidden: cannot be set for an Ephemeral Container";
    static const struct {
        const char *before, *after, *field, *says;
    } rows[] = {
        {"[]", EPHEMERAL(""), NULL, NULL},
        {EPHEMERAL(""), "[{'name':'f','image':'i'},{'name':'e','image':'i'}]", NULL, NULL},
        {"[]", EPHEMERAL(",'targetContainerName':'c'"), NULL, NULL},
        {"[]", EPHEMERAL(",'targetContainerName':'x'"),
         "spec.ephemeralContainers[0].targetContainerName", "Not found: \"x\""},
        {"[]", "[{'name':'c','image':'i'}]", "spec.ephemeralContainers[0].name",
         "Duplicate value: \"c\""},
        {"[]", "[{'name':'e'}]", "spec.ephemeralContainers[0].image", "Required value"},
        {"[]", EPHEMERAL(",'ports':[{'containerPort':1}]"), "spec.ephemeralContainers[0].ports",
         no},
        {"[]", EPHEMERAL(",'resources':{'limits':{'cpu':'1'}}"),
         "spec.ephemeralContainers[0].resources", no},
        {"[]", EPHEMERAL(",'livenessProbe':{'exec':{'command':['x']}}"),
         "spec.ephemeralContainers[0].livenessProbe", no},
        {"[]", EPHEMERAL(",'lifecycle':{'preStop':{'exec':{'command':['x']}}}"),
         "spec.ephemeralContainers[0].lifecycle", no},
        {"[]", EPHEMERAL(",'volumeMounts':[{'name':'v','mountPath':'/a','subPath':'b'}]"),
         "spec.ephemeralContainers[0].volumeMounts[0].subPath", no},
        {"[]", EPHEMERAL(",'volumeMounts':[{'name':'w','mountPath':'/a'}]"),
         "spec.ephemeralContainers[0].volumeMounts[0].name", "Not found: \"w\""},
        {EPHEMERAL(""), "[]", "spec.ephemeralContainers",
         "Forbidden: existing ephemeral containers \"e\" may not be removed\n"},
        {EPHEMERAL(""), "[{'name':'e','image':'j'}]", "spec.ephemeralContainers",
         "Forbidden: existing ephemeral containers \"e\" may not be changed\n"},
    };
    const struct api_kind *k = rig_kind("pods");
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP(json_free)
        struct json *fresh = rig_stored("pods", SAMPLE, "{'spec':{'volumes':[{'name':'v'}]}}");
        CLEANUP(json_free) struct json *old = json_clone(fresh);
        CLEANUP_FREE char *b = xasprintf("{'spec':{'ephemeralContainers':%s}}", rows[i].before);
        CLEANUP_FREE char *a =
            xasprintf("{'spec':{'hostNetwork':true,'ephemeralContainers':%s}}", rows[i].after);
        CLEANUP(json_free) struct json *before = rig_parse(b);
        CLEANUP(json_free) struct json *after = rig_parse(a);
        CLEANUP(api_causes_done) struct api_causes c = {0};
        k->merge_part("ephemeralcontainers", old, before);
        api_typed_complete(k->schema, old);
        CLEANUP(json_free) struct json *out = json_clone(old);
        k->merge_part("ephemeralcontainers", out, after);
        api_typed_complete(k->schema, out);
        api_validate_part(k, "ephemeralcontainers", out, old, &c);
        rig_expect(&c, a, rows[i].field, rows[i].says);
        /* Only the list is taken from the body. */
        assert_null(json_path(out, "spec", "hostNetwork", NULL));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_update_changes_what_it_may),
        cmocka_unit_test(a_pod_that_is_older_than_a_rule_can_be_changed),
        cmocka_unit_test(a_template_that_is_older_than_a_rule_stays),
        cmocka_unit_test(a_status_keeps_its_rules),
        cmocka_unit_test(a_status_has_its_address_in_both_fields),
        cmocka_unit_test(ephemeral_containers_are_added_and_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
