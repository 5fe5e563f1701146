/* SPDX-License-Identifier: Apache-2.0 */
/* Impersonation: each header needs a right of its own. */
#include "apiserver/access/security.h"
#include "harness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define WHOAMI "/apis/authentication.k8s.io/v1/selfsubjectreviews"
#define MAX_HEADERS 80

static struct harness *h;

/* Gives the user the right to impersonate what 'rule' (members of a PolicyRule) says,
 * in 'ns' (NULL: everywhere). */
static void give(const char *ns, const char *user, const char *rule)
{
    CLEANUP_FREE char *whole = xasprintf("{'verbs': ['impersonate'], %s}", rule);
    give_rules(h, ns, user, whole);
}

static int set_up(void **state)
{
    h = harness_new_secure((struct apiserver_security){.anonymous = true});
    harness_listen_tls(h);
    free(make_namespace(h, "red"));
    give(NULL, "users", "'apiGroups': [''], 'resources': ['users']");
    give(NULL, "jane-only", "'apiGroups': [''], 'resources': ['users'], 'resourceNames': ['jane']");
    give(NULL, "groups", "'apiGroups': [''], 'resources': ['users', 'groups']");
    give(NULL, "one-group",
         "'apiGroups': [''], 'resources': ['users', 'groups'],"
         "'resourceNames': ['jane', 'dev']");
    give(NULL, "accounts", "'apiGroups': [''], 'resources': ['serviceaccounts']");
    give(NULL, "uids",
         "'apiGroups': ['', 'authentication.k8s.io'], 'resources': ['users', 'uids']");
    give(NULL, "core-uids", "'apiGroups': [''], 'resources': ['users', 'uids', 'userextras']");
    give(NULL, "extras",
         "'apiGroups': ['', 'authentication.k8s.io'],"
         "'resources': ['users', 'userextras/scopes', 'userextras/a/b']");
    give(NULL, "one-extra",
         "'apiGroups': ['', 'authentication.k8s.io'],"
         "'resources': ['users', 'userextras/scopes'],"
         "'resourceNames': ['jane', 'view']");
    give("red", "red-accounts", "'apiGroups': [''], 'resources': ['serviceaccounts']");
    give_self_reviews(h);
    return 0;
}

static int tear_down(void **state)
{
    harness_free(h);
    return 0;
}

/* Asks for a SelfSubjectReview with a certificate for 'cn' ("master": with the loopback token).
 * Each line of 'lines' is a header whose name lacks the prefix "Impersonate-". */
static struct answer act(const char *cn, const char *lines)
{
    CLEANUP_FREE char *text = xstrdup(lines);
    const char *headers[2 * MAX_HEADERS + 3] = {0};
    char *names[MAX_HEADERS] = {0}, *save = NULL;
    bool master = streq(cn, "master");
    size_t n = 0, at_header = 0;
    if (master) {
        headers[at_header++] = "Authorization";
        headers[at_header++] = "Bearer " HARNESS_TOKEN;
    }
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        char *colon = strchr(line, ':');
        assert_true(n < MAX_HEADERS);
        *colon = '\0';
        names[n] = xasprintf("Impersonate-%s", line);
        headers[at_header++] = names[n++];
        headers[at_header++] = colon + 1;
    }
    struct answer a =
        ask_by(h, &(struct sender){.tls = !master, .cn = master ? NULL : cn, .headers = headers},
               "POST", WHOAMI, "{}");
    while (n) {
        free(names[--n]);
    }
    return a;
}

#define DENIED(resource, user, verb_resource, group, where)                                        \
    "403 " resource "is forbidden: User \"" user "\" cannot impersonate resource \"" verb_resource \
    "\" in API group \"" group "\" " where
#define CLUSTER "at the cluster scope"

static void each_header_needs_its_right(void **state)
{
    static const struct {
        const char *cn, *headers, *want; /* The userInfo, or status and message. */
    } cases[] = {
        {"users", "User:jane\n",
         "{'username':'jane','groups':['system:authenticated','system:authenticated:oauth']}"},
        {"users", "user:jane\n",
         "{'username':'jane','groups':['system:authenticated','system:authenticated:oauth']}"},
        {"joe", "User:jane\n", DENIED("users \"jane\" ", "joe", "users", "", CLUSTER)},
        {"jane-only", "User:jane\n",
         "{'username':'jane','groups':['system:authenticated','system:authenticated:oauth']}"},
        {"jane-only", "User:joe\n", DENIED("users \"joe\" ", "jane-only", "users", "", CLUSTER)},
        {"groups", "User:jane\nGroup:dev\nGroup:ops\n",
         "{'username':'jane','groups':['dev','ops','system:authenticated']}"},
        {"users", "User:jane\nGroup:dev\n",
         DENIED("groups \"dev\" ", "users", "groups", "", CLUSTER)},
        {"users", "User:jane\nGroup:system:masters\n",
         DENIED("groups \"system:masters\" ", "users", "groups", "", CLUSTER)},
        {"one-group", "User:jane\nGroup:dev\n",
         "{'username':'jane','groups':['dev','system:authenticated']}"},
        {"one-group", "User:jane\nGroup:dev\nGroup:ops\n",
         DENIED("groups \"ops\" ", "one-group", "groups", "", CLUSTER)},
        {"one-group", "User:jane\nGroup:ops\nGroup:dev\n",
         DENIED("groups \"ops\" ", "one-group", "groups", "", CLUSTER)},
        {"accounts", "User:system:serviceaccount:red:robot\n",
         "{'username':'system:serviceaccount:red:robot','groups':['system:serviceaccounts',"
         "'system:serviceaccounts:red','system:authenticated']}"},
        {"accounts", "User:jane\n", DENIED("users \"jane\" ", "accounts", "users", "", CLUSTER)},
        {"users", "User:system:serviceaccount:red:robot\n",
         DENIED("serviceaccounts \"robot\" ", "users", "serviceaccounts", "",
                "in the namespace \"red\"")},
        {"red-accounts", "User:system:serviceaccount:red:robot\n",
         "{'username':'system:serviceaccount:red:robot','groups':['system:serviceaccounts',"
         "'system:serviceaccounts:red','system:authenticated']}"},
        {"red-accounts", "User:system:serviceaccount:kube-system:robot\n",
         DENIED("serviceaccounts \"robot\" ", "red-accounts", "serviceaccounts", "",
                "in the namespace \"kube-system\"")},
        {"accounts", "User:system:serviceaccount:red:\n",
         DENIED("users \"system:serviceaccount:red:\" ", "accounts", "users", "", CLUSTER)},
        /* Groups that are given replace the account's own. */
        {"master", "User:system:serviceaccount:red:robot\nGroup:dev\n",
         "{'username':'system:serviceaccount:red:robot','groups':['dev','system:authenticated']}"},
        {"uids", "User:jane\nUid:7\n",
         "{'username':'jane','uid':'7','groups':['system:authenticated','system:authenticated:"
         "oauth']}"},
        {"users", "User:jane\nUid:7\n",
         DENIED("uids.authentication.k8s.io \"7\" ", "users", "uids", "authentication.k8s.io",
                CLUSTER)},
        {"core-uids", "User:jane\nUid:7\n",
         DENIED("uids.authentication.k8s.io \"7\" ", "core-uids", "uids", "authentication.k8s.io",
                CLUSTER)},
        {"extras", "User:jane\nExtra-Scopes:view\nextra-a%2Fb:c\nExtra-scopes:edit\n",
         "{'username':'jane','groups':['system:authenticated','system:authenticated:oauth'],"
         "'extra':{'scopes':['view','edit'],'a/b':['c']}}"},
        {"extras", "User:jane\nExtra-other:view\n",
         DENIED("userextras.authentication.k8s.io \"view\" ", "extras", "userextras/other",
                "authentication.k8s.io", CLUSTER)},
        {"core-uids", "User:jane\nExtra-scopes:view\n",
         DENIED("userextras.authentication.k8s.io \"view\" ", "core-uids", "userextras/scopes",
                "authentication.k8s.io", CLUSTER)},
        {"one-extra", "User:jane\nExtra-scopes:view\n",
         "{'username':'jane','groups':['system:authenticated','system:authenticated:oauth'],'extra'"
         ":{'scopes':['view']}}"},
        {"one-extra", "User:jane\nExtra-scopes:edit\n",
         DENIED("userextras.authentication.k8s.io \"edit\" ", "one-extra", "userextras/scopes",
                "authentication.k8s.io", CLUSTER)},
        /* system:authenticated and system:unauthenticated exclude each other. */
        {"users", "User:system:anonymous\n",
         "{'username':'system:anonymous','groups':['system:unauthenticated']}"},
        {"groups", "User:jane\nGroup:system:unauthenticated\n",
         "{'username':'jane','groups':['system:unauthenticated']}"},
        {"master", "User:jane\nGroup:dev\nUid:1\nExtra-k:v\n",
         "{'username':'jane','uid':'1','groups':['dev','system:authenticated'],"
         "'extra':{'k':['v']}}"},
        /* Malformed. */
        {"master", "Group:dev\n",
         "400 requested groups, uid or extra without impersonating a user: the header "
         "Impersonate-User is missing"},
        {"master", "User:\n",
         "400 requested groups, uid or extra without impersonating a user: the header "
         "Impersonate-User is missing"},
        {"master", "User:jane\nUser:joe\n", "400 more than one header Impersonate-User"},
        {"master", "User:jane\nUser:jane\n", "400 more than one header Impersonate-User"},
        {"master", "User:jane\nGroups:dev\n", "400 the header Impersonate-Groups is not known"},
        {"master", "User:jane\nExtra:dev\n", "400 the header Impersonate-Extra is not known"},
        {"master", "User:jane\nExtra-:dev\n", "400 the header Impersonate-Extra- is malformed"},
        {"master", "User:jane\nExtra-%:dev\n", "400 the header Impersonate-Extra-% is malformed"},
        {"master", "User:jane\nExtra-%2:dev\n", "400 the header Impersonate-Extra-%2 is malformed"},
        {"master", "User:jane\nExtra-%zz:x\n", "400 the header Impersonate-Extra-%zz is malformed"},
        {"master", "User:jane\nExtra-%2z:x\n", "400 the header Impersonate-Extra-%2z is malformed"},
        {"master", "User:jane\nExtra-a%00:x\n",
         "400 the header Impersonate-Extra-a%00 is malformed"},
        {"master", "User:jane\nExtra-a%0A:x\n",
         "400 the header Impersonate-Extra-a%0A is malformed"},
        {"master", "User:jane\nExtra-a%1F:x\n",
         "400 the header Impersonate-Extra-a%1F is malformed"},
        {"master", "User:jane\nExtra-a%7F:x\n",
         "400 the header Impersonate-Extra-a%7F is malformed"},
        {"master", "User:jane\nExtra-a%FF:x\n",
         "400 the header Impersonate-Extra-a%FF is malformed"},
        {"master", "User:jane\nExtra-%20%7e%5A%5b%40Az:x\n",
         "{'username':'jane','groups':['system:authenticated','system:authenticated:oauth'],'extra'"
         ":{' ~z[@az':['x']}}"},
        {"master", "",
         "{'username':'system:admin','groups':['system:masters',"
         "'system:authenticated']}"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_ANSWER struct answer a = act(cases[i].cn, cases[i].headers);
        CLEANUP_FREE char *want =
            cases[i].want[0] == '{' ? quoted(cases[i].want) : xstrdup(cases[i].want);
        CLEANUP_FREE char *got = a.status == 201
                                     ? json_to_text(json_path(a.body, "status", "userInfo", NULL))
                                     : xasprintf("%d %s", a.status, at(&a, "message"));
        if (!streq(got, want)) {
            fail_msg("%s: %s: %s, not %s", cases[i].cn, cases[i].headers, got, want);
        }
    }
}

/* The impersonating user's rights do not count. */
static void only_the_impersonated_users_rights_count(void **state)
{
    static const struct {
        const char *who;
        int status;
    } cases[] = {{"jane", 403}, {"jane dev", 403}, {"jane system:masters", 200}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_ANSWER struct answer a =
            ask_as(h, cases[i].who, "GET", "/api/v1/nodes", NULL, NULL);
        assert_int_equal(a.status, cases[i].status);
    }
}

static void more_than_64_headers_are_refused(void **state)
{
    for (int n = 62; n <= 66; n++) {
        CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
        strbuf_adds(&b, "User:jane\n");
        for (int i = 0; i < n; i++) {
            strbuf_addf(&b, "Group:g%d\n", i);
        }
        CLEANUP_ANSWER struct answer a = act("master", strbuf_cstr(&b));
        assert_int_equal(a.status, n + 1 <= 64 ? 201 : 400);
        if (n + 1 > 64) {
            assert_string_equal(at(&a, "message"), "more than 64 impersonation headers");
        }
    }
}

/* The answer to a request of the master that begins with these header lines; owned. */
static char *ask_with(const char *first)
{
    CLEANUP_FREE char *text =
        xasprintf("POST " WHOAMI " HTTP/1.1\r\n%sHost: x\r\nConnection: close\r\n"
                  "Content-Length: 2\r\nAuthorization: Bearer " HARNESS_TOKEN "\r\n\r\n{}",
                  first);
    return ask_raw(h, text);
}

static void only_the_name_of_a_header_counts(void **state)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    for (int i = 0; i < 70; i++) {
        strbuf_addf(&b, "X-Header-%d: Impersonate-Group\r\n", i);
    }
    strbuf_adds(&b, "Impersonate-User: jane\r\n");
    const struct {
        const char *lines, *want, *says;
    } cases[] = {
        {strbuf_cstr(&b), "HTTP/1.1 201 ", "\"username\":\"jane\""},
        {"Impersonate-User: jane\r\n", "HTTP/1.1 201 ", "\"username\":\"jane\""},
        {"Impersonate-Group: dev\r\nImpersonate-User: jane\r\n", "HTTP/1.1 201 ", "\"dev\""},
        {"Impersonated: x\r\n", "HTTP/1.1 201 ", "\"system:admin\""},
        {"Impersonate: x\r\n", "HTTP/1.1 201 ", "\"system:admin\""},
        {"Impersonate-Group: dev\r\n", "HTTP/1.1 400 ", "is missing"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *text = ask_with(cases[i].lines);
        if (!str_has_prefix(text, cases[i].want) || !strstr(text, cases[i].says)) {
            fail_msg("case %zu: %s", i, text);
        }
    }
}

#define T(name) cmocka_unit_test(name)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(each_header_needs_its_right),
        T(only_the_impersonated_users_rights_count),
        T(more_than_64_headers_are_refused),
        T(only_the_name_of_a_header_counts),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
