/* SPDX-License-Identifier: Apache-2.0 */
/* The kinds of providers that take a name and a password, on a loop. */
#include "identity/provider.h"

#include "base/mem.h"
#include "identity/pool.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#define LINE_OF(user) user ":{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=\n" /* secret */
#define WAIT_MS 30000

struct answer {
    bool done;
    enum identity_outcome outcome;
    char *user;
};

static void answered(void *ctx, enum identity_outcome outcome, struct identity *id,
                     const struct err *why)
{
    struct answer *a = ctx;
    a->done = true;
    a->outcome = outcome;
    a->user = outcome == IDENTITY_PROVED ? TAKE(id->user) : NULL;
    assert_true(outcome == IDENTITY_PROVED || why->text[0]);
}

static struct identity_provider *open_kind(struct loop *l, const char *kind, const char *file)
{
    CLEANUP(json_free) struct json *config = json_object();
    struct identity_provider *p = NULL;
    struct err e = {0};
    json_set_string(config, "kind", kind);
    json_set_string(config, "file", file);
    assert_int_equal(identity_kind_find(kind)->check(config, &e), 0);
    assert_int_equal(identity_kind_find(kind)->open(l, config, &p, &e), 0);
    return p;
}

static enum identity_outcome ask(struct loop *l, struct identity_provider *p, const char *user,
                                 const char *password, const char *expected)
{
    struct answer a = {0};
    (void) p->kind->password(p, user, password, answered, &a);
    assert_false(a.done);
    assert_int_equal(loop_run_until(l, &a.done, WAIT_MS), 0);
    assert_true(streq_null(a.user, expected));
    free(a.user);
    return a.outcome;
}

static void allow_all_admits_every_name_without_blanks_around_it(void **state)
{
    CLEANUP(loop_free) struct loop *l = loop_new();
    struct identity_provider *p = open_kind(l, "AllowAllPasswordIdentityProvider", NULL);
    assert_int_equal(ask(l, p, " bob ", "x", "bob"), IDENTITY_PROVED);
    assert_int_equal(ask(l, p, "   ", "x", NULL), IDENTITY_REFUSED);
    assert_int_equal(ask(l, p, "bob", "", NULL), IDENTITY_REFUSED);
    p->kind->close(p);
}

static void deny_all_admits_nobody(void **state)
{
    CLEANUP(loop_free) struct loop *l = loop_new();
    struct identity_provider *p = open_kind(l, "DenyAllPasswordIdentityProvider", NULL);
    assert_int_equal(ask(l, p, "bob", "x", NULL), IDENTITY_REFUSED);
    p->kind->close(p);
}

static void write_file(const char *path, const char *text)
{
    CLEANUP_FREE char *next = xasprintf("%s.new", path);
    FILE *f = fopen(next, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(rename(next, path), 0);
}

static void a_changed_file_is_read_again_and_a_wrong_one_is_not(void **state)
{
    CLEANUP(loop_free) struct loop *l = loop_new();
    char dir[] = "/tmp/tenet-htpasswd-XXXXXX";
    assert_non_null(mkdtemp(dir));
    CLEANUP_FREE char *path = xasprintf("%s/users", dir);
    write_file(path, LINE_OF("bob"));
    struct identity_provider *p = open_kind(l, "HTPasswdPasswordIdentityProvider", path);
    assert_int_equal(ask(l, p, "bob", "secret", "bob"), IDENTITY_PROVED);
    assert_int_equal(ask(l, p, "bob", "wrong", NULL), IDENTITY_REFUSED);
    assert_int_equal(ask(l, p, "eve", "secret", NULL), IDENTITY_REFUSED);
    write_file(path, LINE_OF("eve") LINE_OF("ann"));
    assert_int_equal(ask(l, p, "eve", "secret", "eve"), IDENTITY_PROVED);
    assert_int_equal(ask(l, p, "bob", "secret", NULL), IDENTITY_REFUSED);
    write_file(path, LINE_OF("bob") "oops\n");
    assert_int_equal(ask(l, p, "eve", "secret", "eve"), IDENTITY_PROVED);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(ask(l, p, "eve", "secret", "eve"), IDENTITY_PROVED);
    p->kind->close(p);
    assert_int_equal(rmdir(dir), 0);
}

static void a_missing_file_is_an_error_that_names_it(void **state)
{
    CLEANUP(loop_free) struct loop *l = loop_new();
    CLEANUP(json_free) struct json *config = json_object();
    const struct identity_kind *k = identity_kind_find("HTPasswdPasswordIdentityProvider");
    struct identity_provider *p = NULL;
    struct err e = {0};
    assert_int_equal(k->check(config, &e), -EINVAL);
    assert_string_equal(e.text, "file: must name a file of htpasswd");
    json_set_string(config, "file", "/nonexistent/users");
    json_set_string(config, "files", "x");
    assert_int_equal(k->check(config, &e), -EINVAL);
    assert_string_equal(e.text, "files: unknown key");
    assert_int_equal(k->open(l, config, &p, &e), -ENOENT);
    assert_string_equal(e.text, "file: /nonexistent/users: No such file or directory");
}

static void a_cancelled_attempt_is_silent(void **state)
{
    CLEANUP(loop_free) struct loop *l = loop_new();
    struct identity_provider *p = open_kind(l, "AllowAllPasswordIdentityProvider", NULL);
    struct answer a = {0};
    identity_attempt_cancel(p->kind->password(p, "bob", "x", answered, &a));
    assert_int_equal(ask(l, p, "ann", "x", "ann"), IDENTITY_PROVED);
    assert_false(a.done);
    p->kind->close(p);
}

/* ---- the pool ---- */

struct work {
    unsigned *done, *dropped;
    bool *all;
    int hold; /* A job waits until a byte comes; -1: it does not. */
};

static void do_work(void *ctx)
{
    struct work *w = ctx;
    char c;
    if (w->hold >= 0) {
        assert_int_equal(read(w->hold, &c, 1), 1);
    }
}

static void work_done(void *ctx)
{
    struct work *w = ctx;
    *w->all = ++*w->done == 3;
    free(w);
}

static void work_dropped(void *ctx)
{
    struct work *w = ctx;
    ++*w->dropped;
    free(w);
}

static void the_pool_refuses_what_its_queue_does_not_hold(void **state)
{
    static const struct identity_job_ops ops = {do_work, work_done, work_dropped};
    CLEANUP(loop_free) struct loop *l = loop_new();
    unsigned done = 0, dropped = 0;
    bool all = false;
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    struct identity_pool *p = identity_pool_new(l, 1, 3);
    for (unsigned i = 0; i < 3; i++) {
        struct work *w = NEW(struct work);
        *w = (struct work){&done, &dropped, &all, fds[0]};
        assert_int_equal(identity_pool_run(p, &ops, w), 0);
    }
    assert_int_equal(identity_pool_run(p, &ops, NULL), -EBUSY);
    assert_int_equal(write(fds[1], "abc", 3), 3);
    assert_int_equal(loop_run_until(l, &all, WAIT_MS), 0);
    assert_int_equal(done, 3);
    assert_int_equal(dropped, 0);
    identity_pool_free(p);
    close(fds[0]);
    close(fds[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(allow_all_admits_every_name_without_blanks_around_it),
        cmocka_unit_test(deny_all_admits_nobody),
        cmocka_unit_test(a_changed_file_is_read_again_and_a_wrong_one_is_not),
        cmocka_unit_test(a_missing_file_is_an_error_that_names_it),
        cmocka_unit_test(a_cancelled_attempt_is_silent),
        cmocka_unit_test(the_pool_refuses_what_its_queue_does_not_hold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
