/* SPDX-License-Identifier: Apache-2.0 */
/* Commands for rollouts, of Deployments and of DeploymentConfigs.  The subresources of
 * DeploymentConfigs are answered by this test, so that each answer of a server can be had. */
#include "typed.h"

#include "api/kind.h"
#include "net/loop/sock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define APPS "/apis/apps/v1/namespaces/default/"
#define DCS "/apis/apps.openshift.io/v1/namespaces/default/deploymentconfigs"
#define RCS "/api/v1/namespaces/default/replicationcontrollers"

/* ---- Deployments ---- */

#define TEMPLATE(image)                                                                         \
    "'selector':{'matchLabels':{'app':'web'}},'template':{'metadata':{'labels':{'app':'web'}}," \
    "'spec':{'containers':[{'name':'c','image':'" image "'}]}}"

static void make_set(struct harness *h, const char *name, const char *uid, int revision,
                     const char *image, const char *cause)
{
    CLEANUP_FREE char *text = xasprintf(
        "{'metadata':{'name':'%s','labels':{'app':'web'},'annotations':{"
        "'deployment.kubernetes.io/revision':'%d'%s},'ownerReferences':[{'apiVersion':'apps/v1',"
        "'kind':'Deployment','name':'web','uid':'%s','controller':true}]},'spec':{'selector':"
        "{'matchLabels':{'app':'web','pod-template-hash':'%s'}},'template':{'metadata':{'labels':"
        "{'app':'web','pod-template-hash':'%s'}},'spec':{'containers':[{'name':'c','image':"
        "'%s'}]}}}}",
        name, revision, cause, uid, name, name, image);
    put_in(h, "POST", APPS "replicasets", text, 201);
}

static void a_deployment_is_paused_restarted_and_brought_back(void **state)
{
    struct harness *h = harness_new(NULL, NULL);
    CLEANUP_FREE char *uid =
        make_object(h, APPS "deployments",
                    "{'metadata':{'name':'web'},'spec':{'replicas':2," TEMPLATE("i:2") "}}");
    make_set(h, "web-1", uid, 1, "i:1", ",'kubernetes.io/change-cause':'first'");
    make_set(h, "web-2", uid, 2, "i:2", "");
    static const struct typed_row rows[] = {
        {"rollout history deployment/web", 0,
         "deployment.apps/web \nREVISION  CHANGE-CAUSE\n1         first\n2         <none>\n\n", ""},
        {"rollout history deployment/web --revision=1", 0,
         "deployment.apps/web with revision #1\nPod Template:\n  Labels:\tapp=web\n...", ""},
        {"rollout history deployment/web --revision=9", 1, "",
         "error: unable to find the specified revision\n"},
        {"rollout pause deployment/web", 0, "deployment.apps/web paused\n", ""},
        {"rollout pause deployment/web", 1, "",
         "error: deployments.apps \"web\" is already paused\n"},
        {"rollout restart deployment/web", 1, "",
         "error: deployments.apps \"web\" can't restart paused deployment (run rollout resume "
         "first)\n"},
        {"rollout undo deployment/web", 1, "",
         "error: you cannot rollback a paused deployment; resume it first with 'tenet rollout "
         "resume deployment/web' and try again\n"},
        {"rollout resume deployment/web", 0, "deployment.apps/web resumed\n", ""},
        {"rollout resume deployment/web", 1, "", "error: deployments.apps \"web\" is not paused\n"},
        {"rollout undo deployment/web --to-revision=2", 0,
         "deployment.apps/web skipped rollback (current template already matches revision 2)\n",
         ""},
        {"rollout undo deployment/web --to-revision=9", 1, "",
         "error: unable to find specified revision 9 in history\n"},
        {"rollout undo deployment/web", 0, "deployment.apps/web rolled back\n", ""},
        {"rollout restart deployment", 0, "deployment.apps/web restarted\n", ""},
        {"rollout pause rs/web-1", 1, "",
         "error: replicasets.apps \"web-1\" pausing is not supported\n"},
        {"rollout restart rs/web-1", 1, "",
         "error: replicasets.apps \"web-1\" restarting is not supported\n"},
        {"rollout status deployment/web --timeout=50ms", 1,
         "Waiting for deployment spec update to be observed...\n",
         "error: timed out waiting for the condition\n"},
        {"rollout status deployment/web --watch=false", 0,
         "Waiting for deployment spec update to be observed...\n", ""},
        {"rollout status rs/web-1", 1, "",
         "error: no status viewer has been implemented for ReplicaSet\n"},
        {"rollout history rs/web-1", 1, "",
         "error: no history viewer has been implemented for \"ReplicaSet.apps\"\n"},
        {"rollout status deployment/web --revision x", 2, "", "..."},
        {"rollout undo deployment/web --to-revision x", 2, "", "..."},
        {"rollout latest deployment/web", 1, "",
         "error: expected deployment configuration, got deployments\n"},
    };
    typed_check(h, rows, ARRAY_SIZE(rows));
    CLEANUP_ANSWER struct answer a = ask_ok(h, "GET", APPS "deployments/web", NULL, 200);
    const struct json *template = json_path(a.body, "spec", "template", NULL);
    assert_string_equal(
        json_get_text(json_at(json_path(template, "spec", "containers", NULL), 0), "image"), "i:1");
    assert_null(json_path(template, "metadata", "labels", "pod-template-hash", NULL));
    assert_non_null(
        json_path(template, "metadata", "annotations", "kubectl.kubernetes.io/restartedAt", NULL));
    assert_string_equal(
        json_path_string(a.body, "metadata", "annotations", "kubernetes.io/change-cause", NULL),
        "first");
    harness_free(h);
}

static void a_set_of_revisions_is_brought_back(void **state)
{
    struct harness *h = harness_new(NULL, NULL);
    CLEANUP_FREE char *uid = make_object(
        h, APPS "daemonsets", "{'metadata':{'name':'web'},'spec':{" TEMPLATE("i:2") "}}");
    for (int i = 1; i <= 2; i++) {
        CLEANUP_FREE char *text = xasprintf(
            "{'metadata':{'name':'web-%d','labels':{'app':'web'},'ownerReferences':[{'apiVersion':"
            "'apps/v1','kind':'DaemonSet','name':'web','uid':'%s','controller':true}]},'revision':"
            "%d,'data':{'spec':{'template':{'$patch':'replace','metadata':{'labels':{'app':'web'}},"
            "'spec':{'containers':[{'name':'c','image':'i:%d'}]}}}}}",
            i, uid, i, i);
        put_in(h, "POST", APPS "controllerrevisions", text, 201);
    }
    static const struct typed_row rows[] = {
        {"rollout history ds/web", 0,
         "daemonset.apps/web \nREVISION  CHANGE-CAUSE\n1         <none>\n2         <none>\n\n", ""},
        {"rollout undo ds/web", 0, "daemonset.apps/web rolled back\n", ""},
    };
    typed_check(h, rows, ARRAY_SIZE(rows));
    CLEANUP_ANSWER struct answer a = ask_ok(h, "GET", APPS "daemonsets/web", NULL, 200);
    const struct json *list = json_path(a.body, "spec", "template", "spec", "containers", NULL);
    assert_string_equal(json_get_text(json_at(list, 0), "image"), "i:1");
    harness_free(h);
}

/* ---- DeploymentConfigs ---- */

/* A server in front of the harness's, which answers the subresources. */
struct front {
    struct harness *h;
    struct http_server *http;
    uint16_t own_port; /* Of the harness. */
    int status;        /* The answer to "instantiate" and "rollback". */
    const char *body;
    char *path, *request; /* Of the last such request. */
};

static void on_request(void *ctx, struct http_exchange *x)
{
    struct front *f = ctx;
    const char *path = http_path(x);
    if (!str_has_suffix(path, "/instantiate") && !str_has_suffix(path, "/rollback")) {
        apiserver_handle(f->h->api, x);
        return;
    }
    size_t size = 0;
    const char *body = http_body(x, &size);
    free(f->path);
    free(f->request);
    f->path = xstrdup(path);
    f->request = xstrndup(body, size);
    CLEANUP_FREE char *answer = quoted(f->body);
    http_respond(x, f->status, "application/json", answer, strlen(answer));
}

static void front_begin(struct front *f)
{
    struct err e = {0};
    int fd = -1;
    f->h = harness_new(NULL, NULL);
    assert_int_equal(sock_listen_tcp("127.0.0.1:0", &fd, &e), 0);
    f->own_port = f->h->port;
    f->h->port = (uint16_t) sock_local_port(fd);
    f->http = http_server_new(f->h->loop, NULL, on_request, f);
    assert_int_equal(http_server_add_listener(f->http, fd, &e), 0);
    if (!api_kind_by_name("apps.openshift.io/v1", "DeploymentConfig")) {
        put_in(f->h, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
               "{'apiVersion':'apiextensions.k8s.io/v1','kind':'CustomResourceDefinition',"
               "'metadata':{'name':'deploymentconfigs.apps.openshift.io'},'spec':{'group':"
               "'apps.openshift.io','scope':'Namespaced','names':{'plural':'deploymentconfigs',"
               "'singular':'deploymentconfig','shortNames':['dc'],'kind':'DeploymentConfig'},"
               "'versions':[{'name':'v1','served':true,'storage':true,'subresources':{'status':{}},"
               "'schema':{'openAPIV3Schema':{'type':'object',"
               "'x-kubernetes-preserve-unknown-fields':true}}}]}}",
               201);
    }
}

static void front_end(struct front *f)
{
    f->h->port = f->own_port;
    http_server_free(f->http);
    free(f->path);
    free(f->request);
    harness_free(f->h);
}

static void put_status(struct harness *h, const char *name, int version)
{
    CLEANUP_FREE char *path = xasprintf(DCS "/%s/status", name);
    CLEANUP_FREE char *body = xasprintf("{\"status\":{\"latestVersion\":%d}}", version);
    CLEANUP_ANSWER struct answer a =
        ask_full(h, "PATCH", path, NULL, "application/merge-patch+json", body);
    assert_int_equal(a.status, 200);
}

static void make_config(struct harness *h, const char *name, int version)
{
    CLEANUP_FREE char *text = xasprintf(
        "{'apiVersion':'apps.openshift.io/v1','kind':'DeploymentConfig','metadata':{'name':'%s'},"
        "'spec':{'replicas':1,'selector':{'app':'web'},'strategy':{'type':'Recreate',"
        "'recreateParams':{'timeoutSeconds':600}},'triggers':[],'template':{'metadata':{'labels':"
        "{'app':'web'}},'spec':{'containers':[{'name':'c','image':'i:1'}],'volumes':[{'name':"
        "'data','emptyDir':{}}]}}}}",
        name);
    put_in(h, "POST", DCS, text, 201);
    put_status(h, name, version);
}

static void make_rc(struct harness *h, const char *dc, int version, const char *phase)
{
    CLEANUP_FREE char *text = xasprintf(
        "{'metadata':{'name':'%s-%d','labels':{'openshift.io/deployment-config.name':'%s'},"
        "'annotations':{'openshift.io/deployment-config.name':'%s',"
        "'openshift.io/deployment-config.latest-version':'%d','openshift.io/deployment.phase':"
        "'%s','openshift.io/deployment.status-reason':'manual change'}},'spec':{'replicas':0,"
        "'selector':{'a':'b'},'template':{'metadata':{'labels':{'a':'b'}},'spec':{'containers':"
        "[{'name':'c','image':'i'}]}}}}",
        dc, version, dc, dc, version, phase);
    put_in(h, "POST", RCS, text, 201);
}

#define ROLLED                                                                                  \
    "{'apiVersion':'apps.openshift.io/"                                                         \
    "v1','kind':'DeploymentConfig','metadata':{'name':'web','namespace':'default'},'status':{'" \
    "latestVersion':3}}"

static void a_rollout_is_started_by_hand(void **state)
{
    struct front f = {.status = 201, .body = ROLLED};
    front_begin(&f);
    make_config(f.h, "web", 2);
    make_rc(f.h, "web", 2, "Running");
    static const struct typed_row running[] = {
        {"rollout latest dc/web", 1, "", "error: #2 is already in progress (Running).\n"},
        {"deploy web --latest", 1, "", "error: #2 is already in progress (Running).\n"},
        {"rollout retry dc/web", 1, "",
         "error: rollout #2 is running; only failed deployments can be retried.\nOptionally, you "
         "can cancel this deployment with 'tenet rollout cancel dc/web'.\n"},
        {"rollout latest none", 1, "",
         "Error from server (NotFound): deploymentconfigs.apps.openshift.io \"none\" not found\n"},
        {"rollout latest", 1, "", "error: one deployment config name is needed as argument.\n"},
        {"rollout restart dc/web", 1, "",
         "error: deploymentconfigs.apps.openshift.io \"web\" restarting is not supported; use "
         "tenet "
         "rollout latest\n"},
        {"rollout cancel dc/web", 0, "deploymentconfig.apps.openshift.io/web cancelling\n", ""},
    };
    typed_check(f.h, running, ARRAY_SIZE(running));
    assert_null(f.path);
    CLEANUP_ANSWER struct answer rc = ask_ok(f.h, "GET", RCS "/web-2", NULL, 200);
    const struct json *notes = json_path(rc.body, "metadata", "annotations", NULL);
    assert_string_equal(json_get_text(notes, "openshift.io/deployment.cancelled"), "true");
    assert_string_equal(json_get_text(notes, "openshift.io/deployment.status-reason"),
                        "cancelled by the user");

    CLEANUP_ANSWER struct answer failed =
        ask_full(f.h, "PATCH", RCS "/web-2", NULL, "application/merge-patch+json",
                 "{\"metadata\":{\"annotations\":{\"openshift.io/deployment.phase\":\"Failed\"}}}");
    assert_int_equal(failed.status, 200);
    put_in(f.h, "POST", "/api/v1/namespaces/default/pods",
           "{'metadata':{'name':'web-2-deploy','labels':{'openshift.io/deployer-pod-for.name':"
           "'web-2'}},'spec':{'containers':[{'name':'c','image':'i'}]}}",
           201);
    static const struct typed_row ended[] = {
        {"rollout cancel dc/web", 0, "No rollout is in progress (latest rollout #2 Failed)\n", ""},
        {"rollout latest web", 0, "deploymentconfig.apps.openshift.io/web rolled out\n", ""},
        {"rollout latest web --again -o name", 0, "deploymentconfig.apps.openshift.io/web\n", ""},
        {"deploy web --latest", 0, "Started deployment #3\n", ""},
        {"rollout retry dc/web", 0, "deploymentconfig.apps.openshift.io/web retried rollout #2\n",
         ""},
        {"rollout history dc/web", 0,
         "deploymentconfig.apps.openshift.io/web \nREVISION  STATUS    CAUSE\n2         New       "
         "<unknown>\n\n",
         ""},
        {"get pods -o name", 0, "", "..."},
    };
    typed_check(f.h, ended, ARRAY_SIZE(ended));
    assert_string_equal(f.path, DCS "/web/instantiate");
    CLEANUP(json_free) struct json *request = NULL;
    assert_int_equal(json_parse(f.request, strlen(f.request), &request, NULL), 0);
    assert_string_equal(json_get_text(request, "kind"), "DeploymentRequest");
    assert_true(json_get_bool(json_get(request, "force"), false));
    assert_true(json_get_bool(json_get(request, "latest"), false));
    f.status = 422;
    f.body = "{'kind':'Status','message':'cannot be done','code':422}";
    make_config(f.h, "other", 0);
    static const struct typed_row refused[] = {
        {"rollout latest other", 1, "", "Error from server (BadRequest): cannot be done\n"},
        {"rollout retry dc/other", 1, "", "error: no rollouts found for \"other\"\n"},
        {"rollout cancel dc/other", 1, "",
         "error: there have been no replication controllers for default/other\n"},
        {"deploy other", 0, "other deploys from template of 0 rollouts\n  no rollout so far\n", ""},
        {"rollout pause dc/other", 0, "deploymentconfig.apps.openshift.io/other paused\n", ""},
        {"rollout latest other", 1, "", "error: cannot deploy a paused deployment config\n"},
        {"rollout cancel dc/other", 1, "",
         "error: unable to cancel paused deployment default/other\n"},
        {"rollout retry dc/other", 1, "",
         "error: unable to retry paused deployment config \"other\"\n"},
        {"rollback other", 1, "", "error: cannot rollback a paused deployment config\n"},
        {"deploy other --latest --retry", 1, "", "error: only one of --cancel,..."},
        {"deploy", 1, "", "error: a deployment config name is required.\n"},
    };
    typed_check(f.h, refused, ARRAY_SIZE(refused));
    front_end(&f);
}

static void a_config_is_rolled_back(void **state)
{
    struct front f = {.status = 201};
    front_begin(&f);
    make_config(f.h, "web", 3);
    make_rc(f.h, "web", 1, "Complete");
    make_rc(f.h, "web", 2, "Failed");
    make_rc(f.h, "web", 3, "Complete");
    f.body = "{'apiVersion':'apps.openshift.io/v1','kind':'DeploymentConfig','metadata':{'name':"
             "'web','namespace':'default'},'spec':{'replicas':1,'selector':{'app':'web'},"
             "'strategy':{'type':'Recreate'},'triggers':[{'type':'ImageChange',"
             "'imageChangeParams':{'automatic':false,'containerNames':['c'],'from':{'kind':"
             "'ImageStreamTag','name':'a:1'}}}],'template':{'metadata':{'labels':{'app':'web'}},"
             "'spec':{'containers':[{'name':'c','image':'old'}]}}},'status':{'latestVersion':4}}";
    static const struct typed_row shown[] = {
        {"rollback web --to-version=9", 1, "", "error: couldn't find deployment for rollback\n"},
        {"rollback web -o jsonpath={.spec.template.spec.containers[0].image}", 0, "old", ""},
        {"rollback web --dry-run", 0,
         "deploymentconfig.apps.openshift.io/web rolled back to web-1 (dry run)\n...", ""},
        {"rollback none", 1, "", "Error from server (NotFound)..."},
        {"rollback", 1, "", "error: a deployment or deployment config name is required\n"},
        {"rollback web --to-version x", 2, "", "..."},
        {"rollback web-2 --change-triggers -o name", 0, "deploymentconfig.apps.openshift.io/web\n",
         ""},
    };
    typed_check(f.h, shown, ARRAY_SIZE(shown));
    CLEANUP(json_free) struct json *request = NULL;
    assert_string_equal(f.path, DCS "/web/rollback");
    assert_int_equal(json_parse(f.request, strlen(f.request), &request, NULL), 0);
    const struct json *spec = json_get(request, "spec");
    assert_int_equal(json_get_int_or(json_get(spec, "revision"), 0), 2);
    assert_true(json_get_bool(json_get(spec, "includeTemplate"), false));
    assert_true(json_get_bool(json_get(spec, "includeTriggers"), false));
    assert_null(json_get(spec, "includeStrategy"));
    /* The server made an object without resourceVersion: the client stores it as it is. */
    CLEANUP_ANSWER struct answer now = ask_ok(f.h, "GET", DCS "/web", NULL, 200);
    CLEANUP_FREE char *with_version = NULL;
    CLEANUP(json_free) struct json *made = json_of(f.body);
    json_set_string(json_get(made, "metadata"), "resourceVersion",
                    json_path_string(now.body, "metadata", "resourceVersion", NULL));
    json_set_string(json_get(made, "metadata"), "uid",
                    json_path_string(now.body, "metadata", "uid", NULL));
    with_version = json_to_text(made);
    f.body = with_version;
    struct outcome o = typed_run(f.h, "rollback web");
    assert_int_equal(o.status, 0);
    assert_non_null(strstr(o.out, " rolled back to web-1\n"));
    assert_non_null(strstr(o.out,
                           "Warning: the following images triggers were disabled: a:1\n  You "
                           "can re-enable them with: tenet set triggers dc/web --auto\n"));
    free(o.out);
    free(o.err);
    CLEANUP_ANSWER struct answer after = ask_ok(f.h, "GET", DCS "/web", NULL, 200);
    const struct json *list = json_path(after.body, "spec", "template", "spec", "containers", NULL);
    assert_string_equal(json_get_text(json_at(list, 0), "image"), "old");
    front_end(&f);
}

static void hooks_and_triggers_of_a_config_are_set(void **state)
{
    struct front f = {.status = 201, .body = ROLLED};
    front_begin(&f);
    make_config(f.h, "web", 1);
    static const struct typed_row rows[] = {
        {"set deployment-hook dc/web --pre -e A=b --volumes=data --failure-policy=abort -- sh -c x",
         0, "deploymentconfig.apps.openshift.io/web hooks updated\n", ""},
        {"set deployment-hook web --mid -- sh", 0,
         "deploymentconfig.apps.openshift.io/web hooks updated\n", ""},
        {"set deployment-hook dc/web --mid --remove", 0,
         "deploymentconfig.apps.openshift.io/web hooks updated\n", ""},
        {"set deployment-hook dc/web --pre --volumes=none -- sh", 1, "",
         "error: the pod template has no volume \"none\"\n"},
        {"set deployment-hook dc/web --pre -c none -- sh", 1, "",
         "error: unable to find container named \"none\"\n"},
        {"set deployment-hook dc/web --pre", 1, "",
         "error: you must specify a command for the deployment hook\n"},
        {"set deployment-hook dc/web --pre --post -- sh", 1, "",
         "error: you must specify one of --pre, --mid, or --post\n"},
        {"set deployment-hook dc/web --remove", 1, "",
         "error: you must specify at least one of --pre, --mid, or --post with the --remove "
         "flag\n"},
        {"set deployment-hook dc/web --pre --failure-policy x -- sh", 2, "", "..."},
        {"set triggers dc/web --from-config", 0,
         "deploymentconfig.apps.openshift.io/web triggers updated\n", ""},
        {"set triggers dc/web --from-image a:1", 0,
         "deploymentconfig.apps.openshift.io/web triggers updated\n", ""},
        {"set triggers dc/web", 0,
         "NAME                    TYPE     VALUE     AUTO\n"
         "deploymentconfigs/web   config             true\n"
         "deploymentconfigs/web   image    a:1 (c)   true\n",
         ""},
        {"set image dc/web c=i:2", 0, "deploymentconfig.apps.openshift.io/web image updated\n", ""},
    };
    typed_check(f.h, rows, ARRAY_SIZE(rows));
    CLEANUP_ANSWER struct answer a = ask_ok(f.h, "GET", DCS "/web", NULL, 200);
    const struct json *params = json_path(a.body, "spec", "strategy", "recreateParams", NULL);
    assert_null(json_get(params, "mid"));
    const struct json *pre = json_get(params, "pre");
    assert_string_equal(json_get_text(pre, "failurePolicy"), "Abort");
    assert_string_equal(json_get_text(json_get(pre, "execNewPod"), "containerName"), "c");
    assert_int_equal(json_count(json_path(pre, "execNewPod", "command", NULL)), 3);
    front_end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_deployment_is_paused_restarted_and_brought_back),
        cmocka_unit_test(a_set_of_revisions_is_brought_back),
        cmocka_unit_test(a_rollout_is_started_by_hand),
        cmocka_unit_test(a_config_is_rolled_back),
        cmocka_unit_test(hooks_and_triggers_of_a_config_are_set),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
