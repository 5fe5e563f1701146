/* SPDX-License-Identifier: Apache-2.0 */
/* "tenet status": the picture of a project, its problems, and what to do. */
#include "cli/workloads/survey.h"

#include "base/timeutil.h"
#include "json_text.h"

/* A project with one list, at 2026-11-28T00:05:00Z. */
static struct json *problems_of(enum survey_list list, const char *items)
{
    CLEANUP_FREE char *text = xasprintf("{'items':[%s]}", items);
    CLEANUP(json_free) struct json *v = from(text);
    struct survey s = {.project = "red", .server = "https://m"};
    s.lists[list] = v;
    return survey_problems(&s);
}

static void every_problem_has_a_reason_and_advice(void **state)
{
    static const struct {
        enum survey_list list;
        const char *object, *severity, *name, *text, *advice;
    } rows[] = {
        {SURVEY_PODS,
         "{'metadata':{'name':'p'},'status':{'containerStatuses':[{'name':'c','restartCount':4,"
         "'state':{'waiting':{'reason':'CrashLoopBackOff'}},'lastState':{'terminated':"
         "{'exitCode':3}}}]}}",
         "error", "pod/p", "container c crashes again and again (exit code 3, 4 restarts)",
         "tenet logs -p pod/p -c c"},
        {SURVEY_PODS,
         "{'metadata':{'name':'p'},'status':{'containerStatuses':[{'name':'c','image':'x:1',"
         "'state':{'waiting':{'reason':'ImagePullBackOff','message':'not found'}}}]}}",
         "error", "pod/p", "cannot pull the image \"x:1\" of container c: not found",
         "correct the image with tenet set image, or add a pull secret to the service account"},
        {SURVEY_PODS,
         "{'metadata':{'name':'p'},'status':{'initContainerStatuses':[{'name':'i','state':"
         "{'waiting':{'reason':'CreateContainerConfigError','message':'no secret s'}}}]}}",
         "error", "pod/p", "container i cannot start: no secret s", "tenet describe pod/p"},
        {SURVEY_PODS,
         "{'metadata':{'name':'p'},'status':{'containerStatuses':[{'name':'c','restartCount':10,"
         "'state':{'running':{}}}]}}",
         "warning", "pod/p", "container c has restarted 10 times", "tenet logs -p pod/p -c c"},
        {SURVEY_PODS,
         "{'metadata':{'name':'p'},'status':{'conditions':[{'type':'PodScheduled','status':"
         "'False','message':'0/3 nodes are available'}]}}",
         "error", "pod/p", "has no node: 0/3 nodes are available",
         "tenet describe pod/p; lower its requests, or add nodes"},
        {SURVEY_PODS, "{'metadata':{'name':'p'},'status':{'reason':'Evicted','message':'disk'}}",
         "warning", "pod/p", "was evicted: disk", "tenet delete pod/p"},
        {SURVEY_SERVICES, "{'metadata':{'name':'s'},'spec':{'selector':{'a':'b'}}}", "error",
         "svc/s", "has no endpoints: no pod matches its selector", NULL},
        {SURVEY_DEPLOYMENTS,
         "{'metadata':{'name':'d'},'status':{'conditions':[{'type':'ReplicaFailure','status':"
         "'True','message':'pods \\'d\\' is forbidden: exceeded quota: q'}]}}",
         "error", "deployment/d",
         "is refused by a quota: pods \"d\" is forbidden: exceeded quota: q", NULL},
        {SURVEY_DEPLOYMENTS,
         "{'metadata':{'name':'d'},'status':{'conditions':[{'type':'ReplicaFailure','status':"
         "'True','message':'no account'}]}}",
         "error", "deployment/d", "cannot create its pods: no account",
         "tenet describe deployment/d"},
        {SURVEY_DEPLOYMENTS,
         "{'metadata':{'name':'d'},'status':{'conditions':[{'type':'Progressing','status':'False',"
         "'reason':'ProgressDeadlineExceeded','message':'too slow'}]}}",
         "error", "deployment/d", "its rollout does not go on: too slow",
         "see its new pods, or tenet rollout undo deployment/d"},
        {SURVEY_DEPLOYMENTS,
         "{'metadata':{'name':'d'},'spec':{'template':{'spec':{'containers':[{'name':'a'},"
         "{'name':'b','readinessProbe':{}}]}}}}",
         "info", "deployment/d",
         "has no readiness probe in a: new pods get requests before they can answer",
         "tenet set probe deployment/d --readiness --get-url http://:8080/"},
        {SURVEY_DCS, "{'metadata':{'name':'c'},'spec':{'triggers':[]},'status':{}}", "info", "dc/c",
         "has no trigger, and was never rolled out", "tenet rollout latest dc/c"},
        {SURVEY_DCS,
         "{'metadata':{'name':'c'},'status':{'latestVersion':2,'conditions':[{'type':"
         "'Progressing','status':'False','reason':'RolloutCancelled','message':'by the user'}]}}",
         "error", "dc/c", "its latest rollout failed: by the user",
         "tenet logs dc/c; then tenet rollout retry dc/c"},
        {SURVEY_DCS,
         "{'metadata':{'name':'c'},'status':{'latestVersion':0,'conditions':[{'type':"
         "'Progressing','status':'False','reason':'WaitingForImage','message':'no tag a:1'}]}}",
         "warning", "dc/c", "waits for its image: no tag a:1",
         "tenet set triggers dc/c shows the image stream tag"},
        {SURVEY_RCS,
         "{'metadata':{'name':'r'},'status':{'conditions':[{'type':'ReplicaFailure','status':"
         "'True','message':'m'}]}}",
         "error", "rc/r", "cannot create its pods: m", "tenet describe rc/r"},
        {SURVEY_JOBS,
         "{'metadata':{'name':'j'},'status':{'conditions':[{'type':'Failed','status':'True',"
         "'reason':'BackoffLimitExceeded','message':''}]}}",
         "error", "job/j", "failed: BackoffLimitExceeded", "tenet logs job/j"},
        {SURVEY_CLAIMS, "{'metadata':{'name':'v'},'status':{'phase':'Pending'}}", "warning",
         "pvc/v", "has no volume so far: no reason was given",
         "tenet describe pvc/v; tenet get pv"},
        {SURVEY_CLAIMS, "{'metadata':{'name':'v'},'status':{'phase':'Lost'}}", "error", "pvc/v",
         "has lost its volume", "restore the volume, or delete pvc/v and its pods"},
        {SURVEY_QUOTAS,
         "{'metadata':{'name':'q'},'status':{'hard':{'pods':'2','cpu':'4','none':'0'},'used':"
         "{'pods':'2','cpu':'1','none':'0'}}}",
         "warning", "quota/q", "is used up: pods (2)", "tenet describe quota/q"},
        {SURVEY_ROUTES, "{'metadata':{'name':'r'},'spec':{'to':{'name':'gone'}}}", "error",
         "route/r", "leads to the service \"gone\", which does not exist",
         "create the service, or delete route/r"},
        {SURVEY_AUTOSCALERS,
         "{'metadata':{'name':'h','annotations':{'autoscaling.alpha.kubernetes.io/conditions':"
         "'[{\\'type\\':\\'ScalingActive\\',\\'status\\':\\'False\\',\\'message\\':\\'no "
         "metrics\\'}]'}}}",
         "warning", "hpa/h", "does not scale: no metrics", "tenet describe hpa/h"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP(json_free) struct json *found = problems_of(rows[i].list, rows[i].object);
        const struct json *p = json_at(found, 0);
        if (json_count(found) != 1 || !streq(json_get_text(p, "severity"), rows[i].severity) ||
            !streq(json_get_text(p, "object"), rows[i].name) ||
            !streq(json_get_text(p, "text"), rows[i].text) ||
            (rows[i].advice && !streq(json_get_text(p, "advice"), rows[i].advice)) ||
            !*json_get_text(p, "advice")) {
            CLEANUP_FREE char *text = json_to_text(found);
            fail_msg("row %zu: %s", i, text);
        }
    }
}

static void healthy_objects_are_no_problem(void **state)
{
    static const struct {
        enum survey_list list;
        const char *object;
    } rows[] = {
        {SURVEY_PODS,
         "{'metadata':{'name':'p'},'status':{'conditions':[{'type':'PodScheduled','status':"
         "'True'}],'containerStatuses':[{'name':'c','restartCount':9,'state':{'waiting':{'reason':"
         "'ContainerCreating'}}}]}}"},
        {SURVEY_PODS,
         "{'metadata':{'name':'p','deletionTimestamp':'x'},'status':{'containerStatuses':[{'name':"
         "'c','state':{'waiting':{'reason':'CrashLoopBackOff'}}}]}}"},
        {SURVEY_SERVICES, "{'metadata':{'name':'s'},'spec':{}}"},
        {SURVEY_SERVICES,
         "{'metadata':{'name':'s','annotations':{'idling.alpha.openshift.io/idled-at':'x'}},"
         "'spec':{'selector':{'a':'b'}}}"},
        {SURVEY_REPLICA_SETS,
         "{'metadata':{'name':'r','ownerReferences':[{'kind':'Deployment','controller':true}]},"
         "'status':{'conditions':[{'type':'ReplicaFailure','status':'True'}]}}"},
        {SURVEY_CLAIMS, "{'metadata':{'name':'v'},'status':{'phase':'Bound'}}"},
        {SURVEY_JOBS,
         "{'metadata':{'name':'j'},'status':{'conditions':[{'type':'Complete','status':'True'}]}}"},
        {SURVEY_DCS,
         "{'metadata':{'name':'c'},'spec':{'triggers':[{'type':'ConfigChange'}]},'status':{}}"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP(json_free) struct json *found = problems_of(rows[i].list, rows[i].object);
        if (json_count(found) != 0) {
            CLEANUP_FREE char *text = json_to_text(found);
            fail_msg("row %zu: %s", i, text);
        }
    }
}

static void a_pending_claim_says_what_its_latest_event_says(void **state)
{
    CLEANUP(json_free)
    struct json *claims =
        from("{'items':[{'metadata':{'name':'v'},'status':{'phase':'Pending'}}]}");
    CLEANUP(json_free)
    struct json *events =
        from("{'items':[{'involvedObject':{'kind':'PersistentVolumeClaim','name':'v'},'message':"
             "'3 volumes are too small','lastTimestamp':'2026-11-28T00:00:02Z'},"
             "{'involvedObject':{'kind':'PersistentVolumeClaim','name':'v'},'message':'older',"
             "'lastTimestamp':'2026-11-28T00:00:01Z'},{'involvedObject':{'kind':"
             "'PersistentVolumeClaim','name':'other'},'message':'no','lastTimestamp':"
             "'2026-11-28T00:00:03Z'}]}");
    struct survey s = {.project = "red", .server = "x"};
    s.lists[SURVEY_CLAIMS] = claims;
    s.lists[SURVEY_EVENTS] = events;
    CLEANUP(json_free) struct json *found = survey_problems(&s);
    assert_string_equal(json_get_text(json_at(found, 0), "text"),
                        "has no volume so far: 3 volumes are too small");
}

static const char *const project[SURVEY_N] = {
    [SURVEY_SERVICES] =
        "{'metadata':{'name':'web'},'spec':{'clusterIP':'172.30.0.1','selector':{'app':'web'},"
        "'ports':[{'port':80,'targetPort':8080},{'port':443,'targetPort':'tls'}]}},"
        "{'metadata':{'name':'db'},'spec':{'clusterIP':'None','selector':{'app':'db'},'ports':"
        "[{'port':5432}]}},"
        "{'metadata':{'name':'mail'},'spec':{'type':'ExternalName','externalName':'m.example'}}",
    [SURVEY_ENDPOINTS] =
        "{'metadata':{'name':'web'},'subsets':[{'addresses':[{}]}]},{'metadata':{'name':'db'},"
        "'subsets':[{'notReadyAddresses':[{},{}]}]}",
    [SURVEY_ROUTES] = "{'metadata':{'name':'r'},'spec':{'host':'web.example','to':{'name':'web'},"
                      "'tls':{}}}",
    [SURVEY_DEPLOYMENTS] =
        "{'metadata':{'name':'web','uid':'d'},'spec':{'paused':true,'template':{'metadata':"
        "{'labels':{'app':'web'}},'spec':{'containers':[{'image':'web:1','readinessProbe':{}}]}}}}",
    [SURVEY_REPLICA_SETS] =
        "{'metadata':{'name':'web-1','uid':'r1','creationTimestamp':'2026-11-28T00:00:00Z',"
        "'annotations':{'deployment.kubernetes.io/revision':'2'},'ownerReferences':[{'uid':'d',"
        "'kind':'Deployment','controller':true}]},'spec':{'replicas':2},'status':{'replicas':2,"
        "'readyReplicas':1}},"
        "{'metadata':{'name':'web-0','uid':'r0','ownerReferences':[{'uid':'d','kind':"
        "'Deployment','controller':true}]},'spec':{'replicas':0}}",
    [SURVEY_PODS] =
        "{'metadata':{'name':'web-1-a','ownerReferences':[{'uid':'r1','controller':true}]},"
        "'spec':{'containers':[{}]},'status':{'phase':'Running','containerStatuses':[{'ready':"
        "true,'restartCount':1}]}},"
        "{'metadata':{'name':'web-1-b','ownerReferences':[{'uid':'r1','controller':true}]},"
        "'spec':{'containers':[{}]},'status':{'phase':'Pending'}},"
        "{'metadata':{'name':'tool','labels':{'x':'y'}},'spec':{'containers':[{},{}]},'status':"
        "{'phase':'Running','containerStatuses':[{'ready':true}]}},"
        "{'metadata':{'name':'done'},'status':{'phase':'Succeeded'}}",
    [SURVEY_CRON_JOBS] = "{'metadata':{'name':'night'},'spec':{'schedule':'0 3 * * *','suspend':"
                         "true}}",
    [SURVEY_JOBS] =
        "{'metadata':{'name':'load'},'spec':{'completions':3,'template':{'spec':{'containers':"
        "[{'image':'load:1'}]}}},'status':{'succeeded':1,'failed':2}}",
    [SURVEY_STATEFUL_SETS] =
        "{'metadata':{'name':'db','uid':'s'},'spec':{'replicas':2,'template':{'metadata':"
        "{'labels':{'app':'db'}},'spec':{'containers':[{'image':'db:1','readinessProbe':{}}]}}}}",
};

static void a_project_is_drawn(void **state)
{
    struct json *lists[SURVEY_N] = {NULL};
    struct survey s = {.project = "red", .server = "https://m", .suggest = false};
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    assert_int_equal(time_parse("2026-11-28T00:05:00Z", &s.now_ms), 0);
    for (size_t i = 0; i < SURVEY_N; i++) {
        CLEANUP_FREE char *text = xasprintf("{'items':[%s]}", project[i] ? project[i] : "");
        s.lists[i] = lists[i] = from(text);
    }
    survey_draw(&s, &out);
    assert_string_equal(
        strbuf_cstr(&out),
        "In project red on server https://m\n"
        "\n"
        "https://web.example to svc/web (route/r)\n"
        "svc/web - 172.30.0.1:80 -> 8080, 443 -> tls\n"
        "  deployment/web deploys web:1 (paused)\n"
        "    revision #2 (5m) - 1/2 pods\n"
        "      pod/web-1-a Running 1/1 ready, 1 restart\n"
        "      pod/web-1-b Pending 0/1 ready\n"
        "\n"
        "svc/db - headless :5432\n"
        "  statefulset/db deploys db:1\n"
        "    0/2 pods\n"
        "\n"
        "svc/mail - the name m.example\n"
        "\n"
        "Without a service:\n"
        "  pod/tool Running 1/2 ready\n"
        "\n"
        "cronjob/night makes a job at \"0 3 * * *\" (suspended)\n"
        "job/load runs load:1 - 1/3 succeeded, 2 failed\n"
        "\n"
        "Errors:\n"
        "  * svc/db has no endpoints: none of its 2 pods is ready\n"
        "    try: see what is wrong with the pods above, and their readiness probes\n");
    for (size_t i = 0; i < SURVEY_N; i++) {
        json_free(lists[i]);
    }
}

static void an_empty_project_says_how_to_begin(void **state)
{
    struct survey s = {.project = "red", .server = "https://m"};
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    survey_draw(&s, &out);
    assert_string_equal(strbuf_cstr(&out),
                        "In project red on server https://m\n"
                        "\n"
                        "You have no services, workloads or pods here.\n"
                        "Run 'tenet create deployment NAME --image IMAGE' to begin.\n"
                        "\n"
                        "Nothing is wrong.\n");
}

static void hints_are_shown_when_they_are_asked_for(void **state)
{
    CLEANUP(json_free)
    struct json *d =
        from("{'items':[{'metadata':{'name':'w'},'spec':{'template':{'spec':{'containers':"
             "[{'name':'c','image':'i'}]}}}}]}");
    struct survey s = {.project = "red", .server = "x"};
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    s.lists[SURVEY_DEPLOYMENTS] = d;
    survey_draw(&s, &out);
    assert_non_null(
        strstr(strbuf_cstr(&out), "\n1 hint more: tenet status --suggest shows them.\n"));
    assert_null(strstr(strbuf_cstr(&out), "readiness"));
    strbuf_reset(&out);
    s.suggest = true;
    survey_draw(&s, &out);
    assert_non_null(strstr(strbuf_cstr(&out), "\nInfo:\n  * deployment/w has no readiness probe"));
    assert_non_null(strstr(strbuf_cstr(&out), "    try: tenet set probe deployment/w"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_problem_has_a_reason_and_advice),
        cmocka_unit_test(healthy_objects_are_no_problem),
        cmocka_unit_test(a_pending_claim_says_what_its_latest_event_says),
        cmocka_unit_test(a_project_is_drawn),
        cmocka_unit_test(an_empty_project_says_how_to_begin),
        cmocka_unit_test(hints_are_shown_when_they_are_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
