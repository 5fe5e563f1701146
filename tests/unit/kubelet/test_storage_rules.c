/* SPDX-License-Identifier: Apache-2.0 */
/* Decisions about volumes that a node makes, empties and mounts: pure functions. */
#include "kubelet/storage/rules.h"

#include "base/mem.h"
#include "kubelet/volumes/device_plan.h"
#include "kubelet/volumes/growth.h"
#include "kubelet/volumes/local_dirs.h"
#include "kubelet/volumes/network_mount.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "json_text.h"

#define UID "0a1b2c3d-1111-2222-3333-444455556666"
#define CLAIM(spec)                                                                       \
    "{'metadata': {'name': 'data', 'namespace': 'red', 'uid': '" UID "', 'annotations': " \
    "{'volume.kubernetes.io/selected-node': 'n1'}}, 'spec': {'resources': {'requests': "  \
    "{'storage': '3Mi'}}, " spec "}}"
#define CLASS(rest) "{'metadata': {'name': 'local'}, 'provisioner': 'tenet.io/local'" rest "}"

static void only_the_selected_node_makes_a_volume(void **state)
{
    CLEANUP(json_free) struct json *claim = from(CLAIM("'storageClassName': 'local'"));
    assert_true(local_claim_is_selected(claim, "n1"));
    assert_false(local_claim_is_selected(claim, "n2"));
    json_set_string(json_get(claim, "spec"), "volumeName", "other");
    assert_false(local_claim_is_selected(claim, "n1"));
    CLEANUP(json_free) struct json *going = from(CLAIM("'storageClassName': 'local'"));
    json_set_string(json_get(going, "metadata"), "deletionTimestamp", "2026-01-01T00:00:00Z");
    assert_false(local_claim_is_selected(going, "n1"));
}

static void what_the_class_local_does_not_have_is_refused_with_its_name(void **state)
{
    static const struct {
        const char *claim, *class, *error;
    } cases[] = {
        {CLAIM("'accessModes': ['ReadWriteOnce']"), CLASS(""), NULL},
        {CLAIM("'accessModes': ['ReadWriteOncePod']"), CLASS(", 'parameters': {'backing': 'loop'}"),
         NULL},
        {CLAIM("'accessModes': ['ReadWriteOnce', 'ReadOnlyMany']"), CLASS(""),
         "the access mode ReadOnlyMany is not supported: a volume is on one node"},
        {CLAIM("'volumeMode': 'Block'"), CLASS(""), NULL},
        {CLAIM("'selector': {}"), CLASS(""), "claim.Spec.Selector is not supported"},
        {CLAIM("'dataSource': {'name': 'x'}"), CLASS(""),
         "volumes are not made from a data source"},
        {CLAIM("'a': 1"), CLASS(", 'parameters': {'size': '1'}"),
         "the class has the unknown parameter size"},
        {CLAIM("'a': 1"), CLASS(", 'parameters': {'backing': 'zfs'}"),
         "the class's parameter backing is zfs, and neither loop nor directory"},
        {"{'spec': {'resources': {'requests': {'storage': '0'}}}}", CLASS(""),
         "spec.resources.requests.storage is not a size"},
        {"{}", CLASS(""), "spec.resources.requests.storage is not a size"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(json_free) struct json *claim = from(cases[i].claim);
        CLEANUP(json_free) struct json *class = from(cases[i].class);
        struct err e = {0};
        int64_t bytes = -1;
        bool image = false;
        int r = local_claim_check(claim, class, &bytes, &image, &e);
        if (cases[i].error) {
            assert_true(r < 0);
            assert_string_equal(e.text, cases[i].error);
            assert_int_equal(bytes, -1);
        } else {
            assert_int_equal(r, 0);
            assert_int_equal(bytes, 3 << 20);
            assert_int_equal(image, i == 1 || i == 3);
        }
    }
}

static void a_volume_is_known_by_its_provisioner_node_and_path(void **state)
{
    CLEANUP(json_free) struct json *claim = from(CLAIM("'accessModes': ['ReadWriteOnce']"));
    CLEANUP(json_free)
    struct json *class = from(CLASS(", 'reclaimPolicy': 'Retain', 'mountOptions': ['noatime']"));
    CLEANUP(json_free) struct json *pv = local_volume_make(claim, class, "n1", "/k/local-volumes");
    CLEANUP(json_free)
    struct json *want = from(
        "{'apiVersion': 'v1', 'kind': 'PersistentVolume', 'metadata': {'name': 'pvc-" UID
        "', 'annotations': {'pv.kubernetes.io/provisioned-by': 'tenet.io/local'}}, 'spec': {"
        "'capacity': {'storage': '3Mi'}, 'accessModes': ['ReadWriteOnce'], "
        "'persistentVolumeReclaimPolicy': 'Retain', 'storageClassName': 'local', 'mountOptions': "
        "['noatime'], 'volumeMode': 'Filesystem', 'local': {'path': '/k/local-volumes/pvc-" UID
        "'}, 'nodeAffinity': {'required': {'nodeSelectorTerms': [{'matchExpressions': [{'key': "
        "'kubernetes.io/hostname', 'operator': 'In', 'values': ['n1']}]}]}}, 'claimRef': "
        "{'apiVersion': 'v1', 'kind': 'PersistentVolumeClaim', 'namespace': 'red', 'name': 'data', "
        "'uid': '" UID "'}}}");
    assert_true(json_equal(pv, want));
    assert_true(local_volume_is_own(pv, "n1", "/k/local-volumes"));
    CLEANUP(json_free) struct json *device = from(CLAIM("'volumeMode': 'Block'"));
    CLEANUP(json_free)
    struct json *block = local_volume_make(device, class, "n1", "/k/local-volumes");
    assert_string_equal(json_path_string(block, "spec", "volumeMode", NULL), "Block");
    assert_false(local_volume_is_own(pv, "n2", "/k/local-volumes"));
    assert_false(local_volume_is_own(pv, "n1", "/other"));
    /* Another path, or another provisioner, is not removed by the node. */
    CLEANUP(json_free) struct json *moved = json_clone(pv);
    json_set_string(json_path(moved, "spec", "local", NULL), "path", "/etc");
    assert_false(local_volume_is_own(moved, "n1", "/k/local-volumes"));
    json_remove(json_path(pv, "metadata", "annotations", NULL), "pv.kubernetes.io/provisioned-by");
    assert_false(local_volume_is_own(pv, "n1", "/k/local-volumes"));
    assert_true(local_dir_name_is_valid("pvc-" UID));
    static const char *const bad[] = {"pvc-", "pvc-../x", "pvc-a/b", "x", "pvc-A", "", "pvc-a.img"};
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        assert_false(local_dir_name_is_valid(bad[i]));
    }
}

static void a_volume_goes_only_when_it_is_released_with_the_policy_delete(void **state)
{
    static const struct {
        const char *phase, *policy;
        bool goes;
    } cases[] = {{"Released", "Delete", true},   {"Released", "Retain", false},
                 {"Released", "Recycle", false}, {"Bound", "Delete", false},
                 {"Failed", "Delete", false},    {"", "Delete", false}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *text = xasprintf(
            "{'spec': {'persistentVolumeReclaimPolicy': '%s'}, 'status': {'phase': '%s'}}",
            cases[i].policy, cases[i].phase);
        CLEANUP(json_free) struct json *pv = from(text);
        assert_int_equal(local_volume_is_to_go(pv), cases[i].goes);
    }
}

static void room_is_what_is_free_less_margin_and_reserves(void **state)
{
    assert_int_equal(local_capacity_left(100, 10, 20), 70);
    assert_int_equal(local_capacity_left(100, 10, 90), 0);
    assert_int_equal(local_capacity_left(5, 10, 0), 0);
    assert_int_equal(local_capacity_left(100, 0, INT64_MAX), 0);
    CLEANUP(json_free)
    struct json *node = from("{'metadata': {'name': 'n1', 'uid': 'u'}}");
    CLEANUP(json_free) struct json *obj = local_capacity_make("kube-system", "local", node, 70);
    CLEANUP(json_free)
    struct json *want = from(
        "{'apiVersion': 'storage.k8s.io/v1', 'kind': 'CSIStorageCapacity', 'metadata': {'name': "
        "'local.n1', 'namespace': 'kube-system', 'ownerReferences': [{'apiVersion': 'v1', 'kind': "
        "'Node', 'name': 'n1', 'uid': 'u'}]}, 'storageClassName': 'local', 'nodeTopology': "
        "{'matchLabels': {'kubernetes.io/hostname': 'n1'}}, 'capacity': '70'}");
    assert_true(json_equal(obj, want));
}

static void a_volume_is_emptied_once_by_the_named_node(void **state)
{
#define RELEASED(notes)                                                                     \
    "{'metadata': {'annotations': {" notes "}}, 'spec': {'persistentVolumeReclaimPolicy': " \
    "'Recycle'}, 'status': {'phase': 'Released'}}"
    static const struct {
        const char *pv;
        bool due;
    } cases[] = {
        {RELEASED("'tenet.io/recycle-node': 'n1'"), true},
        {RELEASED("'tenet.io/recycle-node': 'n2'"), false},
        {RELEASED(""), false},
        {RELEASED("'tenet.io/recycle-node': 'n1', 'tenet.io/recycled': 'true'"), false},
        {RELEASED("'tenet.io/recycle-node': 'n1', 'tenet.io/recycle-failed': 'x'"), false},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(json_free) struct json *pv = from(cases[i].pv);
        assert_int_equal(recycle_is_due(pv, "n1"), cases[i].due);
        json_set_string(json_get(pv, "status"), "phase", "Bound");
        assert_false(recycle_is_due(pv, "n1"));
    }
}

static void a_file_system_grows_when_its_volume_has_the_new_size(void **state)
{
#define GROWING(size, status)                                                                   \
    "{'metadata': {'uid': 'u'}, 'spec': {'resources': {'requests': {'storage': '" size "'}}}, " \
    "'status': {'conditions': [{'type': 'FileSystemResizePending', 'status': '" status "'}]}}"
    static const struct {
        const char *claim, *pv;
        int64_t want;
    } cases[] = {
        {GROWING("3Mi", "True"),
         "{'spec': {'capacity': {'storage': '3Mi'}, 'claimRef': {'uid': 'u'}}}", 3 << 20},
        {GROWING("3Mi", "True"),
         "{'spec': {'capacity': {'storage': '4Mi'}, 'claimRef': {'uid': 'u'}}}", 4 << 20},
        /* The volume is not larger yet. */
        {GROWING("3Mi", "True"),
         "{'spec': {'capacity': {'storage': '2Mi'}, 'claimRef': {'uid': 'u'}}}", 0},
        {GROWING("3Mi", "False"),
         "{'spec': {'capacity': {'storage': '3Mi'}, 'claimRef': {'uid': 'u'}}}", 0},
        {GROWING("3Mi", "True"),
         "{'spec': {'capacity': {'storage': '3Mi'}, 'claimRef': {'uid': 'other'}}}", 0},
        {GROWING("3Mi", "True"), "{}", 0},
        {"{}", "{'spec': {'capacity': {'storage': '3Mi'}}}", 0},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(json_free) struct json *claim = from(cases[i].claim);
        CLEANUP(json_free) struct json *pv = from(cases[i].pv);
        assert_int_equal(claim_growth(claim, pv), cases[i].want);
    }
}

static void only_paths_below_a_prefix_may_be_emptied(void **state)
{
    static const struct {
        const char *path, *prefixes;
        bool may;
    } cases[] = {
        {"/srv/v/one", "/srv/v", true},
        {"/srv/v/one", "/srv/v/", true},
        {"/srv/v/one", "/tmp,/srv/v", true},
        {"/srv/v/one/two", "/srv/v", true},
        {"/srv/v", "/srv/v", false},
        {"/srv/v/", "/srv/v", false},
        {"/srv/vx/one", "/srv/v", false},
        {"/srv/v/../x", "/srv/v", false},
        {"/srv/v/..", "/srv/v", false},
        {"/srv/v/./x", "/srv/v", false},
        {"/srv/v//x", "/srv/v", false},
        {"srv/v/x", "/srv/v", false},
        {"/etc", "/srv/v", false},
        {"/", "/", false},
        {"/etc", "/", false},
        {"/srv/v/one", NULL, false},
        {"/srv/v/one", "", false},
        {"", "/srv/v", false},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct err e = {0};
        int r = recycle_check_path(cases[i].path, cases[i].prefixes, &e);
        if ((r == 0) != cases[i].may || (r < 0 && r != -EPERM)) {
            fail_msg("%s below %s: %s", cases[i].path, cases[i].prefixes, e.text);
        }
    }
}

static void servers_paths_and_options_cannot_add_options(void **state)
{
    static const struct {
        const char *source, *options, *want;
    } cases[] = {
        {"{'server': 'nfs.example', 'path': '/e/x y'}", "['nfsvers=4.1', 'noatime']",
         "nfs -o rw,nfsvers=4.1,noatime nfs.example:/e/x y"},
        {"{'server': '2001:db8::1', 'path': '/e', 'readOnly': true}", "[]",
         "nfs -o ro [2001:db8::1]:/e"},
        {"{'server': '-o', 'path': '/e'}", "[]", NULL},
        {"{'server': 'a b', 'path': '/e'}", "[]", NULL},
        {"{'server': 'a/b', 'path': '/e'}", "[]", NULL},
        {"{'server': '', 'path': '/e'}", "[]", NULL},
        {"{'server': 'a', 'path': 'e'}", "[]", NULL},
        {"{'server': 'a', 'path': '/e\\n'}", "[]", NULL},
        {"{'server': 'a', 'path': '/e'}", "['a,suid']", NULL},
        {"{'server': 'a', 'path': '/e'}", "['a b']", NULL},
        {"{'server': 'a', 'path': '/e'}", "['']", NULL},
        {"{'server': 'a', 'path': '/e'}", "[1]", NULL},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(json_free) struct json *source = from(cases[i].source);
        CLEANUP(json_free) struct json *options = from(cases[i].options);
        CLEANUP(network_mount_done) struct network_mount m = {0};
        struct err e = {0};
        int r = nfs_mount_make(source, options, false, &m, &e);
        assert_int_equal(r, cases[i].want ? 0 : -EINVAL);
        if (r == 0) {
            CLEANUP_FREE char *is = xasprintf("%s -o %s %s", m.fs_type, m.options, m.source);
            assert_string_equal(is, cases[i].want);
        }
    }
}

static void glusterfs_takes_the_other_addresses_as_backups(void **state)
{
    CLEANUP(json_free) struct json *source = from("{'endpoints': 'g', 'path': '/vol'}");
    CLEANUP(json_free)
    struct json *endpoints =
        from("{'subsets': [{'addresses': [{'ip': '192.0.2.1'}, {'ip': '-o'}, {'ip': "
             "'192.0.2.2'}]}, {'addresses': [{'ip': '2001:db8::3'}]}]}");
    CLEANUP(json_free) struct json *none = from("{'subsets': []}");
    CLEANUP(network_mount_done) struct network_mount m = {0};
    struct err e = {0};
    assert_int_equal(glusterfs_mount_make(source, endpoints, NULL, true, &m, &e), 0);
    assert_string_equal(m.source, "192.0.2.1:/vol");
    assert_string_equal(m.options, "ro,backup-volfile-servers=192.0.2.2:2001:db8::3");
    assert_int_equal(glusterfs_mount_make(source, none, NULL, true, &m, &e), -EAGAIN);
    assert_string_equal(e.text, "glusterfs: the endpoints g have no address");
}

/* The command lines, with ";" between. */
static char *lines_of(const struct json *list)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    const struct json *line, *word;
    JSON_FOREACH (line, list) {
        strbuf_adds(&b, b.size ? ";" : "");
        JSON_FOREACH (word, line) {
            strbuf_addf(&b, "%s%s", word_i ? " " : "", json_get_string(word));
        }
    }
    return strbuf_steal(&b);
}

static void devices_are_attached_by_these_command_lines(void **state)
{
    static const struct {
        device_plan_fn *plan;
        const char *source;
        bool key;
        const char *attach, *detach, *path; /* NULL: refused. */
    } cases[] = {
        {iscsi_plan, "{'targetPortal': '192.0.2.1', 'iqn': 'iqn.2026-01.example:disk', 'lun': 3}",
         false,
         "iscsiadm -m discoverydb -t sendtargets -p 192.0.2.1:3260 -I default --discover;"
         "iscsiadm -m node -p 192.0.2.1:3260 -T iqn.2026-01.example:disk -I default --login",
         "iscsiadm -m node -p 192.0.2.1:3260 -T iqn.2026-01.example:disk -I default --logout;"
         "iscsiadm -m node -p 192.0.2.1:3260 -T iqn.2026-01.example:disk -I default -o delete",
         "/dev/disk/by-path/*ip-192.0.2.1:3260-iscsi-iqn.2026-01.example:disk-lun-3"},
        {iscsi_plan, "{'targetPortal': '--x', 'iqn': 'iqn.x', 'lun': 0}", false, NULL, NULL, NULL},
        {iscsi_plan, "{'targetPortal': 'a', 'iqn': '../x', 'lun': 0}", false, NULL, NULL, NULL},
        {iscsi_plan, "{'targetPortal': 'a', 'iqn': 'iqn.x'}", false, NULL, NULL, NULL},
        {iscsi_plan, "{'targetPortal': 'a', 'iqn': 'iqn.x', 'lun': 0, 'fsType': 'x y'}", false,
         NULL, NULL, NULL},
        {iscsi_plan, "{'targetPortal': 'a', 'iqn': 'iqn.x', 'lun': 0, 'chapAuthSession': true}",
         false, NULL, NULL, NULL},
        {fc_plan, "{'targetWWNs': ['500a0981891b8dc5'], 'lun': 2}", false, "", "",
         "/dev/disk/by-path/*-fc-0x500a0981891b8dc5-lun-2"},
        {fc_plan, "{'wwids': ['3600508b400105e210000900000490000']}", false, "", "",
         "/dev/disk/by-id/scsi-3600508b400105e210000900000490000"},
        {fc_plan, "{'targetWWNs': ['*'], 'lun': 2}", false, NULL, NULL, NULL},
        {fc_plan, "{'wwids': ['../sda']}", false, NULL, NULL, NULL},
        {fc_plan, "{}", false, NULL, NULL, NULL},
        {rbd_plan,
         "{'monitors': ['192.0.2.1:6789', '192.0.2.2'], 'image': 'i', 'pool': 'p', "
         "'readOnly': true}",
         true,
         "rbd map i --pool p --id admin -m 192.0.2.1:6789,192.0.2.2 --keyfile /proc/self/fd/3 "
         "--read-only",
         "rbd unmap i --pool p --id admin", "/dev/rbd/p/i"},
        {rbd_plan, "{'monitors': ['a'], 'image': 'i', 'user': 'u'}", false,
         "rbd map i --pool rbd --id u -m a --keyring /etc/ceph/keyring",
         "rbd unmap i --pool rbd --id u", "/dev/rbd/rbd/i"},
        {rbd_plan, "{'monitors': ['a'], 'image': '--x'}", false, NULL, NULL, NULL},
        {rbd_plan, "{'monitors': ['a,b'], 'image': 'i'}", false, NULL, NULL, NULL},
        {rbd_plan, "{'monitors': [], 'image': 'i'}", false, NULL, NULL, NULL},
        {rbd_plan, "{'monitors': ['a'], 'image': '../i'}", false, NULL, NULL, NULL},
        {rbd_plan, "{'monitors': ['a'], 'image': 'i', 'keyring': '/a/../b'}", false, NULL, NULL,
         NULL},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(json_free) struct json *source = from(cases[i].source);
        CLEANUP(device_plan_done) struct device_plan p = {0};
        struct err e = {0};
        int r = cases[i].plan(source, cases[i].key, &p, &e);
        if (!cases[i].path) {
            assert_true(r < 0);
            continue;
        }
        assert_int_equal(r, 0);
        CLEANUP_FREE char *attach = lines_of(p.attach), *detach = lines_of(p.detach);
        assert_string_equal(attach, cases[i].attach);
        assert_string_equal(detach, cases[i].detach);
        assert_string_equal(p.path, cases[i].path);
        assert_int_equal(strlen(p.id), 64);
        assert_int_equal(p.takes_key, cases[i].key);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_selected_node_makes_a_volume),
        cmocka_unit_test(what_the_class_local_does_not_have_is_refused_with_its_name),
        cmocka_unit_test(a_volume_is_known_by_its_provisioner_node_and_path),
        cmocka_unit_test(a_volume_goes_only_when_it_is_released_with_the_policy_delete),
        cmocka_unit_test(room_is_what_is_free_less_margin_and_reserves),
        cmocka_unit_test(a_volume_is_emptied_once_by_the_named_node),
        cmocka_unit_test(a_file_system_grows_when_its_volume_has_the_new_size),
        cmocka_unit_test(only_paths_below_a_prefix_may_be_emptied),
        cmocka_unit_test(servers_paths_and_options_cannot_add_options),
        cmocka_unit_test(devices_are_attached_by_these_command_lines),
        cmocka_unit_test(glusterfs_takes_the_other_addresses_as_backups),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
