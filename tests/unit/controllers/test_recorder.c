/* SPDX-License-Identifier: Apache-2.0 */
/* How Events reach the API server: counting repeated ones, trying again, giving up. */
#include "controller/recorder.h"

#include "front.h"
#include "json_text.h"
#include "net/loop/sock.h"
#include "rig.h"

#include <sys/socket.h>
#include <unistd.h>

#define EVENTS "/api/v1/namespaces/default/events"

static struct harness *h;
static struct front *front;
static struct api_client *client;
static struct recorder *recorder;

static int set_up(void **state)
{
    h = harness_new(NULL, NULL);
    front = front_new(h);
    client = front_client(front);
    recorder = recorder_new(h->loop, client, "test");
    recorder_set_delay(recorder, 50);
    return 0;
}

static int tear_down(void **state)
{
    recorder_free(recorder);
    api_client_free(client);
    front_free(front);
    harness_free(h);
    return 0;
}

static struct json *pod(const char *name)
{
    CLEANUP_FREE char *text =
        xasprintf("{'metadata': {'name': '%s', 'namespace': 'default', 'uid': 'u'}}", name);
    return from(text);
}

static void record(const char *name)
{
    CLEANUP(json_free) struct json *o = pod(name);
    recorder_event(recorder, "v1", "Pod", o, EVENT_WARNING, "Why", "because");
}

/* The path of the Event that record(name) makes; owned. */
static char *path_of(const char *name)
{
    CLEANUP(json_free) struct json *o = pod(name);
    CLEANUP(json_free)
    struct json *event =
        recorder_make("v1", "Pod", o, EVENT_WARNING, "Why", "because", "test", 1000);
    return xasprintf(EVENTS "/%s", json_path_string(event, "metadata", "name", NULL));
}

static void expect_idle(void)
{
    bool never = false;
    for (int i = 0; i < 4000 && recorder_waiting(recorder); i++) {
        loop_run_until(h->loop, &never, 5);
    }
    assert_int_equal(recorder_waiting(recorder), 0);
}

static void expect_count(const char *path, int want)
{
    CLEANUP_ANSWER struct answer a = ask_ok(h, "GET", path, NULL, 200);
    assert_int_equal(json_get_int_or(json_get(a.body, "count"), 0), want);
}

static void the_same_event_is_counted(void **state)
{
    CLEANUP_FREE char *path = path_of("same");
    for (int i = 1; i <= 3; i++) {
        record("same");
        assert_int_equal(recorder_waiting(recorder), 1);
        expect_idle();
        expect_count(path, i);
        CLEANUP_ANSWER struct answer a = ask_ok(h, "GET", path, NULL, 200);
        assert_string_equal(at(&a, "reason"), "Why");
        assert_string_equal(at(&a, "involvedObject.name"), "same");
    }
    /* Those that are not sent yet are one request. */
    CLEANUP_FREE char *thrice = path_of("thrice");
    for (int i = 0; i < 3; i++) {
        record("thrice");
    }
    assert_int_equal(recorder_waiting(recorder), 1);
    expect_idle();
    expect_count(thrice, 3);
    record("same");
    record("same");
    expect_idle();
    expect_count(path, 5);
    /* An Event of the past keeps its beginning, and has the end of the new one. */
    CLEANUP_FREE char *old = path_of("old");
    CLEANUP_FREE char *body =
        xasprintf("{'metadata': {'name': '%s'}, 'involvedObject': {'kind': 'Pod', 'name': 'old',"
                  "'namespace': 'default'}, 'count': 7, 'firstTimestamp': '2020-01-01T00:00:00Z',"
                  "'lastTimestamp': '2020-01-01T00:00:00Z'}",
                  old + sizeof EVENTS);
    put_in(h, "POST", EVENTS, body, 201);
    record("old");
    expect_idle();
    expect_count(old, 8);
    CLEANUP_ANSWER struct answer a = ask_ok(h, "GET", old, NULL, 200);
    assert_string_equal(at(&a, "firstTimestamp"), "2020-01-01T00:00:00Z");
    assert_string_not_equal(at(&a, "lastTimestamp"), "2020-01-01T00:00:00Z");
}

/* The same happens again while the first Event is on its way: after the request was sent, and
 * before its answer. */
static void an_event_during_its_own_recording_is_counted(void **state)
{
    CLEANUP_FREE char *path = path_of("twice");
    front_hold(front, "POST", EVENTS);
    record("twice");
    front_wait_held(front);
    record("twice");
    record("twice"); /* In one request with the one before, which was not sent yet. */
    front_release(front);
    expect_idle();
    expect_count(path, 3);
    front_hold(front, "PUT", path);
    record("twice");
    front_wait_held(front);
    record("twice");
    front_release(front);
    expect_idle();
    expect_count(path, 5);
}

static void an_error_that_may_pass_is_tried_five_times(void **state)
{
    static const struct {
        const char *name;
        int code;
        const char *reason;
        unsigned answers; /* Of that code, before the API server gets the request. */
        bool recorded;
    } cases[] = {
        {"unavailable", 503, "ServiceUnavailable", 4, true},
        {"too-long-unavailable", 503, "ServiceUnavailable", 5, false},
        {"conflict", 409, "Conflict", 4, true},
        {"no-namespace", 404, "NotFound", 4, true},
        {"never-a-namespace", 404, "NotFound", 5, false},
        {"forbidden", 403, "Forbidden", 1, false},
        {"invalid", 422, "Invalid", 1, false},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *path = path_of(cases[i].name);
        unsigned before = front_asked(front, "POST", EVENTS);
        front_answer(front, "POST", EVENTS, cases[i].code, cases[i].reason, cases[i].answers);
        record(cases[i].name);
        expect_idle();
        unsigned tries = front_asked(front, "POST", EVENTS) - before;
        CLEANUP_ANSWER struct answer a = ask(h, "GET", path, NULL);
        if (tries != cases[i].answers + cases[i].recorded ||
            a.status != (cases[i].recorded ? 200 : 404)) {
            fail_msg("%s: %u tries, then %d", cases[i].name, tries, a.status);
        }
    }
}

/* The Event is deleted, or somebody else counts, between the reading and the writing. */
static void a_race_about_an_event_ends_with_one(void **state)
{
    static const struct {
        const char *name, *method;
        int code;
        const char *reason;
    } cases[] = {
        {"gone-at-reading", "GET", 404, "NotFound"},
        {"gone-at-writing", "PUT", 404, "NotFound"},
        {"changed-at-writing", "PUT", 409, "Conflict"},
        {"unavailable-at-reading", "GET", 503, "ServiceUnavailable"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *path = path_of(cases[i].name);
        record(cases[i].name);
        expect_idle();
        front_answer(front, cases[i].method, path, cases[i].code, cases[i].reason, 1);
        record(cases[i].name);
        expect_idle();
        expect_count(path, 2);
        assert_int_equal(front_asked(front, cases[i].method, path), 2);
    }
}

/* Listens in the place of the server, and closes 'n' connections without an answer. */
static void hang_up(struct harness *other, unsigned n)
{
    CLEANUP_FREE char *where = xasprintf("127.0.0.1:%u", other->port);
    bool never = false;
    int fd = -1;
    assert_int_equal(sock_listen_tcp(where, &fd, NULL), 0);
    for (int i = 0; i < 4000 && n; i++) {
        int conn = accept(fd, NULL, NULL);
        if (conn >= 0) {
            close(conn);
            n--;
        }
        loop_run_until(other->loop, &never, 5);
    }
    close(fd);
    assert_int_equal(n, 0);
}

/* What kept the answer away may be what the Event is about: it waits as long as it takes. */
static void an_event_waits_for_a_server_that_is_away(void **state)
{
    struct harness *other = harness_new(NULL, NULL);
    struct api_client *c = rig_client(other);
    struct recorder *r = recorder_new(other->loop, c, "test");
    CLEANUP_FREE char *path = path_of("away");
    CLEANUP(json_free) struct json *o = pod("away");
    harness_stop_listening(other);
    recorder_event(r, "v1", "Pod", o, EVENT_WARNING, "Why", "because");
    hang_up(other, 7);
    assert_int_equal(recorder_waiting(r), 1);
    harness_listen_again(other);
    rig_expect(other, path, NULL, "200");
    recorder_free(r);
    api_client_free(c);
    harness_free(other);
}

static void of_too_many_events_the_first_are_kept(void **state)
{
    struct recorder *r = recorder_new(h->loop, client, "test");
    for (unsigned i = 0; i < 10010; i++) {
        CLEANUP_FREE char *name = xasprintf("n%u", i);
        CLEANUP(json_free) struct json *o = pod(name);
        recorder_event(r, "v1", "Pod", o, EVENT_NORMAL, "Why", "because");
    }
    assert_int_equal(recorder_waiting(r), 10000);
    recorder_free(r);
}

#define T(name) cmocka_unit_test(name)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(the_same_event_is_counted),
        T(an_event_during_its_own_recording_is_counted),
        T(an_error_that_may_pass_is_tried_five_times),
        T(a_race_about_an_event_ends_with_one),
        T(an_event_waits_for_a_server_that_is_away),
        T(of_too_many_events_the_first_are_kept),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
