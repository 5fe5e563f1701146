/* SPDX-License-Identifier: Apache-2.0 */
/* Volumes of pods against a real API server and real mounts, in a mount namespace of the test's own. */
#include "kubelet/volumes/volumes.h"

#include "../apiserver/harness.h"
#include "client/kubeconfig.h"
#include "kubelet/volumes/mountinfo.h"
#include "kubelet/volumes/token.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <sys/un.h>

#include <cmocka.h>

#include "own_mounts.h"

static struct harness *h;
static struct api_client *client;
static struct pod_objects *objects;
static struct volumes *volumes;
static struct json *allocatable;
static bool changed;

static void on_object(void *ctx, const char *uid)
{
    volumes_objects_changed(volumes, uid);
}

static void on_volumes(void *ctx, const char *uid)
{
    changed = true;
}

static const struct json *get_allocatable(void *ctx)
{
    return allocatable;
}

static const struct pod_objects_ops object_ops = {.changed = on_object};
static const struct volumes_ops ops = {.changed = on_volumes, .allocatable = get_allocatable};

static void open_volumes(void)
{
    CLEANUP_FREE char *root = own_path("root");
    const struct volumes_config conf = {.root_dir = root, .cluster_domain = "cluster.local"};
    struct err e;
    if (volumes_new(h->loop, client, objects, &conf, &ops, NULL, &volumes, &e) < 0) {
        fail_msg("%s", e.text);
    }
}

static int set_up(void **state)
{
    struct err e;
    if (geteuid() != 0) {
        return 0;
    }
    h = harness_new_secure((struct apiserver_security){0});
    free(make_namespace(h, "red"));
    CLEANUP_FREE char *url = harness_url(h);
    const struct kubeconfig k = {.server = url, .token = (char *) HARNESS_TOKEN};
    assert_int_equal(api_client_with(h->loop, &k, "test", &client, &e), 0);
    put_in(h, "POST", "/api/v1/namespaces/red/serviceaccounts", "{'metadata': {'name': 'robot'}}",
           201);
    allocatable = json_of("{'cpu': '2', 'memory': '64Mi'}");
    objects = pod_objects_new(h->loop, client, &object_ops, NULL);
    open_volumes();
    return 0;
}

static void expect_no_mounts(void)
{
    CLEANUP(mount_table_done) struct mount_table t = {0};
    CLEANUP_FREE char *root = own_path("root");
    assert_int_equal(mount_table_read(&t, NULL), 0);
    for (size_t i = 0; i < t.n; i++) {
        if (mount_path_is_below(t.v[i].path, root)) {
            fail_msg("%s is mounted", t.v[i].path);
        }
    }
}

static int tear_down(void **state)
{
    if (geteuid() == 0) {
        CLEANUP_FREE char *root = own_path("root");
        volumes_free(volumes);
        pod_objects_free(objects);
        api_client_free(client);
        harness_free(h);
        json_free(allocatable);
        mount_remove_below(root, NULL);
    }
    return 0;
}

/* ---- pods ---- */

/* A pod, also in the API; its uid is 'ret_uid' (owned). */
static struct json *pod_in_api(const char *name, const char *spec, char **ret_uid)
{
    CLEANUP_FREE char *text =
        xasprintf("{'metadata': {'name': '%s', 'labels': {'app': 'one'}}, 'spec': {'nodeName': "
                  "'n1', 'serviceAccountName': 'robot', 'automountServiceAccountToken': false, "
                  "'containers': [{'name': 'c', 'image': "
                  "'i'}], %s}}",
                  name, spec);
    CLEANUP_FREE char *body = quoted(text);
    CLEANUP_ANSWER struct answer a = ask_ok(h, "POST", "/api/v1/namespaces/red/pods", body, 201);
    *ret_uid = xstrdup(at(&a, "metadata.uid"));
    return json_clone(a.body);
}

static struct json *plain_pod(const char *uid, const char *spec)
{
    CLEANUP_FREE char *text = xasprintf("{'metadata': {'name': 'p', 'namespace': 'red', 'uid': "
                                        "'%s', 'labels': {'app': 'one'}}, 'spec': {%s}}",
                                        uid, spec);
    return json_of(text);
}

static void want(const struct json *pod)
{
    pod_objects_set_pod(objects, pod);
    volumes_set_pod(volumes, pod);
}

static void want_plain(const char *uid, const char *spec)
{
    CLEANUP(json_free) struct json *pod = plain_pod(uid, spec);
    want(pod);
}

static void step(void)
{
    changed = false;
    loop_run_until(h->loop, &changed, 100);
}

static void wait_ready(const char *uid)
{
    const char *text = NULL;
    for (int i = 0; i < 200; i++) {
        if (volumes_state(volumes, uid, &text) == VOLUMES_READY) {
            return;
        }
        step();
    }
    fail_msg("%s is not ready: %s", uid, text ? text : "(no text)");
}

static void wait_text(const char *uid, const char *want_text)
{
    const char *text = NULL;
    for (int i = 0; i < 200; i++) {
        volumes_state(volumes, uid, &text);
        if (streq_null(text, want_text)) {
            return;
        }
        step();
    }
    fail_msg("\"%s\", not \"%s\"", text ? text : "(no text)", want_text);
}

/* Waits until the file has the text. */
static void wait_file(const char *name, const char *text)
{
    for (int i = 0; i < 200; i++) {
        CLEANUP_FREE char *is = read_own(name);
        if (streq_null(is, text)) {
            return;
        }
        step();
    }
    expect_text(name, text);
}

struct ending {
    bool done;
    int error;
    char text[512];
    struct json *mounts; /* Array of "CONTAINER HOST ro|rw PROPAGATION". */
};

static void ended(void *ctx, int error, const char *text)
{
    struct ending *en = ctx;
    assert_false(en->done);
    en->done = true;
    en->error = error;
    snprintf(en->text, sizeof en->text, "%s", text ? text : "");
}

static void mounted(void *ctx, int error, const char *text, const struct volumes_mounts *got)
{
    struct ending *en = ctx;
    ended(ctx, error, text);
    en->mounts = json_array();
    const struct runtime_mount *m = got->mounts;
    for (size_t i = 0; i < got->n_devices; i++) {
        const struct runtime_device *d = &got->devices[i];
        json_append(en->mounts,
                    json_stringf("%s %s %s", d->container_path, d->host_path, d->permissions));
    }
    for (size_t i = 0; i < got->n_mounts; i++) {
        const char *host = m[i].host_path;
        host = str_has_prefix(host, own_dir) ? host + strlen(own_dir) + 1 : host;
        json_append(en->mounts, json_stringf("%s %s %s %d", m[i].container_path, host,
                                             m[i].readonly ? "ro" : "rw", m[i].propagation));
    }
}

static void ending_done(struct ending *en)
{
    json_free(en->mounts);
}

static void remove_pod(const char *uid)
{
    struct ending en = {0};
    CLEANUP_FREE char *dir = xasprintf("root/pods/%s", uid);
    volumes_remove(volumes, uid, ended, &en);
    pod_objects_remove_pod(objects, uid);
    assert_false(en.done);
    assert_int_equal(loop_run_until(h->loop, &en.done, 10000), 0);
    if (en.error < 0) {
        fail_msg("%s", en.text);
    }
    assert_false(own_exists(dir));
}

static void mount_for(const char *uid, const char *container, struct ending *ret)
{
    static const struct runtime_pair env[] = {{"WHO", "web-1"}, {"UP", "../.."}};
    static const char *const ips[] = {"10.1.0.7"};
    CLEANUP(json_free) struct json *c = json_of(container);
    *ret = (struct ending){0};
    volumes_mount(volumes, uid,
                  &(struct volumes_container){.container = c, .env = {env, 2}, .pod_ips = {ips, 1}},
                  mounted, ret);
    assert_false(ret->done);
    assert_int_equal(loop_run_until(h->loop, &ret->done, 10000), 0);
}

static bool is_memory(const char *name)
{
    CLEANUP_FREE char *path = own_path(name);
    CLEANUP(mount_table_done) struct mount_table t = {0};
    assert_int_equal(mount_table_read(&t, NULL), 0);
    for (size_t i = 0; i < t.n; i++) {
        if (streq(t.v[i].path, path)) {
            return streq(t.v[i].fs_type, "tmpfs");
        }
    }
    return false;
}

#define V(uid, type, name) "root/pods/" uid "/volumes/kubernetes.io~" type "/" name

/* ---- tests ---- */

static void empty_dirs_are_on_disk_or_in_memory_with_a_size(void **state)
{
    NEEDS_ROOT();
    want_plain("u1", "'securityContext': {'fsGroup': 4242}, 'containers': [{'resources': {"
                     "'limits': {'memory': '8Mi'}}}], 'volumes': ["
                     "{'name': 'disk', 'emptyDir': {}},"
                     "{'name': 'mem', 'emptyDir': {'medium': 'Memory', 'sizeLimit': '1Mi'}},"
                     "{'name': 'pod', 'emptyDir': {'medium': 'Memory'}}]");
    wait_ready("u1");
    assert_int_equal(own_stat(V("u1", "empty-dir", "disk")).st_mode & 07777, 02777);
    assert_int_equal(own_stat(V("u1", "empty-dir", "disk")).st_gid, 4242);
    assert_int_equal(own_stat(V("u1", "empty-dir", "mem")).st_mode & 07777, 02777);
    assert_false(is_memory(V("u1", "empty-dir", "disk")));
    assert_true(is_memory(V("u1", "empty-dir", "mem")));
    struct statfs fs;
    CLEANUP_FREE char *mem = own_path(V("u1", "empty-dir", "mem"));
    CLEANUP_FREE char *pod = own_path(V("u1", "empty-dir", "pod"));
    assert_int_equal(statfs(mem, &fs), 0);
    assert_int_equal(fs.f_blocks * (uint64_t) fs.f_bsize, 1 << 20);
    assert_int_equal(statfs(pod, &fs), 0);
    assert_int_equal(fs.f_blocks * (uint64_t) fs.f_bsize, 8 << 20);
    /* No directory on the way can be entered by others. */
    assert_int_equal(own_stat("root/pods/u1").st_mode & 07777, 0750);
    remove_pod("u1");
    remove_pod("u1");
    want_plain("u2", "'volumes': [{'name': 'node', 'emptyDir': {'medium': 'Memory'}}]");
    wait_ready("u2");
    CLEANUP_FREE char *node = own_path(V("u2", "empty-dir", "node"));
    assert_int_equal(statfs(node, &fs), 0);
    assert_int_equal(fs.f_blocks * (uint64_t) fs.f_bsize, 64 << 20);
    remove_pod("u2");
    expect_no_mounts();
}

static void a_missing_config_map_is_awaited_and_its_changes_are_followed(void **state)
{
    NEEDS_ROOT();
    want_plain("u1", "'volumes': [{'name': 'v', 'configMap': {'name': 'm', 'defaultMode': 292}},"
                     "{'name': 'o', 'configMap': {'name': 'none', 'optional': true}},"
                     "{'name': 's', 'secret': {'secretName': 's'}},"
                     "{'name': 'd', 'downwardAPI': {'items': [{'path': 'labels', 'fieldRef': {"
                     "'fieldPath': 'metadata.labels'}}]}}]");
    wait_text("u1", "MountVolume.SetUp failed for volume \"v\" : configmap \"m\" not found");
    put_in(h, "POST", "/api/v1/namespaces/red/configmaps",
           "{'metadata': {'name': 'm'}, 'data': {'k': '1'}}", 201);
    wait_text("u1", "MountVolume.SetUp failed for volume \"s\" : secret \"s\" not found");
    put_in(h, "POST", "/api/v1/namespaces/red/secrets",
           "{'metadata': {'name': 's'}, 'data': {'pw': 'aHVudGVyMg=='}}", 201);
    wait_ready("u1");
    expect_text(V("u1", "configmap", "v") "/k", "1");
    expect_text(V("u1", "secret", "s") "/pw", "hunter2");
    expect_text(V("u1", "downward-api", "d") "/labels", "app=\"one\"");
    assert_int_equal(own_stat(V("u1", "configmap", "v") "/..data/k").st_mode & 07777, 0444);
    assert_true(is_memory(V("u1", "secret", "s")));
    assert_false(is_memory(V("u1", "configmap", "v")));
    /* Updates of the objects and of the pod's labels. */
    put_in(h, "PUT", "/api/v1/namespaces/red/configmaps/m",
           "{'metadata': {'name': 'm'}, 'data': {'k': '2'}}", 200);
    wait_file(V("u1", "configmap", "v") "/k", "2");
    CLEANUP(json_free)
    struct json *pod =
        plain_pod("u1", "'volumes': [{'name': 'v', 'configMap': {'name': 'm', 'defaultMode': 292}},"
                        "{'name': 'o', 'configMap': {'name': 'none', 'optional': true}},"
                        "{'name': 's', 'secret': {'secretName': 's'}},"
                        "{'name': 'd', 'downwardAPI': {'items': [{'path': 'labels', 'fieldRef': {"
                        "'fieldPath': 'metadata.labels'}}]}}]");
    json_set_string(json_path(pod, "metadata", "labels", NULL), "app", "two");
    want(pod);
    wait_file(V("u1", "downward-api", "d") "/labels", "app=\"two\"");
    /* A deleted object leaves the files, and is reported. */
    put_in(h, "DELETE", "/api/v1/namespaces/red/configmaps/m", NULL, 200);
    wait_text("u1", "MountVolume.SetUp failed for volume \"v\" : configmap \"m\" not found");
    wait_ready("u1");
    expect_text(V("u1", "configmap", "v") "/k", "2");
    remove_pod("u1");
    expect_no_mounts();
}

static void tokens_are_bound_to_the_pod_and_have_their_audience(void **state)
{
    NEEDS_ROOT();
    CLEANUP_FREE char *uid = NULL;
    CLEANUP(json_free)
    struct json *pod = pod_in_api(
        "web",
        "'securityContext': {'fsGroup': 4242}, 'volumes': [{'name': 't', 'projected': {'sources': "
        "[{'serviceAccountToken': {'path': 'token', 'audience': 'vault', 'expirationSeconds': "
        "900}}, {'downwardAPI': {'items': [{'path': 'namespace', 'fieldRef': {'fieldPath': "
        "'metadata.namespace'}}]}}]}}]",
        &uid);
    want(pod);
    wait_ready(uid);
    CLEANUP_FREE char *dir = xasprintf("root/pods/%s/volumes/kubernetes.io~projected/t", uid);
    CLEANUP_FREE char *token_file = xasprintf("%s/token", dir);
    CLEANUP_FREE char *data_file = xasprintf("%s/..data/token", dir);
    CLEANUP_FREE char *ns_file = xasprintf("%s/namespace", dir);
    CLEANUP_FREE char *token = read_own(token_file);
    expect_text(ns_file, "red");
    assert_true(is_memory(dir));
    assert_int_equal(own_stat(data_file).st_mode & 07777, 0640);
    assert_int_equal(own_stat(data_file).st_gid, 4242);
    /* The server accepts it for its audience while the pod is there, and refuses it afterwards. */
    CLEANUP_FREE char *review = xasprintf("{\"spec\": {\"token\": \"%s\", \"audiences\": "
                                          "[\"vault\"]}}",
                                          token);
    CLEANUP_ANSWER struct answer before =
        ask_ok(h, "POST", "/apis/authentication.k8s.io/v1/tokenreviews", review, 201);
    assert_true(json_get_bool(json_path(before.body, "status", "authenticated", NULL), false));
    assert_string_equal(at(&before, "status.user.username"), "system:serviceaccount:red:robot");
    put_in(h, "DELETE", "/api/v1/namespaces/red/pods/web", "{'gracePeriodSeconds': 0}", 200);
    CLEANUP_ANSWER struct answer after =
        ask_ok(h, "POST", "/apis/authentication.k8s.io/v1/tokenreviews", review, 201);
    assert_false(json_get_bool(json_path(after.body, "status", "authenticated", NULL), false));
    remove_pod(uid);
    /* A pod that the API server does not know gets none. */
    want_plain("u2", "'serviceAccountName': 'robot', 'volumes': [{'name': 't', 'projected': {"
                     "'sources': [{'serviceAccountToken': {'path': 'token'}}]}}]");
    wait_text("u2", "MountVolume.SetUp failed for volume \"t\" : failed to fetch token: pods "
                    "\"p\" not found");
    remove_pod("u2");
    expect_no_mounts();
}

static void tokens_are_renewed_at_four_fifths_of_their_life_or_after_a_day(void **state)
{
    assert_int_equal(token_renewal_ms(3600, 0), 2880000);
    assert_int_equal(token_renewal_ms(3600, 9999), 2880000 - 9999);
    assert_int_equal(token_renewal_ms(3600, 10000), 2880000);
    assert_int_equal(token_renewal_ms(600, 0), 480000);
    assert_int_equal(token_renewal_ms(86400 * 365, 0), 86400000);
    assert_int_equal(token_renewal_ms(1, 9999), 1000);
    assert_int_equal(token_renewal_ms(-5, 0), 1000);
}

static void host_paths_are_of_their_type_or_refused(void **state)
{
    NEEDS_ROOT();
    put_dir("hp", 0755);
    put_file("hp/file", "x", 0644);
    put_link("hp/link", "file");
    CLEANUP_FREE char *sock = own_path("hp/sock");
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    snprintf(addr.sun_path, sizeof addr.sun_path, "%s", sock);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *) &addr, sizeof addr), 0);
    close(fd);
    static const struct {
        const char *path, *type, *noun; /* 'noun' NULL: accepted. */
    } cases[] = {
        {"hp/none", "", NULL},
        {"hp", "Directory", NULL},
        {"hp/file", "Directory", "directory"},
        {"hp/none", "Directory", "directory"},
        {"hp/file", "File", NULL},
        {"hp/link", "File", NULL},
        {"hp", "File", "file"},
        {"hp/sock", "Socket", NULL},
        {"hp/file", "Socket", "socket file"},
        {"hp/file", "CharDevice", "character device"},
        {"hp/file", "BlockDevice", "block device"},
        {"hp/new/dir", "DirectoryOrCreate", NULL},
        {"hp/file", "DirectoryOrCreate", "directory"},
        {"hp/newfile", "FileOrCreate", NULL},
        {"hp", "FileOrCreate", "file"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *path = own_path(cases[i].path);
        CLEANUP_FREE char *spec =
            xasprintf("'volumes': [{'name': 'v', 'hostPath': {'path': '%s', 'type': '%s'}}]", path,
                      cases[i].type);
        CLEANUP_FREE char *text =
            xasprintf("MountVolume.SetUp failed for volume \"v\" : hostPath type check failed: %s "
                      "is not a %s",
                      path, cases[i].noun ? cases[i].noun : "");
        want_plain("u1", spec);
        if (cases[i].noun) {
            wait_text("u1", text);
        } else {
            wait_ready("u1");
        }
        remove_pod("u1");
    }
    assert_int_equal(own_stat("hp/new/dir").st_mode & 07777, 0755);
    assert_int_equal(own_stat("hp/newfile").st_mode & 07777, 0644);
    want_plain("u1", "'volumes': [{'name': 'v', 'hostPath': {'path': '/dev/null', 'type': "
                     "'CharDevice'}}, {'name': 'w', 'hostPath': {'path': '/var/../etc'}}]");
    wait_text("u1", "MountVolume.SetUp failed for volume \"w\" : hostPath /var/../etc must be "
                    "absolute and without '..'");
    remove_pod("u1");
    /* Removal touches nothing on the node. */
    expect_text("hp/file", "x");
}

static void unknown_and_dangerous_volumes_are_refused(void **state)
{
    NEEDS_ROOT();
    static const struct {
        const char *volume, *text;
    } cases[] = {
        {"'gitRepo': {'repository': 'x'}",
         "gitRepo volumes are refused, because a repository can run commands on the node "
         "(CVE-2024-10220); clone it in an init container into an emptyDir"},
        {"'cephfs': {'path': 'x'}", "volumes of the type cephfs are not supported on this node"},
        {"'iscsi': {'iqn': 'x'}", "iscsi: invalid targetPortal, iqn, iscsiInterface or lun"},
        {"'local': {'path': '/etc'}", "volumes of the type local are not supported on this node"},
        {"'emptyDir': {'medium': 'HugePages'}",
         "emptyDir with the medium HugePages is not supported"},
        {"'nfs': {'server': '-oops', 'path': '/'}", "nfs: invalid server -oops or path /"},
        {"'nfs': {'server': 's', 'path': 'x'}", "nfs: invalid server s or path x"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP_FREE char *spec = xasprintf("'volumes': [{'name': 'v', %s}]", cases[i].volume);
        CLEANUP_FREE char *text =
            xasprintf("MountVolume.SetUp failed for volume \"v\" : %s", cases[i].text);
        want_plain("u1", spec);
        wait_text("u1", text);
        remove_pod("u1");
    }
    want_plain("../u", "'volumes': []");
    const char *text;
    assert_int_equal(volumes_state(volumes, "../u", &text), VOLUMES_NONE);
    struct ending en = {0};
    volumes_remove(volumes, "..", ended, &en);
    assert_int_equal(loop_run_until(h->loop, &en.done, 10000), 0);
    assert_int_equal(en.error, -EINVAL);
    want_plain("u2", "'volumes': [{'name': '../../x', 'emptyDir': {}}]");
    wait_text("u2", "MountVolume.SetUp failed for volume \"../../x\" : its name cannot be that of "
                    "a directory");
    remove_pod("u2");
}

static void containers_mount_volumes_subpaths_and_hosts(void **state)
{
    NEEDS_ROOT();
    struct ending en;
    put_dir("host", 0755);
    put_file("host/f", "x", 0644);
    put_link("host/out", "/etc");
    CLEANUP_FREE char *host = own_path("host");
    CLEANUP_FREE char *spec =
        xasprintf("'subdomain': 's', 'volumes': [{'name': 'e', 'emptyDir': {}}, {'name': 'h', "
                  "'hostPath': {'path': '%s'}}, {'name': 'm', 'configMap': {'name': 'm'}}]",
                  host);
    put_in(h, "POST", "/api/v1/namespaces/red/configmaps",
           "{'metadata': {'name': 'm'}, 'data': {'k': '1'}}", 201);
    want_plain("u1", spec);
    mount_for("u1", "{'name': 'c'}", &en);
    assert_int_equal(en.error, -EAGAIN);
    ending_done(&en);
    wait_ready("u1");
    for (int i = 0; i < 2; i++) {
        mount_for("u1",
                  "{'name': 'c', 'volumeMounts': [{'name': 'e', 'mountPath': '/e'}, {'name': 'e', "
                  "'mountPath': '/sub', 'subPath': 'a/b', 'readOnly': true}, {'name': 'e', "
                  "'mountPath': '/x', 'subPathExpr': 'pods/$(WHO)'}, {'name': 'h', 'mountPath': "
                  "'/f', 'subPath': 'f', 'mountPropagation': 'HostToContainer'}, {'name': 'm', "
                  "'mountPath': '/m'}, {'name': 'm', 'mountPath': '/k', 'subPath': 'k'}]}",
                  &en);
        assert_string_equal(en.text, "");
        CLEANUP_FREE char *text = json_to_text(en.mounts);
        assert_string_equal(
            text, "[\"/e " V("u1", "empty-dir",
                             "e") " rw 0\","
                                  "\"/sub root/pods/u1/volume-subpaths/e/c/1 ro 0\","
                                  "\"/x root/pods/u1/volume-subpaths/e/c/2 rw 0\","
                                  "\"/f root/pods/u1/volume-subpaths/h/c/3 rw 1\","
                                  "\"/m " V("u1", "configmap",
                                            "m") " ro 0\","
                                                 "\"/k root/pods/u1/volume-subpaths/m/c/5 ro 0\","
                                                 "\"/etc/hosts root/pods/u1/etc-hosts rw 0\"]");
        ending_done(&en);
    }
    expect_text("root/pods/u1/volume-subpaths/h/c/3", "x");
    expect_text("root/pods/u1/volume-subpaths/m/c/5", "1");
    assert_true(own_exists(V("u1", "empty-dir", "e") "/a/b"));
    assert_int_equal(own_stat(V("u1", "empty-dir", "e") "/pods/web-1").st_mode & 07777, 0777);
    put_file("root/pods/u1/volume-subpaths/e/c/2/new", "y", 0644);
    expect_text(V("u1", "empty-dir", "e") "/pods/web-1/new", "y");
    CLEANUP_FREE char *hosts = read_own("root/pods/u1/etc-hosts");
    assert_non_null(strstr(hosts, "\n10.1.0.7\tp.s.red.svc.cluster.local\tp\n"));
    static const struct {
        const char *mount, *text;
    } bad[] = {
        {"'name': 'h', 'subPath': 'out/passwd'",
         "failed to prepare subPath for volumeMount \"h\" of container \"c\": subPath out/passwd "
         "leads out of the volume"},
        {"'name': 'e', 'subPath': '../x'", "volumeMounts[0]: subPath ../x must not contain '..'"},
        {"'name': 'e', 'subPathExpr': 'a/$(UP)/x'",
         "volumeMounts[0]: subPath a/../../x must not contain '..'"},
        {"'name': 'e', 'subPathExpr': '$(NOPE)'", "volumeMounts[0]: the variable NOPE is not set"},
        {"'name': 'm', 'subPath': 'none'",
         "failed to prepare subPath for volumeMount \"m\" of container \"c\": open the subPath "
         "none: No such file or directory"},
        {"'name': 'none'", "volumeMounts[0]: the pod has no volume \"none\""},
        {"'name': 'e', 'mountPropagation': 'Bidirectional'",
         "volumeMounts[0]: mountPropagation Bidirectional is only for privileged containers"},
        {"'name': 'e', 'recursiveReadOnly': 'Enabled'",
         "volumeMounts[0]: recursiveReadOnly is not supported on this node"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        CLEANUP_FREE char *c =
            xasprintf("{'name': 'c', 'volumeMounts': [{'mountPath': '/x', %s}]}", bad[i].mount);
        mount_for("u1", c, &en);
        assert_string_equal(en.text, bad[i].text);
        assert_true(en.error < 0);
        ending_done(&en);
    }
    mount_for("u1",
              "{'name': 'p', 'securityContext': {'privileged': true}, 'volumeMounts': [{'name': "
              "'e', 'mountPath': '/etc/hosts', 'mountPropagation': 'Bidirectional'}]}",
              &en);
    CLEANUP_FREE char *own = json_to_text(en.mounts);
    assert_string_equal(own, "[\"/etc/hosts " V("u1", "empty-dir", "e") " rw 2\"]");
    ending_done(&en);
    remove_pod("u1");
    expect_no_mounts();
    expect_text("host/f", "x");
}

static void removal_cancels_mounts_and_keeps_what_containers_bound(void **state)
{
    NEEDS_ROOT();
    struct ending mount_end = {0}, en = {0};
    put_dir("kept", 0755);
    put_file("kept/f", "x", 0644);
    want_plain("u1", "'volumes': [{'name': 'e', 'emptyDir': {}}]");
    wait_ready("u1");
    CLEANUP_FREE char *kept = own_path("kept");
    put_dir(V("u1", "empty-dir", "e") "/m", 0755);
    CLEANUP_FREE char *at_path = own_path(V("u1", "empty-dir", "e") "/m");
    assert_int_equal(mount(kept, at_path, NULL, MS_BIND, NULL), 0);
    put_link(V("u1", "empty-dir", "e") "/l", kept);
    CLEANUP(json_free)
    struct json *c = json_of("{'name': 'c', 'volumeMounts': [{'name': 'e', 'mountPath': '/e', "
                             "'subPath': 's'}]}");
    volumes_mount(volumes, "u1", &(struct volumes_container){.container = c}, mounted, &mount_end);
    volumes_remove(volumes, "u1", ended, &en);
    assert_true(mount_end.done);
    assert_int_equal(mount_end.error, -ECANCELED);
    ending_done(&mount_end);
    const char *text;
    assert_int_equal(volumes_state(volumes, "u1", &text), VOLUMES_REMOVING);
    assert_int_equal(loop_run_until(h->loop, &en.done, 10000), 0);
    assert_string_equal(en.text, "");
    assert_int_equal(volumes_state(volumes, "u1", &text), VOLUMES_NONE);
    assert_false(own_exists("root/pods/u1"));
    expect_text("kept/f", "x");
    expect_no_mounts();
}

static void a_restart_keeps_volumes_and_sweeps_those_of_gone_pods(void **state)
{
    NEEDS_ROOT();
    struct ending en = {0};
    static const char spec[] = "'volumes': [{'name': 'd', 'emptyDir': {}}, {'name': 'm', "
                               "'emptyDir': {'medium': 'Memory'}}, {'name': 's', 'secret': {"
                               "'secretName': 's'}}]";
    put_in(h, "POST", "/api/v1/namespaces/red/secrets",
           "{'metadata': {'name': 's'}, 'data': {'pw': 'aHVudGVyMg=='}}", 201);
    want_plain("u1", spec);
    want_plain("u2", spec);
    wait_ready("u1");
    wait_ready("u2");
    put_file(V("u1", "empty-dir", "d") "/f", "disk", 0644);
    put_file(V("u1", "empty-dir", "m") "/f", "memory", 0644);
    CLEANUP_FREE char *link = own_path(V("u1", "secret", "s") "/..data");
    char first[256] = "", second[256] = "";
    assert_true(readlink(link, first, sizeof first - 1) > 0);
    volumes = volumes_free(volumes);
    open_volumes();
    want_plain("u1", spec);
    want_plain("new", "'volumes': []");
    volumes_sweep(volumes, (const char *const[]){"u1", "other"}, 2, ended, &en);
    assert_int_equal(loop_run_until(h->loop, &en.done, 10000), 0);
    assert_string_equal(en.text, "");
    wait_ready("u1");
    wait_ready("new");
    expect_text(V("u1", "empty-dir", "d") "/f", "disk");
    expect_text(V("u1", "empty-dir", "m") "/f", "memory");
    assert_true(readlink(link, second, sizeof second - 1) > 0);
    assert_string_equal(first, second);
    assert_false(own_exists("root/pods/u2"));
    remove_pod("u1");
    remove_pod("new");
    expect_no_mounts();
    en = (struct ending){0};
    volumes_sweep(volumes, NULL, 0, ended, &en);
    assert_int_equal(loop_run_until(h->loop, &en.done, 10000), 0);
    assert_int_equal(en.error, 0);
}

/* A claim of 'name' and of the volumeMode, bound to the volume of that name with this spec when 'bound'. */
static void put_claim_of(const char *name, const char *mode, const char *source, bool bound,
                         const char *ref_uid)
{
    CLEANUP_FREE char *claim = xasprintf(
        "{'metadata': {'name': '%s'}, 'spec': {'accessModes': ['ReadWriteOnce'], 'volumeName': "
        "'%s', 'volumeMode': '%s', 'resources': {'requests': {'storage': '1Gi'}}}}",
        name, name, mode);
    CLEANUP_FREE char *uid = make_object(h, "/api/v1/namespaces/red/persistentvolumeclaims", claim);
    CLEANUP_FREE char *volume = xasprintf(
        "{'metadata': {'name': '%s'}, 'spec': {'capacity': {'storage': '1Gi'}, 'accessModes': "
        "['ReadWriteOnce'], 'claimRef': {'namespace': 'red', 'name': '%s', 'uid': '%s'}, %s}}",
        name, name, ref_uid ? ref_uid : uid, source);
    put_in(h, "POST", "/api/v1/persistentvolumes", volume, 201);
    CLEANUP_FREE char *path =
        xasprintf("/api/v1/namespaces/red/persistentvolumeclaims/%s/status", name);
    CLEANUP_FREE char *status = xasprintf(
        "{'metadata': {'name': '%s'}, 'spec': {'accessModes': ['ReadWriteOnce'], 'volumeName': "
        "'%s', 'volumeMode': '%s', 'resources': {'requests': {'storage': '1Gi'}}}, "
        "'status': {'phase': '%s'}}",
        name, name, mode, bound ? "Bound" : "Pending");
    put_in(h, "PUT", path, status, 200);
}

static void put_claim(const char *name, const char *source, bool bound, const char *ref_uid)
{
    put_claim_of(name, "Filesystem", source, bound, ref_uid);
}

#define CLAIM(name) "'volumes': [{'name': 'v', 'persistentVolumeClaim': {'claimName': '" name "'}}]"
#define PVC "MountVolume.SetUp failed for volume \"v\" : error processing PVC red/"

static void claims_are_awaited_and_lead_to_their_volumes(void **state)
{
    NEEDS_ROOT();
    struct ending en;
    put_dir("data", 0755);
    CLEANUP_FREE char *data = own_path("data");
    CLEANUP_FREE char *host = xasprintf("'hostPath': {'path': '%s'}", data);
    put_claim("pending", host, false, NULL);
    want_plain("u1", CLAIM("pending"));
    wait_text("u1", PVC "pending: PVC is not bound");
    put_in(h, "PUT", "/api/v1/namespaces/red/persistentvolumeclaims/pending/status",
           "{'metadata': {'name': 'pending'}, 'spec': {'accessModes': ['ReadWriteOnce'], "
           "'volumeName': 'pending', 'resources': {'requests': {'storage': '1Gi'}}}, 'status': "
           "{'phase': 'Bound'}}",
           200);
    wait_ready("u1");
    mount_for("u1", "{'name': 'c', 'volumeMounts': [{'name': 'v', 'mountPath': '/v'}]}", &en);
    assert_string_equal(json_get_string(json_at(en.mounts, 0)), "/v data rw 0");
    ending_done(&en);
    remove_pod("u1");
    assert_true(own_exists("data"));
    /* Bound to another claim; absent; an ephemeral volume's claim that is not the pod's. */
    put_claim("stolen", host, true, "another");
    want_plain("u2", CLAIM("stolen"));
    wait_text("u2", PVC "stolen: the volume that it names is bound to another claim");
    remove_pod("u2");
    want_plain("u3", CLAIM("none"));
    wait_text("u3", PVC "none: persistentvolumeclaims \"none\" not found");
    remove_pod("u3");
    put_claim("p-v", host, true, NULL);
    want_plain("u4", "'volumes': [{'name': 'v', 'ephemeral': {'volumeClaimTemplate': {}}}]");
    wait_text("u4", PVC "p-v: it was not created for this pod, which does not own it");
    remove_pod("u4");
    expect_no_mounts();
}

#define MAP "MapVolume.SetUp failed for volume \"v\" : "
#define NODES                                                                               \
    "'volumeMode': 'Block', 'nodeAffinity': {'required': {'nodeSelectorTerms': "            \
    "[{'matchExpressions': [{'key': 'kubernetes.io/hostname', 'operator': 'In', 'values': " \
    "['n']}]}]}}, 'local': {'path': '%s'}"
#define USES(name, uses) CLAIM(name) ", 'containers': [{'name': 'c', 'image': 'i', " uses "}]"
#define DEVICES "'volumeDevices': [{'name': 'v', 'devicePath': '/dev/v'}]"

static void a_device_is_given_to_containers_that_ask_for_one_and_to_no_others(void **state)
{
    NEEDS_ROOT();
    struct ending en;
    CLEANUP_FREE char *device = own_path("device"), *file = own_path("file");
    CLEANUP_FREE char *on_device = xasprintf(NODES, device), *on_file = xasprintf(NODES, file);
    assert_int_equal(mknod(device, S_IFBLK | 0600, makedev(7, 0)), 0);
    put_file("file", "not a device", 0644);
    CLEANUP_FREE char *host = xstrdup("'volumeMode': 'Block', 'hostPath': {'path': '/none'}");
    CLEANUP_FREE char *want = xasprintf("/dev/v %s mrw", device);
    put_claim_of("block", "Block", on_device, true, NULL);
    want_plain("u1", USES("block", DEVICES));
    wait_ready("u1");
    mount_for("u1", "{'name': 'c', " DEVICES "}", &en);
    assert_int_equal(json_count(en.mounts), 2); /* And /etc/hosts. */
    assert_string_equal(json_get_string(json_at(en.mounts, 0)), want);
    ending_done(&en);
    /* As a container that is added later asks. */
    mount_for("u1", "{'name': 'c', 'volumeMounts': [{'name': 'v', 'mountPath': '/v'}]}", &en);
    assert_int_equal(en.error, -EINVAL);
    assert_string_equal(en.text, "volumeMounts[0]: volume v has volumeMode Block, but is specified "
                                 "in volumeMounts");
    ending_done(&en);
    remove_pod("u1");
    assert_true(own_exists("device"));
    want_plain("u2", USES("block", "'volumeMounts': [{'name': 'v', 'mountPath': '/v'}]"));
    wait_text("u2", MAP "volume v has volumeMode Block, but is specified in volumeMounts");
    remove_pod("u2");
    put_claim_of("block-file", "Block", on_file, true, NULL);
    CLEANUP_FREE char *no_device = xasprintf(MAP "local volume: %s is not a block device", file);
    want_plain("u3", USES("block-file", DEVICES));
    wait_text("u3", no_device);
    remove_pod("u3");
    put_claim_of("block-host", "Block", host, true, NULL);
    want_plain("u4", USES("block-host", DEVICES));
    wait_text("u4", MAP "volumes of the type hostPath cannot have the volumeMode Block");
    remove_pod("u4");
    put_claim_of("differs", "Filesystem", on_device, true, NULL);
    want_plain("u5", USES("differs", DEVICES));
    wait_text("u5", PVC "differs: its volume has another volumeMode");
    remove_pod("u5");
    put_claim("files", strstr(host, "'hostPath'"), true, NULL);
    want_plain("u6", USES("files", DEVICES));
    wait_text("u6", "MountVolume.SetUp failed for volume \"v\" : volume v has volumeMode "
                    "Filesystem, but is specified in volumeDevices");
    remove_pod("u6");
    expect_no_mounts();
}

static void count_usage(void *ctx, const struct volume_usage *u)
{
    assert_string_equal(u->claim, "answers");
    assert_true(u->capacity > 0);
    *(bool *) ctx = true;
}

static void a_volume_whose_reading_hangs_holds_up_the_figures_of_no_other(void **state)
{
    NEEDS_ROOT();
    CLEANUP_FREE char *silent = own_path("silent"), *data = own_path("answers");
    put_dir("silent", 0755);
    put_dir("answers", 0755);
    /* A file system that never answers, as a dead file server. */
    int fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    if (fuse < 0) {
        skip();
    }
    CLEANUP_FREE char *options = xasprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", fuse);
    assert_int_equal(mount("silent", silent, "fuse", 0, options), 0);
    CLEANUP_FREE char *on_silent = xasprintf("'hostPath': {'path': '%s'}", silent);
    CLEANUP_FREE char *on_data = xasprintf("'hostPath': {'path': '%s'}", data);
    put_claim("silent", on_silent, true, NULL);
    put_claim("answers", on_data, true, NULL);
    want_plain("u1", CLAIM("silent"));
    want_plain("u2", CLAIM("answers"));
    wait_ready("u1");
    wait_ready("u2");
    bool told = false;
    for (int i = 0; i < 2000 && !told; i++) {
        volumes_each_usage(volumes, "u1", count_usage, &told);
        assert_false(told);
        volumes_each_usage(volumes, "u2", count_usage, &told);
        step();
    }
    assert_true(told);
    /* Its pod goes all the same. */
    remove_pod("u1");
    remove_pod("u2");
    close(fuse);
    assert_int_equal(umount2(silent, MNT_DETACH), 0);
}

/* mount(8) of the test: binds the directory "export" for the server "good", reads a line of a
 * FIFO for "slow", and fails otherwise. */
static const char fake_mount[] = "#!/bin/sh\n"
                                 "while [ \"$1\" != -- ]; do shift; done\n"
                                 "case $2 in\n"
                                 "good:*) exec /bin/mount --bind %1$s/export \"$3\" ;;\n"
                                 "slow:*) read line < %1$s/fifo; exit 1 ;;\n"
                                 "*) echo 'mount.nfs: access denied by server' >&2; exit 32 ;;\n"
                                 "esac\n";

static void nfs_is_mounted_by_mount_8_and_holds_up_no_other_pod(void **state)
{
    NEEDS_ROOT();
    struct ending en = {0};
    CLEANUP_FREE char *old_path = xstrdup(getenv("PATH"));
    CLEANUP_FREE char *new_path = xasprintf("%s/bin:%s", own_dir, old_path);
    CLEANUP_FREE char *fifo = own_path("fifo");
    CLEANUP_FREE char *script = xasprintf(fake_mount, own_dir);
    put_dir("bin", 0755);
    put_dir("export", 0755);
    put_file("export/f", "x", 0644);
    put_file("bin/mount", script, 0755);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    setenv("PATH", new_path, 1);
    want_plain("slow", "'volumes': [{'name': 'v', 'nfs': {'server': 'slow', 'path': '/'}}]");
    want_plain("good", "'volumes': [{'name': 'v', 'nfs': {'server': 'good', 'path': '/x'}}]");
    want_plain("bad", "'volumes': [{'name': 'v', 'nfs': {'server': 'bad', 'path': '/x'}}]");
    wait_ready("good");
    expect_text(V("good", "nfs", "v") "/f", "x");
    wait_text("bad", "MountVolume.SetUp failed for volume \"v\" : mount bad:/x: mount.nfs: access "
                     "denied by server");
    remove_pod("bad");
    remove_pod("good");
    expect_text("export/f", "x");
    /* The removal waits for the mount under way, which could else appear after it. */
    volumes_remove(volumes, "slow", ended, &en);
    want_plain("u2", "'volumes': [{'name': 'e', 'emptyDir': {}}]");
    wait_ready("u2");
    remove_pod("u2");
    assert_false(en.done);
    int line = open(fifo, O_RDWR | O_CLOEXEC);
    assert_int_equal(write(line, "\n", 1), 1);
    assert_int_equal(loop_run_until(h->loop, &en.done, 10000), 0);
    close(line);
    assert_int_equal(en.error, 0);
    assert_false(own_exists("root/pods/slow"));
    setenv("PATH", old_path, 1);
    expect_no_mounts();
}

/* ---- a file server of the kernel (acceptance 62) ---- */

/* Runs the command by sh(1); false: it failed. */
static bool shell(const char *fmt, ...) PRINTF_LIKE(1, 2);
static bool shell(const char *fmt, ...)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    va_list ap;
    va_start(ap, fmt);
    strbuf_vaddf(&b, fmt, ap);
    va_end(ap);
    return system(strbuf_cstr(&b)) == 0;
}

static bool kernel_serves_nfs(void)
{
    return shell("modprobe -q -a nfsd nfsv4 2>/dev/null; grep -qw nfsd /proc/filesystems && "
                 "grep -qw nfs4 /proc/filesystems && command -v rpc.nfsd rpc.mountd exportfs "
                 "mount.nfs >/dev/null");
}

/* Serves "served" by NFS 4 on loopback.  Without a short grace a server that comes back lets clients wait
 * for a minute and a half. */
static void start_file_server(void)
{
    assert_true(shell("mountpoint -q /proc/fs/nfsd || mount -t nfsd nfsd /proc/fs/nfsd"));
    assert_true(
        shell("mkdir -p /var/lib/nfs/v4recovery /run/rpc_pipefs; "
              "echo 10 >/proc/fs/nfsd/nfsv4leasetime && echo 10 >/proc/fs/nfsd/nfsv4gracetime"));
    assert_true(shell("exportfs -i -o rw,fsid=0,insecure,no_subtree_check,no_root_squash "
                      "127.0.0.1:%s/served",
                      own_dir));
    assert_true(shell("rpc.mountd -N 3"));
    assert_true(shell("rpc.nfsd -N 3 -H 127.0.0.1 2"));
}

/* Clients keep their connection, and nobody answers them. */
static void pause_file_server(bool pause)
{
    assert_true(shell("iptables -%c INPUT -i lo -p tcp --dport 2049 -j DROP", pause ? 'I' : 'D'));
}

static void stop_file_server(void)
{
    assert_true(shell("rpc.nfsd 0; pkill -x rpc.mountd; exportfs -ua; umount /proc/fs/nfsd"));
}

#define LONG_MS 300000

static void a_dead_file_server_holds_up_its_own_pods_alone(void **state)
{
    NEEDS_ROOT();
    if (!kernel_serves_nfs()) {
        LEAVE_OUT("this kernel serves no NFS: tools/check-kernels --run nfs");
    }
    struct ending first = {0}, late = {0};
    put_dir("served", 0777);
    put_file("served/f", "x", 0644);
    start_file_server();
    want_plain("first", "'volumes': [{'name': 'v', 'nfs': {'server': '127.0.0.1', 'path': '/'}}]");
    wait_ready("first");
    expect_text(V("first", "nfs", "v") "/f", "x");
    put_file(V("first", "nfs", "v") "/g", "y", 0644);
    expect_text("served/g", "y");
    pause_file_server(true);
    /* One pod is mounted, one is to be, and both are ended: no other pod waits for that. */
    want_plain("late", "'volumes': [{'name': 'v', 'nfs': {'server': '127.0.0.1', 'path': '/'}}]");
    for (int i = 0; i < 20; i++) {
        step();
    }
    volumes_remove(volumes, "first", ended, &first);
    volumes_remove(volumes, "late", ended, &late);
    for (int i = 0; i < 8; i++) {
        CLEANUP_FREE char *uid = xasprintf("other%d", i);
        want_plain(uid, "'volumes': [{'name': 'e', 'emptyDir': {}}]");
        wait_ready(uid);
        remove_pod(uid);
    }
    pause_file_server(false);
    assert_int_equal(loop_run_until(h->loop, &first.done, LONG_MS), 0);
    assert_int_equal(loop_run_until(h->loop, &late.done, LONG_MS), 0);
    assert_int_equal(first.error, 0);
    assert_int_equal(late.error, 0);
    expect_text("served/f", "x");
    expect_text("served/g", "y");
    expect_no_mounts();
    /* The server is back, and so are its volumes. */
    want_plain("again", "'volumes': [{'name': 'v', 'nfs': {'server': '127.0.0.1', 'path': '/', "
                        "'readOnly': true}}]");
    wait_ready("again");
    expect_text(V("again", "nfs", "v") "/g", "y");
    remove_pod("again");
    stop_file_server();
}

static void two_hundred_pods_leave_nothing(void **state)
{
    NEEDS_ROOT();
    put_in(h, "POST", "/api/v1/namespaces/red/secrets",
           "{'metadata': {'name': 's'}, 'data': {'pw': 'aHVudGVyMg=='}}", 201);
    for (int i = 0; i < 200; i++) {
        CLEANUP_FREE char *uid = xasprintf("u%d", i);
        want_plain(uid, "'volumes': [{'name': 'e', 'emptyDir': {}}, {'name': 'm', 'emptyDir': "
                        "{'medium': 'Memory'}}, {'name': 's', 'secret': {'secretName': 's'}}]");
    }
    for (int i = 0; i < 200; i++) {
        CLEANUP_FREE char *uid = xasprintf("u%d", i);
        wait_ready(uid);
    }
    assert_int_equal(pod_objects_watches(objects), 1);
    struct ending en[200] = {0};
    for (int i = 0; i < 200; i++) {
        CLEANUP_FREE char *uid = xasprintf("u%d", i);
        volumes_remove(volumes, uid, ended, &en[i]);
        pod_objects_remove_pod(objects, uid);
    }
    for (int i = 0; i < 200; i++) {
        assert_int_equal(loop_run_until(h->loop, &en[i].done, 20000), 0);
        assert_string_equal(en[i].text, "");
    }
    expect_no_mounts();
    CLEANUP_FREE char *pods = own_path("root/pods");
    assert_int_equal(rmdir(pods), 0);
    assert_int_equal(pod_objects_watches(objects), 0);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(empty_dirs_are_on_disk_or_in_memory_with_a_size),
        TEST(a_missing_config_map_is_awaited_and_its_changes_are_followed),
        TEST(tokens_are_bound_to_the_pod_and_have_their_audience),
        cmocka_unit_test(tokens_are_renewed_at_four_fifths_of_their_life_or_after_a_day),
        TEST(host_paths_are_of_their_type_or_refused),
        TEST(unknown_and_dangerous_volumes_are_refused),
        TEST(containers_mount_volumes_subpaths_and_hosts),
        TEST(removal_cancels_mounts_and_keeps_what_containers_bound),
        TEST(a_restart_keeps_volumes_and_sweeps_those_of_gone_pods),
        TEST(claims_are_awaited_and_lead_to_their_volumes),
        TEST(a_device_is_given_to_containers_that_ask_for_one_and_to_no_others),
        TEST(a_volume_whose_reading_hangs_holds_up_the_figures_of_no_other),
        TEST(nfs_is_mounted_by_mount_8_and_holds_up_no_other_pod),
        TEST(a_dead_file_server_holds_up_its_own_pods_alone),
        TEST(two_hundred_pods_leave_nothing),
    };
    return cmocka_run_group_tests(tests, own_mounts_open, own_mounts_close);
}
