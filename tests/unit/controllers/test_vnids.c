/* SPDX-License-Identifier: Apache-2.0 */
/* The VNID controller when the API server does not take its writes. */
#include "controllers/network/vnids.h"

#include "api/kinds/netnamespace.h"
#include "front.h"
#include "json_text.h"
#include "rig.h"

#define SPACES "/api/v1/namespaces"
#define NETS "/apis/network.openshift.io/v1/netnamespaces"

static struct harness *h;
static struct front *front;
static struct api_client *client;
static struct rig_controller *vnids;

static int set_up(void **state)
{
    static const struct vnids_config cfg = {.pause_ms = 20, .give_up_ms = 500};
    h = harness_new(NULL, NULL);
    front = front_new(h);
    client = front_client(front);
    vnids = rig_start(h, client, &vnids_controller, &cfg);
    return 0;
}

static int tear_down(void **state)
{
    rig_stop(vnids);
    api_client_free(client);
    front_free(front);
    harness_free(h);
    return 0;
}

static uint32_t netid(const char *project)
{
    CLEANUP_FREE char *path = xasprintf(NETS "/%s", project);
    CLEANUP_ANSWER struct answer a = ask_ok(h, "GET", path, NULL, 200);
    return (uint32_t) json_get_int_or(json_get(a.body, "netid"), 0);
}

/* Makes the project and returns its VNID. */
static uint32_t make_project(const char *name)
{
    CLEANUP_FREE char *path = xasprintf(NETS "/%s", name);
    free(make_namespace(h, name));
    rig_expect(h, path, NULL, "200");
    return netid(name);
}

static void request(const char *project, const char *what)
{
    CLEANUP_FREE char *path = xasprintf(NETS "/%s", project);
    CLEANUP_FREE char *body =
        xasprintf("{\"metadata\":{\"annotations\":{\"" NET_CHANGE "\":\"%s\"}}}", what);
    CLEANUP_ANSWER
    struct answer a = ask_full(h, "PATCH", path, NULL, "application/merge-patch+json", body);
    assert_int_equal(a.status, 200);
}

/* Waits until the change is finished: the annotations are gone. */
static void expect_settled(const char *project)
{
    bool never = false;
    CLEANUP_FREE char *path = xasprintf(NETS "/%s", project);
    for (int i = 0; i < 4000; i++) {
        CLEANUP_ANSWER struct answer a = ask_ok(h, "GET", path, NULL, 200);
        if (!json_count(json_path(a.body, "metadata", "annotations", NULL))) {
            return;
        }
        loop_run_until(h->loop, &never, 5);
    }
    fail_msg("%s still moves", project);
}

static void a_net_namespace_whose_deletion_fails_is_deleted_later(void **state)
{
    (void) make_project("red");
    front_answer(front, "DELETE", NETS "/red", 500, "InternalError", 2);
    rig_uproot(h, "", "namespaces", "red");
    rig_expect(h, NETS "/red", NULL, "404");
    front_expect(front, "DELETE", NETS "/red", 3);
    /* Its number is free again, as is the name. */
    assert_true(make_project("red") > 0);
}

static void one_number_is_taken_for_a_move_however_often_it_is_tried(void **state)
{
    uint32_t a = make_project("a"), b = make_project("b");
    assert_int_equal(b, a + 1);
    request("b", "join:a");
    expect_settled("b");
    assert_int_equal(netid("b"), a);
    /* The steps of a move, and the end of the request. */
    front_expect(front, "PUT", NETS "/b", 4);
    unsigned before = front_asked(front, "PUT", NETS "/b");
    front_answer(front, "PUT", NETS "/b", 500, "InternalError", 3);
    request("b", "isolate");
    expect_settled("b");
    front_expect(front, "PUT", NETS "/b", before + 3 + 4);
    assert_int_equal(netid("b"), b + 1);
    /* One that needs a new number takes no more writes. */
    request("b", "join:a");
    expect_settled("b");
    front_expect(front, "PUT", NETS "/b", before + 11);
    request("b", "isolate");
    expect_settled("b");
    front_expect(front, "PUT", NETS "/b", before + 15);
    assert_int_equal(netid("b"), b + 2);
    assert_int_equal(make_project("c"), b + 3);
}

/* A number that was taken for a request which is withdrawn is not kept for the next one. */
static void a_number_for_a_withdrawn_request_is_given_up(void **state)
{
    static const char annotation[] = "{\"metadata\":{\"annotations\":{\"" NET_CHANGE "\":null}}}";
    uint32_t d = make_project("d"), e = make_project("e");
    request("e", "join:d");
    expect_settled("e");
    assert_int_equal(netid("e"), d);
    unsigned before = front_asked(front, "PUT", NETS "/e");
    front_answer(front, "PUT", NETS "/e", 500, "InternalError", 1000);
    request("e", "isolate");
    bool never = false;
    while (front_asked(front, "PUT", NETS "/e") == before) {
        loop_run_until(h->loop, &never, 5);
    }
    CLEANUP_ANSWER
    struct answer a =
        ask_full(h, "PATCH", NETS "/e", NULL, "application/merge-patch+json", annotation);
    assert_int_equal(a.status, 200);
    expect_settled("e");
    front_forget(front, NETS "/e");
    /* The numbers go up: e + 1 was the one that was not used. */
    assert_int_equal(make_project("f"), e + 2);
    request("e", "isolate");
    expect_settled("e");
    assert_int_equal(netid("e"), e + 3);
}

static void edit_netid(const char *project, uint32_t id)
{
    CLEANUP_FREE char *path = xasprintf(NETS "/%s", project);
    CLEANUP_FREE char *body = xasprintf("{\"netid\":%u}", id);
    CLEANUP_ANSWER
    struct answer a = ask_full(h, "PATCH", path, NULL, "application/merge-patch+json", body);
    assert_int_equal(a.status, 200);
}

/* Waits until the controller has sent 'n' more writes of NETS "/joins". */
static void expect_more_tries(unsigned n)
{
    bool never = false;
    unsigned before = front_asked(front, "PUT", NETS "/joins");
    while (front_asked(front, "PUT", NETS "/joins") < before + n) {
        loop_run_until(h->loop, &never, 5);
    }
}

/* The move of 'joins' cannot be written.  While its target has another id, a project may leave the
 * target's first id: nothing moves there any more. */
static void a_move_that_cannot_be_written_follows_its_target(void **state)
{
    uint32_t first = make_project("target"), last = 900;
    uint32_t goal = make_project("goal");
    (void) make_project("joins");
    (void) make_project("leaves");
    front_answer(front, "PUT", NETS "/joins", 500, "InternalError", 1000);
    request("joins", "join:target");
    expect_more_tries(1);
    edit_netid("target", last);
    expect_more_tries(2);
    edit_netid("leaves", first);
    request("leaves", "join:goal");
    expect_settled("leaves");
    assert_int_equal(netid("leaves"), goal);
    front_forget(front, NETS "/joins");
    expect_settled("joins");
    assert_int_equal(netid("joins"), last);
}

#define T(name) cmocka_unit_test(name)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_net_namespace_whose_deletion_fails_is_deleted_later),
        T(one_number_is_taken_for_a_move_however_often_it_is_tried),
        T(a_number_for_a_withdrawn_request_is_given_up),
        T(a_move_that_cannot_be_written_follows_its_target),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
