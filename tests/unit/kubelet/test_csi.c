/* SPDX-License-Identifier: Apache-2.0 */
/* CSI on the node: messages on the wire, parts of requests, and what a volume needs before it is mounted. */
#include "kubelet/csi/call.h"
#include "kubelet/csi/drivers.h"
#include "kubelet/csi/parts.h"
#include "kubelet/csi/translate.h"
#include "kubelet/volumes/csi_mount.h"
#include "kubelet/volumes/facts.h"
#include "net/loop/process.h"
#include "wire/grpc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "json_text.h"

static void expect_bytes(enum csi_method_id method, const void *request, const char *want,
                         size_t size)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    pb_format(&b, csi_methods[method].request, request);
    assert_int_equal(b.size, size);
    assert_memory_equal(b.data, want, size);
}

/* The bytes are those that the field numbers of csi.proto give. */
static void requests_have_the_field_numbers_of_the_specification(void **state)
{
    static const struct runtime_pair pair[] = {{"k", "v"}};
    static const char *const flags[] = {"ro"};
    struct csi_node_publish q = {.id = "i",
                                 .publish_context = {pair, 1},
                                 .staging_path = "/s",
                                 .target_path = "/t",
                                 .capability = {.is_mount = true,
                                                .fs_type = "xfs",
                                                .flags = {flags, 1},
                                                .group = "",
                                                .mode = 1},
                                 .readonly = true,
                                 .secrets = {pair, 1},
                                 .context = {pair, 1}};
    static const char want[] = "\x0a\x01i"
                               "\x12\x06\x0a\x01k\x12\x01v"
                               "\x1a\x02/s"
                               "\x22\x02/t"
                               "\x2a\x0f\x12\x09\x0a\x03xfs\x12\x02ro\x1a\x02\x08\x01"
                               "\x30\x01"
                               "\x3a\x06\x0a\x01k\x12\x01v"
                               "\x42\x06\x0a\x01k\x12\x01v";
    expect_bytes(CSI_NODE_PUBLISH, &q, want, sizeof want - 1);
    struct csi_controller_expand expand = {
        .id = "i", .required_bytes = 5, .capability = {.is_block = true, .mode = 5}};
    static const char want_expand[] = "\x0a\x01i\x12\x02\x08\x05\x22\x06\x0a\x00\x1a\x02\x08\x05";
    expect_bytes(CSI_CONTROLLER_EXPAND, &expand, want_expand, sizeof want_expand - 1);
}

static void answers_are_read_and_junk_is_refused(void **state)
{
    CLEANUP_PB_STORE struct pb_store store = PB_STORE_INIT(CSI_STORE_MAX);
    static const char info[] = "\x0a\x01n\x10\x07\x1a\x08\x0a\x06\x0a\x01z\x12\x01y";
    struct csi_node_info n;
    struct csi_abilities a;
    assert_int_equal(
        pb_parse(&store, csi_methods[CSI_NODE_GET_INFO].response, info, sizeof info - 1, &n), 0);
    assert_string_equal(n.node_id, "n");
    assert_int_equal(n.max_volumes, 7);
    assert_int_equal(n.topology.segments.n, 1);
    assert_string_equal(n.topology.segments.v[0].value, "y");
    static const char can[] = "\x0a\x04\x0a\x02\x08\x01\x0a\x04\x0a\x02\x08\x03";
    assert_int_equal(
        pb_parse(&store, csi_methods[CSI_NODE_GET_CAPABILITIES].response, can, sizeof can - 1, &a),
        0);
    assert_true(csi_can(&a, CSI_NODE_CAN_STAGE) && csi_can(&a, CSI_NODE_CAN_EXPAND));
    assert_false(csi_can(&a, CSI_NODE_CAN_STATS));
    assert_true(pb_parse(&store, csi_methods[CSI_NODE_GET_INFO].response, "\xff\xff\xff", 3, &n) <
                0);
    /* An answer cannot take more memory than the store has. */
    CLEANUP_PB_STORE struct pb_store small = PB_STORE_INIT(64);
    CLEANUP_STRBUF struct strbuf many = STRBUF_INIT;
    for (int i = 0; i < 1000; i++) {
        strbuf_add(&many, can, 6);
    }
    assert_int_equal(
        pb_parse(&small, csi_methods[CSI_NODE_GET_CAPABILITIES].response, many.data, many.size, &a),
        -EMSGSIZE);
}

static void capabilities_follow_modes_and_check_options(void **state)
{
    static const struct {
        const char *modes, *options;
        bool single_writer;
        int want; /* -1: refused. */
    } cases[] = {
        {"['ReadWriteOnce']", "['noatime']", false, CSI_SINGLE_NODE_WRITER},
        {"['ReadWriteOncePod']", "[]", false, CSI_SINGLE_NODE_WRITER},
        {"['ReadWriteOnce']", "[]", true, CSI_SINGLE_NODE_MULTI_WRITER},
        {"['ReadWriteOncePod']", "[]", true, CSI_SINGLE_NODE_SINGLE_WRITER},
        {"['ReadOnlyMany']", "[]", true, CSI_MULTI_NODE_READER_ONLY},
        {"['ReadWriteMany', 'ReadWriteOnce']", "[]", false, CSI_MULTI_NODE_MULTI_WRITER},
        {"[]", "[]", false, CSI_SINGLE_NODE_WRITER},
        {"['Any']", "[]", false, -1},
        {"[]", "['a,b']", false, -1},
        {"[]", "[1]", false, -1},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_PB_STORE struct pb_store store = PB_STORE_INIT(CSI_STORE_MAX);
        CLEANUP(json_free) struct json *modes = from(cases[i].modes);
        CLEANUP(json_free) struct json *options = from(cases[i].options);
        struct csi_capability c = {0};
        struct err e;
        int r = csi_capability_make(&store, modes, false, "ext4", options, cases[i].single_writer,
                                    &c, &e);
        assert_int_equal(r < 0 ? -1 : c.mode, cases[i].want);
        assert_int_equal(c.is_mount, r == 0);
    }
}

static void secrets_are_decoded_and_errors_do_not_show_them(void **state)
{
    CLEANUP_PB_STORE struct pb_store store = PB_STORE_INIT(CSI_STORE_MAX);
    CLEANUP(json_free) struct json *good = from("{'data': {'pw': 'aHVudGVyMg=='}}");
    CLEANUP(json_free) struct json *bad = from("{'data': {'pw': 'aHVudGVyMg='}}");
    CLEANUP(json_free) struct json *nul = from("{'data': {'pw': 'YQBi'}}");
    struct runtime_pairs p;
    struct err e;
    assert_int_equal(csi_secrets(&store, good, &p, &e), 0);
    assert_int_equal(p.n, 1);
    assert_string_equal(p.v[0].value, "hunter2");
    assert_int_equal(csi_secrets(&store, NULL, &p, &e), 0);
    assert_int_equal(p.n, 0);
    assert_int_equal(csi_secrets(&store, bad, &p, &e), -EINVAL);
    assert_string_equal(e.text, "the value of the secret's key pw is not a text");
    assert_int_equal(csi_secrets(&store, nul, &p, &e), -EINVAL);
}

static void an_attachment_has_the_name_that_kubernetes_computes(void **state)
{
    /* printf vol-1test.csin1 | sha256sum */
    CLEANUP_FREE char *name = csi_attachment_name("vol-1", "test.csi", "n1");
    assert_string_equal(name,
                        "csi-65d96208ade70ffccf3b2ed60aed72b20336b2d692a0aadcee8ae0c6c7b8bd09");
}

static void files_go_to_the_group_by_the_policy_of_the_driver(void **state)
{
    CLEANUP(json_free) struct json *once = from("['ReadWriteOnce']");
    CLEANUP(json_free) struct json *many = from("['ReadWriteMany']");
    assert_true(csi_gives_to_group("", "ext4", once));
    assert_false(csi_gives_to_group("", "", once));
    assert_false(csi_gives_to_group("ReadWriteOnceWithFSType", "ext4", many));
    assert_true(csi_gives_to_group("File", "", many));
    assert_false(csi_gives_to_group("None", "ext4", once));
}

static void expect_need(need_fn *need, const struct facts_of *of, const char *facts,
                        const char *want)
{
    CLEANUP(json_free) struct json *have = from(facts);
    struct need n = {0};
    bool more = need(of, have, &n);
    assert_string_equal(more ? n.path : "(none)", want);
    free(n.path);
}

static void a_volume_waits_for_attachment_and_secrets_in_turn(void **state)
{
    CLEANUP(json_free)
    struct json *source =
        from("{'driver': 'test.csi', 'volumeHandle': 'vol-1', 'nodeStageSecretRef': {'name': 's', "
             "'namespace': 'store'}, 'nodePublishSecretRef': {'name': 'p', 'namespace': 'store'}}");
    struct facts_of pv = {.ns = "red", .node_name = "n1", .source = source, .in_pv = true};
    struct facts_of inline_volume = pv;
    inline_volume.in_pv = false;
    CLEANUP_FREE char *name = csi_attachment_name("vol-1", "test.csi", "n1");
    CLEANUP_FREE char *attachment = xasprintf("/apis/storage.k8s.io/v1/volumeattachments/%s", name);
    expect_need(csi_need, &pv, "{}", "/apis/storage.k8s.io/v1/csidrivers/test.csi");
    expect_need(csi_need, &pv, "{'driver': null}", attachment);
    expect_need(csi_need, &pv, "{'driver': {'spec': {'attachRequired': true}}}", attachment);
    expect_need(csi_need, &pv, "{'driver': {'spec': {'attachRequired': false}}}",
                "/api/v1/namespaces/store/secrets/s");
    expect_need(csi_need, &pv, "{'driver': null, 'attachment': {}, 'stageSecret': {}}",
                "/api/v1/namespaces/store/secrets/p");
    expect_need(csi_need, &pv,
                "{'driver': null, 'attachment': {}, 'stageSecret': {}, 'publishSecret': {}}",
                "(none)");
    /* A pod names secrets of its own project only. */
    expect_need(csi_need, &inline_volume, "{'driver': null, 'stageSecret': {}}",
                "/api/v1/namespaces/red/secrets/p");
    CLEANUP(json_free)
    struct json *gluster = from("{'endpoints': 'g', 'path': 'v', 'endpointsNamespace': 'store'}");
    struct facts_of g = {.ns = "red", .node_name = "n1", .source = gluster, .in_pv = true};
    expect_need(glusterfs_need, &g, "{}", "/api/v1/namespaces/store/endpoints/g");
    g.in_pv = false;
    expect_need(glusterfs_need, &g, "{}", "/api/v1/namespaces/red/endpoints/g");
    expect_need(glusterfs_need, &g, "{'endpoints': {}}", "(none)");
}

static void volumes_of_clouds_are_those_of_their_drivers(void **state)
{
    static const struct {
        const char *volume, *want; /* NULL: it is no cloud's. */
    } cases[] = {
        {"{'awsElasticBlockStore': {'volumeID': 'v', 'partition': 2, 'readOnly': true}}",
         "{'driver': 'ebs.csi.aws.com', 'volumeHandle': 'v', 'fsType': 'ext4', 'volumeAttributes': "
         "{'partition': '2'}, 'readOnly': true}"},
        {"{'gcePersistentDisk': {'pdName': 'd', 'fsType': 'xfs'}}",
         "{'driver': 'pd.csi.storage.gke.io', 'volumeHandle': 'd', 'fsType': 'xfs', 'readOnly': "
         "false}"},
        {"{'azureDisk': {'diskName': 'n', 'diskURI': '/u'}}",
         "{'driver': 'disk.csi.azure.com', 'volumeHandle': '/u', 'fsType': 'ext4', 'readOnly': "
         "false}"},
        {"{'cinder': {'volumeID': 'c'}}",
         "{'driver': 'cinder.csi.openstack.org', 'volumeHandle': 'c', 'fsType': 'ext4', "
         "'readOnly': false}"},
        {"{'azureFile': {'secretName': 's', 'shareName': 'sh', 'secretNamespace': 'store'}}",
         "{'driver': 'file.csi.azure.com', 'volumeHandle': '#s#sh#', 'volumeAttributes': "
         "{'shareName': 'sh'}, 'nodeStageSecretRef': {'name': 's', 'namespace': 'store'}, "
         "'readOnly': false}"},
        {"{'hostPath': {'path': '/'}}", NULL},
        {"{'cinder': 1}", NULL},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(json_free) struct json *volume = from(cases[i].volume);
        CLEANUP(json_free) struct json *csi = csi_translate(volume);
        if (cases[i].want) {
            assert_json(csi, cases[i].want);
        } else {
            assert_null(csi);
        }
    }
    CLEANUP(json_free) struct json *source = from("{'driver': 'd', 'volumeHandle': 'h'}");
    CLEANUP_FREE char *name = csi_unique_name(source);
    assert_string_equal(name, "kubernetes.io/csi/d^h");
}

static void drivers_are_listed_with_topology_and_limit(void **state)
{
    struct csi_drivers *d = csi_drivers_new();
    struct csi_driver one = {.name = xstrdup("a.csi"),
                             .endpoint = xstrdup("/a"),
                             .node_id = xstrdup("x"),
                             .max_volumes = 7,
                             .topology = from("{'zone': 'z1'}")};
    struct csi_driver two = {
        .name = xstrdup("b.csi"), .endpoint = xstrdup("/b"), .node_id = xstrdup("y")};
    struct csi_driver found = {0};
    struct err e;
    csi_drivers_set(d, &one);
    csi_drivers_set(d, &two);
    CLEANUP(json_free) struct json *list = csi_drivers_list(d);
    assert_json(list, "[{'name': 'a.csi', 'nodeID': 'x', 'topologyKeys': ['zone'], 'allocatable': "
                      "{'count': 7}}, {'name': 'b.csi', 'nodeID': 'y', 'topologyKeys': []}]");
    CLEANUP(json_free) struct json *labels = csi_drivers_labels(d);
    assert_json(labels, "{'zone': 'z1'}");
    assert_int_equal(csi_drivers_find(d, "a.csi", &found, &e), 0);
    assert_string_equal(found.endpoint, "/a");
    csi_driver_done(&found);
    csi_drivers_remove(d, "a.csi");
    assert_int_equal(csi_drivers_find(d, "a.csi", &found, &e), -ENOENT);
    assert_string_equal(e.text,
                        "driver name a.csi not found in the list of registered CSI drivers");
    csi_drivers_unref(d);
    assert_true(csi_driver_name_is_valid("a.csi"));
    assert_false(csi_driver_name_is_valid("../a"));
    assert_false(csi_driver_name_is_valid(""));
    assert_false(csi_driver_name_is_valid("a/b"));
}

static void a_call_of_no_driver_ends_at_once_with_its_method(void **state)
{
    struct err e;
    assert_int_equal(csi_call("/nowhere/csi.sock", CSI_PROBE, "", 5000, NULL, NULL, &e), -EAGAIN);
    assert_true(str_has_prefix(e.text, "Probe: "));
    assert_int_equal(csi_call("relative", CSI_PROBE, "", 5000, NULL, NULL, &e), -EINVAL);
    assert_int_equal(csi_errno(GRPC_ABORTED), -EAGAIN);
    assert_int_equal(csi_errno(GRPC_RESOURCE_EXHAUSTED), -ENOSPC);
    assert_int_equal(csi_errno(GRPC_INTERNAL), -EIO);
    assert_int_equal(csi_errno(GRPC_OK), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_have_the_field_numbers_of_the_specification),
        cmocka_unit_test(answers_are_read_and_junk_is_refused),
        cmocka_unit_test(capabilities_follow_modes_and_check_options),
        cmocka_unit_test(secrets_are_decoded_and_errors_do_not_show_them),
        cmocka_unit_test(an_attachment_has_the_name_that_kubernetes_computes),
        cmocka_unit_test(files_go_to_the_group_by_the_policy_of_the_driver),
        cmocka_unit_test(a_volume_waits_for_attachment_and_secrets_in_turn),
        cmocka_unit_test(volumes_of_clouds_are_those_of_their_drivers),
        cmocka_unit_test(drivers_are_listed_with_topology_and_limit),
        cmocka_unit_test(a_call_of_no_driver_ends_at_once_with_its_method),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
