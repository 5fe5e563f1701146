/* SPDX-License-Identifier: Apache-2.0 */
#include "api/condition.h"
#include "api/obj.h"
#include "base/mem.h"
#include "storage/bind.h"
#include "storage/plan_priv.h"

#define EXTERNAL_TEXT                                                                         \
    "Waiting for a volume to be created either by the external provisioner '%s' or manually " \
    "by the system administrator. If volume creation is delayed, please verify that the "     \
    "provisioner is running and correctly registered."

struct claim_plan {
    const struct json *claim;
    const struct storage_view *v;
    struct storage_plan *plan;
};

static const struct json *find_class(const struct storage_view *v, const char *name)
{
    for (size_t i = 0; name && *name && i < v->n_classes; i++) {
        if (streq(obj_name(v->classes[i]), name)) {
            return v->classes[i];
        }
    }
    return NULL;
}

static const char *phase_of(const struct json *o)
{
    return json_get_text(json_get(o, "status"), "phase");
}

static void bind_to(struct claim_plan *c, const struct json *volume)
{
    struct json *o = obj_new("v1", "Binding", obj_namespace(c->claim), obj_name(c->claim));
    struct json *target = json_ensure_object(o, "target");
    json_set_string(json_get(o, "metadata"), "uid", obj_uid(c->claim));
    json_set_string(target, "apiVersion", "v1");
    json_set_string(target, "kind", "PersistentVolume");
    json_set_string(target, "name", obj_name(volume));
    json_set_string(target, "uid", obj_uid(volume));
    plan_write(c->plan, STORAGE_BIND, o);
}

static void set_phase(struct claim_plan *c, const char *phase)
{
    if (!streq(phase_of(c->claim), phase)) {
        struct json *o = plan_copy(c->claim, "PersistentVolumeClaim");
        json_set_string(json_ensure_object(o, "status"), "phase", phase);
        plan_write(c->plan, STORAGE_PUT_CLAIM_STATUS, o);
    }
}

static void lost(struct claim_plan *c, const char *reason, const char *text)
{
    if (!streq(phase_of(c->claim), "Lost")) {
        set_phase(c, "Lost");
        plan_say(c->plan, true, reason, "%s", text);
    }
}

/* ---- a claim without volume ---- */

/* Nothing suits: says so, with the volumes that come nearest. */
static void report_misses(struct claim_plan *c, const char *why, const struct storage_misses *m)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    storage_misses_write(m, &b);
    plan_say(c->plan, false, "FailedBinding", "%s%s%s", why, b.size ? ": " : "", strbuf_cstr(&b));
}

static void provision(struct claim_plan *c, const struct json *class,
                      const struct storage_misses *m)
{
    const char *name = storage_claim_class(c->claim), *by = storage_class_provisioner(class);
    if (!class) {
        plan_say(c->plan, true, "ProvisioningFailed",
                 "storageclass.storage.k8s.io \"%s\" not found", name);
        return;
    }
    if (!*by) {
        CLEANUP_FREE char *why = xasprintf("no persistent volumes available for this claim, and "
                                           "storage class \"%s\" has no provisioner",
                                           name);
        report_misses(c, why, m);
        return;
    }
    if (!streq_null(obj_annotation(c->claim, STORAGE_PROVISIONER), by)) {
        struct json *o = plan_copy(c->claim, "PersistentVolumeClaim");
        obj_set_annotation(o, STORAGE_PROVISIONER, by);
        obj_set_annotation(o, STORAGE_PROVISIONER_BETA, by);
        plan_write(c->plan, STORAGE_PUT_CLAIM, o);
        return;
    }
    plan_say(c->plan, false, "ExternalProvisioning", EXTERNAL_TEXT, by);
}

static void plan_search(struct claim_plan *c)
{
    struct storage_misses misses = {0};
    const char *name = storage_claim_class(c->claim);
    const struct json *class = find_class(c->v, name);
    bool waits = storage_class_waits(class) && !obj_annotation(c->claim, STORAGE_SELECTED_NODE);
    struct storage_search search = {.reserved_only = storage_class_waits(class)};
    const struct json *volume =
        storage_match(c->claim, c->v->volumes, c->v->n_volumes, &search, &misses);
    misses.n[STORAGE_CLASS] += c->v->n_other_class;
    if (volume) {
        bind_to(c, volume);
    } else if (waits) {
        plan_say(c->plan, false, "WaitForFirstConsumer",
                 "waiting for first consumer to be created before binding");
    } else if (name && *name) {
        provision(c, class, &misses);
    } else {
        report_misses(c,
                      "no persistent volumes available for this claim and no storage class is set",
                      &misses);
    }
}

/* The user asks for one volume. */
static void plan_named(struct claim_plan *c)
{
    const char *name = storage_claim_volume(c->claim);
    const struct json *volume = c->v->volume(c->v->ctx, name);
    struct err e = {0};
    int r = volume ? storage_may_bind(c->claim, volume, &e) : 0;
    if (!volume) {
        plan_say(c->plan, false, "FailedBinding", "volume \"%s\" not found", name);
    } else if (r == 0) {
        bind_to(c, volume);
    } else {
        plan_say(c->plan, true, r == -EINVAL ? "VolumeMismatch" : "FailedBinding", "%s", e.text);
    }
}

static void plan_unbound(struct claim_plan *c)
{
    const struct json *class = storage_default_class(c->v->classes, c->v->n_classes);
    if (!storage_claim_class(c->claim) && !*storage_claim_volume(c->claim) && class) {
        /* The default class was made after the claim. */
        struct json *o = plan_copy(c->claim, "PersistentVolumeClaim");
        json_set_string(json_ensure_object(o, "spec"), "storageClassName", obj_name(class));
        plan_write(c->plan, STORAGE_PUT_CLAIM, o);
        return;
    }
    if (*storage_claim_volume(c->claim)) {
        plan_named(c);
    } else {
        plan_search(c);
    }
    if (c->plan->act == STORAGE_REST) {
        set_phase(c, "Pending");
    }
}

/* ---- a claim with a volume ---- */

/* The claim asks for more than its volume has. */
static void plan_growth(struct claim_plan *c, const struct json *volume)
{
    const char *wanted =
        json_path_string(c->claim, "spec", "resources", "requests", "storage", NULL);
    const char *by = obj_annotation(volume, STORAGE_PROVISIONED_BY);
    const char *size = json_path_string(volume, "spec", "capacity", "storage", NULL);
    const char *known = json_path_string(c->claim, "status", "capacity", "storage", NULL);
    bool own = streq_null(by, STORAGE_LOCAL_PROVISIONER);
    if (storage_claim_size(c->claim) > storage_volume_size(volume) && own) {
        struct json *o = plan_copy(volume, "PersistentVolume");
        json_set_string(json_ensure_object(json_get(o, "spec"), "capacity"), "storage", wanted);
        plan_write(c->plan, STORAGE_PUT_VOLUME, o);
    } else if (storage_claim_size(c->claim) > storage_volume_size(volume)) {
        plan_say(c->plan, false, "ExternalExpanding",
                 "waiting for an external controller to expand this PVC");
    } else if (own && !streq_null(known, size ? size : "")) {
        struct json *o = plan_copy(c->claim, "PersistentVolumeClaim");
        json_set_string(json_ensure_object(json_ensure_object(o, "status"), "capacity"), "storage",
                        size);
        condition_remove(o, "Resizing");
        plan_write(c->plan, STORAGE_PUT_CLAIM_STATUS, o);
        plan_say(c->plan, false, "VolumeResizeSuccessful", "Resize volume succeeded");
        c->plan->when_written = true;
    }
}

static void plan_bound(struct claim_plan *c)
{
    const char *name = storage_claim_volume(c->claim);
    const struct json *volume = *name ? c->v->volume(c->v->ctx, name) : NULL;
    if (!*name) {
        lost(c, "ClaimLost",
             "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!");
    } else if (!volume) {
        lost(c, "ClaimLost",
             "Bound claim has lost its PersistentVolume. Data on the volume is lost!");
    } else if (storage_is_bound(c->claim, volume)) {
        plan_growth(c, volume);
    } else if (storage_may_bind(c->claim, volume, NULL) == 0) {
        bind_to(c, volume);
    } else {
        lost(c, "ClaimMisbound",
             "Two claims are bound to the same volume, this one is bound incorrectly");
    }
}

void storage_plan_claim(const struct json *claim, const struct storage_view *v,
                        struct storage_plan *ret)
{
    struct claim_plan c = {claim, v, ret};
    *ret = (struct storage_plan){0};
    if (obj_is_terminating(claim)) {
        if (obj_has_finalizer(claim, STORAGE_CLAIM_FINALIZER) && !v->used) {
            plan_write(
                ret, STORAGE_RELEASE_CLAIM,
                plan_without_finalizer(claim, "PersistentVolumeClaim", STORAGE_CLAIM_FINALIZER));
        }
    } else if (storage_claim_is_bound(claim)) {
        plan_bound(&c);
    } else {
        plan_unbound(&c);
    }
}
