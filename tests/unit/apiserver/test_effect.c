/* SPDX-License-Identifier: Apache-2.0 */
/* Kinds that nothing acts upon yet: every write says so, or is refused; and putting pods on
 * nodes. */
#include "harness.h"

#include "api/kind.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static int set_up(void **state)
{
    *state = harness_new(NULL, NULL);
    return 0;
}

static int tear_down(void **state)
{
    harness_free(*state);
    return 0;
}

/* The whole answer with its headers; ' in the body is sent as ". */
static char *raw(struct harness *h, const char *method, const char *path, const char *type,
                 const char *body)
{
    CLEANUP_FREE char *json = quoted(body);
    CLEANUP_FREE char *text = xasprintf("%s %s HTTP/1.1\r\nHost: a\r\nContent-Type: %s\r\n"
                                        "Content-Length: %zu\r\nConnection: close\r\n\r\n%s",
                                        method, path, type, strlen(json), json);
    return ask_raw(h, text);
}

/* An object of each kind whose effect is not built, but its name. */
static const struct {
    const char *group, *plural, *body;
} stored[] = {
    {"", "podtemplates",
     "'template':{'metadata':{'labels':{'a':'b'}},'spec':{'containers':[{'name':'c',"
     "'image':'i'}]}}"},
    {"storage.k8s.io", "volumeattributesclasses", "'driverName':'example.com'"},
};

/* The number of the entry for the kind; -1: none. */
static int entry_of(const struct api_kind *k)
{
    for (size_t i = 0; i < ARRAY_SIZE(stored); i++) {
        if (streq(stored[i].group, k->group) && streq(stored[i].plural, k->plural)) {
            return (int) i;
        }
    }
    return -1;
}

static char *path_of(const struct api_kind *k)
{
    return xasprintf("%s%s/%s%s/%s", *k->group ? "/apis/" : "/api", k->group, k->version,
                     k->namespaced ? "/namespaces/default" : "", k->plural);
}

static char *object_of_entry(size_t i)
{
    return xasprintf("{'metadata':{'name':'x'},%s}", stored[i].body);
}

static void expect_warning(const struct api_kind *k, const char *what, const char *answer,
                           const char *status)
{
    CLEANUP_FREE char *want = xasprintf("Warning: 299 - \"stored, not acted upon yet: %s\"\r\n",
                                        k->missing ? k->missing : "");
    if (!str_has_prefix(answer, status) || !strstr(answer, want)) {
        fail_msg("%s of %s: %s", what, k->plural, answer);
    }
}

static void every_write_of_a_kind_without_effect_says_so(void **state)
{
    struct harness *h = *state;
    bool seen[ARRAY_SIZE(stored)] = {0};
    for (size_t i = 0; api_kinds[i]; i++) {
        const struct api_kind *k = api_kinds[i];
        int entry = entry_of(k);
        assert_int_equal(k->effect == API_EFFECT_NONE, entry >= 0);
        if (entry < 0) {
            continue;
        }
        CLEANUP_FREE char *list = path_of(k);
        CLEANUP_FREE char *one = xasprintf("%s/x", list);
        CLEANUP_FREE char *body = object_of_entry((size_t) entry);
        CLEANUP_FREE char *post = raw(h, "POST", list, "application/json", body);
        expect_warning(k, "POST", post, "HTTP/1.1 201");
        CLEANUP_FREE char *patch = raw(h, "PATCH", one, "application/merge-patch+json",
                                       "{'metadata':{'labels':{'l':'v'}}}");
        expect_warning(k, "PATCH", patch, "HTTP/1.1 200");
        CLEANUP_ANSWER struct answer now = ask_ok(h, "GET", one, NULL, 200);
        CLEANUP_FREE char *put = raw(h, "PUT", one, "application/json", now.text);
        expect_warning(k, "PUT", put, "HTTP/1.1 200");
        CLEANUP_FREE char *get = raw(h, "GET", one, "application/json", "");
        CLEANUP_FREE char *again = raw(h, "POST", list, "application/json", body);
        CLEANUP_FREE char *deletion = raw(h, "DELETE", one, "application/json", "");
        assert_true(str_has_prefix(again, "HTTP/1.1 409"));
        assert_null(strstr(get, "Warning: "));
        assert_null(strstr(again, "Warning: "));
        assert_null(strstr(deletion, "Warning: "));
        seen[entry] = true;
    }
    for (size_t i = 0; i < ARRAY_SIZE(stored); i++) {
        assert_true(seen[i]);
    }
}

/* Controllers act upon Deployments: nothing is said. */
static void kinds_with_an_effect_are_silent(void **state)
{
    struct harness *h = *state;
    static const char *const parts[][2] = {{"scale", "{'spec':{'replicas':2}}"},
                                           {"status", "{'status':{'observedGeneration':1}}"}};
    const struct api_kind *k = api_kind_find("apps", "v1", "deployments");
    CLEANUP_FREE char *list = path_of(k);
    put_in(h, "POST", list,
           "{'metadata':{'name':'x'},'spec':{'selector':{'matchLabels':{'a':'b'}},'template':"
           "{'metadata':{'labels':{'a':'b'}},'spec':{'containers':[{'name':'c','image':'i'}]}}}}",
           201);
    for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
        CLEANUP_FREE char *path = xasprintf("%s/x/%s", list, parts[i][0]);
        CLEANUP_FREE char *got = raw(h, "PATCH", path, "application/merge-patch+json", parts[i][1]);
        assert_true(str_has_prefix(got, "HTTP/1.1 200"));
        assert_null(strstr(got, "Warning: "));
    }
    CLEANUP_FREE char *path = xasprintf("%s/x/scale", list);
    CLEANUP_ANSWER struct answer scale = ask_ok(h, "GET", path, NULL, 200);
    assert_string_equal(at(&scale, "status.selector"), "a=b");
}

static const struct api_kind *kind_of(const char *plural)
{
    size_t i = 0;
    while (api_kinds[i] && !streq(api_kinds[i]->plural, plural)) {
        i++;
    }
    assert_non_null(api_kinds[i]);
    return api_kinds[i];
}

static void kinds_on_which_safety_depends_are_refused(void **state)
{
    struct harness *h = *state;
    static const struct {
        const char *plural, *body;
    } rows[] = {
        {"validatingadmissionpolicies", "{'metadata':{'name':'x'},'spec':{'validations':[]}}"},
        {"validatingadmissionpolicybindings",
         "{'metadata':{'name':'x'},'spec':{'policyName':'x','validationActions':['Deny']}}"},
        {"servicecidrs", "{'metadata':{'name':'x'},'spec':{'cidrs':['10.0.0.0/24']}}"},
        {"ipaddresses",
         "{'metadata':{'name':'10.0.0.1'},'spec':{'parentRef':{'resource':'a','name':'b'}}}"},
        {"deviceclasses", "{'metadata':{'name':'x'},'spec':{}}"},
        {"resourceclaims", "{'metadata':{'name':'x'},'spec':{'devices':{}}}"},
        {"resourceclaimtemplates", "{'metadata':{'name':'x'},'spec':{'spec':{'devices':{}}}}"},
        {"resourceslices", "{'metadata':{'name':'x'},'spec':{'driver':'d','pool':{'name':'p'}}}"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        const struct api_kind *k = kind_of(rows[i].plural);
        CLEANUP_FREE char *path = path_of(k);
        CLEANUP_FREE char *one = xasprintf("%s/x", path);
        CLEANUP_FREE char *json = quoted(rows[i].body);
        CLEANUP_ANSWER struct answer post = ask_ok(h, "POST", path, json, 403);
        CLEANUP_ANSWER struct answer put = ask_ok(h, "PUT", one, json, 403);
        CLEANUP_ANSWER struct answer list = ask_ok(h, "GET", path, NULL, 200);
        CLEANUP_ANSWER struct answer applied =
            ask_full(h, "PATCH", one, NULL, "application/apply-patch+yaml", json);
        assert_int_equal(k->effect, API_EFFECT_REFUSED);
        assert_int_equal(applied.status, 403);
        assert_non_null(strstr(at(&post, "message"), "not enforced yet"));
        assert_non_null(strstr(at(&post, "message"), k->missing));
        assert_string_equal(at(&post, "reason"), "Forbidden");
        assert_int_equal(json_count(json_get(list.body, "items")), 0);
    }
    for (size_t i = 0; api_kinds[i]; i++) {
        bool listed = false;
        for (size_t r = 0; r < ARRAY_SIZE(rows); r++) {
            listed |= streq(api_kinds[i]->plural, rows[r].plural);
        }
        assert_int_equal(api_kinds[i]->effect == API_EFFECT_REFUSED, listed);
    }
}

static void component_statuses_are_only_read(void **state)
{
    struct harness *h = *state;
    static const char path[] = "/api/v1/componentstatuses";
    CLEANUP_ANSWER struct answer list = ask_ok(h, "GET", path, NULL, 200);
    CLEANUP_ANSWER struct answer post =
        ask_ok(h, "POST", path, "{\"metadata\":{\"name\":\"x\"}}", 405);
    CLEANUP_ANSWER struct answer watch =
        ask_ok(h, "GET", "/api/v1/componentstatuses?watch=1", NULL, 405);
    CLEANUP_ANSWER struct answer one = ask_ok(h, "GET", "/api/v1/componentstatuses/x", NULL, 404);
    assert_string_equal(at(&list, "kind"), "ComponentStatusList");
}

/* ---- pods on nodes ---- */

#define PODS "/api/v1/namespaces/default/pods"
#define BINDINGS "/api/v1/namespaces/default/bindings"
#define POD(name) \
    "{'metadata':{'name':'" name "'},'spec':{'containers':[{'name':'c','image':'i'}]}}"

static void a_binding_puts_a_pod_on_a_node_once(void **state)
{
    struct harness *h = *state;
    static const char body[] =
        "{'metadata':{'name':'p','annotations':{'example.com/a':'b'}},'target':{'kind':'Node',"
        "'name':'n1'}}";
    put_in(h, "POST", PODS, POD("p"), 201);
    put_in(h, "POST", PODS "/p/binding?dryRun=All", body, 201);
    CLEANUP_FREE char *json = quoted(body);
    CLEANUP_ANSWER struct answer a = ask_ok(h, "POST", PODS "/p/binding", json, 201);
    assert_string_equal(at(&a, "kind"), "Status");
    assert_string_equal(at(&a, "status"), "Success");
    CLEANUP_ANSWER struct answer pod = ask_ok(h, "GET", PODS "/p", NULL, 200);
    assert_string_equal(at(&pod, "spec.nodeName"), "n1");
    assert_string_equal(at(&pod, "status.conditions.0.type"), "PodScheduled");
    assert_string_equal(at(&pod, "status.conditions.0.status"), "True");
    assert_non_null(strstr(pod.text, "\"example.com/a\":\"b\""));
    CLEANUP_ANSWER struct answer again = ask_ok(h, "POST", PODS "/p/binding", json, 409);
    assert_string_equal(at(&again, "message"),
                        "Operation cannot be fulfilled on pods/binding \"p\": pod p is already "
                        "assigned to node \"n1\"");
    assert_string_equal(at(&again, "reason"), "Conflict");
}

static void bindings_of_a_namespace_do_the_same(void **state)
{
    struct harness *h = *state;
    put_in(h, "POST", PODS, POD("q"), 201);
    put_in(h, "POST", BINDINGS, "{'metadata':{'name':'q'},'target':{'name':'n2'}}", 201);
    CLEANUP_ANSWER struct answer pod = ask_ok(h, "GET", PODS "/q", NULL, 200);
    assert_string_equal(at(&pod, "spec.nodeName"), "n2");
    put_in(h, "GET", BINDINGS, "", 405);
}

static void a_wrong_binding_is_refused(void **state)
{
    struct harness *h = *state;
    static const struct {
        const char *path, *body;
        int want;
        const char *says;
    } rows[] = {
        {PODS "/r/binding", "{'target':{'name':'n','kind':'Pod'}}", 422,
         "target.kind: Unsupported value: \"Pod\": supported values: \"Node\", \"<empty>\""},
        {PODS "/r/binding", "{'target':{}}", 422, "target.name: Required value"},
        {PODS "/r/binding", "{'target':{'name':'N'}}", 422, "target.name: Invalid value"},
        {PODS "/r/binding", "{}", 422, "target: Required value"},
        {PODS "/r/binding", "{'metadata':{'name':'s'},'target':{'name':'n'}}", 400,
         "does not match the name on the URL"},
        {PODS "/r/binding", "{'metadata':{'uid':'u'},'target':{'name':'n'}}", 409,
         "UID in precondition: u"},
        {PODS "/none/binding", "{'target':{'name':'n'}}", 404, "pods \"none\" not found"},
        {BINDINGS, "{'target':{'name':'n'}}", 422, "metadata.name: Required value"},
        {PODS "/gated/binding", "{'target':{'name':'n'}}", 409,
         "pod gated has non-empty .spec.schedulingGates"},
        {PODS "/going/binding", "{'target':{'name':'n'}}", 409,
         "pod going is being deleted, cannot be assigned to a host"},
    };
    put_in(h, "POST", PODS, POD("r"), 201);
    put_in(h, "POST", PODS,
           "{'metadata':{'name':'gated'},'spec':{'schedulingGates':[{'name':'example.com/g'}],"
           "'containers':[{'name':'c','image':'i'}]}}",
           201);
    put_in(h, "POST", PODS,
           "{'metadata':{'name':'going','finalizers':['example.com/f']},'spec':{'containers':[{"
           "'name':'c','image':'i'}]}}",
           201);
    CLEANUP_ANSWER struct answer gone = ask(h, "DELETE", PODS "/going", NULL);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP_FREE char *json = quoted(rows[i].body);
        CLEANUP_ANSWER struct answer a = ask(h, "POST", rows[i].path, json);
        if (a.status != rows[i].want || !strstr(at(&a, "message"), rows[i].says)) {
            fail_msg("row %zu: %d %s", i, a.status, a.text);
        }
    }
    CLEANUP_ANSWER struct answer pod = ask_ok(h, "GET", PODS "/r", NULL, 200);
    assert_string_equal(at(&pod, "spec.nodeName"), "");
}

/* The right to bind is no right to change pods. */
static void a_scheduler_needs_the_right_to_bind_alone(void **state)
{
    struct harness *h = harness_new_secure((struct apiserver_security){0});
    put_in(h, "POST", PODS, POD("s"), 201);
    give_rules(h, "default", "sched",
               "{'verbs':['create'],'apiGroups':[''],'resources':['pods/binding']}");
    static const char body[] = "{'target':{'name':'n'}}";
    CLEANUP_ANSWER struct answer other = ask_as(h, "joe", "POST", PODS "/s/binding", NULL, body);
    CLEANUP_ANSWER struct answer list = ask_as(h, "sched", "POST", BINDINGS, NULL,
                                               "{'metadata':{'name':'s'},'target':{'name':'n'}}");
    CLEANUP_ANSWER struct answer patch =
        ask_as(h, "sched", "PATCH", PODS "/s", "application/merge-patch+json",
               "{'spec':{'nodeName':'n'}}");
    CLEANUP_ANSWER struct answer mine = ask_as(h, "sched", "POST", PODS "/s/binding", NULL, body);
    assert_int_equal(other.status, 403);
    assert_int_equal(list.status, 403);
    assert_int_equal(patch.status, 403);
    assert_int_equal(mine.status, 201);
    harness_free(h);
}

/* A pod of the administrator may use what its scheduler may not give.  An editor of pods does not
 * choose its node. */
static void a_privileged_pod_can_be_bound(void **state)
{
    struct harness *h = harness_new_secure((struct apiserver_security){0});
    put_in(h, "POST", PODS,
           "{'metadata':{'name':'t'},'spec':{'hostNetwork':true,'containers':[{'name':'c','image':"
           "'i'}]}}",
           201);
    give_rules(h, "default", "sched",
               "{'verbs':['create'],'apiGroups':[''],'resources':['pods/binding']}");
    give_rules(h, "default", "ed", "{'verbs':['*'],'apiGroups':[''],'resources':['pods']}");
    CLEANUP_ANSWER struct answer moved = ask_as(
        h, "ed", "PATCH", PODS "/t", "application/merge-patch+json", "{'spec':{'nodeName':'n'}}");
    CLEANUP_ANSWER struct answer bad = ask_as(
        h, "sched", "POST", PODS "/t/binding", NULL,
        "{'metadata':{'annotations':{'seccomp.security.alpha.kubernetes.io/pod':'unconfined'}},"
        "'target':{'name':'n'}}");
    CLEANUP_ANSWER struct answer good =
        ask_as(h, "sched", "POST", PODS "/t/binding", NULL, "{'target':{'name':'n'}}");
    assert_int_equal(moved.status, 403);
    assert_int_equal(bad.status, 403);
    assert_int_equal(good.status, 201);
    harness_free(h);
}

#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(every_write_of_a_kind_without_effect_says_so),
        T(kinds_with_an_effect_are_silent),
        T(kinds_on_which_safety_depends_are_refused),
        T(component_statuses_are_only_read),
        T(a_binding_puts_a_pod_on_a_node_once),
        T(bindings_of_a_namespace_do_the_same),
        T(a_wrong_binding_is_refused),
        cmocka_unit_test(a_scheduler_needs_the_right_to_bind_alone),
        cmocka_unit_test(a_privileged_pod_can_be_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
