/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that change objects: what is typed, what is printed, and what the API server has. */
#include "typed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define APPS "/apis/apps/v1/namespaces/default/"

static struct harness *begin(void)
{
    struct harness *h = harness_new(NULL, NULL);
    put_in(h, "POST", APPS "deployments",
           "{'metadata':{'name':'web','labels':{'app':'web'}},'spec':{'replicas':2,'selector':"
           "{'matchLabels':{'app':'web'}},'template':{'metadata':{'labels':{'app':'web'}},'spec':"
           "{'containers':[{'name':'c','image':'i:1','ports':[{'containerPort':8080}]},{'name':"
           "'side','image':'s:1'}],'initContainers':[{'name':'init','image':'n:1'}]}}}}",
           201);
    return h;
}

/* The value at a JSON pointer of an object's template, as text. */
static void expect(struct harness *h, const char *path, const char *where, const char *want)
{
    CLEANUP_ANSWER struct answer a = ask_ok(h, "GET", path, NULL, 200);
    const struct json *v = a.body;
    CLEANUP_FREE char *keys = xstrdup(where);
    for (char *save = NULL, *k = strtok_r(keys, "/", &save); k; k = strtok_r(NULL, "/", &save)) {
        v = json_is(v, JSON_ARRAY) ? json_at(v, (size_t) atoi(k)) : json_get(v, k);
    }
    CLEANUP_FREE char *got = v ? json_to_text(v) : xstrdup("");
    CLEANUP_FREE char *wanted = quoted(want);
    assert_string_equal(got, wanted);
}

#define WEB APPS "deployments/web"
#define POD "spec/template/spec/"

static void images_environment_and_resources_are_set(void **state)
{
    struct harness *h = begin();
    static const struct typed_row rows[] = {
        {"set image deployment/web c=i:2", 0, "deployment.apps/web image updated\n", ""},
        {"set image deployment/web c=i:2", 0, "", ""},
        {"set image deploy web *=all:1", 0, "deployment.apps/web image updated\n", ""},
        {"set image deployment/web c=i:3 -o name", 0, "deployment.apps/web\n", ""},
        {"set image deployment/web c=i:4 --dry-run", 0,
         "deployment.apps/web image updated (dry run)\n", ""},
        {"set image deployment/web c=i:4 --dry-run=server", 0,
         "deployment.apps/web image updated (server dry run)\n", ""},
        {"set image deployment/web x=i:2", 1, "", "error: unable to find container named \"x\"\n"},
        {"set image deployment/none c=i:2", 1, "",
         "Error from server (NotFound): deployments.apps \"none\" not found\n"},
        {"set image deployment/web", 1, "", "error: at least one image update is required\n"},
        {"set image deployment/web =i", 1, "",
         "error: invalid image update \"=i\": it is not CONTAINER=IMAGE\n"},
        {"set image deployment c=i", 1, "",
         "error: resource(s) were provided, but no name was specified\n"},
        {"set image ns/default c=i", 1, "",
         "error: namespaces/default is not a pod or does not have a pod template\n"},
        {"set env deployment/web A=1 B=2 -c c", 0, "deployment.apps/web env updated\n", ""},
        {"set env deployment/web B- -c c", 0, "deployment.apps/web env updated\n", ""},
        {"set env deployment/web A=2 --overwrite=false -c c", 1, "",
         "error: 'A' already has a value (1), and --overwrite is false\n"},
        {"set env deployment/web", 1, "",
         "error: at least one environment variable must be provided\n"},
        {"set env deployment/web 1A=2", 1, "",
         "error: invalid parameter 1A=2, must be in the form of NAME=VALUE\n"},
        {"set env deployment/web --list -c c", 0, "# deployments web, container c\nA=1\n", ""},
        {"set env deployment/web --from secret/none", 1, "",
         "Error from server (NotFound): secrets \"none\" not found\n"},
        {"set env deployment/web --from pod/x", 1, "",
         "error: --from: \"pod/x\" is not configmap/NAME or secret/NAME\n"},
        {"set resources deployment/web --limits=cpu=0.5,memory=1024Mi -c c", 0,
         "deployment.apps/web resource requirements updated\n", ""},
        {"set resources deployment/web --requests=cpu=x", 1, "",
         "error: --requests: cpu: \"x\"..."},
        {"set resources deployment/web --requests=cpu", 1, "",
         "error: invalid argument syntax cpu, expected <resource>=<value>\n"},
        {"set resources deployment/web", 1, "",
         "error: you must specify an update to requests or limits (in the form of "
         "--requests/--limits)\n"},
        {"set serviceaccount deployment/web robot", 0,
         "deployment.apps/web serviceaccount updated\n", ""},
        {"set serviceaccount", 1, "", "error: serviceaccount is required\n"},
    };
    static const struct typed_row groups[] = {
        {"set", 2, "usage: tenet set...", ""},
        {"set frob", 2, "", "tenet set: unknown command \"frob\"; see tenet set --help\n"},
        {"rollout", 2, "usage: tenet rollout...", ""},
        {"rollout x", 2, "", "tenet rollout: unknown command \"x\"; see tenet rollout --help\n"},
    };
    typed_check(NULL, groups, ARRAY_SIZE(groups));
    typed_check(h, rows, ARRAY_SIZE(rows));
    expect(h, WEB, POD "containers/0/image", "'i:3'");
    expect(h, WEB, POD "containers/1/image", "'all:1'");
    expect(h, WEB, POD "initContainers/0/image", "'all:1'");
    expect(h, WEB, POD "containers/0/env", "[{'name':'A','value':'1'}]");
    expect(h, WEB, POD "containers/1/env", "");
    expect(h, WEB, POD "containers/0/resources", "{'limits':{'cpu':'500m','memory':'1Gi'}}");
    expect(h, WEB, POD "serviceAccountName", "'robot'");
    harness_free(h);
}

static void environment_comes_from_other_objects(void **state)
{
    struct harness *h = begin();
    put_in(h, "POST", "/api/v1/namespaces/default/configmaps",
           "{'metadata':{'name':'settings'},'data':{'log.level':'x','port':'y'}}", 201);
    static const struct typed_row rows[] = {
        {"set env deployment/web --from configmap/settings --prefix APP_ --keys log.level -c c", 0,
         "deployment.apps/web env updated\n", ""},
        {"set env deployment/web --list -c c", 0,
         "# deployments web, container c\n# APP_LOG_LEVEL from configmap settings, key "
         "log.level\n",
         ""},
    };
    typed_check(h, rows, ARRAY_SIZE(rows));
    expect(h, WEB, POD "containers/0/env",
           "[{'name':'APP_LOG_LEVEL','valueFrom':{'configMapKeyRef':{'name':'settings','key':"
           "'log.level'}}}]");
    harness_free(h);
}

static void probes_are_set_and_removed(void **state)
{
    struct harness *h = begin();
    static const struct typed_row rows[] = {
        {"set probe deployment/web -c c --readiness --get-url http://:8080/ok "
         "--initial-delay-seconds 5",
         0, "deployment.apps/web probes updated\n", ""},
        {"set probe deployment/web -c c --liveness --open-tcp 8080", 0,
         "deployment.apps/web probes updated\n", ""},
        {"set probe deployment/web -c c --startup -- cat /ok", 0,
         "deployment.apps/web probes updated\n", ""},
        {"set probe deployment/web -c side --liveness --period-seconds 3", 1, "",
         "error: container side has no livenessProbe yet: say what it does by --get-url, "
         "--open-tcp or a command\n"},
        {"set probe deployment/web -c c --liveness --remove", 0,
         "deployment.apps/web probes updated\n", ""},
        {"set probe deployment/web", 1, "",
         "error: you must specify one of --readiness, --liveness or --startup\n"},
        {"set probe deployment/web --liveness --get-url ftp://:1/", 1, "",
         "error: only http and https schemes are supported, not \"ftp://:1/\"\n"},
        {"set probe deployment/web --liveness --get-url http://host/x", 1, "",
         "error: port must be specified as part of a url: \"http://host/x\"\n"},
        {"set probe deployment/web --liveness --get-url http://:1/ --open-tcp 2", 1, "",
         "error: only one of --get-url, --open-tcp and a command is allowed\n"},
        {"set probe deployment/web --liveness --remove --open-tcp 2", 1, "", "error: --remove..."},
        {"set probe deployment/web --liveness --period-seconds x", 2, "", "..."},
    };
    typed_check(h, rows, ARRAY_SIZE(rows));
    expect(h, WEB, POD "containers/0/readinessProbe/httpGet",
           "{'port':8080,'scheme':'HTTP','path':'/ok'}");
    expect(h, WEB, POD "containers/0/readinessProbe/initialDelaySeconds", "5");
    expect(h, WEB, POD "containers/0/startupProbe/exec/command", "['cat','/ok']");
    expect(h, WEB, POD "containers/0/livenessProbe", "");
    harness_free(h);
}

static void volumes_are_added_listed_and_removed(void **state)
{
    struct harness *h = begin();
    static const struct typed_row rows[] = {
        {"set volumes deployment/web --add --name v -m /v -c c", 0,
         "deployment.apps/web volume updated\n", ""},
        {"set volumes deployment/web --add --name v", 1, "",
         "error: volume 'v' already exists; use --overwrite to replace it\n"},
        {"set volumes deployment/web --add --name w -m /v", 1, "",
         "error: volume mount '/v' already exists for container 'c'; use --overwrite to replace "
         "it\n"},
        {"set volumes deployment/web --add --name d --claim-name data --claim-size 1Gi -m /d -c c",
         0, "persistentvolumeclaim/data created\ndeployment.apps/web volume updated\n", ""},
        {"set volumes deployment/web", 0,
         "deployments/web\n"
         "  empty directory as v\n"
         "    mounted at /v in container c\n"
         "  pvc/data as d\n"
         "    mounted at /d in container c\n",
         ""},
        {"set volumes deployment/web --add", 1, "", "error: --name is required with --add\n"},
        {"set volumes deployment/web --add --name s -t secret", 1, "",
         "error: a volume of type secret needs the option that names its source\n"},
        {"set volumes deployment/web --add --name s -t frob", 1, "",
         "error: volume type \"frob\" is not..."},
        {"set volumes deployment/web --add --name s --claim-name x --claim-size y", 1, "",
         "error: --claim-size: \"y\" is not a size of a persistent volume claim\n"},
        {"set volumes deployment/web --remove", 1, "",
         "error: must provide --confirm for removing more than one volume\n"},
        {"set volumes deployment/web --remove --name x", 1, "", "error: volume 'x' not found\n"},
        {"set volumes deployment/web --remove --name v", 0, "deployment.apps/web volume updated\n",
         ""},
        {"set volumes deployment/web", 0,
         "deployments/web\n  pvc/data as d\n    mounted at /d in container c\n", ""},
        {"set volumes deployment/web --remove --confirm", 0, "deployment.apps/web volume updated\n",
         ""},
    };
    typed_check(h, rows, ARRAY_SIZE(rows));
    expect(h, WEB, POD "volumes", "");
    expect(h, "/api/v1/namespaces/default/persistentvolumeclaims/data", "spec/accessModes",
           "['ReadWriteOnce']");
    harness_free(h);
}

static void triggers_of_a_deployment_are_an_annotation(void **state)
{
    struct harness *h = begin();
    static const struct typed_row rows[] = {
        {"set triggers deployment/web --from-image blue/ruby:latest -c c", 0,
         "deployment.apps/web triggers updated\n", ""},
        {"set triggers deployment/web", 0,
         "NAME              TYPE     VALUE                  AUTO\n"
         "deployments/web   config                          true\n"
         "deployments/web   image    blue/ruby:latest (c)   true\n",
         ""},
        {"set triggers deployment/web --manual", 0, "deployment.apps/web triggers updated\n", ""},
        {"set triggers deployment/web --from-image x:1", 1, "",
         "error: you must specify --containers when setting --from-image\n"},
        {"set triggers deployment/web --from-image x", 1, "",
         "error: the value of --from-image must include the tag you wish to pull from\n"},
        {"set triggers deployment/web --auto --manual", 1, "",
         "error: you must specify at most one of --auto or --manual\n"},
        {"set triggers deployment/web --remove", 1, "",
         "error: --remove requires a flag defining a trigger type to be specified\n"},
        {"set triggers deployment/web --remove-all --auto", 1, "",
         "error: --remove-all may not be used with any other flag\n"},
        {"set triggers ns/default", 1, "", "error: namespaces/default does not support triggers\n"},
    };
    typed_check(h, rows, ARRAY_SIZE(rows));
    expect(h, WEB, "spec/paused", "true");
    static const struct typed_row more[] = {
        {"set triggers deployment/web --from-image blue/ruby:latest --remove", 0,
         "deployment.apps/web triggers updated\n", ""},
        {"set triggers deployment/web --auto", 0, "deployment.apps/web triggers updated\n", ""},
    };
    typed_check(h, more, ARRAY_SIZE(more));
    expect(h, WEB, "spec/paused", "");
    expect(h, WEB, "metadata/annotations", "");
    harness_free(h);
}

static void labels_and_annotations_are_changed(void **state)
{
    struct harness *h = begin();
    static const struct typed_row rows[] = {
        {"label deployment web a=b c=d", 0, "deployment.apps/web labeled\n", ""},
        {"label deployment web a=b", 0, "deployment.apps/web not labeled\n", ""},
        {"label deployment web a=x", 1, "",
         "error: 'a' already has a value (b), and --overwrite is false\n"},
        {"label deployment web a=x --overwrite", 0, "deployment.apps/web labeled\n", ""},
        {"label deployment web c-", 0, "deployment.apps/web unlabeled\n", ""},
        {"label deployment web c-", 0, "label \"c\" not found.\ndeployment.apps/web not labeled\n",
         ""},
        {"label deployment web --list", 0, "a=x\napp=web\n", ""},
        {"label deployment web", 1, "", "error: at least one label update is required\n"},
        {"label deployment web =x", 1, "", "error: invalid label spec: \"=x\"\n"},
        {"label deployment --all tier=1", 0, "deployment.apps/web labeled\n", ""},
        {"label deployment -l app=none tier=2", 0, "", ""},
        {"label deployment web t=1 --resource-version 1", 1, "",
         "error: the object has resource version..."},
        {"annotate deployment/web note=1", 0, "deployment.apps/web annotated\n", ""},
        {"annotate deployment/web note=2", 1, "",
         "error: --overwrite is false but found the following declared annotation(s): 'note' "
         "already has a value (1)\n"},
        {"annotate deployment/web note-", 0, "deployment.apps/web annotated\n", ""},
    };
    typed_check(h, rows, ARRAY_SIZE(rows));
    expect(h, WEB, "metadata/labels", "{'app':'web','a':'x','tier':'1'}");
    harness_free(h);
}

static void objects_are_patched_in_three_forms(void **state)
{
    struct harness *h = begin();
    static const struct typed_row rows[] = {
        {"patch deployment web -p {\"spec\":{\"replicas\":5}}", 0, "deployment.apps/web patched\n",
         ""},
        {"patch deployment web -p {\"spec\":{\"replicas\":5}}", 0,
         "deployment.apps/web patched (no change)\n", ""},
        {"patch deployment web --type json -p "
         "[{\"op\":\"replace\",\"path\":\"/spec/replicas\",\"value\":6}]",
         0, "deployment.apps/web patched\n", ""},
        {"patch deployment web --type merge -p {\"spec\":{\"minReadySeconds\":7}}", 0,
         "deployment.apps/web patched\n", ""},
        {"patch deployment web -p {\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":"
         "\"c\",\"image\":\"i:9\"}]}}}}",
         0, "deployment.apps/web patched\n", ""},
        {"patch deployment web --type frob -p {}", 1, "",
         "error: --type must be one of [json merge strategic], not \"frob\"\n"},
        {"patch deployment web", 1, "",
         "error: must specify --patch or --patch-file containing the contents of the patch\n"},
        {"patch deployment web -p {", 1, "", "error: unable to parse \"{\"..."},
        {"patch deployment web -p {\"spec\":{\"replicas\":-1}}", 1, "",
         "The Deployment \"web\" is invalid: ..."},
    };
    typed_check(h, rows, ARRAY_SIZE(rows));
    expect(h, WEB, "spec/replicas", "6");
    expect(h, WEB, "spec/minReadySeconds", "7");
    expect(h, WEB, POD "containers/1/image", "'s:1'");
    harness_free(h);
}

/* An editor that replaces one text, or does nothing. */
static char *write_editor(const char *script)
{
    char *path = xstrdup("/tmp/tenet-editor-XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, script, strlen(script)), (ssize_t) strlen(script));
    assert_int_equal(fchmod(fd, 0700), 0);
    close(fd);
    setenv("KUBE_EDITOR", path, 1);
    return path;
}

static void an_object_is_edited(void **state)
{
    struct harness *h = begin();
    CLEANUP_FREE char *changes =
        write_editor("#!/bin/sh\nsed -i 's/replicas: 2/replicas: 4/' \"$1\"\n");
    static const struct typed_row change[] = {
        {"edit deployment/web", 0, "deployment.apps/web edited\n", ""},
        {"edit deployment/web", 0, "Edit cancelled, no changes made.\n", ""},
    };
    typed_check(h, change, ARRAY_SIZE(change));
    expect(h, WEB, "spec/replicas", "4");
    unlink(changes);
    CLEANUP_FREE char *empties = write_editor("#!/bin/sh\n: > \"$1\"\n");
    static const struct typed_row empty[] = {
        {"edit deployment/web", 0, "Edit cancelled, saved file was empty.\n", ""}};
    typed_check(h, empty, 1);
    unlink(empties);
    CLEANUP_FREE char *fails = write_editor("#!/bin/sh\nrm \"$1\"\nexit 3\n");
    static const struct typed_row fail[] = {
        {"edit deployment/web", 1, "", "error: there was a problem with the editor..."}};
    typed_check(h, fail, 1);
    unlink(fails);
    unsetenv("KUBE_EDITOR");
    expect(h, WEB, "spec/replicas", "4");
    harness_free(h);
}

static void workloads_are_scaled(void **state)
{
    struct harness *h = begin();
    static const struct typed_row rows[] = {
        {"scale deployment/web --replicas 3", 0, "deployment.apps/web scaled\n", ""},
        {"scale deployment web --replicas=4 --current-replicas=2", 1, "",
         "error: Expected replicas to be 2, was 3\n"},
        {"scale deployment/web --replicas=4 --current-replicas=3 --dry-run", 0,
         "deployment.apps/web scaled (dry run)\n", ""},
        {"scale deployment/web --replicas=4 --current-replicas=3", 0,
         "deployment.apps/web scaled\n", ""},
        {"scale deployment/web --replicas=5 --resource-version=1", 1, "",
         "error: Expected resource version to be 1, was..."},
        {"scale deployment/web", 1, "",
         "error: The --replicas=COUNT flag is required, and COUNT must be greater than or equal to "
         "0\n"},
        {"scale deployment/web --replicas x", 2, "",
         "tenet scale: \"x\" is not a number of replicas; see tenet scale --help\n"},
        {"scale deployment --all --replicas 6", 0, "deployment.apps/web scaled\n", ""},
        {"scale deployment -l app=none --replicas 6", 1, "", "error: no objects passed to scale\n"},
        {"scale deployment/web --replicas=7 --timeout=100ms", 1, "",
         "error: timed out waiting for deployments.apps \"web\" to be synced\n"},
        {"scale ns/default --replicas=1", 1, "", "Error from server (NotFound)..."},
        {"autoscale deployment/web --max 5 --min 2 --cpu-percent 70", 0,
         "horizontalpodautoscaler.autoscaling/web autoscaled\n", ""},
        {"autoscale deployment/web --max 5", 1, "",
         "Error from server (AlreadyExists): horizontalpodautoscalers.autoscaling \"web\" already "
         "exists\n"},
        {"autoscale deployment/web --max 5 --name other", 0,
         "horizontalpodautoscaler.autoscaling/other autoscaled\n", ""},
        {"autoscale deployment/web", 1, "",
         "error: --max=MAXPODS is required and must be at least 1, max: -1\n"},
        {"autoscale deployment/web --max 1 --min 2", 1, "",
         "error: --max=MAXPODS must be larger or equal to --min=MINPODS, max: 1, min: 2\n"},
    };
    typed_check(h, rows, ARRAY_SIZE(rows));
    expect(h, WEB, "spec/replicas", "7");
    expect(h, "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers/web", "spec",
           "{'scaleTargetRef':{'apiVersion':'apps/v1','kind':'Deployment','name':'web'},"
           "'minReplicas':2,'maxReplicas':5,'targetCPUUtilizationPercentage':70}");
    harness_free(h);
}

static void workloads_are_created_and_exposed(void **state)
{
    struct harness *h = begin();
    static const struct typed_row rows[] = {
        {"create deployment api --image=a:1 --replicas=2 --port=80", 0,
         "deployment.apps/api created\n", ""},
        {"create deployment api --image=a:1", 1, "",
         "Error from server (AlreadyExists): deployments.apps \"api\" already exists\n"},
        {"create deployment x", 1, "", "error: required flag(s) \"image\" not set\n"},
        {"create deployment --image=a:1", 1, "", "error: exactly one NAME is required, got 0\n"},
        {"create -n default deployment y --image a:1 --dry-run -o name", 0, "deployment.apps/y\n",
         ""},
        {"create job once --image=a:1 -- sh -c true", 0, "job.batch/once created\n", ""},
        {"create cronjob night --image=a:1 --schedule=@daily", 0, "cronjob.batch/night created\n",
         ""},
        {"create cronjob x --image=a:1", 1, "", "error: required flag(s) \"schedule\" not set\n"},
        {"create job now --from=cronjob/night", 0, "job.batch/now created\n", ""},
        {"create job now2 --from=cronjob/none", 1, "",
         "Error from server (NotFound): cronjobs.batch \"none\" not found\n"},
        {"create job now3 --from=x", 1, "",
         "error: from must be an existing cronjob: \"x\" is not cronjob/NAME\n"},
        {"create job now4 --from=cronjob/night --image=a:1", 1, "", "error: either --image..."},
        {"create deployment z --image=a --replicas=x", 2, "",
         "tenet create: --replicas \"x\" is not a number..."},
        {"run tool --image=t:1 --env=A=b --labels=x=y --restart=Never -- --flag", 0,
         "pod/tool created\n", ""},
        {"run tool2", 1, "", "error: required flag(s) \"image\" not set\n"},
        {"run --image=a", 1, "", "error: NAME is required for run\n"},
        {"run a --image=a --env=x", 1, "", "error: invalid env: x\n"},
        {"expose deployment/web --cluster-ip None", 0, "service/web exposed\n", ""},
        {"expose deployment/web --name other --port 80,443 --target-port 8080 --cluster-ip None "
         "--labels a=b",
         0, "service/other exposed\n", ""},
        {"expose pod/tool --name tool", 1, "",
         "error: couldn't find port via --port flag or introspection\n"},
        {"expose pod/tool --port x", 1, "", "error: --port: \"x\" is not a port\n"},
        {"set selector service/web a=b,c=d", 0, "service/web selector updated\n", ""},
        {"set selector deployment/web a=b", 1, "",
         "error: setting a selector is only supported for Services, not for deployments\n"},
        {"set selector service/web", 1, "", "error: a selector such as app=web..."},
    };
    typed_check(h, rows, ARRAY_SIZE(rows));
    expect(h, APPS "deployments/api", POD "containers/0/ports/0/containerPort", "80");
    expect(h, "/apis/batch/v1/namespaces/default/jobs/once", POD "containers/0/command",
           "['sh','-c','true']");
    expect(h, "/apis/batch/v1/namespaces/default/jobs/now", "metadata/ownerReferences/0/kind",
           "'CronJob'");
    expect(h, "/api/v1/namespaces/default/pods/tool", "metadata/labels", "{'x':'y'}");
    expect(h, "/api/v1/namespaces/default/pods/tool", "spec/containers/0/args", "['--flag']");
    expect(h, "/api/v1/namespaces/default/services/web", "spec/ports",
           "[{'port':8080,'protocol':'TCP','targetPort':8080}]");
    expect(h, "/api/v1/namespaces/default/services/web", "spec/selector", "{'a':'b','c':'d'}");
    expect(h, "/api/v1/namespaces/default/services/other", "spec/ports",
           "[{'name':'port-1','port':80,'protocol':'TCP','targetPort':8080},"
           "{'name':'port-2','port':443,'protocol':'TCP','targetPort':8080}]");
    harness_free(h);
}

static void conditions_are_waited_for(void **state)
{
    struct harness *h = begin();
    static const struct typed_row rows[] = {
        {"wait deployment/web --for=condition=Available --timeout=50ms", 1, "",
         "error: timed out waiting for the condition on deployments/web\n"},
        {"wait deployment/web --for=jsonpath={.spec.replicas}=2", 0,
         "deployment.apps/web condition met\n", ""},
        {"wait deployment/web --for=jsonpath={.spec.replicas}", 0,
         "deployment.apps/web condition met\n", ""},
        {"wait deployment/web --for=jsonpath={.spec.replicas}=3 --timeout=0", 1, "",
         "error: timed out waiting for the condition on deployments/web\n"},
        {"wait deployment/web --for=create", 0, "deployment.apps/web condition met\n", ""},
        {"wait deployment/none --for=delete", 0, "deployment.apps/none condition met\n", ""},
        {"wait deployment/web --for=delete --timeout=50ms", 1, "",
         "error: timed out waiting for the condition on deployments/web\n"},
        {"wait deployment/none --for=condition=Available", 1, "",
         "Error from server (NotFound): deployments.apps \"none\" not found\n"},
        {"wait deployment -l app=none --for=condition=Available", 1, "",
         "error: no matching resources found\n"},
        {"wait deployment --all --for=jsonpath={.metadata.name}=web -A", 0,
         "deployment.apps/web condition met\n", ""},
        {"wait deployment/web", 1, "", "error: --for is required..."},
        {"wait deployment/web --for=frob", 1, "", "error: unrecognized condition: \"frob\"\n"},
        {"wait deployment/web --for=jsonpath=x", 1, "", "error: jsonpath wait format..."},
        {"wait deployment/web --for=delete --timeout=x", 2, "", "..."},
    };
    typed_check(h, rows, ARRAY_SIZE(rows));
    harness_free(h);
}

static void logs_name_what_lacks(void **state)
{
    struct harness *h = begin();
    static const struct typed_row rows[] = {
        {"logs", 2, "", "tenet logs: expected POD, KIND/NAME, or --selector; ..."},
        {"logs none", 1, "", "Error from server (NotFound): pods \"none\" not found\n"},
        {"logs deployment/web", 1, "", "error: deployment/web has no pods so far\n"},
        {"logs -l a=b", 0, "", "No resources found in default namespace.\n"},
        {"logs ns/default", 1, "",
         "error: cannot get the logs from Namespace: it has no selector of pods\n"},
        {"logs x --since 5s --since-time 2026-01-01T00:00:00Z", 1, "",
         "error: at most one of --since and --since-time may be specified\n"},
        {"logs x --tail x", 2, "", "tenet logs: --tail \"x\" is not a number; ..."},
    };
    typed_check(h, rows, ARRAY_SIZE(rows));
    harness_free(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(images_environment_and_resources_are_set),
        cmocka_unit_test(environment_comes_from_other_objects),
        cmocka_unit_test(probes_are_set_and_removed),
        cmocka_unit_test(volumes_are_added_listed_and_removed),
        cmocka_unit_test(triggers_of_a_deployment_are_an_annotation),
        cmocka_unit_test(labels_and_annotations_are_changed),
        cmocka_unit_test(objects_are_patched_in_three_forms),
        cmocka_unit_test(an_object_is_edited),
        cmocka_unit_test(workloads_are_scaled),
        cmocka_unit_test(workloads_are_created_and_exposed),
        cmocka_unit_test(conditions_are_waited_for),
        cmocka_unit_test(logs_name_what_lacks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
