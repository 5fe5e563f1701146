/* SPDX-License-Identifier: Apache-2.0 */
/* The decisions of the commands for workloads: how far a rollout is, its history, triggers, patches
 * and new objects. */
#include "cli/kubectl/compose.h"
#include "cli/kubectl/target.h"
#include "cli/workloads/history.h"
#include "cli/workloads/progress.h"
#include "cli/workloads/template.h"
#include "cli/workloads/triggers.h"
#include "json_text.h"

static const struct api_kind dc_kind = {.group = DC_GROUP,
                                        .version = "v1",
                                        .kind = "DeploymentConfig",
                                        .plural = "deploymentconfigs",
                                        .singular = "deploymentconfig",
                                        .namespaced = true};

static const struct api_kind *kind(const char *name)
{
    const struct api_kind *k = streq(name, "DeploymentConfig") ? &dc_kind : NULL;
    k = k ? k : api_kind_by_name("apps/v1", name);
    k = k ? k : api_kind_by_name("v1", name);
    k = k ? k : api_kind_by_name("batch/v1", name);
    assert_non_null(k);
    return k;
}

/* ---- progress ---- */

struct progress_row {
    const char *kind, *object;
    int64_t revision;
    int result;
    const char *text; /* The line, or the error. */
};

static void a_rollout_is_told_in_the_words_of_kubectl_and_oc(void **state)
{
    static const struct progress_row rows[] = {
        {"Deployment", "{'metadata':{'name':'w','generation':2},'status':{'observedGeneration':1}}",
         0, 0, "Waiting for deployment spec update to be observed...\n"},
        {"Deployment",
         "{'metadata':{'name':'w','generation':2},'spec':{'replicas':3},'status':"
         "{'observedGeneration':2,'updatedReplicas':1,'replicas':4,'availableReplicas':3}}",
         0, 0,
         "Waiting for deployment \"w\" rollout to finish: 1 out of 3 new replicas have been "
         "updated...\n"},
        {"Deployment",
         "{'metadata':{'name':'w'},'spec':{'replicas':3},'status':"
         "{'updatedReplicas':3,'replicas':4,'availableReplicas':3}}",
         0, 0,
         "Waiting for deployment \"w\" rollout to finish: 1 old replicas are pending "
         "termination...\n"},
        {"Deployment",
         "{'metadata':{'name':'w'},'spec':{'replicas':3},'status':"
         "{'updatedReplicas':3,'replicas':3,'availableReplicas':2}}",
         0, 0,
         "Waiting for deployment \"w\" rollout to finish: 2 of 3 updated replicas are "
         "available...\n"},
        {"Deployment",
         "{'metadata':{'name':'w'},'spec':{'replicas':3},'status':"
         "{'updatedReplicas':3,'replicas':3,'availableReplicas':3}}",
         0, 1, "deployment \"w\" successfully rolled out\n"},
        {"Deployment", "{'metadata':{'name':'w'},'spec':{'replicas':0},'status':{}}", 0, 1,
         "deployment \"w\" successfully rolled out\n"},
        {"Deployment",
         "{'metadata':{'name':'w'},'spec':{'replicas':3},'status':{'conditions':[{'type':"
         "'Progressing','status':'False','reason':'ProgressDeadlineExceeded'}]}}",
         0, -EINVAL, "deployment \"w\" exceeded its progress deadline"},
        {"Deployment",
         "{'metadata':{'name':'w','annotations':{'deployment.kubernetes.io/revision':'4'}}}", 3,
         -EINVAL, "desired revision (3) is different from the running revision (4)"},
        {"Deployment", "{'metadata':{'name':'w'}}", 3, -EINVAL,
         "desired revision (3) is different from the running revision (0)"},
        {"DaemonSet", "{'metadata':{'name':'d'},'spec':{'updateStrategy':{'type':'OnDelete'}}}", 0,
         -EINVAL, "rollout status is only available for RollingUpdate strategy type"},
        {"DaemonSet",
         "{'metadata':{'name':'d','generation':2},'spec':{'updateStrategy':{'type':"
         "'RollingUpdate'}}}",
         0, 0, "Waiting for daemon set spec update to be observed...\n"},
        {"DaemonSet",
         "{'metadata':{'name':'d'},'spec':{'updateStrategy':{'type':'RollingUpdate'}},'status':"
         "{'desiredNumberScheduled':3,'updatedNumberScheduled':2,'numberAvailable':3}}",
         0, 0,
         "Waiting for daemon set \"d\" rollout to finish: 2 out of 3 new pods have been "
         "updated...\n"},
        {"DaemonSet",
         "{'metadata':{'name':'d'},'spec':{'updateStrategy':{'type':'RollingUpdate'}},'status':"
         "{'desiredNumberScheduled':3,'updatedNumberScheduled':3,'numberAvailable':2}}",
         0, 0,
         "Waiting for daemon set \"d\" rollout to finish: 2 of 3 updated pods are available...\n"},
        {"DaemonSet",
         "{'metadata':{'name':'d'},'spec':{'updateStrategy':{'type':'RollingUpdate'}},'status':"
         "{'desiredNumberScheduled':3,'updatedNumberScheduled':3,'numberAvailable':3}}",
         0, 1, "daemon set \"d\" successfully rolled out\n"},
        {"StatefulSet",
         "{'metadata':{'name':'s'},'spec':{'updateStrategy':{'type':'RollingUpdate'}}}", 0, 0,
         "Waiting for statefulset spec update to be observed...\n"},
        {"StatefulSet",
         "{'metadata':{'name':'s'},'spec':{'replicas':3,'updateStrategy':{'type':"
         "'RollingUpdate'}},'status':{'observedGeneration':1,'readyReplicas':1}}",
         0, 0, "Waiting for 2 pods to be ready...\n"},
        {"StatefulSet",
         "{'metadata':{'name':'s'},'spec':{'replicas':3,'updateStrategy':{'type':"
         "'RollingUpdate','rollingUpdate':{'partition':1}}},'status':{'observedGeneration':1,"
         "'readyReplicas':3,'updatedReplicas':1}}",
         0, 0,
         "Waiting for partitioned roll out to finish: 1 out of 2 new pods have been updated...\n"},
        {"StatefulSet",
         "{'metadata':{'name':'s'},'spec':{'replicas':3,'updateStrategy':{'type':"
         "'RollingUpdate','rollingUpdate':{'partition':1}}},'status':{'observedGeneration':1,"
         "'readyReplicas':3,'updatedReplicas':2}}",
         0, 1, "partitioned roll out complete: 2 new pods have been updated...\n"},
        {"StatefulSet",
         "{'metadata':{'name':'s'},'spec':{'replicas':3,'updateStrategy':{'type':"
         "'RollingUpdate','rollingUpdate':{'partition':0}}},'status':{'observedGeneration':1,"
         "'readyReplicas':3,'updatedReplicas':2}}",
         0, 0,
         "Waiting for partitioned roll out to finish: 2 out of 3 new pods have been updated...\n"},
        {"StatefulSet",
         "{'metadata':{'name':'s'},'spec':{'replicas':2,'updateStrategy':{'type':"
         "'RollingUpdate'}},'status':{'observedGeneration':1,'readyReplicas':2,'updatedReplicas':"
         "1,'currentRevision':'s-1','updateRevision':'s-2'}}",
         0, 0, "waiting for statefulset rolling update to complete 1 pods at revision s-2...\n"},
        {"StatefulSet",
         "{'metadata':{'name':'s'},'spec':{'replicas':2,'updateStrategy':{'type':"
         "'RollingUpdate'}},'status':{'observedGeneration':1,'readyReplicas':2,'currentReplicas':"
         "2,'currentRevision':'s-2','updateRevision':'s-2'}}",
         0, 1, "statefulset rolling update complete 2 pods at revision s-2...\n"},
        {"DeploymentConfig", "{'metadata':{'name':'c'},'spec':{'triggers':[]}}", 0, 1,
         "Deployment config \"c\" waiting on manual update (use 'tenet rollout latest c')\n"},
        {"DeploymentConfig",
         "{'metadata':{'name':'c'},'spec':{'triggers':[{'type':'ImageChange'}]}}", 0, 0,
         "Deployment config \"c\" waiting on image update\n"},
        {"DeploymentConfig",
         "{'metadata':{'name':'c'},'spec':{'replicas':2},'status':{'latestVersion':3,"
         "'updatedReplicas':1}}",
         0, 0, "Waiting for rollout to finish: 1 out of 2 new replicas have been updated...\n"},
        {"DeploymentConfig",
         "{'metadata':{'name':'c'},'spec':{'replicas':2},'status':{'latestVersion':3}}", 2, -EINVAL,
         "desired revision (2) is different from the running revision (3)"},
        {"DeploymentConfig",
         "{'metadata':{'name':'c'},'status':{'latestVersion':3,'conditions':[{'type':"
         "'Progressing','reason':'NewReplicationControllerAvailable'}]}}",
         3, 1, "replication controller \"c-3\" successfully rolled out\n"},
        {"DeploymentConfig",
         "{'metadata':{'name':'c'},'status':{'latestVersion':3,'conditions':[{'type':"
         "'Progressing','reason':'ProgressDeadlineExceeded'}]}}",
         0, -EINVAL, "replication controller \"c-3\" has failed progressing"},
        {"DeploymentConfig",
         "{'metadata':{'name':'c'},'status':{'latestVersion':3,'conditions':[{'type':"
         "'Progressing','reason':'RolloutCancelled'}]}}",
         0, -EINVAL, "rollout of replication controller \"c-3\" was cancelled"},
        {"Pod", "{'metadata':{'name':'p'}}", 0, -EINVAL,
         "no status viewer has been implemented for Pod"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP(json_free) struct json *o = from(rows[i].object);
        CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
        struct err e = {0};
        int r = progress_write(kind(rows[i].kind), o, rows[i].revision, &out, &e);
        const char *text = r < 0 ? e.text : strbuf_cstr(&out);
        if (r != rows[i].result || !streq(text, rows[i].text)) {
            fail_msg("row %zu: %d %s", i, r, text);
        }
    }
}

/* ---- history ---- */

static void the_history_has_the_revisions_of_the_owner_only(void **state)
{
    CLEANUP(json_free) struct json *owner = from("{'metadata':{'name':'w','uid':'u'}}");
    CLEANUP_HISTORY struct history h = {0};
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    history_make(
        kind("Deployment"), owner,
        from("{'items':["
             "{'metadata':{'name':'b','annotations':{'deployment.kubernetes.io/revision':'10',"
             "'kubernetes.io/change-cause':'new image'},'ownerReferences':[{'uid':'u',"
             "'controller':true}]}},"
             "{'metadata':{'name':'a','annotations':{'deployment.kubernetes.io/revision':'2'},"
             "'ownerReferences':[{'uid':'u','controller':true}]}},"
             "{'metadata':{'name':'foreign','annotations':{'deployment.kubernetes.io/revision':"
             "'3'},'ownerReferences':[{'uid':'other','controller':true}]}},"
             "{'metadata':{'name':'uncontrolled','annotations':{'deployment.kubernetes.io/"
             "revision':'4'},'ownerReferences':[{'uid':'u'}]}},"
             "{'metadata':{'name':'broken','annotations':{'deployment.kubernetes.io/revision':"
             "'x'},'ownerReferences':[{'uid':'u','controller':true}]}}]}"),
        &h);
    assert_int_equal(h.n, 2);
    history_write(kind("Deployment"), &h, &out);
    assert_string_equal(strbuf_cstr(&out), "REVISION  CHANGE-CAUSE\n"
                                           "2         <none>\n"
                                           "10        new image\n");
    assert_int_equal(history_find(&h, 0)->revision, 2);
    assert_int_equal(history_find(&h, 10)->revision, 10);
    assert_null(history_find(&h, 3));
}

static void a_configs_history_has_phases_and_causes(void **state)
{
    CLEANUP(json_free) struct json *owner = from("{'metadata':{'name':'c','uid':'u'}}");
    CLEANUP_HISTORY struct history h = {0};
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    history_make(
        &dc_kind, owner,
        from("{'items':["
             "{'metadata':{'annotations':{'openshift.io/deployment-config.name':'c',"
             "'openshift.io/deployment-config.latest-version':'1','openshift.io/deployment.phase':"
             "'Complete','openshift.io/deployment.status-reason':'config change'}}},"
             "{'metadata':{'annotations':{'openshift.io/deployment-config.name':'c',"
             "'openshift.io/deployment-config.latest-version':'2'}}},"
             "{'metadata':{'annotations':{'openshift.io/deployment-config.name':'other',"
             "'openshift.io/deployment-config.latest-version':'3'}}}]}"),
        &h);
    history_write(&dc_kind, &h, &out);
    assert_string_equal(strbuf_cstr(&out), "REVISION  STATUS    CAUSE\n"
                                           "1         Complete  config change\n"
                                           "2         New       <unknown>\n");
    assert_true(dc_phase_is_terminal(h.entries[0].object));
    assert_false(dc_phase_is_terminal(h.entries[1].object));
}

static void a_template_of_the_history_is_the_users(void **state)
{
    CLEANUP(json_free)
    struct json *set =
        from("{'spec':{'template':{'metadata':{'labels':{'app':'w','pod-template-hash':'x'}},"
             "'spec':{'containers':[]}}}}");
    const struct history_entry entry = {1, set};
    CLEANUP(json_free) struct json *t = history_template(kind("Deployment"), NULL, &entry);
    assert_json(t, "{'metadata':{'labels':{'app':'w'}},'spec':{'containers':[]}}");
    CLEANUP(json_free)
    struct json *owner =
        from("{'spec':{'replicas':2,'template':{'spec':{'containers':[{'name':'c','image':'new',"
             "'env':[{'name':'A','value':'1'}]}]}}}}");
    CLEANUP(json_free)
    struct json *revision =
        from("{'data':{'spec':{'template':{'$patch':'replace','spec':{'containers':[{'name':'c',"
             "'image':'old'}]}}}}}");
    const struct history_entry patch = {1, revision};
    CLEANUP(json_free) struct json *back = history_template(kind("StatefulSet"), owner, &patch);
    assert_json(back, "{'spec':{'containers':[{'name':'c','image':'old'}]}}");
    CLEANUP(json_free) struct json *empty = from("{}");
    const struct history_entry nothing = {1, empty};
    assert_null(history_template(kind("StatefulSet"), owner, &nothing));
    assert_null(history_template(kind("Deployment"), owner, &nothing));
}

static void a_template_is_described(void **state)
{
    CLEANUP(json_free)
    struct json *t = from(
        "{'metadata':{'labels':{'b':'2','a':'1'}},'spec':{'serviceAccountName':'sa','containers':"
        "[{'name':'web','image':'i:1','command':['sh'],'ports':[{'containerPort':80}],'resources':"
        "{'limits':{'cpu':'1'}},'env':[{'name':'A','value':'x'},{'name':'B','valueFrom':{}}],"
        "'volumeMounts':[{'name':'v','mountPath':'/v','readOnly':true}]},{'name':'bare','image':"
        "'i:2'}],'volumes':[{'name':'v'}]}}");
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    history_describe(t, &out);
    assert_string_equal(strbuf_cstr(&out), "Pod Template:\n"
                                           "  Labels:\ta=1\n"
                                           "  \tb=2\n"
                                           "  Service Account:\tsa\n"
                                           "  Containers:\n"
                                           "   web:\n"
                                           "    Image:\ti:1\n"
                                           "    Port:\t80/TCP\n"
                                           "    Command:\n"
                                           "      sh\n"
                                           "    Limits:\tcpu:\t1\n"
                                           "    Environment:\t\n"
                                           "      A:\tx\n"
                                           "      B:\t<set from another object>\n"
                                           "    Mounts:\t\n"
                                           "      /v from v (ro)\n"
                                           "   bare:\n"
                                           "    Image:\ti:2\n"
                                           "    Port:\t<none>\n"
                                           "    Environment:\t<none>\n"
                                           "    Mounts:\t<none>\n"
                                           "  Volumes:\t\n"
                                           "   v\n");
}

/* ---- patches ---- */

static void a_difference_is_a_merge_patch(void **state)
{
    static const struct {
        const char *before, *after, *patch;
    } rows[] = {
        {"{'a':1}", "{'a':1}", "{}"},
        {"{'a':1}", "{'a':2}", "{'a':2}"},
        {"{'a':1}", "{}", "{'a':null}"},
        {"{}", "{'a':{'b':1}}", "{'a':{'b':1}}"},
        {"{'a':{'b':1,'c':2}}", "{'a':{'b':1}}", "{'a':{'c':null}}"},
        {"{'a':[1,2]}", "{'a':[1]}", "{'a':[1]}"},
        {"{'a':{'b':1}}", "{'a':[1]}", "{'a':[1]}"},
        {"{'a':{'b':{'c':{'d':1}}},'x':1}", "{'a':{'b':{'c':{'d':2}}},'x':1}",
         "{'a':{'b':{'c':{'d':2}}}}"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP(json_free) struct json *before = from(rows[i].before);
        CLEANUP(json_free) struct json *after = from(rows[i].after);
        CLEANUP(json_free) struct json *patch = target_difference(before, after);
        assert_json(patch, rows[i].patch);
    }
}

/* ---- triggers ---- */

static void triggers_of_both_forms_are_read_and_written(void **state)
{
    static const char deployment[] =
        "{'metadata':{'name':'w','namespace':'red','annotations':{'image.openshift.io/triggers':"
        "'[{\\'from\\':{\\'kind\\':\\'ImageStreamTag\\',\\'name\\':\\'a:1\\',\\'namespace\\':"
        "\\'blue\\'},\\'fieldPath\\':\\'spec.template.spec.containers[?(@.name==\\\\\\'web\\\\\\')]"
        ".image\\',\\'paused\\':true}]'}},'spec':{'template':{'spec':{'containers':[{'name':"
        "'web'}]}}}}";
    CLEANUP(json_free) struct json *d = from(deployment);
    struct err e = {0};
    CLEANUP(json_free) struct json *read = triggers_read(kind("Deployment"), d, &e);
    assert_json(read, "{'config':true,'images':[{'from':'a:1','namespace':'blue','auto':false,"
                      "'names':['web']}]}");
    CLEANUP(json_free) struct json *before = json_clone(d);
    assert_int_equal(triggers_write(kind("Deployment"), d, read, &e), 0);
    CLEANUP(json_free) struct json *again = triggers_read(kind("Deployment"), d, &e);
    assert_true(json_equal(again, read));
    json_set_bool(read, "config", false);
    assert_int_equal(triggers_write(kind("Deployment"), d, read, &e), 0);
    assert_true(json_get_bool(json_path(d, "spec", "paused", NULL), false));

    CLEANUP(json_free)
    struct json *c = from(
        "{'metadata':{'name':'c','namespace':'red'},'spec':{'triggers':[{'type':'ConfigChange'},"
        "{'type':'ImageChange','imageChangeParams':{'automatic':true,'containerNames':['web'],"
        "'from':{'kind':'ImageStreamTag','name':'a:1','namespace':'red'},'lastTriggeredImage':"
        "'a@sha256:1'}}],'template':{'spec':{'containers':[{'name':'web'}],'initContainers':"
        "[{'name':'init'}]}}}}");
    CLEANUP(json_free) struct json *of_dc = triggers_read(&dc_kind, c, &e);
    assert_json(of_dc, "{'config':true,'images':[{'from':'a:1','auto':true,'names':['web']}]}");
    json_set_bool(of_dc, "config", false);
    json_set_bool(json_at(json_get(of_dc, "images"), 0), "auto", false);
    assert_int_equal(triggers_write(&dc_kind, c, of_dc, &e), 0);
    assert_json(json_path(c, "spec", "triggers", NULL),
                "[{'type':'ImageChange','imageChangeParams':{'automatic':false,'containerNames':"
                "['web'],'from':{'kind':'ImageStreamTag','name':'a:1'},'lastTriggeredImage':"
                "'a@sha256:1'}}]");
}

static void wrong_triggers_are_refused(void **state)
{
    CLEANUP(json_free)
    struct json *c = from(
        "{'metadata':{'name':'c'},'spec':{'template':{'spec':{'containers':[{'name':'web'}]}}}}");
    static const struct {
        const char *triggers, *text;
    } rows[] = {
        {"{'images':[{'from':'a:1','names':[]}]}",
         "you must specify --containers when setting --from-image"},
        {"{'images':[{'from':'a:1','names':['x']}]}", "not all container names exist: x"},
        {"{'images':[{'from':'a:1','names':['web']},{'from':'b:1','names':['web']}]}",
         "only one trigger may reference each container: web"},
    };
    CLEANUP(json_free) struct json *before = json_clone(c);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP(json_free) struct json *t = from(rows[i].triggers);
        struct err e = {0};
        assert_int_equal(triggers_write(&dc_kind, c, t, &e), -EINVAL);
        assert_string_equal(e.text, rows[i].text);
        assert_true(json_equal(c, before));
    }
    struct err e = {0};
    CLEANUP(json_free) struct json *pod = from("{'metadata':{'name':'p'},'spec':{}}");
    assert_null(triggers_read(kind("Pod"), pod, &e));
    assert_string_equal(e.text, "pods/p does not support triggers");
    CLEANUP(json_free)
    struct json *broken =
        from("{'metadata':{'annotations':{'image.openshift.io/triggers':'['}},'spec':{'template':"
             "{'spec':{}}}}");
    assert_null(triggers_read(kind("Deployment"), broken, &e));
    assert_non_null(strstr(e.text, "annotation image.openshift.io/triggers: "));
}

/* ---- templates ---- */

static void templates_are_found_in_every_kind(void **state)
{
    CLEANUP(json_free) struct json *pod = from("{'spec':{'containers':[{'name':'a'}]}}");
    assert_ptr_equal(template_of(kind("Pod"), pod), pod);
    CLEANUP(json_free) struct json *d = from("{'spec':{'template':{'spec':{}}}}");
    assert_ptr_equal(template_of(kind("Deployment"), d), json_path(d, "spec", "template", NULL));
    CLEANUP(json_free)
    struct json *c = from("{'spec':{'jobTemplate':{'spec':{'template':{'spec':{}}}}}}");
    assert_ptr_equal(template_of(kind("CronJob"), c),
                     json_path(c, "spec", "jobTemplate", "spec", "template", NULL));
    CLEANUP(json_free) struct json *s = from("{'spec':{'ports':[]}}");
    assert_null(template_of(kind("Service"), s));
    assert_string_equal(template_path(kind("CronJob")), "spec.jobTemplate.spec.template");
}

static int count(void *ctx, struct json *container, struct err *e)
{
    ++*(int *) ctx;
    return streq(json_get_text(container, "name"), "stop") ? err_set(e, -EINVAL, "stopped") : 0;
}

static void containers_are_chosen_by_patterns(void **state)
{
    CLEANUP(json_free)
    struct json *t = from("{'spec':{'containers':[{'name':'web'},{'name':'web-2'},{'name':'db'}],"
                          "'initContainers':[{'name':'init'}]}}");
    static const struct {
        const char *pattern;
        bool init;
        int n;
    } rows[] = {{"*", true, 4}, {"*", false, 3},    {"web*", true, 2}, {"db", true, 1},
                {"x", true, 0}, {"init", false, 0}, {"web", true, 1}};
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        int calls = 0;
        assert_int_equal(
            template_each_container(t, rows[i].pattern, rows[i].init, count, &calls, NULL),
            rows[i].n);
        assert_int_equal(calls, rows[i].n);
    }
    CLEANUP(json_free)
    struct json *stops =
        from("{'spec':{'containers':[{'name':'a'},{'name':'stop'},{'name':'b'}]}}");
    int calls = 0;
    struct err e = {0};
    assert_int_equal(template_each_container(stops, "*", true, count, &calls, &e), -EINVAL);
    assert_int_equal(calls, 2);
}

/* ---- new objects ---- */

static void objects_are_made_from_an_image(void **state)
{
    static const char *const one[] = {"registry:5000/a/Web_x:1.2", NULL};
    static const char *const none[] = {NULL};
    static const char *const two[] = {"a", "b", NULL};
    char *command[] = {(char *) "sh", (char *) "-c"};
    struct err e = {0};
    const struct compose_options plain = {
        .name = "w", .images = one, .replicas = 2, .port = 80, .command = command, .n_command = 2};
    CLEANUP(json_free) struct json *d = compose_object("Deployment", &plain, &e);
    assert_json(d, "{'apiVersion':'apps/v1','kind':'Deployment','metadata':{'name':'w','labels':"
                   "{'app':'w'}},'spec':{'replicas':2,'selector':{'matchLabels':{'app':'w'}},"
                   "'template':{'metadata':{'labels':{'app':'w'}},'spec':{'containers':[{'name':"
                   "'web-x','image':'registry:5000/a/Web_x:1.2','command':['sh','-c'],'ports':"
                   "[{'containerPort':80}]}]}}}}");
    CLEANUP(json_free) struct json *job = compose_object("Job", &plain, &e);
    assert_string_equal(json_path_string(job, "spec", "template", "spec", "restartPolicy", NULL),
                        "Never");
    CLEANUP(json_free) struct json *dc = compose_object("DeploymentConfig", &plain, &e);
    assert_json(json_path(dc, "spec", "selector", NULL), "{'deployment-config.name':'w'}");
    assert_null(compose_object("CronJob", &plain, &e));
    assert_string_equal(e.text, "required flag(s) \"schedule\" not set");
    struct compose_options o = plain;
    o.images = none;
    assert_null(compose_object("Pod", &o, &e));
    assert_string_equal(e.text, "required flag(s) \"image\" not set");
    o.images = two;
    assert_null(compose_object("Deployment", &o, &e));
    assert_string_equal(e.text, "cannot specify multiple --image options and command");
    o.n_command = 0;
    CLEANUP(json_free) struct json *both = compose_object("Deployment", &o, &e);
    assert_int_equal(json_count(json_path(both, "spec", "template", "spec", "containers", NULL)),
                     2);
    o.images = one;
    o.schedule = "* * * * *";
    CLEANUP(json_free) struct json *cron = compose_object("CronJob", &o, &e);
    assert_string_equal(json_path_string(cron, "spec", "jobTemplate", "spec", "template", "spec",
                                         "restartPolicy", NULL),
                        "OnFailure");
}

static void a_job_is_made_as_its_cron_job_would(void **state)
{
    CLEANUP(json_free)
    struct json *cron =
        from("{'metadata':{'name':'c','uid':'u'},'spec':{'jobTemplate':{'metadata':{'labels':"
             "{'a':'b'}},'spec':{'completions':2}}}}");
    CLEANUP(json_free) struct json *job = compose_job_from("j", cron);
    assert_json(job,
                "{'apiVersion':'batch/v1','kind':'Job','metadata':{'name':'j','labels':{'a':'b'},"
                "'annotations':{'cronjob.kubernetes.io/instantiate':'manual'},'ownerReferences':"
                "[{'apiVersion':'batch/v1','kind':'CronJob','name':'c','uid':'u','controller':"
                "true}]},'spec':{'completions':2}}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rollout_is_told_in_the_words_of_kubectl_and_oc),
        cmocka_unit_test(the_history_has_the_revisions_of_the_owner_only),
        cmocka_unit_test(a_configs_history_has_phases_and_causes),
        cmocka_unit_test(a_template_of_the_history_is_the_users),
        cmocka_unit_test(a_template_is_described),
        cmocka_unit_test(a_difference_is_a_merge_patch),
        cmocka_unit_test(triggers_of_both_forms_are_read_and_written),
        cmocka_unit_test(wrong_triggers_are_refused),
        cmocka_unit_test(templates_are_found_in_every_kind),
        cmocka_unit_test(containers_are_chosen_by_patterns),
        cmocka_unit_test(objects_are_made_from_an_image),
        cmocka_unit_test(a_job_is_made_as_its_cron_job_would),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
