/* SPDX-License-Identifier: Apache-2.0 */
/* The defaults of pods and of templates. */
#include "pod_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static struct json *at_path(struct json *v, const char *path)
{
    CLEANUP_FREE char *copy = xstrdup(path);
    char *rest = copy, *part;
    while (v && (part = strsep(&rest, "."))) {
        int64_t i;
        v = str_to_i64(part, 0, 100, &i) == 0 ? json_at(v, (size_t) i) : json_get(v, part);
    }
    return v;
}

static void each_default_is_put_in(void **state)
{
#define CT "spec.containers.0."
#define VOL(source) "{'spec':{'volumes':[{'name':'v'," source "}]}}"
#define SOURCE "spec.volumes.0."
#define PROBE(more)                                                                             \
    "{'spec':{'containers':[{'name':'c','image':'i','livenessProbe':{'httpGet':{'port':1}" more \
    "}}]}}"
#define RESOURCES(r) "{'spec':{'containers':[{'name':'c','image':'i','resources':{" r "}}]}}"
    static const struct {
        const char *patch, *path, *want;
    } rows[] = {
        {"{}", "spec.restartPolicy", "'Always'"},
        {"{}", "spec.dnsPolicy", "'ClusterFirst'"},
        {"{}", "spec.terminationGracePeriodSeconds", "30"},
        {"{}", "spec.schedulerName", "'default-scheduler'"},
        {"{}", "spec.securityContext", "{}"},
        {"{}", "spec.enableServiceLinks", "true"},
        {"{'spec':{'enableServiceLinks':false}}", "spec.enableServiceLinks", "false"},
        {"{'spec':{'serviceAccountName':'s'}}", "spec.serviceAccount", "'s'"},
        {"{'spec':{'serviceAccount':'s'}}", "spec.serviceAccountName", "'s'"},
        {"{}", "status.phase", "'Pending'"},
        {"{}", "status.qosClass", "'BestEffort'"},
        {"{}", CT "terminationMessagePath", "'/dev/termination-log'"},
        {"{}", CT "terminationMessagePolicy", "'File'"},
        {"{}", CT "imagePullPolicy", "'Always'"},
        {"{}", CT "resources", "{}"},
        {PROBE(""), CT "livenessProbe.timeoutSeconds", "1"},
        {PROBE(",'timeoutSeconds':0"), CT "livenessProbe.timeoutSeconds", "1"},
        {PROBE(""), CT "livenessProbe.periodSeconds", "10"},
        {PROBE(""), CT "livenessProbe.successThreshold", "1"},
        {PROBE(""), CT "livenessProbe.failureThreshold", "3"},
        {PROBE(""), CT "livenessProbe.httpGet.path", "'/'"},
        {PROBE(""), CT "livenessProbe.httpGet.scheme", "'HTTP'"},
        {"{'spec':{'containers':[{'name':'c','image':'i','startupProbe':{'grpc':{'port':1}}}]}}",
         CT "startupProbe.grpc.service", "''"},
        {"{'spec':{'containers':[{'name':'c','image':'i','ports':[{'containerPort':8}]}]}}",
         CT "ports.0", "{'containerPort':8,'protocol':'TCP'}"},
        {"{'spec':{'hostNetwork':true,'containers':[{'name':'c','image':'i','ports':[{"
         "'containerPort':8}]}]}}",
         CT "ports.0.hostPort", "8"},
        {"{'spec':{'containers':[{'name':'c','image':'i','env':[{'name':'A','valueFrom':{"
         "'fieldRef':{'fieldPath':'metadata.name'}}}]}]}}",
         CT "env.0.valueFrom.fieldRef.apiVersion", "'v1'"},
        {RESOURCES("'limits':{'cpu':'0.5','memory':'1024Mi'}"), CT "resources.requests",
         "{'cpu':'500m','memory':'1Gi'}"},
        {RESOURCES("'limits':{'cpu':'1'},'requests':{'cpu':'0.25','memory':'1'}"),
         CT "resources.requests", "{'cpu':'250m','memory':'1'}"},
        {RESOURCES("'limits':{'cpu':'1','memory':'1Gi'}"), "status.qosClass", "'Guaranteed'"},
        {RESOURCES("'limits':{'cpu':'1','memory':'1Gi'},'requests':{'cpu':'1000m','memory':"
                   "'1024Mi'}"),
         "status.qosClass", "'Guaranteed'"},
        {RESOURCES("'limits':{'cpu':'1','memory':'1Gi'},'requests':{'cpu':'1m'}"),
         "status.qosClass", "'Burstable'"},
        {RESOURCES("'limits':{'cpu':'1'}"), "status.qosClass", "'Burstable'"},
        {RESOURCES("'requests':{'cpu':'0'}"), "status.qosClass", "'BestEffort'"},
        {RESOURCES("'limits':{'ephemeral-storage':'1Gi'}"), "status.qosClass", "'BestEffort'"},
        {"{'spec':{'volumes':[{'name':'v'}]}}", SOURCE "emptyDir", "{}"},
        {VOL("'hostPath':{'path':'/'}"), SOURCE "hostPath.type", "''"},
        {VOL("'secret':{'secretName':'s'}"), SOURCE "secret.defaultMode", "420"},
        {VOL("'configMap':{'name':'s'}"), SOURCE "configMap.defaultMode", "420"},
        {VOL("'downwardAPI':{}"), SOURCE "downwardAPI.defaultMode", "420"},
        {VOL("'projected':{'sources':[{'serviceAccountToken':{'path':'t'}}]}"),
         SOURCE "projected.defaultMode", "420"},
        {VOL("'projected':{'sources':[{'serviceAccountToken':{'path':'t'}}]}"),
         SOURCE "projected.sources.0.serviceAccountToken.expirationSeconds", "3600"},
        {VOL("'iscsi':{'targetPortal':'p','iqn':'i','lun':0}"), SOURCE "iscsi.iscsiInterface",
         "'default'"},
        {VOL("'rbd':{'monitors':['m'],'image':'i'}"), SOURCE "rbd.pool", "'rbd'"},
        {VOL("'azureDisk':{'diskName':'d','diskURI':'u'}"), SOURCE "azureDisk.kind", "'Shared'"},
        {VOL("'image':{'reference':'a:1'}"), SOURCE "image.pullPolicy", "'IfNotPresent'"},
        {VOL("'ephemeral':{'volumeClaimTemplate':{'spec':{}}}"),
         SOURCE "ephemeral.volumeClaimTemplate.spec.volumeMode", "'Filesystem'"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP(json_free) struct json *obj = rig_stored("pods", SAMPLE, rows[i].patch);
        CLEANUP(json_free) struct json *want = rig_parse(rows[i].want);
        const struct json *got = at_path(obj, rows[i].path);
        CLEANUP_FREE char *text = got ? json_to_text(got) : xstrdup("nothing");
        if (!got || !json_equal(got, want)) {
            fail_msg("%s: %s is %s", rows[i].patch, rows[i].path, text);
        }
    }
}

/* Some defaults are only of pods: the pod that is made from a template gets them. */
static void a_template_gets_fewer_defaults(void **state)
{
    CLEANUP(json_free)
    struct json *obj = rig_stored(
        "podtemplates",
        "{'metadata':{'name':'t','namespace':'red'},'template':{'spec':{'hostNetwork':true,"
        "'containers':[{'name':'c','image':'i','ports':[{'containerPort':1}],'resources':{"
        "'limits':{'cpu':'1'}}}]}}}",
        NULL);
    struct json *spec = json_path(obj, "template", "spec", NULL);
    assert_null(json_get(spec, "enableServiceLinks"));
    assert_null(at_path(spec, "containers.0.resources.requests"));
    assert_null(at_path(spec, "containers.0.ports.0.hostPort"));
    assert_non_null(json_get(spec, "securityContext"));
    assert_non_null(at_path(spec, "containers.0.terminationMessagePath"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_default_is_put_in),
        cmocka_unit_test(a_template_gets_fewer_defaults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
