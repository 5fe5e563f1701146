/* SPDX-License-Identifier: Apache-2.0 */
/* Volumes of a pod: claims that wait for it, limits of nodes, volumes of one pod. */
#include "api/label_selector.h"
#include "api/quantity.h"
#include "sched/model_priv.h"
#include "storage/match.h"

/* A claim without volume that waits for this pod (WaitForFirstConsumer). */
struct volume_need {
    const struct json *claim, *class; /* Borrowed from the model. */
    int64_t size;
    const struct json **volumes; /* Those that suit it on one node or another. */
    size_t n_volumes;
};

/* ---- what the claims ask ---- */

static bool is_candidate(const struct json *claim, const struct json *volume)
{
    return storage_check(claim, volume, NULL) == STORAGE_FITS;
}

static void find_candidates(const struct sched *s, struct volume_need *need)
{
    struct smap_entry *e;
    size_t cap = 0;
    SMAP_FOREACH (e, &s->objects[SCHED_VOLUME]) {
        if (is_candidate(need->claim, e->value)) {
            need->volumes = grow(need->volumes, &cap, need->n_volumes + 1, sizeof *need->volumes);
            need->volumes[need->n_volumes++] = e->value;
        }
    }
}

static int by_size(const void *a, const void *b)
{
    const struct volume_need *x = a, *y = b;
    return (x->size > y->size) - (x->size < y->size);
}

static bool is_single(const struct json *claim)
{
    const struct json *modes = json_path(claim, "spec", "accessModes", NULL);
    return json_count(modes) == 1 &&
           streq_null(json_get_string(json_at(modes, 0)), "ReadWriteOncePod");
}

/* Whether a pod that has a node uses the claim; the pod 'key' does not count. */
static bool is_used(const struct sched *s, const char *ns, const char *name, const char *key)
{
    const struct pod *p;
    HMAP_FOREACH (p, struct pod, by_key, &s->pods) {
        const struct json *claim;
        if (!p->placed || !streq(p->class->subject->namespace, ns) || streq(p->key, key)) {
            continue;
        }
        JSON_FOREACH (claim, json_get(p->class->spec, "claims")) {
            if (streq_null(json_get_string(claim), name)) {
                return true;
            }
        }
    }
    return false;
}

/* Why a claim keeps the pod from all nodes, owned; NULL: it does not. */
static char *claim_fault(struct cycle *c, const char *name)
{
    const struct sched *s = c->s;
    const char *ns = c->class->subject->namespace;
    const struct json *claim = model_object(s, SCHED_CLAIM, ns, name);
    const char *volume = storage_claim_volume(claim), *class = storage_claim_class(claim);
    if (!claim) {
        return xasprintf("persistentvolumeclaim \"%s\" not found", name);
    }
    if (json_path(claim, "metadata", "deletionTimestamp", NULL)) {
        return xasprintf("persistentvolumeclaim \"%s\" is being deleted", name);
    }
    if (is_single(claim) && is_used(s, ns, name, c->key)) {
        return xasprintf("node has pod using PersistentVolumeClaim with the same name and "
                         "ReadWriteOncePod access mode: \"%s\"",
                         name);
    }
    if (!*volume && class && storage_class_waits(model_object(s, SCHED_CLASS, NULL, class))) {
        return NULL;
    }
    if (!*volume || !storage_claim_is_bound(claim)) {
        return xasprintf("pod has unbound immediate PersistentVolumeClaims: \"%s\" waits for a "
                         "PersistentVolume",
                         name);
    }
    return model_object(s, SCHED_VOLUME, NULL, volume)
               ? NULL
               : xasprintf("persistentvolume \"%s\" of persistentvolumeclaim \"%s\" not found",
                           volume, name);
}

void volumes_begin(struct cycle *c)
{
    const struct json *names = json_get(c->class->spec, "claims"), *name;
    if (json_count(names) == 0) {
        return;
    }
    c->needs = xcalloc(json_count(names), sizeof *c->needs);
    JSON_FOREACH (name, names) {
        if (!c->fault) {
            c->fault = claim_fault(c, json_get_string(name));
        }
        const struct json *claim =
            model_object(c->s, SCHED_CLAIM, c->class->subject->namespace, json_get_string(name));
        if (!c->fault && !*storage_claim_volume(claim)) {
            struct volume_need *need = &c->needs[c->n_needs++];
            *need = (struct volume_need){
                .claim = claim,
                .class = model_object(c->s, SCHED_CLASS, NULL, storage_claim_class(claim)),
                .size = storage_claim_size(claim)};
            find_candidates(c->s, need);
        }
    }
    /* The smallest claim chooses first, as in Kubernetes. */
    qsort(c->needs, c->n_needs, sizeof *c->needs, by_size);
}

void volumes_end(struct cycle *c)
{
    for (size_t i = 0; i < c->n_needs; i++) {
        free(c->needs[i].volumes);
    }
    free(c->needs);
}

const char *volumes_selected_node(const struct cycle *c)
{
    const char *node = NULL;
    for (size_t i = 0; i < c->n_needs; i++) {
        const char *mine = json_path_string(c->needs[i].claim, "metadata", "annotations",
                                            STORAGE_SELECTED_NODE, NULL);
        node = node ? node : mine;
    }
    return node;
}

/* ---- a node ---- */

/* Volumes that earlier claims of the same pod take. */
struct taken {
    const struct json *list[16];
    size_t n;
};

static bool is_taken(void *ctx, const struct json *volume)
{
    const struct taken *t = ctx;
    for (size_t i = 0; i < t->n; i++) {
        if (t->list[i] == volume) {
            return true;
        }
    }
    return false;
}

static bool topology_allows(const struct json *class, const struct node *n)
{
    const struct json *terms = json_get(class, "allowedTopologies"), *t, *e, *v;
    JSON_FOREACH (t, terms) {
        bool all = true;
        JSON_FOREACH (e, json_get(t, "matchLabelExpressions")) {
            const char *has = json_get_text(n->labels, json_get_text(e, "key"));
            bool any = false;
            JSON_FOREACH (v, json_get(e, "values")) {
                any = any || streq_null(json_get_string(v), has);
            }
            all = all && any;
        }
        if (all) {
            return true;
        }
    }
    return json_count(terms) == 0;
}

/* What the pod's claims of the need's class ask for together, up to this need. */
static int64_t sum_of_class(const struct cycle *c, size_t need)
{
    int64_t sum = 0;
    for (size_t i = 0; i <= need; i++) {
        if (c->needs[i].class == c->needs[need].class) {
            sum += MIN(c->needs[i].size, INT64_MAX - sum);
        }
    }
    return sum;
}

/* Whether a volume of the class can be made for the node.  A capacity that no one tells is no
 * limit, unless the driver says that it tells its capacity. */
static bool has_capacity(const struct cycle *c, const struct node *n, size_t need)
{
    const struct json *class = c->needs[need].class;
    const char *name = json_path_string(class, "metadata", "name", NULL);
    const struct json *driver =
        model_object(c->s, SCHED_DRIVER, NULL, storage_class_provisioner(class));
    bool told = json_get_bool(json_path(driver, "spec", "storageCapacity", NULL), false);
    struct smap_entry *e;
    SMAP_FOREACH (e, &c->s->objects[SCHED_CAPACITY]) {
        if (!streq(json_get_text(e->value, "storageClassName"), name ? name : "") ||
            !label_selector_matches(json_get(e->value, "nodeTopology"), n->labels)) {
            continue;
        }
        const char *text = json_get_text(e->value, "capacity");
        const char *most = json_get_text(e->value, "maximumVolumeSize");
        int64_t room = 0, largest = INT64_MAX;
        (void) (*text && api_quantity_value(text, 0, &room, NULL));
        (void) (*most && api_quantity_value(most, 0, &largest, NULL));
        if (sum_of_class(c, need) <= room && c->needs[need].size <= largest) {
            return true;
        }
        told = true;
    }
    return !told;
}

/* Finds a volume for each need on the node, or that it can be made there.  'ret' may be NULL. */
static enum sched_reason place(const struct cycle *c, const struct node *n,
                               struct sched_volume_step *ret)
{
    struct storage_node node = {.name = n->name, .labels = n->labels};
    struct taken taken = {.n = 0};
    for (size_t i = 0; i < c->n_needs; i++) {
        const struct volume_need *need = &c->needs[i];
        struct storage_search search = {.node = &node, .is_taken = is_taken, .ctx = &taken};
        const struct json *v =
            storage_match(need->claim, need->volumes, need->n_volumes, &search, NULL);
        if (v && taken.n == ARRAY_SIZE(taken.list)) {
            return SCHED_VOLUME_BIND;
        }
        if (v) {
            taken.list[taken.n++] = v;
        } else if (!*storage_class_provisioner(need->class) || !topology_allows(need->class, n)) {
            return SCHED_VOLUME_BIND;
        } else if (!has_capacity(c, n, i)) {
            return SCHED_VOLUME_CAPACITY;
        }
        if (ret) {
            ret[i].claim = json_path_string(need->claim, "metadata", "name", NULL);
            ret[i].claim_uid = json_path_string(need->claim, "metadata", "uid", NULL);
            ret[i].volume = v ? json_path_string(v, "metadata", "name", NULL) : NULL;
            ret[i].volume_uid = v ? json_path_string(v, "metadata", "uid", NULL) : NULL;
            ret[i].is_selected = streq_null(json_path_string(need->claim, "metadata", "annotations",
                                                             STORAGE_SELECTED_NODE, NULL),
                                            n->name);
        }
    }
    return SCHED_FITS;
}

/* ---- the number of volumes of a node ---- */

/* The CSI source of the claim's volume; NULL: none. */
static const struct json *csi_of(const struct sched *s, const char *ns, const struct json *claim)
{
    const struct json *o = model_object(s, SCHED_CLAIM, ns, json_get_string(claim));
    const char *volume = storage_claim_volume(o);
    return *volume ? json_path(model_object(s, SCHED_VOLUME, NULL, volume), "spec", "csi", NULL)
                   : NULL;
}

static void collect(const struct sched *s, const struct class *class, const char *driver,
                    struct smap *handles)
{
    const struct json *claim;
    JSON_FOREACH (claim, json_get(class->spec, "claims")) {
        const struct json *csi = csi_of(s, class->subject->namespace, claim);
        if (streq(json_get_text(csi, "driver"), driver)) {
            smap_set(handles, json_get_text(csi, "volumeHandle"), handles);
        }
    }
}

/* Whether the node can have the pod's volumes beside those that it has. */
static bool limits_hold(const struct cycle *c, const struct node *n)
{
    const struct json *drivers =
        json_path(model_object(c->s, SCHED_CSI_NODE, NULL, n->name), "spec", "drivers", NULL);
    const struct json *d;
    bool holds = true;
    JSON_FOREACH (d, drivers) {
        const struct json *count = json_path(d, "allocatable", "count", NULL);
        const char *driver = json_get_text(d, "name");
        struct smap handles;
        const struct pod *p;
        smap_init(&handles, NULL);
        collect(c->s, c->class, driver, &handles);
        if (count && smap_size(&handles)) {
            LIST_FOREACH (p, struct pod, on_node, &n->pods) {
                if (p->placed) {
                    collect(c->s, p->class, driver, &handles);
                }
            }
            holds = holds && (int64_t) smap_size(&handles) <= json_get_int_or(count, 0);
        }
        smap_done(&handles);
    }
    return holds;
}

enum sched_reason volumes_check(const struct cycle *c, const struct node *n)
{
    return json_count(json_get(c->class->spec, "claims")) == 0 ? SCHED_FITS
           : !limits_hold(c, n)                                ? SCHED_VOLUME_LIMIT
                                                               : place(c, n, NULL);
}

/* ---- what is written before the pod gets its node ---- */

size_t sched_volumes(struct sched *s, const struct json *pod, const char *node,
                     struct sched_volume_step **ret)
{
    struct cycle c;
    const struct node *n = model_node(s, node);
    cycle_begin(&c, s, pod);
    size_t count = n && !c.fault && s->policy.filters & SCHED_FILTER_VOLUMES ? c.n_needs : 0;
    struct sched_volume_step *list = count ? xcalloc(count, sizeof *list) : NULL;
    if (count && place(&c, n, list) != SCHED_FITS) {
        free(list);
        list = NULL;
        count = 0;
    }
    cycle_end(&c);
    *ret = list;
    return count;
}
