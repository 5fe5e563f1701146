/* SPDX-License-Identifier: Apache-2.0 */
/* The audit log: contents of its lines, mode and rotation of its file, and behaviour on
 * a slow or full disk. */
#include "apiserver/access/audit.h"
#include "apiserver/access/security.h"
#include "apiserver/request/server_priv.h"
#include "base/timeutil.h"
#include "harness.h"
#include "net/loop/process.h"

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define RED "/api/v1/namespaces/red/"

static struct harness *h;
static struct audit_log *audit;
static char dir[64];
static char *path, *policy;

static int set_up(void **state)
{
    h = harness_new_secure((struct apiserver_security){.anonymous = true});
    harness_listen_tls(h);
    free(make_namespace(h, "red"));
    put_in(h, "POST", RED "serviceaccounts", "{'metadata': {'name': 'robot'}}", 201);
    return 0;
}

static int tear_down(void **state)
{
    harness_free(h);
    return 0;
}

static int new_dir(void **state)
{
    snprintf(dir, sizeof dir, "/tmp/tenet-audit-XXXXXX");
    assert_non_null(mkdtemp(dir));
    path = xasprintf("%s/audit.log", dir);
    policy = xasprintf("%s/policy.yaml", dir);
    return 0;
}

static void stop(void)
{
    h->api->security->audit = NULL;
    audit = audit_log_close(audit);
}

static int remove_dir(void **state)
{
    stop();
    free(path);
    free(policy);
    return dir_remove(dir, NULL);
}

static void write_policy(const char *text)
{
    assert_int_equal(file_write_atomic(policy, text, strlen(text), 0600, NULL), 0);
}

/* Opens the log, with a policy of these members (YAML; NULL: no policy). */
static void start(const char *rules, uint64_t max_size, unsigned max_backups)
{
    struct err e = {0};
    if (rules) {
        CLEANUP_FREE char *text = xasprintf("apiVersion: audit.k8s.io/v1\nkind: Policy\n%s", rules);
        write_policy(text);
    }
    struct audit_config cfg = {.path = path,
                               .policy_file = rules ? policy : NULL,
                               .max_size = max_size,
                               .max_backups = max_backups};
    if (audit_log_open(h->loop, &cfg, &audit, &e) < 0) {
        fail_msg("%s", e.text);
    }
    h->api->security->audit = audit;
}

/* The lines of a file as an array; owned. */
static struct json *lines_of(const char *file)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    struct json *list = json_array();
    assert_int_equal(file_read(file, 64 << 20, &b, NULL), 0);
    for (char *p = b.data; p && *p;) {
        char *end = strchr(p, '\n');
        struct json *v = NULL;
        assert_non_null(end);
        assert_int_equal(json_parse(p, (size_t) (end - p), &v, NULL), 0);
        json_append(list, v);
        p = end + 1;
    }
    return list;
}

static struct json *finish(void)
{
    stop();
    return lines_of(path);
}

/* The string or number at the dotted path of the i-th line; "" when there is none. */
static const char *of(const struct json *lines, size_t i, const char *where)
{
    struct answer a = {.body = json_at(lines, i)};
    return at(&a, where);
}

static struct answer raw(const char *target, const char *headers)
{
    CLEANUP_FREE char *text = xasprintf(
        "GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer " HARNESS_TOKEN
        "\r\n%s\r\n",
        target, headers);
    struct answer a = {.text = ask_raw(h, text)};
    assert_true(str_has_prefix(a.text, "HTTP/1.1 "));
    a.status = atoi(a.text + 9);
    return a;
}

static void an_access_token_is_redacted_under_any_escape(void **state)
{
    static const struct {
        const char *query, *want;
    } cases[] = {
        {"?access_token=SECRET", "?access_token=REDACTED"},
        {"?a=b&access_token=SECRET&c=d", "?a=b&access_token=REDACTED&c=d"},
        {"?access_token=SECRET&access_token=SECRET",
         "?access_token=REDACTED&access_token=REDACTED"},
        {"?access%5Ftoken=SECRET", "?access%5Ftoken=REDACTED"},
        {"?%61ccess_token=SECRET&a=b", "?%61ccess_token=REDACTED&a=b"},
        {"?xaccess_token=1&access%5ftoken=SECRET", "?xaccess_token=1&access%5ftoken=REDACTED"},
        {"?access_token=1&access%5ftoken=SECRET", "?access_token=REDACTED&access%5ftoken=REDACTED"},
        {"?access_token", "?access_token=REDACTED"},
        {"?access_toke=n&access_tokens=m&a=%41", "?access_toke=n&access_tokens=m&a=%41"},
        {"?&a=b&", "?&a=b"},
        {"", ""},
    };
    start(NULL, 0, 0);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *target = xasprintf("/api/v1/nodes%s", cases[i].query);
        CLEANUP_ANSWER struct answer a = raw(target, "");
        assert_int_equal(a.status, 200);
    }
    CLEANUP(json_free) struct json *lines = finish();
    assert_int_equal(json_count(lines), ARRAY_SIZE(cases));
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *want = xasprintf("/api/v1/nodes%s", cases[i].want);
        assert_string_equal(of(lines, i, "requestURI"), want);
    }
    CLEANUP_FREE char *text = json_to_text(lines);
    assert_null(strstr(text, "SECRET"));
}

static unsigned mode_of(const char *file)
{
    struct stat st;
    assert_int_equal(stat(file, &st), 0);
    return st.st_mode & 07777;
}

/* Sorted names of the files in the directory, without the policy; owned. */
static struct json *files(void)
{
    struct dirent **names;
    struct json *list = json_array();
    int n = scandir(dir, &names, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        if (names[i]->d_name[0] != '.' && !streq(names[i]->d_name, "policy.yaml")) {
            json_append(list, json_string(names[i]->d_name));
        }
        free(names[i]);
    }
    free(names);
    return list;
}

static void the_file_is_readable_by_its_owner_only(void **state)
{
    mode_t before = umask(0);
    start(NULL, 1, 2);
    assert_int_equal(mode_of(path), 0600);
    for (int i = 0; i < 3; i++) {
        CLEANUP_ANSWER struct answer a = raw("/healthz", "");
    }
    stop();
    CLEANUP(json_free) struct json *list = files();
    for (size_t i = 0; i < json_count(list); i++) {
        CLEANUP_FREE char *file = xasprintf("%s/%s", dir, json_get_string(json_at(list, i)));
        assert_int_equal(mode_of(file), 0600);
    }
    umask(before);
}

/* Waits until the file has 'size' bytes. */
static void settle(size_t size)
{
    struct stat st;
    bool never = false;
    for (int i = 0; i < 4000 && (stat(path, &st) < 0 || (size_t) st.st_size < size); i++) {
        loop_run_until(h->loop, &never, 5);
    }
    assert_true((size_t) st.st_size >= size);
}

/* Waits until the file has 'n' lines. */
static void settle_lines(size_t n)
{
    bool never = false;
    for (int i = 0; i < 4000; i++) {
        CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
        assert_int_equal(file_read(path, 1 << 20, &b, NULL), 0);
        size_t lines = 0;
        for (size_t k = 0; k < b.size; k++) {
            lines += b.data[k] == '\n';
        }
        if (lines >= n) {
            return;
        }
        loop_run_until(h->loop, &never, 5);
    }
    fail_msg("there are not %zu lines", n);
}

/* Whether the process has the file open. */
static bool is_open(const char *file)
{
    struct dirent **names;
    bool found = false;
    int n = scandir("/proc/self/fd", &names, NULL, NULL);
    for (int i = 0; i < n; i++) {
        CLEANUP_FREE char *link = xasprintf("/proc/self/fd/%s", names[i]->d_name);
        char to[256] = "";
        found |= readlink(link, to, sizeof to - 1) > 0 && streq(to, file);
        free(names[i]);
    }
    free(names);
    return found;
}

static void a_full_file_is_rotated_and_the_oldest_are_removed(void **state)
{
    CLEANUP_FREE char *other = xasprintf("%s/audit.other", dir);
    assert_int_equal(file_write_atomic(other, "x", 1, 0600, NULL), 0);
    start(NULL, 1, 2);
    CLEANUP(json_free) struct json *before = NULL;
    for (int i = 0; i < 6; i++) {
        CLEANUP_FREE char *target = xasprintf("/healthz?n=%d", i);
        CLEANUP_ANSWER struct answer a = raw(target, "");
        assert_int_equal(a.status, 200);
        settle(1);
        json_free(before);
        before = files();
        assert_true(json_count(before) <= 4);
    }
    for (size_t i = 1; i < json_count(before); i++) {
        CLEANUP_FREE char *file = xasprintf("%s/%s", dir, json_get_string(json_at(before, i)));
        assert_false(is_open(file));
    }
    stop();
    CLEANUP(json_free) struct json *list = files();
    assert_int_equal(json_count(list),
                     4); /* The current file, two rotated ones, and another file. */
    assert_string_equal(json_get_string(json_at(list, 0)), "audit.log");
    assert_true(str_has_prefix(json_get_string(json_at(list, 1)), "audit.log-20"));
    assert_string_equal(json_get_string(json_at(list, 3)), "audit.other");
    /* The two newest rotated files and the current one have the last three lines. */
    for (size_t i = 0; i < 3; i++) {
        CLEANUP_FREE char *file =
            xasprintf("%s/%s", dir, json_get_string(json_at(list, i == 2 ? 0 : i + 1)));
        CLEANUP(json_free) struct json *lines = lines_of(file);
        CLEANUP_FREE char *want = xasprintf("/healthz?n=%zu", i + 3);
        assert_int_equal(json_count(lines), 1);
        assert_string_equal(of(lines, 0, "requestURI"), want);
    }
}

static void a_file_is_filled_up_to_its_size(void **state)
{
    start(NULL, 0, 0);
    CLEANUP_ANSWER struct answer a = raw("/healthz", "Audit-Id: a\r\n");
    CLEANUP(json_free) struct json *one = finish();
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    assert_int_equal(file_read(path, 1 << 20, &b, NULL), 0);
    /* The limit is the exact size of two lines, then one byte less. */
    for (size_t room = 2 * b.size; room + 1 >= 2 * b.size; room--) {
        assert_int_equal(file_write_atomic(path, b.data, b.size, 0600, NULL), 0);
        start(NULL, room, 5);
        CLEANUP_ANSWER struct answer again = raw("/healthz", "Audit-Id: b\r\n");
        stop();
        CLEANUP(json_free) struct json *list = files();
        bool fits = room >= 2 * b.size;
        assert_int_equal(json_count(list), fits ? 1 : 2);
        CLEANUP(json_free) struct json *lines = lines_of(path);
        assert_int_equal(json_count(lines), fits ? 2 : 1);
    }
}

static void a_line_has_user_request_and_outcome(void **state)
{
    start("rules: [{level: Metadata}]\n", 0, 0);
    int64_t begun = time_wall_ms(), received, staged;
    CLEANUP_ANSWER struct answer a = raw("/apis/apps/v1/namespaces/red/deployments/d/scale?x=y",
                                         "User-Agent: spy/1\r\nImpersonate-User: jane\r\n"
                                         "Impersonate-Group: dev\r\n");
    assert_int_equal(a.status, 403);
    CLEANUP(json_free) struct json *lines = finish();
    assert_int_equal(json_count(lines), 2);
    assert_string_equal(of(lines, 0, "stage"), "RequestReceived");
    assert_string_equal(of(lines, 0, "responseStatus.code"), "");
    assert_string_equal(of(lines, 0, "impersonatedUser.username"), "");
    static const struct {
        const char *where, *want;
    } cases[] = {
        {"kind", "Event"},
        {"apiVersion", "audit.k8s.io/v1"},
        {"level", "Metadata"},
        {"stage", "ResponseComplete"},
        {"requestURI", "/apis/apps/v1/namespaces/red/deployments/d/scale?x=y"},
        {"verb", "get"},
        {"user.username", "system:admin"},
        {"user.groups.0", "system:masters"},
        {"impersonatedUser.username", "jane"},
        {"impersonatedUser.groups.0", "dev"},
        {"sourceIPs.0", "127.0.0.1"},
        {"userAgent", "spy/1"},
        {"objectRef.resource", "deployments"},
        {"objectRef.subresource", "scale"},
        {"objectRef.namespace", "red"},
        {"objectRef.name", "d"},
        {"objectRef.apiGroup", "apps"},
        {"objectRef.apiVersion", "v1"},
        {"responseStatus.code", "403"},
        {"responseStatus.status", "Failure"},
        {"responseStatus.reason", "Forbidden"},
        {"responseStatus.message",
         "deployments.apps \"d\" is forbidden: User \"jane\" cannot get resource "
         "\"deployments/scale\" in API group \"apps\" in the namespace \"red\""},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        assert_string_equal(of(lines, 1, cases[i].where), cases[i].want);
    }
    const struct json *last = json_at(lines, 1);
    const struct json *notes = json_get(last, "annotations");
    assert_string_equal(json_path_string(notes, "authorization.k8s.io/decision", NULL), "forbid");
    assert_string_equal(json_path_string(notes, "authorization.k8s.io/reason", NULL), "");
    assert_null(json_get(last, "requestObject"));
    assert_null(json_get(last, "responseObject"));
    assert_true(json_is(json_path(last, "responseStatus", "metadata", NULL), JSON_OBJECT));
    assert_int_equal(time_parse(of(lines, 1, "requestReceivedTimestamp"), &received), 0);
    assert_int_equal(time_parse(of(lines, 1, "stageTimestamp"), &staged), 0);
    assert_true(begun <= received && received <= staged);
    assert_string_equal(of(lines, 0, "auditID"), of(lines, 1, "auditID"));
    CLEANUP_FREE char *header = xasprintf("\r\nAudit-Id: %s\r\n", of(lines, 0, "auditID"));
    assert_non_null(strstr(a.text, header));
}

static void each_request_is_logged_with_user_and_decision(void **state)
{
    put_in(h, "POST", "/apis/rbac.authorization.k8s.io/v1/namespaces/red/rolebindings",
           "{'metadata': {'name': 'a'}, 'roleRef': {'apiGroup': 'rbac.authorization.k8s.io',"
           "'kind': 'Role', 'name': 'absent'}, 'subjects': [{'kind': 'User',"
           "'apiGroup': 'rbac.authorization.k8s.io', 'name': 'jane'}]}",
           201);
    start(NULL, 0, 0);
    static const char *const wrong[] = {"Authorization", "Bearer wrong", NULL};
    CLEANUP_ANSWER struct answer a = ask(h, "GET", "/api/v1/nodes", NULL);
    CLEANUP_ANSWER struct answer b =
        ask_by(h, &(struct sender){.headers = wrong}, "GET", "/api/v1/nodes", NULL);
    CLEANUP_ANSWER struct answer c =
        ask_by(h, &(struct sender){.tls = true}, "GET", "/api/v1/nodes", NULL);
    CLEANUP_ANSWER struct answer d = ask_as(h, "jane", "GET", RED "pods", NULL, NULL);
    CLEANUP_ANSWER struct answer m = raw("/api/v1/nodes", "Impersonate-Group: dev\r\n");
    CLEANUP_ANSWER struct answer p = raw("/version", "");
    CLEANUP(json_free) struct json *lines = finish();
    assert_int_equal(json_count(lines), 6);
    static const struct {
        const char *user, *code, *decision, *reason, *message;
    } want[] = {
        {"system:admin", "200", "allow", "", ""},
        {"", "401", NULL, NULL, "Unauthorized"},
        {"system:anonymous", "403", "forbid", "", NULL},
        {"system:admin", "403", "forbid",
         "RBAC: role.rbac.authorization.k8s.io \"absent\" not found", NULL},
        {"system:admin", "400", NULL, NULL,
         "requested groups, uid or extra without impersonating a user: the header "
         "Impersonate-User is missing"},
        {"system:admin", "200", "allow", "", ""},
    };
    for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
        const struct json *notes = json_get(json_at(lines, i), "annotations");
        const char *decision = json_path_string(notes, "authorization.k8s.io/decision", NULL);
        const char *reason = json_path_string(notes, "authorization.k8s.io/reason", NULL);
        assert_string_equal(of(lines, i, "user.username"), want[i].user);
        assert_string_equal(of(lines, i, "responseStatus.code"), want[i].code);
        assert_string_equal(decision ? decision : "-", want[i].decision ? want[i].decision : "-");
        assert_string_equal(reason ? reason : "-", want[i].reason ? want[i].reason : "-");
        if (want[i].message) {
            assert_string_equal(of(lines, i, "responseStatus.message"), want[i].message);
        }
    }
    assert_null(json_get(json_at(lines, 5), "objectRef"));
    assert_string_equal(of(lines, 5, "verb"), "get");
    assert_null(json_get(json_at(lines, 5), "userAgent"));
    assert_null(json_path(json_at(lines, 0), "objectRef", "namespace", NULL));
    assert_null(json_path(json_at(lines, 0), "objectRef", "name", NULL));
}

static void a_valid_audit_id_of_the_client_is_kept(void **state)
{
    char longest[65], too_long[66];
    memset(longest, 'a', sizeof longest);
    memset(too_long, 'a', sizeof too_long);
    longest[64] = too_long[65] = '\0';
    const struct {
        const char *id;
        bool taken;
    } cases[] = {{"abc-XYZ-019", true}, {longest, true},     {too_long, false}, {"a b", false},
                 {"a_b", false},        {"<script>", false}, {"", false}};
    start(NULL, 0, 0);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *header = xasprintf("Audit-Id: %s\r\n", cases[i].id);
        CLEANUP_ANSWER struct answer a = raw("/healthz", header);
    }
    CLEANUP(json_free) struct json *lines = finish();
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const char *id = of(lines, i, "auditID");
        assert_int_equal(streq(id, cases[i].id), cases[i].taken);
        if (!cases[i].taken) { /* A UUID of version 4. */
            assert_int_equal(strlen(id), 36);
            assert_int_equal(strspn(id, "0123456789abcdef-"), 36);
            assert_true(id[8] == '-' && id[13] == '-' && id[18] == '-' && id[23] == '-');
            assert_int_equal(id[14], '4');
            assert_non_null(strchr("89ab", id[19]));
        }
    }
    assert_string_not_equal(of(lines, 2, "auditID"), of(lines, 3, "auditID"));
}

static void bodies_follow_the_policy_but_secrets_are_never_written(void **state)
{
#define BODY(more) "{'metadata': {'name': 'b'}" more "}"
    static const struct {
        const char *method, *path, *body, *level;
        bool request, response;
    } cases[] = {
        {"POST", RED "configmaps", BODY(", 'data': {'a': 'HIDDEN'}"), "Metadata", false, false},
        {"POST", RED "secrets", BODY(", 'stringData': {'a': 'HIDDEN'}"), "Metadata", false, false},
        {"GET", RED "secrets", NULL, "Metadata", false, false},
        {"POST", RED "serviceaccounts/robot/token", "{'spec': {'audiences': ['HIDDEN']}}",
         "Metadata", false, false},
        {"POST", "/apis/authentication.k8s.io/v1/tokenreviews", "{'spec': {'token': 'HIDDEN'}}",
         "Metadata", false, false},
        {"POST", "/apis/oauth.openshift.io/v1/oauthaccesstokens", BODY(", 'x': 'HIDDEN'"),
         "Metadata", false, false},
        {"POST", "/apis/example.com/v1/namespaces/red/secrets", BODY(""), "RequestResponse", true,
         true},
        {"POST", RED "serviceaccounts", BODY(", 'secrets': [{'name': 'TOLD'}]"), "RequestResponse",
         true, true},
        {"GET", "/nothing", NULL, "RequestResponse", false, true},
        {"GET", RED "serviceaccounts/b", NULL, "RequestResponse", false, true},
        {"GET", "/api/v1/namespaces/blue/pods", NULL, "Request", false, false},
        {"POST", "/api/v1/namespaces/blue/pods", "{'a': 'b'}", "Request", true, false},
        {"POST", "/api/v1/namespaces/blue/pods", "not JSON", "Request", false, false},
        {"DELETE", RED "serviceaccounts/b", NULL, "RequestResponse", false, true},
    };
    start("omitStages: [RequestReceived]\n"
          "rules: [{level: Request, namespaces: [blue]}, {level: RequestResponse}]\n",
          0, 0);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *body = cases[i].body ? quoted(cases[i].body) : NULL;
        CLEANUP_ANSWER struct answer a = ask(h, cases[i].method, cases[i].path, body);
    }
    CLEANUP(json_free) struct json *lines = finish();
    assert_int_equal(json_count(lines), ARRAY_SIZE(cases));
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const struct json *line = json_at(lines, i);
        if (!streq(of(lines, i, "level"), cases[i].level) ||
            !json_get(line, "requestObject") == cases[i].request ||
            !json_get(line, "responseObject") == cases[i].response) {
            CLEANUP_FREE char *text = json_to_text(line);
            fail_msg("%s %s: %s", cases[i].method, cases[i].path, text);
        }
    }
    assert_string_equal(of(lines, 7, "requestObject.secrets.0.name"), "TOLD");
    assert_string_equal(of(lines, 7, "responseObject.kind"), "ServiceAccount");
    CLEANUP_FREE char *text = json_to_text(lines);
    assert_null(strstr(text, "HIDDEN"));
}

static void stages_and_requests_that_the_policy_omits_are_not_written(void **state)
{
    start("rules: [{level: None, users: ['system:admin'], verbs: [list]},"
          "{level: Metadata, omitStages: [RequestReceived, ResponseComplete]}]\n",
          0, 0);
    CLEANUP_ANSWER struct answer none = raw("/api/v1/nodes", "Audit-Id: mine\r\n");
    assert_non_null(strstr(none.text, "\r\nAudit-Id: mine\r\n"));
    CLEANUP_ANSWER struct answer omitted = raw("/api/v1/nodes/n", "");
    struct watcher *w = watcher_new(h, RED "pods?watch=true", NULL);
    assert_true(w->opened);
    watcher_free(w);
    CLEANUP(json_free) struct json *lines = finish();
    assert_int_equal(json_count(lines), 1);
    assert_string_equal(of(lines, 0, "stage"), "ResponseStarted");
    assert_string_equal(of(lines, 0, "responseStatus.code"), "200");
    assert_string_equal(of(lines, 0, "verb"), "watch");
}

static void a_watch_is_logged_at_its_start_and_end(void **state)
{
    start("rules: [{level: RequestResponse}]\n", 0, 0);
    struct watcher *w = watcher_new(h, RED "pods?watch=true", NULL);
    settle_lines(2);
    watcher_free(w);
    settle_lines(3);
    CLEANUP(json_free) struct json *lines = finish();
    assert_int_equal(json_count(lines), 3);
    for (int i = 0; i < 3; i++) {
        assert_string_equal(of(lines, (size_t) i, "stage"), audit_stage_names[i]);
        assert_string_equal(of(lines, (size_t) i, "objectRef.resource"), "pods");
        assert_null(json_get(json_at(lines, (size_t) i), "requestObject"));
    }
    assert_string_equal(of(lines, 2, "responseStatus.code"), "200");
}

static void a_wrong_policy_keeps_the_previous_one(void **state)
{
    struct err e = {0};
    start("omitStages: [RequestReceived]\nrules: [{level: Metadata}]\n", 0, 0);
    CLEANUP_ANSWER struct answer a = raw("/version", "");
    write_policy("kind: Nothing");
    assert_int_equal(audit_log_reload(audit, &e), -EINVAL);
    assert_non_null(strstr(e.text, policy));
    assert_non_null(strstr(e.text, "is not a Policy of audit.k8s.io/v1"));
    CLEANUP_ANSWER struct answer b = raw("/version", "");
    write_policy("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: None}]\n");
    assert_int_equal(audit_log_reload(audit, &e), 0);
    CLEANUP_ANSWER struct answer c = raw("/version", "");
    CLEANUP(json_free) struct json *lines = finish();
    assert_int_equal(json_count(lines), 2);
}

static void a_log_that_cannot_be_opened_is_refused(void **state)
{
    CLEANUP_FREE char *absent = xasprintf("%s/absent/audit.log", dir);
    struct audit_log *log = NULL;
    struct err e = {0};
    assert_int_equal(audit_log_open(h->loop, &(struct audit_config){.path = absent}, &log, &e),
                     -ENOENT);
    assert_null(log);
    assert_true(str_has_prefix(e.text, absent));
    err_clear(&e);
    struct audit_config cfg = {.path = path, .policy_file = absent};
    assert_int_equal(audit_log_open(h->loop, &cfg, &log, &e), -ENOENT);
    assert_null(log);
    write_policy("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: All}]\n");
    cfg.policy_file = policy;
    assert_int_equal(audit_log_open(h->loop, &cfg, &log, &e), -EINVAL);
    assert_int_equal(access(path, F_OK), -1);
}

/* Whether three requests leave bytes in the file while the size of files is limited to 'size'. */
static bool is_written(rlim_t size)
{
    struct rlimit before;
    struct stat st;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(truncate(path, 0), 0);
    assert_int_equal(
        setrlimit(RLIMIT_FSIZE, &(struct rlimit){.rlim_cur = size, .rlim_max = before.rlim_max}),
        0);
    for (int i = 0; i < 3; i++) {
        CLEANUP_ANSWER struct answer a = raw("/version", "");
        assert_int_equal(a.status, 200);
    }
    h->api->security->audit = NULL;
    audit = audit_log_close(audit);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(stat(path, &st), 0);
    return st.st_size > 0;
}

/* RLIMIT_FSIZE stands for a full disk. */
static void a_full_disk_does_not_stop_requests(void **state)
{
    start(NULL, 0, 0);
    assert_false(is_written(0));
    start(NULL, 0, 0);
    assert_true(is_written(100)); /* Part of a line fits. */
    start(NULL, 0, 0);
    assert_true(is_written(RLIM_INFINITY));
    CLEANUP(json_free) struct json *lines = lines_of(path);
    assert_int_equal(json_count(lines), 3);
}

static void the_file_is_opened_again_after_an_error(void **state)
{
    struct rlimit before;
    start(NULL, 0, 0);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(
        setrlimit(RLIMIT_FSIZE, &(struct rlimit){.rlim_cur = 0, .rlim_max = before.rlim_max}), 0);
    CLEANUP_ANSWER struct answer a = raw("/version", "Audit-Id: lost\r\n");
    bool never = false;
    for (int i = 0; i < 4000 && is_open(path); i++) {
        loop_run_until(h->loop, &never, 5);
    }
    assert_false(is_open(path));
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(unlink(path), 0);
    CLEANUP_ANSWER struct answer b = raw("/version", "Audit-Id: kept\r\n");
    CLEANUP(json_free) struct json *lines = finish();
    assert_int_equal(json_count(lines), 1);
    assert_string_equal(of(lines, 0, "auditID"), "kept");
}

/* A FIFO that the test does not read stands for a slow disk. */
static void a_slow_disk_drops_lines_and_delays_no_request(void **state)
{
    enum { SIZE = 2200000, SENT = 14, KEPT = 1 + AUDIT_QUEUE_MAX / SIZE };
    assert_int_equal(mkfifo(path, 0600), 0);
    int fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    start("omitStages: [RequestReceived]\nrules: [{level: Request}]\n", 0, 0);
    CLEANUP_FREE char *big = xcalloc(1, SIZE + 3);
    memset(big, 'x', SIZE + 2);
    big[0] = big[SIZE + 1] = '"';
    for (int i = 0; i < SENT; i++) {
        CLEANUP_ANSWER struct answer a = ask(h, "POST", "/api/v1/namespaces/red/pods", big);
        assert_int_equal(a.status, 400);
    }
    /* Lines that were kept are whole. */
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    size_t lines = 0;
    bool never = false;
    int idle = 0;
    h->api->security->audit = NULL;
    for (int i = 0; i < 100000 && (lines < KEPT || idle < 20); i++) {
        static char part[1 << 16];
        ssize_t n = read(fd, part, sizeof part);
        for (ssize_t k = 0; k < n; k++) {
            lines += part[k] == '\n';
        }
        if (n > 0) {
            strbuf_add(&b, part, (size_t) n);
            idle = 0;
        } else {
            loop_run_until(h->loop, &never, 5);
            idle++;
        }
    }
    assert_int_equal(lines, KEPT);
    assert_int_equal(b.data[b.size - 1], '\n');
    close(fd);
}

#define T(name) cmocka_unit_test_setup_teardown(name, new_dir, remove_dir)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(an_access_token_is_redacted_under_any_escape),
        T(the_file_is_readable_by_its_owner_only),
        T(a_full_file_is_rotated_and_the_oldest_are_removed),
        T(a_file_is_filled_up_to_its_size),
        T(a_line_has_user_request_and_outcome),
        T(each_request_is_logged_with_user_and_decision),
        T(a_valid_audit_id_of_the_client_is_kept),
        T(bodies_follow_the_policy_but_secrets_are_never_written),
        T(stages_and_requests_that_the_policy_omits_are_not_written),
        T(a_watch_is_logged_at_its_start_and_end),
        T(a_wrong_policy_keeps_the_previous_one),
        T(a_log_that_cannot_be_opened_is_refused),
        T(a_full_disk_does_not_stop_requests),
        T(the_file_is_opened_again_after_an_error),
        T(a_slow_disk_drops_lines_and_delays_no_request),
    };
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
