/* SPDX-License-Identifier: Apache-2.0 */
/* Sources of manifests: a directory, a file, and a server of the test. */
#include "kubelet/sources/url_source.h"
#include "net/http/http.h"
#include "net/loop/process.h"
#include "net/loop/sock.h"

#include "json_text.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define HOUR_MS 3600000 /* What is seen before is seen by inotify. */
#define WAIT_MS 10000

struct world {
    struct loop *loop;
    char dir[64];
    struct strbuf seen; /* "NAME=TEXT " of the last reading. */
    unsigned readings;
    const char *wanted;
    bool done;
    /* The server. */
    int status;
    const char *body;
    unsigned requests;
    char header[64];
};

static void take(void *ctx, const struct manifest_text *v, size_t n)
{
    struct world *w = ctx;
    strbuf_reset(&w->seen);
    w->readings++;
    for (size_t i = 0; i < n; i++) {
        const char *slash = strrchr(v[i].path, '/');
        strbuf_addf(&w->seen, "%s=%s ", slash + 1, v[i].error ? "ERROR" : v[i].text);
    }
    w->done = w->wanted && streq(strbuf_cstr(&w->seen), w->wanted);
}

static int set_up(void **state)
{
    struct world *w = NEW(struct world);
    w->loop = loop_new();
    w->seen = STRBUF_INIT;
    strcpy(w->dir, "/tmp/tenet-sources-XXXXXX");
    assert_non_null(mkdtemp(w->dir));
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;
    assert_int_equal(dir_remove(w->dir, NULL), 0);
    strbuf_done(&w->seen);
    loop_free(w->loop);
    free(w);
    return 0;
}

/* Runs until the last reading is 'want'. */
static void expect(struct world *w, const char *want)
{
    w->wanted = want;
    w->done = w->readings && streq(strbuf_cstr(&w->seen), want);
    if (loop_run_until(w->loop, &w->done, WAIT_MS) < 0) {
        fail_msg("\"%s\", not \"%s\"", strbuf_cstr(&w->seen), want);
    }
}

static void put(const struct world *w, const char *name, const char *text)
{
    CLEANUP_FREE char *path = xasprintf("%s/%s", w->dir, name);
    CLEANUP(fd_close) int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

static void drop(const struct world *w, const char *name)
{
    CLEANUP_FREE char *path = xasprintf("%s/%s", w->dir, name);
    assert_int_equal(unlink(path), 0);
}

static void changes_of_a_directory_are_seen(void **state)
{
    struct world *w = *state;
    CLEANUP_FREE char *folder = xasprintf("%s/folder", w->dir);
    CLEANUP_FREE char *pipe = xasprintf("%s/pipe", w->dir);
    CLEANUP_FREE char *link = xasprintf("%s/link", w->dir);
    put(w, "b", "2");
    put(w, ".hidden", "0");
    assert_int_equal(mkdir(folder, 0700), 0);
    struct file_source *s = file_source_new(w->loop, w->dir, HOUR_MS, take, w);
    expect(w, "b=2 ");
    put(w, "a", "1");
    expect(w, "a=1 b=2 ");
    put(w, "b", "3");
    expect(w, "a=1 b=3 ");
    drop(w, "a");
    expect(w, "b=3 ");
    /* A pipe would block the reader: it is no manifest, and the others are read. */
    assert_int_equal(mkfifo(pipe, 0600), 0);
    expect(w, "b=3 pipe=ERROR ");
    drop(w, "pipe");
    assert_int_equal(symlink("b", link), 0);
    expect(w, "b=3 link=3 ");
    drop(w, "b");
    expect(w, "");
    file_source_free(s);
}

static void a_file_that_is_too_large_is_an_error(void **state)
{
    struct world *w = *state;
    CLEANUP_FREE char *path = xasprintf("%s/big", w->dir);
    put(w, "big", "x");
    assert_int_equal(truncate(path, MANIFEST_MAX_SIZE + 1), 0);
    put(w, "small", "1");
    struct file_source *s = file_source_new(w->loop, w->dir, HOUR_MS, take, w);
    expect(w, "big=ERROR small=1 ");
    file_source_free(s);
}

static void a_file_is_followed_when_it_is_replaced(void **state)
{
    struct world *w = *state;
    CLEANUP_FREE char *path = xasprintf("%s/one", w->dir), *new = xasprintf("%s/new", w->dir);
    put(w, "one", "1");
    put(w, "other", "0");
    struct file_source *s = file_source_new(w->loop, path, HOUR_MS, take, w);
    expect(w, "one=1 ");
    put(w, "new", "2");
    assert_int_equal(rename(new, path), 0);
    expect(w, "one=2 ");
    file_source_free(s);
}

static void a_directory_that_is_not_there_may_come(void **state)
{
    struct world *w = *state;
    CLEANUP_FREE char *path = xasprintf("%s/later/", w->dir);
    CLEANUP_FREE char *moved = xasprintf("%s/moved", w->dir);
    struct file_source *s = file_source_new(w->loop, path, 50, take, w);
    expect(w, "");
    assert_int_equal(mkdir(path, 0700), 0);
    put(w, "later/a", "1");
    expect(w, "a=1 ");
    /* Another directory of the name is another one to watch. */
    path[strlen(path) - 1] = '\0';
    assert_int_equal(rename(path, moved), 0);
    expect(w, "");
    assert_int_equal(mkdir(path, 0700), 0);
    put(w, "later/b", "2");
    expect(w, "b=2 ");
    file_source_free(s);
}

static void what_cannot_be_read_changes_nothing(void **state)
{
    struct world *w = *state;
    for (size_t i = 0; i <= MANIFEST_MAX_FILES; i++) {
        CLEANUP_FREE char *name = xasprintf("%zu", i);
        put(w, name, "");
    }
    struct file_source *s = file_source_new(w->loop, w->dir, 20, take, w);
    bool never = false;
    assert_int_equal(loop_run_until(w->loop, &never, 100), -ETIMEDOUT);
    assert_int_equal(w->readings, 0);
    drop(w, "0");
    while (!w->readings) {
        (void) loop_run_until(w->loop, &never, 20);
    }
    file_source_free(s);
}

/* ---- HTTP ---- */

static void respond(void *ctx, struct http_exchange *x)
{
    struct world *w = ctx;
    const char *header = http_header(x, "X-Node"), *query = http_query(x, "a");
    w->requests++;
    snprintf(w->header, sizeof w->header, "%s %s %s", header ? header : "", http_path(x),
             query ? query : "");
    http_respond(x, w->status, "application/yaml", w->body, strlen(w->body));
}

/* Runs until 'n' more requests were answered. */
static void let_ask(struct world *w, unsigned n)
{
    bool never = false;
    for (unsigned end = w->requests + n; w->requests < end;) {
        (void) loop_run_until(w->loop, &never, 10);
    }
}

static void a_server_is_asked_again_and_again(void **state)
{
    struct world *w = *state;
    char header[] = "X-Node: n1", *headers[] = {header, NULL};
    int fd = -1;
    w->status = 200;
    w->body = "1";
    assert_int_equal(sock_listen_tcp("127.0.0.1:0", &fd, NULL), 0);
    int port = sock_local_port(fd);
    struct http_server *server = http_server_new(w->loop, NULL, respond, w);
    assert_int_equal(http_server_add_listener(server, fd, NULL), 0);
    CLEANUP_FREE char *url = xasprintf("http://127.0.0.1:%d/pods/n1?a=secret#x", port);
    CLEANUP_FREE char *address = xasprintf("127.0.0.1:%d", port);
    struct url_source *s = url_source_new(w->loop, url, headers, 10, take, w);
    expect(w, "n1=1 ");
    assert_string_equal(w->header, "n1 /pods/n1 secret");
    w->body = "2";
    expect(w, "n1=2 ");
    /* Neither a refusal nor silence is an answer. */
    w->status = 404;
    w->body = "3";
    let_ask(w, 3);
    assert_string_equal(strbuf_cstr(&w->seen), "n1=2 ");
    http_server_free(server);
    bool never = false;
    (void) loop_run_until(w->loop, &never, 100);
    assert_string_equal(strbuf_cstr(&w->seen), "n1=2 ");
    assert_int_equal(sock_listen_tcp(address, &fd, NULL), 0);
    server = http_server_new(w->loop, NULL, respond, w);
    assert_int_equal(http_server_add_listener(server, fd, NULL), 0);
    w->status = 200;
    w->body = "4";
    expect(w, "n1=4 ");
    /* An answer that is too large is none. */
    char *big = xmalloc(MANIFEST_MAX_SIZE + 2);
    memset(big, 'x', MANIFEST_MAX_SIZE + 1);
    big[MANIFEST_MAX_SIZE + 1] = '\0';
    w->body = big;
    let_ask(w, 2);
    assert_string_equal(strbuf_cstr(&w->seen), "n1=4 ");
    url_source_free(s);
    http_server_free(server);
    free(big);
}

static void a_source_ends_while_it_looks_its_server_up(void **state)
{
    struct world *w = *state;
    struct url_source *s = url_source_new(w->loop, "http://localhost:1/", NULL, HOUR_MS, take, w);
    bool never = false;
    (void) loop_run_until(w->loop, &never, 1);
    url_source_free(s);
    (void) loop_run_until(w->loop, &never, 50);
    assert_int_equal(w->readings, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(changes_of_a_directory_are_seen, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_file_that_is_too_large_is_an_error, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_file_is_followed_when_it_is_replaced, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_directory_that_is_not_there_may_come, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_cannot_be_read_changes_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_server_is_asked_again_and_again, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_source_ends_while_it_looks_its_server_up, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
