/* SPDX-License-Identifier: Apache-2.0 */
/* The kubelet's server alone, over a real container runtime: tests/containers/test_streams.py makes
 * the containers itself and says in a file which there are.
 *
 *     serve_kubelet ADDRESS NODE KUBECONFIG CERT KEY CLIENT-CA RUNTIME TABLE LOG-DIR
 *
 * KEY "-": CERT is a folder, for a certificate that the cluster issues for ADDRESS.
 *
 * TABLE.resource, if it is there, is the text of /metrics/resource.
 *
 * TABLE: {"NS/POD": {"uid": "", "sandbox": "", "containers": {"NAME": {"id": "", "running": true,
 * "log": "", "tty": false, "waiting": "", "previous": {...}}}}}, read again for each request. */
#include "base/mem.h"
#include "base/timeutil.h"
#include "kubelet/server/server.h"
#include "kubelet/server/serving_cert.h"
#include "net/loop/process.h"
#include "runtime/runtime.h"
#include "wire/json.h"

#include <signal.h>
#include <stdio.h>

struct table {
    const char *file;
    struct json *now; /* What the last answer points into. */
};

static void read_table(struct table *t)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    struct json *v = NULL;
    if (file_read(t->file, 1 << 20, &b, NULL) == 0 && json_parse(b.data, b.size, &v, NULL) == 0) {
        json_free(t->now);
        t->now = v;
    }
}

static const struct json *find_pod(struct table *t, const char *namespace, const char *pod,
                                   const char *uid, struct err *e)
{
    CLEANUP_FREE char *key = xasprintf("%s/%s", namespace, pod);
    read_table(t);
    const struct json *p = json_get(t->now, key);
    if (!p || (uid && !streq(json_get_text(p, "uid"), uid))) {
        (void) err_set(e, -ENOENT, "pod \"%s\" not found", pod);
        return NULL;
    }
    return p;
}

static int find_container(void *ctx, const char *namespace, const char *pod, const char *uid,
                          const char *container, bool previous, struct kubelet_container *ret,
                          struct err *e)
{
    const struct json *p = find_pod(ctx, namespace, pod, uid, e);
    const struct json *c = json_path(p, "containers", container, NULL);
    if (!p) {
        return -ENOENT;
    }
    if (previous && !json_get(c, "previous")) {
        return err_set(e, -ENOENT, "previous terminated container \"%s\" in pod \"%s\" not found",
                       container, pod);
    }
    if (!c) {
        return err_set(e, -ENOENT, "container not found (\"%s\")", container);
    }
    c = previous ? json_get(c, "previous") : c;
    *ret = (struct kubelet_container){
        .id = json_get_string(json_get(c, "id")),
        .running = json_get_bool(json_get(c, "running"), false),
        .tty = json_get_bool(json_get(c, "tty"), false),
        .log_path = json_get_string(json_get(c, "log")),
        .waiting = json_get_string(json_get(c, "waiting")),
    };
    return 0;
}

static int find_sandbox(void *ctx, const char *namespace, const char *pod, const char *uid,
                        const char **ret_id, struct err *e)
{
    const struct json *p = find_pod(ctx, namespace, pod, uid, e);
    if (!p) {
        return -ENOENT;
    }
    *ret_id = json_get_text(p, "sandbox");
    return 0;
}

static struct json *pods(void *ctx)
{
    struct json *o = json_object();
    json_set_string(o, "kind", "PodList");
    json_set_string(o, "apiVersion", "v1");
    json_ensure_array(o, "items");
    return o;
}

static const char *healthz(void *ctx)
{
    return NULL;
}

/* The text of the file TABLE.resource, in which @ stands for the seconds of a clock. */
static bool add_own_metrics(const struct table *t, struct strbuf *out)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    CLEANUP_FREE char *file = xasprintf("%s.resource", t->file);
    if (file_read(file, 64 << 20, &b, NULL) < 0) {
        return false;
    }
    for (const char *p = strbuf_cstr(&b); *p; p++) {
        if (*p == '@') {
            strbuf_addf(out, "%.6f", (double) time_mono_ns() / 1e9);
        } else {
            strbuf_addc(out, *p);
        }
    }
    return true;
}

static void metrics(void *ctx, enum kubelet_metrics which, struct strbuf *out)
{
    if (which == KUBELET_METRICS_RESOURCE && add_own_metrics(ctx, out)) {
        return;
    }
    static const char *const names[] = {"test", "resource", "cadvisor", "probes"};
    strbuf_addf(out, "# TYPE kubelet_%s gauge\nkubelet_%s 1\n", names[which], names[which]);
}

static struct json *stats(void *ctx, bool only_cpu_and_memory)
{
    struct json *o = json_object();
    json_set_string(json_ensure_object(o, "node"), "nodeName", "n");
    json_set_bool(o, "brief", only_cpu_and_memory);
    return o;
}

static struct json *config(void *ctx)
{
    struct json *o = json_object();
    json_ensure_object(o, "kubeletconfig");
    return o;
}

static const struct kubelet_server_ops ops = {
    .find_container = find_container,
    .find_sandbox = find_sandbox,
    .pods = pods,
    .running_pods = pods,
    .healthz = healthz,
    .metrics = metrics,
    .stats = stats,
    .config = config,
};

static void changed(void *ctx, const char *sandbox_id, const char *container_id)
{
}

static void resync(void *ctx)
{
}

static void connection(void *ctx, const char *lost_reason)
{
}

static void reload(void *ctx)
{
    struct kubelet_server **s = ctx;
    struct err e = {0};
    if (*s && kubelet_server_reload(*s, &e) < 0) {
        fprintf(stderr, "%s\n", e.text);
    }
    printf("certificate issued\n");
    fflush(stdout);
}

static void stop(void *ctx)
{
    loop_stop(ctx);
}

int main(int argc, char **argv)
{
    static const struct runtime_events events = {changed, resync, connection};
    struct err e = {0};
    if (argc != 10) {
        fprintf(stderr, "usage: serve_kubelet ADDRESS NODE KUBECONFIG CERT KEY CLIENT-CA RUNTIME "
                        "TABLE LOG-DIR\n");
        return 2;
    }
    struct table table = {.file = argv[8]};
    struct loop *l = loop_new();
    struct loop_signal *term = loop_signal_new(l, SIGTERM, stop, l);
    struct runtime *runtime = NULL;
    struct kubelet_server *s = NULL;
    struct kubelet_server_config cfg = {.address = argv[1],
                                        .node = argv[2],
                                        .cert = argv[4],
                                        .key = argv[5],
                                        .client_ca = argv[6],
                                        .log_dir = argv[9]};
    int r = api_client_from_kubeconfig(l, argv[3], "serve_kubelet", &cfg.api, &e);
    if (r == 0) {
        r = runtime_open(l, "cri", argv[7], &events, NULL, &runtime, &e);
    }
    struct serving_cert *cert = NULL;
    CLEANUP_FREE char *host = xstrndup(argv[1], strcspn(argv[1], ":"));
    const char *address = host;
    if (r == 0 && argv[5][0] == '-') {
        const struct serving_cert_config serving = {.api = cfg.api,
                                                    .node = argv[2],
                                                    .dir = argv[4],
                                                    .addresses = &address,
                                                    .n_addresses = 1,
                                                    .changed = reload,
                                                    .ctx = &s};
        r = serving_cert_new(l, &serving, &cert, &e);
        if (r == 0) {
            cfg.cert = serving_cert_file(cert);
            cfg.key = serving_cert_key_file(cert);
        }
    }
    cfg.runtime = runtime;
    if (r == 0) {
        r = kubelet_server_new(l, &cfg, &ops, &table, &s, &e);
    }
    if (r == 0) {
        printf("port %d\n", kubelet_server_port(s));
        fflush(stdout);
        loop_run(l);
    } else {
        fprintf(stderr, "%s\n", e.text);
    }
    kubelet_server_free(s);
    serving_cert_free(cert);
    runtime_free(runtime);
    api_client_free(cfg.api);
    loop_signal_free(term);
    loop_free(l);
    json_free(table.now);
    return r < 0;
}
