/* SPDX-License-Identifier: Apache-2.0 */
#include "node/registry/identity.h"

#include "api/condition.h"
#include "base/base64.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/reconnect.h"
#include "base/timeutil.h"
#include "client/kubeconfig.h"
#include "net/loop/process.h"
#include "net/tls/pki_csr.h"

#include <unistd.h>

LOG_MODULE("identity");

#define VERSION "certificates.k8s.io/v1"
#define POLL_MIN_MS 100
#define POLL_MAX_MS 10000
#define RETRY_MIN_MS 500
#define RETRY_MAX_MS 60000
#define MAX_KEY 65536
#define LOOK_MAX_MS (24 * 3600000LL)

struct identity {
    struct loop *loop;
    char *user, *kubeconfig, *bootstrap;
    const char *key_file; /* Of the caller of identity_ensure; NULL: none. */
    bool limited;         /* The caller wants refusals, and the last failure. */
    struct err failure;   /* What the caller of identity_ensure gets. */
    /* The client that the agent works with; NULL: there is no certificate yet. */
    struct api_client *client;
    struct api_client *own; /* The client that uses the bootstrap token. */
    struct loop_timer *timer;
    struct api_call *call;
    char *key;     /* The private key of the request under way. */
    char *request; /* The name of the request object; NULL: it was not created yet. */
    struct backoff polls, attempts;
    bool done;
};

int64_t identity_renew_at(int64_t from_ms, int64_t until_ms, uint32_t seed)
{
    int64_t life = until_ms - from_ms;
    return from_ms + life / 10 * 7 + (int64_t) (seed % 1000) * (life / 5000);
}

static void wipe(struct strbuf *b)
{
    if (b->data) {
        explicit_bzero(b->data, b->size);
    }
    strbuf_done(b);
}

/* ---- one request for a certificate ---- */

static void request(void *ctx);
static void look(void *ctx);

static void forget_request(struct identity *i)
{
    if (i->key) {
        explicit_bzero(i->key, strlen(i->key));
    }
    free(i->key);
    free(i->request);
    i->key = i->request = NULL;
    backoff_reset(&i->polls);
}

static void again(struct identity *i, int error, const char *why)
{
    static const int refusals[] = {-EPERM, -EACCES, -EINVAL, -EKEYREJECTED};
    forget_request(i);
    if (i->limited) {
        err_set(&i->failure, error, "%s", why);
        for (size_t n = 0; n < ARRAY_SIZE(refusals); n++) {
            if (error == refusals[n]) {
                i->done = true;
                return;
            }
        }
    } else {
        log_warn("no certificate for this node yet", "user=%s error=\"%s\"", i->user, why);
    }
    loop_timer_free(i->timer);
    i->timer = loop_timer_new(i->loop, request, i);
    loop_timer_arm(i->timer,
                   backoff_fail(&i->attempts, loop_now_ms(i->loop), hash_string(i->user)));
}

/* Stores the certificate, and begins to use it. */
static int adopt(struct identity *i, const char *cert, struct err *e)
{
    __attribute__((cleanup(kubeconfig_done))) struct kubeconfig k = {0};
    int r = kubeconfig_load(i->client ? i->kubeconfig : i->bootstrap, &k, e);
    if (r < 0) {
        return r;
    }
    struct kubeconfig w = {.server = k.server,
                           .ca = k.ca,
                           .server_name = k.server_name,
                           .insecure = k.insecure,
                           .cert = (char *) cert,
                           .key = i->key};
    r = kubeconfig_write(i->kubeconfig, i->user, &w, e);
    return r == 0 && i->client ? api_client_set_tls(i->client, &w, e) : r;
}

static void poll(void *ctx);

static void polled(void *ctx, int error, const char *text, struct json *obj)
{
    struct identity *i = ctx;
    static const char *const refusals[] = {"Denied", "Failed"};
    const struct json *v = json_path(obj, "status", "certificate", NULL);
    CLEANUP_STRBUF struct strbuf cert = STRBUF_INIT;
    struct err e = {0};
    i->call = NULL;
    if (error < 0) {
        again(i, error, text);
        return;
    }
    for (size_t n = 0; n < ARRAY_SIZE(refusals); n++) {
        const struct json *c = condition_find(obj, refusals[n]);
        const char *why = json_path_string(c, "message", NULL);
        if (c) {
            CLEANUP_FREE char *reason =
                xasprintf("the request is %s: %s", refusals[n], why ? why : "");
            again(i, -EACCES, reason);
            return;
        }
    }
    if (!json_string_size(v)) {
        err_set(&i->failure, -EAGAIN,
                "the request %s waits for a decision (kubectl certificate approve %s)", i->request,
                i->request);
        loop_timer_arm(i->timer,
                       backoff_fail(&i->polls, loop_now_ms(i->loop), hash_string(i->user)));
        return;
    }
    if (base64_decode(json_get_string(v), json_string_size(v), &cert) < 0 ||
        adopt(i, strbuf_cstr(&cert), &e) < 0) {
        again(i, e.code ? e.code : -EPROTO, e.code ? e.text : "the certificate is not base64");
        return;
    }
    if (i->key_file) {
        unlink(i->key_file);
    }
    err_clear(&i->failure);
    log_info("certificate for this node", "user=%s kubeconfig=%s", i->user, i->kubeconfig);
    forget_request(i);
    backoff_reset(&i->attempts);
    i->done = true;
    if (i->client) {
        look(i);
    }
}

static void poll(void *ctx)
{
    struct identity *i = ctx;
    CLEANUP_FREE char *path =
        api_path(VERSION, "certificatesigningrequests", NULL, i->request, NULL);
    i->call = api_request(i->client ? i->client : i->own, "GET", path, NULL, NULL, polled, i);
}

static void created(void *ctx, int error, const char *text, struct json *obj)
{
    struct identity *i = ctx;
    const char *name = json_path_string(obj, "metadata", "name", NULL);
    i->call = NULL;
    if (error < 0 || !name) {
        again(i, error < 0 ? error : -EPROTO, error < 0 ? text : "the answer has no name");
        return;
    }
    i->request = xstrdup(name);
    loop_timer_free(i->timer);
    i->timer = loop_timer_new(i->loop, poll, i);
    loop_timer_arm(i->timer, POLL_MIN_MS);
}

/* Signs a request with the key of the file, or with a new key that the file gets. */
static int make_request(struct identity *i, char **ret_csr, struct err *e)
{
    static const char *const group = "system:nodes";
    __attribute__((cleanup(wipe))) struct strbuf key = STRBUF_INIT;
    int r = i->key_file ? file_read(i->key_file, MAX_KEY, &key, e) : -ENOENT;
    if (r == 0) {
        r = pki_csr_make_with(strbuf_cstr(&key), i->user, &group, 1, ret_csr, e);
        if (r == 0) {
            i->key = xstrdup(strbuf_cstr(&key));
        }
        return r < 0 ? err_prefix(e, "%s", i->key_file) : 0;
    }
    if (r != -ENOENT) {
        return r;
    }
    pki_csr_make(i->user, &group, 1, ret_csr, &i->key);
    return i->key_file ? file_write_atomic(i->key_file, i->key, strlen(i->key), 0600, e) : 0;
}

static void request(void *ctx)
{
    struct identity *i = ctx;
    CLEANUP_FREE char *csr = NULL;
    struct err e = {0};
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    CLEANUP(json_free) struct json *o = json_object();
    int r = make_request(i, &csr, &e);
    if (r < 0) {
        again(i, r, e.text);
        return;
    }
    base64_encode(csr, strlen(csr), &b);
    json_set_string(o, "apiVersion", VERSION);
    json_set_string(o, "kind", "CertificateSigningRequest");
    json_set_string(json_ensure_object(o, "metadata"), "generateName", "node-csr-");
    struct json *spec = json_ensure_object(o, "spec");
    json_set_string(spec, "request", strbuf_cstr(&b));
    json_set_string(spec, "signerName", "kubernetes.io/kube-apiserver-client-kubelet");
    struct json *usages = json_ensure_array(spec, "usages");
    json_append(usages, json_string("digital signature"));
    json_append(usages, json_string("client auth"));
    i->call = api_request(i->client ? i->client : i->own, "POST",
                          "/apis/" VERSION "/certificatesigningrequests", NULL, o, created, i);
}

/* ---- life ---- */

static struct identity *make(const struct identity_config *cfg, loop_fn *first)
{
    struct identity *i = NEW(struct identity);
    i->polls = BACKOFF_INIT(POLL_MIN_MS, POLL_MAX_MS);
    i->attempts = BACKOFF_INIT(RETRY_MIN_MS, RETRY_MAX_MS);
    i->loop = cfg->loop;
    i->user = xasprintf("system:node:%s", cfg->node_name);
    i->kubeconfig = xstrdup(cfg->kubeconfig);
    i->bootstrap = xstrdup(cfg->bootstrap);
    i->timer = loop_timer_new(i->loop, first, i);
    return i;
}

struct identity *identity_free(struct identity *i)
{
    if (i) {
        if (i->call) {
            api_call_cancel(i->call);
        }
        loop_timer_free(i->timer);
        api_client_free(i->own);
        forget_request(i);
        free(i->user);
        free(i->kubeconfig);
        free(i->bootstrap);
        free(i);
    }
    return NULL;
}
DEFINE_CLEANUP(struct identity *, identity_free)

/* The validity of the certificate in the kubeconfig. */
static int times(const char *path, int64_t *ret_from, int64_t *ret_until)
{
    __attribute__((cleanup(kubeconfig_done))) struct kubeconfig k = {0};
    int r = kubeconfig_load(path, &k, NULL);
    return r < 0 ? r : k.cert ? pki_cert_times(k.cert, ret_from, ret_until, NULL) : -ENOENT;
}

int identity_ensure(const struct identity_config *cfg, struct err *e)
{
    int64_t from, until, now = time_wall_ms();
    if (times(cfg->kubeconfig, &from, &until) == 0 && now >= from && now < until) {
        return 0;
    }
    CLEANUP(identity_free) struct identity *i = make(cfg, request);
    int r = api_client_from_kubeconfig(cfg->loop, cfg->bootstrap, "tenet-node/" TENET_VERSION,
                                       &i->own, e);
    if (r < 0) {
        return err_prefix(e, "bootstrapKubeConfig"), r;
    }
    i->key_file = cfg->key_file;
    i->limited = cfg->give_up_ms > 0;
    if (!i->limited) {
        log_info("asking for a certificate", "user=%s server=%s", i->user,
                 api_client_server(i->own));
    }
    loop_timer_arm(i->timer, 0);
    r = loop_run_until(cfg->loop, &i->done, cfg->give_up_ms);
    if (r == -ECANCELED) {
        return err_set(e, r, "interrupted");
    }
    if (i->failure.code) {
        return err_set(e, r < 0 ? r : i->failure.code, "%s", i->failure.text);
    }
    return r < 0 ? err_set(e, r, "the master does not answer") : 0;
}

/* Checks at least once a day whether a renewal is due, because clocks are set. */
static void look(void *ctx)
{
    struct identity *i = ctx;
    int64_t from = 0, until = 0, now = time_wall_ms();
    if (times(i->kubeconfig, &from, &until) < 0) {
        loop_timer_arm(i->timer, LOOK_MAX_MS); /* Another program maintains this kubeconfig. */
        return;
    }
    int64_t at = identity_renew_at(from, until, hash_string(i->user));
    if (now >= at) {
        request(i);
        return;
    }
    loop_timer_free(i->timer);
    i->timer = loop_timer_new(i->loop, look, i);
    loop_timer_arm(i->timer, (uint64_t) MIN(at - now, LOOK_MAX_MS));
}

struct identity *identity_new(const struct identity_config *cfg, struct api_client *client)
{
    struct identity *i = make(cfg, look);
    i->client = client;
    look(i);
    return i;
}
