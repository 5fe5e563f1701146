/* SPDX-License-Identifier: Apache-2.0 */
/* Each volume is set up by one job at a time; a change that comes meanwhile is followed by another job.
 * A failed set-up is tried again with a growing delay, and at once when an object, a token or a claim
 * has changed. */
#include "kubelet/volumes/volumes_priv.h"

#include "api/requests.h"
#include "kubelet/csi/translate.h"
#include "kubelet/volumes/csi_mount.h"
#include "kubelet/volumes/device_mount.h"
#include "kubelet/volumes/mountinfo.h"
#include "kubelet/volumes/tree.h"
#include "net/loop/process.h"
#include "pod/resources.h"
#include "storage/fields.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#define FREE_WAIT_MS 5000
#define RETRY_MIN_MS 1000
#define RETRY_MAX_MS 120000

/* A call of volumes_remove. */
struct removal {
    struct list node;
    struct volumes *all;
    struct loop_task task; /* Delivers the result. */
    char *uid;
    volumes_done_fn *done;
    void *ctx;
    bool ended;
    int error;
    char *text;
};

static void sync_volume(struct volume *vol);
static void on_input(void *ctx);

/* ---- state ---- */

static void changed(struct pod_volumes *p)
{
    struct volumes *v = p->all;
    if (!v->closing && p->pod) {
        v->ops->changed(v->ctx, p->uid);
    }
}

static void set_failure(struct volume *vol, const char *text)
{
    free(vol->failure);
    vol->failure = text ? xstrdup(text) : NULL;
}

static const char *name_of(const struct volume *vol)
{
    return json_get_text(vol->spec, "name");
}

const struct volume *pod_volumes_find(const struct pod_volumes *p, const char *name)
{
    const struct volume *vol;
    LIST_FOREACH (vol, struct volume, node, &p->volumes) {
        if (streq(name_of(vol), name)) {
            return vol;
        }
    }
    return NULL;
}

enum volumes_phase volumes_state(const struct volumes *v, const char *uid, const char **ret_text)
{
    struct pod_volumes *p = smap_get(&v->pods, uid);
    const struct volume *vol;
    enum volumes_phase phase = VOLUMES_READY;
    *ret_text = NULL;
    if (!p || (!p->pod && !p->removing)) {
        return VOLUMES_NONE;
    }
    free(p->text);
    p->text = NULL;
    LIST_FOREACH (vol, struct volume, node, &p->volumes) {
        phase = vol->ready ? phase : VOLUMES_WAITING;
        if (vol->failure && !p->text) {
            p->text = xasprintf("%s failed for volume \"%s\" : %s",
                                vol->block ? "MapVolume.SetUp" : "MountVolume.SetUp", name_of(vol),
                                vol->failure);
        }
    }
    *ret_text = p->text;
    return p->removing ? VOLUMES_REMOVING : phase;
}

/* ---- the input of a set-up ---- */

static int find_object(void *ctx, enum pod_object_kind kind, const char *ns, const char *name,
                       const struct json **ret)
{
    struct volumes *v = ctx;
    int r = pod_objects_get(v->objects, kind, ns, name, ret);
    v->awaited = r == -EAGAIN ? pod_objects_failure(v->objects, kind, ns, name) : NULL;
    return r;
}

static struct pod_facts facts_of(struct volumes *v)
{
    return (struct pod_facts){.find_object = find_object,
                              .ctx = v,
                              .allocatable =
                                  v->ops->allocatable ? v->ops->allocatable(v->ctx) : NULL,
                              .cluster_domain = v->cluster_domain};
}

/* The size of a volume in memory: the least of what bounds it. */
static uint64_t memory_max(struct pod_volumes *p, const struct json *source)
{
    struct pod_facts f = facts_of(p->all);
    const int64_t bounds[] = {api_amount(source, "sizeLimit", 0),
                              pod_amount(p->pod, "limits", "memory"),
                              api_amount(f.allocatable, "memory", 0)};
    int64_t least = 0;
    for (size_t i = 0; i < ARRAY_SIZE(bounds); i++) {
        least = bounds[i] > 0 && (least == 0 || bounds[i] < least) ? bounds[i] : least;
    }
    return (uint64_t) least;
}

/* The context of a CSI driver that wants to know about pods (CSIDriver's podInfoOnMount). */
static struct json *pod_info_of(const struct volume *vol)
{
    const struct json *pod = vol->pod->pod, *meta = json_get(pod, "metadata");
    const char *account = json_get_text(json_get(pod, "spec"), "serviceAccountName");
    struct json *info = json_object();
    json_set_string(info, "csi.storage.k8s.io/pod.name", json_get_text(meta, "name"));
    json_set_string(info, "csi.storage.k8s.io/pod.namespace", json_get_text(meta, "namespace"));
    json_set_string(info, "csi.storage.k8s.io/pod.uid", vol->pod->uid);
    json_set_string(info, "csi.storage.k8s.io/serviceAccount.name", *account ? account : "default");
    json_set_string(info, "csi.storage.k8s.io/ephemeral", vol->persistent ? "false" : "true");
    return info;
}

static struct volume_job *job_of(struct volume *vol)
{
    struct pod_volumes *p = vol->pod;
    const struct json *context = json_path(p->pod, "spec", "securityContext", NULL);
    const struct json *holder = vol->claim ? claim_volume(vol->claim) : vol->spec;
    int64_t group = json_get_int_or(json_get(context, "fsGroup"), -1);
    struct volume_job *j = NEW(struct volume_job);
    *j = (struct volume_job){
        .type = vol->type,
        .pods_dir = xstrdup(p->all->pods_dir),
        .local_dir = xstrdup(p->all->local_dir),
        .uid = xstrdup(p->uid),
        .name = xstrdup(name_of(vol)),
        .source = json_clone(vol->source),
        .in_pv = vol->persistent,
        .block = vol->block,
        .options = json_clone(json_get(vol->claim ? holder : NULL, "mountOptions")),
        .modes = json_clone(json_get(vol->claim ? holder : NULL, "accessModes")),
        .facts = vol->facts ? json_clone(facts_get(vol->facts)) : NULL,
        .pod_info = pod_info_of(vol),
        .drivers = csi_drivers_ref(p->all->drivers),
        .readonly = vol->readonly,
        .on_root_mismatch = streq(json_get_text(context, "fsGroupChangePolicy"), "OnRootMismatch"),
        .memory_max = memory_max(p, vol->source),
        .in_memory = pod_files_is_secret(vol->spec)};
    if (group >= 0 && group < UINT32_MAX) {
        j->owner = (struct atomic_owner){.has_group = true, .group = (gid_t) group};
    }
    return j;
}

static int make_files(struct volume *vol, struct pod_files *ret, struct err *e)
{
    struct pod_facts f = facts_of(vol->pod->all);
    CLEANUP_FREE const char **texts = xcalloc(vol->n_tokens + 1, sizeof *texts);
    for (size_t i = 0; i < vol->n_tokens; i++) {
        texts[i] = token_text(vol->tokens[i]);
    }
    vol->pod->all->awaited = NULL;
    return pod_files_make(vol->pod->pod, vol->spec, &f, (struct pod_tokens){texts, vol->n_tokens},
                          ret, e);
}

/* Why an object or a token that make_files needs has not come; NULL: no failure was reported. */
static const char *failure_of_wait(const struct volume *vol)
{
    const char *failure = vol->pod->all->awaited;
    for (size_t i = 0; !failure && i < vol->n_tokens; i++) {
        failure = token_text(vol->tokens[i]) ? NULL : token_failure(vol->tokens[i]);
    }
    return failure;
}

/* ---- set-up ---- */

static void retry_later(struct volume *vol)
{
    uint64_t now = loop_now_ms(vol->pod->all->loop);
    loop_timer_arm(vol->retry, backoff_fail(&vol->backoff, now, hash_string(vol->pod->uid)));
}

/* A job of a volume.  The pod stays until its jobs in its directory have ended. */
struct set_up_call {
    struct volumes *all;
    struct pod_volumes *pod; /* NULL: abandoned. */
    struct volume *volume;   /* NULL: the pod's volumes are being removed. */
    struct volume_job *job;
    bool in_pod_dir;
};

static void work(void *ctx)
{
    volume_job_run(((struct set_up_call *) ctx)->job);
}

static void follow_growth(struct volume *vol)
{
    const struct volumes *v = vol->pod->all;
    CLEANUP_FREE char *claim = storage_pod_claim(vol->pod->pod, vol->spec);
    if (claim && !vol->growth && streq(vol->type->member, "csi")) {
        struct growth_config c = {
            .loop = v->loop,
            .client = v->client,
            .jobs = v->jobs,
            .drivers = v->drivers,
            .pods_dir = v->pods_dir,
            .ns = json_path_string(vol->pod->pod, "metadata", "namespace", NULL),
            .claim = claim};
        vol->growth = growth_new(&c);
    }
}

static void take_result(struct volume *vol, struct volume_job *j)
{
    if (j->error < 0) {
        set_failure(vol, j->err.text);
        retry_later(vol);
        return;
    }
    set_failure(vol, NULL);
    backoff_reset(&vol->backoff);
    vol->ready = true;
    follow_growth(vol);
    free(vol->path);
    vol->path = xstrdup(j->path);
    pod_files_done(&vol->files);
    vol->files = j->files;
    j->files = (struct pod_files){0};
}

static void set_up_ended(void *ctx)
{
    struct set_up_call *call = ctx;
    struct volume *vol = call->all->closing ? NULL : call->volume;
    struct pod_volumes *p = call->all->closing ? NULL : call->pod;
    if (call->volume) {
        call->volume->call = NULL;
    }
    if (vol) {
        take_result(vol, call->job);
        if (vol->again) {
            vol->again = false;
            sync_volume(vol);
        }
        changed(p);
    }
    if (p && call->in_pod_dir) {
        pod_volumes_job_ended(p);
    }
    volume_job_free(call->job);
    free(call);
}

static void start(struct volume *vol, struct volume_job *j)
{
    struct set_up_call *call = NEW(struct set_up_call);
    struct pod_volumes *p = vol->pod;
    *call = (struct set_up_call){
        .all = p->all, .pod = p, .volume = vol, .job = j, .in_pod_dir = !vol->type->is_on_host};
    vol->call = call;
    loop_timer_disarm(vol->retry);
    p->running += call->in_pod_dir;
    jobs_start(p->all->jobs, work, set_up_ended, call);
}

static bool names_volume(const struct json *list, const char *name)
{
    const struct json *use;
    JSON_FOREACH (use, list) {
        if (streq(json_get_text(use, "name"), name)) {
            return true;
        }
    }
    return false;
}

/* Whether each container that has the volume asks for a file system or a device, as the volume is one.  A
 * container that is added later is checked when it starts. */
static int check_uses(const struct volume *vol, struct err *e)
{
    static const char *const lists[] = {"initContainers", "containers"};
    const struct json *spec = json_get(vol->pod->pod, "spec"), *container;
    for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
        JSON_FOREACH (container, json_get(spec, lists[i])) {
            const char *wrong = vol->block ? "volumeMounts" : "volumeDevices";
            if (names_volume(json_get(container, wrong), name_of(vol))) {
                return err_set(e, -EINVAL, vol->block ? VOLUME_IS_BLOCK : VOLUME_IS_FILES,
                               name_of(vol));
            }
        }
    }
    return 0;
}

/* The type of the volume, when that is known; NULL: it is refused, or its claim is not bound. */
static const struct volume_type *resolve_type(struct volume *vol)
{
    const struct json *holder = vol->claim ? claim_volume(vol->claim) : vol->spec;
    struct err e;
    if (!holder) {
        const char *failure = claim_failure(vol->claim);
        set_failure(vol, failure);
        return NULL;
    }
    if (vol->type) {
        return vol->type;
    }
    vol->block = vol->claim && streq(json_get_text(holder, "volumeMode"), "Block");
    if (check_uses(vol, &e) < 0) {
        set_failure(vol, e.text);
        return NULL;
    }
    /* Volumes of clouds are those of their CSI drivers. */
    CLEANUP(json_free) struct json *csi = csi_translate(holder);
    CLEANUP(json_free) struct json *translated = json_object();
    json_set(translated, "csi", json_clone(csi));
    if (volume_type_of(csi ? translated : holder, vol->claim != NULL, &vol->type, &e) < 0) {
        set_failure(vol, e.text);
        return NULL;
    }
    vol->persistent = vol->claim || csi;
    vol->source = csi ? TAKE(csi) : json_clone(json_get(holder, vol->type->member));
    return vol->type;
}

/* Notes the volume as one that must not be detached from the node, until the pod's volumes are gone. */
static void note_in_use(struct volume *vol)
{
    struct pod_volumes *p = vol->pod;
    if (streq(vol->type->member, "csi") && vol->persistent) {
        CLEANUP_FREE char *name = csi_unique_name(vol->source);
        json_append(p->in_use, json_string(name));
        if (p->all->ops->in_use_changed) {
            p->all->ops->in_use_changed(p->all->ctx);
        }
    }
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *) a, *(const char *const *) b);
}

struct json *volumes_in_use(const struct volumes *v)
{
    struct json *list = json_array();
    struct smap_entry *en;
    size_t n = 0, cap = 0;
    const char **names = NULL;
    SMAP_FOREACH (en, &v->pods) {
        const struct pod_volumes *p = en->value;
        for (size_t i = 0; i < json_count(p->in_use); i++) {
            names = grow(names, &cap, n + 1, sizeof *names);
            names[n++] = json_get_string(json_at(p->in_use, i));
        }
    }
    if (n > 0) {
        qsort(names, n, sizeof *names, compare_texts);
    }
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || !streq(names[i], names[i - 1])) {
            json_append(list, json_string(names[i]));
        }
    }
    free(names);
    return list;
}

/* Whether the objects that the type needs are there. */
static bool has_facts(struct volume *vol)
{
    struct pod_volumes *p = vol->pod;
    if (!vol->type->need) {
        return true;
    }
    if (!vol->facts) {
        struct facts_of of = {.ns = json_path_string(p->pod, "metadata", "namespace", NULL),
                              .node_name = p->all->node_name,
                              .source = vol->source,
                              .in_pv = vol->persistent};
        note_in_use(vol);
        vol->facts = facts_new(p->all->loop, p->all->client, &of, vol->type->need, on_input, vol);
    }
    if (facts_get(vol->facts)) {
        return true;
    }
    if (facts_failure(vol->facts)) {
        set_failure(vol, facts_failure(vol->facts));
    }
    return false;
}

static void sync_volume(struct volume *vol)
{
    struct pod_files files = {0};
    struct err e;
    if (vol->pod->removing) {
        return;
    }
    if (vol->call) {
        vol->again = true;
        return;
    }
    if (!resolve_type(vol) || (vol->ready && !vol->type->has_files) || !has_facts(vol)) {
        return;
    }
    if (vol->type->has_files) {
        int r = make_files(vol, &files, &e);
        if (r < 0) {
            /* Before the first answer of the API server, nothing is wrong. */
            set_failure(vol, r != -EAGAIN ? e.text : failure_of_wait(vol));
            return;
        }
        if (vol->ready && pod_files_equal(&files, &vol->files)) {
            set_failure(vol, NULL);
            pod_files_done(&files);
            return;
        }
    }
    struct volume_job *j = job_of(vol);
    j->files = files;
    start(vol, j);
}

/* A token, a claim or a further object has changed. */
static void on_input(void *ctx)
{
    struct volume *vol = ctx;
    struct pod_volumes *p = vol->pod;
    sync_volume(vol);
    changed(p);
}

/* It is time to try again, with the objects as they are now. */
static void on_retry(void *ctx)
{
    struct volume *vol = ctx;
    if (vol->facts && !vol->call) {
        facts_refresh(vol->facts);
    }
    on_input(vol);
}

static void add_claim(struct volume *vol)
{
    struct pod_volumes *p = vol->pod;
    const struct json *meta = json_get(p->pod, "metadata");
    const struct json *claim = json_get(vol->spec, "persistentVolumeClaim");
    bool own = json_get(vol->spec, "ephemeral") != NULL;
    CLEANUP_FREE char *name = storage_pod_claim(vol->pod->pod, vol->spec);
    if (name) {
        vol->readonly = json_get_bool(json_get(claim, "readOnly"), false);
        vol->claim = claim_new(p->all->loop, p->all->client, json_get_text(meta, "namespace"), name,
                               own ? p->uid : NULL, on_input, vol);
    }
}

static void add_volume(struct pod_volumes *p, const struct json *spec)
{
    struct volume *vol = NEW(struct volume);
    struct pod_token_source source;
    *vol = (struct volume){
        .pod = p, .spec = json_clone(spec), .backoff = BACKOFF_INIT(RETRY_MIN_MS, RETRY_MAX_MS)};
    vol->retry = loop_timer_new(p->all->loop, on_retry, vol);
    list_push_back(&p->volumes, &vol->node);
    if (!volume_name_is_safe(name_of(vol))) {
        set_failure(vol, "its name cannot be that of a directory");
        return;
    }
    add_claim(vol);
    for (size_t n = 0; pod_files_token_source(spec, n, &source); n++) {
        vol->tokens = xreallocarray(vol->tokens, n + 1, sizeof(struct token *));
        vol->tokens[n] = token_new(p->all->loop, p->all->client, p->pod, &source, on_input, vol);
        vol->n_tokens = n + 1;
    }
    sync_volume(vol);
}

static void volume_free(struct volume *vol)
{
    if (vol->call) {
        vol->call->volume = NULL;
    }
    for (size_t i = 0; i < vol->n_tokens; i++) {
        token_free(vol->tokens[i]);
    }
    volume_usage_forget(vol);
    claim_free(vol->claim);
    facts_free(vol->facts);
    growth_free(vol->growth);
    loop_timer_free(vol->retry);
    pod_files_done(&vol->files);
    list_remove(&vol->node);
    json_free(vol->spec);
    json_free(vol->source);
    free(vol->tokens);
    free(vol->path);
    free(vol->failure);
    free(vol);
}

/* ---- pods ---- */

static struct pod_volumes *pod_new(struct volumes *v, const char *uid)
{
    struct pod_volumes *p = NEW(struct pod_volumes);
    p->all = v;
    p->uid = xstrdup(uid);
    p->in_use = json_array();
    list_init(&p->volumes);
    list_init(&p->mounts);
    smap_set(&v->pods, uid, p);
    return p;
}

static void pod_free(struct pod_volumes *p)
{
    struct volume *vol;
    LIST_FOREACH (vol, struct volume, node, &p->volumes) {
        volume_free(vol);
    }
    smap_remove(&p->all->pods, p->uid);
    if (json_count(p->in_use) && !p->all->closing && p->all->ops->in_use_changed) {
        p->all->ops->in_use_changed(p->all->ctx);
    }
    json_free(p->in_use);
    json_free(p->pod);
    free(p->uid);
    free(p->text);
    free(p);
}

void volumes_set_pod(struct volumes *v, const struct json *pod)
{
    const char *uid = json_get_text(json_get(pod, "metadata"), "uid");
    struct pod_volumes *p = smap_get(&v->pods, uid);
    const struct json *spec;
    if (!volume_name_is_safe(uid) || (p && p->removing)) {
        return;
    }
    bool is_new = !p;
    p = p ? p : pod_new(v, uid);
    json_free(p->pod);
    p->pod = json_object(); /* The status, which no volume needs, is as large as the rest. */
    json_set(p->pod, "metadata", json_clone(json_get(pod, "metadata")));
    json_set(p->pod, "spec", json_clone(json_get(pod, "spec")));
    if (!is_new) {
        volumes_objects_changed(v, uid);
        return;
    }
    JSON_FOREACH (spec, json_path(pod, "spec", "volumes", NULL)) {
        add_volume(p, spec);
    }
}

void volumes_drivers_changed(struct volumes *v)
{
    struct smap_entry *en;
    SMAP_FOREACH (en, &v->pods) {
        struct pod_volumes *p = en->value;
        struct volume *vol;
        LIST_FOREACH (vol, struct volume, node, &p->volumes) {
            if (!p->removing && !vol->ready && vol->type && streq(vol->type->member, "csi")) {
                sync_volume(vol);
            }
        }
    }
}

void volumes_objects_changed(struct volumes *v, const char *uid)
{
    struct pod_volumes *p = smap_get(&v->pods, uid);
    struct volume *vol;
    if (p && !p->removing) {
        LIST_FOREACH (vol, struct volume, node, &p->volumes) {
            if (vol->type && vol->type->has_files) {
                sync_volume(vol);
            }
        }
        changed(p);
    }
}

/* ---- removal ---- */

static void deliver_removal(void *ctx)
{
    struct removal *r = ctx;
    list_remove(&r->node);
    r->done(r->ctx, r->error, r->text);
    free(r->uid);
    free(r->text);
    free(r);
}

/* Ends the calls of volumes_remove for the pod. */
static void end_removals(struct volumes *v, const char *uid, int error, const char *text)
{
    struct removal *r;
    LIST_FOREACH (r, struct removal, node, &v->removals) {
        if (!r->ended && streq(r->uid, uid)) {
            r->ended = true;
            r->error = error;
            r->text = error < 0 ? xstrdup(text) : NULL;
            loop_task_queue(&r->task);
        }
    }
}

struct removal_job {
    struct volumes *all;
    struct csi_drivers *drivers;
    char *pods_dir, *uid;
    int error;
    struct err err;
};

static void remove_work(void *ctx)
{
    struct removal_job *j = ctx;
    CLEANUP_FREE char *top = xasprintf("%s/%s", j->pods_dir, j->uid);
    int fd = open(j->pods_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    j->error = fd < 0 ? err_sys(&j->err, -errno, "open %s", j->pods_dir) : 0;
    j->error =
        j->error < 0 ? j->error : csi_mount_down_all(j->drivers, j->pods_dir, j->uid, &j->err);
    j->error = j->error < 0 ? j->error : mount_remove_below(top, &j->err);
    j->error = j->error < 0 ? j->error : tree_remove(fd, j->uid, &j->err);
    CLEANUP_FREE char *root = xstrndup(j->pods_dir, strlen(j->pods_dir) - strlen("/pods"));
    j->error = j->error < 0 ? j->error : device_release_unused(root, j->pods_dir, &j->err);
    if (j->error < 0) {
        err_prefix(&j->err, "remove the volumes of pod %s", j->uid);
    }
    if (fd >= 0) {
        close(fd);
    }
}

static void remove_ended(void *ctx)
{
    struct removal_job *j = ctx;
    struct volumes *v = j->all;
    struct pod_volumes *p = v->closing ? NULL : smap_get(&v->pods, j->uid);
    if (p) {
        p->removal_runs = false;
        end_removals(v, j->uid, j->error, j->err.text);
        if (j->error == 0) {
            pod_free(p);
        }
    }
    csi_drivers_unref(j->drivers);
    free(j->pods_dir);
    free(j->uid);
    free(j);
}

/* Starts the removal once no job works in the pod's directory. */
static void try_removal(struct pod_volumes *p)
{
    if (p->running == 0 && !p->removal_runs) {
        struct removal_job *j = NEW(struct removal_job);
        *j = (struct removal_job){.all = p->all,
                                  .drivers = csi_drivers_ref(p->all->drivers),
                                  .pods_dir = xstrdup(p->all->pods_dir),
                                  .uid = xstrdup(p->uid)};
        p->removal_runs = true;
        jobs_start(p->all->jobs, remove_work, remove_ended, j);
    }
}

void pod_volumes_job_ended(struct pod_volumes *p)
{
    p->running--;
    if (p->removing) {
        try_removal(p);
    }
}

void volumes_remove(struct volumes *v, const char *uid, volumes_done_fn *done, void *ctx)
{
    struct pod_volumes *p = smap_get(&v->pods, uid);
    struct removal *r = NEW(struct removal);
    struct volume *vol;
    *r = (struct removal){.all = v, .uid = xstrdup(uid), .done = done, .ctx = ctx};
    loop_task_init(&r->task, v->loop, deliver_removal, r);
    list_push_back(&v->removals, &r->node);
    if (!volume_name_is_safe(uid)) {
        end_removals(v, uid, -EINVAL, "the pod's uid cannot be the name of a directory");
        return;
    }
    p = p ? p : pod_new(v, uid);
    p->removing = true;
    mount_calls_cancel(p);
    /* Ends tokens, claims and timers.  Jobs in the pod's directory are awaited; a job that waits for
     * a path of the node is abandoned. */
    LIST_FOREACH (vol, struct volume, node, &p->volumes) {
        if (vol->call && !vol->call->in_pod_dir) {
            vol->call->pod = NULL;
        }
        volume_free(vol);
    }
    try_removal(p);
}

/* ---- sweep ---- */

struct sweep {
    size_t left;
    volumes_done_fn *done;
    void *ctx;
    int error;
    char *text;
};

static void swept_one(void *ctx, int error, const char *text)
{
    struct sweep *s = ctx;
    if (error < 0 && s->error == 0) {
        s->error = error;
        s->text = xstrdup(text);
    }
    if (--s->left == 0) {
        s->done(s->ctx, s->error, s->text);
        free(s->text);
        free(s);
    }
}

static bool is_one_of(const char *const *uids, size_t n, const char *uid)
{
    for (size_t i = 0; i < n; i++) {
        if (streq(uids[i], uid)) {
            return true;
        }
    }
    return false;
}

void volumes_sweep(struct volumes *v, const char *const *uids, size_t n, volumes_done_fn *done,
                   void *ctx)
{
    struct sweep *s = NEW(struct sweep);
    DIR *dir = opendir(v->pods_dir);
    struct dirent *d;
    *s = (struct sweep){.left = 1, .done = done, .ctx = ctx};
    while (dir && (d = readdir(dir))) {
        if (volume_name_is_safe(d->d_name) && !is_one_of(uids, n, d->d_name) &&
            !smap_get(&v->pods, d->d_name)) {
            s->left++;
            volumes_remove(v, d->d_name, swept_one, s);
        }
    }
    if (dir) {
        closedir(dir);
    }
    /* The sweep's own part ends like a removal, later. */
    struct removal *own = NEW(struct removal);
    *own =
        (struct removal){.all = v, .uid = xstrdup(""), .done = swept_one, .ctx = s, .ended = true};
    loop_task_init(&own->task, v->loop, deliver_removal, own);
    list_push_back(&v->removals, &own->node);
    loop_task_queue(&own->task);
}

/* ---- all ---- */

int volumes_new(struct loop *l, struct api_client *c, const struct pod_objects *objects,
                const struct volumes_config *conf, const struct volumes_ops *ops, void *ctx,
                struct volumes **ret, struct err *e)
{
    CLEANUP_FREE char *dir = xasprintf("%s/pods", conf->root_dir);
    char real[PATH_MAX];
    int r = dir_make(dir, 0750, e);
    if (r < 0) {
        return r;
    }
    /* The paths of mountinfo have no links. */
    if (!realpath(dir, real)) {
        return err_sys(e, -errno, "resolve %s", dir);
    }
    struct volumes *v = NEW(struct volumes);
    *v = (struct volumes){.loop = l,
                          .client = c,
                          .objects = objects,
                          .pods_dir = xstrdup(real),
                          .local_dir = xasprintf("%s/local-volumes", conf->root_dir),
                          .cluster_domain = xstrdup(conf->cluster_domain),
                          .node_name = xstrdup(conf->node_name ? conf->node_name : ""),
                          .drivers =
                              conf->drivers ? csi_drivers_ref(conf->drivers) : csi_drivers_new(),
                          .ops = ops,
                          .ctx = ctx,
                          .jobs = jobs_new(l)};
    smap_init(&v->pods, NULL);
    list_init(&v->removals);
    list_init(&v->failed_mounts);
    *ret = v;
    return 0;
}

struct volumes *volumes_free(struct volumes *v)
{
    struct smap_entry *en;
    struct removal *r;
    if (!v) {
        return NULL;
    }
    v->closing = true;
    SMAP_FOREACH (en, &v->pods) {
        mount_calls_cancel(en->value);
    }
    mount_calls_free(v);
    jobs_free(v->jobs, FREE_WAIT_MS);
    SMAP_FOREACH (en, &v->pods) {
        pod_free(en->value);
    }
    LIST_FOREACH (r, struct removal, node, &v->removals) {
        loop_task_cancel(&r->task);
        list_remove(&r->node);
        free(r->uid);
        free(r->text);
        free(r);
    }
    smap_done(&v->pods);
    free(v->pods_dir);
    free(v->local_dir);
    free(v->node_name);
    csi_drivers_unref(v->drivers);
    free(v->cluster_domain);
    free(v);
    return NULL;
}
