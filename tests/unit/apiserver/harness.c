/* SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include "base/timeutil.h"
#include "net/loop/process.h"
#include "net/loop/sock.h"
#include "net/tls/pki_csr.h"

#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define WAIT_MS 20000
#define DAY_MS (24 * 3600000LL)

static void on_ready(void *ctx)
{
    struct harness *h = ctx;
    h->ready = true;
}

static void listen_on(struct harness *h, const struct http_limits *limits, uint16_t port)
{
    char address[32];
    struct err e = {0};
    int fd;
    snprintf(address, sizeof address, "127.0.0.1:%u", port);
    if (sock_listen_tcp(address, &fd, &e) < 0) {
        fail_msg("%s", e.text);
    }
    h->port = (uint16_t) sock_local_port(fd);
    h->http = http_server_new(h->loop, limits, apiserver_handle, h->api);
    if (http_server_add_listener(h->http, fd, &e) < 0) {
        fail_msg("%s", e.text);
    }
}

char *harness_url(const struct harness *h)
{
    return xasprintf("http://127.0.0.1:%u", h->port);
}

static struct http_client *new_client(struct harness *h)
{
    CLEANUP_FREE char *url = harness_url(h);
    struct http_client_config cfg = {.url = url, .bearer_token = h->token};
    struct http_client *c = NULL;
    struct err e = {0};
    if (http_client_new(h->loop, &cfg, &c, &e) < 0) {
        fail_msg("%s", e.text);
    }
    return c;
}

struct harness *harness_new(const struct apiserver_config *given, const struct http_limits *limits)
{
    struct harness *h = NEW(struct harness);
    struct store_config store = {.backend = "memory"};
    struct apiserver_config cfg = given ? *given : (struct apiserver_config){0};
    struct err e = {0};
    cfg.ready = on_ready;
    cfg.ctx = h;
    h->loop = loop_new();
    if (store_open(h->loop, &store, &h->store, &e) < 0) {
        fail_msg("%s", e.text);
    }
    h->api = apiserver_new(h->loop, h->store, &cfg);
    listen_on(h, limits, 0);
    assert_int_equal(loop_run_until(h->loop, &h->ready, WAIT_MS), 0);
    h->token = cfg.security ? xstrdup(cfg.security->loopback_token) : NULL;
    h->client = new_client(h);
    free(make_namespace(h, "default"));
    return h;
}

static void make_default_account(struct harness *h, const char *ns)
{
    CLEANUP_FREE char *path = xasprintf("/api/v1/namespaces/%s/serviceaccounts", ns);
    CLEANUP_ANSWER
    struct answer a = ask(h, "POST", path, "{\"metadata\":{\"name\":\"default\"}}");
    if (a.status != 201 && a.status != 409) { /* 409: the controller of the test was faster. */
        fail_msg("account of %s: %d %s", ns, a.status, a.text);
    }
}

void make_constraints(struct harness *h)
{
    static const char any[] =
        "'runAsUser':{'type':'RunAsAny'},'seLinuxContext':{'type':'RunAsAny'}";
    CLEANUP_FREE char *lax =
        xasprintf("{'metadata':{'name':'lax'},%s,'seccompProfiles':['*'],'groups':["
                  "'system:authenticated']}",
                  any);
    CLEANUP_FREE char *all =
        xasprintf("{'metadata':{'name':'all'},%s,'seccompProfiles':['*'],"
                  "'allowPrivilegedContainer':true,'allowHostDirVolumePlugin':true,"
                  "'allowHostNetwork':true,'allowHostPorts':true,'allowHostPID':true,"
                  "'allowHostIPC':true,'allowedCapabilities':['*'],'allowedUnsafeSysctls':['*']}",
                  any);
    const char *const both[] = {lax, all};
    for (size_t i = 0; i < ARRAY_SIZE(both); i++) {
        CLEANUP_FREE char *text = quoted(both[i]);
        CLEANUP_ANSWER
        struct answer a =
            ask(h, "POST", "/apis/security.openshift.io/v1/securitycontextconstraints", text);
        if (a.status != 201) {
            fail_msg("%s: %d %s", text, a.status, a.text);
        }
    }
}

struct harness *harness_new_secure(struct apiserver_security security)
{
    struct jws_keys *keys = jws_keys_new();
    CLEANUP_FREE char *pem = NULL;
    CLEANUP_FREE char *csr = NULL;
    pki_csr_make("keys", NULL, 0, &csr, &pem);
    assert_int_equal(jws_keys_add_private(keys, pem, NULL), 0);
    security.loopback_token = HARNESS_TOKEN;
    security.keys = keys;
    struct harness *h = harness_new(&(struct apiserver_config){.security = &security}, NULL);
    h->keys = keys;
    make_default_account(h, "default");
    make_constraints(h);
    return h;
}

static void write_in(const char *dir, const char *name, const char *text)
{
    CLEANUP_FREE char *path = xasprintf("%s/%s", dir, name);
    assert_int_equal(file_write_atomic(path, text, strlen(text), 0600, NULL), 0);
}

static struct pki_pair issue(const struct pki_ca *ca, struct pki_request q)
{
    struct pki_pair p;
    struct err e = {0};
    q.from_ms = time_wall_ms() - DAY_MS;
    q.until_ms = time_wall_ms() + DAY_MS;
    if (pki_issue(ca, &q, &p, &e) < 0) {
        fail_msg("%s", e.text);
    }
    return p;
}

void harness_listen_tls(struct harness *h)
{
    static const char *const names[] = {"127.0.0.1"};
    char dir[] = "/tmp/tenet-access-XXXXXX";
    struct err e = {0};
    int fd;
    assert_non_null(mkdtemp(dir));
    h->ca = pki_ca_new(time_wall_ms(), time_wall_ms() + DAY_MS);
    struct pki_pair p =
        issue(h->ca, (struct pki_request){.cn = "master", .names = names, .n_names = 1});
    write_in(dir, "s.crt", p.cert);
    write_in(dir, "s.key", p.key);
    write_in(dir, "ca.crt", pki_ca_pem(h->ca));
    pki_pair_done(&p);
    CLEANUP_FREE char *cert = xasprintf("%s/s.crt", dir);
    CLEANUP_FREE char *key = xasprintf("%s/s.key", dir);
    CLEANUP_FREE char *clients = xasprintf("%s/ca.crt", dir);
    struct tls_server_config cfg = {cert, key, clients};
    if (tls_server_new(&cfg, &h->tls, &e) < 0 || sock_listen_tcp("127.0.0.1:0", &fd, &e) < 0) {
        fail_msg("%s", e.text);
    }
    h->tls_port = (uint16_t) sock_local_port(fd);
    assert_int_equal(http_server_add_listener_tls(h->http, fd, h->tls, &e), 0);
    assert_int_equal(dir_remove(dir, NULL), 0);
}

static void set_flag(void *ctx)
{
    *(bool *) ctx = true;
}

void harness_stop_listening(struct harness *h)
{
    bool done = false;
    http_server_shutdown(h->http, WAIT_MS, set_flag, &done);
    assert_int_equal(loop_run_until(h->loop, &done, WAIT_MS), 0);
    h->http = http_server_free(h->http);
}

void harness_listen_again(struct harness *h)
{
    listen_on(h, NULL, h->port);
}

void harness_free(struct harness *h)
{
    http_client_free(h->client);
    apiserver_shutdown(h->api);
    if (h->http) {
        bool done = false;
        http_server_shutdown(h->http, WAIT_MS, set_flag, &done);
        assert_int_equal(loop_run_until(h->loop, &done, WAIT_MS), 0);
    }
    store_close(h->store);
    http_server_free(h->http);
    apiserver_free(h->api);
    tls_context_free(h->tls);
    pki_ca_free(h->ca);
    jws_keys_free(h->keys);
    loop_free(h->loop);
    free(h->token);
    free(h);
}

/* ---- requests ---- */

struct asking {
    bool done;
    int error;
    char *error_text;
    struct answer answer;
};

static void answered(void *ctx, const struct http_result *r)
{
    struct asking *q = ctx;
    q->done = true;
    q->error = r->error;
    q->error_text = xstrdup(r->error_text);
    q->answer.status = r->status;
    q->answer.content_type = xstrdup(r->content_type);
    q->answer.text = xstrndup(r->body ? r->body : "", r->size);
    json_parse(q->answer.text, r->size, &q->answer.body, NULL);
}

static struct asking call(struct harness *h, struct http_client *c, const char *method,
                          const char *path, const char *accept, const char *type, const char *body)
{
    struct asking q = {0};
    const char *usual =
        streq(method, "PATCH") ? "application/merge-patch+json" : "application/json";
    http_call(c, method, path, accept, body ? (type ? type : usual) : NULL, body,
              body ? strlen(body) : 0, answered, &q);
    if (loop_run_until(h->loop, &q.done, WAIT_MS) < 0) {
        fail_msg("%s %s: no answer", method, path);
    }
    return q;
}

/* The answer of 'q'; fails the test when there is none. */
static struct answer answer_of(struct asking q, const char *method, const char *path)
{
    if (q.error < 0) {
        fail_msg("%s %s: %s", method, path, q.error_text);
    }
    free(q.error_text);
    return q.answer;
}

struct answer ask_full(struct harness *h, const char *method, const char *path, const char *accept,
                       const char *type, const char *body)
{
    return answer_of(call(h, h->client, method, path, accept, type, body), method, path);
}

struct answer ask(struct harness *h, const char *method, const char *path, const char *body)
{
    return ask_full(h, method, path, NULL, NULL, body);
}

/* ---- requests of others ---- */

char *quoted(const char *text)
{
    char *s = xstrdup(text);
    for (char *p = s; *p; p++) {
        *p = *p == '\'' ? '"' : *p;
    }
    return s;
}

struct http_client *harness_client(struct harness *h, const struct sender *by)
{
    CLEANUP_FREE char *url =
        by->tls ? xasprintf("https://127.0.0.1:%u", h->tls_port) : harness_url(h);
    struct pki_ca *ca = by->foreign ? pki_ca_new(time_wall_ms(), time_wall_ms() + DAY_MS) : h->ca;
    struct pki_pair p = {0};
    if (by->cn) {
        p = issue(ca, (struct pki_request){.cn = by->cn, .o = &by->o, .n_o = by->o ? 1 : 0});
    }
    struct tls_client_config tls = {.cert = by->cert ? by->cert : p.cert,
                                    .key = by->key ? by->key : p.key};
    struct http_client_config cfg = {.url = url, .tls = by->tls ? &tls : NULL};
    struct http_client *c;
    struct err e = {0};
    tls.ca = by->tls ? pki_ca_pem(h->ca) : NULL;
    if (http_client_new(h->loop, &cfg, &c, &e) < 0) {
        fail_msg("%s", e.text);
    }
    for (const char *const *header = by->headers; header && *header; header += 2) {
        http_client_add_header(c, header[0], header[1]);
    }
    pki_pair_done(&p);
    if (by->foreign) {
        pki_ca_free(ca);
    }
    return c;
}

int try_by(struct harness *h, const struct sender *by, const char *method, const char *path,
           const char *body, struct answer *ret)
{
    CLEANUP_FREE char *text = body ? quoted(body) : NULL;
    struct http_client *c = harness_client(h, by);
    struct asking q = call(h, c, method, path, NULL, by->type, text);
    http_client_free(c);
    free(q.error_text);
    *ret = q.answer;
    return q.error;
}

struct answer ask_by(struct harness *h, const struct sender *by, const char *method,
                     const char *path, const char *body)
{
    struct answer a;
    int r = try_by(h, by, method, path, body, &a);
    if (r < 0) {
        fail_msg("%s %s: %s", method, path, strerror(-r));
    }
    return a;
}

char *ask_raw(struct harness *h, const char *text)
{
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(h->port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    struct strbuf b = STRBUF_INIT;
    bool never = false;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *) &to, sizeof to), 0);
    assert_int_equal(send(fd, text, strlen(text), 0), strlen(text));
    for (int i = 0; i < WAIT_MS / 5; i++) {
        char part[4096];
        ssize_t n = recv(fd, part, sizeof part, MSG_DONTWAIT);
        if (n == 0) {
            break;
        }
        if (n > 0) {
            strbuf_add(&b, part, (size_t) n);
        } else {
            loop_run_until(h->loop, &never, 5);
        }
    }
    close(fd);
    return strbuf_steal(&b);
}

struct answer ask_as(struct harness *h, const char *who, const char *method, const char *path,
                     const char *type, const char *body)
{
    enum { MAX_WORDS = 8 };
    CLEANUP_FREE char *words = xstrdup(who);
    CLEANUP_FREE char *credential = xasprintf("Bearer %s", h->token ? h->token : "none");
    const char *headers[2 * MAX_WORDS + 3] = {"Authorization", credential};
    char *save = NULL;
    size_t n = 2;
    for (char *word = strtok_r(words, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
        assert_true(n < 2 * MAX_WORDS + 2);
        headers[n] = n == 2 ? "Impersonate-User" : "Impersonate-Group";
        headers[n + 1] = word;
        n += 2;
    }
    return ask_by(h, &(struct sender){.headers = headers, .type = type}, method, path, body);
}

void put_in(struct harness *h, const char *method, const char *path, const char *body, int want)
{
    CLEANUP_FREE char *text = body ? quoted(body) : NULL;
    CLEANUP_ANSWER struct answer a = ask_ok(h, method, path, text, want);
}

struct json *json_of(const char *text)
{
    CLEANUP_FREE char *t = quoted(text);
    struct json *v = NULL;
    struct err e = {0};
    if (json_parse(t, strlen(t), &v, &e) < 0) {
        fail_msg("%s: %s", text, e.text);
    }
    return v;
}

char *make_object(struct harness *h, const char *path, const char *body)
{
    CLEANUP_FREE char *text = quoted(body);
    CLEANUP_ANSWER struct answer a = ask_ok(h, "POST", path, text, 201);
    return xstrdup(at(&a, "metadata.uid"));
}

#define RBAC "/apis/rbac.authorization.k8s.io/v1/"

static void bind_role(struct harness *h, const char *ns, const char *name, const char *subjects)
{
    CLEANUP_FREE char *path =
        ns ? xasprintf(RBAC "namespaces/%s/rolebindings", ns) : xstrdup(RBAC "clusterrolebindings");
    CLEANUP_FREE char *body =
        xasprintf("{'metadata': {'name': '%s'}, 'roleRef': {'apiGroup':"
                  "'rbac.authorization.k8s.io', 'kind': '%s', 'name': '%s'}, 'subjects': [%s]}",
                  name, ns ? "Role" : "ClusterRole", name, subjects);
    put_in(h, "POST", path, body, 201);
}

static void make_role(struct harness *h, const char *ns, const char *name, const char *rules)
{
    CLEANUP_FREE char *path =
        ns ? xasprintf(RBAC "namespaces/%s/roles", ns) : xstrdup(RBAC "clusterroles");
    CLEANUP_FREE char *body = xasprintf("{'metadata': {'name': '%s'}, 'rules': [%s]}", name, rules);
    put_in(h, "POST", path, body, 201);
}

void give_rules(struct harness *h, const char *ns, const char *user, const char *rules)
{
    CLEANUP_FREE char *subject =
        xasprintf("{'kind': 'User', 'apiGroup': 'rbac.authorization.k8s.io', 'name': '%s'}", user);
    make_role(h, ns, user, rules);
    bind_role(h, ns, user, subject);
}

void give_self_reviews(struct harness *h)
{
    make_role(h, NULL, "self-reviews",
              "{'verbs': ['create'], 'apiGroups': ['authentication.k8s.io'],"
              "'resources': ['selfsubjectreviews']}");
    bind_role(h, NULL, "self-reviews",
              "{'kind': 'Group', 'apiGroup': 'rbac.authorization.k8s.io',"
              "'name': 'system:authenticated'}, {'kind': 'Group',"
              "'apiGroup': 'rbac.authorization.k8s.io', 'name': 'system:unauthenticated'}");
}

struct answer ask_ok(struct harness *h, const char *method, const char *path, const char *body,
                     int want)
{
    struct answer a = ask(h, method, path, body);
    if (a.status != want) {
        fail_msg("%s %s: %d: %s", method, path, a.status, a.text);
    }
    return a;
}

void answer_done(struct answer *a)
{
    free(a->content_type);
    free(a->text);
    json_free(a->body);
}

const char *at(const struct answer *a, const char *path)
{
    const struct json *v = a->body;
    while (v && *path) {
        char key[64];
        size_t n = strcspn(path, ".");
        snprintf(key, sizeof key, "%.*s", (int) n, path);
        uint64_t i;
        v = json_is(v, JSON_ARRAY) && str_to_u64(key, 1000, &i) == 0 ? json_at(v, i)
                                                                     : json_get(v, key);
        path += n + (path[n] == '.');
    }
    const char *s = json_is(v, JSON_NUMBER) ? json_number_text(v) : json_get_string(v);
    return s ? s : "";
}

static char *make(struct harness *h, const char *path, const char *body)
{
    CLEANUP_ANSWER struct answer a = ask_ok(h, "POST", path, body, 201);
    return xstrdup(at(&a, "metadata.resourceVersion"));
}

char *make_namespace(struct harness *h, const char *name)
{
    CLEANUP_FREE char *body = xasprintf("{\"metadata\":{\"name\":\"%s\"}}", name);
    char *version = make(h, "/api/v1/namespaces", body);
    if (h->keys) {
        make_default_account(h, name);
    }
    return version;
}

char *make_net(struct harness *h, const char *name, int netid, const char *labels)
{
    CLEANUP_FREE char *body =
        xasprintf("{\"metadata\":{\"name\":\"%s\",\"labels\":%s},\"netname\":\"%s\",\"netid\":%d}",
                  name, labels ? labels : "{}", name, netid);
    return make(h, "/apis/network.openshift.io/v1/netnamespaces", body);
}

/* ---- watches ---- */

static void on_opened(void *ctx)
{
    struct watcher *w = ctx;
    w->opened = true;
}

static void on_data(void *ctx, const char *p, size_t size)
{
    struct watcher *w = ctx;
    strbuf_add(&w->text, p, size);
    for (;;) {
        const char *nl = w->text.size ? memchr(w->text.data, '\n', w->text.size) : NULL;
        struct json *v;
        if (!nl) {
            return;
        }
        size_t n = (size_t) (nl - w->text.data);
        if (json_parse(w->text.data, n, &v, NULL) < 0) {
            fail_msg("not JSON: %.*s", (int) n, w->text.data);
        }
        json_append(w->events, v);
        strbuf_consume(&w->text, n + 1);
    }
}

static void on_ended(void *ctx, const struct http_result *r)
{
    struct watcher *w = ctx;
    w->ended = true;
    w->call = NULL;
    w->status = r->error ? r->error : r->status;
    w->body = xstrndup(r->body ? r->body : "", r->size);
}

struct watcher *watcher_new(struct harness *h, const char *path, const char *accept)
{
    static const struct http_stream_ops ops = {
        .opened = on_opened, .data = on_data, .ended = on_ended};
    struct watcher *w = NEW(struct watcher);
    w->h = h;
    w->text = STRBUF_INIT;
    w->events = json_array();
    w->call = http_stream(h->client, path, accept, 0, &ops, w);
    bool *flag = &w->opened;
    while (!w->opened && !w->ended) {
        if (loop_run_until(h->loop, flag, 50) < 0 && w->ended) {
            break;
        }
    }
    return w;
}

void watcher_free(struct watcher *w)
{
    if (w->call) {
        http_call_cancel(w->call);
    }
    strbuf_done(&w->text);
    json_free(w->events);
    free(w->body);
    free(w);
}

void watcher_expect(struct watcher *w, size_t n)
{
    bool never = false;
    for (int i = 0; i < WAIT_MS / 5 && json_count(w->events) < n; i++) {
        loop_run_until(w->h->loop, &never, 5);
    }
    if (json_count(w->events) != n) {
        CLEANUP_FREE char *s = watcher_summary(w);
        fail_msg("%zu events, not %zu: %s", json_count(w->events), n, s);
    }
}

void watcher_expect_end(struct watcher *w)
{
    assert_int_equal(loop_run_until(w->h->loop, &w->ended, WAIT_MS), 0);
}

char *watcher_summary(const struct watcher *w)
{
    struct strbuf b = STRBUF_INIT;
    const struct json *ev;
    JSON_FOREACH (ev, w->events) {
        const struct json *meta = json_path(ev, "object", "metadata", NULL);
        const char *name = json_path_string(meta, "name", NULL);
        const char *version = json_path_string(meta, "resourceVersion", NULL);
        strbuf_addf(&b, "%s%s %s@%s", b.size ? ", " : "", json_path_string(ev, "type", NULL),
                    name ? name : "", version ? version : "");
    }
    return strbuf_steal(&b);
}
