/* SPDX-License-Identifier: Apache-2.0 */
/* The dispatch of runtime.h to a back-end, with a double that keeps the calls. */
#include "base/str.h"
#include "runtime/ops.h"

#include <setjmp.h>
#include <stdio.h>

#include <cmocka.h>

struct double_runtime {
    struct runtime_call *call;
    char id[32];
    unsigned cancelled, closed;
};

struct seen {
    int error;
    char text[64];
    unsigned ends, events;
    struct runtime *free_in_end;
};

static void keep_id(void *b, struct runtime_call *c, const char *id)
{
    struct double_runtime *d = b;
    d->call = c;
    snprintf(d->id, sizeof d->id, "%s", id);
}

static void keep_run(void *b, struct runtime_call *c, const struct runtime_sandbox_spec *s,
                     const char *handler)
{
    keep_id(b, c, s->name);
}

static void cancelled(void *b, struct runtime_call *c)
{
    struct double_runtime *d = b;
    assert_ptr_equal(d->call, c);
    d->cancelled++;
}

static void closed(void *b)
{
    ((struct double_runtime *) b)->closed++;
}

static const struct runtime_ops double_ops = {
    .kind = "double",
    .close = closed,
    .cancel = cancelled,
    .run_sandbox = keep_run,
    .stop_sandbox = keep_id,
    .get_container = keep_id,
};

static void on_changed(void *ctx, const char *sandbox_id, const char *container_id)
{
    struct seen *s = ctx;
    assert_string_equal(sandbox_id, "s1");
    assert_null(container_id);
    s->events++;
}

static void on_resync(void *ctx)
{
    ((struct seen *) ctx)->events++;
}

static void on_connection(void *ctx, const char *lost_reason)
{
    ((struct seen *) ctx)->events++;
    assert_string_equal(lost_reason, "killed");
}

static const struct runtime_events events = {on_changed, on_resync, on_connection};

static void on_done(void *ctx, int error, const char *text)
{
    struct seen *s = ctx;
    s->ends++;
    s->error = error;
    snprintf(s->text, sizeof s->text, "%s", text ? text : "");
    runtime_free(s->free_in_end);
}

static void on_id(void *ctx, int error, const char *text, const char *id)
{
    on_done(ctx, error, error ? text : id);
}

static void on_containers(void *ctx, int error, const char *text, const struct runtime_container *c,
                          size_t n)
{
    on_done(ctx, error, error ? text : n ? c->id : "none");
}

static void test_calls(void **state)
{
    struct double_runtime d = {0};
    struct seen s = {0};
    struct runtime *r;
    CLEANUP(loop_free) struct loop *l = loop_new();
    runtime_open_with(l, &double_ops, &d, &events, &s, &r);

    runtime_run_sandbox(r, &(struct runtime_sandbox_spec){.name = "web"}, "", on_id, &s);
    assert_string_equal(d.id, "web");
    assert_int_equal(s.ends, 0);
    runtime_end_id(d.call, "s1");
    assert_int_equal(s.ends, 1);
    assert_int_equal(s.error, 0);
    assert_string_equal(s.text, "s1");

    runtime_get_container(r, "c1", on_containers, &s);
    runtime_end_containers(d.call, &(struct runtime_container){.id = "c1"}, 1);
    assert_string_equal(s.text, "c1");
    runtime_get_container(r, "c2", on_containers, &s);
    runtime_end_error(d.call, -ENOENT, "no such container");
    assert_int_equal(s.error, -ENOENT);
    assert_string_equal(s.text, "no such container");
    assert_int_equal(s.ends, 3);

    struct runtime_call *c = runtime_stop_sandbox(r, "s1", on_done, &s);
    assert_null(runtime_cancel(c));
    assert_int_equal(d.cancelled, 1);
    assert_null(runtime_cancel(NULL));

    runtime_tell_changed(r, "s1", NULL);
    runtime_tell_resync(r);
    runtime_tell_connection(r, "killed");
    assert_int_equal(s.events, 3);

    /* Calls that have not ended are freed without an end. */
    runtime_stop_sandbox(r, "s1", on_done, &s);
    assert_null(runtime_free(r));
    assert_int_equal(d.closed, 1);
    assert_int_equal(s.ends, 3);
}

static void test_freed_in_an_end(void **state)
{
    struct double_runtime d = {0};
    struct seen s = {0};
    CLEANUP(loop_free) struct loop *l = loop_new();
    runtime_open_with(l, &double_ops, &d, &events, &s, &s.free_in_end);
    runtime_stop_sandbox(s.free_in_end, "s1", on_done, &s);
    struct runtime_call *c = d.call;
    runtime_stop_sandbox(s.free_in_end, "s2", on_done, &s);
    runtime_end_done(c);
    assert_int_equal(s.ends, 1);
    assert_int_equal(d.closed, 1);
}

static void test_unknown_kind(void **state)
{
    struct runtime *r = NULL;
    struct err e = {0};
    CLEANUP(loop_free) struct loop *l = loop_new();
    assert_int_equal(runtime_open(l, "docker", "", &events, NULL, &r, &e), -EINVAL);
    assert_non_null(strstr(e.text, "\"docker\" is not a kind of container runtime"));
    assert_null(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_calls),
        cmocka_unit_test(test_freed_in_an_end),
        cmocka_unit_test(test_unknown_kind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
