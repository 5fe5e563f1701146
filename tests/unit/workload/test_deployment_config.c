/* SPDX-License-Identifier: Apache-2.0 */
/* DeploymentConfigs: plans for given ReplicationControllers, and random histories with deployers,
 * ReplicationControllers and pods.
 *
 * CONFIG_SEED and CONFIG_ROUNDS in the environment choose the first history and their number. */
#include "workload/deployment_config.h"

#include "api/condition.h"
#include "api/obj.h"
#include "json_text.h"
#include "workload/deploy.h"
#include "workload/replicas.h"
#include "workload/rollout_request.h"
#include "world.h"

#define TEMPLATE                                                       \
    "{'metadata': {'labels': {'app': 'web'}}, 'spec': {'containers': " \
    "[{'name': 'c', 'image': 'one', 'env': [{'name': 'A', 'value': '1'}, {'name': 'B'}]}]}}"
#define CONFIG                                                                                    \
    "{'metadata': {'name': 'x', 'namespace': 'ns', 'uid': 'u', 'generation': 1, "                 \
    "'labels': {'l': 'm'}}, 'spec': {'replicas': 4, 'selector': {'app': 'web'}, "                 \
    "'revisionHistoryLimit': 2, 'triggers': [{'type': 'ConfigChange'}], 'strategy': {'type': "    \
    "'Rolling', 'rollingParams': {'maxSurge': '25%', 'maxUnavailable': '25%', 'timeoutSeconds': " \
    "60}}, 'template': " TEMPLATE "}}"

static struct world w;
static bool in_process;
static struct deploy_memory memory;
static char *memory_of; /* The uid of the ReplicationController; NULL: none. */

static void forget(void)
{
    deploy_memory_done(&memory);
    free(memory_of);
    memory_of = NULL;
}

static int start_world(void **state)
{
    rng_start(1);
    world_init(&w);
    in_process = false;
    return 0;
}

static int end_world(void **state)
{
    forget();
    world_done(&w);
    return 0;
}

/* ---- a cluster ---- */

static struct json *config(void)
{
    return world_get(&w, &workload_deployment_configs, "x");
}

static struct json *rc_of(int version)
{
    CLEANUP_FREE char *name = rollout_set_name("x", version);
    return world_get(&w, &workload_replication_controllers, name);
}

static int64_t number(const struct json *o, const char *part, const char *key)
{
    return json_get_int_or(json_path(o, part, key, NULL), 0);
}

static const char *reason(const char *type)
{
    return json_get_text(condition_find(config(), type), "reason");
}

static struct json *add_config(void)
{
    return world_add(&w, &workload_deployment_configs, from(CONFIG));
}

static void step_config(void)
{
    struct json *c = config();
    struct workload_child *sets;
    size_t n = world_children(&w, &workload_replication_controllers, c, &sets);
    CLEANUP_PLAN struct workload_plan p = {0};
    deployment_config_plan(c, sets, n, w.now_ms, &p);
    world_run(&w, &workload_deployment_configs, c, &p);
    free(sets);
}

/* The names of all ReplicationControllers; owned, as are the texts. */
static size_t set_names(char *names[64])
{
    struct smap_entry *e;
    size_t n = 0;
    SMAP_FOREACH (e, &w.objects) {
        if (str_has_prefix(e->key, "replicationcontrollers/") && n < 64) {
            names[n++] = xstrdup(obj_name(e->value));
        }
    }
    return n;
}

static void step_sets(void)
{
    char *names[64];
    size_t n = set_names(names);
    for (size_t i = 0; i < n; i++) {
        struct json *rc = world_get(&w, &workload_replication_controllers, names[i]);
        struct workload_child *pods;
        size_t n_pods = world_children(&w, &workload_pods, rc, &pods);
        CLEANUP_PLAN struct workload_plan p = {0};
        replicas_plan(&workload_replication_controllers, rc, pods, n_pods, NULL, 0, w.now_ms, &p);
        world_run(&w, &workload_replication_controllers, rc, &p);
        free(pods);
        free(names[i]);
    }
}

struct helpers {
    struct workload_child pod, hooks[N_HOOKS];
    struct deployer_input in;
};

static bool find_pod(const struct json *rc, const char *suffix, struct workload_child *ret)
{
    CLEANUP_FREE char *name = rollout_pod_name(obj_name(rc), suffix);
    *ret = (struct workload_child){.obj = world_get(&w, &workload_pods, name)};
    ret->going = ret->obj && obj_is_terminating(ret->obj);
    return ret->obj;
}

static void find_helpers(const struct json *rc, struct helpers *h)
{
    static const char *const suffixes[] = {"hook-pre", "hook-mid", "hook-post"};
    *h = (struct helpers){0};
    h->in = (struct deployer_input){
        .rc = rc, .image = "deployer", .in_process = in_process, .now_ms = w.now_ms};
    h->in.pod = find_pod(rc, "deploy", &h->pod) ? &h->pod : NULL;
    for (int i = 0; i < N_HOOKS; i++) {
        h->in.hooks[i] = find_pod(rc, suffixes[i], &h->hooks[i]) ? &h->hooks[i] : NULL;
    }
}

static bool old_pods_run(const struct json *rc)
{
    struct smap_entry *e;
    SMAP_FOREACH (e, &w.objects) {
        const struct json *ref = obj_controller(e->value);
        if (str_has_prefix(e->key, "pods/") && ref &&
            !streq(json_get_text(ref, "uid"), obj_uid(rc)) &&
            !workload_pod_has_phase(e->value, "Failed")) {
            return true;
        }
    }
    return false;
}

/* One step of the strategy of 'rc'. */
static enum deploy_state deploy(const struct json *rc, const struct helpers *h,
                                struct workload_plan *plan, struct strbuf *lines, char **ret_why)
{
    const struct json *sets[64];
    struct smap_entry *e;
    struct deploy_input in = {
        .to = rc, .sets = sets, .old_pods_run = old_pods_run(rc), .now_ms = w.now_ms};
    SMAP_FOREACH (e, &w.objects) {
        if (str_has_prefix(e->key, "replicationcontrollers/") && in.n_sets < 64) {
            sets[in.n_sets++] = e->value;
        }
    }
    for (int i = 0; i < N_HOOKS; i++) {
        in.hooks[i] = h->in.hooks[i];
    }
    if (!memory_of || !streq(memory_of, obj_uid(rc))) {
        forget();
        memory_of = xstrdup(obj_uid(rc));
    }
    return deploy_plan(&in, &memory, plan, lines, ret_why);
}

/* The program in the deployer pod of 'rc'. */
static void run_deployer(struct json *rc)
{
    struct helpers h;
    find_helpers(rc, &h);
    if (!h.in.pod || h.pod.going || !deployer_owns(rc, h.pod.obj) ||
        !workload_pod_has_phase(h.pod.obj, "Running")) {
        return;
    }
    CLEANUP_PLAN struct workload_plan p = {0};
    CLEANUP_STRBUF struct strbuf lines = STRBUF_INIT;
    CLEANUP_FREE char *why = NULL;
    enum deploy_state s = deploy(rc, &h, &p, &lines, &why);
    CLEANUP_FREE char *name = xstrdup(obj_name(h.pod.obj));
    world_run(&w, &workload_replication_controllers, rc, &p);
    if (s == DEPLOY_DONE || s == DEPLOY_FAILED) {
        world_set_phase(&w, world_get(&w, &workload_pods, name),
                        s == DEPLOY_DONE ? "Succeeded" : "Failed");
    }
}

/* The controller of deployers. */
static void control_deployer(struct json *rc)
{
    struct helpers h;
    find_helpers(rc, &h);
    CLEANUP_PLAN struct workload_plan p = {0};
    if (deployer_plan(&h.in, &p) == DEPLOYER_DEPLOY) {
        CLEANUP_STRBUF struct strbuf lines = STRBUF_INIT;
        CLEANUP_FREE char *why = NULL;
        enum deploy_state s = deploy(rc, &h, &p, &lines, &why);
        if (s != DEPLOY_GOES_ON) {
            deployer_end(&h.in, s == DEPLOY_DONE ? NULL : why, &p);
        }
    }
    world_run(&w, &workload_replication_controllers, rc, &p);
}

static void step_deployers(void)
{
    char *names[64];
    size_t n = set_names(names);
    for (size_t i = 0; i < n; i++) {
        struct json *rc = world_get(&w, &workload_replication_controllers, names[i]);
        if (rc && deployer_is_for(rc)) {
            control_deployer(rc);
            rc = world_get(&w, &workload_replication_controllers, names[i]);
            run_deployer(rc);
        }
        free(names[i]);
    }
}

/* The garbage collector: pods end with the ReplicationController that controls them. */
static void collect(void)
{
    struct smap_entry *e;
    SMAP_FOREACH (e, &w.objects) {
        const struct json *ref = obj_controller(e->value);
        if (str_has_prefix(e->key, "pods/") && ref &&
            !world_get(&w, &workload_replication_controllers, json_get_text(ref, "name"))) {
            world_end_pod(&w, e->value);
        }
    }
}

static void step_all(void)
{
    collect();
    step_config();
    step_deployers();
    step_sets();
}

static void settle(const char *broken)
{
    for (int i = 0; i < 60; i++) {
        step_all();
        world_settle_pods(&w, broken);
    }
}

static void set_image(const char *image)
{
    struct json *c = config();
    json_set_string(json_at(json_path(c, "spec", "template", "spec", "containers", NULL), 0),
                    "image", image);
    world_touch(&w, c);
}

static void set_hook(const char *params, const char *which, const char *hook)
{
    struct json *strategy = json_path(config(), "spec", "strategy", NULL);
    json_set(json_ensure_object(strategy, params), which, from(hook));
    world_touch(&w, config());
}

static const char *note(int version, const char *key)
{
    const char *s = rc_of(version) ? obj_annotation(rc_of(version), key) : NULL;
    return s ? s : "";
}

#define assert_phase(version, phase) assert_string_equal(note(version, ROLLOUT_PHASE), phase)
#define assert_size(version, size) \
    assert_int_equal(number(rc_of(version), "spec", "replicas"), size)

/* ---- single steps ---- */

static void the_first_rollout_has_names_labels_and_a_copy(void **state)
{
    add_config();
    step_config();
    assert_int_equal(number(config(), "status", "latestVersion"), 1);
    assert_json(json_path(config(), "status", "details", NULL),
                "{'message': 'config change', 'causes': [{'type': 'ConfigChange'}]}");
    step_config();
    const struct json *rc = rc_of(1);
    assert_json(json_path(rc, "metadata", "labels", NULL),
                "{'l': 'm', 'openshift.io/deployment-config.name': 'x'}");
    assert_json(json_path(rc, "spec", "selector", NULL),
                "{'app': 'web', 'deploymentconfig': 'x', 'deployment': 'x-1'}");
    assert_json(json_path(rc, "spec", "template", "metadata", NULL),
                "{'labels': {'app': 'web', 'deploymentconfig': 'x', 'deployment': 'x-1'}, "
                "'annotations': {'openshift.io/deployment.name': 'x-1', "
                "'openshift.io/deployment-config.name': 'x', "
                "'openshift.io/deployment-config.latest-version': '1'}}");
    assert_phase(1, "New");
    assert_size(1, 0);
    assert_string_equal(note(1, ROLLOUT_DESIRED), "4");
    assert_string_equal(note(1, ROLLOUT_REPLICAS), "0");
    assert_string_equal(note(1, ROLLOUT_REASON), "config change");
    CLEANUP(json_free) struct json *copy = NULL;
    assert_int_equal(rollout_decode(rc, &copy, NULL), 0);
    assert_true(json_equal(json_path(copy, "spec", "template", NULL),
                           json_path(config(), "spec", "template", NULL)));
    assert_string_equal(reason("Progressing"), "NewReplicationControllerCreated");
}

static void a_rollout_completes_and_the_one_before_is_kept(void **state)
{
    add_config();
    settle(NULL);
    assert_phase(1, "Complete");
    assert_size(1, 4);
    set_image("two");
    settle(NULL);
    assert_phase(2, "Complete");
    assert_size(2, 4);
    assert_size(1, 0);
    assert_string_equal(note(2, ROLLOUT_REPLICAS), "4");
    assert_string_equal(note(2, ROLLOUT_DESIRED), "");
    assert_string_equal(reason("Progressing"), "NewReplicationControllerAvailable");
    assert_int_equal(number(config(), "status", "availableReplicas"), 4);
    /* The number alone is no reason for a rollout. */
    json_set_int(json_get(config(), "spec"), "replicas", 6);
    world_touch(&w, config());
    settle(NULL);
    assert_null(rc_of(3));
    assert_size(2, 6);
}

static void the_oldest_are_deleted_beyond_the_limit(void **state)
{
    add_config();
    for (int i = 0; i < 6; i++) {
        CLEANUP_FREE char *image = xasprintf("image%d", i);
        set_image(image);
        settle(NULL);
    }
    assert_null(rc_of(3));
    assert_non_null(rc_of(4));
    assert_int_equal(world_count(&w, &workload_replication_controllers, NULL), 3);
}

static void a_failed_rollout_gives_the_pods_back(void **state)
{
    add_config();
    settle(NULL);
    set_image("broken");
    settle("broken");
    assert_phase(2, "Failed");
    assert_size(2, 0);
    assert_size(1, 4);
    assert_string_equal(reason("Progressing"), "ProgressDeadlineExceeded");
    set_image("good");
    settle("broken");
    assert_phase(3, "Complete");
    assert_size(1, 0);
}

static void a_newer_rollout_cancels_the_one_before_it(void **state)
{
    add_config();
    settle(NULL);
    set_image("broken");
    for (int i = 0; i < 6; i++) {
        step_all();
        world_settle_pods(&w, "broken");
    }
    assert_phase(2, "Running");
    set_image("good");
    settle("broken");
    assert_phase(2, "Failed");
    assert_string_equal(note(2, ROLLOUT_REASON), ROLLOUT_REASON_NEWER);
    assert_phase(3, "Complete");
    assert_size(3, 4);
    assert_null(world_get(&w, &workload_pods, "x-2-deploy"));
}

static void a_success_that_was_faster_than_its_cancellation_stays(void **state)
{
    add_config();
    settle(NULL);
    struct json *rc = rc_of(1);
    obj_set_annotation(rc, ROLLOUT_PHASE, "Running");
    obj_set_annotation(rc, ROLLOUT_CANCELLED, "TRUE");
    obj_set_annotation(rc, ROLLOUT_REASON, ROLLOUT_REASON_USER);
    step_deployers();
    assert_phase(1, "Complete");
    assert_string_equal(note(1, ROLLOUT_CANCELLED), "");
}

static void a_deployer_of_an_earlier_object_is_removed_first(void **state)
{
    struct json *pod = obj_new("v1", "Pod", "ns", "x-1-deploy");
    json_append(json_ensure_array(json_get(pod, "metadata"), "ownerReferences"),
                from("{'apiVersion': 'v1', 'kind': 'ReplicationController', 'name': 'x-1', 'uid': "
                     "'earlier'}"));
    (void) world_add(&w, &workload_pods, pod);
    add_config();
    step_config();
    step_config();
    step_deployers();
    assert_phase(1, "New");
    assert_true(obj_is_terminating(world_get(&w, &workload_pods, "x-1-deploy")));
    settle(NULL);
    assert_phase(1, "Complete");
}

static void a_deployer_that_is_gone_is_made_again_three_times(void **state)
{
    add_config();
    step_config();
    step_config();
    for (int i = 0; i < 4; i++) {
        step_deployers();
        step_deployers();
        assert_non_null(world_get(&w, &workload_pods, "x-1-deploy"));
        world_remove(&w, &workload_pods, "x-1-deploy");
    }
    step_deployers();
    assert_phase(1, "Failed");
    assert_string_equal(note(1, ROLLOUT_REASON), ROLLOUT_REASON_GONE);
}

static void a_deployer_that_its_node_has_ended_is_made_again(void **state)
{
    add_config();
    for (int i = 0; i < 4; i++) {
        step_all();
        world_settle_pods(&w, NULL);
    }
    struct json *pod = world_get(&w, &workload_pods, "x-1-deploy");
    json_set_string(json_get(pod, "status"), "reason", "Evicted");
    world_set_phase(&w, pod, "Failed");
    settle(NULL);
    assert_phase(1, "Complete");
    assert_size(1, 4);
}

static void a_deployer_that_cannot_be_made_fails_after_the_timeout(void **state)
{
    add_config();
    w.refusal = "exceeded quota";
    for (int i = 0; i < 5; i++) {
        step_all();
    }
    assert_phase(1, "New");
    w.now_ms += 61000;
    step_deployers();
    assert_phase(1, "Failed");
    assert_string_equal(note(1, ROLLOUT_REASON), ROLLOUT_REASON_NO_POD);
}

static void another_program_may_do_the_rollout(void **state)
{
    obj_set_annotation(add_config(), ROLLOUT_IGNORE, "true");
    settle(NULL);
    assert_phase(1, "New");
    assert_null(world_get(&w, &workload_pods, "x-1-deploy"));
}

#define HOOK                                                                                  \
    "{'failurePolicy': '%s', 'execNewPod': {'command': ['run', 'it'], 'containerName': 'c', " \
    "'env': [{'name': 'B', 'value': '2'}, {'name': 'C'}]}}"

static struct json *end_hook(const char *name, const char *phase)
{
    struct json *pod = NULL;
    for (int i = 0; i < 20 && !pod; i++) {
        step_all();
        pod = world_get(&w, &workload_pods, name);
        if (!pod) {
            world_settle_pods(&w, NULL);
        }
    }
    assert_non_null(pod);
    world_set_phase(&w, pod, phase);
    return pod;
}

static void hooks_run_in_their_order_and_once(void **state)
{
    CLEANUP_FREE char *hook = xasprintf(HOOK, "Abort");
    add_config();
    json_set(json_path(config(), "spec", "strategy", NULL), "type", json_string("Recreate"));
    set_hook("recreateParams", "pre", hook);
    set_hook("recreateParams", "mid", hook);
    set_hook("recreateParams", "post", hook);
    const struct json *pod = end_hook("x-1-hook-pre", "Succeeded");
    assert_size(1, 0);
    assert_json(json_path(json_at(json_path(pod, "spec", "containers", NULL), 0), "env", NULL),
                "[{'name': 'A', 'value': '1'}, {'name': 'B', 'value': '2'}, {'name': 'C'}, "
                "{'name': 'OPENSHIFT_DEPLOYMENT_NAME', 'value': 'x-1'}, "
                "{'name': 'OPENSHIFT_DEPLOYMENT_NAMESPACE', 'value': 'ns'}]");
    (void) end_hook("x-1-hook-mid", "Succeeded");
    assert_size(1, 0);
    forget(); /* Another deployer goes on. */
    world_remove(&w, &workload_pods, "x-1-hook-pre");
    (void) end_hook("x-1-hook-post", "Succeeded");
    assert_size(1, 4);
    assert_null(world_get(&w, &workload_pods, "x-1-hook-pre"));
    settle(NULL);
    assert_phase(1, "Complete");
    assert_string_equal(note(1, ROLLOUT_HOOKS), "pre,mid,post");
}

static void a_hook_that_fails_ends_the_rollout_unless_it_is_ignored(void **state)
{
    static const char *const policies[] = {"Abort", "Retry", "Ignore"};
    for (size_t i = 0; i < ARRAY_SIZE(policies); i++) {
        CLEANUP_FREE char *hook = xasprintf(HOOK, policies[i]);
        world_done(&w);
        world_init(&w);
        forget();
        add_config();
        set_hook("rollingParams", "pre", hook);
        (void) end_hook("x-1-hook-pre", "Failed");
        settle(NULL);
        assert_phase(1, i == 2 ? "Complete" : "Failed");
        assert_size(1, i == 2 ? 4 : 0);
    }
}

static void a_hook_that_is_refused_has_failed(void **state)
{
    CLEANUP_FREE char *hook = xasprintf(HOOK, "Abort");
    struct json *body =
        from("{'metadata': {'labels': {'openshift.io/deployer-pod.type': 'hook-pre'}}}");
    const struct workload_write write = {
        .verb = WORKLOAD_CREATE, .kind = &workload_pods, .body = body};
    in_process = true;
    add_config();
    set_hook("rollingParams", "pre", hook);
    for (int i = 0; i < 4; i++) {
        step_config();
        step_deployers();
    }
    deploy_refused(&memory, &write, -EAGAIN, "later");
    assert_null(memory.refused[HOOK_PRE]);
    deploy_refused(&memory, &write, -EACCES, "it is privileged");
    world_remove(&w, &workload_pods, "x-1-hook-pre");
    step_deployers();
    assert_phase(1, "Failed");
    assert_non_null(strstr(note(1, ROLLOUT_REASON), "it is privileged"));
    json_free(body);
}

static void an_image_that_is_missing_is_waited_for(void **state)
{
    struct json *c = add_config();
    json_set(json_get(c, "spec"), "triggers",
             from("[{'type': 'ImageChange', 'imageChangeParams': {'automatic': true, "
                  "'containerNames': ['c'], 'from': {'name': 's:t', 'namespace': 'ns'}}}]"));
    set_image("");
    settle(NULL);
    assert_int_equal(number(config(), "status", "latestVersion"), 0);
    assert_string_equal(reason("Progressing"), "WaitingForImage");
    assert_non_null(
        strstr(json_get_text(condition_find(config(), "Progressing"), "message"), "\"ns/s:t\""));
    set_image("one");
    settle(NULL);
    assert_string_equal(reason("Progressing"), "WaitingForImage");
    json_set_string(json_path(json_at(json_path(config(), "spec", "triggers", NULL), 0),
                              "imageChangeParams", NULL),
                    "lastTriggeredImage", "one");
    set_image("one");
    settle(NULL);
    assert_phase(1, "Complete");
    /* A trigger of images alone does not see other changes of the template. */
    json_set_string(json_path(config(), "spec", "template", "metadata", "labels", NULL), "more",
                    "1");
    world_touch(&w, config());
    settle(NULL);
    assert_null(rc_of(2));
    set_image("two");
    settle(NULL);
    assert_phase(2, "Complete");
    assert_string_equal(note(2, ROLLOUT_REASON), "image change");
}

static void a_lost_version_is_found_again(void **state)
{
    add_config();
    settle(NULL);
    json_set_int(json_get(config(), "status"), "latestVersion", 0);
    settle(NULL);
    assert_int_equal(number(config(), "status", "latestVersion"), 1);
    assert_null(rc_of(2));
    assert_size(1, 4);
}

static void a_test_has_no_pods_afterwards(void **state)
{
    json_set_bool(json_get(add_config(), "spec"), "test", true);
    settle(NULL);
    assert_phase(1, "Complete");
    assert_size(1, 0);
}

static void names_are_shortened_with_a_hash(void **state)
{
    char base[260];
    memset(base, 'a', sizeof base);
    base[250] = '\0';
    CLEANUP_FREE char *name = rollout_pod_name(base, "deploy");
    assert_int_equal(strlen(name), 253);
    assert_true(str_has_suffix(name, "-deploy"));
    CLEANUP_FREE char *hook = rollout_pod_name("x-1", "hook-pre");
    assert_string_equal(hook, "x-1-hook-pre");
}

/* ---- copies ---- */

static void copies_that_are_no_objects_are_refused(void **state)
{
    static const struct {
        const char *text, *why;
    } bad[] = {{"", "is missing"},
               {"{", "annotation openshift.io/encoded-deployment-config"},
               {"[]", "is no DeploymentConfig: it has no spec"},
               {"{\"spec\": 1}", "is no DeploymentConfig: it has no spec"}};
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        CLEANUP(json_free) struct json *rc = obj_new("v1", "ReplicationController", "ns", "x-1");
        struct json *copy = NULL;
        struct err e = {0};
        obj_set_annotation(rc, ROLLOUT_ENCODED, bad[i].text);
        assert_true(rollout_decode(rc, &copy, &e) < 0);
        assert_null(copy);
        assert_non_null(strstr(e.text, bad[i].why));
    }
}

static void numbers_of_rollouts_are_judged(void **state)
{
    static const struct {
        const char *text;
        int64_t number;
    } texts[] = {{"1", 1},          {"0", 0}, {"-1", 0}, {"2147483647", INT32_MAX},
                 {"2147483648", 0}, {"x", 0}, {"", 0}};
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        CLEANUP(json_free) struct json *rc = obj_new("v1", "ReplicationController", "ns", "x-1");
        obj_set_annotation(rc, ROLLOUT_VERSION, texts[i].text);
        assert_int_equal(rollout_version(rc), texts[i].number);
    }
}

/* ---- requests ---- */

#define IMAGES(automatic, image)                                              \
    "[{'type': 'ImageChange', 'imageChangeParams': {'automatic': " automatic  \
    ", 'containerNames': ['c'], 'from': {'name': 's:t', 'namespace': 'ns'}, " \
    "'lastTriggeredImage': '" image "'}}]"

static enum rollout_answer ask(const char *triggers, const char *was_triggers, bool changed,
                               bool force, struct json **ret)
{
    struct json *c = from(CONFIG);
    CLEANUP(json_free) struct json *was = from(CONFIG);
    json_set(json_get(c, "spec"), "triggers", from(triggers));
    json_set(json_get(was, "spec"), "triggers", from(was_triggers));
    if (changed) {
        json_set_int(json_path(c, "spec", "template", "spec", NULL),
                     "terminationGracePeriodSeconds", 1);
    }
    *ret = c;
    return rollout_instantiate(c, was, force);
}

static void a_request_begins_a_rollout_if_there_is_a_cause(void **state)
{
    static const char change[] = "[{'type': 'ConfigChange'}]";
    static const struct {
        const char *triggers, *was;
        bool changed, force;
        enum rollout_answer answer;
        const char *message;
    } cases[] = {
        {change, change, false, false, ROLLOUT_IS_LATEST, ""},
        {change, change, true, false, ROLLOUT_BEGINS, "config change"},
        {"[]", "[]", true, false, ROLLOUT_IS_LATEST, ""},
        {"[]", "[]", false, true, ROLLOUT_BEGINS, "manual change"},
        {IMAGES("true", "a"), IMAGES("true", "a"), true, false, ROLLOUT_IS_LATEST, ""},
        {IMAGES("true", "b"), IMAGES("true", "a"), false, false, ROLLOUT_BEGINS, "image change"},
        {IMAGES("false", "b"), IMAGES("true", "a"), false, false, ROLLOUT_IS_LATEST, ""},
        {IMAGES("true", "b"), "[]", false, false, ROLLOUT_BEGINS, "image change"},
        {IMAGES("true", ""), IMAGES("true", "a"), false, true, ROLLOUT_UNRESOLVED, ""},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(json_free) struct json *c = NULL;
        enum rollout_answer a =
            ask(cases[i].triggers, cases[i].was, cases[i].changed, cases[i].force, &c);
        assert_int_equal(a, cases[i].answer);
        assert_string_equal(json_get_text(json_path(c, "status", "details", NULL), "message"),
                            cases[i].message);
        assert_int_equal(number(c, "status", "latestVersion"), a == ROLLOUT_BEGINS);
    }
}

static void going_back_takes_what_is_asked_for(void **state)
{
    CLEANUP(json_free) struct json *c = from(CONFIG);
    CLEANUP(json_free) struct json *to = from(CONFIG);
    CLEANUP(json_free) struct json *spec = from("{'includeTemplate': true}");
    CLEANUP(json_free)
    struct json *all =
        from("{'includeTriggers': true, 'includeReplicationMeta': true, 'includeStrategy': true}");
    json_set_int(json_get(to, "spec"), "replicas", 9);
    json_set(json_get(to, "spec"), "triggers", from(IMAGES("true", "a")));
    json_set(json_get(to, "spec"), "template", from("{'old': true}"));
    json_set(json_get(to, "spec"), "strategy", from("{'type': 'Recreate'}"));
    rollout_go_back(c, to, spec);
    assert_json(json_path(c, "spec", "template", NULL), "{'old': true}");
    assert_int_equal(number(c, "spec", "replicas"), 4);
    assert_int_equal(number(c, "status", "latestVersion"), 1);
    rollout_go_back(c, to, all);
    assert_int_equal(number(c, "spec", "replicas"), 9);
    assert_json(json_path(c, "spec", "strategy", NULL), "{'type': 'Recreate'}");
    assert_json(json_path(c, "spec", "triggers", NULL), IMAGES("false", "a"));
}

/* ---- random histories ---- */

static bool goes_on(const struct json *rc)
{
    return !rollout_has_ended(rc) && !rollout_is_cancelled(rc) && rollout_phase(rc) != ROLLOUT_NEW;
}

static bool is_active_pod(const struct json *pod)
{
    struct workload_child child = {.obj = pod, .going = obj_is_terminating(pod)};
    return obj_label(pod, ROLLOUT_LABEL_SET) && workload_pod_is_active(&child);
}

static bool is_available_pod(const struct json *pod)
{
    return is_active_pod(pod) && workload_pod_is_ready(pod);
}

/* What a user, a node or a fault does. */
static void disturb(void)
{
    static const char *const images[] = {"one", "two", "three", "broken"};
    struct smap_entry *e;
    struct json *spec = json_get(config(), "spec");
    switch (below(9)) {
    case 0:
        set_image(PICK(images));
        break;
    case 1:
        json_set_int(spec, "replicas", below(6));
        world_touch(&w, config());
        break;
    case 2:
        json_set_bool(spec, "paused", !json_get_bool(json_get(spec, "paused"), false));
        world_touch(&w, config());
        break;
    case 3:
        forget(); /* The deployer, or the leader, is another one. */
        break;
    case 4:
        SMAP_FOREACH (e, &w.objects) {
            if (str_has_prefix(e->key, "replicationcontrollers/") && !rollout_has_ended(e->value) &&
                chance(30)) {
                obj_set_annotation(e->value, ROLLOUT_CANCELLED, "true");
                world_touch(&w, e->value);
            }
        }
        break;
    default:
        SMAP_FOREACH (e, &w.objects) {
            if (str_has_prefix(e->key, "pods/") && chance(10)) {
                world_end_pod(&w, e->value);
            }
        }
        break;
    }
}

static void check(int64_t *version)
{
    int64_t now = number(config(), "status", "latestVersion");
    assert_true(now >= *version); /* No number is given twice. */
    *version = now;
    assert_true(world_count(&w, &workload_replication_controllers, goes_on) <= 1);
    world_check_controllers(&w);
}

static void one_history(bool recreate)
{
    int64_t version = 0;
    add_config();
    if (recreate) {
        json_set(json_get(config(), "spec"), "strategy",
                 from("{'type': 'Recreate', 'recreateParams': {'timeoutSeconds': 60}}"));
    }
    for (int i = 0; i < 150; i++) {
        w.failing = chance(30) ? 20 : 0;
        if (chance(15)) {
            disturb();
        }
        if (chance(70)) {
            step_config();
        }
        if (chance(70)) {
            step_deployers();
        }
        if (chance(70)) {
            step_sets();
        }
        world_kubelets(&w, "broken");
        check(&version);
    }
    w.failing = 0;
    (void) json_remove(json_get(config(), "spec"), "paused");
    set_image("last");
    for (int i = 0; i < 4; i++) {
        settle("broken");
    }
    int64_t desired = number(config(), "spec", "replicas");
    int latest = (int) number(config(), "status", "latestVersion");
    assert_phase(latest, "Complete");
    assert_size(latest, desired);
    assert_int_equal(world_count(&w, &workload_pods, is_active_pod), desired);
    assert_int_equal(world_count(&w, &workload_pods, is_available_pod), desired);
    assert_int_equal(number(config(), "status", "availableReplicas"), desired);
    assert_true(world_count(&w, &workload_replication_controllers, NULL) <= 3);
}

static void histories_end_with_the_last_template(void **state)
{
    uint64_t rounds = rng_setting("CONFIG_ROUNDS", 40);
    uint64_t seed = rng_first_seed("CONFIG_SEED", rounds, "histories of DeploymentConfigs");
    for (uint64_t i = 0; i < rounds; i++) {
        world_done(&w);
        forget();
        rng_start(seed + i);
        world_init(&w);
        in_process = i % 2;
        one_history(i % 4 >= 2);
    }
}

/* Without faults the bounds hold at each moment. */
static void rolling_keeps_its_bounds_for_all_small_numbers(void **state)
{
    for (int64_t desired = 1; desired <= 5; desired++) {
        for (int bounds = 1; bounds < 9; bounds++) {
            int64_t surge = bounds / 3, missing = bounds % 3;
            world_done(&w);
            forget();
            rng_start(17);
            world_init(&w);
            struct json *spec = json_get(add_config(), "spec");
            struct json *params = json_path(spec, "strategy", "rollingParams", NULL);
            json_set_int(spec, "replicas", desired);
            json_set_int(params, "maxSurge", surge);
            json_set_int(params, "maxUnavailable", missing);
            settle(NULL);
            set_image("two");
            for (int i = 0; i < 120; i++) {
                step_all();
                world_kubelets(&w, NULL);
                assert_true((int64_t) world_count(&w, &workload_pods, is_active_pod) <=
                            desired + surge);
                assert_true((int64_t) world_count(&w, &workload_pods, is_available_pod) >=
                            desired - MIN(missing, desired));
            }
            settle(NULL);
            assert_phase(2, "Complete");
            assert_size(2, desired);
        }
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, start_world, end_world)
    const struct CMUnitTest tests[] = {
        TEST(the_first_rollout_has_names_labels_and_a_copy),
        TEST(a_rollout_completes_and_the_one_before_is_kept),
        TEST(the_oldest_are_deleted_beyond_the_limit),
        TEST(a_failed_rollout_gives_the_pods_back),
        TEST(a_newer_rollout_cancels_the_one_before_it),
        TEST(a_success_that_was_faster_than_its_cancellation_stays),
        TEST(a_deployer_of_an_earlier_object_is_removed_first),
        TEST(a_deployer_that_is_gone_is_made_again_three_times),
        TEST(a_deployer_that_its_node_has_ended_is_made_again),
        TEST(a_deployer_that_cannot_be_made_fails_after_the_timeout),
        TEST(another_program_may_do_the_rollout),
        TEST(hooks_run_in_their_order_and_once),
        TEST(a_hook_that_fails_ends_the_rollout_unless_it_is_ignored),
        TEST(a_hook_that_is_refused_has_failed),
        TEST(an_image_that_is_missing_is_waited_for),
        TEST(a_lost_version_is_found_again),
        TEST(a_test_has_no_pods_afterwards),
        TEST(names_are_shortened_with_a_hash),
        TEST(copies_that_are_no_objects_are_refused),
        TEST(numbers_of_rollouts_are_judged),
        TEST(a_request_begins_a_rollout_if_there_is_a_cause),
        TEST(going_back_takes_what_is_asked_for),
        TEST(rolling_keeps_its_bounds_for_all_small_numbers),
        TEST(histories_end_with_the_last_template),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
