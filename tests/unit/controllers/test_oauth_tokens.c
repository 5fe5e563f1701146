/* SPDX-License-Identifier: Apache-2.0 */
/* The controller deletes tokens that have ended and what deleted users and clients leave, and
 * nothing else. */
#include "controllers/security/oauth_tokens.h"

#include "base/timeutil.h"
#include "json_text.h"
#include "rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define OAUTH "/apis/oauth.openshift.io/v1/"
#define TOKENS OAUTH "oauthaccesstokens"
#define CODES OAUTH "oauthauthorizetokens"
#define CLIENTS OAUTH "oauthclients"
#define ALLOWED OAUTH "oauthclientauthorizations"
#define USERS "/apis/user.openshift.io/v1/users"
#define IDENTITIES "/apis/user.openshift.io/v1/identities"
#define NAME(c) "/sha256~AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdH" c c
#define NOBODY "system:serviceaccount:default:robot"

static struct harness *h;
static struct api_client *client;
static struct rig_controller *controller;

static int set_up(void **state)
{
    h = harness_new(NULL, NULL);
    client = rig_client(h);
    controller = rig_start(h, client, &oauth_tokens_controller, NULL);
    return 0;
}

static int tear_down(void **state)
{
    rig_stop(controller);
    api_client_free(client);
    harness_free(h);
    return 0;
}

/* Makes a token or a code; 'name' is a NAME. */
static void make(const char *kind, const char *name, const char *user, const char *uid,
                 const char *by, const char *more)
{
    CLEANUP_FREE char *body =
        xasprintf("{'metadata': {'name': '%s'}, 'userName': '%s', 'userUID': '%s', 'clientName': "
                  "'%s', 'redirectURI': 'https://c/', 'scopes': ['user:full']%s}",
                  name + 1, user, uid, by, more);
    put_in(h, "POST", kind, body, 201);
}

static void tokens_and_codes_that_have_ended_are_deleted(void **state)
{
    CLEANUP_FREE char *uid = make_object(h, USERS, "{'metadata': {'name': 'jane'}}");
    make(TOKENS, NAME("a"), "jane", uid, NOBODY, ", 'expiresIn': 1");
    make(TOKENS, NAME("b"), "jane", uid, NOBODY, ", 'expiresIn': 3600");
    make(TOKENS, NAME("c"), "jane", uid, NOBODY, "");
    make(TOKENS, NAME("d"), "jane", uid, NOBODY, ", 'inactivityTimeoutSeconds': 1");
    make(CODES, NAME("e"), "jane", uid, NOBODY, ", 'expiresIn': 1");
    make(CODES, NAME("f"), "jane", uid, NOBODY, ", 'expiresIn': 300");
    rig_expect(h, TOKENS NAME("a"), NULL, "404");
    rig_expect(h, TOKENS NAME("d"), NULL, "404");
    rig_expect(h, CODES NAME("e"), NULL, "404");
    rig_expect(h, TOKENS NAME("b"), NULL, "200");
    rig_expect(h, TOKENS NAME("c"), NULL, "200");
    rig_expect(h, CODES NAME("f"), NULL, "200");
}

static void a_deleted_user_leaves_nothing(void **state)
{
    CLEANUP_FREE char *ann = make_object(h, USERS, "{'metadata': {'name': 'ann'}}");
    CLEANUP_FREE char *joe = make_object(h, USERS, "{'metadata': {'name': 'joe'}}");
    free(make_object(h, CLIENTS, "{'metadata': {'name': 'shop'}, 'grantMethod': 'auto'}"));
    CLEANUP_FREE char *allowed =
        xasprintf("{'userName': 'ann', 'userUID': '%s', 'clientName': 'shop', 'scopes': "
                  "['user:info'], 'metadata': {}}",
                  ann);
    CLEANUP_FREE char *identity =
        xasprintf("{'metadata': {}, 'providerName': 'ldap', 'providerUserName': 'ann', 'user': "
                  "{'name': 'ann', 'uid': '%s'}}",
                  ann);
    put_in(h, "POST", ALLOWED, allowed, 201);
    put_in(h, "POST", IDENTITIES, identity, 201);
    make(TOKENS, NAME("g"), "ann", ann, "shop", "");
    make(TOKENS, NAME("h"), "joe", joe, "shop", "");
    make(CODES, NAME("i"), "ann", ann, "shop", ", 'expiresIn': 300");
    rig_expect(h, IDENTITIES "/ldap:ann", "user.name", "ann");
    put_in(h, "DELETE", USERS "/ann", "", 200);
    rig_expect(h, TOKENS NAME("g"), NULL, "404");
    rig_expect(h, CODES NAME("i"), NULL, "404");
    rig_expect(h, ALLOWED "/ann:shop", NULL, "404");
    rig_expect(h, IDENTITIES "/ldap:ann", "user.name", "");
    rig_expect(h, IDENTITIES "/ldap:ann", "providerUserName", "ann");
    rig_expect(h, TOKENS NAME("h"), NULL, "200");
    /* A token of a user who was made anew meanwhile. */
    free(make_object(h, USERS, "{'metadata': {'name': 'ann'}}"));
    make(TOKENS, NAME("j"), "ann", ann, "shop", "");
    rig_expect(h, TOKENS NAME("j"), NULL, "404");
    put_in(h, "DELETE", CLIENTS "/shop", "", 200);
    rig_expect(h, TOKENS NAME("h"), NULL, "404");
    rig_expect(h, USERS "/joe", NULL, "200");
}

static void the_earlier_end_of_a_token_counts(void **state)
{
    static const struct {
        const char *members;
        int64_t left_ms;
    } rows[] = {
        {"'expiresIn': 60", 50000},
        {"'expiresIn': 10", 0},
        {"'expiresIn': 5", 0},
        {"'expiresIn': 0", -1},
        {"'inactivityTimeoutSeconds': 40", 30000},
        {"'expiresIn': 60, 'inactivityTimeoutSeconds': 40", 30000},
        {"'expiresIn': 20, 'inactivityTimeoutSeconds': 40", 10000},
        {"'expiresIn': 20, 'inactivityTimeoutSeconds': 0", 10000},
        {"'expiresIn': 9223372036854775807", -1},
        {"'metadata': {}, 'expiresIn': 1", -1},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        bool bare = str_has_prefix(rows[i].members, "'metadata'");
        CLEANUP_FREE char *text = xasprintf(
            "{%s%s}", bare ? "" : "'metadata': {'creationTimestamp': '2026-01-01T00:00:00Z'}, ",
            rows[i].members);
        CLEANUP(json_free) struct json *o = json_of(text);
        assert_int_equal(oauth_tokens_left_ms(o, INT64_C(1767225610000)), rows[i].left_ms);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_and_codes_that_have_ended_are_deleted),
        cmocka_unit_test(a_deleted_user_leaves_nothing),
        cmocka_unit_test(the_earlier_end_of_a_token_counts),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
