/* SPDX-License-Identifier: Apache-2.0 */
/* Security context constraints: how long until a pod's constraints are chosen, with the rights of
 * its user and of its service account.
 *
 * An API server in this process has the constraints and roles of every cluster, and bindings of
 * many users.  Each question is that of admission; the pod has two containers, an init container
 * and four volumes.  The peer is the copy of the pod's spec alone, which each attempt needs.
 *
 *     bench_scc [QUESTIONS] [BINDINGS]          default: 20000 and 10000 */
#include "measure.h"
#include "preload.h"

#include "apiserver/admission/scc_decide.h"
#include "apiserver/request/server_priv.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/timeutil.h"
#include "controllers/security/default_roles.h"
#include "controllers/security/default_sccs.h"

#include <stdio.h>
#include <stdlib.h>

#define BOUND "bench-binding-%zu"

static const char namespace[] =
    "{\"kind\":\"Namespace\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"red\",\"annotations\":{"
    "\"openshift.io/sa.scc.uid-range\":\"1000010000/10000\","
    "\"openshift.io/sa.scc.supplemental-groups\":\"1000010000/10000\","
    "\"openshift.io/sa.scc.mcs\":\"s0:c3,c2\"}}}";

static const char pod_text[] =
    "{\"metadata\":{\"name\":\"p\",\"annotations\":{\"a\":\"b\"}},\"spec\":{\"serviceAccountName\":"
    "\"default\",\"initContainers\":[{\"name\":\"i\",\"image\":\"x\",\"env\":[{\"name\":\"A\","
    "\"value\":"
    "\"b\"}]}],\"containers\":[{\"name\":\"c\",\"image\":\"x\",\"ports\":[{\"containerPort\":80}],"
    "\"volumeMounts\":[{\"name\":\"a\",\"mountPath\":\"/"
    "a\"}],\"livenessProbe\":{\"httpGet\":{\"port\":"
    "80}}},{\"name\":\"d\",\"image\":\"y\",\"securityContext\":{\"capabilities\":{\"drop\":["
    "\"ALL\"]}}}],"
    "\"volumes\":[{\"name\":\"a\",\"emptyDir\":{}},{\"name\":\"b\",\"secret\":{\"secretName\":"
    "\"s\"}},"
    "{\"name\":\"t\",\"projected\":{\"sources\":[{\"serviceAccountToken\":{\"path\":\"token\"}}]}},"
    "{\"name\":\"m\",\"configMap\":{\"name\":\"m\"}}]}}";

struct world {
    struct preload preload;
    struct apiserver *apiserver;
    bool ready;
};

static void put_bindings(struct world *w, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        CLEANUP_FREE char *text = xasprintf(
            "{\"kind\":\"RoleBinding\",\"apiVersion\":\"rbac.authorization.k8s.io/"
            "v1\",\"metadata\":{"
            "\"name\":\"" BOUND "\",\"namespace\":\"red\"},\"roleRef\":{\"apiGroup\":"
            "\"rbac.authorization.k8s.io\",\"kind\":\"ClusterRole\",\"name\":\"view\"},"
            "\"subjects\":[{"
            "\"kind\":\"User\",\"apiGroup\":\"rbac.authorization.k8s.io\",\"name\":\"user%zu\"}]}",
            i, i);
        preload_put(&w->preload, PRELOAD_RBAC "rolebindings", "red", text);
    }
}

static void on_ready(void *ctx)
{
    ((struct world *) ctx)->ready = true;
}

static void world_open(struct world *w, size_t bindings)
{
    static const struct apiserver_security security = {.loopback_token = "bench"};
    *w = (struct world){.ready = false};
    preload_open(&w->preload);
    w->apiserver = apiserver_new(
        w->preload.loop, w->preload.store,
        &(struct apiserver_config){.security = &security, .ready = on_ready, .ctx = w});
    preload_await(&w->preload, "the API server", &w->ready);
    preload_put(&w->preload, "namespaces", "", namespace);
    preload_put_all(&w->preload, "security.openshift.io/securitycontextconstraints",
                    default_sccs());
    preload_put_all(&w->preload, PRELOAD_RBAC "clusterroles", default_cluster_roles());
    preload_put_all(&w->preload, PRELOAD_RBAC "clusterrolebindings",
                    default_cluster_role_bindings(SDN_MULTITENANT));
    put_bindings(w, bindings);
    preload_settle(&w->preload);
}

static void world_close(struct world *w)
{
    apiserver_shutdown(w->apiserver);
    store_close(w->preload.store);
    apiserver_free(w->apiserver);
    loop_free(w->preload.loop);
}

static void ask(struct world *w, const struct json *project, const struct user_info *user,
                const struct json *pod)
{
    CLEANUP(user_unref) struct user_info *account = scc_account("red", "default");
    CLEANUP(scc_answer_done) struct scc_answer a = SCC_ANSWER_INIT;
    const struct scc_question q = {.security = w->apiserver->security,
                                   .set = w->apiserver->sccs,
                                   .ns = "red",
                                   .project = project,
                                   .user = user,
                                   .account = account,
                                   .pod = pod,
                                   .path = "",
                                   .mode = SCC_FILLS};
    scc_ask(&q, &a);
    if (!a.by || !streq(scc_name(a.by), "restricted")) {
        fprintf(stderr, "bench_scc: not restricted: %s\n", strbuf_cstr(&a.text));
        exit(1);
    }
}

int main(int argc, char **argv)
{
    size_t n = argc > 1 ? measure_number(argv[1], 1, 10000000) : 20000;
    size_t bindings = argc > 2 ? measure_number(argv[2], 1, 1000000) : 10000;
    char bad[64];
    struct world w;
    (void) log_set_levels("warn", bad);
    world_open(&w, bindings);
    CLEANUP(json_free) struct json *pod = NULL;
    CLEANUP(json_free) struct json *project = NULL;
    CLEANUP(user_unref) struct user_info *user = user_new("user7");
    CLEANUP_FREE double *us = xcalloc(n, sizeof *us);
    user_add_group(user, GROUP_AUTHENTICATED);
    if (json_parse(pod_text, strlen(pod_text), &pod, NULL) < 0 ||
        json_parse(namespace, strlen(namespace), &project, NULL) < 0) {
        abort();
    }
    for (size_t i = 0; i < n; i++) {
        uint64_t start = time_mono_ns();
        ask(&w, project, user, pod);
        us[i] = (double) (time_mono_ns() - start) / 1e3;
    }
    uint64_t start = time_mono_ns();
    for (size_t i = 0; i < n; i++) {
        json_free(json_clone(json_get(pod, "spec")));
    }
    double copy = (double) (time_mono_ns() - start) / 1e3 / (double) n;
    double p50 = measure_quantile(us, n, 0.5), p99 = measure_quantile(us, n, 0.99);
    printf("%zu questions, %zu bindings: p50 %.1f us, p99 %.1f us; a copy of the spec %.1f us\n", n,
           bindings, p50, p99, copy);
    measure_result("constraints of a pod, p50", p50, "us", "a copy of the spec", copy);
    measure_result("constraints of a pod, p99", p99, "us", NULL, 0);
    world_close(&w);
    return 0;
}
