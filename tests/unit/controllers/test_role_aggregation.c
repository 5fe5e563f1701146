/* SPDX-License-Identifier: Apache-2.0 */
/* Selection of roles for aggregation, and the controller that keeps aggregated roles up to date. */
#include "controllers/security/role_aggregation.h"

#include "front.h"
#include "json_text.h"
#include "rig.h"

#define ROLES "/apis/rbac.authorization.k8s.io/v1/clusterroles"

static struct harness *h;
static struct api_client *client;

static int set_up(void **state)
{
    h = harness_new(NULL, NULL);
    client = rig_client(h);
    return 0;
}

static int tear_down(void **state)
{
    api_client_free(client);
    harness_free(h);
    return 0;
}

static void selectors_follow_the_rules_of_label_selectors(void **state)
{
#define LABELS(key, value) "{'matchLabels': {'" key "': '" value "'}}"
#define EXPRESSION(more) "{'matchExpressions': [{" more "}]}"
    static const struct {
        const char *selectors,
            *rules; /* Rules 1, 2 and 3 are those of a (x=1, y=2), b (x=2) and c (no labels). */
    } cases[] = {
        {LABELS("x", "1"), "[1]"},
        {LABELS("x", "2"), "[2]"},
        {LABELS("z", "1"), "[]"},
        {"{'matchLabels': {'x': '1', 'y': '2'}}", "[1]"},
        {"{'matchLabels': {'x': '1', 'y': '3'}}", "[]"},
        {"{'matchLabels': {'x': '2', 'y': '2'}}", "[]"},
        {LABELS("x", "2") "," LABELS("x", "1"), "[2, 1]"},
        {LABELS("x", "1") "," LABELS("y", "2"), "[1]"},
        {"{}", "[1, 2, 3]"},
        {EXPRESSION("'key': 'x', 'operator': 'In', 'values': ['1', '3']"), "[1]"},
        {EXPRESSION("'key': 'x', 'operator': 'In', 'values': ['3', '2']"), "[2]"},
        {EXPRESSION("'key': 'x', 'operator': 'In', 'values': []"), "[]"},
        {EXPRESSION("'key': 'x', 'operator': 'NotIn', 'values': ['1']"), "[2, 3]"},
        {EXPRESSION("'key': 'x', 'operator': 'NotIn', 'values': ['1', '2']"), "[3]"},
        {EXPRESSION("'key': 'y', 'operator': 'Exists'"), "[1]"},
        {EXPRESSION("'key': 'y', 'operator': 'DoesNotExist'"), "[2, 3]"},
        {EXPRESSION("'key': 'y', 'operator': 'Other'"), "[]"},
        {EXPRESSION("'key': 'y'"), "[]"},
        {EXPRESSION("'operator': 'DoesNotExist'"), "[]"},
        {"{'matchExpressions': [{'key': 'x', 'operator': 'Exists'},"
         "{'key': 'y', 'operator': 'DoesNotExist'}]}",
         "[2]"},
        {"{'matchLabels': {'x': '1'}, 'matchExpressions': [{'key': 'y', 'operator':"
         "'DoesNotExist'}]}",
         "[]"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *text =
            xasprintf("[{'metadata': {'name': 'a', 'labels': {'x': '1', 'y': '2'}}, 'rules': [1]},"
                      "{'metadata': {'name': 'all', 'labels': {'x': '1'}}, 'rules': [9],"
                      "'aggregationRule': {'clusterRoleSelectors': [%s]}},"
                      "{'metadata': {'name': 'b', 'labels': {'x': '2'}}, 'rules': [2]},"
                      "{'metadata': {'name': 'c'}, 'rules': [3, 3]}]",
                      cases[i].selectors);
        CLEANUP(json_free) struct json *roles = from(text);
        CLEANUP(json_free) struct json *rules = role_aggregation_rules(json_at(roles, 1), roles);
        CLEANUP(json_free) struct json *want = from(cases[i].rules);
        if (!json_equal(rules, want)) {
            CLEANUP_FREE char *got = json_to_text(rules);
            fail_msg("%s: %s", cases[i].selectors, got);
        }
    }
}

static void make(const char *name, const char *labels, const char *rest)
{
    CLEANUP_FREE char *body =
        xasprintf("{'metadata': {'name': '%s', 'labels': {%s}}, %s}", name, labels, rest);
    put_in(h, "POST", ROLES, body, 201);
}

#define RULES(verb) "'rules': [{'verbs': ['" verb "'], 'apiGroups': [''], 'resources': ['pods']}]"
#define GATHERS "'aggregationRule': {'clusterRoleSelectors': [{'matchLabels': {'to': 'all'}}]}"

static void aggregated_rules_follow_the_selected_roles(void **state)
{
    make("z", "'to': 'all'", RULES("get"));
    make("m", "'to': 'all'", RULES("list"));
    make("other", "'to': 'none'", RULES("delete"));
    make("all", "", "'rules': [], " GATHERS);
    make("none", "",
         "'rules': [], 'aggregationRule': {'clusterRoleSelectors': [{'matchLabels':"
         "{'to': 'nobody'}}]}");
    make("stale", "",
         RULES("*") ", 'aggregationRule': {'clusterRoleSelectors': [{'matchLabels':"
                    "{'to': 'nobody'}}]}");
    struct rig_controller *a = rig_start(h, client, &role_aggregation_controller, NULL);
    /* Rules are sorted by the names of their roles. */
    rig_expect(h, ROLES "/all", "rules.0.verbs.0", "list");
    rig_expect(h, ROLES "/all", "rules.1.verbs.0", "get");
    rig_expect(h, ROLES "/all", "rules.2.verbs.0", "");
    rig_expect(h, ROLES "/stale", "rules.0.verbs.0", "");
    CLEANUP_FREE char *before = rig_text(h, ROLES "/all");
    /* A role is added, changed, deleted. */
    make("a", "'to': 'all'", RULES("watch"));
    rig_expect(h, ROLES "/all", "rules.0.verbs.0", "watch");
    put_in(h, "PUT", ROLES "/z",
           "{'metadata': {'name': 'z', 'labels': {'to': 'all'}}, " RULES("patch") "}", 200);
    rig_expect(h, ROLES "/all", "rules.2.verbs.0", "patch");
    put_in(h, "DELETE", ROLES "/m", NULL, 200);
    rig_expect(h, ROLES "/all", "rules.1.verbs.0", "patch");
    rig_expect(h, ROLES "/all", "rules.2.verbs.0", "");
    /* A manual change of an aggregated role is reverted. */
    put_in(h, "PUT", ROLES "/all", "{'metadata': {'name': 'all'}, " RULES("*") ", " GATHERS "}",
           200);
    rig_expect(h, ROLES "/all", "rules.0.verbs.0", "watch");
    rig_expect(h, ROLES "/other", "rules.0.verbs.0", "delete");
    /* A role that is up to date is not written. */
    CLEANUP_FREE char *settled = rig_text(h, ROLES "/none");
    CLEANUP_ANSWER struct answer none = ask(h, "GET", ROLES "/none", NULL);
    assert_string_equal(at(&none, "metadata.managedFields.1.manager"), "");
    CLEANUP_FREE char *all = rig_text(h, ROLES "/all");
    make("b", "'to': 'others'", RULES("get"));
    make("c", "'to': 'all'", RULES("deletecollection"));
    rig_expect(h, ROLES "/all", "rules.1.verbs.0", "deletecollection");
    CLEANUP_FREE char *still = rig_text(h, ROLES "/none");
    assert_string_equal(settled, still);
    /* A write that fails is tried again. */
    rig_refuse(h, false);
    rig_plant(h, "rbac.authorization.k8s.io", "clusterroles", "d",
              "{'kind': 'ClusterRole', 'apiVersion': 'rbac.authorization.k8s.io/v1', 'metadata': {"
              "'name': 'd', 'uid': 'u', 'labels': {'to': 'all'}}, " RULES("create") "}");
    rig_recover(h);
    rig_expect(h, ROLES "/all", "rules.2.verbs.0", "create");
    rig_stop(a);
}

/* A role that is gone, or whose rules were accepted, is not written again before the watch says
 * so. */
static void a_write_is_repeated_only_after_an_error(void **state)
{
#define GATHERS_PARTS \
    "'rules': [], 'aggregationRule': {'clusterRoleSelectors': [{'matchLabels': {'of': 'parts'}}]}"
    struct front *f = front_new(h);
    struct api_client *c = front_client(f);
    make("part", "'of': 'parts'", RULES("get"));
    make("absent", "", GATHERS_PARTS);
    make("accepted", "", GATHERS_PARTS);
    make("failing", "", GATHERS_PARTS);
    front_answer(f, "PUT", ROLES "/absent", 404, "NotFound", 1);
    front_answer(f, "PUT", ROLES "/accepted", 200, "", 1);
    front_answer(f, "PUT", ROLES "/failing", 500, "InternalError", 5);
    front_answer(f, "PUT", ROLES "/failing", 200, "", 1);
    struct rig_controller *a = rig_start(h, c, &role_aggregation_controller, NULL);
    /* Five retries take longer than the first one of each of the others would. */
    front_expect(f, "PUT", ROLES "/failing", 6);
    front_expect(f, "PUT", ROLES "/absent", 1);
    front_expect(f, "PUT", ROLES "/accepted", 1);
    rig_stop(a);
    api_client_free(c);
    front_free(f);
}

#define T(name) cmocka_unit_test(name)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(selectors_follow_the_rules_of_label_selectors),
        T(aggregated_rules_follow_the_selected_roles),
        T(a_write_is_repeated_only_after_an_error),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
