/* SPDX-License-Identifier: Apache-2.0 */
/* Access control with many bindings and projects: authorizations a second, OAuth tokens against
 * certificates, and the projects that a user may see.
 *
 * An API server in this process has the roles of every cluster, and in each project a binding of
 * another user; one user has a binding in ten of them.  Requests come over HTTPS, one after
 * another, in turns by a token and by a certificate, so that both meet the same machine.  Then a
 * hundred wrong passwords a second come in from many names, against hashes of bcrypt, beside gets
 * by the certificate; these are compared with gets alone.
 *
 *     bench_auth [QUESTIONS] [BINDINGS] [REQUESTS]          default: 200000, 10000 and 5000 */
#include "measure.h"
#include "preload.h"

#include "apiserver/access/authz.h"
#include "apiserver/access/visible.h"
#include "apiserver/oauth/oauth.h"
#include "apiserver/request/server_priv.h"
#include "base/base64.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/timeutil.h"
#include "controllers/security/default_roles.h"
#include "net/http/http.h"
#include "net/loop/process.h"
#include "net/loop/sock.h"
#include "net/tls/pki.h"
#include "net/tls/tls.h"
#include "oauth/config.h"
#include "oauth/token.h"

#include <stdio.h>
#include <stdlib.h>

#define DAY_MS INT64_C(86400000)
#define TURN 50 /* Requests in a row by one credential. */
#define OWN_PROJECTS 10
#define USER "user7"
#define ADMITS_ALL "\"AllowAllPasswordIdentityProvider\""

struct world {
    struct preload preload;
    struct apiserver *apiserver;
    struct http_server *http;
    struct pki_ca *ca;
    struct tls_context *tls;
    struct http_client *by_token, *by_certificate, *by_password;
    bool ready, done;
    int status, port;
};

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "bench_auth: %s: %s\n", what, why);
    exit(1);
}

/* ---- objects ---- */

/* A project, and the binding of its user. */
static void put_project(struct world *w, size_t i)
{
    CLEANUP_FREE char *ns = xasprintf("project%zu", i);
    CLEANUP_FREE char *project = xasprintf(
        "{\"kind\":\"Namespace\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"%s\"}}", ns);
    CLEANUP_FREE char *user = i < OWN_PROJECTS ? xstrdup(USER) : xasprintf("user%zu", i);
    CLEANUP_FREE char *binding = xasprintf(
        "{\"kind\":\"RoleBinding\",\"apiVersion\":\"rbac.authorization.k8s.io/v1\",\"metadata\":{"
        "\"name\":\"edit\",\"namespace\":\"%s\"},\"roleRef\":{\"apiGroup\":"
        "\"rbac.authorization.k8s.io\",\"kind\":\"ClusterRole\",\"name\":\"system:aggregate-to-"
        "view\"},\"subjects\":[{"
        "\"kind\":\"User\",\"apiGroup\":\"rbac.authorization.k8s.io\",\"name\":\"%s\"}]}",
        ns, user);
    preload_put(&w->preload, "namespaces", "", project);
    preload_put(&w->preload, PRELOAD_RBAC "rolebindings", ns, binding);
}

/* Makes the user and a token; 'token' gets its text. */
static void put_token(struct world *w, char token[OAUTH_TOKEN_TEXT_SIZE])
{
    static const uint8_t random[OAUTH_TOKEN_RANDOM] = {7};
    char name[OAUTH_TOKEN_TEXT_SIZE];
    if (oauth_token_make(random, token) < 0 || oauth_token_name(token, name) < 0) {
        abort();
    }
    CLEANUP_FREE char *text = xasprintf(
        "{\"kind\":\"OAuthAccessToken\",\"apiVersion\":\"oauth.openshift.io/v1\",\"metadata\":{"
        "\"name\":\"%s\",\"creationTimestamp\":\"2020-01-01T00:00:00Z\"},\"clientName\":\"c\","
        "\"userName\":\"" USER "\",\"userUID\":\"u\",\"scopes\":[\"user:full\"]}",
        name);
    preload_put(
        &w->preload, "user.openshift.io/users", "",
        "{\"kind\":\"User\",\"apiVersion\":\"user.openshift.io/v1\",\"metadata\":{\"name\":\"" USER
        "\",\"uid\":\"u\"}}");
    preload_put(&w->preload, "oauth.openshift.io/oauthaccesstokens", "", text);
}

/* ---- the server ---- */

static void on_ready(void *ctx)
{
    ((struct world *) ctx)->ready = true;
}

static struct pki_pair issue(struct world *w, struct pki_request q)
{
    struct pki_pair p;
    struct err e = {0};
    q.from_ms = time_wall_ms() - DAY_MS;
    q.until_ms = time_wall_ms() + DAY_MS;
    if (pki_issue(w->ca, &q, &p, &e) < 0) {
        fail("a certificate", e.text);
    }
    return p;
}

static void write_in(const char *dir, const char *name, const char *text)
{
    CLEANUP_FREE char *path = xasprintf("%s/%s", dir, name);
    struct err e = {0};
    if (file_write_atomic(path, text, strlen(text), 0600, &e) < 0) {
        fail(name, e.text);
    }
}

/* Returns the port. */
static int listen_tls(struct world *w)
{
    static const char *const names[] = {"127.0.0.1"};
    char dir[] = "/tmp/tenet-bench-XXXXXX";
    struct err e = {0};
    int fd = -1;
    if (!mkdtemp(dir)) {
        fail(dir, strerror(errno));
    }
    struct pki_pair p =
        issue(w, (struct pki_request){.cn = "master", .names = names, .n_names = 1});
    write_in(dir, "s.crt", p.cert);
    write_in(dir, "s.key", p.key);
    write_in(dir, "ca.crt", pki_ca_pem(w->ca));
    pki_pair_done(&p);
    CLEANUP_FREE char *cert = xasprintf("%s/s.crt", dir);
    CLEANUP_FREE char *key = xasprintf("%s/s.key", dir);
    CLEANUP_FREE char *clients = xasprintf("%s/ca.crt", dir);
    struct tls_server_config cfg = {cert, key, clients};
    if (tls_server_new(&cfg, &w->tls, &e) < 0 || sock_listen_tcp("127.0.0.1:0", &fd, &e) < 0 ||
        http_server_add_listener_tls(w->http, fd, w->tls, &e) < 0) {
        fail("HTTPS", e.text);
    }
    (void) dir_remove(dir, NULL);
    return sock_local_port(fd);
}

static struct http_client *client_new(struct world *w, int port, const struct pki_pair *p)
{
    CLEANUP_FREE char *url = xasprintf("https://127.0.0.1:%d", port);
    struct tls_client_config tls = {
        .ca = pki_ca_pem(w->ca), .cert = p ? p->cert : NULL, .key = p ? p->key : NULL};
    struct http_client_config cfg = {.url = url, .tls = &tls};
    struct http_client *c;
    struct err e = {0};
    if (http_client_new(w->preload.loop, &cfg, &c, &e) < 0) {
        fail("a client", e.text);
    }
    return c;
}

static void clients_open(struct world *w, int port, const char *token)
{
    CLEANUP_FREE char *bearer = xasprintf("Bearer %s", token);
    struct pki_pair p = issue(w, (struct pki_request){.cn = USER});
    w->by_token = client_new(w, port, NULL);
    w->by_certificate = client_new(w, port, &p);
    w->by_password = client_new(w, port, NULL);
    http_client_add_header(w->by_token, "Authorization", bearer);
    http_client_add_header(w->by_password, "Authorization", "Basic Ym9iOnNlY3JldA==");
    http_client_add_header(w->by_password, "X-CSRF-Token", "1");
    pki_pair_done(&p);
}

/* The OAuth server with one provider, of which 'provider' is the end of the JSON. */
static void oauth_open(struct world *w, int port, const char *provider)
{
    CLEANUP_FREE char *text = xasprintf(
        "[{\"name\":\"all\",\"challenge\":true,\"login\":true,\"mappingMethod\":\"claim\","
        "\"provider\":{\"apiVersion\":\"v1\",\"kind\":%s}}]",
        provider);
    CLEANUP(json_free) struct json *given = NULL;
    CLEANUP(json_free) struct json *providers = NULL;
    CLEANUP_FREE char *url = xasprintf("https://127.0.0.1:%d", port);
    struct err e = {0};
    if (json_parse(text, strlen(text), &given, NULL) < 0 ||
        oauth_config_read_providers(given, &providers, &e) < 0) {
        fail("the provider", e.text);
    }
    struct oauth_config config = {.session_name = (char *) "ssn",
                                  .session_s = 300,
                                  .code_s = 300,
                                  .token_s = 86400,
                                  .providers = providers};
    if (apiserver_set_oauth(w->apiserver, &(struct oauth_settings){&config, url}, &e) < 0) {
        fail("the OAuth server", e.text);
    }
}

static void world_open(struct world *w, size_t projects)
{
    static const struct apiserver_security security = {.anonymous = true};
    char token[OAUTH_TOKEN_TEXT_SIZE];
    *w = (struct world){.ready = false};
    preload_open(&w->preload);
    w->apiserver = apiserver_new(
        w->preload.loop, w->preload.store,
        &(struct apiserver_config){.security = &security, .ready = on_ready, .ctx = w});
    preload_await(&w->preload, "the API server", &w->ready);
    preload_put_all(&w->preload, PRELOAD_RBAC "clusterroles", default_cluster_roles());
    preload_put_all(&w->preload, PRELOAD_RBAC "clusterrolebindings",
                    default_cluster_role_bindings(SDN_MULTITENANT));
    for (size_t i = 0; i < projects; i++) {
        put_project(w, i);
    }
    put_token(w, token);
    preload_settle(&w->preload);
    w->ca = pki_ca_new(time_wall_ms(), time_wall_ms() + DAY_MS);
    w->http = http_server_new(w->preload.loop, NULL, apiserver_handle, w->apiserver);
    int port = listen_tls(w);
    clients_open(w, port, token);
    oauth_open(w, port, ADMITS_ALL);
    w->port = port;
}

static void set_flag(void *ctx)
{
    *(bool *) ctx = true;
}

static void world_close(struct world *w)
{
    bool done = false;
    http_client_free(w->by_token);
    http_client_free(w->by_certificate);
    http_client_free(w->by_password);
    apiserver_shutdown(w->apiserver);
    http_server_shutdown(w->http, PRELOAD_WAIT_MS, set_flag, &done);
    preload_await(&w->preload, "the end", &done);
    store_close(w->preload.store);
    http_server_free(w->http);
    apiserver_free(w->apiserver);
    tls_context_free(w->tls);
    pki_ca_free(w->ca);
    loop_free(w->preload.loop);
}

/* ---- measurements ---- */

static void answered(void *ctx, const struct http_result *r)
{
    struct world *w = ctx;
    if (r->error) {
        fail("a request", r->error_text);
    }
    w->status = r->status;
    w->done = true;
}

/* Microseconds. */
static double ask(struct world *w, struct http_client *c, const char *path, int want)
{
    uint64_t start = time_mono_ns();
    w->done = false;
    (void) http_call(c, "GET", path, NULL, NULL, NULL, 0, answered, w);
    preload_await(&w->preload, path, &w->done);
    if (w->status != want) {
        CLEANUP_FREE char *status = xasprintf("%d instead of %d", w->status, want);
        fail(path, status);
    }
    return (double) (time_mono_ns() - start) / 1e3;
}

static struct user_info *user_of_bench(void)
{
    struct user_info *u = user_new(USER);
    user_add_group(u, GROUP_AUTHENTICATED);
    return u;
}

/* Every second question is about a project of another user, and the answer is no. */
static void measure_authorizations(struct world *w, size_t n, size_t projects)
{
    CLEANUP(user_unref) struct user_info *u = user_of_bench();
    struct security *s = w->apiserver->security;
    size_t allowed = 0;
    uint64_t start = time_mono_ns();
    for (size_t i = 0; i < n; i++) {
        char ns[32];
        snprintf(ns, sizeof ns, "project%zu",
                 i % 2 ? OWN_PROJECTS + i % (projects - OWN_PROJECTS) : i % OWN_PROJECTS);
        allowed += authz_may(s, u, "get", "", "configmaps", ns, "x");
    }
    double rate = (double) n / measure_ms_since(start) * 1e3;
    if (allowed != n / 2 + n % 2) {
        fail("authorizations", "wrong answers");
    }
    printf("%zu bindings: %.0f authorizations a second\n", projects, rate);
    measure_result("authorizations a second, 10,000 bindings", rate, "/s", NULL, 0);
}

static void measure_visible(struct world *w, size_t projects)
{
    enum { ROUNDS = 20 };
    static const char path[] = "/apis/project.openshift.io/v1/projects";
    CLEANUP(user_unref) struct user_info *u = user_of_bench();
    const struct api_kind *k = api_kind_find("project.openshift.io", "v1", "projects");
    double decided[ROUNDS], listed[ROUNDS];
    for (size_t i = 0; i < ROUNDS; i++) {
        uint64_t start = time_mono_ns();
        struct visible *v = visible_ref(w->apiserver->security, u, k);
        size_t seen = 0;
        for (size_t p = 0; p < projects; p++) {
            char ns[32];
            snprintf(ns, sizeof ns, "project%zu", p);
            seen += visible_has(v, ns);
        }
        visible_unref(v);
        decided[i] = measure_ms_since(start);
        listed[i] = ask(w, w->by_token, path, 200) / 1e3;
        if (seen != OWN_PROJECTS) {
            fail("visible projects", "wrong answers");
        }
    }
    double decide = measure_quantile(decided, ROUNDS, 0.5);
    double list = measure_quantile(listed, ROUNDS, 0.5);
    printf("%zu projects: decided for one user in %.2f ms, listed in %.2f ms\n", projects, decide,
           list);
    measure_result("projects that a user may see, of 10,000", decide, "ms", NULL, 0);
    measure_result("list of the projects of a user, of 10,000", list, "ms", NULL, 0);
}

static void measure_requests(struct world *w, size_t n)
{
    static const char path[] = "/api/v1/namespaces/project0";
    CLEANUP_FREE double *token = xcalloc(n, sizeof *token);
    CLEANUP_FREE double *certificate = xcalloc(n, sizeof *certificate);
    (void) ask(w, w->by_token, path, 200);
    (void) ask(w, w->by_certificate, path, 200);
    for (size_t i = 0; i < n; i += TURN) {
        for (size_t k = i; k < n && k < i + TURN; k++) {
            token[k] = ask(w, w->by_token, path, 200);
        }
        for (size_t k = i; k < n && k < i + TURN; k++) {
            certificate[k] = ask(w, w->by_certificate, path, 200);
        }
    }
    double t = measure_quantile(token, n, 0.5), c = measure_quantile(certificate, n, 0.5);
    printf("a get over HTTPS: p50 %.1f us by an OAuth token, %.1f us by a certificate\n", t, c);
    measure_result("a get by an OAuth token, p50", t, "us", "by a certificate", c);
}

static void measure_logins(struct world *w, size_t n)
{
    static const char path[] =
        "/oauth/authorize?client_id=openshift-challenging-client&response_type=token";
    uint64_t give_up = time_mono_ms() + PRELOAD_WAIT_MS;
    bool never = false;
    /* The server makes its clients and keys first. */
    while (w->status != 302 && time_mono_ms() < give_up) {
        w->done = false;
        (void) http_call(w->by_password, "GET", path, NULL, NULL, NULL, 0, answered, w);
        preload_await(&w->preload, "the first login", &w->done);
        (void) loop_run_until(w->preload.loop, &never, 10);
    }
    uint64_t start = time_mono_ns();
    for (size_t i = 0; i < n; i++) {
        (void) ask(w, w->by_password, path, 302);
    }
    double rate = (double) n / measure_ms_since(start) * 1e3;
    printf("%.0f logins a second, one after another, each with a new token\n", rate);
    measure_result("logins a second", rate, "/s", NULL, 0);
}

/* ---- wrong passwords ---- */

enum { FLOOD_CLIENTS = 8, FLOOD_EVERY_MS = 10, GETS = 3000 };

/* Logins with wrong passwords, a hundred a second. */
struct flood {
    struct world *w;
    struct http_client *clients[FLOOD_CLIENTS];
    struct loop_timer *timer;
    size_t sent, answered;
};

static void refused(void *ctx, const struct http_result *r)
{
    struct flood *flood = ctx;
    if (r->status == 302) {
        fail("a wrong password", "it logged in");
    }
    flood->answered++;
}

static void guess(void *ctx)
{
    static const char path[] =
        "/oauth/authorize?client_id=openshift-challenging-client&response_type=token";
    struct flood *flood = ctx;
    CLEANUP_FREE char *pair = xasprintf("person%zu:wrong", flood->sent);
    CLEANUP_STRBUF struct strbuf line = STRBUF_INIT;
    strbuf_adds(&line, "Authorization: Basic ");
    base64_encode(pair, strlen(pair), &line);
    strbuf_adds(&line, "\r\nX-CSRF-Token: 1\r\n");
    (void) http_call_with(flood->clients[flood->sent++ % FLOOD_CLIENTS], "GET", path, NULL, NULL,
                          line.data, NULL, 0, refused, flood);
    loop_timer_arm(flood->timer, FLOOD_EVERY_MS);
}

static void flood_begin(struct world *w, struct flood *flood)
{
    *flood = (struct flood){.w = w};
    for (size_t i = 0; i < FLOOD_CLIENTS; i++) {
        flood->clients[i] = client_new(w, w->port, NULL);
    }
    flood->timer = loop_timer_new(w->preload.loop, guess, flood);
    loop_timer_arm(flood->timer, FLOOD_EVERY_MS);
}

static void flood_end(struct flood *flood)
{
    loop_timer_free(flood->timer);
    for (size_t i = 0; i < FLOOD_CLIENTS; i++) {
        http_client_free(flood->clients[i]);
    }
}

/* The time within which 99 of 100 gets are answered, one every millisecond. */
static double measure_gets(struct world *w)
{
    CLEANUP_FREE double *us = xcalloc(GETS, sizeof *us);
    bool never = false;
    for (size_t i = 0; i < GETS; i++) {
        us[i] = ask(w, w->by_certificate, "/api/v1/namespaces/project0", 200);
        (void) loop_run_until(w->preload.loop, &never, 1);
    }
    return measure_quantile(us, GETS, 0.99);
}

static void measure_flood(struct world *w)
{
    /* A password of nobody: the hash is of 2^10 rounds, as htpasswd -B makes by default or more. */
    static const char people[] =
        "person0:$2y$10$N9qo8uLOickgx2ZMRZoMyeIjZAgcfl7p92ldGxad68LJZdL17lhWy\n";
    char dir[] = "/tmp/tenet-bench-XXXXXX";
    struct flood flood;
    if (!mkdtemp(dir)) {
        fail(dir, strerror(errno));
    }
    write_in(dir, "people", people);
    CLEANUP_FREE char *provider =
        xasprintf("\"HTPasswdPasswordIdentityProvider\",\"file\":\"%s/people\"", dir);
    oauth_open(w, w->port, provider);
    double alone = measure_gets(w);
    flood_begin(w, &flood);
    double beside = measure_gets(w);
    printf("a get: p99 %.1f us alone, %.1f us beside wrong passwords (%zu sent, %zu answered)\n",
           alone, beside, flood.sent, flood.answered);
    if (!flood.answered) {
        fail("the wrong passwords", "none was answered");
    }
    measure_result("a get beside 100 wrong passwords a second, p99", beside, "us", "without them",
                   alone);
    flood_end(&flood);
    oauth_open(w, w->port, ADMITS_ALL); /* The file is not read again. */
    (void) dir_remove(dir, NULL);
}

int main(int argc, char **argv)
{
    size_t questions = argc > 1 ? measure_number(argv[1], 1, 100000000) : 200000;
    size_t projects = argc > 2 ? measure_number(argv[2], 2 * OWN_PROJECTS, 1000000) : 10000;
    size_t requests = argc > 3 ? measure_number(argv[3], 1, 1000000) : 5000;
    char bad[64];
    struct world w;
    (void) log_set_levels("error", bad);
    world_open(&w, projects);
    measure_authorizations(&w, questions, projects);
    measure_requests(&w, requests);
    measure_visible(&w, projects);
    measure_logins(&w, requests / 5 + 1);
    measure_flood(&w);
    world_close(&w);
    return 0;
}
