/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of volumes: each has one source, and each source its own rules. */
#include "api/kind_util.h"
#include "api/kinds/pod_priv.h"
#include "api/label_selector.h"
#include "api/quantity.h"
#include "base/mem.h"

#define MODE_MAX 0777
#define TOKEN_MIN_S 600
#define TOKEN_MAX_S ((int64_t) 1 << 32)
#define PORTAL_MAX 64 /* Characters of "NAME:PORTAL" in the name of an initiator's session. */
#define TENANT_MAX 64

/* One volume. */
struct volume {
    const struct pod_rules *r;
    const char *field; /* The volume's field. */
    const struct json *v;
};

/* ---- parts of several sources ---- */

/* A path that does not leave the volume. */
void pod_check_local_path(const struct pod_rules *r, const char *field, const struct json *path)
{
    if (str_has_prefix(json_get_string(path) ? json_get_string(path) : "", "/")) {
        api_invalid(r->c, field, path, "must be a relative path");
    }
    api_validate_path(r->c, field, path);
}

/* The path of a file that the node writes: names with ".." are its own. */
static void check_file_path(const struct pod_rules *r, const char *field, const struct json *path)
{
    const char *s = json_get_string(path) ? json_get_string(path) : "";
    pod_check_local_path(r, field, path);
    if (str_has_prefix(s, "..") && !str_has_prefix(s, "../")) {
        api_invalid(r->c, field, path, "must not start with '..'");
    }
}

static void check_mode(const struct pod_rules *r, const char *field, const char *key,
                       const struct json *v)
{
    const struct json *mode = json_get(v, key);
    int64_t n = json_get_int_or(mode, 0);
    if (n < 0 || n > MODE_MAX) {
        api_invalid(r->c, API_FIELD("%s.%s", field, key), mode,
                    "must be a number between 0 and 0777 (octal), both inclusive");
    }
}

static void check_items(const struct pod_rules *r, const char *field, const struct json *items)
{
    for (size_t i = 0; i < json_count(items); i++) {
        const char *at = API_FIELD("%s.items[%zu]", field, i);
        const struct json *item = json_at(items, i);
        check_file_path(r, API_FIELD("%s.path", at), json_get(item, "path"));
        check_mode(r, at, "mode", item);
    }
}

static void require(const struct volume *o, const char *field, const struct json *v,
                    const char *key)
{
    if (json_string_size(json_get(v, key)) == 0) {
        api_required(o->r->c, API_FIELD("%s.%s", field, key), "");
    }
}

/* ---- sources ---- */

static void check_empty_dir(const struct volume *o, const char *field, const struct json *v)
{
    const char *limit = json_get_string(json_get(v, "sizeLimit"));
    if (limit && api_quantity_compare(limit, "0") < 0) {
        api_forbidden(o->r->c, API_FIELD("%s.sizeLimit", field),
                      "SizeLimit field must be a valid resource quantity");
    }
}

static void check_host_path(const struct volume *o, const char *field, const struct json *v)
{
    static const char *const types[] = {
        "",     "BlockDevice",  "CharDevice", "Directory", "DirectoryOrCreate",
        "File", "FileOrCreate", "Socket",     NULL};
    api_validate_path(o->r->c, API_FIELD("%s.path", field), json_get(v, "path"));
    (void) api_field_enum(o->r->c, API_FIELD("%s.type", field), json_get(v, "type"), false, types);
}

static void check_git_repo(const struct volume *o, const char *field, const struct json *v)
{
    pod_check_local_path(o->r, API_FIELD("%s.directory", field), json_get(v, "directory"));
}

static void check_secret(const struct volume *o, const char *field, const struct json *v)
{
    require(o, field, v, "secretName");
    check_mode(o->r, field, "defaultMode", v);
    check_items(o->r, field, json_get(v, "items"));
}

static void check_config_map(const struct volume *o, const char *field, const struct json *v)
{
    require(o, field, v, "name");
    check_mode(o->r, field, "defaultMode", v);
    check_items(o->r, field, json_get(v, "items"));
}

static void check_nfs(const struct volume *o, const char *field, const struct json *v)
{
    const struct json *path = json_get(v, "path");
    if (!str_has_prefix(json_get_text(v, "path"), "/")) {
        api_invalid(o->r->c, API_FIELD("%s.path", field), path, "must be an absolute path");
    }
}

static bool is_all(const char *s, size_t n, const char *letters)
{
    return strlen(s) == n && strspn(s, letters) == n;
}

/* "iqn.YYYY-MM.DOMAIN:NAME", "eui." and 16, "naa." and 32 letters or digits. */
static bool is_initiator(const char *s)
{
    static const char alnum[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789",
                      digits[] = "0123456789";
    if (!str_has_prefix(s, "iqn")) {
        return s[3] && is_all(s + 4, str_has_prefix(s, "eui") ? 16 : 32, alnum);
    }
    const char *colon = strchr(s, ':');
    return str_has_prefix(s, "iqn.") && strspn(s + 4, digits) == 4 && s[8] == '-' &&
           strspn(s + 9, digits) == 2 && s[11] == '.' && colon && colon > s + 12 && colon[1] &&
           !colon[1 + strcspn(colon + 1, ",;*&$| \t\n")];
}

static void check_initiator(const struct volume *o, const char *field, const struct json *name)
{
    const char *s = json_get_string(name);
    if (!s || !*s) {
        return;
    }
    if (!str_has_prefix(s, "iqn") && !str_has_prefix(s, "eui") && !str_has_prefix(s, "naa")) {
        api_invalid(o->r->c, field, name, "must be valid format starting with iqn, eui, or naa");
    } else if (!is_initiator(s)) {
        api_invalid(o->r->c, field, name, "must be valid format");
    }
}

static void check_iscsi(const struct volume *o, const char *field, const struct json *v)
{
    const struct json *initiator = json_get(v, "initiatorName"), *name = json_get(o->v, "name");
    check_initiator(o, API_FIELD("%s.iqn", field), json_get(v, "iqn"));
    check_initiator(o, API_FIELD("%s.initiatorname", field), initiator);
    if ((pod_has_set(v, "chapAuthDiscovery") || pod_has_set(v, "chapAuthSession")) &&
        !json_get(v, "secretRef")) {
        api_required(o->r->c, API_FIELD("%s.secretRef", field), "");
    }
    if (initiator &&
        json_string_size(name) + 1 + json_string_size(json_get(v, "targetPortal")) > PORTAL_MAX) {
        api_invalid(o->r->c, API_FIELD("%s.name", o->field), name,
                    "Total length of <volume name>:<iscsi.targetPortal> must be under 64 "
                    "characters if iscsi.initiatorName is specified.");
    }
}

static void check_flocker(const struct volume *o, const char *field, const struct json *v)
{
    CLEANUP(json_free) struct json *whole = json_string("resource");
    bool named = json_string_size(json_get(v, "datasetName")) > 0;
    bool by_uuid = json_string_size(json_get(v, "datasetUUID")) > 0;
    if (!named && !by_uuid) {
        api_required(o->r->c, field, "one of datasetName and datasetUUID is required");
    } else if (named && by_uuid) {
        api_invalid(o->r->c, field, whole,
                    "datasetName and datasetUUID can not be specified simultaneously");
    }
    if (strchr(json_get_text(v, "datasetName"), '/')) {
        api_invalid(o->r->c, API_FIELD("%s.datasetName", field), json_get(v, "datasetName"),
                    "must not contain '/'");
    }
}

static void check_secret_ref(const struct volume *o, const char *field, const struct json *v)
{
    const struct json *ref = json_get(v, "secretRef");
    if (ref) {
        require(o, API_FIELD("%s.secretRef", field), ref, "name");
    }
}

static void check_quobyte(const struct volume *o, const char *field, const struct json *v)
{
    static const char text[] = "must be a host:port pair or multiple pairs separated by commas";
    const struct json *registry = json_get(v, "registry");
    const char *s = json_get_text(v, "registry");
    if (!*s) {
        api_required(o->r->c, API_FIELD("%s.registry", field), "%s", text);
        return;
    }
    if (json_string_size(json_get(v, "tenant")) > TENANT_MAX) {
        api_required(o->r->c, API_FIELD("%s.tenant", field),
                     "must be a UUID and may not exceed a length of 64 characters");
        return;
    }
    for (size_t n; n = strcspn(s, ","), true; s += n + 1) {
        if (!memchr(s, ':', n)) {
            api_invalid(o->r->c, API_FIELD("%s.registry", field), registry, "%s", text);
        }
        if (!s[n] || o->r->c->n == API_MAX_CAUSES) {
            return;
        }
    }
}

static void check_file(const struct pod_rules *r, const char *field, const struct json *file)
{
    const struct json *ref = json_get(file, "fieldRef");
    const struct json *resource = json_get(file, "resourceFieldRef");
    CLEANUP(json_free) struct json *whole = json_string("resource");
    check_file_path(r, API_FIELD("%s.path", field), json_get(file, "path"));
    if (ref) {
        pod_check_field_ref(r, API_FIELD("%s.fieldRef", field), ref, true);
    } else if (resource) {
        pod_check_resource_ref(r, API_FIELD("%s.resourceFieldRef", field), resource, true);
    } else {
        api_required(r->c, field, "one of fieldRef and resourceFieldRef is required");
    }
    if (ref && resource) {
        api_invalid(r->c, field, whole,
                    "fieldRef and resourceFieldRef can not be specified simultaneously");
    }
    check_mode(r, field, "mode", file);
}

/* The causes are of the volume: Kubernetes does not name the item. */
static void check_downward(const struct volume *o, const char *field, const struct json *v)
{
    const struct json *file;
    check_mode(o->r, field, "defaultMode", v);
    JSON_FOREACH (file, json_get(v, "items")) {
        check_file(o->r, field, file);
    }
}

static void check_fc(const struct volume *o, const char *field, const struct json *v)
{
    const struct json *names = json_get(v, "targetWWNs"), *lun = json_get(v, "lun");
    const char *at = API_FIELD("%s.targetWWNs", field);
    int64_t n;
    bool ids = json_count(json_get(v, "wwids")) > 0;
    if (json_count(names) == 0 && !ids) {
        api_required(o->r->c, at, "must specify either targetWWNs or wwids, but not both");
    } else if (json_count(names) && ids) {
        api_invalid(o->r->c, at, names, "targetWWNs and wwids can not be specified simultaneously");
    }
    if (json_count(names) && !lun) {
        api_required(o->r->c, API_FIELD("%s.lun", field),
                     "lun is required if targetWWNs is specified");
    } else if (json_count(names)) {
        api_field_int(o->r->c, API_FIELD("%s.lun", field), lun, true, 0, 255, &n);
    }
}

static void check_flex(const struct volume *o, const char *field, const struct json *v)
{
    static const char *const reserved[] = {".kubernetes.io", ".k8s.io"};
    const struct json *options = json_get(v, "options");
    for (size_t i = 0; i < json_count(options); i++) {
        const char *key = json_key_at(options, i);
        CLEANUP(json_free) struct json *shown = json_string(key);
        CLEANUP_STRBUF struct strbuf domain = STRBUF_INIT;
        strbuf_addc(&domain, '.');
        for (const char *p = key; *p && *p != '/'; p++) {
            strbuf_addc(&domain, *p >= 'A' && *p <= 'Z' ? (char) (*p - 'A' + 'a') : *p);
        }
        for (size_t k = 0; k < ARRAY_SIZE(reserved); k++) {
            if (str_has_suffix(strbuf_cstr(&domain), reserved[k])) {
                api_invalid(o->r->c, API_FIELD("%s.options[%.128s]", field, key), shown,
                            "kubernetes.io and k8s.io namespaces are reserved");
            }
        }
    }
}

static void check_azure_disk(const struct volume *o, const char *field, const struct json *v)
{
    static const char *const managed[] = {"/subscriptions/{sub-id}/resourcegroups/{group-name}/"
                                          "providers/microsoft.compute/disks/{disk-id}",
                                          NULL};
    static const char *const blob[] = {
        "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd", NULL};
    const char *uri = json_get_text(v, "diskURI");
    bool is_managed = streq(json_get_text(v, "kind"), "Managed");
    if (!str_has_prefix(uri, is_managed ? "/subscriptions/" : "https://")) {
        api_unsupported(o->r->c, API_FIELD("%s.diskURI", field), json_get(v, "diskURI"),
                        is_managed ? managed : blob);
    }
}

static void check_storage_os(const struct volume *o, const char *field, const struct json *v)
{
    require(o, field, v, "volumeName");
    check_secret_ref(o, field, v);
}

static void check_scale_io(const struct volume *o, const char *field, const struct json *v)
{
    require(o, field, v, "volumeName");
}

static void check_csi(const struct volume *o, const char *field, const struct json *v)
{
    const struct json *ref = json_get(v, "nodePublishSecretRef");
    if (ref) {
        require(o, API_FIELD("%s.nodePublishSecretRef", field), ref, "name");
    }
}

/* A claim is made with the pod's name and the volume's. */
static void check_claim_made(const struct volume *o, const char *field, const struct json *v)
{
    const struct json *template = json_get(v, "volumeClaimTemplate"),
                      *name = json_get(o->v, "name");
    const struct json *meta = json_get(template, "metadata");
    const char *at = API_FIELD("%s.volumeClaimTemplate", field);
    if (!template) {
        api_required(o->r->c, at, "");
        return;
    }
    for (size_t i = 0; i < json_count(meta); i++) {
        const char *key = json_key_at(meta, i);
        if (!streq(key, "labels") && !streq(key, "annotations") &&
            !json_is(json_at(meta, i), JSON_NULL)) {
            api_forbidden(o->r->c, API_FIELD("%s.metadata.%.80s", at, key),
                          "cannot be set for an ephemeral volume");
        }
    }
    api_validate_labels(o->r->c, API_FIELD("%s.metadata.labels", at), json_get(meta, "labels"));
    api_validate_annotations(o->r->c, API_FIELD("%s.metadata.annotations", at),
                             json_get(meta, "annotations"));
    claim_check_spec(o->r->c, API_FIELD("%s.spec", at), json_get(template, "spec"));
    if (o->r->pod_name && *o->r->pod_name) {
        CLEANUP_FREE char *claim = xasprintf("%s-%s", o->r->pod_name, json_get_text(o->v, "name"));
        const char *wrong = api_check_dns_subdomain(claim);
        if (wrong) {
            api_invalid(o->r->c, API_FIELD("%s.name", o->field), name, "PVC name \"%s\": %s", claim,
                        wrong);
        }
    }
}

static void check_image(const struct volume *o, const char *field, const struct json *v)
{
    if (o->r->is_pod) {
        require(o, field, v, "reference");
    }
}

/* ---- projected volumes ---- */

static void check_trust_bundle(const struct volume *o, const char *field, const struct json *v)
{
    const struct json *name = json_get(v, "name"), *signer = json_get(v, "signerName");
    const struct json *selector = json_get(v, "labelSelector");
    if (name && signer) {
        api_invalid(o->r->c, field, v, "only one of name and signerName may be used");
    } else if (name) {
        if (json_string_size(name) == 0) {
            api_required(o->r->c, API_FIELD("%s.name", field), "must be a valid object name");
        }
        if (selector) {
            api_invalid(o->r->c, API_FIELD("%s.labelSelector", field), selector,
                        "labelSelector must be unset if name is specified");
        }
    } else if (signer) {
        if (json_string_size(signer) == 0) {
            api_required(o->r->c, API_FIELD("%s.signerName", field), "must be a valid signer name");
        }
        label_selector_check(o->r->c, API_FIELD("%s.labelSelector", field), selector);
    } else {
        api_required(o->r->c, field, "either name or signerName must be specified");
    }
    check_file_path(o->r, API_FIELD("%s.path", field), json_get(v, "path"));
}

static void check_token(const struct volume *o, const char *field, const struct json *v)
{
    const struct json *seconds = json_get(v, "expirationSeconds");
    const char *at = API_FIELD("%s.expirationSeconds", field);
    int64_t n = json_get_int_or(seconds, TOKEN_MIN_S);
    if (n < TOKEN_MIN_S) {
        api_invalid(o->r->c, at, seconds, "may not specify a duration less than 10 minutes");
    } else if (n > TOKEN_MAX_S) {
        api_invalid(o->r->c, at, seconds, "may not specify a duration larger than 2^32 seconds");
    }
    check_file_path(o->r, API_FIELD("%s.path", field), json_get(v, "path"));
    if (o->r->is_pod && json_string_size(json_get(o->r->spec, "serviceAccountName")) == 0) {
        api_forbidden(o->r->c, field, "must not be specified when serviceAccountName is not set");
    }
}

static void check_projected_object(const struct volume *o, const char *field, const struct json *v)
{
    require(o, field, v, "name");
    check_items(o->r, field, json_get(v, "items"));
}

static void check_projected_downward(const struct volume *o, const char *field,
                                     const struct json *v)
{
    const struct json *file;
    JSON_FOREACH (file, json_get(v, "items")) {
        check_file(o->r, field, file);
    }
}

static const struct {
    const char *name;
    void (*check)(const struct volume *o, const char *field, const struct json *v);
    bool has_items; /* Each has a path; else the source has one. */
} projections[] = {
    {"secret", check_projected_object, true},          {"configMap", check_projected_object, true},
    {"downwardAPI", check_projected_downward, true},   {"serviceAccountToken", check_token, false},
    {"clusterTrustBundle", check_trust_bundle, false},
};

/* Each file of the volume comes from one source. */
static void note_path(const struct volume *o, const char *field, const struct json *path,
                      struct smap *paths)
{
    if (json_string_size(path) == 0) {
        return;
    }
    if (smap_get(paths, json_get_string(path))) {
        api_invalid(o->r->c, field, path, "conflicting duplicate paths");
    }
    smap_set(paths, json_get_string(path), paths);
}

static void check_projected(const struct volume *o, const char *field, const struct json *v)
{
    const struct json *sources = json_get(v, "sources"), *source, *item;
    struct smap paths;
    smap_init(&paths, NULL);
    check_mode(o->r, field, "defaultMode", v);
    for (size_t i = 0; i < json_count(sources); i++) {
        const char *at = API_FIELD("%s.sources[%zu]", field, i);
        size_t n = 0;
        for (size_t k = 0; k < ARRAY_SIZE(projections); k++) {
            if (!(source = json_get(json_at(sources, i), projections[k].name))) {
                continue;
            }
            projections[k].check(o, API_FIELD("%s.%s", at, projections[k].name), source);
            n++;
            JSON_FOREACH (item, projections[k].has_items ? json_get(source, "items") : NULL) {
                note_path(o, field, json_get(item, "path"), &paths);
            }
            if (!projections[k].has_items) {
                note_path(o, field, json_get(source, "path"), &paths);
            }
        }
        if (n > 1) {
            api_forbidden(o->r->c, at, "may not specify more than 1 volume type per source");
        }
    }
    smap_done(&paths);
}

/* ---- volumes ---- */

/* In the order in which Kubernetes looks for them; NULL: the description has all rules. */
static const struct {
    const char *name;
    void (*check)(const struct volume *o, const char *field, const struct json *v);
} sources[] = {
    {"emptyDir", check_empty_dir},
    {"hostPath", check_host_path},
    {"gitRepo", check_git_repo},
    {"gcePersistentDisk", NULL},
    {"awsElasticBlockStore", NULL},
    {"secret", check_secret},
    {"nfs", check_nfs},
    {"iscsi", check_iscsi},
    {"glusterfs", NULL},
    {"flocker", check_flocker},
    {"persistentVolumeClaim", NULL},
    {"rbd", NULL},
    {"cinder", check_secret_ref},
    {"cephfs", NULL},
    {"quobyte", check_quobyte},
    {"downwardAPI", check_downward},
    {"fc", check_fc},
    {"flexVolume", check_flex},
    {"configMap", check_config_map},
    {"azureFile", NULL},
    {"vsphereVolume", NULL},
    {"photonPersistentDisk", NULL},
    {"portworxVolume", NULL},
    {"azureDisk", check_azure_disk},
    {"storageos", check_storage_os},
    {"projected", check_projected},
    {"scaleIO", check_scale_io},
    {"csi", check_csi},
    {"ephemeral", check_claim_made},
    {"image", check_image},
};

static void check_volume(const struct volume *o)
{
    size_t n = 0;
    for (size_t i = 0; i < ARRAY_SIZE(sources); i++) {
        const struct json *source = json_get(o->v, sources[i].name);
        const char *at = API_FIELD("%s.%s", o->field, sources[i].name);
        if (!source) {
            continue;
        }
        if (n++) {
            api_forbidden(o->r->c, at, "may not specify more than 1 volume type");
        } else if (sources[i].check) {
            sources[i].check(o, at, source);
        }
    }
    if (n == 0) {
        api_required(o->r->c, o->field, "must specify a volume type");
    }
}

/* The claim of a volume is not one that the pod makes itself. */
static void check_claim_used(const struct volume *o)
{
    const struct json *name = json_path(o->v, "persistentVolumeClaim", "claimName", NULL);
    const char *s = json_get_string(name), *pod = o->r->pod_name;
    size_t n = pod ? strlen(pod) : 0;
    if (!s || n == 0 || !str_has_prefix(s, pod) || s[n] != '-') {
        return;
    }
    const struct json *other = smap_get(o->r->volumes, s + n + 1);
    if (other && json_get(other, "ephemeral")) {
        api_invalid(o->r->c, API_FIELD("%s.persistentVolumeClaim.claimName", o->field), name,
                    "must not reference a PVC that gets created for an ephemeral volume");
    }
}

bool pod_volume_has_source(const struct json *volume)
{
    bool found = false;
    for (size_t i = 0; i < ARRAY_SIZE(sources); i++) {
        const struct json *v = json_get(volume, sources[i].name);
        found |= v && !json_is(v, JSON_NULL);
    }
    return found;
}

void pod_check_volumes(const struct pod_rules *r, const char *field)
{
    const struct json *list = json_get(r->spec, "volumes");
    for (size_t i = 0; i < json_count(list) && r->c->n < API_MAX_CAUSES; i++) {
        struct volume o = {.r = r, .field = API_FIELD("%s[%zu]", field, i), .v = json_at(list, i)};
        check_volume(&o);
        check_claim_used(&o);
    }
}
