/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/bind.h"

#include "api/obj.h"
#include "base/timeutil.h"
#include "storage/match.h"

static const char *misfit_text(enum storage_misfit why)
{
    static const char *const texts[STORAGE_MISFITS] = {
        [STORAGE_TAKEN] = "it belongs to another claim",
        [STORAGE_LEAVING] = "it has failed or is being deleted",
        [STORAGE_CLASS] = "storageClassName does not match",
        [STORAGE_MODE] = "volumeMode does not match",
        [STORAGE_ACCESS] = "it lacks an access mode",
        [STORAGE_SELECTOR] = "its labels do not match the selector of the claim",
        [STORAGE_NODE] = "it cannot be reached from the node",
        [STORAGE_SMALL] = "requested size is larger than the volume",
    };
    return texts[why];
}

int storage_may_bind(const struct json *claim, const struct json *volume, struct err *e)
{
    const char *named = storage_claim_volume(claim), *name = obj_name(volume);
    if (*named && !streq(named, name)) {
        return err_set(e, -EBUSY, "claim \"%s\" is bound to volume \"%s\"", obj_name(claim), named);
    }
    if (json_path(volume, "spec", "claimRef", NULL) &&
        !storage_volume_refers_to(volume, claim, false)) {
        return err_set(e, -EBUSY, "volume \"%s\" already bound to a different claim", name);
    }
    if (storage_claim_is_bound(claim) && storage_volume_refers_to(volume, claim, true)) {
        return 0;
    }
    if (obj_is_terminating(claim)) {
        return err_set(e, -EBUSY, "claim \"%s\" is being deleted", obj_name(claim));
    }
    enum storage_misfit why =
        *named ? storage_check_pair(claim, volume, !json_path(volume, "spec", "claimRef", NULL))
               : storage_check(claim, volume, NULL);
    return why == STORAGE_FITS
               ? 0
               : err_set(e, -EINVAL, "cannot bind to volume \"%s\": %s", name, misfit_text(why));
}

static void set_reference(struct json *volume, const struct json *claim)
{
    struct json *ref = json_set(json_ensure_object(volume, "spec"), "claimRef", json_object());
    json_set_string(ref, "kind", "PersistentVolumeClaim");
    json_set_string(ref, "namespace", obj_namespace(claim));
    json_set_string(ref, "name", obj_name(claim));
    json_set_string(ref, "uid", obj_uid(claim));
    json_set_string(ref, "apiVersion", "v1");
}

bool storage_set_phase(struct json *volume, const char *phase, const char *reason,
                       const char *message, int64_t now_ms)
{
    struct json *status = json_ensure_object(volume, "status");
    bool same = streq(json_get_text(status, "phase"), phase);
    if (same && streq(json_get_text(status, "reason"), reason ? reason : "") &&
        streq(json_get_text(status, "message"), message ? message : "")) {
        return false;
    }
    json_remove(status, "reason");
    json_remove(status, "message");
    json_set_string(status, "phase", phase);
    json_set_string(status, "reason", reason);
    json_set_string(status, "message", message);
    if (!same) {
        char now[TIME_TEXT_SIZE];
        time_format_s(now_ms, now);
        json_set_string(status, "lastPhaseTransitionTime", now);
    }
    return true;
}

static void copy(struct json *to, const char *key, const struct json *from)
{
    if (from) {
        json_set(to, key, json_clone(from));
    }
}

void storage_bind(struct json *claim, struct json *volume, int64_t now_ms)
{
    if (!storage_volume_refers_to(volume, claim, false)) {
        obj_set_annotation(volume, STORAGE_BOUND_BY_CONTROLLER, "yes");
    }
    if (!storage_volume_refers_to(volume, claim, true)) {
        set_reference(volume, claim);
    }
    (void) storage_set_phase(volume, "Bound", NULL, NULL, now_ms);
    if (!*storage_claim_volume(claim)) {
        json_set_string(json_ensure_object(claim, "spec"), "volumeName", obj_name(volume));
        obj_set_annotation(claim, STORAGE_BOUND_BY_CONTROLLER, "yes");
    }
    obj_set_annotation(claim, STORAGE_BIND_COMPLETED, "yes");
    struct json *status = json_ensure_object(claim, "status");
    json_set_string(status, "phase", "Bound");
    copy(status, "accessModes", json_path(volume, "spec", "accessModes", NULL));
    if (!json_get(status, "capacity")) {
        copy(status, "capacity", json_path(volume, "spec", "capacity", NULL));
    }
}

bool storage_is_bound(const struct json *claim, const struct json *volume)
{
    return storage_claim_is_bound(claim) && storage_volume_refers_to(volume, claim, true) &&
           streq(storage_claim_volume(claim), obj_name(volume)) &&
           streq(json_get_text(json_get(claim, "status"), "phase"), "Bound") &&
           streq(json_get_text(json_get(volume, "status"), "phase"), "Bound");
}
