/* SPDX-License-Identifier: Apache-2.0 */
/* Manifests of static pods, valid and not, and their mirrors. */
#include "pod/manifest.h"
#include "pod/pod.h"

#include "json_text.h"

#define CONTAINERS "'containers': [{'name': 'c', 'image': 'i'}]"
#define POD(spec) \
    "{'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': 'web'}, 'spec': {" spec "}}"

static const struct manifest_source file = {
    .node = "n1", .kind = "file", .path = "/m/web.yaml", .now_ms = 1000};
static const struct manifest_source url = {
    .node = "n1", .kind = "http", .path = "http://m/", .list = true, .now_ms = 1000};

static int read_text(const struct manifest_source *s, const char *text, struct json **ret,
                     struct err *e)
{
    CLEANUP_FREE char *copy = xstrdup(text);
    for (char *p = copy; *p; p++) {
        *p = *p == '\'' ? '"' : *p;
    }
    return manifest_read(s, copy, strlen(copy), ret, e);
}

static struct json *read_ok(const struct manifest_source *s, const char *text)
{
    struct json *pods = NULL;
    struct err e = {0};
    if (read_text(s, text, &pods, &e) < 0) {
        fail_msg("%s: %s", text, e.text);
    }
    return pods;
}

static char *uid_of(const struct manifest_source *s, const char *text)
{
    CLEANUP(json_free) struct json *pods = read_ok(s, text);
    return xstrdup(pod_uid(json_at(pods, 0)));
}

static void a_file_becomes_a_pod_of_its_node(void **state)
{
    CLEANUP(json_free)
    struct json *pods = read_ok(
        &file, "{'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': 'web', 'uid': 'x', "
               "'resourceVersion': '7', 'finalizers': ['a/b'], 'deletionTimestamp': "
               "'2026-01-01T00:00:00Z', 'annotations': {'kubernetes.io/config.mirror': 'x', "
               "'kubernetes.io/config.source': 'api', 'a': 'b'}}, 'spec': {'nodeName': "
               "'n2', " CONTAINERS "}, 'status': {'phase': 'Failed'}}");
    assert_int_equal(json_count(pods), 1);
    const struct json *pod = json_at(pods, 0), *meta = json_get(pod, "metadata");
    assert_string_equal(pod_name(pod), "web-n1");
    assert_string_equal(pod_namespace(pod), "default");
    assert_int_equal(strlen(pod_uid(pod)), 32);
    assert_false(pod_is_deleted(pod));
    assert_null(json_get(meta, "finalizers"));
    assert_null(json_get(meta, "resourceVersion"));
    const struct json *notes = json_get(meta, "annotations");
    assert_null(json_get(notes, POD_NOTE_MIRROR));
    assert_string_equal(json_get_text(notes, POD_NOTE_SOURCE), "file");
    assert_string_equal(json_get_text(notes, POD_NOTE_CONFIG_HASH), pod_uid(pod));
    assert_string_equal(json_get_text(notes, POD_NOTE_SEEN), "1970-01-01T00:00:01Z");
    assert_string_equal(json_get_text(notes, "a"), "b");
    assert_string_equal(json_path_string(pod, "spec", "nodeName", NULL), "n1");
    assert_json(json_path(pod, "spec", "tolerations", NULL),
                "[{'operator': 'Exists', 'effect': 'NoExecute'}]");
    /* The API's defaults, and a status of the file does not count. */
    assert_string_equal(json_path_string(pod, "spec", "restartPolicy", NULL), "Always");
    assert_string_equal(json_path_string(pod, "spec", "dnsPolicy", NULL), "ClusterFirst");
    assert_string_equal(json_path_string(pod, "status", "phase", NULL), "Pending");
    assert_null(manifest_mirror_of(pod));
}

static void yaml_and_json_are_the_same_pod(void **state)
{
    CLEANUP_FREE char *a = uid_of(&file, POD(CONTAINERS));
    CLEANUP_FREE char *b =
        uid_of(&file, "# a comment\napiVersion: v1\nkind: Pod\nmetadata:\n  name: web\n"
                      "spec:\n  containers:\n  - name: c\n    image: i\n");
    assert_string_equal(a, b);
}

static void another_content_node_or_path_is_another_pod(void **state)
{
    struct manifest_source node = file, path = file, kind = file, later = file;
    node.node = "n2";
    path.path = "/m/other.yaml";
    kind.kind = "http";
    later.now_ms = 99000;
    CLEANUP_FREE char *first = uid_of(&file, POD(CONTAINERS));
    CLEANUP_FREE char *text = uid_of(&file, POD(CONTAINERS ", 'restartPolicy': 'Never'"));
    const struct manifest_source *others[] = {&node, &path, &kind};
    assert_string_not_equal(first, text);
    for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
        CLEANUP_FREE char *other = uid_of(others[i], POD(CONTAINERS));
        assert_string_not_equal(first, other);
    }
    CLEANUP_FREE char *again = uid_of(&later, POD(CONTAINERS));
    assert_string_equal(first, again);
}

static void faults_are_named(void **state)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"", "it is empty"},
        {" \n", "it is empty"},
        {"[", "line"},
        {"[1]", "it is no object"},
        {"{'apiVersion': 'v1', 'kind': 'Service'}", "are not v1 and Pod"},
        {"{'apiVersion': 'v2', 'kind': 'Pod'}", "are not v1 and Pod"},
        {"{'apiVersion': 'v1', 'kind': 'Pod', 'spec': {" CONTAINERS "}}",
         "metadata.name: Required value"},
        {"{'apiVersion': 'v1', 'kind': 'Pod', 'metadata': null}", "metadata.name: Required value"},
        {"{'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': 'a/b'}, 'spec': {" CONTAINERS
         "}}",
         "metadata.name: Invalid value"},
        {"{'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': 'a', 'namespace': '../b'}, "
         "'spec': {" CONTAINERS "}}",
         "metadata.namespace"},
        {POD(""), "spec.containers: Required value"},
        {POD("'containers': [{'name': 'c', 'image': 'i', 'colour': 'red'}]"),
         "unknown field \"spec.containers[0].colour\""},
        {POD("'containers': 5"), "containers"},
        {POD("'containers': [{'name': 'c', 'image': 'i'}], 'restartPolicy': 'Sometimes'"),
         "spec.restartPolicy"},
        {POD(CONTAINERS ", 'ephemeralContainers': [{'name': 'e', 'image': 'i'}]"),
         "spec.ephemeralContainers"},
        {POD(CONTAINERS ", 'serviceAccountName': 'a'"), "may not refer to service accounts"},
        {POD(CONTAINERS ", 'serviceAccount': 'a'"), "may not refer to service accounts"},
        {POD(CONTAINERS ", 'imagePullSecrets': [{'name': 'a'}]"), "may not refer to secrets"},
        {POD(CONTAINERS ", 'volumes': [{'name': 'v', 'secret': {'secretName': 's'}}]"),
         "may not refer to secrets"},
        {POD(CONTAINERS ", 'volumes': [{'name': 'v', 'configMap': {'name': 's'}}]"),
         "may not refer to configmaps"},
        {POD("'containers': [{'name': 'c', 'image': 'i', 'envFrom': [{'secretRef': {'name': "
             "'s'}}]}]"),
         "may not refer to secrets"},
        {POD("'containers': [{'name': 'c', 'image': 'i', 'env': [{'name': 'A', 'valueFrom': "
             "{'configMapKeyRef': {'name': 's', 'key': 'k'}}}]}]"),
         "may not refer to configmaps"},
        {POD(CONTAINERS ", 'volumes': [{'name': 'v', 'projected': {'sources': [{'secret': {'name': "
                        "'s'}}]}}]"),
         "may not refer to secrets"},
        {POD(CONTAINERS ", 'volumes': [{'name': 'v', 'projected': {'sources': "
                        "[{'serviceAccountToken': {'path': 't'}}]}}]"),
         "may not refer to tokens"},
        {POD(CONTAINERS
             ", 'volumes': [{'name': 'v', 'persistentVolumeClaim': {'claimName': 's'}}]"),
         "may not refer to persistentVolumeClaims"},
        {POD(CONTAINERS ", 'volumes': [{'name': 'v', 'cephfs': {'monitors': ['m'], 'secretRef': "
                        "{'name': 's'}}}]"),
         "may not refer to secrets"},
        {POD(CONTAINERS ", 'volumes': [{'name': 'v', 'csi': {'driver': 'd.example.com', "
                        "'nodePublishSecretRef': {'name': 's'}}}]"),
         "may not refer to secrets"},
        {"{'apiVersion': 'v1', 'kind': 'List', 'items': []}", "not a list"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct json *pods = NULL;
        struct err e = {0};
        int r = read_text(&file, cases[i].text, &pods, &e);
        if (r != -EINVAL || pods || !strstr(e.text, cases[i].want)) {
            fail_msg("%s: %d \"%s\", not \"%s\"", cases[i].text, r, e.text, cases[i].want);
        }
    }
}

static void an_url_has_a_pod_or_a_list(void **state)
{
    CLEANUP(json_free) struct json *one = read_ok(&url, POD(CONTAINERS));
    assert_int_equal(json_count(one), 1);
    CLEANUP(json_free)
    struct json *none = read_ok(&url, "{'apiVersion': 'v1', 'kind': 'List', 'items': []}");
    assert_int_equal(json_count(none), 0);
    CLEANUP(json_free)
    struct json *two = read_ok(
        &url, "{'apiVersion': 'v1', 'kind': 'PodList', 'items': [{'metadata': {'name': 'a'}, "
              "'spec': {" CONTAINERS "}}, {'metadata': {'name': 'b'}, 'spec': {" CONTAINERS "}}]}");
    assert_int_equal(json_count(two), 2);
    assert_string_equal(pod_name(json_at(two, 1)), "b-n1");
    struct json *pods = NULL;
    struct err e = {0};
    assert_int_equal(read_text(&url,
                               "{'apiVersion': 'v1', 'kind': 'List', 'items': [" POD(
                                   CONTAINERS) ", {'apiVersion': 'v1', 'kind': 'Secret'}]}",
                               &pods, &e),
                     -EINVAL);
    assert_non_null(strstr(e.text, "items[1]"));
    assert_int_equal(read_text(&url, "{'apiVersion': 'v1', 'kind': 'List', 'items': 5}", &pods, &e),
                     -EINVAL);
    assert_int_equal(
        read_text(&url, "{'apiVersion': 'v1', 'kind': 'List', 'items': [5]}", &pods, &e), -EINVAL);
    assert_null(pods);
}

static void a_mirror_belongs_to_the_node(void **state)
{
    CLEANUP(json_free) struct json *pods = read_ok(&file, POD(CONTAINERS));
    const struct json *pod = json_at(pods, 0);
    CLEANUP(json_free) struct json *m = manifest_mirror(pod, "n1", "node-uid");
    assert_string_equal(manifest_mirror_of(m), pod_uid(pod));
    assert_string_equal(pod_name(m), "web-n1");
    assert_string_equal(pod_uid(m), "");
    assert_null(json_get(m, "status"));
    assert_true(json_equal(json_get(m, "spec"), json_get(pod, "spec")));
    assert_json(json_path(m, "metadata", "ownerReferences", NULL),
                "[{'apiVersion': 'v1', 'kind': 'Node', 'name': 'n1', 'uid': 'node-uid', "
                "'controller': true}]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_becomes_a_pod_of_its_node),
        cmocka_unit_test(yaml_and_json_are_the_same_pod),
        cmocka_unit_test(another_content_node_or_path_is_another_pod),
        cmocka_unit_test(faults_are_named),
        cmocka_unit_test(an_url_has_a_pod_or_a_list),
        cmocka_unit_test(a_mirror_belongs_to_the_node),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
