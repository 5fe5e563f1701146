/* SPDX-License-Identifier: Apache-2.0 */
/* Plans for claims and volumes, one by one, and random histories of a binder that dies.
 *
 * STORAGE_SEED and STORAGE_HISTORIES in the environment choose the first history and their
 * number. */
#include "api/obj.h"
#include "base/map.h"
#include "json_text.h"
#include "rng.h"
#include "storage/bind.h"
#include "storage/plan.h"

#define NOW INT64_C(1800000000000)

/* ---- objects ---- */

#define CLAIM(more)                                                               \
    "{'metadata':{'name':'c','namespace':'ns','uid':'u1'},'spec':{'accessModes':" \
    "['ReadWriteOnce'],'resources':{'requests':{'storage':'1Gi'}}" more "}}"
#define VOLUME(name, more)                                                              \
    "{'metadata':{'name':'" name "','uid':'v-" name "'},'spec':{'capacity':{'storage':" \
    "'2Gi'},'accessModes':['ReadWriteOnce']," more "},'status':{'phase':'Available'}}"
#define REF(uid) "'claimRef':{'namespace':'ns','name':'c','uid':'" uid "'}"
#define NFS "'nfs':{'server':'s','path':'/p'}"

struct fixture {
    const struct json *volumes[8], *classes[8];
    struct storage_view view;
    const char *working; /* The node that works; NULL: none. */
};

static const struct json *find_volume(void *ctx, const char *name)
{
    const struct fixture *f = ctx;
    for (size_t i = 0; i < f->view.n_volumes; i++) {
        if (streq(obj_name(f->volumes[i]), name)) {
            return f->volumes[i];
        }
    }
    return NULL;
}

static bool node_works(void *ctx, const char *name)
{
    const struct fixture *f = ctx;
    return streq_null(f->working, name);
}

static const char *any_node(void *ctx)
{
    const struct fixture *f = ctx;
    return f->working;
}

static struct fixture *fixture(const struct json *volume, const struct json *class)
{
    static struct fixture f;
    f = (struct fixture){.volumes = {volume}, .classes = {class}};
    f.view = (struct storage_view){.volumes = f.volumes,
                                   .n_volumes = volume != NULL,
                                   .classes = f.classes,
                                   .n_classes = class != NULL,
                                   .volume = find_volume,
                                   .node_works = node_works,
                                   .any_node = any_node,
                                   .ctx = &f,
                                   .now_ms = NOW};
    return &f;
}

/* ---- claims ---- */

struct claim_row {
    const char *claim, *volume, *class;
    enum storage_act act;
    const char *reason, *message;
};

static void check_claim(const struct claim_row *row)
{
    CLEANUP(json_free) struct json *claim = from(row->claim);
    CLEANUP(json_free) struct json *volume = row->volume ? from(row->volume) : NULL;
    CLEANUP(json_free) struct json *class = row->class ? from(row->class) : NULL;
    CLEANUP_STORAGE_PLAN struct storage_plan p;
    storage_plan_claim(claim, &fixture(volume, class)->view, &p);
    if (p.act != row->act || !streq(p.reason ? p.reason : "", row->reason ? row->reason : "") ||
        (row->message && !streq_null(p.message, row->message))) {
        fail_msg("%s: act %d reason %s: %s", row->claim, p.act, p.reason ? p.reason : "-",
                 p.message ? p.message : "-");
    }
}

#define CLASS(mode, provisioner) \
    "{'metadata':{'name':'gold'},'provisioner':'" provisioner "','volumeBindingMode':'" mode "'}"
#define GOLD ",'storageClassName':'gold'"
#define PENDING(text) "{'metadata':{'name':'c','namespace':'ns','uid':'u1'" text
#define BOUND                                                                            \
    "{'metadata':{'name':'c','namespace':'ns','uid':'u1','annotations':{"                \
    "'pv.kubernetes.io/bind-completed':'yes'}},'spec':{'accessModes':['ReadWriteOnce']," \
    "'resources':{'requests':{'storage':'1Gi'}},'volumeName':'v'},'status':{'phase':"    \
    "'Bound','capacity':{'storage':'2Gi'}}}"

static void plans_for_claims(void **state)
{
    static const struct claim_row rows[] = {
        {CLAIM(""), VOLUME("v", NFS), NULL, STORAGE_BIND, NULL, NULL},
        {CLAIM(""), NULL, NULL, STORAGE_PUT_CLAIM_STATUS, "FailedBinding",
         "no persistent volumes available for this claim and no storage class is set"},
        {CLAIM(""), VOLUME("v", NFS ",'storageClassName':'x'"), NULL, STORAGE_PUT_CLAIM_STATUS,
         "FailedBinding",
         "no persistent volumes available for this claim and no storage class is set: 1 volume "
         "has another class"},
        /* A class that waits takes no volume by itself, but one that is reserved. */
        {CLAIM(GOLD), VOLUME("v", NFS GOLD), CLASS("WaitForFirstConsumer", "p"),
         STORAGE_PUT_CLAIM_STATUS, "WaitForFirstConsumer",
         "waiting for first consumer to be created before binding"},
        {CLAIM(GOLD), VOLUME("v", NFS "," REF("")), CLASS("WaitForFirstConsumer", "p"),
         STORAGE_BIND, NULL, NULL},
        {CLAIM(GOLD), NULL, NULL, STORAGE_PUT_CLAIM_STATUS, "ProvisioningFailed",
         "storageclass.storage.k8s.io \"gold\" not found"},
        {CLAIM(GOLD), NULL, CLASS("Immediate", "p"), STORAGE_PUT_CLAIM, NULL, NULL},
        {CLAIM(GOLD), NULL, CLASS("Immediate", "kubernetes.io/no-provisioner"),
         STORAGE_PUT_CLAIM_STATUS, "FailedBinding", NULL},
        /* A volume by name. */
        {CLAIM(",'volumeName':'v'"), VOLUME("v", NFS), NULL, STORAGE_BIND, NULL, NULL},
        {CLAIM(",'volumeName':'v'" GOLD), VOLUME("v", NFS), NULL, STORAGE_PUT_CLAIM_STATUS,
         "VolumeMismatch", "cannot bind to volume \"v\": storageClassName does not match"},
        {CLAIM(",'volumeName':'w'"), VOLUME("v", NFS), NULL, STORAGE_PUT_CLAIM_STATUS,
         "FailedBinding", "volume \"w\" not found"},
        {CLAIM(",'volumeName':'v'"), VOLUME("v", NFS "," REF("u2")), NULL, STORAGE_PUT_CLAIM_STATUS,
         "FailedBinding", "volume \"v\" already bound to a different claim"},
        /* Bound ones. */
        {BOUND, NULL, NULL, STORAGE_PUT_CLAIM_STATUS, "ClaimLost",
         "Bound claim has lost its PersistentVolume. Data on the volume is lost!"},
        {BOUND, VOLUME("v", NFS "," REF("u2")), NULL, STORAGE_PUT_CLAIM_STATUS, "ClaimMisbound",
         NULL},
        {BOUND, VOLUME("v", NFS "," REF("u1")), NULL, STORAGE_BIND, NULL, NULL},
        /* Protection while a pod uses it is the caller's 'used'. */
        {PENDING(",'deletionTimestamp':'2026-01-01T00:00:00Z','finalizers':"
                 "['kubernetes.io/pvc-protection','x']}}"),
         NULL, NULL, STORAGE_RELEASE_CLAIM, NULL, NULL},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        check_claim(&rows[i]);
    }
}

static void the_default_class_is_put_in_later(void **state)
{
    CLEANUP(json_free) struct json *claim = from(CLAIM(""));
    CLEANUP(json_free) struct json *opted_out = from(CLAIM(",'storageClassName':''"));
    CLEANUP(json_free)
    struct json *class = from("{'metadata':{'name':'std','annotations':{'storageclass.kubernetes."
                              "io/is-default-class':'true'}},'provisioner':'p'}");
    CLEANUP_STORAGE_PLAN struct storage_plan p;
    storage_plan_claim(claim, &fixture(NULL, class)->view, &p);
    assert_int_equal(p.act, STORAGE_PUT_CLAIM);
    assert_string_equal(json_path_string(p.body, "spec", "storageClassName", NULL), "std");
    storage_plan_done(&p);
    storage_plan_claim(opted_out, &fixture(NULL, class)->view, &p);
    assert_int_equal(p.act, STORAGE_PUT_CLAIM_STATUS);
}

static void a_claim_in_use_keeps_its_finalizer(void **state)
{
    CLEANUP(json_free)
    struct json *claim = from(PENDING(",'deletionTimestamp':'2026-01-01T00:00:00Z','finalizers':"
                                      "['kubernetes.io/pvc-protection']}}"));
    struct fixture *f = fixture(NULL, NULL);
    CLEANUP_STORAGE_PLAN struct storage_plan p;
    f->view.used = true;
    storage_plan_claim(claim, &f->view, &p);
    assert_int_equal(p.act, STORAGE_REST);
}

static void a_claim_of_the_class_local_grows(void **state)
{
    CLEANUP(json_free) struct json *claim = from(BOUND);
    CLEANUP(json_free) struct json *v = from(VOLUME("v", NFS "," REF("u1")));
    obj_set_annotation(v, STORAGE_PROVISIONED_BY, STORAGE_LOCAL_PROVISIONER);
    storage_bind(claim, v, NOW);
    json_set_string(json_path(claim, "spec", "resources", "requests", NULL), "storage", "3Gi");
    CLEANUP_STORAGE_PLAN struct storage_plan p;
    storage_plan_claim(claim, &fixture(v, NULL)->view, &p);
    assert_int_equal(p.act, STORAGE_PUT_VOLUME);
    assert_string_equal(json_path_string(p.body, "spec", "capacity", "storage", NULL), "3Gi");
    CLEANUP(json_free) struct json *grown = TAKE(p.body);
    storage_plan_done(&p);
    storage_plan_claim(claim, &fixture(grown, NULL)->view, &p);
    assert_int_equal(p.act, STORAGE_PUT_CLAIM_STATUS);
    assert_string_equal(json_path_string(p.body, "status", "capacity", "storage", NULL), "3Gi");
    obj_set_annotation(v, STORAGE_PROVISIONED_BY, "other");
    storage_plan_done(&p);
    storage_plan_claim(claim, &fixture(v, NULL)->view, &p);
    assert_int_equal(p.act, STORAGE_REST);
    assert_string_equal(p.reason, "ExternalExpanding");
}

/* ---- volumes ---- */

struct volume_row {
    const char *volume;
    const char *claim; /* NULL: there is none. */
    bool read;
    const char *working;
    enum storage_act act;
    const char *phase; /* Of the body; NULL: not looked at. */
    const char *reason;
};

#define STATE(name, more, phase, notes)                                                        \
    "{'metadata':{'name':'" name "','annotations':{" notes "}},'spec':{'capacity':{'storage':" \
    "'2Gi'},'accessModes':['ReadWriteOnce']," more "},'status':{'phase':'" phase "'}}"
#define POLICY(p) ",'persistentVolumeReclaimPolicy':'" p "'"

static void plans_for_volumes(void **state)
{
    static const struct volume_row rows[] = {
        {STATE("v", NFS, "Pending", ""), NULL, false, NULL, STORAGE_PUT_VOLUME_STATUS, "Available",
         NULL},
        {STATE("v", NFS "," REF(""), "Pending", ""), NULL, false, NULL, STORAGE_PUT_VOLUME_STATUS,
         "Available", NULL},
        {STATE("v", NFS, "Available", ""), NULL, false, NULL, STORAGE_REST, NULL, NULL},
        /* The claim is looked for before the volume counts as released. */
        {STATE("v", NFS "," REF("u1"), "Bound", ""), NULL, false, NULL, STORAGE_READ_CLAIM, NULL,
         NULL},
        {STATE("v", NFS "," REF("u1"), "Bound", ""), NULL, true, NULL, STORAGE_PUT_VOLUME_STATUS,
         "Released", NULL},
        {STATE("v", NFS "," REF("u1"), "Bound", ""), BOUND, false, NULL, STORAGE_REST, NULL, NULL},
        {STATE("v", NFS "," REF("u1") POLICY("Retain"), "Released", ""), NULL, false, "n1",
         STORAGE_REST, NULL, NULL},
        {STATE("v", NFS "," REF("u1") POLICY("Delete"), "Released", ""), NULL, false, "n1",
         STORAGE_PUT_VOLUME_STATUS, "Failed", "VolumeFailedDelete"},
        {STATE("v", NFS "," REF("u1") POLICY("Delete"), "Released",
               "'pv.kubernetes.io/provisioned-by':'tenet.io/local'"),
         NULL, false, "n1", STORAGE_REST, NULL, NULL},
        /* Recycling. */
        {STATE("v", NFS "," REF("u1") POLICY("Recycle"), "Released", ""), NULL, false, "n1",
         STORAGE_PUT_VOLUME, NULL, NULL},
        {STATE("v", NFS "," REF("u1") POLICY("Recycle"), "Released", ""), NULL, false, NULL,
         STORAGE_REST, NULL, "RecycleWaits"},
        {STATE("v", NFS "," REF("u1") POLICY("Recycle"), "Released",
               "'tenet.io/recycle-node':'n1'"),
         NULL, false, "n1", STORAGE_REST, NULL, NULL},
        {STATE("v", NFS "," REF("u1") POLICY("Recycle"), "Released",
               "'tenet.io/recycle-node':'n2'"),
         NULL, false, "n1", STORAGE_PUT_VOLUME, NULL, NULL},
        {STATE("v", NFS "," REF("u1") POLICY("Recycle"), "Released", "'tenet.io/recycled':'true'"),
         NULL, false, NULL, STORAGE_REST, NULL, "RecycleWaits"},
        {STATE("v", NFS "," REF("u1") POLICY("Recycle"), "Released",
               "'tenet.io/recycle-node':'n1','tenet.io/recycle-failed':'no'"),
         NULL, false, "n1", STORAGE_PUT_VOLUME_STATUS, "Failed", "VolumeFailedRecycle"},
        {STATE("v", "'rbd':{}," REF("u1") POLICY("Recycle"), "Released", ""), NULL, false, "n1",
         STORAGE_PUT_VOLUME_STATUS, "Failed", "VolumeFailedRecycle"},
        {STATE("v", NFS "," REF("u1") POLICY("Recycle"), "Failed", ""), NULL, false, "n1",
         STORAGE_REST, NULL, NULL},
        /* The claim has another volume. */
        {STATE("w", NFS "," REF("u1"), "Available", "'pv.kubernetes.io/bound-by-controller':'yes'"),
         BOUND, false, NULL, STORAGE_PUT_VOLUME, NULL, NULL},
        {STATE("w", NFS "," REF("u1"), "Available", ""), BOUND, false, NULL, STORAGE_REST, NULL,
         NULL},
        {STATE("w", NFS "," REF("u1") POLICY("Delete"), "Available",
               "'pv.kubernetes.io/provisioned-by':'x'"),
         BOUND, false, NULL, STORAGE_PUT_VOLUME_STATUS, "Released", NULL},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        const struct volume_row *row = &rows[i];
        CLEANUP(json_free) struct json *volume = from(row->volume);
        CLEANUP(json_free) struct json *claim = row->claim ? from(row->claim) : NULL;
        CLEANUP_STORAGE_PLAN struct storage_plan p;
        struct fixture *f = fixture(NULL, NULL);
        f->working = row->working;
        struct storage_owner owner = {claim, row->read};
        storage_plan_volume(volume, &owner, &f->view, &p);
        const char *phase = json_path_string(p.body, "status", "phase", NULL);
        if (p.act != row->act || (row->phase && !streq_null(phase, row->phase)) ||
            !streq(p.reason ? p.reason : "", row->reason ? row->reason : "")) {
            fail_msg("row %zu: act %d phase %s reason %s", i, p.act, phase ? phase : "-",
                     p.reason ? p.reason : "-");
        }
    }
}

static void a_recycled_volume_is_free(void **state)
{
    CLEANUP(json_free)
    struct json *v = from(STATE("v", NFS "," REF("u1") POLICY("Recycle"), "Released",
                                "'tenet.io/recycle-node':'n1','tenet.io/recycled':'true',"
                                "'pv.kubernetes.io/bound-by-controller':'yes','x':'y'"));
    struct fixture *f = fixture(NULL, NULL);
    struct storage_owner owner = {NULL, false};
    CLEANUP_STORAGE_PLAN struct storage_plan p;
    storage_plan_volume(v, &owner, &f->view, &p);
    assert_int_equal(p.act, STORAGE_PUT_VOLUME);
    assert_null(json_path(p.body, "spec", "claimRef", NULL));
    assert_json(json_path(p.body, "metadata", "annotations", NULL), "{'x':'y'}");
    assert_string_equal(p.reason, "VolumeRecycled");
    assert_true(p.when_written);
}

static void a_volume_in_use_keeps_its_finalizer(void **state)
{
#define LEAVING(phase)                                                                 \
    "{'metadata':{'name':'v','deletionTimestamp':'2026-01-01T00:00:00Z','finalizers':" \
    "['kubernetes.io/pv-protection']},'spec':{" REF("u1") "},'status':{'phase':'" phase "'}}"
    CLEANUP(json_free) struct json *bound = from(LEAVING("Bound"));
    CLEANUP(json_free) struct json *released = from(LEAVING("Released"));
    CLEANUP(json_free) struct json *claim = from(BOUND);
    struct fixture *f = fixture(NULL, NULL);
    struct storage_owner owner = {claim, false}, none = {NULL, true};
    CLEANUP_STORAGE_PLAN struct storage_plan p;
    storage_plan_volume(bound, &owner, &f->view, &p);
    assert_int_equal(p.act, STORAGE_REST);
    storage_plan_done(&p);
    storage_plan_volume(released, &none, &f->view, &p);
    assert_int_equal(p.act, STORAGE_PUT_VOLUME);
    assert_int_equal(json_count(json_path(p.body, "metadata", "finalizers", NULL)), 0);
}

/* ---- binding ---- */

static void a_binding_changes_both(void **state)
{
    CLEANUP(json_free) struct json *claim = from(CLAIM(""));
    CLEANUP(json_free) struct json *v = from(VOLUME("v", NFS));
    struct err e = {0};
    assert_int_equal(storage_may_bind(claim, v, &e), 0);
    assert_false(storage_is_bound(claim, v));
    storage_bind(claim, v, NOW);
    assert_true(storage_is_bound(claim, v));
    assert_json(json_get(claim, "status"), "{'phase':'Bound','accessModes':['ReadWriteOnce'],"
                                           "'capacity':{'storage':'2Gi'}}");
    assert_json(json_path(v, "spec", "claimRef", NULL),
                "{'kind':'PersistentVolumeClaim','namespace':'ns','name':'c','uid':'u1',"
                "'apiVersion':'v1'}");
    assert_string_equal(obj_annotation(v, STORAGE_BOUND_BY_CONTROLLER), "yes");
    assert_string_equal(obj_annotation(claim, STORAGE_BOUND_BY_CONTROLLER), "yes");
    assert_string_equal(obj_annotation(claim, STORAGE_BIND_COMPLETED), "yes");
    CLEANUP(json_free) struct json *again = json_clone(claim), *v2 = json_clone(v);
    storage_bind(again, v2, NOW + 5000);
    assert_true(json_equal(again, claim) && json_equal(v2, v));
}

static void what_is_reserved_must_suit_nevertheless(void **state)
{
    CLEANUP(json_free) struct json *claim = from(CLAIM(",'volumeName':'v'"));
    CLEANUP(json_free) struct json *v = from(VOLUME("v", NFS "," REF("u1")));
    struct err e = {0};
    json_set_string(json_path(v, "spec", "capacity", NULL), "storage", "1Mi");
    assert_int_equal(storage_may_bind(claim, v, &e), -EINVAL);
    assert_string_equal(e.text, "cannot bind to volume \"v\": requested size is larger than the "
                                "volume");
}

static void a_claim_without_its_mark_is_not_bound(void **state)
{
    CLEANUP(json_free) struct json *claim = from(CLAIM(""));
    CLEANUP(json_free) struct json *v = from(VOLUME("v", NFS));
    storage_bind(claim, v, NOW);
    assert_true(storage_is_bound(claim, v));
    obj_remove_annotation(claim, STORAGE_BIND_COMPLETED);
    assert_false(storage_is_bound(claim, v));
}

static void a_phase_has_its_reason_and_time(void **state)
{
    CLEANUP(json_free) struct json *v = from("{'status':{'phase':'Bound'}}");
    assert_true(storage_set_phase(v, "Failed", "R", "m", NOW));
    assert_json(json_get(v, "status"), "{'phase':'Failed','reason':'R','message':'m',"
                                       "'lastPhaseTransitionTime':'2027-01-15T08:00:00Z'}");
    assert_false(storage_set_phase(v, "Failed", "R", "m", NOW + 5000));
    assert_true(storage_set_phase(v, "Available", NULL, NULL, NOW));
    assert_null(json_path(v, "status", "reason", NULL));
}

/* ---- histories ---- */

#define MOST 6
struct cluster {
    struct json *claims[MOST], *volumes[MOST];         /* By number; NULL: there is none. */
    struct json *old_claims[MOST], *old_volumes[MOST]; /* The binder's late copies. */
    unsigned uids;
    size_t bindings, releases;
};

static void set(struct json **at, struct json *o)
{
    json_free(*at);
    *at = o;
}

static void see(struct json **copy, const struct json *o)
{
    set(copy, o ? json_clone(o) : NULL);
}

static void check(const struct cluster *c)
{
    for (size_t i = 0; i < MOST; i++) {
        size_t named = 0;
        for (size_t k = 0; k < MOST; k++) {
            named += c->claims[i] && c->volumes[k] &&
                     storage_volume_refers_to(c->volumes[k], c->claims[i], true);
        }
        assert_true(named <= 1); /* No claim has two volumes. */
        if (c->claims[i] && storage_claim_is_bound(c->claims[i])) {
            const struct json *v = NULL;
            for (size_t k = 0; k < MOST; k++) {
                if (c->volumes[k] &&
                    streq(obj_name(c->volumes[k]), storage_claim_volume(c->claims[i]))) {
                    v = c->volumes[k];
                }
            }
            /* Nothing is half-bound, and no volume has two claims: it names this one.  A volume
             * that was made anew under the name is another one. */
            assert_true(!v || !streq(obj_uid(v), obj_annotation(c->claims[i], "test/volume")) ||
                        storage_volume_refers_to(v, c->claims[i], true));
        } else if (c->claims[i]) {
            assert_int_equal(named, 0);
        }
    }
}

static struct json *new_claim(struct cluster *c, size_t i)
{
    static const char *const sizes[] = {"1Gi", "2Gi", "3Gi"};
    struct json *o = from(CLAIM(""));
    json_set(json_get(o, "metadata"), "name", json_stringf("c%zu", i));
    json_set(json_get(o, "metadata"), "uid", json_stringf("u%u", ++c->uids));
    json_set_string(json_path(o, "spec", "resources", "requests", NULL), "storage", PICK(sizes));
    if (chance(10)) {
        json_set(json_get(o, "spec"), "volumeName", json_stringf("v%u", below(MOST)));
    }
    return o;
}

static struct json *new_volume(struct cluster *c, size_t i)
{
    static const char *const sizes[] = {"1Gi", "2Gi", "5Gi"};
    static const char *const policies[] = {"Retain", "Recycle"};
    struct json *o = from(VOLUME("v", NFS));
    json_set(json_get(o, "metadata"), "name", json_stringf("v%zu", i));
    json_set(json_get(o, "metadata"), "uid", json_stringf("w%u", ++c->uids));
    json_set_string(json_path(o, "spec", "capacity", NULL), "storage", PICK(sizes));
    json_set_string(json_get(o, "spec"), "persistentVolumeReclaimPolicy", PICK(policies));
    if (chance(10)) {
        struct json *ref = json_ensure_object(json_get(o, "spec"), "claimRef");
        json_set_string(ref, "namespace", "ns");
        json_set(ref, "name", json_stringf("c%u", below(MOST)));
    }
    return o;
}

/* The object of the write, if it is still the one that the plan was made from. */
static struct json **target(struct json *const *now, struct json *const *old, const char *name,
                            const struct json *body)
{
    for (size_t i = 0; i < MOST; i++) {
        if (now[i] && streq(obj_name(now[i]), name)) {
            /* A resourceVersion would differ: the server refuses the write. */
            return json_equal(now[i], old[i]) && streq(obj_uid(now[i]), obj_uid(body))
                       ? (struct json **) &now[i]
                       : NULL;
        }
    }
    return NULL;
}

static void put(struct json *const *now, struct json *const *old, const struct json *body)
{
    struct json **at = target(now, old, obj_name(body), body);
    if (at) {
        struct json *o = json_clone(body);
        json_remove(o, "apiVersion");
        json_remove(o, "kind");
        set(at, o);
    }
}

/* The API server's transaction. */
static void bind(struct cluster *c, const struct json *body)
{
    struct json *claim = NULL, *volume = NULL;
    for (size_t i = 0; i < MOST; i++) {
        claim = c->claims[i] && streq(obj_uid(c->claims[i]),
                                      json_path_string(body, "metadata", "uid", NULL))
                    ? c->claims[i]
                    : claim;
        volume = c->volumes[i] && streq(obj_uid(c->volumes[i]),
                                        json_path_string(body, "target", "uid", NULL))
                     ? c->volumes[i]
                     : volume;
    }
    if (claim && volume && storage_may_bind(claim, volume, NULL) == 0) {
        storage_bind(claim, volume, NOW);
        obj_set_annotation(claim, "test/volume", obj_uid(volume));
        c->bindings++;
    }
}

static void carry_out(struct cluster *c, const struct storage_plan *p)
{
    if (p->act == STORAGE_BIND) {
        bind(c, p->body);
    } else if (p->act == STORAGE_PUT_CLAIM || p->act == STORAGE_PUT_CLAIM_STATUS) {
        put(c->claims, c->old_claims, p->body);
    } else if (p->act == STORAGE_PUT_VOLUME || p->act == STORAGE_PUT_VOLUME_STATUS) {
        c->releases += !json_path(p->body, "spec", "claimRef", NULL);
        put(c->volumes, c->old_volumes, p->body);
    }
    check(c);
}

static void step_claim(struct cluster *c, size_t i)
{
    struct fixture *f = fixture(NULL, NULL);
    CLEANUP_STORAGE_PLAN struct storage_plan p;
    for (size_t k = 0; k < MOST; k++) {
        if (c->old_volumes[k]) {
            f->volumes[f->view.n_volumes++] = c->old_volumes[k];
        }
    }
    storage_plan_claim(c->old_claims[i], &f->view, &p);
    carry_out(c, &p);
}

static void step_volume(struct cluster *c, size_t i)
{
    struct fixture *f = fixture(NULL, NULL);
    struct storage_owner owner = {0};
    const struct json *v = c->old_volumes[i];
    CLEANUP_STORAGE_PLAN struct storage_plan p;
    f->working = "n1";
    for (size_t k = 0; k < MOST && !owner.claim; k++) {
        if (c->old_claims[k] && storage_volume_refers_to(v, c->old_claims[k], true)) {
            owner.claim = c->old_claims[k];
        }
    }
    storage_plan_volume(v, &owner, &f->view, &p);
    if (p.act == STORAGE_READ_CLAIM) {
        storage_plan_done(&p);
        owner.read = true;
        for (size_t k = 0; k < MOST; k++) {
            if (c->claims[k] && storage_volume_refers_to(v, c->claims[k], true)) {
                owner.claim = c->claims[k];
            }
        }
        storage_plan_volume(v, &owner, &f->view, &p);
    }
    carry_out(c, &p);
}

/* What users, nodes and administrators do. */
static void disturb(struct cluster *c)
{
    size_t i = below(MOST);
    if (chance(50)) {
        set(&c->claims[i], c->claims[i] && chance(50) ? NULL : new_claim(c, i));
    } else if (!c->volumes[i]) {
        set(&c->volumes[i], new_volume(c, i));
    } else if (chance(20)) {
        set(&c->volumes[i], NULL);
    } else if (obj_annotation(c->volumes[i], STORAGE_RECYCLE_NODE)) {
        obj_set_annotation(c->volumes[i], chance(80) ? STORAGE_RECYCLED : STORAGE_RECYCLE_FAILED,
                           "true");
    }
    check(c);
}

/* The binder's copies are late, each by its own time, and it may die at every write: then it has
 * nothing but what the objects say, which is all that a plan is made from. */
static void histories_bind_each_to_one(void **state)
{
    uint64_t n = rng_setting("STORAGE_HISTORIES", 300);
    uint64_t seed = rng_first_seed("STORAGE_SEED", n, "histories");
    size_t bindings = 0, releases = 0;
    for (uint64_t h = 0; h < n; h++) {
        struct cluster c = {0};
        rng_start(seed + h);
        for (int step = 0; step < 200; step++) {
            size_t i = below(MOST);
            if (chance(20)) {
                disturb(&c);
            } else if (chance(25)) {
                see(&c.old_claims[i], c.claims[i]);
            } else if (chance(33)) {
                see(&c.old_volumes[i], c.volumes[i]);
            } else if (chance(50) && c.old_claims[i]) {
                step_claim(&c, i);
            } else if (c.old_volumes[i]) {
                step_volume(&c, i);
            }
        }
        bindings += c.bindings;
        releases += c.releases;
        for (size_t i = 0; i < MOST; i++) {
            json_free(c.claims[i]);
            json_free(c.volumes[i]);
            json_free(c.old_claims[i]);
            json_free(c.old_volumes[i]);
        }
    }
    assert_true(bindings > n && releases > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_for_claims),
        cmocka_unit_test(the_default_class_is_put_in_later),
        cmocka_unit_test(a_claim_in_use_keeps_its_finalizer),
        cmocka_unit_test(a_claim_of_the_class_local_grows),
        cmocka_unit_test(plans_for_volumes),
        cmocka_unit_test(a_recycled_volume_is_free),
        cmocka_unit_test(a_volume_in_use_keeps_its_finalizer),
        cmocka_unit_test(a_binding_changes_both),
        cmocka_unit_test(what_is_reserved_must_suit_nevertheless),
        cmocka_unit_test(a_claim_without_its_mark_is_not_bound),
        cmocka_unit_test(a_phase_has_its_reason_and_time),
        cmocka_unit_test(histories_bind_each_to_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
