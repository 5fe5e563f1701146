/* SPDX-License-Identifier: Apache-2.0 */
/* What is attached by what, and when a lost node's volumes are taken from it. */
#include "base/timeutil.h"
#include "json_text.h"
#include "storage/attach.h"

static void each_source_has_its_attacher(void **state)
{
    static const struct {
        const char *source, *driver, *handle;
    } rows[] = {{"'csi':{'driver':'d','volumeHandle':'h'}", "d", "h"},
                {"'awsElasticBlockStore':{'volumeID':'v'}", "ebs.csi.aws.com", "v"},
                {"'gcePersistentDisk':{'pdName':'p'}", "pd.csi.storage.gke.io", "p"},
                {"'azureDisk':{'diskName':'n','diskURI':'/u'}", "disk.csi.azure.com", "/u"},
                {"'cinder':{'volumeID':'c'}", "cinder.csi.openstack.org", "c"},
                {"'nfs':{'server':'s','path':'/'}", "", ""},
                {"'iscsi':{'targetPortal':'p'}", "", ""},
                {"'fc':{'lun':0}", "", ""},
                {"'hostPath':{'path':'/'}", "", ""}};
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP_FREE char *text = xasprintf("{'spec':{'capacity':{},%s}}", rows[i].source);
        CLEANUP(json_free) struct json *v = from(text);
        struct storage_attacher a = storage_attacher(v);
        assert_string_equal(a.driver, rows[i].driver);
        assert_string_equal(a.handle, rows[i].handle);
    }
}

static void a_driver_may_need_no_attaching(void **state)
{
    CLEANUP(json_free) struct json *needs = from("{'spec':{}}");
    CLEANUP(json_free) struct json *not = from("{'spec':{'attachRequired':false}}");
    assert_true(storage_needs_attaching(NULL));
    assert_true(storage_needs_attaching(needs));
    assert_false(storage_needs_attaching(not ));
}

static void modes_decide_whether_one_node_has_it(void **state)
{
    CLEANUP(json_free)
    struct json *one = from("{'spec':{'accessModes':['ReadWriteOnce',"
                            "'ReadWriteOncePod']}}");
    CLEANUP(json_free)
    struct json *many = from("{'spec':{'accessModes':['ReadWriteOnce',"
                             "'ReadOnlyMany']}}");
    assert_true(storage_is_exclusive(one));
    assert_false(storage_is_exclusive(many));
}

#define NODE(status, taints)                                                                \
    "{'spec':{'taints':[" taints "]},'status':{'volumesInUse':['x'],'conditions':[{'type':" \
    "'Ready','status':'" status "','lastTransitionTime':'2026-01-01T00:00:00Z'}]}}"

static void a_lost_node_keeps_its_volumes_for_six_minutes(void **state)
{
    CLEANUP(json_free) struct json *ready = from(NODE("True", ""));
    CLEANUP(json_free) struct json *lost = from(NODE("Unknown", ""));
    CLEANUP(json_free)
    struct json *out = from(NODE("Unknown", "{'key':'node.kubernetes.io/out-of-service'}"));
    int64_t since;
    assert_int_equal(time_parse("2026-01-01T00:00:00Z", &since), 0);
    assert_true(storage_force_detach_ms(ready) == INT64_MAX);
    assert_true(storage_force_detach_ms(lost) == since + 360000);
    assert_int_equal(storage_force_detach_ms(out), 0);
    assert_int_equal(storage_force_detach_ms(NULL), 0);
    assert_true(storage_is_in_use(ready, "x"));
    assert_false(storage_is_in_use(ready, "y"));
    assert_false(storage_is_in_use(NULL, "x"));
}

static void an_attachment_names_volume_and_node(void **state)
{
    CLEANUP(json_free)
    struct json *v = from("{'metadata':{'name':'v'},'spec':{'csi':{'driver':"
                          "'d','volumeHandle':'h'}}}");
    struct storage_attacher a = storage_attacher(v);
    CLEANUP(json_free) struct json *o = storage_make_attachment("name", v, &a, "n1");
    CLEANUP_FREE char *unique = storage_unique_name(&a);
    assert_json(o, "{'apiVersion':'storage.k8s.io/v1','kind':'VolumeAttachment','metadata':{"
                   "'name':'name'},'spec':{'attacher':'d','nodeName':'n1','source':{"
                   "'persistentVolumeName':'v'}}}");
    assert_string_equal(unique, "kubernetes.io/csi/d^h");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_source_has_its_attacher),
        cmocka_unit_test(a_driver_may_need_no_attaching),
        cmocka_unit_test(modes_decide_whether_one_node_has_it),
        cmocka_unit_test(a_lost_node_keeps_its_volumes_for_six_minutes),
        cmocka_unit_test(an_attachment_names_volume_and_node),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
