/* SPDX-License-Identifier: Apache-2.0 */
/* Rights of a node: each right is one row, and each request beside it that must be refused. */
#include "api/obj.h"
#include "apiserver/access/authz.h"
#include "apiserver/request/server_priv.h"
#include "base/base64.h"
#include "harness.h"
#include "net/tls/pki_csr.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define CSRS "/apis/certificates.k8s.io/v1/certificatesigningrequests"
#define LEASES "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"

static struct harness *h;

static void pod(const char *ns, const char *name, const char *node, const char *rest)
{
    CLEANUP_FREE char *path = xasprintf("/api/v1/namespaces/%s/pods", ns);
    CLEANUP_FREE char *body =
        xasprintf("{'metadata': {'name': '%s'}, 'spec': {'nodeName': '%s', %s}}", name, node, rest);
    put_in(h, "POST", path, body, 201);
}

#define ONE "'containers': [{'name': 'c', 'image': 'i'}]"

/* A PersistentVolume; 'ns' NULL: it is not bound to a claim. */
static void volume(const char *name, const char *ns, const char *claim)
{
    CLEANUP_FREE char *ref =
        ns ? xasprintf(",'claimRef':{'namespace':'%s','name':'%s'}", ns, claim) : xstrdup("");
    CLEANUP_FREE char *body =
        xasprintf("{'metadata':{'name':'%s'},'spec':{'capacity':{'storage':'1Gi'},'accessModes':["
                  "'ReadWriteOnce'],'nfs':{'server':'s','path':'/'}%s}}",
                  name, ref);
    put_in(h, "POST", "/api/v1/persistentvolumes", body, 201);
}

/* A claim in "red" and its volume, whose source is 'source'.  'own': the volume names the claim
 * with its uid, else with that of another one. */
static void bound_claim(const char *name, const char *source, bool own)
{
    CLEANUP_FREE char *claim =
        xasprintf("{'metadata':{'name':'%s'},'spec':{'accessModes':['ReadWriteOnce'],'resources':{"
                  "'requests':{'storage':'1Gi'}},'volumeName':'of-%s'}}",
                  name, name);
    CLEANUP_FREE char *path = xasprintf("/api/v1/namespaces/red/persistentvolumeclaims/%s", name);
    put_in(h, "POST", "/api/v1/namespaces/red/persistentvolumeclaims", claim, 201);
    CLEANUP(json_free)
    struct json *o = security_object(h->api->security, "", "persistentvolumeclaims", "red", name);
    CLEANUP_FREE char *body = xasprintf(
        "{'metadata':{'name':'of-%s'},'spec':{'capacity':{'storage':'1Gi'},'accessModes':["
        "'ReadWriteOnce'],%s,'claimRef':{'namespace':'red','name':'%s','uid':'%s'}}}",
        name, source, name, own ? obj_uid(o) : "another");
    put_in(h, "POST", "/api/v1/persistentvolumes", body, 201);
}

static void csr(const char *who, const char *name)
{
    CLEANUP_FREE char *pem = NULL;
    CLEANUP_FREE char *key = NULL;
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    pki_csr_make("system:node:n1", (const char *const[]){"system:nodes"}, 1, &pem, &key);
    base64_encode(pem, strlen(pem), &b);
    CLEANUP_FREE char *body = xasprintf(
        "{'metadata': {'name': '%s'}, 'spec': {'request': '%s', 'usages': ['client auth'],"
        "'signerName': 'kubernetes.io/kube-apiserver-client'}}",
        name, strbuf_cstr(&b));
    CLEANUP_ANSWER struct answer a = ask_as(h, who, "POST", CSRS, NULL, body);
    assert_int_equal(a.status, 201);
}

static int set_up(void **state)
{
    static const char *const spaces[] = {"blue", "kube-node-lease", "red", "zed"};
    h = harness_new_secure((struct apiserver_security){0});
    for (size_t i = 0; i < ARRAY_SIZE(spaces); i++) {
        free(make_namespace(h, spaces[i]));
    }
    static const char *const accounts[] = {"nowhere", "others", "robot"};
    for (size_t i = 0; i < ARRAY_SIZE(accounts); i++) {
        CLEANUP_FREE char *body = xasprintf("{'metadata': {'name': '%s'}}", accounts[i]);
        put_in(h, "POST", "/api/v1/namespaces/red/serviceaccounts", body, 201);
    }
    pod("blue", "web", "n1", ONE ", 'volumes': [{'name': 'v', 'secret': {'secretName': 'blue'}}]");
    pod("zed", "web", "n1", ONE ", 'volumes': [{'name': 'v', 'secret': {'secretName': 'zed'}}]");
    pod("red", "other", "n2",
        ONE ", 'serviceAccountName': 'others', 'volumes': [{'name': 'v', 'secret': {'secretName': "
            "'others'}}]");
    pod("red", "nowhere", "", ONE ", 'serviceAccountName': 'nowhere'");
    pod("red", "plain", "n3", ONE);
    pod("red", "web", "n1",
        "'serviceAccountName': 'robot', 'imagePullSecrets': [{'name': 'pull'}],"
        "'volumes': [{'name': 'a', 'secret': {'secretName': 's-volume'}},"
        "{'name': 'b', 'configMap': {'name': 'm-volume'}}, {'name': 'c', 'projected': {'sources': ["
        "{'secret': {'name': 's-projected'}}, {'configMap': {'name': 'm-projected'}}]}}],"
        "'initContainers': [{'name': 'i', 'image': 'i',"
        "'envFrom': [{'secretRef': {'name': 's-init'}}, {'configMapRef': {'name': 'm-init'}}]}],"
        "'containers': [{'name': 'c', 'image': 'i',"
        "'envFrom': [{'secretRef': {'name': 's-from'}}, {'configMapRef': {'name': 'm-from'}}],"
        "'env': [{'name': 'X', 'value': 'y'},"
        "{'name': 'A', 'valueFrom': {'secretKeyRef': {'name': 's-key', 'key': 'k'}}},"
        "{'name': 'B', 'valueFrom': {'configMapKeyRef': {'name': 'm-key', 'key': 'k'}}}]}]");
    pod("red", "disk", "n1",
        ONE ", 'serviceAccountName': 'robot', 'volumes': [{'name': 'v', 'persistentVolumeClaim': "
            "{'claimName': 'claim'}},"
            "{'name': 'tmp', 'ephemeral': {'volumeClaimTemplate': {'spec': {'accessModes': "
            "['ReadWriteOnce'], 'resources': {'requests': {'storage': '1Gi'}}}}}}]");
    volume("bound", "red", "claim");
    volume("other", "blue", "claim");
    volume("free", NULL, NULL);
    bound_claim(
        "driven",
        "'csi':{'driver':'d.example','volumeHandle':'1','nodeStageSecretRef':{'name':'stage',"
        "'namespace':'blue'},'nodePublishSecretRef':{'name':'publish','namespace':'red'}}",
        true);
    bound_claim("forged",
                "'csi':{'driver':'d.example','volumeHandle':'2','nodeStageSecretRef':{'name':"
                "'foreign','namespace':'red'}}",
                false);
    bound_claim("disk2-tmp", "'glusterfs':{'endpoints':'gluster','path':'p'}", true);
    pod("red", "disk2", "n1",
        ONE ", 'serviceAccountName': 'robot', 'volumes': [{'name': 'v', 'persistentVolumeClaim': "
            "{'claimName': 'driven'}},"
            "{'name': 'w', 'persistentVolumeClaim': {'claimName': 'forged'}},"
            "{'name': 'x', 'glusterfs': {'endpoints': 'inline', 'path': 'p'}},"
            "{'name': 'tmp', 'ephemeral': {'volumeClaimTemplate': {'spec': {'accessModes': "
            "['ReadWriteOnce'], 'resources': {'requests': {'storage': '1Gi'}}}}}}]");
    csr("system:node:n1 system:nodes", "own");
    put_in(h, "POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles",
           "{'metadata': {'name': 'c'}, 'rules': [{'verbs': ['create'],"
           "'apiGroups': ['certificates.k8s.io'], 'resources': ['certificatesigningrequests']}]}",
           201);
    put_in(h, "POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
           "{'metadata': {'name': 'c'}, 'roleRef': {'apiGroup': 'rbac.authorization.k8s.io',"
           "'kind': 'ClusterRole', 'name': 'c'}, 'subjects': [{'kind': 'User', 'name': 'jane',"
           "'apiGroup': 'rbac.authorization.k8s.io'}]}",
           201);
    csr("jane", "janes");
    return 0;
}

static int tear_down(void **state)
{
    harness_free(h);
    return 0;
}

/* Whether the node may "METHOD PATH[?watch][?FIELDS]". */
static bool may(const char *node, const char *what)
{
    CLEANUP_FREE char *path = xstrdup(strchr(what, ' ') + 1);
    CLEANUP_FREE char *method = xstrndup(what, strcspn(what, " "));
    CLEANUP_FREE char *name = xasprintf("system:node:%s", node);
    CLEANUP(user_unref) struct user_info *u = user_new(name);
    CLEANUP(attributes_done) struct attributes a;
    char *query = strchr(path, '?');
    bool watch = query && str_has_prefix(query, "?watch");
    if (query) {
        *query++ = '\0';
        query = watch ? strchr(query, '?') : query;
        query += query && *query == '?';
    }
    user_add_group(u, "system:nodes");
    attributes_parse(&a, method, path, watch, query);
    return authz_allows(h->api->security, u, &a, NULL);
}

static void a_node_has_rights_only_to_its_own_objects(void **state)
{
    static const struct {
        const char *what;
        bool ok;
    } cases[] = {
        /* Claims that its pods mount, and their volumes. */
        {"GET /api/v1/namespaces/red/persistentvolumeclaims/claim", true},
        {"GET /api/v1/namespaces/red/persistentvolumeclaims/disk-tmp", true},
        {"GET /api/v1/namespaces/red/persistentvolumeclaims/disk-v", false},
        {"GET /api/v1/namespaces/red/persistentvolumeclaims/other", false},
        {"GET /api/v1/namespaces/blue/persistentvolumeclaims/claim", false},
        /* Lists of these kinds show a node its part (test_storage_rights.py). */
        {"GET /api/v1/namespaces/red/persistentvolumeclaims", true},
        {"GET /api/v1/persistentvolumeclaims?watch", true},
        {"POST /api/v1/namespaces/red/persistentvolumeclaims", false},
        {"DELETE /api/v1/namespaces/red/persistentvolumeclaims", false},
        {"POST /api/v1/namespaces/red/persistentvolumeclaims/claim/binding", false},
        {"GET /api/v1/namespaces/red/persistentvolumeclaims/claim/status", true},
        {"PATCH /api/v1/namespaces/red/persistentvolumeclaims/claim/status", true},
        {"PATCH /api/v1/namespaces/blue/persistentvolumeclaims/claim/status", false},
        {"DELETE /api/v1/namespaces/red/persistentvolumeclaims/claim/status", false},
        /* Secrets and Endpoints that volumes of its pods name, in any namespace. */
        {"GET /api/v1/namespaces/blue/secrets/stage", true},
        {"GET /api/v1/namespaces/red/secrets/publish", true},
        {"GET /api/v1/namespaces/red/secrets/stage", false},
        {"GET /api/v1/namespaces/blue/secrets/publish", false},
        {"GET /api/v1/namespaces/red/secrets/foreign", false},
        {"GET /api/v1/namespaces/blue/secrets?watch?fieldSelector=metadata.name%3Dstage", false},
        {"PUT /api/v1/namespaces/blue/secrets/stage", false},
        {"GET /api/v1/namespaces/red/endpoints/gluster", true},
        {"GET /api/v1/namespaces/red/endpoints/inline", true},
        {"GET /api/v1/namespaces/blue/endpoints/gluster", false},
        {"GET /api/v1/namespaces/red/endpoints", false},
        {"PUT /api/v1/namespaces/red/endpoints/gluster", false},
        {"PUT /api/v1/namespaces/red/persistentvolumeclaims/claim", false},
        {"GET /api/v1/persistentvolumes/bound", true},
        {"GET /api/v1/persistentvolumes/other", false},
        {"GET /api/v1/persistentvolumes/free", false},
        {"GET /api/v1/persistentvolumes/none", false},
        {"GET /api/v1/persistentvolumes", true},
        {"POST /api/v1/persistentvolumes", true}, /* Admission judges the volume. */
        {"DELETE /api/v1/persistentvolumes", false},
        {"DELETE /api/v1/persistentvolumes/bound", false},
        {"PATCH /api/v1/persistentvolumes/bound", false},
        /* Its own CSINode, and what all nodes read alike. */
        {"POST /apis/storage.k8s.io/v1/csinodes", true},
        {"GET /apis/storage.k8s.io/v1/csinodes/n1", true},
        {"PUT /apis/storage.k8s.io/v1/csinodes/n1", true},
        {"PATCH /apis/storage.k8s.io/v1/csinodes/n1", true},
        {"DELETE /apis/storage.k8s.io/v1/csinodes/n1", true},
        {"GET /apis/storage.k8s.io/v1/csinodes/n2", false},
        {"PUT /apis/storage.k8s.io/v1/csinodes/n2", false},
        {"GET /apis/storage.k8s.io/v1/csinodes", false},
        {"GET /apis/storage.k8s.io/v1/csidrivers", true},
        {"GET /apis/storage.k8s.io/v1/csidrivers?watch", true},
        {"POST /apis/storage.k8s.io/v1/csidrivers", false},
        {"GET /apis/storage.k8s.io/v1/volumeattachments/a", true},
        {"GET /apis/storage.k8s.io/v1/volumeattachments", true},
        {"DELETE /apis/storage.k8s.io/v1/volumeattachments/a", false},
        {"POST /apis/storage.k8s.io/v1/volumeattachments", false},
        {"GET /apis/storage.k8s.io/v1/volumeattachments/a/status", false},
        {"PUT /apis/storage.k8s.io/v1/volumeattachments/a", false},
        {"GET /apis/storage.k8s.io/v1/storageclasses", true},
        {"POST /apis/storage.k8s.io/v1/storageclasses", false},
        {"GET /apis/storage.k8s.io/v1/csistoragecapacities", true},
        {"PUT /apis/storage.k8s.io/v1/namespaces/kube-system/csistoragecapacities/x", false},
        {"DELETE /apis/storage.k8s.io/v1/namespaces/kube-system/csistoragecapacities", false},
        {"GET /apis/node.k8s.io/v1/runtimeclasses", true},
        {"GET /apis/node.k8s.io/v1/runtimeclasses?watch", true},
        {"PUT /apis/node.k8s.io/v1/runtimeclasses/a", false},
        {"POST /api/v1/namespaces/red/pods/plain/binding", false},
        {"POST /api/v1/namespaces/red/bindings", false},
        /* Its own Node. */
        {"POST /api/v1/nodes", true},
        {"GET /api/v1/nodes/n1", true},
        {"PUT /api/v1/nodes/n1", true},
        {"PATCH /api/v1/nodes/n1", true},
        {"GET /api/v1/nodes/n1/status", true},
        {"PUT /api/v1/nodes/n1/status", true},
        {"PATCH /api/v1/nodes/n1/status", true},
        {"GET /api/v1/nodes?metadata.name=n1", true},
        {"GET /api/v1/nodes?watch?metadata.name=n1", true},
        {"GET /api/v1/nodes", false},
        {"GET /api/v1/nodes?watch", false},
        {"GET /api/v1/nodes?metadata.name=n2", false},
        {"GET /api/v1/nodes/n2", false},
        {"GET /api/v1/nodes/n", false},
        {"GET /api/v1/nodes/n11", false},
        {"PUT /api/v1/nodes/n2", false},
        {"PUT /api/v1/nodes/n2/status", false},
        {"DELETE /api/v1/nodes/n1", false},
        {"DELETE /api/v1/nodes", false},
        {"PUT /api/v1/nodes/n1/proxy", false},
        {"GET /api/v1/nodes/n1/proxy", false},
        {"POST /api/v1/nodes/n1/proxy", false},
        {"GET /apis/example.com/v1/nodes/n1", false},
        /* Its pods. */
        {"GET /api/v1/pods?spec.nodeName=n1", true},
        {"GET /api/v1/pods?watch?spec.nodeName=n1", true},
        {"GET /api/v1/namespaces/red/pods?spec.nodeName=n1", true},
        {"GET /api/v1/pods", false},
        {"GET /api/v1/pods?watch", false},
        {"GET /api/v1/pods?spec.nodeName=n2", false},
        {"GET /api/v1/pods?spec.nodeName=", false},
        {"GET /api/v1/namespaces/red/pods", false},
        {"GET /api/v1/namespaces/red/pods/web", true},
        {"GET /api/v1/namespaces/red/pods/other", false},
        {"GET /api/v1/namespaces/red/pods/nowhere", false},
        {"GET /api/v1/namespaces/red/pods/absent", false},
        {"DELETE /api/v1/namespaces/red/pods/web", true},
        {"DELETE /api/v1/namespaces/red/pods/other", false},
        {"DELETE /api/v1/namespaces/red/pods", false},
        {"PUT /api/v1/namespaces/red/pods/web", false},
        {"PATCH /api/v1/namespaces/red/pods/web", false},
        {"POST /api/v1/namespaces/red/pods", true}, /* Admission allows mirror pods only. */
        {"GET /api/v1/namespaces/red/pods/web/status", true},
        {"PUT /api/v1/namespaces/red/pods/web/status", true},
        {"PATCH /api/v1/namespaces/red/pods/web/status", true},
        {"DELETE /api/v1/namespaces/red/pods/web/status", false},
        {"PUT /api/v1/namespaces/red/pods/other/status", false},
        {"PATCH /api/v1/namespaces/red/pods/nowhere/status", false},
        {"GET /api/v1/namespaces/red/pods/web/log", false},
        {"POST /api/v1/namespaces/red/pods/web/exec", false},
        {"POST /api/v1/namespaces/red/pods/web/eviction", false},
        {"PATCH /api/v1/namespaces/red/pods/web/ephemeralcontainers", false},
        {"GET /apis/example.com/v1/namespaces/red/pods/web", false},
        /* Secrets and ConfigMaps that its pods use. */
        {"GET /api/v1/namespaces/red/secrets/s-volume", true},
        {"GET /api/v1/namespaces/red/secrets/s-projected", true},
        {"GET /api/v1/namespaces/red/secrets/s-init", true},
        {"GET /api/v1/namespaces/red/secrets/s-from", true},
        {"GET /api/v1/namespaces/red/secrets/s-key", true},
        {"GET /api/v1/namespaces/red/secrets/pull", true},
        {"GET /api/v1/namespaces/red/configmaps/m-volume", true},
        {"GET /api/v1/namespaces/red/configmaps/m-projected", true},
        {"GET /api/v1/namespaces/red/configmaps/m-init", true},
        {"GET /api/v1/namespaces/red/configmaps/m-from", true},
        {"GET /api/v1/namespaces/red/configmaps/m-key", true},
        {"GET /api/v1/namespaces/blue/secrets/blue", true},
        {"GET /api/v1/namespaces/zed/secrets/zed", true},
        {"GET /api/v1/namespaces/red/secrets/blue", false},
        {"GET /api/v1/namespaces/red/secrets/zed", false},
        {"GET /api/v1/namespaces/blue/secrets/s-volume", false},
        {"GET /api/v1/namespaces/re/secrets/s-volume", false},
        {"GET /api/v1/secrets/s-volume", false},
        {"GET /api/v1/namespaces/red/secrets/others", false},
        {"GET /api/v1/namespaces/red/secrets/m-volume", false},
        {"GET /api/v1/namespaces/red/secrets/m-projected", false},
        {"GET /api/v1/namespaces/red/secrets/m-init", false},
        {"GET /api/v1/namespaces/red/secrets/m-key", false},
        {"GET /api/v1/namespaces/red/configmaps/s-volume", false},
        {"GET /api/v1/namespaces/red/configmaps/s-projected", false},
        {"GET /api/v1/namespaces/red/configmaps/s-from", false},
        {"GET /api/v1/namespaces/red/configmaps/s-key", false},
        {"GET /api/v1/namespaces/red/configmaps/pull", false},
        {"GET /api/v1/namespaces/red/secrets", false},
        {"GET /api/v1/namespaces/red/secrets?metadata.name=s-volume", true},
        {"GET /api/v1/namespaces/red/secrets?watch?metadata.name=s-volume", true},
        {"GET /api/v1/namespaces/red/configmaps?metadata.name=m-volume", true},
        {"GET /api/v1/namespaces/red/configmaps?watch?metadata.name=m-volume", true},
        {"GET /api/v1/namespaces/red/secrets/s-volume?watch", true},
        {"GET /api/v1/namespaces/red/secrets?metadata.name!=s-volume", false},
        {"GET /api/v1/namespaces/red/secrets?watch?metadata.name!=s-volume", false},
        {"GET /api/v1/namespaces/red/secrets?metadata.name=", false},
        {"GET /api/v1/namespaces/red/secrets?metadata.name=others,metadata.name=s-volume", false},
        {"GET /api/v1/namespaces/red/secrets?type=Opaque", false},
        {"GET /api/v1/namespaces/red/secrets?watch", false},
        {"GET /api/v1/namespaces/red/secrets?metadata.name=others", false},
        {"GET /api/v1/namespaces/red/secrets?watch?metadata.name=others", false},
        {"GET /api/v1/namespaces/red/secrets?watch?metadata.name=m-volume", false},
        {"GET /api/v1/namespaces/red/configmaps?watch?metadata.name=s-volume", false},
        {"GET /api/v1/namespaces/blue/secrets?watch?metadata.name=s-volume", false},
        {"GET /api/v1/secrets?metadata.name=s-volume", false},
        {"GET /api/v1/secrets?watch?metadata.name=s-volume", false},
        {"DELETE /api/v1/namespaces/red/secrets?metadata.name=s-volume", false},
        {"PUT /api/v1/namespaces/red/secrets/s-volume", false},
        {"PATCH /api/v1/namespaces/red/secrets/s-volume", false},
        {"DELETE /api/v1/namespaces/red/secrets/s-volume", false},
        {"POST /api/v1/namespaces/red/secrets", false},
        {"GET /api/v1/namespaces/red/secrets/s-volume/status", false},
        {"PUT /api/v1/namespaces/red/configmaps/m-volume", false},
        {"DELETE /api/v1/namespaces/red/configmaps", false},
        {"GET /apis/example.com/v1/namespaces/red/secrets/s-volume", false},
        {"GET /apis/example.com/v1/namespaces/red/configmaps/m-volume", false},
        /* Tokens of the service accounts of its pods. */
        {"POST /api/v1/namespaces/red/serviceaccounts/robot/token", true},
        {"POST /api/v1/namespaces/blue/serviceaccounts/default/token", true},
        {"POST /api/v1/namespaces/red/serviceaccounts/default/token", false},
        {"POST /api/v1/namespaces/red/serviceaccounts/others/token", false},
        {"POST /api/v1/namespaces/red/serviceaccounts/nowhere/token", false},
        {"POST /api/v1/namespaces/blue/serviceaccounts/robot/token", false},
        {"POST /api/v1/namespaces/red/serviceaccounts", false},
        {"POST /api/v1/namespaces/red/serviceaccounts/robot/status", false},
        {"GET /api/v1/namespaces/red/serviceaccounts/robot/token", false},
        {"GET /api/v1/namespaces/red/serviceaccounts/robot", true},
        {"GET /api/v1/namespaces/red/serviceaccounts/others", false},
        {"GET /api/v1/namespaces/red/serviceaccounts", false},
        {"POST /apis/authentication.k8s.io/v1/tokenreviews", true},
        {"POST /apis/authorization.k8s.io/v1/subjectaccessreviews", true},
        {"POST /apis/authorization.k8s.io/v1/namespaces/red/localsubjectaccessreviews", true},
        {"POST /apis/example.com/v1/tokenreviews", false},
        {"GET /apis/resource.k8s.io/v1/resourceslices?spec.nodeName=n1", true},
        {"GET /apis/resource.k8s.io/v1/resourceslices?spec.nodeName=n2", false},
        {"GET /apis/resource.k8s.io/v1/resourceslices", false},
        {"DELETE /apis/resource.k8s.io/v1/resourceslices?spec.nodeName=n1", true},
        {"DELETE /apis/resource.k8s.io/v1/resourceslices", false},
        {"POST /apis/resource.k8s.io/v1/resourceslices", false},
        {"PUT /api/v1/namespaces/red/serviceaccounts/robot/token", false},
        {"POST /apis/example.com/v1/namespaces/red/serviceaccounts/robot/token", false},
        /* Events. */
        {"POST /api/v1/namespaces/red/events", true},
        {"PUT /api/v1/namespaces/red/events/e", true},
        {"PATCH /apis/events.k8s.io/v1/namespaces/red/events/e", true},
        {"GET /api/v1/namespaces/red/events/e", false},
        {"GET /api/v1/events", false},
        {"DELETE /api/v1/namespaces/red/events/e", false},
        {"DELETE /api/v1/namespaces/red/events", false},
        {"PUT /api/v1/namespaces/red/events/e/status", false},
        {"POST /apis/example.com/v1/namespaces/red/events", false},
        /* Its lease. */
        {"POST " LEASES, true},
        {"GET " LEASES "/n1", true},
        {"PUT " LEASES "/n1", true},
        {"PATCH " LEASES "/n1", true},
        {"DELETE " LEASES "/n1", true},
        {"GET " LEASES, false},
        {"GET " LEASES "?metadata.name=n1", false},
        {"DELETE " LEASES, false},
        {"GET " LEASES "/n2", false},
        {"PUT " LEASES "/n2", false},
        {"PUT " LEASES "/n1/status", false},
        {"POST " LEASES "/n1/status", false},
        {"POST /apis/coordination.k8s.io/v1/namespaces/red/leases", false},
        {"PUT /apis/coordination.k8s.io/v1/namespaces/red/leases/n1", false},
        {"PUT /apis/coordination.k8s.io/v1/namespaces/kube-system/leases/n1", false},
        {"PUT /apis/example.com/v1/namespaces/kube-node-lease/leases/n1", false},
        {"PUT /api/v1/namespaces/kube-node-lease/leases/n1", false},
        {"PUT /apis/coordination.k8s.io/v1/namespaces/kube-node-lease/others/n1", false},
        /* Its certificate requests. */
        {"POST " CSRS, true},
        {"GET " CSRS "/own", true},
        {"GET " CSRS "?metadata.name=own", true},
        {"GET " CSRS "?watch?metadata.name=own", true},
        {"GET " CSRS, false},
        {"GET " CSRS "?watch", false},
        {"GET " CSRS "/janes", false},
        {"GET " CSRS "?metadata.name=janes", false},
        {"GET " CSRS "?watch?metadata.name=janes", false},
        {"GET " CSRS "/absent", false},
        {"PUT " CSRS "/own", false},
        {"PATCH " CSRS "/own", false},
        {"DELETE " CSRS "/own", false},
        {"GET " CSRS "/own/status", false},
        {"PUT " CSRS "/own/status", false},
        {"PUT " CSRS "/own/approval", false},
        {"POST " CSRS "/own/approval", false},
        {"GET /apis/certificates.k8s.io/v1/others/own", false},
        {"GET /apis/example.com/v1/certificatesigningrequests/own", false},
        {"POST /apis/example.com/v1/certificatesigningrequests", false},
        /* Reviews, for the clients of its own server. */
        {"POST /apis/authentication.k8s.io/v1/tokenreviews", true},
        {"POST /apis/authorization.k8s.io/v1/subjectaccessreviews", true},
        {"POST /apis/authorization.k8s.io/v1/namespaces/red/localsubjectaccessreviews", true},
        {"POST /apis/authorization.k8s.io/v1/tokenreviews", false},
        {"GET /apis/authentication.k8s.io/v1/tokenreviews", false},
        /* Other objects. */
        {"GET /api/v1/namespaces/red", false},
        {"GET /api/v1/services", false},
        {"GET /apis/network.openshift.io/v1/hostsubnets/n1", false},
        {"GET /metrics", false},
        {"POST /api/v1/nodes/n1/x/y", false},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        if (may("n1", cases[i].what) != cases[i].ok) {
            fail_msg("n1 may%s %s", cases[i].ok ? " not" : "", cases[i].what);
        }
    }
    /* A pod without serviceAccountName runs as "default". */
    assert_true(may("n3", "POST /api/v1/namespaces/red/serviceaccounts/default/token"));
    assert_false(may("n3", "POST /api/v1/namespaces/red/serviceaccounts/robot/token"));
    assert_false(may("n3", "GET " CSRS "/own"));
}

static void a_node_needs_the_group_system_nodes(void **state)
{
    CLEANUP(attributes_done) struct attributes a;
    attributes_parse(&a, "GET", "/api/v1/nodes/n1", false, NULL);
    static const struct {
        const char *name, *group;
        bool ok;
    } cases[] = {
        {"system:node:n1", "system:nodes", true},
        {"system:node:n1", "system:node", false},
        {"system:node:n1", "system:authenticated", false},
        {"n1", "system:nodes", false},
        {"system:nodes:n1", "system:nodes", false},
        {"system:node:", "system:nodes", false},
        {"jane", "system:masters", true},
        {"jane", "system:master", false},
        {"system:masters", "dev", false},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(user_unref) struct user_info *u = user_new(cases[i].name);
        user_add_group(u, cases[i].group);
        if (authz_allows(h->api->security, u, &a, NULL) != cases[i].ok) {
            fail_msg("%s of %s", cases[i].name, cases[i].group);
        }
    }
}

static void a_part_of_a_verb_gives_no_right(void **state)
{
    static const struct {
        const char *verb;
        bool ok;
    } cases[] = {{"get", true}, {"patch", true}, {"", false},         {"g", false},
                 {"et", false}, {"gets", false}, {"get list", false}, {"list watch", false},
                 {"at", false}, {" ", false},    {"*", false}};
    CLEANUP(user_unref) struct user_info *u = user_new("system:node:n1");
    user_add_group(u, "system:nodes");
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        if (authz_may(h->api->security, u, cases[i].verb, "", "nodes", NULL, "n1") != cases[i].ok) {
            fail_msg("\"%s\"", cases[i].verb);
        }
    }
}

static void a_node_has_no_rights_before_the_registry_is_loaded(void **state)
{
    h->api->cache.ready = false;
    assert_false(may("n1", "GET /api/v1/nodes/n1"));
    assert_false(may("n1", "POST /api/v1/namespaces/red/events"));
    h->api->cache.ready = true;
    assert_true(may("n1", "GET /api/v1/nodes/n1"));
}

#define T(name) cmocka_unit_test(name)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_node_has_rights_only_to_its_own_objects),
        T(a_node_needs_the_group_system_nodes),
        T(a_part_of_a_verb_gives_no_right),
        T(a_node_has_no_rights_before_the_registry_is_loaded),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
