/* SPDX-License-Identifier: Apache-2.0 */
/* The controller deletes expired bootstrap tokens, and no other Secrets. */
#include "controllers/security/join_tokens.h"

#include "base/base64.h"
#include "base/timeutil.h"
#include "front.h"
#include "json_text.h"
#include "rig.h"

#define SECRETS "/api/v1/namespaces/kube-system/secrets"
#define TYPE "bootstrap.kubernetes.io/token"

static struct harness *h;
static struct api_client *client;
static struct rig_controller *controller;

static int set_up(void **state)
{
    h = harness_new(NULL, NULL);
    client = rig_client(h);
    free(make_namespace(h, "kube-system"));
    controller = rig_start(h, client, &join_tokens_controller, NULL);
    return 0;
}

static int tear_down(void **state)
{
    rig_stop(controller);
    api_client_free(client);
    harness_free(h);
    return 0;
}

/* Creates a Secret that expires in 'left_ms'; with 'text' its expiration is that instead. */
static void make(const char *ns, const char *name, const char *type, int64_t left_ms,
                 const char *text)
{
    char time[TIME_TEXT_SIZE];
    time_format_s(time_wall_ms() + left_ms, time);
    CLEANUP_FREE char *path = xasprintf("/api/v1/namespaces/%s/secrets", ns);
    CLEANUP_FREE char *body =
        xasprintf("{'metadata': {'name': '%s'}, 'type': '%s', 'stringData': {'expiration': '%s'}}",
                  name, type, text ? text : time);
    put_in(h, "POST", path, body, 201);
}

static void an_expired_token_is_deleted(void **state)
{
    make("kube-system", "later", TYPE, 3600000, NULL);
    make("kube-system", "unreadable", TYPE, 0, "some time");
    make("kube-system", "opaque", "Opaque", -3600000, NULL);
    make("default", "elsewhere", TYPE, -3600000, NULL);
    make("kube-system", "over", TYPE, -3600000, NULL);
    make("kube-system", "soon", TYPE, 1000, NULL);
    rig_expect(h, SECRETS "/over", NULL, "404");
    rig_expect(h, SECRETS "/soon", NULL, "404");
    rig_expect(h, SECRETS "/later", NULL, "200");
    rig_expect(h, SECRETS "/unreadable", NULL, "200");
    rig_expect(h, SECRETS "/opaque", NULL, "200");
    rig_expect(h, "/api/v1/namespaces/default/secrets/elsewhere", NULL, "200");
    /* A changed expiration takes effect. */
    CLEANUP_FREE char *text = rig_text(h, SECRETS "/later");
    CLEANUP(json_free) struct json *o = from(text);
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    base64_encode("2020-01-01T00:00:00Z", 20, &b);
    json_set_string(json_get(o, "data"), "expiration", strbuf_cstr(&b));
    CLEANUP_FREE char *changed = json_to_text(o);
    CLEANUP_ANSWER struct answer a = ask_ok(h, "PUT", SECRETS "/later", changed, 200);
    rig_expect(h, SECRETS "/later", NULL, "404");
}

static void a_deletion_that_fails_is_tried_again(void **state)
{
    rig_refuse(h, false);
    rig_plant(h, "", "secrets", "kube-system/again",
              "{'kind': 'Secret', 'apiVersion': 'v1', 'metadata': {'name': 'again',"
              "'namespace': 'kube-system', 'uid': 'u'}, 'type': '" TYPE "',"
              "'data': {'expiration': 'MjAyMC0wMS0wMVQwMDowMDowMFo='}}");
    rig_recover(h);
    rig_expect(h, SECRETS "/again", NULL, "404");
}

/* A token that is gone, or whose deletion was accepted, is not deleted again before the watch says
 * so. */
static void a_deletion_is_repeated_only_after_an_error(void **state)
{
    struct front *f = front_new(h);
    rig_stop(controller);
    struct api_client *c = front_client(f);
    controller = rig_start(h, c, &join_tokens_controller, NULL);
    front_answer(f, "DELETE", SECRETS "/absent", 404, "NotFound", 1);
    front_answer(f, "DELETE", SECRETS "/accepted", 200, "", 1);
    front_answer(f, "DELETE", SECRETS "/failing", 500, "InternalError", 4);
    make("kube-system", "absent", TYPE, -3600000, NULL);
    make("kube-system", "accepted", TYPE, -3600000, NULL);
    front_expect(f, "DELETE", SECRETS "/absent", 1);
    front_expect(f, "DELETE", SECRETS "/accepted", 1);
    /* Four retries take longer than the first one of each of the others would. */
    make("kube-system", "failing", TYPE, -3600000, NULL);
    front_expect(f, "DELETE", SECRETS "/failing", 5);
    rig_expect(h, SECRETS "/failing", NULL, "404");
    rig_expect(h, SECRETS "/absent", NULL, "200");
    rig_expect(h, SECRETS "/accepted", NULL, "200");
    front_expect(f, "DELETE", SECRETS "/absent", 1);
    front_expect(f, "DELETE", SECRETS "/accepted", 1);
    rig_stop(controller);
    api_client_free(c);
    front_free(f);
    controller = rig_start(h, client, &join_tokens_controller, NULL);
}

static void the_remaining_time_is_read_from_the_secret(void **state)
{
    static const struct {
        const char *data; /* JSON of data.expiration. */
        int64_t now_ms, left;
    } cases[] = {
        /* 2026-01-01T00:00:00Z */
        {"'MjAyNi0wMS0wMVQwMDowMDowMFo='", INT64_C(1767225590000), 10000},
        {"'MjAyNi0wMS0wMVQwMDowMDowMFo='", INT64_C(1767225600000), 0},
        {"'MjAyNi0wMS0wMVQwMDowMDowMFo='", INT64_C(1767225600001), 0},
        {"'%%%'", 0, -1},
        {"'bm8='", 0, -1},
        {"7", 0, -1},
        {"null", 0, -1},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *text = xasprintf("{'data': {'expiration': %s}}", cases[i].data);
        CLEANUP(json_free) struct json *o = from(text);
        assert_int_equal(join_tokens_left_ms(o, cases[i].now_ms), cases[i].left);
    }
}

#define T(name) cmocka_unit_test(name)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(an_expired_token_is_deleted),
        T(a_deletion_that_fails_is_tried_again),
        T(a_deletion_is_repeated_only_after_an_error),
        T(the_remaining_time_is_read_from_the_secret),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
