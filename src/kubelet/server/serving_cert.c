/* SPDX-License-Identifier: Apache-2.0 */
#include "kubelet/server/serving_cert.h"

#include "api/condition.h"
#include "base/base64.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/timeutil.h"
#include "net/loop/process.h"
#include "net/tls/pki_csr.h"

LOG_MODULE("kubelet");

#define VERSION "certificates.k8s.io/v1"
#define HOUR_MS 3600000LL
/* A certificate that is valid for less is one of our own. */
#define OWN_MS (24 * HOUR_MS)
#define LOOK_MS (24 * 3600000ull)
#define POLL_MS 1000
#define RETRY_MS 15000
#define POLLS 120
#define MAX_PEM ((size_t) 1 << 16)
#define MAX_NAMES 64

struct serving_cert {
    struct loop *loop;
    struct serving_cert_config cfg;
    char *user, *node, *cert_file, *key_file, *names_file;
    char *names[MAX_NAMES];
    size_t n_names;
    char *names_text; /* For the file: what the certificate was requested for. */
    struct loop_timer *timer;
    struct api_call *call;
    char *request, *key; /* Of the request under way; NULL: none. */
    unsigned polls;
};

const char *serving_cert_file(const struct serving_cert *s)
{
    return s->cert_file;
}

const char *serving_cert_key_file(const struct serving_cert *s)
{
    return s->key_file;
}

/* ---- files ---- */

static int write_pair(struct serving_cert *s, const char *cert, const char *key, const char *names,
                      struct err *e)
{
    /* The key first: a certificate without its key would not be served. */
    int r = file_write_atomic(s->key_file, key, strlen(key), 0600, e);
    r = r < 0 ? r : file_write_atomic(s->cert_file, cert, strlen(cert), 0644, e);
    return r < 0 ? r : file_write_atomic(s->names_file, names, strlen(names), 0644, e);
}

static int read_times(const struct serving_cert *s, int64_t *ret_from, int64_t *ret_until)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    int r = file_read(s->cert_file, MAX_PEM, &b, NULL);
    return r < 0 ? r : pki_cert_times(strbuf_cstr(&b), ret_from, ret_until, NULL);
}

bool serving_cert_is_issued(const struct serving_cert *s)
{
    int64_t from, until;
    return read_times(s, &from, &until) == 0 && until - from > OWN_MS;
}

/* Whether the certificate is the cluster's, for these names, and good for a while. */
static bool is_good(const struct serving_cert *s)
{
    CLEANUP_STRBUF struct strbuf names = STRBUF_INIT;
    int64_t from, until, now = time_wall_ms();
    return read_times(s, &from, &until) == 0 && until - from > OWN_MS && now >= from &&
           until - now > (until - from) / 3 &&
           file_read(s->names_file, MAX_PEM, &names, NULL) == 0 &&
           streq(strbuf_cstr(&names), s->names_text);
}

/* Makes a certificate of our own where there is none that is valid. */
static int ensure_any(struct serving_cert *s, struct err *e)
{
    int64_t from, until, now = time_wall_ms();
    if (read_times(s, &from, &until) == 0 && now >= from && now < until) {
        return 0;
    }
    CLEANUP(pki_ca_free) struct pki_ca *ca = pki_ca_new(now, now + OWN_MS / 2);
    struct pki_request q = {.cn = s->user,
                            .names = (const char *const *) s->names,
                            .n_names = s->n_names,
                            .from_ms = now - HOUR_MS,
                            .until_ms = now + OWN_MS / 2};
    __attribute__((cleanup(pki_pair_done))) struct pki_pair pair = {0};
    int r = pki_issue(ca, &q, &pair, e);
    return r < 0 ? r : write_pair(s, pair.cert, pair.key, "", e);
}

/* ---- the request ---- */

static void forget(struct serving_cert *s)
{
    free(TAKE(s->request));
    free(TAKE(s->key));
}

static void again(struct serving_cert *s, const char *why)
{
    log_warn("no serving certificate yet", "user=%s reason=\"%s\"", s->user, why);
    forget(s);
    loop_timer_arm(s->timer, RETRY_MS);
}

static void take_cert(struct serving_cert *s, const char *text)
{
    CLEANUP_STRBUF struct strbuf pem = STRBUF_INIT;
    struct err e = {0};
    if (base64_decode(text, strlen(text), &pem) < 0 ||
        write_pair(s, strbuf_cstr(&pem), s->key, s->names_text, &e) < 0) {
        again(s, *e.text ? e.text : "malformed certificate");
        return;
    }
    forget(s);
    log_info("serving certificate", "user=%s names=%zu", s->user, s->n_names);
    loop_timer_arm(s->timer, LOOK_MS);
    s->cfg.changed(s->cfg.ctx);
}

static void polled(void *ctx, int error, const char *text, struct json *obj)
{
    struct serving_cert *s = ctx;
    const char *cert = json_path_string(obj, "status", "certificate", NULL);
    s->call = NULL;
    if (error == -ENOENT || condition_find(obj, "Denied") || condition_find(obj, "Failed")) {
        again(s, error ? text : "the request was denied");
    } else if (cert && *cert) {
        take_cert(s, cert);
    } else if (++s->polls == POLLS) {
        again(s, error < 0 ? text : "the request is not approved; \"kubectl certificate approve\"");
    } else {
        loop_timer_arm(s->timer, POLL_MS);
    }
}

static void created(void *ctx, int error, const char *text, struct json *obj)
{
    struct serving_cert *s = ctx;
    const char *name = json_path_string(obj, "metadata", "name", NULL);
    s->call = NULL;
    if (error < 0 || !name) {
        again(s, error < 0 ? text : "the answer has no name");
        return;
    }
    s->request = xstrdup(name);
    s->polls = 0;
    loop_timer_arm(s->timer, POLL_MS / 10);
}

static void request(struct serving_cert *s)
{
    static const char *const group = "system:nodes";
    CLEANUP_FREE char *csr = NULL;
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    CLEANUP(json_free) struct json *o = json_object();
    pki_csr_make_server(s->user, &group, 1, (const char *const *) s->names, s->n_names, &csr,
                        &s->key);
    base64_encode(csr, strlen(csr), &b);
    json_set_string(o, "apiVersion", VERSION);
    json_set_string(o, "kind", "CertificateSigningRequest");
    json_set_string(json_ensure_object(o, "metadata"), "generateName", "node-serving-");
    struct json *spec = json_ensure_object(o, "spec");
    json_set_string(spec, "request", strbuf_cstr(&b));
    json_set_string(spec, "signerName", "kubernetes.io/kubelet-serving");
    struct json *usages = json_ensure_array(spec, "usages");
    json_append(usages, json_string("digital signature"));
    json_append(usages, json_string("server auth"));
    s->call = api_request(s->cfg.api, "POST", "/apis/" VERSION "/certificatesigningrequests", NULL,
                          o, created, s);
}

static void step(void *ctx)
{
    struct serving_cert *s = ctx;
    if (s->request) {
        CLEANUP_FREE char *path =
            api_path(VERSION, "certificatesigningrequests", NULL, s->request, NULL);
        s->call = api_request(s->cfg.api, "GET", path, NULL, NULL, polled, s);
    } else if (is_good(s)) {
        loop_timer_arm(s->timer, LOOK_MS);
    } else {
        request(s);
    }
}

/* ---- creation and end ---- */

int serving_cert_new(struct loop *l, const struct serving_cert_config *cfg,
                     struct serving_cert **ret, struct err *e)
{
    struct serving_cert *s = NEW(struct serving_cert);
    CLEANUP_STRBUF struct strbuf names = STRBUF_INIT;
    s->loop = l;
    s->cfg = *cfg;
    s->node = xstrdup(cfg->node);
    s->user = xasprintf("system:node:%s", cfg->node);
    s->cert_file = xasprintf("%s/kubelet-server.crt", cfg->dir);
    s->key_file = xasprintf("%s/kubelet-server.key", cfg->dir);
    s->names_file = xasprintf("%s/kubelet-server.names", cfg->dir);
    for (size_t i = 0; i < cfg->n_addresses && s->n_names < MAX_NAMES; i++) {
        s->names[s->n_names++] = xstrdup(cfg->addresses[i]);
    }
    for (size_t i = 0; i < s->n_names; i++) {
        strbuf_addf(&names, "%s\n", s->names[i]);
    }
    s->names_text = strbuf_steal(&names);
    s->timer = loop_timer_new(l, step, s);
    int r = s->n_names ? ensure_any(s, e) : err_set(e, -EINVAL, "the node has no address");
    if (r < 0) {
        serving_cert_free(s);
        return r;
    }
    loop_timer_arm(s->timer, 0);
    *ret = s;
    return 0;
}

struct serving_cert *serving_cert_free(struct serving_cert *s)
{
    if (s) {
        if (s->call) {
            api_call_cancel(s->call);
        }
        loop_timer_free(s->timer);
        forget(s);
        for (size_t i = 0; i < s->n_names; i++) {
            free(s->names[i]);
        }
        free(s->names_text);
        free(s->node);
        free(s->user);
        free(s->cert_file);
        free(s->key_file);
        free(s->names_file);
        free(s);
    }
    return NULL;
}
