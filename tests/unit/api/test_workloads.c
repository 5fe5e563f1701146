/* SPDX-License-Identifier: Apache-2.0 */
/* The kinds of apps, batch, policy, autoscaling and storage, and what belongs to them in the core:
 * objects as a client sends them pass the server's defaults and checks, and each wrong field is
 * named as kube-apiserver names it.  In all texts ' stands for ". */
#include "api/kind_util.h"
#include "api/kinds/cron.h"
#include "api/label_selector.h"
#include "api/patch/patch.h"
#include "api/schema.h"
#include "api/table/table.h"
#include "base/mem.h"
#include "base/timeutil.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#define POD_LABELS "'metadata':{'labels':{'a':'b'}}"
#define CONTAINERS "'containers':[{'name':'c','image':'i'}]"
#define TEMPLATE "'template':{" POD_LABELS ",'spec':{" CONTAINERS "}}"
#define ENDING "'template':{'spec':{'restartPolicy':'Never'," CONTAINERS "}}"
#define SELECTED "'selector':{'matchLabels':{'a':'b'}}," TEMPLATE

static const struct {
    const char *plural, *body;
} samples[] = {
    {"deployments", "'spec':{" SELECTED "}"},
    {"replicasets", "'spec':{" SELECTED "}"},
    {"daemonsets", "'spec':{" SELECTED "}"},
    {"statefulsets", "'spec':{'serviceName':'s'," SELECTED
                     ",'volumeClaimTemplates':[{'metadata':{'name':'d'},'spec':{'accessModes':["
                     "'ReadWriteOnce'],'resources':{'requests':{'storage':'1Gi'}}}}]}"},
    {"replicationcontrollers", "'spec':{" TEMPLATE "}"},
    {"deploymentconfigs",
     "'spec':{'triggers':[]," TEMPLATE ",'strategy':{'rollingParams':{'pre':{'failurePolicy':"
     "'Abort','execNewPod':{'command':['a']}}}}}"},
    {"jobs", "'spec':{" ENDING "}"},
    {"cronjobs", "'spec':{'schedule':'*/5 * * * *','timeZone':'Europe/Berlin','jobTemplate':{"
                 "'spec':{" ENDING "}}}"},
    {"poddisruptionbudgets", "'spec':{'minAvailable':'50%','selector':{'matchLabels':{'a':'b'}}}"},
    {"horizontalpodautoscalers",
     "'spec':{'maxReplicas':3,'scaleTargetRef':{'kind':'Deployment','name':'d','apiVersion':"
     "'apps/v1'},'metrics':[{'type':'Resource','resource':{'name':'cpu','target':{'type':"
     "'Utilization','averageUtilization':70}}}]}"},
    {"storageclasses", "'provisioner':'example.com/Disk','parameters':{'a':'b'}"},
    {"volumeattributesclasses", "'driverName':'example.com','parameters':{'iops':'100'}"},
    {"csidrivers", "'spec':{'tokenRequests':[{'audience':'a'}]}"},
    {"csinodes", "'spec':{'drivers':[{'name':'d','nodeID':'1','topologyKeys':['example.com/z']}]}"},
    {"csistoragecapacities",
     "'storageClassName':'fast','capacity':'1Gi','nodeTopology':{'matchLabels':{'z':'a'}}"},
    {"volumeattachments",
     "'spec':{'attacher':'d','nodeName':'n','source':{'persistentVolumeName':'v'}}"},
    {"persistentvolumes", "'spec':{'capacity':{'storage':'1Gi'},'accessModes':['ReadWriteOnce'],"
                          "'nfs':{'server':'s','path':'/'}}"},
    {"persistentvolumeclaims",
     "'spec':{'accessModes':['ReadWriteOnce'],'resources':{'requests':{'storage':'1Gi'}}}"},
    {"resourcequotas", "'spec':{'hard':{'pods':'4','limits.cpu':'2'}}"},
    {"limitranges", "'spec':{'limits':[{'type':'Container','max':{'cpu':'1'}}]}"},
    {"clusterresourcequotas",
     "'spec':{'selector':{'labels':{'matchLabels':{'a':'b'}}},'quota':{'hard':{'pods':'1'}}}"},
    {"rolebindingrestrictions", "'spec':{'userrestriction':{'users':['u'],'labels':[{'matchLabels':"
                                "{'a':'b'}}]}}"},
    {"bindings", "'target':{'kind':'Node','name':'n'}"},
};

static const struct api_kind *kind_of(const char *plural)
{
    for (size_t i = 0; api_kinds[i]; i++) {
        if (streq(api_kinds[i]->plural, plural)) {
            return api_kinds[i];
        }
    }
    fail_msg("no kind %s", plural);
    return NULL;
}

static struct json *parse(const char *text)
{
    struct json *v = NULL;
    struct err e = {0};
    CLEANUP_FREE char *s = xstrdup(text);
    for (char *p = s; *p; p++) {
        *p = *p == '\'' ? '"' : *p;
    }
    if (json_parse(s, strlen(s), &v, &e) < 0) {
        fail_msg("%s: %s", s, e.text);
    }
    return v;
}

static struct json *sample(const char *plural)
{
    const struct api_kind *k = kind_of(plural);
    for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
        if (streq(samples[i].plural, plural)) {
            CLEANUP_FREE char *text =
                xasprintf("{'metadata':{'name':'x','uid':'u-1'%s},%s}",
                          k->namespaced ? ",'namespace':'red'" : "", samples[i].body);
            return parse(text);
        }
    }
    fail_msg("no sample of %s", plural);
    return NULL;
}

/* What the server does with the body of a write before it is checked. */
static void complete(const struct api_kind *k, struct json *obj, const struct json *old)
{
    api_schema_prune(k->schema, obj, NULL);
    if (k->prepare) {
        k->prepare(obj, old);
    }
    api_schema_default(k->schema, obj);
    if (k->defaults) {
        k->defaults(obj);
    }
}

static void a_good_object_of_each_kind_passes(void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
        const struct api_kind *k = kind_of(samples[i].plural);
        CLEANUP(json_free) struct json *obj = sample(k->plural);
        CLEANUP(api_causes_done) struct api_causes c = {0};
        complete(k, obj, NULL);
        api_validate_object(k, obj, NULL, &c);
        if (c.n) {
            fail_msg("%s: %s: %s", k->plural, c.list[0].field, c.list[0].message);
        }
        /* The same once more as an update, which changes nothing. */
        CLEANUP(json_free) struct json *again = json_clone(obj);
        complete(k, again, obj);
        api_validate_object(k, again, obj, &c);
        assert_true(json_equal(again, obj));
        assert_int_equal(c.n, 0);
    }
}

struct bad {
    const char *plural;
    const char *patch; /* Merge patch of the sample. */
    const char *field;
    const char *says; /* Part of the message. */
};

static const struct bad bad[] = {
    /* Templates and selectors, the same in several kinds. */
    {"deployments", "{'spec':null}", "spec.selector", "Required value"},
    {"deployments", "{'spec':{'selector':null}}", "spec.selector", "Required value"},
    {"deployments", "{'spec':{'selector':{'matchLabels':null}}}", "spec.selector",
     "empty selector is invalid for deployment"},
    {"deployments", "{'spec':{'selector':{'matchLabels':{'a':'c'}}}}",
     "spec.template.metadata.labels", "`selector` does not match template `labels`"},
    {"replicasets", "{'spec':{'selector':{'matchLabels':{'a':'c'}}}}",
     "spec.template.metadata.labels", "`selector` does not match template `labels`"},
    {"daemonsets", "{'spec':{'selector':{'matchLabels':{'a':'c'}}}}",
     "spec.template.metadata.labels", "`selector` does not match template `labels`"},
    {"statefulsets", "{'spec':{'selector':{'matchLabels':{'a':'c'}}}}",
     "spec.template.metadata.labels", "`selector` does not match template `labels`"},
    {"replicationcontrollers", "{'spec':{'selector':{'a':'c'}}}", "spec.template.metadata.labels",
     "`selector` does not match template `labels`"},
    {"replicationcontrollers", "{'spec':{'template':null}}", "spec.template", "Required value"},
    {"replicationcontrollers", "{'spec':{'template':{'metadata':null}}}", "spec.selector",
     "Required value"},
    {"deployments", "{'spec':{'selector':{'matchExpressions':[{'key':'a','operator':'Is'}]}}}",
     "spec.selector.matchExpressions[0].operator", "not a valid selector operator"},
    {"deployments", "{'spec':{'template':{'spec':null}}}", "spec.template.spec.containers",
     "Required value"},
    {"deployments", "{'spec':{'template':{'spec':{'containers':[]}}}}",
     "spec.template.spec.containers", "Required value"},
    {"deployments", "{'spec':{'template':{'spec':{'restartPolicy':'Never'}}}}",
     "spec.template.spec.restartPolicy", "supported values: \"Always\""},
    {"daemonsets", "{'spec':{'template':{'spec':{'activeDeadlineSeconds':1}}}}",
     "spec.template.spec.activeDeadlineSeconds",
     "activeDeadlineSeconds in DaemonSet is not Supported"},
    {"deployments", "{'spec':{'template':{'metadata':{'labels':{'a b':'c'}}}}}",
     "spec.template.labels", "name part"},
    {"deployments", "{'spec':{'template':{'metadata':{'annotations':{'a b':'c'}}}}}",
     "spec.template.annotations", "name part"},
    {"deployments", "{'spec':{'template':{'spec':{'ephemeralContainers':[{'name':'e'}]}}}}",
     "spec.template.spec.ephemeralContainers", "not allowed in pod template"},
    {"deployments", "{'spec':{'template':{'spec':{'initContainers':[{'name':'c'}]}}}}",
     "spec.template.spec.initContainers[0].name", "Duplicate value"},
    {"deployments", "{'spec':[]}", "spec", "must be of type"},
    /* Deployment. */
    {"deployments", "{'spec':{'replicas':-1}}", "spec.replicas",
     "must be greater than or equal to 0"},
    {"deployments", "{'spec':{'strategy':{'type':'Blue'}}}", "spec.strategy.type",
     "supported values: \"Recreate\", \"RollingUpdate\""},
    {"deployments", "{'spec':{'strategy':{'type':'Recreate','rollingUpdate':{'maxSurge':1}}}}",
     "spec.strategy.rollingUpdate", "may not be specified when strategy `type` is 'Recreate'"},
    {"deployments", "{'spec':{'strategy':{'rollingUpdate':{'maxSurge':'0%','maxUnavailable':0}}}}",
     "spec.strategy.rollingUpdate.maxUnavailable", "may not be 0 when `maxSurge` is 0"},
    {"deployments", "{'spec':{'strategy':{'rollingUpdate':{'maxUnavailable':'101%'}}}}",
     "spec.strategy.rollingUpdate.maxUnavailable", "must not be greater than 100%"},
    {"deployments", "{'spec':{'strategy':{'rollingUpdate':{'maxSurge':'some'}}}}",
     "spec.strategy.rollingUpdate.maxSurge", "a valid percent string"},
    {"deployments", "{'spec':{'strategy':{'rollingUpdate':{'maxSurge':-1}}}}",
     "spec.strategy.rollingUpdate.maxSurge", "must be greater than or equal to 0"},
    {"deployments", "{'spec':{'strategy':{'rollingUpdate':{'maxSurge':1.5}}}}",
     "spec.strategy.rollingUpdate.maxSurge", "must be an integer or percentage"},
    {"deployments", "{'spec':{'minReadySeconds':600}}", "spec.progressDeadlineSeconds",
     "must be greater than minReadySeconds"},
    /* DaemonSet, StatefulSet. */
    {"daemonsets", "{'spec':{'updateStrategy':{'rollingUpdate':{'maxSurge':1}}}}",
     "spec.updateStrategy.rollingUpdate.maxSurge",
     "may not be set when maxUnavailable is non-zero"},
    {"daemonsets", "{'spec':{'updateStrategy':{'rollingUpdate':{'maxUnavailable':0}}}}",
     "spec.updateStrategy.rollingUpdate.maxUnavailable", "cannot be 0 when maxSurge is 0"},
    {"statefulsets", "{'spec':{'podManagementPolicy':'Any'}}", "spec.podManagementPolicy",
     "supported values: \"OrderedReady\", \"Parallel\""},
    {"statefulsets",
     "{'spec':{'updateStrategy':{'type':'OnDelete','rollingUpdate':{'partition':1}}}}",
     "spec.updateStrategy.rollingUpdate", "only allowed for updateStrategy 'RollingUpdate'"},
    {"statefulsets", "{'spec':{'ordinals':{'start':-1}}}", "spec.ordinals.start",
     "must be greater than or equal to 0"},
    {"statefulsets", "{'spec':{'persistentVolumeClaimRetentionPolicy':{'whenScaled':'Keep'}}}",
     "spec.persistentVolumeClaimRetentionPolicy.whenScaled", "\"Delete\", \"Retain\""},
    /* DeploymentConfig. */
    {"deploymentconfigs", "{'spec':{'template':null}}", "spec.template", "Required value"},
    {"deploymentconfigs", "{'spec':{'selector':{'a':'c'}}}", "spec.template.metadata.labels",
     "`selector` does not match template `labels`"},
    {"deploymentconfigs", "{'spec':{'template':{'metadata':null}}}", "spec.selector",
     "selector cannot be empty"},
    {"deploymentconfigs", "{'spec':{'replicas':-1}}", "spec.replicas",
     "must be greater than or equal to 0"},
    {"deploymentconfigs", "{'spec':{'template':{'spec':{'containers':[{'name':'c','image':''}]}}}}",
     "spec.template.spec.containers[0].image", "Required value"},
    {"deploymentconfigs", "{'spec':{'minReadySeconds':600}}", "spec.minReadySeconds",
     "must be less than the deployment timeout (600s)"},
    {"deploymentconfigs", "{'spec':{'triggers':[{'type':''}]}}", "spec.triggers[0].type",
     "Required value"},
    {"deploymentconfigs", "{'spec':{'triggers':[{'type':'ImageChange'}]}}",
     "spec.triggers[0].imageChangeParams", "Required value"},
    {"deploymentconfigs",
     "{'spec':{'triggers':[{'type':'ImageChange','imageChangeParams':{'containerNames':['c"
     "']}}]}}",
     "spec.triggers[0].imageChangeParams.from", "Required value"},
    {"deploymentconfigs",
     "{'spec':{'triggers':[{'type':'ImageChange','imageChangeParams':{'from':{'name':'s:t'"
     "}}}]}}",
     "spec.triggers[0].imageChangeParams.containerNames", "Required value"},
    {"deploymentconfigs",
     "{'spec':{'triggers':[{'type':'ImageChange','imageChangeParams':{'containerNames':['c"
     "'],'from':{'name':'s'}}}]}}",
     "spec.triggers[0].imageChangeParams.from.name", "must be in the form of <name>:<tag>"},
    {"deploymentconfigs",
     "{'spec':{'triggers':[{'type':'ImageChange','imageChangeParams':{'containerNames':['c"
     "'],'from':{'name':'S:t'}}}]}}",
     "spec.triggers[0].imageChangeParams.from.name", "must match"},
    {"deploymentconfigs",
     "{'spec':{'triggers':[{'type':'ImageChange','imageChangeParams':{'containerNames':['c"
     "'],'from':{'name':'s:t','kind':'Pod'}}}]}}",
     "spec.triggers[0].imageChangeParams.from.kind", "kind must be an ImageStreamTag"},
    {"deploymentconfigs",
     "{'spec':{'triggers':[{'type':'ImageChange','imageChangeParams':{'containerNames':['c"
     "'],'from':{'name':'s:t','namespace':'A_'}}}]}}",
     "spec.triggers[0].imageChangeParams.from.namespace", "namespace must be a valid subdomain"},
    {"deploymentconfigs", "{'spec':{'strategy':{'type':'Blue'}}}", "spec.strategy.type",
     "unsupported strategy type, use \"Custom\" instead"},
    {"deploymentconfigs", "{'spec':{'strategy':{'type':'Custom'}}}", "spec.strategy.customParams",
     "Required value"},
    {"deploymentconfigs", "{'spec':{'strategy':{'customParams':{'environment':[{'name':'a.b'}]}}}}",
     "spec.strategy.customParams.environment[0].name", "a valid C identifier"},
    {"deploymentconfigs", "{'spec':{'strategy':{'rollingParams':{'timeoutSeconds':0}}}}",
     "spec.strategy.rollingParams.timeoutSeconds", "must be >0"},
    {"deploymentconfigs", "{'spec':{'strategy':{'rollingParams':{'updatePeriodSeconds':0}}}}",
     "spec.strategy.rollingParams.updatePeriodSeconds", "must be >0"},
    {"deploymentconfigs",
     "{'spec':{'strategy':{'type':'Recreate','recreateParams':{'timeoutSeconds':-1}}}}",
     "spec.strategy.recreateParams.timeoutSeconds", "must be >0"},
    {"deploymentconfigs",
     "{'spec':{'strategy':{'rollingParams':{'maxSurge':0,'maxUnavailable':0}}}}",
     "spec.strategy.rollingParams.maxUnavailable", "cannot be 0 when maxSurge is 0 as well"},
    {"deploymentconfigs", "{'spec':{'strategy':{'rollingParams':{'maxUnavailable':'101%'}}}}",
     "spec.strategy.rollingParams.maxUnavailable", "should not be more than 100%"},
    {"deploymentconfigs", "{'spec':{'strategy':{'rollingParams':{'maxSurge':'some'}}}}",
     "spec.strategy.rollingParams.maxSurge", "value should be int(5) or percentage(5%)"},
    {"deploymentconfigs", "{'spec':{'strategy':{'rollingParams':{'maxSurge':-1}}}}",
     "spec.strategy.rollingParams.maxSurge", "must be non-negative"},
    {"deploymentconfigs", "{'spec':{'strategy':{'activeDeadlineSeconds':600}}}",
     "spec.strategy.activeDeadlineSeconds",
     "activeDeadlineSeconds must be greater than timeoutSeconds"},
    {"deploymentconfigs", "{'spec':{'strategy':{'labels':{'a b':'c'}}}}", "spec.strategy.labels",
     "name part"},
    {"deploymentconfigs", "{'spec':{'strategy':{'rollingParams':{'pre':{'failurePolicy':null}}}}}",
     "spec.strategy.rollingParams.pre.failurePolicy", "Required value"},
    {"deploymentconfigs",
     "{'spec':{'strategy':{'rollingParams':{'pre':{'failurePolicy':'Hope'}}}}}",
     "spec.strategy.rollingParams.pre.failurePolicy",
     "supported values: \"Abort\", \"Ignore\", \"Retry\""},
    {"deploymentconfigs", "{'spec':{'strategy':{'rollingParams':{'pre':{'execNewPod':null}}}}}",
     "spec.strategy.rollingParams.pre", "One of execNewPod or tagImages must be specified"},
    {"deploymentconfigs",
     "{'spec':{'strategy':{'rollingParams':{'pre':{'execNewPod':{'command':[]}}}}}}",
     "spec.strategy.rollingParams.pre.execNewPod.command", "Required value"},
    {"deploymentconfigs",
     "{'spec':{'strategy':{'rollingParams':{'pre':{'execNewPod':{'volumes':['']}}}}}}",
     "spec.strategy.rollingParams.pre.execNewPod.volumes[0]", "must not be empty"},
    {"deploymentconfigs",
     "{'spec':{'strategy':{'rollingParams':{'pre':{'tagImages':[{'to':{'name':'s:t'}}]}}}}"
     "}",
     "spec.strategy.rollingParams.pre", "only one of 'execNewPod' or 'tagImages'"},
    {"deploymentconfigs",
     "{'spec':{'strategy':{'rollingParams':{'post':{'failurePolicy':'Abort','tagImages':[{"
     "'containerName':'d','to':{'name':'s:t'}}]}}}}}",
     "spec.strategy.rollingParams.post.tagImages[0].containerName", "no container \"d\" found"},
    {"deploymentconfigs",
     "{'spec':{'strategy':{'rollingParams':{'post':{'failurePolicy':'Abort','tagImages':[{"
     "'to':{}}]}}}}}",
     "spec.strategy.rollingParams.post.tagImages[0].to.name", "a destination tag name is required"},
    /* Job, CronJob. */
    {"jobs", "{'spec':{'template':{'spec':{'restartPolicy':null}}}}",
     "spec.template.spec.restartPolicy", "Required value: valid values: \"OnFailure\", \"Never\""},
    {"jobs", "{'spec':{'completions':-1}}", "spec.completions", "greater than or equal to 0"},
    {"jobs", "{'spec':{'completionMode':'Indexed','parallelism':1}}", "spec.completions",
     "when completion mode is Indexed"},
    {"jobs", "{'spec':{'completionMode':'Indexed','completions':2,'parallelism':100001}}",
     "spec.parallelism", "must be less than or equal to 100000"},
    {"jobs", "{'spec':{'backoffLimitPerIndex':1}}", "spec.backoffLimitPerIndex",
     "requires indexed completion mode"},
    {"jobs", "{'spec':{'selector':{'matchLabels':{'q':'r'}}}}", "spec.selector",
     "`selector` not auto-generated"},
    {"jobs", "{'spec':{'template':{'metadata':{'labels':{'batch.kubernetes.io/job-name':'y'}}}}}",
     "spec.template.metadata.labels[batch.kubernetes.io/job-name]", "must be 'x'"},
    {"jobs", "{'spec':{'manualSelector':true}}", "spec.selector", "Required value"},
    {"jobs", "{'spec':{'manualSelector':true,'selector':{'matchLabels':{'q':'r'}}}}",
     "spec.template.metadata.labels", "`selector` does not match template `labels`"},
    {"jobs", "{'spec':{'podFailurePolicy':{'rules':[{'action':'Ignore'}]}}}",
     "spec.podFailurePolicy.rules[0]", "specifying one of OnExitCodes and OnPodConditions"},
    {"jobs",
     "{'spec':{'podFailurePolicy':{'rules':[{'action':'Ignore','onExitCodes':{'operator':'In',"
     "'values':[1]},'onPodConditions':[{'type':'A','status':'True'}]}]}}}",
     "spec.podFailurePolicy.rules[0]", "specifying both"},
    {"jobs",
     "{'spec':{'podFailurePolicy':{'rules':[]},'template':{'spec':{'restartPolicy':'OnFailure'}}}}",
     "spec.template.spec.restartPolicy", "only \"Never\" is supported"},
    {"cronjobs", "{'spec':{'schedule':null}}", "spec.schedule", "Required value"},
    {"cronjobs", "{'spec':{'schedule':''}}", "spec.schedule", "Required value"},
    {"cronjobs", "{'spec':{'schedule':'* *'}}", "spec.schedule",
     "expected exactly 5 fields, found 2"},
    {"cronjobs", "{'spec':{'schedule':'TZ=UTC * * * * *'}}", "spec.schedule",
     "use timeZone field instead"},
    {"cronjobs", "{'spec':{'timeZone':''}}", "spec.timeZone", "non-empty"},
    {"cronjobs", "{'spec':{'timeZone':'local'}}", "spec.timeZone", "explicit time zone"},
    {"cronjobs", "{'spec':{'timeZone':'../etc'}}", "spec.timeZone", "unknown time zone"},
    {"cronjobs", "{'spec':{'timeZone':'/etc'}}", "spec.timeZone", "unknown time zone"},
    {"cronjobs", "{'spec':{'timeZone':'a b'}}", "spec.timeZone", "unknown time zone a b"},
    {"cronjobs", "{'spec':{'concurrencyPolicy':'Queue'}}", "spec.concurrencyPolicy",
     "\"Allow\", \"Forbid\", \"Replace\""},
    {"cronjobs", "{'spec':{'jobTemplate':{'spec':{'selector':{'matchLabels':{'a':'b'}}}}}}",
     "spec.jobTemplate.spec.selector", "will be auto-generated"},
    {"cronjobs", "{'spec':{'jobTemplate':{'spec':{'manualSelector':true}}}}",
     "spec.jobTemplate.spec.manualSelector", "\"nil\", \"false\""},
    {"cronjobs", "{'spec':{'jobTemplate':{'spec':{'template':{'spec':{'restartPolicy':null}}}}}}",
     "spec.jobTemplate.spec.template.spec.restartPolicy", "Required value"},
    {"cronjobs", "{'metadata':{'name':'a12345678901234567890123456789012345678901234567890123'}}",
     "metadata.name", "must be no more than 52 characters"},
    /* PodDisruptionBudget. */
    {"poddisruptionbudgets", "{'spec':{'maxUnavailable':1}}", "spec",
     "minAvailable and maxUnavailable cannot be both set"},
    {"poddisruptionbudgets", "{'spec':{'minAvailable':'200%'}}", "spec.minAvailable",
     "must not be greater than 100%"},
    {"poddisruptionbudgets", "{'spec':{'minAvailable':null,'maxUnavailable':-1}}",
     "spec.maxUnavailable", "greater than or equal to 0"},
    {"poddisruptionbudgets", "{'spec':{'selector':{'matchLabels':{'a b':'c'}}}}",
     "spec.selector.matchLabels", "name part"},
    {"poddisruptionbudgets", "{'spec':{'unhealthyPodEvictionPolicy':'No'}}",
     "spec.unhealthyPodEvictionPolicy", "\"AlwaysAllow\", \"IfHealthyBudget\""},
    /* HorizontalPodAutoscaler. */
    {"horizontalpodautoscalers", "{'spec':{'maxReplicas':0}}", "spec.maxReplicas",
     "must be greater than 0"},
    {"horizontalpodautoscalers", "{'spec':{'maxReplicas':null}}", "spec.maxReplicas",
     "Required value"},
    {"horizontalpodautoscalers", "{'spec':{'minReplicas':4}}", "spec.maxReplicas",
     "must be greater than or equal to `minReplicas`"},
    {"horizontalpodautoscalers", "{'spec':{'minReplicas':0}}", "spec.metrics",
     "at least one Object or External metric"},
    {"horizontalpodautoscalers", "{'spec':{'scaleTargetRef':{'name':null}}}",
     "spec.scaleTargetRef.name", "Required value"},
    {"horizontalpodautoscalers", "{'spec':{'metrics':[{'type':'Pods'}]}}", "spec.metrics[0].pods",
     "must populate information for the given metric source"},
    {"horizontalpodautoscalers",
     "{'spec':{'metrics':[{'type':'Pods','resource':{'name':'cpu','target':{'type':'Value'}}}]}}",
     "spec.metrics[0].resource", "must populate the given metric source only"},
    {"horizontalpodautoscalers",
     "{'spec':{'metrics':[{'type':'Resource','resource':{'name':'cpu','target':{'type':"
     "'Utilization'}}}]}}",
     "spec.metrics[0].resource.target.averageUtilization", "must be specified"},
    {"horizontalpodautoscalers",
     "{'spec':{'metrics':[{'type':'Resource','resource':{'name':'cpu','target':{'type':"
     "'Utilization','averageUtilization':1,'averageValue':'2'}}}]}}",
     "spec.metrics[0].resource.target", "more than one target value"},
    {"horizontalpodautoscalers", "{'spec':{'behavior':{'scaleUp':{'policies':[]}}}}",
     "spec.behavior.scaleUp.policies", "must specify at least one Policy"},
    {"horizontalpodautoscalers",
     "{'spec':{'behavior':{'scaleUp':{'stabilizationWindowSeconds':3601}}}}",
     "spec.behavior.scaleUp.stabilizationWindowSeconds", "must be between 0 and 3600"},
    /* Storage. */
    {"storageclasses", "{'provisioner':''}", "provisioner", "Required value"},
    {"storageclasses", "{'provisioner':'a b'}", "provisioner", "name part"},
    {"storageclasses", "{'reclaimPolicy':'Keep'}", "reclaimPolicy", "Unsupported value"},
    {"storageclasses", "{'parameters':{'':'x'}}", "parameters", "field can not be empty."},
    {"csidrivers", "{'metadata':{'name':'a_b'}}", "metadata.name", "RFC 1123 subdomain"},
    {"csidrivers",
     "{'metadata':{'name':'a123456789012345678901234567890123456789012345678901234567890123'}}",
     "metadata.name", "must be no more than 63 characters"},
    {"csidrivers", "{'spec':{'tokenRequests':[{'audience':'a'},{'audience':'a'}]}}",
     "spec.tokenRequests[1].audience", "Duplicate value"},
    {"csidrivers", "{'spec':{'tokenRequests':[{'audience':'a','expirationSeconds':5}]}}",
     "spec.tokenRequests[0].expirationSeconds", "must be between 600"},
    {"csinodes", "{'spec':{'drivers':[{'name':'d'}]}}", "spec.drivers[0].nodeID", "Required value"},
    {"csistoragecapacities", "{'storageClassName':null}", "storageClassName", "Required value"},
    {"volumeattachments", "{'spec':{'source':{'persistentVolumeName':null}}}", "spec.source",
     "must specify exactly one of inlineVolumeSpec and persistentVolumeName"},
    {"volumeattachments", "{'spec':{'source':{'inlineVolumeSpec':{}}}}", "spec.source",
     "Forbidden: must specify exactly one"},
    {"volumeattachments", "{'spec':{'source':{'persistentVolumeName':null,'inlineVolumeSpec':{}}}}",
     "spec.source.inlineVolumeSpec.csi", "Required value"},
    /* PersistentVolume, PersistentVolumeClaim. */
    {"persistentvolumes", "{'spec':{'nfs':null}}", "spec", "must specify a volume type"},
    {"persistentvolumes", "{'spec':{'hostPath':{'path':'/a'}}}", "spec.nfs",
     "may not specify more than 1 volume type"},
    {"persistentvolumes", "{'spec':{'capacity':null}}", "spec.capacity", "Required value"},
    {"persistentvolumes", "{'spec':{'capacity':{'cpu':'1'}}}", "spec.capacity",
     "supported values: \"storage\""},
    {"persistentvolumes", "{'spec':{'accessModes':[]}}", "spec.accessModes", "Required value"},
    {"persistentvolumes", "{'spec':{'accessModes':['Once']}}", "spec.accessModes[0]",
     "Unsupported value"},
    {"persistentvolumes", "{'spec':{'nfs':null,'hostPath':{'path':'/a/../b'}}}",
     "spec.hostPath.path", "must not contain '..'"},
    {"persistentvolumes",
     "{'spec':{'nfs':null,'hostPath':{'path':'/'},'persistentVolumeReclaimPolicy':'Recycle'}}",
     "spec.persistentVolumeReclaimPolicy", "may not be 'recycle'"},
    {"persistentvolumes",
     "{'spec':{'nfs':null,'awsElasticBlockStore':{'volumeID':'v'},"
     "'persistentVolumeReclaimPolicy':'Recycle'}}",
     "spec.persistentVolumeReclaimPolicy", "supported values: \"Delete\", \"Retain\""},
    {"persistentvolumes", "{'spec':{'nfs':null,'local':{'path':'/a'}}}", "spec.nodeAffinity",
     "Local volume requires node affinity"},
    {"persistentvolumeclaims", "{'spec':{'accessModes':null}}", "spec.accessModes",
     "at least 1 access mode is required"},
    {"persistentvolumeclaims", "{'spec':{'accessModes':['ReadWriteOncePod','ReadWriteOnce']}}",
     "spec.accessModes", "may not use ReadWriteOncePod with other access modes"},
    {"persistentvolumeclaims", "{'spec':{'accessModes':['All']}}", "spec.accessModes[0]",
     "Unsupported value"},
    {"persistentvolumeclaims", "{'spec':{'resources':null}}", "spec.resources[storage]",
     "Required value"},
    {"persistentvolumeclaims", "{'spec':{'volumeMode':'Raw'}}", "spec.volumeMode",
     "Unsupported value"},
    {"persistentvolumeclaims", "{'spec':{'storageClassName':'A'}}", "spec.storageClassName",
     "RFC 1123 subdomain"},
    /* ResourceQuota, LimitRange. */
    {"resourcequotas", "{'spec':{'hard':{'a b':'1'}}}", "spec.hard[a b]", "name part"},
    {"resourcequotas", "{'spec':{'scopes':['All']}}", "spec.scopes[0]", "Unsupported value"},
    {"limitranges", "{'spec':{'limits':[{'type':'Pod'},{'type':'Pod'}]}}", "spec.limits[1].type",
     "Duplicate value"},
    {"limitranges", "{'spec':{'limits':null}}", "spec.limits", "Required value"},
    {"resourcequotas", "{'spec':{'hard':{'wrong':'1'}}}", "spec.hard[wrong]",
     "must be a standard resource for quota"},
    {"resourcequotas", "{'spec':{'hard':{'pods':'-1'}}}", "spec.hard[pods]",
     "must be greater than or equal to 0"},
    {"resourcequotas", "{'spec':{'hard':{'pods':'1500m'}}}", "spec.hard[pods]",
     "must be an integer"},
    {"resourcequotas", "{'spec':{'scopes':['BestEffort']}}", "spec.scopes",
     "unsupported scope applied to resource"},
    {"resourcequotas", "{'spec':{'scopes':['Terminating','NotTerminating']}}", "spec.scopes",
     "conflicting scopes"},
    {"resourcequotas",
     "{'spec':{'scopeSelector':{'matchExpressions':[{'scopeName':'PriorityClass','operator':'In'}]}"
     "}"
     "}",
     "spec.scopeSelector.matchExpressions[0].values", "must be at least one value"},
    {"resourcequotas",
     "{'spec':{'scopeSelector':{'matchExpressions':[{'scopeName':'Terminating','operator':"
     "'DoesNotExist'}]}}}",
     "spec.scopeSelector.matchExpressions[0].operator", "must be 'Exist' when scope is any of"},
    {"resourcequotas",
     "{'spec':{'scopeSelector':{'matchExpressions':[{'scopeName':'All','operator':'Exists'}]}}}",
     "spec.scopeSelector.matchExpressions[0].scopeName", "unsupported scope"},
    {"resourcequotas",
     "{'spec':{'scopeSelector':{'matchExpressions':[{'scopeName':'PriorityClass','operator':"
     "'Exists','values':['a']}]}}}",
     "spec.scopeSelector.matchExpressions[0].values", "must be no value"},
    {"limitranges", "{'spec':{'limits':[{'type':'Node'}]}}", "spec.limits[0].type",
     "must be a standard limit type or fully qualified"},
    {"limitranges", "{'spec':{'limits':[{'type':'Pod','default':{'cpu':'1'}}]}}",
     "spec.limits[0].default", "may not be specified when `type` is 'Pod'"},
    {"limitranges", "{'spec':{'limits':[{'type':'PersistentVolumeClaim'}]}}",
     "spec.limits[0].limits", "either minimum or maximum storage value is required"},
    {"limitranges", "{'spec':{'limits':[{'type':'Pod','min':{'cpu':'3'},'max':{'cpu':'2'}}]}}",
     "spec.limits[0].min[cpu]", "min value 3 is greater than max value 2"},
    {"limitranges",
     "{'spec':{'limits':[{'type':'Container','default':{'cpu':'1'},'defaultRequest':{'cpu':'2'}}]}"
     "}",
     "spec.limits[0].defaultRequest[cpu]",
     "default request value 2 is greater than default limit value 1"},
    {"limitranges",
     "{'spec':{'limits':[{'type':'Container','max':{'cpu':'1'},'default':{'cpu':'2'}}]}}",
     "spec.limits[0].default[cpu]", "default value 2 is greater than max value 1"},
    {"limitranges",
     "{'spec':{'limits':[{'type':'Container','min':{'cpu':'2'},'default':{'cpu':'1'}}]}}",
     "spec.limits[0].default[cpu]", "min value 2 is greater than default value 1"},
    {"limitranges", "{'spec':{'limits':[{'type':'Pod','maxLimitRequestRatio':{'cpu':'500m'}}]}}",
     "spec.limits[0].maxLimitRequestRatio[cpu]", "ratio 500m is less than 1"},
    {"limitranges",
     "{'spec':{'limits':[{'type':'Pod','min':{'cpu':'1'},'max':{'cpu':'2'},'maxLimitRequestRatio':"
     "{'cpu':'3'}}]}}",
     "spec.limits[0].maxLimitRequestRatio[cpu]", "ratio 3 is greater than max/min = 2.000000"},
    /* RoleBindingRestriction. */
    {"rolebindingrestrictions", "{'spec':{'userrestriction':null}}", "spec",
     "must specify exactly one of userrestriction, grouprestriction, or serviceaccountrestriction"},
    {"rolebindingrestrictions", "{'spec':{'grouprestriction':{'groups':['g']}}}", "spec",
     "must specify exactly one"},
    {"rolebindingrestrictions", "{'spec':{'userrestriction':{'users':null,'labels':null}}}",
     "spec.userrestriction", "must name at least one subject"},
    {"rolebindingrestrictions",
     "{'spec':{'userrestriction':{'labels':[{'matchLabels':{'-':'a'}}]}}}",
     "spec.userrestriction.labels[0].matchLabels", "Invalid value"},
    {"rolebindingrestrictions",
     "{'spec':{'userrestriction':null,'serviceaccountrestriction':{'serviceaccounts':[{'name':''}]}"
     "}}",
     "spec.serviceaccountrestriction.serviceaccounts[0].name", "Required value"},
    /* ClusterResourceQuota. */
    {"clusterresourcequotas", "{'spec':{'selector':null}}", "spec.selector", "Required value"},
    {"clusterresourcequotas", "{'spec':{'selector':{'labels':null}}}", "spec.selector",
     "must restrict the selected projects"},
    {"clusterresourcequotas", "{'spec':{'selector':{'labels':{'matchLabels':null}}}}",
     "spec.selector.labels", "must restrict the selected projects"},
    {"clusterresourcequotas", "{'spec':{'selector':{'labels':{'matchLabels':{'-':'a'}}}}}",
     "spec.selector.labels.matchLabels", "name part"},
    {"clusterresourcequotas", "{'spec':{'selector':{'annotations':{'a b':'a'}}}}",
     "spec.selector.annotations", "name part"},
    {"clusterresourcequotas", "{'spec':{'quota':{'hard':{'wrong':'1'}}}}", "spec.quota.hard[wrong]",
     "must be a standard resource for quota"},
};

static const struct api_cause *find(const struct api_causes *c, const char *field)
{
    for (size_t i = 0; i < c->n; i++) {
        if (streq(c->list[i].field, field)) {
            return &c->list[i];
        }
    }
    return NULL;
}

/* The row's change, on creation or (with 'old') as an update, brings its cause. */
static void expect_cause(const struct bad *b, const struct json *old)
{
    const struct api_kind *k = kind_of(b->plural);
    struct json *obj = old ? json_clone(old) : sample(b->plural);
    CLEANUP(json_free) struct json *patch = parse(b->patch);
    CLEANUP(api_causes_done) struct api_causes c = {0};
    api_patch_merge(&obj, patch);
    complete(k, obj, old);
    api_validate_object(k, obj, old, &c);
    const struct api_cause *cause = find(&c, b->field);
    if (!cause || !strstr(cause->message, b->says)) {
        fail_msg("%s with %s: %s: %s", b->plural, b->patch, c.n ? c.list[0].field : "no cause",
                 cause ? cause->message
                 : c.n ? c.list[0].message
                       : "");
    }
    json_free(obj);
}

static void each_wrong_field_is_named_with_its_reason(void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        expect_cause(&bad[i], NULL);
    }
}

static const struct bad bad_changes[] = {
    {"deployments",
     "{'spec':{'selector':{'matchLabels':{'c':'d'}},'template':{'metadata':{"
     "'labels':{'c':'d'}}}}}",
     "spec.selector", "field is immutable"},
    {"deployments", "{'status':{'replicas':1,'readyReplicas':2}}", "status.readyReplicas",
     "cannot be greater than status.replicas"},
    {"deployments", "{'status':{'replicas':3,'readyReplicas':1,'availableReplicas':2}}",
     "status.availableReplicas", "cannot be greater than status.readyReplicas"},
    {"replicasets", "{'status':{'replicas':1,'fullyLabeledReplicas':2}}",
     "status.fullyLabeledReplicas", "cannot be greater than status.replicas"},
    {"daemonsets",
     "{'spec':{'selector':{'matchLabels':{'c':'d'}},'template':{'metadata':{"
     "'labels':{'c':'d'}}}}}",
     "spec.selector", "field is immutable"},
    {"statefulsets", "{'spec':{'serviceName':'t'}}", "spec",
     "updates to statefulset spec for fields other than"},
    {"jobs", "{'spec':{'completions':2}}", "spec.completions", "field is immutable"},
    {"jobs", "{'spec':{'template':{'spec':{'hostname':'h'}}}}", "spec.template",
     "field is immutable"},
    {"jobs", "{'spec':{'template':{'spec':{'nodeSelector':{'a':'b'}}}}}", "spec.template",
     "field is immutable"},
    {"jobs", "{'spec':{'managedBy':'example.com/c'}}", "spec.managedBy", "field is immutable"},
    {"storageclasses", "{'provisioner':'other'}", "provisioner",
     "updates to provisioner are forbidden."},
    {"storageclasses", "{'parameters':null}", "parameters", "updates to parameters are forbidden."},
    {"storageclasses", "{'volumeBindingMode':'WaitForFirstConsumer'}", "volumeBindingMode",
     "field is immutable"},
    {"csidrivers", "{'spec':{'attachRequired':false}}", "spec.attachRequired",
     "field is immutable"},
    {"csinodes",
     "{'spec':{'drivers':[{'name':'d','nodeID':'2','topologyKeys':['example.com/z']}]}}",
     "spec.drivers[0].nodeID", "field is immutable"},
    {"csistoragecapacities", "{'nodeTopology':null}", "nodeTopology", "field is immutable"},
    {"volumeattachments", "{'spec':{'nodeName':'m'}}", "spec", "field is immutable"},
    {"persistentvolumes", "{'spec':{'nfs':{'path':'/b'}}}", "spec.persistentvolumesource",
     "is immutable after creation"},
    {"persistentvolumes", "{'spec':{'volumeMode':'Block'}}", "spec.volumeMode",
     "field is immutable"},
    {"persistentvolumeclaims", "{'spec':{'accessModes':['ReadWriteMany']}}", "spec",
     "spec is immutable after creation"},
    {"persistentvolumeclaims", "{'spec':{'resources':{'requests':{'storage':'2Gi'}}}}", "spec",
     "spec is immutable after creation"},
    {"resourcequotas", "{'spec':{'scopes':['NotTerminating']}}", "spec.scopes",
     "field is immutable"},
};

static void what_cannot_change_is_said(void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE(bad_changes); i++) {
        CLEANUP(json_free) struct json *old = sample(bad_changes[i].plural);
        complete(kind_of(bad_changes[i].plural), old, NULL);
        expect_cause(&bad_changes[i], old);
    }
}

/* A bound claim takes back what it has not got, and no more; a volume stays on its nodes. */
static void claims_do_not_shrink_and_volumes_do_not_move(void **state)
{
    static const struct {
        const char *plural, *before, *change, *field;
    } rows[] = {
        {"persistentvolumeclaims",
         "{'spec':{'volumeName':'v','resources':{'requests':{'storage':'5Gi'}}},'status':{"
         "'phase':'Bound','capacity':{'storage':'2Gi'}}}",
         "{'spec':{'resources':{'requests':{'storage':'1Gi'}}}}",
         "spec.resources.requests.storage"},
        {"persistentvolumes",
         "{'spec':{'nodeAffinity':{'required':{'nodeSelectorTerms':[{'matchExpressions':[{'key':"
         "'a','operator':'Exists'}]}]}}}}",
         "{'spec':{'nodeAffinity':null}}", "spec.nodeAffinity"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        const struct api_kind *k = kind_of(rows[i].plural);
        struct json *old = sample(rows[i].plural);
        CLEANUP(json_free) struct json *before = parse(rows[i].before);
        CLEANUP(json_free) struct json *change = parse(rows[i].change);
        CLEANUP(api_causes_done) struct api_causes c = {0};
        complete(k, old, NULL);
        api_patch_merge(&old, before);
        struct json *obj = json_clone(old);
        api_patch_merge(&obj, change);
        complete(k, obj, old);
        api_validate_object(k, obj, old, &c);
        assert_int_equal(c.n, 1);
        assert_string_equal(c.list[0].field, rows[i].field);
        json_free(obj);
        json_free(old);
    }
}

static void changes_that_are_allowed_pass(void **state)
{
    static const struct {
        const char *plural, *before, *change;
    } rows[] = {
        {"deployments", "{}", "{'spec':{'replicas':5,'template':{'spec':{'hostname':'h'}}}}"},
        {"statefulsets", "{}", "{'spec':{'replicas':0,'minReadySeconds':3}}"},
        {"jobs", "{'spec':{'suspend':true}}",
         "{'spec':{'suspend':false,'template':{'spec':{'nodeSelector':{'a':'b'}}}}}"},
        {"jobs", "{'spec':{'completionMode':'Indexed','completions':2,'parallelism':2}}",
         "{'spec':{'completions':3,'parallelism':3}}"},
        {"persistentvolumeclaims", "{}", "{'spec':{'volumeName':'v'}}"},
        {"persistentvolumeclaims", "{}", "{'spec':{'storageClassName':'c'}}"},
        {"persistentvolumeclaims", "{'spec':{'volumeName':'v'},'status':{'phase':'Bound'}}",
         "{'spec':{'resources':{'requests':{'storage':'2Gi'}}}}"},
        {"persistentvolumeclaims",
         "{'spec':{'volumeName':'v','resources':{'requests':{'storage':'5Gi'}}},'status':{"
         "'phase':'Bound','capacity':{'storage':'2Gi'}}}",
         "{'spec':{'resources':{'requests':{'storage':'3Gi'}}}}"},
        {"persistentvolumes", "{'spec':{'persistentVolumeReclaimPolicy':'Retain'}}",
         "{'spec':{'persistentVolumeReclaimPolicy':'Recycle'}}"},
        {"csinodes", "{}", "{'spec':{'drivers':[]}}"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        const struct api_kind *k = kind_of(rows[i].plural);
        struct json *old = sample(rows[i].plural);
        CLEANUP(json_free) struct json *before = parse(rows[i].before);
        CLEANUP(json_free) struct json *change = parse(rows[i].change);
        CLEANUP(api_causes_done) struct api_causes c = {0};
        complete(k, old, NULL);
        api_patch_merge(&old, before);
        struct json *obj = json_clone(old);
        api_patch_merge(&obj, change);
        complete(k, obj, old);
        api_validate_object(k, obj, old, &c);
        if (c.n) {
            fail_msg("row %zu: %s: %s", i, c.list[0].field, c.list[0].message);
        }
        json_free(obj);
        json_free(old);
    }
}

/* ---- defaults ---- */

static void absent_fields_get_their_defaults(void **state)
{
    static const struct {
        const char *plural, *part, *want;
    } rows[] = {
        {"deployments", "strategy",
         "{'type':'RollingUpdate','rollingUpdate':{'maxUnavailable':'25%','maxSurge':'25%'}}"},
        {"daemonsets", "updateStrategy",
         "{'type':'RollingUpdate','rollingUpdate':{'maxUnavailable':1,'maxSurge':0}}"},
        {"statefulsets", "updateStrategy",
         "{'type':'RollingUpdate','rollingUpdate':{'partition':0}}"},
        {"statefulsets", "persistentVolumeClaimRetentionPolicy",
         "{'whenDeleted':'Retain','whenScaled':'Retain'}"},
        {"deployments", "progressDeadlineSeconds", "600"},
        {"deployments", "replicas", "1"},
        {"replicationcontrollers", "selector", "{'a':'b'}"},
        {"jobs", "backoffLimit", "6"},
        {"jobs", "completions", "1"},
        {"jobs", "parallelism", "1"},
        {"jobs", "completionMode", "'NonIndexed'"},
        {"jobs", "podReplacementPolicy", "'TerminatingOrFailed'"},
        {"jobs", "selector", "{'matchLabels':{'batch.kubernetes.io/controller-uid':'u-1'}}"},
        {"cronjobs", "concurrencyPolicy", "'Allow'"},
        {"cronjobs", "successfulJobsHistoryLimit", "3"},
        {"horizontalpodautoscalers", "minReplicas", "1"},
        {"csidrivers", "volumeLifecycleModes", "['Persistent']"},
        {"csidrivers", "fsGroupPolicy", "'ReadWriteOnceWithFSType'"},
        {"persistentvolumes", "persistentVolumeReclaimPolicy", "'Retain'"},
        {"persistentvolumes", "volumeMode", "'Filesystem'"},
        {"persistentvolumeclaims", "volumeMode", "'Filesystem'"},
        {"limitranges", "limits",
         "[{'type':'Container','max':{'cpu':'1'},'default':{'cpu':'1'},'defaultRequest':{'cpu':'1'"
         "}}]"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP(json_free) struct json *obj = sample(rows[i].plural);
        CLEANUP(json_free) struct json *want = parse(rows[i].want);
        complete(kind_of(rows[i].plural), obj, NULL);
        const struct json *got = json_path(obj, "spec", rows[i].part, NULL);
        if (!got || !json_equal(got, want)) {
            CLEANUP_FREE char *text = json_to_text(obj);
            fail_msg("%s.%s: %s", rows[i].plural, rows[i].part, text);
        }
    }
    CLEANUP(json_free) struct json *pod = sample("deployments");
    complete(kind_of("deployments"), pod, NULL);
    assert_string_equal(
        json_path_string(json_at(json_path(pod, "spec", "template", "spec", "containers", NULL), 0),
                         "imagePullPolicy", NULL),
        "Always");
    CLEANUP(json_free) struct json *hpa = sample("horizontalpodautoscalers");
    json_remove(json_get(hpa, "spec"), "metrics");
    complete(kind_of("horizontalpodautoscalers"), hpa, NULL);
    assert_int_equal(json_count(json_path(hpa, "spec", "metrics", NULL)), 1);
    CLEANUP(json_free) struct json *rc = sample("replicationcontrollers");
    complete(kind_of("replicationcontrollers"), rc, NULL);
    assert_string_equal(json_path_string(rc, "metadata", "labels", "a", NULL), "b");
}

/* A status that a client sends with a new object is dropped; counts that typed clients need are
 * there. */
static void a_new_object_has_the_status_of_nothing_done(void **state)
{
    static const struct {
        const char *plural, *want;
    } rows[] = {
        {"deployments", "{}"},
        {"replicasets", "{'replicas':0}"},
        {"statefulsets", "{'replicas':0,'availableReplicas':0}"},
        {"daemonsets", "{'currentNumberScheduled':0,'numberMisscheduled':0,"
                       "'desiredNumberScheduled':0,'numberReady':0}"},
        {"poddisruptionbudgets",
         "{'disruptionsAllowed':0,'currentHealthy':0,'desiredHealthy':0,'expectedPods':0}"},
        {"volumeattachments", "{'attached':false}"},
        {"persistentvolumes", "{'phase':'Pending'}"},
        {"persistentvolumeclaims", "{'phase':'Pending'}"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP(json_free) struct json *obj = sample(rows[i].plural);
        CLEANUP(json_free) struct json *want = parse(rows[i].want);
        json_set(obj, "status", parse("{'observedGeneration':7,'attached':true,'phase':'Bound'}"));
        complete(kind_of(rows[i].plural), obj, NULL);
        CLEANUP_FREE char *text = json_to_text(json_get(obj, "status"));
        if (!json_equal(json_get(obj, "status"), want)) {
            fail_msg("%s: %s", rows[i].plural, text);
        }
    }
}

/* The name that the server generates may be made again after a conflict. */
static void a_jobs_label_follows_its_generated_name(void **state)
{
    CLEANUP(json_free) struct json *obj = sample("jobs");
    json_set_string(json_get(obj, "metadata"), "generateName", "x-");
    complete(kind_of("jobs"), obj, NULL);
    json_set_string(json_get(obj, "metadata"), "name", "x-2");
    kind_of("jobs")->defaults(obj);
    const struct json *labels = json_path(obj, "spec", "template", "metadata", "labels", NULL);
    assert_string_equal(json_path_string(labels, "job-name", NULL), "x-2");
    assert_string_equal(json_path_string(labels, "batch.kubernetes.io/job-name", NULL), "x-2");
}

/* ---- cells ---- */

static void expect_cells(const char *plural, const char *text, const char *want)
{
    const struct api_kind *k = kind_of(plural);
    CLEANUP(json_free) struct json *obj = parse(text);
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    int64_t now;
    assert_int_equal(time_parse("2026-01-01T01:00:00Z", &now), 0);
    for (size_t i = 0; i < k->n_columns; i++) {
        CLEANUP(json_free) struct json *cell = api_column_cell(&k->columns[i], obj, now);
        CLEANUP_FREE char *other = json_to_text(cell);
        strbuf_addf(&out, "%s%s", i ? "|" : "",
                    json_get_string(cell) ? json_get_string(cell) : other);
    }
    assert_string_equal(strbuf_cstr(&out), want);
}

#define BORN "'metadata':{'name':'x','creationTimestamp':'2026-01-01T00:00:00Z'}"
#define TWO "'template':{'spec':{'containers':[{'name':'a','image':'i'},{'name':'b','image':'j'}]}}"

static void cells_show_what_kubectl_users_expect(void **state)
{
    expect_cells("deployments",
                 "{" BORN ",'spec':{'replicas':3,'selector':{'matchLabels':{'a':'b'},"
                 "'matchExpressions':[{'key':'c','operator':'In','values':['d','e']},{'key':'f',"
                 "'operator':'DoesNotExist'}]}," TWO "},'status':{'readyReplicas':2,"
                 "'updatedReplicas':1,'availableReplicas':2}}",
                 "x|2/3|1|2|60m|a,b|i,j|a=b,c in (d,e),!f");
    expect_cells("deployments", "{}", "|0/0|0|0|<unknown>|||<none>");
    expect_cells("replicasets", "{" BORN ",'spec':{'replicas':3," TWO "},'status':{'replicas':2}}",
                 "x|3|2|0|60m|a,b|i,j|<none>");
    expect_cells("statefulsets", "{" BORN ",'spec':{'replicas':1," TWO "}}", "x|0/1|60m|a,b|i,j");
    expect_cells("daemonsets",
                 "{" BORN ",'spec':{'template':{'spec':{'nodeSelector':{'z':'a'}}}},'status':{"
                 "'desiredNumberScheduled':4,'numberReady':3}}",
                 "x|4|0|3|0|0|z=a|60m|||<none>");
    expect_cells("replicationcontrollers",
                 "{" BORN ",'spec':{'replicas':1,'selector':{'a':'b'}," TWO "}}",
                 "x|1|0|0|60m|a,b|i,j|a=b");
    expect_cells("jobs",
                 "{" BORN ",'spec':{'completions':2," TWO "},'status':{'succeeded':1,'startTime':"
                 "'2026-01-01T00:00:00Z','completionTime':'2026-01-01T00:00:30Z'}}",
                 "x|Running|1/2|30s|60m|a,b|i,j|<none>");
    expect_cells("jobs",
                 "{" BORN ",'spec':{'parallelism':3},'status':{'conditions':[{'type':'Failed',"
                 "'status':'True'}],'startTime':'2026-01-01T00:50:00Z'}}",
                 "x|Failed|0/1 of 3|10m|60m|||<none>");
    expect_cells("jobs", "{'status':{'conditions':[{'type':'Suspended','status':'True'}]}}",
                 "|Suspended|0/1||<unknown>|||<none>");
    expect_cells("jobs", "{'metadata':{'name':'x','deletionTimestamp':'x'}}",
                 "x|Terminating|0/1||<unknown>|||<none>");
    expect_cells("cronjobs",
                 "{" BORN ",'spec':{'schedule':'@daily','jobTemplate':{'spec':{" TWO "}}},"
                 "'status':{'active':[{}],'lastScheduleTime':'2026-01-01T00:59:00Z'}}",
                 "x|@daily|<none>|false|1|60s|60m|a,b|i,j|<none>");
    expect_cells("poddisruptionbudgets",
                 "{" BORN ",'spec':{'maxUnavailable':1},'status':{'disruptionsAllowed':2}}",
                 "x|N/A|1|2|60m");
    expect_cells(
        "horizontalpodautoscalers",
        "{" BORN ",'spec':{'maxReplicas':5,'minReplicas':2,'scaleTargetRef':{'kind':'Deployment',"
        "'name':'d'},'metrics':[{'type':'Resource','resource':{'name':'cpu','target':{"
        "'averageUtilization':80}}},{'type':'Pods','pods':{'target':{'averageValue':'9'}}},{'type':"
        "'External','external':{}}]},'status':{'currentReplicas':3,'currentMetrics':[{'type':"
        "'Resource','resource':{'current':{'averageUtilization':12}}}]}}",
        "x|Deployment/d|cpu: 12%/80%, <unknown>/9 + 1 more...|2|5|3|60m");
    expect_cells("horizontalpodautoscalers",
                 "{'spec':{'metrics':[{'type':'Object','object':{'target':{'averageValue':'2'}}},"
                 "{'type':'Mine'}]}}",
                 "|/|<unknown>/2 (avg), <unknown type>|<unset>|0|0|<unknown>");
    expect_cells("storageclasses",
                 "{'metadata':{'name':'x','annotations':{'storageclass.kubernetes.io/"
                 "is-default-class':'true'}},'provisioner':'p'}",
                 "x (default)|p|Delete|Immediate|false|<unknown>");
    expect_cells("csidrivers",
                 "{" BORN ",'spec':{'attachRequired':true,'podInfoOnMount':false,"
                 "'storageCapacity':false,'requiresRepublish':false,'tokenRequests':[{'audience':"
                 "'a'},{'audience':'b'}],'volumeLifecycleModes':['Persistent']}}",
                 "x|true|false|false|a,b|false|Persistent|60m");
    expect_cells("csidrivers", "{}", "|null|null|null|<unset>|null|<none>|<unknown>");
    expect_cells("csinodes", "{" BORN ",'spec':{'drivers':[{},{}]}}", "x|2|60m");
    expect_cells("volumeattachments", "{" BORN ",'spec':{'attacher':'d','nodeName':'n'}}",
                 "x|d||n|false|60m");
    expect_cells(
        "persistentvolumes",
        "{" BORN ",'spec':{'capacity':{'storage':'1Gi'},'accessModes':['ReadWriteMany',"
        "'ReadWriteOnce'],'persistentVolumeReclaimPolicy':'Retain','claimRef':{"
        "'namespace':'red','name':'c'},'storageClassName':'s'},'status':{'phase':'Bound'}}",
        "x|1Gi|RWO,RWX|Retain|Bound|red/c|s|<unset>||60m|<unset>");
    expect_cells("persistentvolumeclaims",
                 "{" BORN ",'spec':{'volumeName':'v','volumeMode':'Block'},'status':{'phase':"
                 "'Bound','capacity':{'storage':'2Gi'},'accessModes':['ReadWriteOncePod']}}",
                 "x|Bound|v|2Gi|RWOP||<unset>|60m|Block");
    expect_cells("persistentvolumeclaims",
                 "{" BORN ",'status':{'phase':'Pending','capacity':{'storage':'2Gi'}}}",
                 "x|Pending|||||<unset>|60m|<unset>");
    expect_cells("resourcequotas",
                 "{" BORN ",'status':{'hard':{'limits.cpu':'2','pods':'4','services':'3'},'used':{"
                 "'pods':'1'}}}",
                 "x|pods: 1/4, services: 0/3|limits.cpu: 0/2|60m");
    expect_cells("limitranges", "{" BORN "}", "x|60m");
    expect_cells("clusterresourcequotas",
                 "{" BORN ",'spec':{'selector':{'labels':{'matchLabels':{'a':'b'}},'annotations':"
                 "{'c':'d','e':'f'}}}}",
                 "x|a=b|c=d,e=f");
    expect_cells("appliedclusterresourcequotas",
                 "{" BORN ",'spec':{'selector':{'annotations':{'c':'d'}}}}", "x|<none>|c=d");
    expect_cells("rolebindingrestrictions",
                 "{" BORN ",'spec':{'userrestriction':{'users':['u'],'groups':['g'],'labels':[{"
                 "'matchLabels':{'a':'b'}}]}}}",
                 "x|User|u, Group g, Label(a=b)");
    expect_cells("rolebindingrestrictions",
                 "{" BORN ",'spec':{'serviceaccountrestriction':{'serviceaccounts':[{'name':'a'},"
                 "{'name':'b','namespace':'n'}],'namespaces':['m']}}}",
                 "x|ServiceAccount|a, n/b, m");
    expect_cells("rolebindingrestrictions",
                 "{" BORN ",'spec':{'grouprestriction':{'groups':['g']}}}", "x|Group|g");
    expect_cells("rolebindingrestrictions", "{" BORN ",'spec':{}}", "x|<none>|");
    expect_cells("componentstatuses",
                 "{'metadata':{'name':'x'},'conditions':[{'type':'Healthy','status':'True',"
                 "'message':'ok'}]}",
                 "x|True|ok|");
}

/* ---- schedules ---- */

static void schedules_are_read_as_cron_does(void **state)
{
    static const struct {
        const char *schedule, *says; /* NULL: valid. */
    } rows[] = {
        {"* * * * *", NULL},
        {"*/15 0-23/2 1,15 jan-MAR mon", NULL},
        {"5/10 ? * 12 0-6", NULL},
        {"  0\t0  * * *  ", NULL},
        {"@yearly", NULL},
        {"@hourly", NULL},
        {"@every 1h30m", NULL},
        {"@every 1.5s", NULL},
        {"", "empty spec string"},
        {"a", "expected exactly 5 fields, found 1: [a]"},
        {"* * * * * *", "expected exactly 5 fields, found 6"},
        {"60 * * * *", "end of range (60) above maximum (59): 60"},
        {"* 24 * * *", "end of range (24) above maximum (23)"},
        {"* * 0 * *", "beginning of range (0) below minimum (1): 0"},
        {"* * 32 * *", "end of range (32) above maximum (31)"},
        {"* * * 0 *", "below minimum (1)"},
        {"* * * 13 *", "above maximum (12)"},
        {"* * * * 7", "end of range (7) above maximum (6)"},
        {"5-3 * * * *", "beginning of range (5) beyond end of range (3): 5-3"},
        {"1-2-3 * * * *", "too many hyphens: 1-2-3"},
        {"*/1/2 * * * *", "too many slashes: */1/2"},
        {"*/0 * * * *", "step of range should be a positive number: */0"},
        {"x * * * *", "failed to parse int from x"},
        {"*/x * * * *", "failed to parse int from x"},
        {"1- * * * *", "failed to parse int from"},
        {"* * * * foo", "failed to parse int from foo"},
        {"99999999999 * * * *", "failed to parse int"},
        {"@never", "unrecognized descriptor: @never"},
        {"@every", "unrecognized descriptor"},
        {"@every soon", "failed to parse duration"},
        {"@every 0s", "failed to parse duration"},
        {"@every 1", "failed to parse duration"},
        {"@every 1.2.3s", "failed to parse duration"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct err e = {0};
        int r = cron_check_schedule(rows[i].schedule, &e);
        if (r != (rows[i].says ? -EINVAL : 0) || (rows[i].says && !strstr(e.text, rows[i].says))) {
            fail_msg("\"%s\": %d %s", rows[i].schedule, r, e.text);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_good_object_of_each_kind_passes),
        cmocka_unit_test(each_wrong_field_is_named_with_its_reason),
        cmocka_unit_test(what_cannot_change_is_said),
        cmocka_unit_test(claims_do_not_shrink_and_volumes_do_not_move),
        cmocka_unit_test(changes_that_are_allowed_pass),
        cmocka_unit_test(absent_fields_get_their_defaults),
        cmocka_unit_test(a_new_object_has_the_status_of_nothing_done),
        cmocka_unit_test(a_jobs_label_follows_its_generated_name),
        cmocka_unit_test(cells_show_what_kubectl_users_expect),
        cmocka_unit_test(schedules_are_read_as_cron_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
