/* SPDX-License-Identifier: Apache-2.0 */
/* OAuth tokens as credentials: when they are valid, where they may be sent, and what their scopes
 * leave of the user's rights. */
#include "apiserver/access/authz.h"
#include "apiserver/access/oauth_token.h"
#include "apiserver/access/scopes.h"
#include "apiserver/access/token.h"
#include "apiserver/access/visible.h"
#include "apiserver/request/server_priv.h"
#include "base/base64.h"
#include "base/timeutil.h"
#include "harness.h"
#include "oauth/token.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define SELF "/apis/user.openshift.io/v1/users/~"
#define USERS "/apis/user.openshift.io/v1/users"
#define TOKENS "/apis/oauth.openshift.io/v1/oauthaccesstokens"
#define CLIENTS "/apis/oauth.openshift.io/v1/oauthclients"
#define OWN "/apis/oauth.openshift.io/v1/useroauthaccesstokens"
#define ACCESS "/apis/authorization.k8s.io/v1/subjectaccessreviews"
#define RULES_OF_ALL                                                                         \
    "{'verbs': ['get'], 'apiGroups': ['user.openshift.io'], 'resources': ['users'],"         \
    "'resourceNames': ['~']}, {'verbs': ['get', 'list', 'watch', 'delete'], 'apiGroups': "   \
    "['oauth.openshift.io'], 'resources': ['useroauthaccesstokens']}, {'verbs': ['delete']," \
    "'apiGroups': ['oauth.openshift.io'], 'resources': ['oauthaccesstokens']}"

/* A DeploymentConfig. */
#define CONFIG                                                                                 \
    "{'metadata': {'name': 'web'}, 'spec': {'selector': {'a': 'b'}, 'template': {'metadata': " \
    "{'labels': {'a': 'b'}}, 'spec': {'containers': [{'name': 'c', 'image': 'i'}]}}}}"

static struct harness *h;
static char *jane; /* The UID of the User. */
static unsigned made;

static int set_up(void **state)
{
    h = harness_new_secure((struct apiserver_security){.anonymous = true});
    harness_listen_tls(h);
    jane = make_object(h, USERS, "{'metadata': {'name': 'jane'}}");
    free(make_object(h, USERS, "{'metadata': {'name': 'joe'}}"));
    give_rules(h, NULL, "jane", RULES_OF_ALL);
    give_rules(h, NULL, "joe", RULES_OF_ALL);
    return 0;
}

static int tear_down(void **state)
{
    free(jane);
    harness_free(h);
    return 0;
}

/* Makes a token of the user (with these members, too); 'token' and 'name' get both texts. */
static void make(const char *user, const char *uid, const char *more,
                 char token[OAUTH_TOKEN_TEXT_SIZE], char name[OAUTH_TOKEN_TEXT_SIZE])
{
    uint8_t random[OAUTH_TOKEN_RANDOM] = {(uint8_t) (made >> 8), (uint8_t) made, 7};
    made++;
    assert_int_equal(oauth_token_make(random, token), 0);
    assert_int_equal(oauth_token_name(token, name), 0);
    CLEANUP_FREE char *body =
        xasprintf("{'metadata': {'name': '%s'}, 'userName': '%s', 'userUID': '%s', 'clientName': "
                  "'c', 'redirectURI': 'https://c/'%s}",
                  name, user, uid, more);
    put_in(h, "POST", TOKENS, body, 201);
}

static struct answer ask_with(const char *token, const char *method, const char *path)
{
    CLEANUP_FREE char *bearer = xasprintf("Bearer %s", token);
    const char *headers[] = {"Authorization", bearer, NULL};
    return ask_by(h, &(struct sender){.tls = true, .headers = headers}, method, path, NULL);
}

static void expect(const char *token, const char *method, const char *path, int status)
{
    CLEANUP_ANSWER struct answer a = ask_with(token, method, path);
    if (a.status != status) {
        fail_msg("%s %s: %d, not %d: %s", method, path, a.status, status, a.text);
    }
}

#define FULL ", 'scopes': ['user:full'], 'expiresIn': 3600"

static void a_token_names_its_user_and_groups(void **state)
{
    char token[OAUTH_TOKEN_TEXT_SIZE], name[OAUTH_TOKEN_TEXT_SIZE];
    put_in(h, "POST", "/apis/user.openshift.io/v1/groups",
           "{'metadata': {'name': 'dev'}, 'users': ['jane']}", 201);
    make("jane", jane, FULL, token, name);
    CLEANUP_ANSWER struct answer a = ask_with(token, "GET", SELF);
    assert_int_equal(a.status, 200);
    assert_string_equal(at(&a, "metadata.name"), "jane");
    assert_string_equal(at(&a, "metadata.uid"), jane);
    CLEANUP_FREE char *groups = json_to_text(json_get(a.body, "groups"));
    assert_string_equal(groups,
                        "[\"dev\",\"system:authenticated\",\"system:authenticated:oauth\"]");
    /* A group that changes counts at the next request. */
    put_in(h, "DELETE", "/apis/user.openshift.io/v1/groups/dev", "", 200);
    CLEANUP_ANSWER struct answer b = ask_with(token, "GET", SELF);
    assert_int_equal(json_count(json_get(b.body, "groups")), 2);
}

static void a_token_that_is_not_valid_is_401_with_one_body(void **state)
{
    char token[OAUTH_TOKEN_TEXT_SIZE], name[OAUTH_TOKEN_TEXT_SIZE];
    CLEANUP_FREE char *body = NULL;
    char gone[OAUTH_TOKEN_TEXT_SIZE], other[OAUTH_TOKEN_TEXT_SIZE], again[OAUTH_TOKEN_TEXT_SIZE],
        nobody[OAUTH_TOKEN_TEXT_SIZE], held[OAUTH_TOKEN_TEXT_SIZE];
    make("jane", jane, FULL, gone, name);
    expect(gone, "GET", SELF, 200);
    CLEANUP_FREE char *path = xasprintf(TOKENS "/%s", name);
    put_in(h, "DELETE", path, "", 200);
    make("jane", "another-uid", FULL, other, name);
    CLEANUP_FREE char *uid = make_object(h, USERS, "{'metadata': {'name': 'ann'}}");
    make("ann", uid, FULL, again, name);
    expect(again, "GET", USERS, 403);
    put_in(h, "DELETE", USERS "/ann", "", 200);
    expect(again, "GET", SELF, 401);
    free(make_object(h, USERS, "{'metadata': {'name': 'ann'}}"));
    make("absent", "1", FULL, nobody, name);
    make("jane", jane, FULL, held, name);
    CLEANUP_FREE char *to_hold = xasprintf(TOKENS "/%s", name);
    CLEANUP_ANSWER struct answer kept =
        ask_full(h, "PATCH", to_hold, NULL, "application/merge-patch+json",
                 "{\"metadata\":{\"finalizers\":[\"example.com/hold\"]}}");
    assert_int_equal(kept.status, 200);
    put_in(h, "DELETE", to_hold, "", 200);
    make("jane", jane, FULL, token, name);
    const char *const bad[] = {gone,
                               other,
                               again,
                               nobody,
                               held,
                               name, /* The name of a token is none. */
                               "sha256~AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8",
                               "sha256~",
                               "sha256~short",
                               "x"};
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        CLEANUP_ANSWER struct answer a = ask_with(bad[i], "GET", SELF);
        if (a.status != 401 || (body && !streq(body, a.text))) {
            fail_msg("%zu: %d %s", i, a.status, a.text);
        }
        body = body ? body : xstrdup(a.text);
    }
    expect(token, "GET", SELF, 200);
}

static void a_token_ends(void **state)
{
    static const struct {
        const char *more;
        int64_t end_s; /* 0: it does not end. */
    } rows[] = {
        {", 'scopes': ['user:full'], 'expiresIn': 60", 60},
        {", 'scopes': ['user:full']", 0},
        {", 'scopes': ['user:full'], 'inactivityTimeoutSeconds': 300", 300},
        {", 'scopes': ['user:full'], 'expiresIn': 60, 'inactivityTimeoutSeconds': 300", 60},
        {", 'scopes': ['user:full'], 'expiresIn': 600, 'inactivityTimeoutSeconds': 300", 300},
        {", 'scopes': ['user:full'], 'expiresIn': 9223372036854775807", 0},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        char token[OAUTH_TOKEN_TEXT_SIZE], name[OAUTH_TOKEN_TEXT_SIZE];
        make("jane", jane, rows[i].more, token, name);
        CLEANUP_FREE char *path = xasprintf(TOKENS "/%s", name);
        CLEANUP_ANSWER struct answer a = ask_ok(h, "GET", path, NULL, 200);
        int64_t created;
        assert_int_equal(time_parse(at(&a, "metadata.creationTimestamp"), &created), 0);
        for (int over = 0; over < 2; over++) {
            int64_t now = created + (rows[i].end_s ? rows[i].end_s * 1000 + over - 1
                                                   : INT64_C(1000) * 3600 * 24 * 36500);
            CLEANUP(user_unref) struct user_info *u = NULL;
            struct err e = {0};
            int r = token_authenticate(h->api->security, token, NULL, now, &u, NULL, &e);
            assert_int_equal(r, rows[i].end_s && over ? -EPERM : 0);
        }
    }
}

static void tokens_come_by_websocket_protocol_and_query_too(void **state)
{
    char token[OAUTH_TOKEN_TEXT_SIZE], name[OAUTH_TOKEN_TEXT_SIZE];
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    make("jane", jane, FULL, token, name);
    CLEANUP_FREE char *query = xasprintf(SELF "?access_token=%s", token);
    CLEANUP_ANSWER struct answer a = ask_by(h, &(struct sender){.tls = true}, "GET", query, NULL);
    assert_int_equal(a.status, 200);
    base64url_encode(token, strlen(token), &b);
#define PROTOCOL "base64url.bearer.authorization.k8s.io."
    CLEANUP_FREE char *right = xasprintf("v4.channel.k8s.io, " PROTOCOL "%s", b.data);
    CLEANUP_FREE char *twice = xasprintf(PROTOCOL "%s, " PROTOCOL "%s", b.data, b.data);
    CLEANUP_FREE char *padded = xasprintf("v4.channel.k8s.io," PROTOCOL "%s=", b.data);
    const struct {
        const char *protocol, *upgrade;
        int status; /* That of an anonymous user is 403. */
    } rows[] = {
        {right, "websocket", 200},
        {right, "other", 403},
        {twice, "websocket", 401},
        {padded, "websocket", 401},
        {PROTOCOL, "websocket", 401},
        {PROTOCOL "%%", "websocket", 401},
        {"v4.channel.k8s.io", "websocket", 403},
        {PROTOCOL "AAAA", "websocket", 401},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        const char *headers[] = {
            "Connection",     "Upgrade", "Upgrade", rows[i].upgrade, "Sec-WebSocket-Protocol",
            rows[i].protocol, NULL};
        CLEANUP_ANSWER struct answer got =
            ask_by(h, &(struct sender){.tls = true, .headers = headers}, "GET", SELF, NULL);
        if (got.status != rows[i].status) {
            fail_msg("%s: %d, not %d", rows[i].protocol, got.status, rows[i].status);
        }
    }
}

static void each_user_sees_and_deletes_own_tokens(void **state)
{
    char hers[OAUTH_TOKEN_TEXT_SIZE], her_name[OAUTH_TOKEN_TEXT_SIZE];
    char his[OAUTH_TOKEN_TEXT_SIZE], his_name[OAUTH_TOKEN_TEXT_SIZE];
    CLEANUP_ANSWER struct answer joe = ask_ok(h, "GET", USERS "/joe", NULL, 200);
    make("jane", jane, FULL, hers, her_name);
    make("joe", at(&joe, "metadata.uid"), FULL, his, his_name);
    CLEANUP_FREE char *own = xasprintf(OWN "/%s", her_name);
    CLEANUP_FREE char *other = xasprintf(OWN "/%s", his_name);
    CLEANUP_FREE char *full = xasprintf(TOKENS "/%s", his_name);
    CLEANUP_FREE char *raw = xasprintf(TOKENS "/%s", his);
    CLEANUP_FREE char *own_raw = xasprintf(TOKENS "/%s", hers);
    CLEANUP_ANSWER struct answer list = ask_with(hers, "GET", OWN);
    assert_int_equal(list.status, 200);
    assert_string_equal(at(&list, "kind"), "UserOAuthAccessTokenList");
    const struct json *item;
    JSON_FOREACH (item, json_get(list.body, "items")) {
        assert_string_equal(json_path_string(item, "userName", NULL), "jane");
    }
    expect(hers, "GET", own, 200);
    expect(hers, "GET", other, 404);
    expect(hers, "DELETE", other, 404);
    expect(hers, "PATCH", own, 403);
    expect(hers, "GET", full, 403);
    expect(hers, "DELETE", full, 404);
    /* Not even by the token itself. */
    expect(hers, "DELETE", raw, 404);
    expect(his, "GET", SELF, 200);
    /* What clients before 4.6 do to log out. */
    expect(hers, "DELETE", own_raw, 200);
    expect(hers, "GET", SELF, 401);
    expect(his, "DELETE", other, 200);
    expect(his, "GET", SELF, 401);
}

/* ---- scopes ---- */

static struct user_info *scoped(const char *scope)
{
    struct user_info *u = user_new("root");
    user_add_group(u, GROUP_MASTERS);
    if (scope) {
        user_add_extra(u, SCOPES_EXTRA, scope);
    }
    return u;
}

static bool may(const char *scope, const char *verb, const char *group, const char *resource,
                const char *ns, const char *name)
{
    CLEANUP(user_unref) struct user_info *u = scoped(scope);
    return authz_may(h->api->security, u, verb, group, resource, ns, name);
}

static bool may_get(const char *scope, const char *path)
{
    CLEANUP(user_unref) struct user_info *u = scoped(scope);
    struct attributes a = {.verb = "get", .path = path};
    return authz_allows(h->api->security, u, &a, NULL);
}

static void scopes_leave_a_part_of_all_rights(void **state)
{
#define PROJECTS "project.openshift.io"
    static const struct {
        const char *scope, *verb, *group, *resource, *ns, *name;
        bool allowed;
    } rows[] = {
        {NULL, "get", "", "secrets", "red", "s", true},
        {"user:full", "delete", "", "secrets", "red", "s", true},
        {"user:info", "get", "user.openshift.io", "users", "", "~", true},
        {"user:info", "get", "user.openshift.io", "users", "", "joe", false},
        {"user:info", "list", "user.openshift.io", "users", "", "", false},
        {"user:info", "list", PROJECTS, "projects", "", "", false},
        {"user:check-access", "create", "authorization.k8s.io", "selfsubjectaccessreviews", "", "",
         true},
        {"user:check-access", "create", "authorization.k8s.io", "subjectaccessreviews", "", "",
         false},
        {"user:list-scoped-projects", "list", PROJECTS, "projects", "", "", true},
        {"user:list-scoped-projects", "get", "", "namespaces", "red", "red", false},
        {"user:list-projects", "watch", PROJECTS, "projects", "", "", true},
        {"user:list-projects", "get", "", "namespaces", "red", "red", true},
        {"user:list-projects", "get", "", "pods", "red", "p", false},
        {"unknown", "get", "user.openshift.io", "users", "", "~", false},
        {"", "get", "user.openshift.io", "users", "", "~", false},
        {"role:worker:red", "get", "", "pods", "red", "p", true},
        {"role:worker:red", "get", "", "pods", "blue", "p", false},
        {"role:worker:red", "get", "", "pods", "", "", false},
        {"role:worker:red", "delete", "", "pods", "red", "p", false},
        {"role:worker:*", "get", "", "pods", "blue", "p", true},
        {"role:worker:*", "get", "", "nodes", "", "n", true},
        {"role:missing:red", "get", "", "pods", "red", "p", false},
        {"role:worker:red", "get", "", "secrets", "red", "s", false},
        {"role:worker:red:!", "get", "", "secrets", "red", "s", true},
        {"role:worker:red:!", "get", "", "secrets", "blue", "s", false},
        {"role:worker:red", "create", "", "serviceaccounts/token", "red", "a", false},
        {"role:worker:red:!", "create", "", "serviceaccounts/token", "red", "a", true},
        {"role:worker:red", "get", "", "serviceaccounts", "red", "a", true},
        {"role:worker:red", "create", "rbac.authorization.k8s.io", "rolebindings", "red", "",
         false},
        {"role:worker:*", "impersonate", "", "users", "", "root", false},
        {"role:worker:*:!", "impersonate", "", "users", "", "root", true},
        /* Rules with a star do not count. */
        {"role:star:red", "get", "", "pods", "red", "p", false},
        {"role:star:red:!", "get", "", "pods", "red", "p", true},
    };
    static const struct {
        const char *scope, *path;
        bool allowed;
    } paths[] = {
        {"user:info", "/version", true},
        {"user:info", "/apis", true},
        {"user:info", "/apis/apps/v1", true},
        {"user:info", "/", true},
        {"user:info", "/metrics", false},
        {"user:info", "/healthz", true},
        {"user:full", "/metrics", true},
        {"user:info", "/.well-known/x", true},
        {NULL, "/metrics", true},
    };
    give_rules(h, NULL, "worker",
               "{'verbs': ['get'], 'apiGroups': [''], 'resources': ['pods', 'secrets', 'nodes',"
               "'serviceaccounts']}, {'verbs': ['create'], 'apiGroups': ['',"
               "'rbac.authorization.k8s.io'], 'resources': ['serviceaccounts/token',"
               "'rolebindings']}, {'verbs': ['impersonate'], 'apiGroups': [''], 'resources': "
               "['users']}");
    give_rules(h, NULL, "star", "{'verbs': ['*'], 'apiGroups': [''], 'resources': ['pods']}");
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        if (may(rows[i].scope, rows[i].verb, rows[i].group, rows[i].resource, rows[i].ns,
                rows[i].name) != rows[i].allowed) {
            fail_msg("%s: %s %s in \"%s\"", rows[i].scope, rows[i].verb, rows[i].resource,
                     rows[i].ns);
        }
    }
    for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
        if (may_get(paths[i].scope, paths[i].path) != paths[i].allowed) {
            fail_msg("%s: %s", paths[i].scope, paths[i].path);
        }
    }
}

static void scopes_add_no_rights(void **state)
{
    CLEANUP(user_unref) struct user_info *u = user_new("poor");
    user_add_extra(u, SCOPES_EXTRA, "user:full");
    user_add_extra(u, SCOPES_EXTRA, "role:worker:*:!");
    assert_false(authz_may(h->api->security, u, "get", "", "pods", "red", "p"));
}

static void a_review_asks_with_scopes(void **state)
{
    CLEANUP_FREE char *body =
        quoted("{'spec': {'user': 'root', 'groups': ['system:masters'], 'extra': {'" SCOPES_EXTRA
               "': ['user:info', 'role:worker:red']}, 'resourceAttributes': {'verb': 'get',"
               "'resource': 'secrets', 'namespace': 'red'}}}");
    CLEANUP_ANSWER struct answer a = ask_ok(h, "POST", ACCESS, body, 201);
    const struct json *st = json_get(a.body, "status");
    assert_false(json_get_bool(json_get(st, "allowed"), true));
    assert_non_null(strstr(json_path_string(st, "reason", NULL),
                           "scopes [user:info role:worker:red] prevent this action"));
}

struct counted {
    unsigned n;
    bool secrets, pods, delete;
};

static void count(void *ctx, const struct rbac_rule *r)
{
    struct counted *c = ctx;
    c->n++;
    for (size_t i = 0; i < r->resources.n; i++) {
        c->secrets |= streq(r->resources.at[i], "secrets");
        c->pods |= streq(r->resources.at[i], "pods");
    }
    for (size_t i = 0; i < r->verbs.n; i++) {
        c->delete |= streq(r->verbs.at[i], "delete") || streq(r->verbs.at[i], "*");
    }
}

static void rules_are_those_that_both_lists_give(void **state)
{
    CLEANUP(user_unref) struct user_info *u = user_new("boss");
    struct counted none = {0}, some = {0}, all = {0}, elsewhere = {0};
    give_rules(h, NULL, "boss", "{'verbs': ['*'], 'apiGroups': ['*'], 'resources': ['*']}");
    scopes_each_rule(h->api->security->rbac, u, "red", count, &all);
    assert_true(all.delete &&all.n == 1);
    user_add_extra(u, SCOPES_EXTRA, "role:worker:red");
    scopes_each_rule(h->api->security->rbac, u, "red", count, &some);
    assert_true(some.pods && !some.secrets && !some.delete);
    scopes_each_rule(h->api->security->rbac, u, "blue", count, &elsewhere);
    assert_int_equal(elsewhere.n, 0);
    CLEANUP(user_unref) struct user_info *poor = user_new("poor");
    user_add_extra(poor, SCOPES_EXTRA, "user:full");
    scopes_each_rule(h->api->security->rbac, poor, "red", count, &none);
    assert_int_equal(none.n, 0);
}

static bool sees(const char *scope, const char *ns)
{
    CLEANUP(user_unref) struct user_info *u = scoped(scope);
    struct visible *v =
        visible_ref(h->api->security, u, api_kind_find("project.openshift.io", "v1", "projects"));
    bool has = visible_has(v, ns);
    visible_unref(v);
    return has;
}

static void scopes_hide_projects(void **state)
{
    give_rules(h, NULL, "viewer",
               "{'verbs': ['get'], 'apiGroups': [''], 'resources': ['namespaces']}");
    assert_true(sees(NULL, "red"));
    assert_true(sees("user:full", "red"));
    assert_true(sees("user:list-projects", "red"));
    assert_false(sees("user:list-scoped-projects", "red"));
    assert_true(sees("role:viewer:red", "red"));
    assert_false(sees("role:viewer:red", "blue"));
    assert_true(sees("role:viewer:*", "blue"));
    assert_false(sees("role:worker:*", "blue"));
}

/* What is kept of a token goes with it. */
static void a_deleted_token_leaves_nothing(void **state)
{
    char token[OAUTH_TOKEN_TEXT_SIZE], name[OAUTH_TOKEN_TEXT_SIZE];
    make("jane", jane, FULL, token, name);
    CLEANUP_FREE char *path = xasprintf(TOKENS "/%s", name);
    expect(token, "GET", SELF, 200);
    assert_non_null(smap_get(&h->api->security->oauth_tokens, name));
    put_in(h, "DELETE", path, "", 200);
    assert_null(smap_get(&h->api->security->oauth_tokens, name));
}

/* No controller is here that would delete the token: the API server ends its watches by itself. */
static void a_watch_ends_when_its_token_ends(void **state)
{
    char token[OAUTH_TOKEN_TEXT_SIZE], name[OAUTH_TOKEN_TEXT_SIZE];
    make("jane", jane, ", 'scopes': ['user:full'], 'expiresIn': 4", token, name);
    CLEANUP_ANSWER struct answer a = ask_with(token, "GET", OWN "?watch=1&timeoutSeconds=3600");
    assert_int_equal(a.status, 200);
    CLEANUP_FREE char *path = xasprintf(TOKENS "/%s", name);
    put_in(h, "GET", path, "", 200);
    expect(token, "GET", SELF, 401);
}

/* A request for the log of a rollout waits for the rollout, and no longer than its token lasts. */
static void a_wait_for_a_rollout_ends_when_its_token_ends(void **state)
{
    static const char configs[] = "/apis/apps.openshift.io/v1/namespaces/default/deploymentconfigs";
    static const char path[] =
        "/apis/apps.openshift.io/v1/namespaces/default/deploymentconfigs/web/log";
    CLEANUP_FREE char *status = xasprintf("%s/web/status", configs);
    char token[OAUTH_TOKEN_TEXT_SIZE], name[OAUTH_TOKEN_TEXT_SIZE];
    put_in(h, "POST", configs, CONFIG, 201);
    CLEANUP_ANSWER struct answer begins =
        ask_full(h, "PATCH", status, NULL, "application/merge-patch+json",
                 "{\"status\": {\"latestVersion\": 1}}");
    assert_int_equal(begins.status, 200);
    give_rules(h, "default", "jane",
               "{'verbs': ['get'], 'apiGroups': ['apps.openshift.io'], 'resources': "
               "['deploymentconfigs/log']}");
    make("jane", jane, ", 'scopes': ['user:full'], 'expiresIn': 2", token, name);
    int64_t begun = time_wall_ms();
    CLEANUP_ANSWER struct answer a = ask_with(token, "GET", path);
    assert_int_equal(a.status, 401);
    assert_string_equal(at(&a, "message"), "Unauthorized");
    assert_true(time_wall_ms() - begun > 500); /* It waited; the token was good at first. */
}

static void a_token_has_ended_when_one_of_its_objects_has(void **state)
{
    char token[OAUTH_TOKEN_TEXT_SIZE], name[OAUTH_TOKEN_TEXT_SIZE];
    struct security *s = h->api->security;
    int64_t now = time_wall_ms();
    CLEANUP_FREE char *uid = make_object(h, USERS, "{'metadata': {'name': 'tim'}}");
    make("tim", uid, FULL, token, name);
    assert_false(oauth_token_has_ended(s, name, now));
    assert_false(oauth_token_has_ended(s, name, now + 3590000));
    assert_true(oauth_token_has_ended(s, name, now + 3601000));
    assert_true(oauth_token_has_ended(s, "sha256~other", now));
    put_in(h, "DELETE", USERS "/tim", "", 200);
    assert_true(oauth_token_has_ended(s, name, now));
}

/* The inactivityTimeoutSeconds of the stored token; 0: it has none. */
static int64_t stored_timeout(const char *name)
{
    CLEANUP_FREE char *path = xasprintf(TOKENS "/%s", name);
    CLEANUP_ANSWER struct answer a = ask_ok(h, "GET", path, NULL, 200);
    return json_get_int_or(json_get(a.body, "inactivityTimeoutSeconds"), 0);
}

/* Requests with the token, one after the other, until its stored timeout is no longer 'was'. */
static int64_t use_until_stored(const char *token, const char *name, int64_t was)
{
    int64_t now = was;
    for (unsigned i = 0; i < 30000 && now == was; i++) {
        expect(token, "GET", SELF, 200);
        now = stored_timeout(name);
    }
    return now;
}

static void a_use_moves_the_end_by_inactivity(void **state)
{
    char used[OAUTH_TOKEN_TEXT_SIZE], name[OAUTH_TOKEN_TEXT_SIZE];
    char unused[OAUTH_TOKEN_TEXT_SIZE], unused_name[OAUTH_TOKEN_TEXT_SIZE];
    char late[OAUTH_TOKEN_TEXT_SIZE], late_name[OAUTH_TOKEN_TEXT_SIZE];
    char full[OAUTH_TOKEN_TEXT_SIZE], full_name[OAUTH_TOKEN_TEXT_SIZE];
    put_in(h, "POST", CLIENTS,
           "{'metadata': {'name': 'c'}, 'grantMethod': 'auto', "
           "'accessTokenInactivityTimeoutSeconds': 300}",
           201);
    make("jane", jane, FULL ", 'inactivityTimeoutSeconds': 60", used, name);
    make("jane", jane, FULL ", 'inactivityTimeoutSeconds': 60", unused, unused_name);
    make("jane", jane, FULL ", 'inactivityTimeoutSeconds': 1000", late, late_name);
    make("jane", jane,
         ", 'scopes': ['user:full'], 'expiresIn': 100, 'inactivityTimeoutSeconds': 60", full,
         full_name);
    expect(late, "GET", SELF, 200);
    int64_t stored = use_until_stored(used, name, 60);
    assert_in_range(stored, 300, 600);
    assert_int_equal(use_until_stored(full, full_name, 60), 100);
    assert_int_equal(stored_timeout(unused_name), 60);
    assert_int_equal(stored_timeout(late_name), 1000);
    put_in(h, "DELETE", CLIENTS "/c", "", 200);
}

static void a_client_whose_tokens_no_longer_end_by_inactivity(void **state)
{
    char token[OAUTH_TOKEN_TEXT_SIZE], name[OAUTH_TOKEN_TEXT_SIZE];
    put_in(h, "POST", CLIENTS,
           "{'metadata': {'name': 'c'}, 'grantMethod': 'auto', "
           "'accessTokenInactivityTimeoutSeconds': 0}",
           201);
    make("jane", jane, FULL ", 'inactivityTimeoutSeconds': 60", token, name);
    assert_int_equal(use_until_stored(token, name, 60), 0);
    put_in(h, "DELETE", CLIENTS "/c", "", 200);
}

int main(void)
{
#define T(f) cmocka_unit_test(f)
    const struct CMUnitTest tests[] = {
        T(a_token_names_its_user_and_groups),
        T(a_token_that_is_not_valid_is_401_with_one_body),
        T(a_token_ends),
        T(tokens_come_by_websocket_protocol_and_query_too),
        T(each_user_sees_and_deletes_own_tokens),
        T(scopes_leave_a_part_of_all_rights),
        T(scopes_add_no_rights),
        T(a_review_asks_with_scopes),
        T(rules_are_those_that_both_lists_give),
        T(scopes_hide_projects),
        T(a_deleted_token_leaves_nothing),
        T(a_watch_ends_when_its_token_ends),
        T(a_wait_for_a_rollout_ends_when_its_token_ends),
        T(a_token_has_ended_when_one_of_its_objects_has),
        T(a_use_moves_the_end_by_inactivity),
        T(a_client_whose_tokens_no_longer_end_by_inactivity),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
