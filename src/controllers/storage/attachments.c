/* SPDX-License-Identifier: Apache-2.0 */
#include "controllers/storage/attachments.h"

#include "api/condition.h"
#include "api/obj.h"
#include "base/mem.h"
#include "base/said.h"
#include "base/timeutil.h"
#include "storage/attach.h"

#include <openssl/evp.h>

#define STORAGE_API "storage.k8s.io/v1"
#define MERGE "application/merge-patch+json"
#define LOOK_AGAIN_MS 100 /* A write that the copy lacks; its event adds the key before. */

struct attachments {
    struct controller_env env;
    struct informer *pods, *claims, *volumes, *nodes, *drivers, *list;
    struct smap pods_of;  /* Node to the keys of its pods that need volumes. */
    struct smap of_node;  /* Node to the names of its VolumeAttachments. */
    struct smap creating; /* Names of volumes to the node of a creation that no event has shown. */
    struct smap blocked;  /* Nodes that wait for a volume of another node. */
    struct smap behind;   /* Keys to the version of the last write; owned. */
    struct smap said;     /* "POD VOLUME" to the last Event. */
};

static void names_free(void *p)
{
    smap_done(p);
    free(p);
}

static void said_free(void *p)
{
    said_done(p);
    free(p);
}

static void index_add(struct smap *index, const char *key, const char *name)
{
    struct smap *names = smap_get(index, key);
    if (!names) {
        names = NEW(struct smap);
        smap_init(names, NULL);
        smap_set(index, key, names);
    }
    smap_set(names, name, index);
}

static void index_remove(struct smap *index, const char *key, const char *name)
{
    struct smap *names = smap_get(index, key);
    if (names) {
        (void) smap_remove(names, name);
        if (!smap_size(names)) {
            (void) smap_remove(index, key);
        }
    }
}

/* ---- events ---- */

static const char *node_of_pod(const struct json *pod)
{
    return json_get_text(json_get(pod, "spec"), "nodeName");
}

static const char *node_of(const struct json *attachment)
{
    return json_get_text(json_get(attachment, "spec"), "nodeName");
}

static const char *volume_of(const struct json *attachment)
{
    return json_get_text(json_path(attachment, "spec", "source", NULL), "persistentVolumeName");
}

static bool needs_volumes(const struct json *pod)
{
    const char *phase = json_get_text(json_get(pod, "status"), "phase");
    const struct json *v;
    if (!*node_of_pod(pod) || streq(phase, "Succeeded") || streq(phase, "Failed")) {
        return false;
    }
    JSON_FOREACH (v, json_path(pod, "spec", "volumes", NULL)) {
        if (json_get(v, "persistentVolumeClaim") || json_get(v, "ephemeral")) {
            return true;
        }
    }
    return false;
}

static void pod_gone(struct attachments *c, const char *key, const struct json *pod)
{
    if (needs_volumes(pod)) {
        index_remove(&c->pods_of, node_of_pod(pod), key);
        workqueue_add(c->env.queue, node_of_pod(pod));
    }
}

static void pod_changed(void *ctx, const char *key, const struct json *old, const struct json *pod)
{
    struct attachments *c = ctx;
    if (old && !(needs_volumes(pod) && streq(node_of_pod(old), node_of_pod(pod)))) {
        pod_gone(c, key, old);
    }
    if (needs_volumes(pod)) {
        index_add(&c->pods_of, node_of_pod(pod), key);
        workqueue_add(c->env.queue, node_of_pod(pod));
    }
}

static void pod_deleted(void *ctx, const char *key, const struct json *pod)
{
    pod_gone(ctx, key, pod);
}

static void add_all(struct attachments *c, const struct smap *nodes)
{
    struct smap_entry *e;
    SMAP_FOREACH (e, nodes) {
        workqueue_add(c->env.queue, e->key);
    }
}

static void claim_changed(void *ctx, const char *key, const struct json *old,
                          const struct json *claim)
{
    struct attachments *c = ctx;
    const char *name = storage_claim_volume(claim);
    const struct json *volume = *name ? informer_get(c->volumes, name) : NULL;
    if (*storage_attacher(volume).driver && (!old || !streq(storage_claim_volume(old), name))) {
        add_all(c, &c->pods_of);
    }
}

static void claim_deleted(void *ctx, const char *key, const struct json *claim)
{
}

static void volume_changed(void *ctx, const char *key, const struct json *old,
                           const struct json *volume)
{
    struct attachments *c = ctx;
    const char *claim = json_path_string(volume, "spec", "claimRef", "uid", NULL);
    const char *before = json_path_string(old, "spec", "claimRef", "uid", NULL);
    if (*storage_attacher(volume).driver && claim && !streq_null(before, claim)) {
        add_all(c, &c->pods_of);
    }
}

static void volume_deleted(void *ctx, const char *key, const struct json *volume)
{
}

static void driver_changed(void *ctx, const char *key, const struct json *old,
                           const struct json *driver)
{
    struct attachments *c = ctx;
    add_all(c, &c->pods_of);
}

static void driver_deleted(void *ctx, const char *key, const struct json *driver)
{
    struct attachments *c = ctx;
    add_all(c, &c->pods_of);
}

/* Whether something that decisions look at has changed. */
static bool node_differs(const struct json *a, const struct json *b)
{
    const struct json *x = json_path(a, "status", "volumesInUse", NULL);
    const struct json *y = json_path(b, "status", "volumesInUse", NULL);
    const struct json *s = json_path(a, "spec", "taints", NULL);
    const struct json *t = json_path(b, "spec", "taints", NULL);
    return condition_is_true(a, "Ready") != condition_is_true(b, "Ready") ||
           json_count(x) != json_count(y) || (x && y && !json_equal(x, y)) ||
           json_count(s) != json_count(t) || (s && t && !json_equal(s, t));
}

static void node_changed(void *ctx, const char *key, const struct json *old,
                         const struct json *node)
{
    struct attachments *c = ctx;
    bool has = smap_get(&c->of_node, key) || smap_get(&c->pods_of, key);
    if (has && (!old || node_differs(old, node))) {
        workqueue_add(c->env.queue, key);
    }
}

static void node_deleted(void *ctx, const char *key, const struct json *node)
{
    struct attachments *c = ctx;
    workqueue_add(c->env.queue, key);
}

static void attachment_changed(void *ctx, const char *key, const struct json *old,
                               const struct json *attachment)
{
    struct attachments *c = ctx;
    index_add(&c->of_node, node_of(attachment), key);
    (void) smap_remove(&c->creating, volume_of(attachment));
    workqueue_add(c->env.queue, node_of(attachment));
}

static void attachment_deleted(void *ctx, const char *key, const struct json *attachment)
{
    struct attachments *c = ctx;
    index_remove(&c->of_node, node_of(attachment), key);
    workqueue_add(c->env.queue, node_of(attachment));
    add_all(c, &c->blocked);
}

/* ---- what a node needs ---- */

/* A volume that a pod of the node needs. */
struct wanted {
    const struct json *volume, *pod;
    struct storage_attacher attacher;
};

struct wishes {
    struct wanted *items;
    size_t n, cap;
};

static void wish(struct attachments *c, struct wishes *l, const struct json *pod,
                 const char *claim_name)
{
    CLEANUP_FREE char *key = xasprintf("%s/%s", obj_namespace(pod), claim_name);
    const struct json *claim = informer_get(c->claims, key);
    const char *name = storage_claim_volume(claim);
    const struct json *volume = *name ? informer_get(c->volumes, name) : NULL;
    if (!volume || !storage_volume_refers_to(volume, claim, true)) {
        return; /* A claim that another volume's reference does not confirm gives no right to it. */
    }
    struct storage_attacher a = storage_attacher(volume);
    if (!*a.driver || !storage_needs_attaching(informer_get(c->drivers, a.driver))) {
        return;
    }
    for (size_t i = 0; i < l->n; i++) {
        if (l->items[i].volume == volume) {
            return;
        }
    }
    l->items = grow(l->items, &l->cap, l->n + 1, sizeof *l->items);
    l->items[l->n++] = (struct wanted){volume, pod, a};
}

static void find_wishes(struct attachments *c, const char *node, struct wishes *l)
{
    const struct smap *pods = smap_get(&c->pods_of, node);
    struct smap_entry *e;
    if (!pods) {
        return;
    }
    SMAP_FOREACH (e, pods) {
        const struct json *pod = informer_get(c->pods, e->key), *v;
        JSON_FOREACH (v, json_path(pod, "spec", "volumes", NULL)) {
            CLEANUP_FREE char *name = storage_pod_claim(pod, v);
            if (name) {
                wish(c, l, pod, name);
            }
        }
    }
}

/* The VolumeAttachment of the volume on the node; NULL: none. */
static const struct json *find_attachment(const struct attachments *c, const char *node,
                                          const char *volume)
{
    const struct smap *names = smap_get(&c->of_node, node);
    struct smap_entry *e;
    if (!names) {
        return NULL;
    }
    SMAP_FOREACH (e, names) {
        const struct json *o = informer_get(c->list, e->key);
        if (streq(volume_of(o), volume)) {
            return o;
        }
    }
    return NULL;
}

/* Another node that has the volume, or gets it; NULL: none. */
static const char *other_node(const struct attachments *c, const char *node, const char *volume)
{
    const char *creating = smap_get(&c->creating, volume);
    struct smap_entry *e;
    if (creating && !streq(creating, node)) {
        return creating;
    }
    SMAP_FOREACH (e, &c->of_node) {
        if (!streq(e->key, node) && find_attachment(c, e->key, volume)) {
            return e->key;
        }
    }
    return NULL;
}

/* ---- Events ---- */

/* Records an Event of a pod about a volume once; 'text' NULL: all is well. */
static void say(struct attachments *c, const struct wanted *w, bool warning, const char *reason,
                const char *text)
{
    CLEANUP_FREE char *key =
        xasprintf("%s/%s %s", obj_namespace(w->pod), obj_name(w->pod), obj_name(w->volume));
    struct said *s = smap_get(&c->said, key);
    if (!s) {
        s = NEW(struct said);
        smap_set(&c->said, key, s);
    }
    if (said_is_news(s, text) && text) {
        recorder_event(c->env.recorder, "v1", "Pod", w->pod, warning ? EVENT_WARNING : EVENT_NORMAL,
                       reason, text);
    }
}

static void say_state(struct attachments *c, const struct wanted *w, const struct json *attachment)
{
    const struct json *status = json_get(attachment, "status");
    const char *error = json_path_string(status, "attachError", "message", NULL);
    if (json_get_bool(json_get(status, "attached"), false)) {
        CLEANUP_FREE char *text =
            xasprintf("AttachVolume.Attach succeeded for volume \"%s\" ", obj_name(w->volume));
        say(c, w, false, "SuccessfulAttachVolume", text);
    } else if (error && *error) {
        CLEANUP_FREE char *text = xasprintf("AttachVolume.Attach failed for volume \"%s\" : %s",
                                            obj_name(w->volume), error);
        say(c, w, true, "FailedAttachVolume", text);
    }
}

/* ---- one write at a time ---- */

static void note(struct attachments *c, const char *key, const struct json *obj)
{
    const char *text = json_path_string(obj, "metadata", "resourceVersion", NULL);
    uint64_t version;
    if (text && str_to_u64(text, UINT64_MAX, &version) == 0) {
        uint64_t *at = NEW(uint64_t);
        *at = version;
        smap_set(&c->behind, key, at);
    }
}

static void attached(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    struct attachments *c = ctx;
    if (error < 0 && error != -EEXIST) {
        struct smap_entry *e;
        CLEANUP_FREE char *failed = NULL;
        SMAP_FOREACH (e, &c->creating) {
            if (streq(e->value, work_key(w))) {
                failed = xstrdup(e->key);
                break;
            }
        }
        if (failed) {
            (void) smap_remove(&c->creating, failed);
        }
        work_retry(w, error, "create a VolumeAttachment", text);
        return;
    }
    if (error == 0) {
        note(c, work_key(w), obj);
    }
    workqueue_add(c->env.queue, work_key(w));
    work_done(w);
}

static void detached(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    struct attachments *c = ctx;
    if (error < 0 && error != -ENOENT && error != -ESTALE) {
        work_retry(w, error, "delete a VolumeAttachment", text);
        return;
    }
    workqueue_add(c->env.queue, work_key(w));
    work_wait(w, LOOK_AGAIN_MS);
}

static void told(void *ctx, struct work *w, int error, const char *text, struct json *obj)
{
    if (error < 0 && error != -ENOENT) {
        work_retry(w, error, "write the attached volumes of a node", text);
    } else {
        work_done(w);
    }
}

/* "csi-" and the SHA-256 of handle, driver and node, as kubelets and external-attacher expect. */
static char *attachment_name(const struct storage_attacher *a, const char *node)
{
    CLEANUP_FREE char *text = xasprintf("%s%s%s", a->handle, a->driver, node);
    unsigned char hash[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    struct strbuf b = STRBUF_INIT;
    strbuf_adds(&b, "csi-");
    if (EVP_Digest(text, strlen(text), hash, &size, EVP_sha256(), NULL) == 1) {
        for (unsigned i = 0; i < size; i++) {
            strbuf_addf(&b, "%02x", hash[i]);
        }
    }
    return strbuf_steal(&b);
}

static void send_attachment(struct attachments *c, struct work *w, const struct wanted *v)
{
    CLEANUP_FREE char *name = attachment_name(&v->attacher, work_key(w));
    CLEANUP_FREE char *path = api_path(STORAGE_API, "volumeattachments", NULL, NULL, NULL);
    CLEANUP(json_free)
    struct json *o = storage_make_attachment(name, v->volume, &v->attacher, work_key(w));
    smap_set(&c->creating, obj_name(v->volume), xstrdup(work_key(w)));
    work_request(w, "POST", path, o, attached);
}

static void send_detachment(struct work *w, const struct json *attachment)
{
    CLEANUP_FREE char *path =
        api_path(STORAGE_API, "volumeattachments", NULL, obj_name(attachment), NULL);
    CLEANUP(json_free) struct json *options = json_object();
    json_set_string(json_ensure_object(options, "preconditions"), "uid", obj_uid(attachment));
    work_request(w, "DELETE", path, options, detached);
}

/* True: a request was sent. */
static bool attach_next(struct attachments *c, struct work *w, const struct wishes *l)
{
    const char *node = work_key(w);
    bool blocked = false;
    for (size_t i = 0; i < l->n; i++) {
        const struct wanted *v = &l->items[i];
        const struct json *there = find_attachment(c, node, obj_name(v->volume));
        if (there) {
            say_state(c, v, there);
            continue;
        }
        const char *other =
            storage_is_exclusive(v->volume) ? other_node(c, node, obj_name(v->volume)) : NULL;
        if (other) {
            CLEANUP_FREE char *text =
                xasprintf("Multi-Attach error for volume \"%s\" Volume is already exclusively "
                          "attached to one node and can't be attached to another: node \"%s\" "
                          "has it",
                          obj_name(v->volume), other);
            say(c, v, true, "FailedAttachVolume", text);
            blocked = true;
            continue;
        }
        if (informer_get(c->nodes, node)) {
            send_attachment(c, w, v);
            return true;
        }
    }
    if (blocked) {
        smap_set(&c->blocked, node, c);
    } else {
        (void) smap_remove(&c->blocked, node);
    }
    return false;
}

static bool is_wanted(const struct wishes *l, const char *volume)
{
    for (size_t i = 0; i < l->n; i++) {
        if (streq(obj_name(l->items[i].volume), volume)) {
            return true;
        }
    }
    return false;
}

/* True: a request was sent.  '*ret_due': when a lost node's volume may be detached. */
static bool detach_next(struct attachments *c, struct work *w, const struct wishes *l,
                        int64_t *ret_due)
{
    const struct smap *names = smap_get(&c->of_node, work_key(w));
    const struct json *node = informer_get(c->nodes, work_key(w));
    int64_t force = storage_force_detach_ms(node), now = time_wall_ms();
    struct smap_entry *e;
    if (!names) {
        return false;
    }
    SMAP_FOREACH (e, names) {
        const struct json *o = informer_get(c->list, e->key);
        const struct json *volume = informer_get(c->volumes, volume_of(o));
        if (!*volume_of(o) || is_wanted(l, volume_of(o)) || obj_is_terminating(o)) {
            continue;
        }
        struct storage_attacher a = storage_attacher(volume);
        CLEANUP_FREE char *name = storage_unique_name(&a);
        if (!storage_is_in_use(node, name) || force <= now) {
            send_detachment(w, o);
            return true;
        }
        *ret_due = MIN(*ret_due, force);
    }
    return false;
}

/* What node.status.volumesAttached has to be, owned. */
static struct json *attached_list(const struct attachments *c, const char *node)
{
    const struct smap *names = smap_get(&c->of_node, node);
    struct json *list = json_array();
    struct smap_entry *e;
    if (!names) {
        return list;
    }
    SMAP_FOREACH (e, names) {
        const struct json *o = informer_get(c->list, e->key);
        const struct json *volume = informer_get(c->volumes, volume_of(o));
        if (volume && json_get_bool(json_path(o, "status", "attached", NULL), false)) {
            struct storage_attacher a = storage_attacher(volume);
            CLEANUP_FREE char *name = storage_unique_name(&a);
            struct json *one = json_append(list, json_object());
            json_set_string(one, "name", name);
            json_set_string(one, "devicePath", "");
        }
    }
    return list;
}

static bool tell_node(struct attachments *c, struct work *w)
{
    const struct json *node = informer_get(c->nodes, work_key(w));
    const struct json *has = json_path(node, "status", "volumesAttached", NULL);
    CLEANUP(json_free) struct json *list = attached_list(c, work_key(w));
    if (!node || (!json_count(has) && !json_count(list)) || (has && json_equal(has, list))) {
        return false;
    }
    CLEANUP_FREE char *path = api_path("v1", "nodes", NULL, work_key(w), "status");
    CLEANUP(json_free) struct json *patch = json_object();
    json_set(json_ensure_object(patch, "status"), "volumesAttached", TAKE(list));
    work_request_as(w, "PATCH", path, NULL, MERGE, patch, told);
    return true;
}

static void reconcile(void *ctx, struct work *w, const char *key)
{
    struct attachments *c = ctx;
    const uint64_t *behind = smap_get(&c->behind, key);
    struct wishes l = {0};
    int64_t due = INT64_MAX;
    if (behind && informer_version(c->list) < *behind) {
        work_wait(w, LOOK_AGAIN_MS);
        return;
    }
    (void) smap_remove(&c->behind, key);
    find_wishes(c, key, &l);
    /* Detaching comes first: another node may wait for the volume. */
    bool sent = detach_next(c, w, &l, &due) || attach_next(c, w, &l) || tell_node(c, w);
    free(l.items);
    if (!sent && due != INT64_MAX) {
        work_wait(w, (uint64_t) MAX(due - time_wall_ms(), 1));
    } else if (!sent) {
        work_done(w);
    }
}

/* ---- start and stop ---- */

static int start(const struct controller_env *env, const void *config, void **ret, struct err *e)
{
    struct attachments *c = NEW(struct attachments);
    c->env = *env;
    smap_init(&c->pods_of, names_free);
    smap_init(&c->of_node, names_free);
    smap_init(&c->creating, free);
    smap_init(&c->blocked, NULL);
    smap_init(&c->behind, free);
    smap_init(&c->said, said_free);
    *ret = c;
    return 0;
}

static void stop(void *state)
{
    struct attachments *c = state;
    smap_done(&c->pods_of);
    smap_done(&c->of_node);
    smap_done(&c->creating);
    smap_done(&c->blocked);
    smap_done(&c->behind);
    smap_done(&c->said);
    free(c);
}

#define ROW(version, name, short, member)                                                        \
    {                                                                                            \
        .api_version = (version), .plural = (name),                                              \
        .informer = CONTROLLER_INFORMER(struct attachments, member), .changed = short##_changed, \
        .deleted = short##_deleted                                                               \
    }

static const struct controller_watch watches[] = {
    ROW("v1", "pods", pod, pods),
    ROW("v1", "persistentvolumeclaims", claim, claims),
    ROW("v1", "persistentvolumes", volume, volumes),
    ROW("v1", "nodes", node, nodes),
    ROW(STORAGE_API, "csidrivers", driver, drivers),
    ROW(STORAGE_API, "volumeattachments", attachment, list),
};

const struct controller attachments_controller = {
    .name = "attachments",
    .watches = watches,
    .n_watches = ARRAY_SIZE(watches),
    .parallel = 8,
    .account = "attachdetach-controller",
    .start = start,
    .reconcile = reconcile,
    .stop = stop,
};
