/* SPDX-License-Identifier: Apache-2.0 */
/* What the agent writes to the registry. The API server is a script of requests and answers. */
#include "base/base64.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/timeutil.h"
#include "client/kubeconfig.h"
#include "net/http/http.h"
#include "net/loop/process.h"
#include "net/loop/sock.h"
#include "net/tls/pki.h"
#include "node/registry/identity.h"
#include "node/registry/registration.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- the script ---- */

struct step {
    const char *request; /* "GET /api/v1/nodes/n" */
    /* Texts of the body, in which ' stands for ". One that begins with ! is not in it. */
    const char *has[4];
    int status;
    const char *answer; /* NULL: the body that was sent. */
};

static struct loop *loop;
static struct http_server *server;
static struct api_client *client;
static char url[64];
static const struct step *script;
static size_t n_steps, at;
static bool over;

static char *quoted(const char *text)
{
    char *s = xstrdup(text);
    for (char *p = s; *p; p++) {
        *p = *p == '\'' ? '"' : *p;
    }
    return s;
}

static void serve(void *ctx, struct http_exchange *x)
{
    size_t size;
    const char *body = http_body(x, &size);
    CLEANUP_FREE char *request = xasprintf("%s %s", http_method(x), http_path(x));
    CLEANUP_FREE char *sent = xstrndup(body ? body : "", size);
    if (at == n_steps) {
        fail_msg("no more was expected: %s %s", request, sent);
    }
    const struct step *s = &script[at++];
    if (!streq(request, s->request)) {
        fail_msg("step %zu: %s, expected %s", at, request, s->request);
    }
    for (size_t i = 0; i < ARRAY_SIZE(s->has) && s->has[i]; i++) {
        bool absent = s->has[i][0] == '!';
        CLEANUP_FREE char *text = quoted(s->has[i] + absent);
        if (!strstr(sent, text) != absent) {
            fail_msg("step %zu: %s: %s", at, s->has[i], sent);
        }
    }
    over = at == n_steps;
    CLEANUP_FREE char *answer = s->answer ? quoted(s->answer) : xstrdup(sent);
    http_respond(x, s->status, "application/json", answer, strlen(answer));
}

static void begin(const struct step *steps, size_t n)
{
    script = steps;
    n_steps = n;
    at = 0;
    over = false;
}

/* Until all of the script has come, and a moment more: nothing else comes. */
static void play(void)
{
    bool never = false;
    if (loop_run_until(loop, &over, 10000) < 0) {
        fail_msg("step %zu does not come: %s", at + 1, script[at].request);
    }
    loop_run_until(loop, &never, 20);
    assert_int_equal(at, n_steps);
}

static int set_up(void **state)
{
    struct http_limits limits = {.max_head = 8192, .max_body = 1 << 20, .max_conns = 16};
    struct err e = {0};
    int fd;
    log_set_levels("error", NULL);
    loop = loop_new();
    server = http_server_new(loop, &limits, serve, NULL);
    assert_int_equal(sock_listen_tcp("127.0.0.1:0", &fd, &e), 0);
    snprintf(url, sizeof url, "http://127.0.0.1:%d", sock_local_port(fd));
    assert_int_equal(http_server_add_listener(server, fd, &e), 0);
    assert_int_equal(api_client_new(loop, url, "test", &client, &e), 0);
    return 0;
}

static int tear_down(void **state)
{
    api_client_free(client);
    http_server_free(server);
    loop_free(loop);
    return 0;
}

/* ---- the Node ---- */

#define NODE "/api/v1/nodes/n1"
#define BARE "{'kind':'Node','metadata':{'name':'n1'}}"
#define REFUSAL(reason) "{'kind':'Status','reason':'" reason "','message':'refused'}"

static unsigned registered;

static void on_registered(void *ctx)
{
    registered++;
}

static struct registration *begin_node(const struct step *steps, size_t n)
{
    struct registration_config c = {
        .loop = loop, .client = client, .node_name = "n1", .node_ip = 0xc0a80001};
    registered = 0;
    begin(steps, n);
    return registration_new(&c, on_registered, NULL);
}

#define PLAY_NODE(steps)                                             \
    struct registration *r = begin_node((steps), ARRAY_SIZE(steps)); \
    play();                                                          \
    assert_int_equal(registered, 1);                                 \
    assert_true(registration_is_current(r))

#define NEXT(steps)                    \
    begin((steps), ARRAY_SIZE(steps)); \
    play();                            \
    assert_int_equal(registered, 1);   \
    assert_true(registration_is_current(r))

/* What these files say, in place of this machine's. */
static const char *product_uuid;

int open(const char *path, int flags, ...)
{
    mode_t mode = 0;
    if (flags & O_CREAT) {
        va_list ap;
        va_start(ap, flags);
        mode = va_arg(ap, mode_t);
        va_end(ap);
    }
    if (product_uuid && streq(path, "/sys/class/dmi/id/product_uuid")) {
        path = product_uuid;
    }
    return (int) syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

static void a_new_node_is_made_and_its_status_written(void **state)
{
    static const struct step steps[] = {
        {"GET " NODE, {NULL}, 404, REFUSAL("NotFound")},
        {"POST /api/v1/nodes",
         {"'name':'n1'", "'systemUUID':'the-uuid'", "'kubernetes.io/hostname':'n1'",
          "'machineID':'"},
         201,
         BARE},
        {"PUT " NODE "/status",
         {"'address':'192.168.0.1'", "'type':'Ready','status':'False'"},
         200,
         NULL},
    };
    char path[] = "/tmp/tenet-uuid-XXXXXX";
    int fd = mkstemp(path);
    assert_int_equal(write(fd, "the-uuid\n", 9), 9);
    close(fd);
    product_uuid = path;
    PLAY_NODE(steps);
    product_uuid = NULL;
    unlink(path);
    registration_free(r);
}

static void a_server_that_keeps_the_status_of_a_new_node_is_not_asked_twice(void **state)
{
    static const struct step steps[] = {
        {"GET " NODE, {NULL}, 404, REFUSAL("NotFound")},
        {"POST /api/v1/nodes", {"'address':'192.168.0.1'"}, 201, NULL},
    };
    PLAY_NODE(steps);
    registration_free(r);
}

static void a_node_that_is_right_is_left_alone_and_what_changes_is_written(void **state)
{
    static const struct step steps[] = {
        {"GET " NODE, {NULL}, 200, BARE},
        {"PUT " NODE "/status", {"'NetworkUnavailable','status':'True'"}, 200, NULL},
    };
    static const struct step ready[] = {
        {"GET " NODE, {NULL}, 200, BARE},
        {"PUT " NODE "/status",
         {"'type':'Ready','status':'True'", "'NetworkUnavailable','status':'False'",
          "'reason':'Up'"},
         200,
         NULL},
    };
    PLAY_NODE(steps);
    registration_set_ready(r, true, "Up", "it works");
    assert_false(registration_is_current(r));
    NEXT(ready);
    registration_set_ready(r, true, "Up", "it works"); /* No news. */
    assert_true(registration_is_current(r));
    registration_free(r);
}

static void a_node_that_somebody_else_wrote_meanwhile_is_read_again(void **state)
{
    static const struct step steps[] = {
        {"GET " NODE, {NULL}, 404, REFUSAL("NotFound")},
        {"POST /api/v1/nodes", {NULL}, 409, REFUSAL("AlreadyExists")},
        {"GET " NODE, {NULL}, 200, BARE},
        {"PUT " NODE "/status", {NULL}, 409, REFUSAL("Conflict")},
        {"GET " NODE, {NULL}, 200, BARE},
        {"PUT " NODE "/status", {NULL}, 500, REFUSAL("InternalError")},
        {"GET " NODE, {NULL}, 403, REFUSAL("Forbidden")},
        {"GET " NODE, {NULL}, 200, BARE},
        {"PUT " NODE "/status", {NULL}, 200, NULL},
    };
    PLAY_NODE(steps);
    registration_free(r);
}

static void further_addresses_are_given_up_when_they_are_refused(void **state)
{
    static const struct step steps[] = {
        {"GET " NODE, {NULL}, 200, BARE},
        {"PUT " NODE "/status", {"'address':'192.168.0.7'"}, 422, REFUSAL("Invalid")},
        {"GET " NODE, {NULL}, 200, BARE},
        {"PUT " NODE "/status", {"'address':'192.168.0.1'", "!192.168.0.7"}, 200, NULL},
    };
    static const struct step other[] = {
        {"GET " NODE, {NULL}, 200, BARE},
        {"PUT " NODE "/status", {"'address':'192.168.0.8'"}, 200, NULL},
    };
    struct sdn_addresses a = {.ip = {0xc0a80007}, .n = 1};
    struct registration *r = begin_node(steps, ARRAY_SIZE(steps));
    registration_set_addresses(r, &a);
    play();
    assert_int_equal(registered, 1);
    registration_set_addresses(r, &a); /* The same: no news. */
    assert_true(registration_is_current(r));
    a.ip[0] = 0xc0a80008;
    registration_set_addresses(r, &a);
    NEXT(other);
    registration_free(r);
}

static void host_ports_are_written_before_the_status(void **state)
{
    static const struct step steps[] = {
        {"GET " NODE, {NULL}, 200, BARE},
        {"PUT " NODE, {"tcp:80:80"}, 200, NULL},
        {"GET " NODE,
         {NULL},
         200,
         "{'kind':'Node','metadata':{'name':'n1','annotations':{'" SDN_HOST_PORTS
         "':'tcp:80:80'}}}"},
        {"PUT " NODE "/status", {"'address':'192.168.0.1'"}, 200, NULL},
    };
    static const struct step none[] = {
        {"GET " NODE,
         {NULL},
         200,
         "{'kind':'Node','metadata':{'name':'n1','annotations':{'" SDN_HOST_PORTS
         "':'tcp:80:80'}}}"},
        {"PUT " NODE, {"!tcp:80:80"}, 200, NULL},
        {"GET " NODE, {NULL}, 200, BARE},
        {"PUT " NODE "/status", {NULL}, 200, NULL},
    };
    struct registration *r = begin_node(steps, ARRAY_SIZE(steps));
    registration_set_host_ports(r, "tcp:80:80");
    play();
    assert_int_equal(registered, 1);
    registration_set_host_ports(r, "tcp:80:80");
    assert_true(registration_is_current(r));
    registration_set_host_ports(r, NULL);
    NEXT(none);
    registration_free(r);
}

static void host_ports_that_may_not_be_written_do_not_keep_the_status_away(void **state)
{
    static const struct step steps[] = {
        {"GET " NODE, {NULL}, 200, BARE},
        {"PUT " NODE, {"tcp:80:80"}, 403, REFUSAL("Forbidden")},
        {"GET " NODE, {NULL}, 200, BARE},
        {"PUT " NODE "/status", {NULL}, 200, NULL},
    };
    static const struct step others[] = {
        {"GET " NODE, {NULL}, 200, BARE},
        {"PUT " NODE, {"tcp:81:81"}, 409, REFUSAL("Conflict")},
        {"GET " NODE, {NULL}, 200, BARE},
        {"PUT " NODE, {"tcp:81:81"}, 200, NULL},
        {"GET " NODE,
         {NULL},
         200,
         "{'kind':'Node','metadata':{'name':'n1','annotations':{'" SDN_HOST_PORTS
         "':'tcp:81:81'}}}"},
        {"PUT " NODE "/status", {NULL}, 200, NULL},
    };
    struct registration *r = begin_node(steps, ARRAY_SIZE(steps));
    registration_set_host_ports(r, "tcp:80:80");
    play();
    registration_set_host_ports(r, "tcp:81:81"); /* Perhaps it may by now. */
    NEXT(others);
    registration_free(r);
}

static void a_node_that_was_deleted_is_not_made_again(void **state)
{
    static const struct step steps[] = {
        {"GET " NODE, {NULL}, 200, BARE},
        {"PUT " NODE "/status", {NULL}, 200, NULL},
    };
    static const struct step gone[] = {{"GET " NODE, {NULL}, 404, REFUSAL("NotFound")}};
    PLAY_NODE(steps);
    registration_set_ready(r, true, "Up", "it works");
    NEXT(gone);
    registration_set_ready(r, false, "Down", "it does not");
    bool never = false;
    loop_run_until(loop, &never, 20);
    assert_int_equal(at, n_steps);
    registration_free(r);
}

/* ---- the certificate ---- */

#define CSRS "/apis/certificates.k8s.io/v1/certificatesigningrequests"

static char *issue(int64_t from, int64_t until)
{
    int64_t now = time_wall_ms();
    struct pki_ca *ca = pki_ca_new(now - 3600000, now + 3600000);
    struct pki_request q = {.cn = "system:node:n1", .from_ms = from, .until_ms = until};
    struct pki_pair p;
    struct err e = {0};
    assert_int_equal(pki_issue(ca, &q, &p, &e), 0);
    char *cert = xstrdup(p.cert);
    pki_pair_done(&p);
    pki_ca_free(ca);
    return cert;
}

static void a_node_without_a_certificate_asks_until_it_has_one(void **state)
{
    char dir[] = "/tmp/tenet-identity-XXXXXX";
    assert_non_null(mkdtemp(dir));
    CLEANUP_FREE char *file = xasprintf("%s/node.kubeconfig", dir);
    CLEANUP_FREE char *bootstrap = xasprintf("%s/bootstrap.kubeconfig", dir);
    struct identity_config c = {
        .loop = loop, .node_name = "n1", .kubeconfig = file, .bootstrap = bootstrap};
    struct err e = {0};
    int64_t now = time_wall_ms();
    begin(NULL, 0);
    assert_int_equal(identity_ensure(&c, &e), -ENOENT);
    assert_true(str_has_prefix(e.text, "bootstrapKubeConfig: "));

    struct kubeconfig w = {.server = url, .token = (char *) "abcdef.0123456789abcdef"};
    assert_int_equal(kubeconfig_write(bootstrap, "bootstrap", &w, &e), 0);
    CLEANUP_FREE char *cert = issue(now - 1000, now + 3600000);
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    base64_encode(cert, strlen(cert), &b);
    CLEANUP_FREE char *issued =
        xasprintf("{'metadata':{'name':'csr-2'},'status':{'certificate':'%s'}}", strbuf_cstr(&b));
    const struct step steps[] = {
        {"POST " CSRS,
         {"'signerName':'kubernetes.io/kube-apiserver-client-kubelet'", "'digital signature'",
          "'client auth'", "'generateName':'node-csr-'"},
         201,
         "{'metadata':{'name':'csr-1'}}"},
        {"GET " CSRS "/csr-1", {NULL}, 200, "{'metadata':{'name':'csr-1'}}"},
        {"GET " CSRS "/csr-1",
         {NULL},
         200,
         "{'status':{'conditions':[{'type':'Denied','message':'no'}]}}"},
        {"POST " CSRS, {NULL}, 201, "{'metadata':{'name':'csr-2'}}"},
        {"GET " CSRS "/csr-2", {NULL}, 200, issued},
    };
    begin(steps, ARRAY_SIZE(steps));
    if (identity_ensure(&c, &e) < 0) {
        fail_msg("%s", e.text);
    }
    assert_int_equal(at, n_steps);
    __attribute__((cleanup(kubeconfig_done))) struct kubeconfig k = {0};
    struct stat st;
    assert_int_equal(kubeconfig_load(file, &k, &e), 0);
    assert_string_equal(k.cert, cert);
    assert_string_equal(k.server, url);
    assert_non_null(k.key);
    assert_null(k.token);
    assert_int_equal(stat(file, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    /* With a valid one nothing is asked. */
    begin(NULL, 0);
    assert_int_equal(identity_ensure(&c, &e), 0);
    dir_remove(dir, NULL);
}

static void a_certificate_that_has_ended_or_is_not_valid_yet_is_replaced(void **state)
{
    static const int64_t times[][2] = {{-7200000, -1000}, {60000, 3600000}};
    for (size_t i = 0; i < ARRAY_SIZE(times); i++) {
        char dir[] = "/tmp/tenet-identity-XXXXXX";
        assert_non_null(mkdtemp(dir));
        CLEANUP_FREE char *file = xasprintf("%s/node.kubeconfig", dir);
        CLEANUP_FREE char *bootstrap = xasprintf("%s/bootstrap.kubeconfig", dir);
        struct identity_config c = {
            .loop = loop, .node_name = "n1", .kubeconfig = file, .bootstrap = bootstrap};
        struct err e = {0};
        int64_t now = time_wall_ms();
        CLEANUP_FREE char *old = issue(now + times[i][0], now + times[i][1]);
        CLEANUP_FREE char *cert = issue(now - 1000, now + 3600000);
        struct kubeconfig w = {.server = url, .token = (char *) "abcdef.0123456789abcdef"};
        struct kubeconfig had = {.server = url, .cert = old, .key = (char *) "k"};
        assert_int_equal(kubeconfig_write(bootstrap, "bootstrap", &w, &e), 0);
        assert_int_equal(kubeconfig_write(file, "n1", &had, &e), 0);
        CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
        base64_encode(cert, strlen(cert), &b);
        CLEANUP_FREE char *issued = xasprintf("{'status':{'certificate':'%s'}}", strbuf_cstr(&b));
        const struct step steps[] = {
            {"POST " CSRS, {NULL}, 201, "{'metadata':{'name':'csr-1'}}"},
            {"GET " CSRS "/csr-1", {NULL}, 200, issued},
        };
        begin(steps, ARRAY_SIZE(steps));
        assert_int_equal(identity_ensure(&c, &e), 0);
        assert_int_equal(at, n_steps);
        dir_remove(dir, NULL);
    }
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_new_node_is_made_and_its_status_written),
        T(a_server_that_keeps_the_status_of_a_new_node_is_not_asked_twice),
        T(a_node_that_is_right_is_left_alone_and_what_changes_is_written),
        T(a_node_that_somebody_else_wrote_meanwhile_is_read_again),
        T(further_addresses_are_given_up_when_they_are_refused),
        T(host_ports_are_written_before_the_status),
        T(host_ports_that_may_not_be_written_do_not_keep_the_status_away),
        T(a_node_that_was_deleted_is_not_made_again),
        T(a_node_without_a_certificate_asks_until_it_has_one),
        T(a_certificate_that_has_ended_or_is_not_valid_yet_is_replaced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
