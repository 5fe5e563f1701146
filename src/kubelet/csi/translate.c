/* SPDX-License-Identifier: Apache-2.0 */
#include "kubelet/csi/translate.h"

#include "base/mem.h"

struct cloud {
    const char *member, *id, *driver;
    bool is_share; /* A file share, of which the secret has the account. */
};
static const struct cloud clouds[] = {
    {"awsElasticBlockStore", "volumeID", "ebs.csi.aws.com"},
    {"gcePersistentDisk", "pdName", "pd.csi.storage.gke.io"},
    {"azureDisk", "diskURI", "disk.csi.azure.com"},
    {"cinder", "volumeID", "cinder.csi.openstack.org"},
    {"azureFile", "shareName", "file.csi.azure.com", true},
};

/* The driver reads the account from the secret; the handle names both, as the driver expects. */
static void add_share(struct json *csi, const struct json *from)
{
    const char *secret = json_get_text(from, "secretName");
    const char *share = json_get_text(from, "shareName");
    const char *ns = json_get_text(from, "secretNamespace");
    json_set(csi, "volumeHandle", json_stringf("#%s#%s#", secret, share));
    json_set_string(json_ensure_object(csi, "volumeAttributes"), "shareName", share);
    struct json *ref = json_ensure_object(csi, "nodeStageSecretRef");
    json_set_string(ref, "name", secret);
    if (*ns) {
        json_set_string(ref, "namespace", ns);
    }
}

static void add_disk(struct json *csi, const struct json *from, const char *id)
{
    const char *fs_type = json_get_text(from, "fsType");
    int64_t partition = json_get_int_or(json_get(from, "partition"), 0);
    json_set_string(csi, "volumeHandle", json_get_text(from, id));
    json_set_string(csi, "fsType", *fs_type ? fs_type : "ext4");
    if (partition > 0) {
        json_set(json_ensure_object(csi, "volumeAttributes"), "partition",
                 json_stringf("%lld", (long long) partition));
    }
}

struct json *csi_translate(const struct json *volume)
{
    for (size_t i = 0; i < ARRAY_SIZE(clouds); i++) {
        const struct cloud *c = &clouds[i];
        const struct json *from = json_get(volume, c->member);
        if (!json_is(from, JSON_OBJECT)) {
            continue;
        }
        struct json *csi = json_object();
        json_set_string(csi, "driver", c->driver);
        if (c->is_share) {
            add_share(csi, from);
        } else {
            add_disk(csi, from, c->id);
        }
        json_set_bool(csi, "readOnly", json_get_bool(json_get(from, "readOnly"), false));
        return csi;
    }
    return NULL;
}

char *csi_unique_name(const struct json *source)
{
    return xasprintf("kubernetes.io/csi/%s^%s", json_get_text(source, "driver"),
                     json_get_text(source, "volumeHandle"));
}
