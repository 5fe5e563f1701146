/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz: the copy of a DeploymentConfig in the annotation of a ReplicationController, which a user of
 * the project may write.  Each plan that reads it is made; all objects written are in the namespace of
 * the ReplicationController. */
#include "api/obj.h"
#include "base/mem.h"
#include "workload/deploy.h"
#include "workload/deployment_config.h"
#include "workload/rollout_request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char config_text[] =
    "{\"metadata\":{\"name\":\"x\",\"namespace\":\"ns\",\"uid\":\"u\",\"generation\":1},\"spec\":{"
    "\"replicas\":2,\"selector\":{\"app\":\"web\"},\"triggers\":[{\"type\":\"ConfigChange\"}],"
    "\"strategy\":{\"type\":\"Rolling\"},\"template\":{\"spec\":{\"containers\":[{\"name\":\"c\","
    "\"image\":\"i\"}]}}},\"status\":{\"latestVersion\":1}}";

static void check_plan(const struct workload_plan *p)
{
    for (size_t i = 0; i < p->n_writes; i++) {
        const char *ns = obj_namespace(p->writes[i].body);
        if (*ns && !streq(ns, "ns")) {
            __builtin_trap();
        }
    }
}

static void try_deployer(struct json *rc, const char *phase, bool in_process)
{
    struct deployer_input in = {
        .rc = rc, .image = "deployer", .in_process = in_process, .now_ms = 1};
    CLEANUP_PLAN struct workload_plan p = {0};
    obj_set_annotation(rc, ROLLOUT_PHASE, phase);
    (void) deployer_plan(&in, &p);
    deployer_end(&in, "why", &p);
    check_plan(&p);
}

static void try_strategy(const struct json *rc)
{
    struct deploy_input in = {.to = rc, .sets = &rc, .n_sets = 1};
    struct deploy_memory m = {0};
    for (int i = 0; i < 3; i++) {
        CLEANUP_PLAN struct workload_plan p = {0};
        CLEANUP_STRBUF struct strbuf lines = STRBUF_INIT;
        CLEANUP_FREE char *why = NULL;
        in.now_ms += 700000;
        (void) deploy_plan(&in, &m, &p, &lines, &why);
        check_plan(&p);
    }
    deploy_memory_done(&m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP_FREE char *text = xstrndup((const char *) data, size);
    CLEANUP(json_free) struct json *config = NULL, *copy = NULL;
    struct err e = {0};
    if (json_parse(config_text, strlen(config_text), &config, NULL) < 0) {
        return 0;
    }
    CLEANUP(json_free) struct json *rc = rollout_make_set(config);
    obj_set_annotation(rc, ROLLOUT_ENCODED, text);
    if (rollout_decode(rc, &copy, &e) == 0) {
        CLEANUP(json_free) struct json *a = json_clone(config);
        CLEANUP(json_free) struct json *b = json_clone(config);
        (void) rollout_instantiate(a, copy, false);
        rollout_go_back(b, copy, json_get(copy, "spec"));
    }
    struct workload_child set = {.obj = rc};
    CLEANUP_PLAN struct workload_plan p = {0};
    deployment_config_plan(config, &set, 1, 1, &p);
    try_deployer(rc, "New", false);
    try_deployer(rc, "New", true);
    try_deployer(rc, "Running", true);
    try_strategy(rc);
    return 0;
}
