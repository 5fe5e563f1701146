/* SPDX-License-Identifier: Apache-2.0 */
/* Decisions of the controller side of a CSI driver: pure functions. */
#include "kubelet/storage/csi_provision.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "json_text.h"

#define CLAIM(notes, spec)                                                                   \
    "{'metadata': {'name': 'data', 'namespace': 'red', 'uid': 'u-1', 'annotations': {" notes \
    "}}, "                                                                                   \
    "'spec': {'accessModes': ['ReadWriteOnce'], 'resources': {'requests': {'storage': "      \
    "'2Mi'}}" spec "}}"
#define MADE_BY "'volume.kubernetes.io/storage-provisioner': 'a.csi'"
#define CLASS(rest) "{'metadata': {'name': 'fast'}, 'provisioner': 'a.csi'" rest "}"

static void a_claim_is_due_when_the_binder_names_the_driver(void **state)
{
    static const struct {
        const char *claim, *class;
        bool due;
    } cases[] = {
        {CLAIM(MADE_BY, ""), CLASS(""), true},
        {CLAIM("'volume.beta.kubernetes.io/storage-provisioner': 'a.csi'", ""), CLASS(""), true},
        {CLAIM("", ""), CLASS(""), false},
        {CLAIM("'volume.kubernetes.io/storage-provisioner': 'b.csi'", ""), CLASS(""), false},
        {CLAIM(MADE_BY, ""), "{'provisioner': 'b.csi'}", false},
        {CLAIM(MADE_BY, ", 'volumeName': 'pv'"), CLASS(""), false},
        {CLAIM(MADE_BY, ""), CLASS(", 'volumeBindingMode': 'WaitForFirstConsumer'"), false},
        {CLAIM(MADE_BY ", 'volume.kubernetes.io/selected-node': 'n1'", ""),
         CLASS(", 'volumeBindingMode': 'WaitForFirstConsumer'"), true},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(json_free) struct json *claim = from(cases[i].claim);
        CLEANUP(json_free) struct json *class = from(cases[i].class);
        assert_int_equal(csi_claim_is_due(claim, class, "a.csi"), cases[i].due);
    }
}

static void secrets_of_a_class_are_templates(void **state)
{
#define P "csi.storage.k8s.io/provisioner-secret-"
    static const struct {
        const char *parameters, *want; /* NULL: refused. */
        const char *error;
    } cases[] = {
        {"{}", "none", NULL},
        {"{'" P "name': 's-${pvc.name}', '" P "namespace': '${pvc.namespace}'}",
         "{'name': 's-data', 'namespace': 'red'}", NULL},
        {"{'" P "name': '${pv.name}', '" P "namespace': 'x'}",
         "{'name': 'pvc-u-1', 'namespace': 'x'}", NULL},
        {"{'" P "name': 's'}", NULL, "the class's parameter " P "namespace is missing"},
        {"{'" P "namespace': 's'}", NULL, "the class's parameter " P "name is missing"},
        {"{'" P "name': '${pvc.annotations}', '" P "namespace': 'x'}", NULL,
         "the class's parameter " P "name: unknown template in ${pvc.annotations}"},
    };
    CLEANUP(json_free) struct json *claim = from(CLAIM("", ""));
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(json_free) struct json *class = json_object();
        json_set(class, "parameters", from(cases[i].parameters));
        CLEANUP(json_free) struct json *ref = NULL;
        struct err e = {0};
        int r = csi_class_secret(class, CSI_SECRET_PROVISION, claim, &ref, &e);
        if (!cases[i].want) {
            assert_int_equal(r, -EINVAL);
            assert_string_equal(e.text, cases[i].error);
        } else if (streq(cases[i].want, "none")) {
            assert_true(r == 0 && !ref);
        } else {
            assert_int_equal(r, 0);
            assert_json(ref, cases[i].want);
        }
    }
}

static void a_request_has_the_drivers_parameters_alone(void **state)
{
    CLEANUP_PB_STORE struct pb_store store = PB_STORE_INIT(CSI_STORE_MAX);
    CLEANUP(json_free) struct json *claim = from(CLAIM(MADE_BY, ""));
    CLEANUP(json_free)
    struct json *class = from(CLASS(", 'mountOptions': ['noatime'], 'parameters': {'kind': 'ssd', "
                                    "'csi.storage.k8s.io/fstype': 'xfs'}"));
    CLEANUP(json_free) struct json *place = from("{'zone': 'a'}");
    struct csi_create_volume q;
    struct err e = {0};
    assert_int_equal(csi_create_make(&store, claim, class, NULL, place, &q, &e), 0);
    assert_string_equal(q.name, "pvc-u-1");
    assert_int_equal(q.required_bytes, 2 << 20);
    assert_int_equal(q.parameters.n, 1);
    assert_string_equal(q.parameters.v[0].value, "ssd");
    assert_string_equal(q.capabilities[0].fs_type, "xfs");
    assert_string_equal(q.capabilities[0].flags.v[0], "noatime");
    assert_int_equal(q.capabilities[0].mode, CSI_SINGLE_NODE_WRITER);
    assert_true(q.has_topology && q.n_requisite == 1);
    assert_string_equal(q.requisite[0].segments.v[0].key, "zone");
    CLEANUP(json_free) struct json *chosen = from(CLAIM(MADE_BY, ", 'selector': {}"));
    assert_int_equal(csi_create_make(&store, chosen, class, NULL, NULL, &q, &e), -EOPNOTSUPP);
    CLEANUP(json_free) struct json *copy = from(CLAIM(MADE_BY, ", 'dataSource': {'name': 'x'}"));
    assert_int_equal(csi_create_make(&store, copy, class, NULL, NULL, &q, &e), -EOPNOTSUPP);
    CLEANUP(json_free) struct json *empty = json_object();
    assert_int_equal(csi_create_make(&store, empty, class, NULL, NULL, &q, &e), -EINVAL);
}

static void an_answer_becomes_a_volume_or_is_refused(void **state)
{
    static const struct runtime_pair context[] = {{"k", "v"}}, zone[] = {{"zone", "a"}},
                                     bad[] = {{"zone", "not a label"}};
    static const struct csi_topology places[] = {{{zone, 1}}}, bad_places[] = {{{bad, 1}}};
    CLEANUP(json_free) struct json *claim = from(CLAIM(MADE_BY, ""));
    CLEANUP(json_free)
    struct json *class =
        from(CLASS(", 'parameters': {'csi.storage.k8s.io/node-stage-secret-name': 's', "
                   "'csi.storage.k8s.io/node-stage-secret-namespace': 'x', "
                   "'csi.storage.k8s.io/provisioner-secret-name': 'p', "
                   "'csi.storage.k8s.io/provisioner-secret-namespace': 'y'}"));
    struct csi_volume v = {.capacity_bytes = 4 << 20,
                           .id = "id-1",
                           .context = {context, 1},
                           .topology = places,
                           .n_topology = 1};
    CLEANUP(json_free) struct json *pv = NULL;
    struct err e = {0};
    assert_int_equal(csi_volume_make(claim, class, "a.csi", &v, &pv, &e), 0);
    assert_json(pv,
                "{'apiVersion': 'v1', 'kind': 'PersistentVolume', 'metadata': {'name': 'pvc-u-1', "
                "'annotations': {'pv.kubernetes.io/provisioned-by': 'a.csi', "
                "'volume.kubernetes.io/provisioner-deletion-secret-name': 'p', "
                "'volume.kubernetes.io/provisioner-deletion-secret-namespace': 'y'}}, 'spec': {"
                "'capacity': {'storage': '4194304'}, 'accessModes': ['ReadWriteOnce'], "
                "'persistentVolumeReclaimPolicy': 'Delete', 'storageClassName': 'fast', "
                "'volumeMode': 'Filesystem', 'csi': {'driver': 'a.csi', 'volumeHandle': 'id-1', "
                "'fsType': 'ext4', 'volumeAttributes': {'k': 'v'}, 'nodeStageSecretRef': {'name': "
                "'s', 'namespace': 'x'}}, 'nodeAffinity': {'required': {'nodeSelectorTerms': [{"
                "'matchExpressions': [{'key': 'zone', 'operator': 'In', 'values': ['a']}]}]}}, "
                "'claimRef': {'apiVersion': 'v1', 'kind': 'PersistentVolumeClaim', 'namespace': "
                "'red', 'name': 'data', 'uid': 'u-1'}}}");
    CLEANUP(json_free) struct json *secret = csi_deletion_secret(pv);
    assert_json(secret, "{'name': 'p', 'namespace': 'y'}");
    json_set_string(json_ensure_object(pv, "status"), "phase", "Released");
    assert_true(csi_volume_is_to_go(pv, "a.csi"));
    assert_false(csi_volume_is_to_go(pv, "b.csi"));
    struct json *none = NULL;
    v.capacity_bytes = 1;
    assert_int_equal(csi_volume_make(claim, class, "a.csi", &v, &none, &e), -EINVAL);
    assert_string_equal(e.text, "CreateVolume: the volume is smaller than what was asked for");
    v.capacity_bytes = 0;
    v.id = "";
    assert_int_equal(csi_volume_make(claim, class, "a.csi", &v, &none, &e), -EINVAL);
    assert_string_equal(e.text, "CreateVolume: the volume has no id");
    v.id = "id-1";
    v.topology = bad_places;
    assert_int_equal(csi_volume_make(claim, class, "a.csi", &v, &none, &e), -EINVAL);
    assert_null(none);
}

static void nodes_are_known_by_their_csinode(void **state)
{
    CLEANUP(json_free)
    struct json *csinode = from("{'spec': {'drivers': [{'name': 'a.csi', 'nodeID': 'x', "
                                "'topologyKeys': ['zone', 'rack']}]}}");
    CLEANUP(json_free) struct json *node = from("{'metadata': {'labels': {'zone': 'a'}}}");
    CLEANUP(json_free) struct json *labels = csi_node_topology(csinode, node, "a.csi");
    assert_string_equal(csi_node_id(csinode, "a.csi"), "x");
    assert_null(csi_node_id(csinode, "b.csi"));
    assert_json(labels, "{'zone': 'a'}");
    assert_null(csi_node_topology(csinode, node, "b.csi"));
    CLEANUP_FREE char *finalizer = csi_attach_finalizer("a.csi");
    assert_string_equal(finalizer, "external-attacher/a.csi");
    CLEANUP(json_free) struct json *failed = csi_attach_status(NULL, "no", "2026-01-01T00:00:00Z");
    assert_json(failed, "{'attached': false, 'attachError': {'message': 'no', 'time': "
                        "'2026-01-01T00:00:00Z'}}");
}

static void a_bound_claim_that_asks_for_more_grows(void **state)
{
    static const struct {
        const char *phase, *uid, *has;
        int64_t want;
    } cases[] = {{"Bound", "u-1", "1Mi", 2 << 20},
                 {"Bound", "u-1", "2Mi", 0},
                 {"Bound", "u-1", "3Mi", 0},
                 {"Pending", "u-1", "1Mi", 0},
                 {"Bound", "other", "1Mi", 0}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(json_free) struct json *claim = from(CLAIM("", ""));
        CLEANUP_FREE char *text =
            xasprintf("{'spec': {'csi': {'driver': 'a.csi'}, 'capacity': {'storage': '%s'}, "
                      "'claimRef': {'uid': '%s'}}}",
                      cases[i].has, cases[i].uid);
        CLEANUP(json_free) struct json *pv = from(text);
        json_set_string(json_ensure_object(claim, "status"), "phase", cases[i].phase);
        assert_int_equal(csi_growth_of(claim, pv, "a.csi"), cases[i].want);
        assert_int_equal(csi_growth_of(claim, pv, "b.csi"), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_claim_is_due_when_the_binder_names_the_driver),
        cmocka_unit_test(secrets_of_a_class_are_templates),
        cmocka_unit_test(a_request_has_the_drivers_parameters_alone),
        cmocka_unit_test(an_answer_becomes_a_volume_or_is_refused),
        cmocka_unit_test(nodes_are_known_by_their_csinode),
        cmocka_unit_test(a_bound_claim_that_asks_for_more_grows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
