/* SPDX-License-Identifier: Apache-2.0 */
#include "api/obj.h"
#include "storage/bind.h"
#include "storage/plan_priv.h"

struct volume_plan {
    const struct json *volume;
    const struct storage_view *v;
    struct storage_plan *plan;
};

static void set_phase(struct volume_plan *p, const char *phase, const char *reason,
                      const char *message)
{
    struct json *o = plan_copy(p->volume, "PersistentVolume");
    if (storage_set_phase(o, phase, reason, message, p->v->now_ms)) {
        plan_write(p->plan, STORAGE_PUT_VOLUME_STATUS, o);
    } else {
        json_free(o);
    }
}

static void fail(struct volume_plan *p, const char *reason, const char *message)
{
    set_phase(p, "Failed", reason, message);
    if (p->plan->act != STORAGE_REST) {
        plan_say(p->plan, true, reason, "%s", message);
    }
}

/* ---- a volume whose claim is gone ---- */

/* The volume becomes free for every claim. */
static void free_volume(struct volume_plan *p)
{
    struct json *o = plan_copy(p->volume, "PersistentVolume");
    json_remove(json_get(o, "spec"), "claimRef");
    obj_remove_annotation(o, STORAGE_RECYCLE_NODE);
    obj_remove_annotation(o, STORAGE_RECYCLED);
    obj_remove_annotation(o, STORAGE_RECYCLE_FAILED);
    obj_remove_annotation(o, STORAGE_BOUND_BY_CONTROLLER);
    plan_write(p->plan, STORAGE_PUT_VOLUME, o);
}

static void plan_recycling(struct volume_plan *p)
{
    const char *source = storage_volume_source(p->volume);
    const char *node = obj_annotation(p->volume, STORAGE_RECYCLE_NODE);
    const char *failed = obj_annotation(p->volume, STORAGE_RECYCLE_FAILED);
    const char *own = storage_volume_node(p->volume);
    if (!streq(source, "hostPath") && !streq(source, "nfs")) {
        fail(p, "VolumeFailedRecycle",
             "only volumes of the kinds hostPath and nfs can be recycled");
    } else if (node && streq_null(obj_annotation(p->volume, STORAGE_RECYCLED), "true")) {
        free_volume(p);
        plan_say(p->plan, false, "VolumeRecycled", "Volume recycled");
        p->plan->when_written = true;
    } else if (failed) {
        fail(p, "VolumeFailedRecycle", failed);
    } else if (!node || !p->v->node_works(p->v->ctx, node)) {
        const char *to = own ? own : p->v->any_node(p->v->ctx);
        if (to && !streq_null(node, to)) {
            struct json *o = plan_copy(p->volume, "PersistentVolume");
            obj_set_annotation(o, STORAGE_RECYCLE_NODE, to);
            plan_write(p->plan, STORAGE_PUT_VOLUME, o);
        } else if (!to) {
            plan_say(p->plan, false, "RecycleWaits", "no node is ready to scrub the volume");
        }
    }
}

static void plan_deletion(struct volume_plan *p)
{
    /* The provisioner removes the storage, then the object. */
    if (!obj_annotation(p->volume, STORAGE_PROVISIONED_BY) &&
        !streq(storage_volume_source(p->volume), "csi")) {
        fail(p, "VolumeFailedDelete",
             "no provisioner made this volume, so none deletes it: remove its data and the "
             "PersistentVolume by hand");
    }
}

static void plan_released(struct volume_plan *p, const struct storage_owner *owner)
{
    const char *phase = json_get_text(json_get(p->volume, "status"), "phase");
    const char *policy =
        json_get_text(json_get(p->volume, "spec"), "persistentVolumeReclaimPolicy");
    if (streq(phase, "Failed")) {
        return;
    }
    if (!streq(phase, "Released")) {
        if (owner->read) {
            set_phase(p, "Released", NULL, NULL);
        } else {
            plan_write(p->plan, STORAGE_READ_CLAIM, NULL);
        }
    } else if (streq(policy, "Recycle")) {
        plan_recycling(p);
    } else if (streq(policy, "Delete")) {
        plan_deletion(p);
    }
}

/* ---- a volume with a claim ---- */

static void plan_claimed(struct volume_plan *p, const struct json *claim)
{
    const char *named = storage_claim_volume(claim);
    if (!*named || streq(named, obj_name(p->volume))) {
        return; /* The plan of the claim binds both, or says why not. */
    }
    if (obj_annotation(p->volume, STORAGE_PROVISIONED_BY)) {
        /* It was made for a claim that got another volume meanwhile. */
        if (streq(json_get_text(json_get(p->volume, "spec"), "persistentVolumeReclaimPolicy"),
                  "Delete")) {
            set_phase(p, "Released", NULL, NULL);
        }
    } else if (obj_annotation(p->volume, STORAGE_BOUND_BY_CONTROLLER)) {
        free_volume(p);
    }
}

void storage_plan_volume(const struct json *volume, const struct storage_owner *owner,
                         const struct storage_view *v, struct storage_plan *ret)
{
    struct volume_plan p = {volume, v, ret};
    const struct json *ref = json_path(volume, "spec", "claimRef", NULL);
    const char *phase = json_get_text(json_get(volume, "status"), "phase");
    *ret = (struct storage_plan){0};
    if (obj_is_terminating(volume)) {
        if (obj_has_finalizer(volume, STORAGE_VOLUME_FINALIZER) && !streq(phase, "Bound")) {
            plan_write(
                ret, STORAGE_PUT_VOLUME,
                plan_without_finalizer(volume, "PersistentVolume", STORAGE_VOLUME_FINALIZER));
            return;
        }
        if (!streq(phase, "Bound")) {
            return;
        }
    }
    if (!ref || !*json_get_text(ref, "uid")) {
        if (!streq(phase, "Available") && !streq(phase, "Failed")) {
            set_phase(&p, "Available", NULL, NULL);
        } else if (streq(phase, "Failed") && !ref) {
            set_phase(&p, "Available", NULL, NULL); /* An administrator has freed it. */
        }
    } else if (owner->claim) {
        plan_claimed(&p, owner->claim);
    } else {
        plan_released(&p, owner);
    }
}
