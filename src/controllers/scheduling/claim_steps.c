/* SPDX-License-Identifier: Apache-2.0 */
#include "controllers/scheduling/claim_steps.h"

#include "api/obj.h"
#include "base/mem.h"
#include "storage/names.h"

#define MERGE "application/merge-patch+json"

struct step {
    char *claim, *claim_uid, *volume, *volume_uid; /* As in struct sched_volume_step. */
};

struct claim_steps {
    char *ns, *node;
    struct step *list;
    size_t n, done;
};

static char *copy(const char *s)
{
    return s ? xstrdup(s) : NULL;
}

struct claim_steps *claim_steps_new(const char *ns, const char *node,
                                    const struct sched_volume_step *list, size_t n)
{
    struct claim_steps *s = NEW(struct claim_steps);
    *s = (struct claim_steps){
        .ns = xstrdup(ns), .node = xstrdup(node), .list = xcalloc(n, sizeof(struct step))};
    for (size_t i = 0; i < n; i++) {
        if (list[i].volume || !list[i].is_selected) {
            s->list[s->n++] = (struct step){copy(list[i].claim), copy(list[i].claim_uid),
                                            copy(list[i].volume), copy(list[i].volume_uid)};
        }
    }
    return s->n ? s : claim_steps_free(s);
}

struct claim_steps *claim_steps_free(struct claim_steps *s)
{
    if (s) {
        for (size_t i = 0; i < s->n; i++) {
            free(s->list[i].claim);
            free(s->list[i].claim_uid);
            free(s->list[i].volume);
            free(s->list[i].volume_uid);
        }
        free(s->list);
        free(s->ns);
        free(s->node);
        free(s);
    }
    return NULL;
}

const char *claim_steps_volume(const struct claim_steps *s, size_t i)
{
    return i < s->n ? s->list[i].volume : "";
}

static void send_binding(const struct claim_steps *s, const struct step *t, struct work *w,
                         work_answer_fn *fn)
{
    CLEANUP_FREE char *path = api_path("v1", "persistentvolumeclaims", s->ns, t->claim, "binding");
    CLEANUP(json_free) struct json *o = obj_new("v1", "Binding", s->ns, t->claim);
    struct json *target = json_ensure_object(o, "target");
    json_set_string(json_get(o, "metadata"), "uid", t->claim_uid);
    json_set_string(target, "apiVersion", "v1");
    json_set_string(target, "kind", "PersistentVolume");
    json_set_string(target, "name", t->volume);
    json_set_string(target, "uid", t->volume_uid);
    work_request(w, "POST", path, o, fn);
}

static void send_selection(const struct claim_steps *s, const struct step *t, struct work *w,
                           work_answer_fn *fn)
{
    CLEANUP_FREE char *path = api_path("v1", "persistentvolumeclaims", s->ns, t->claim, NULL);
    CLEANUP(json_free) struct json *patch = json_object();
    struct json *meta = json_ensure_object(patch, "metadata");
    json_set_string(meta, "uid", t->claim_uid);
    json_set_string(json_ensure_object(meta, "annotations"), STORAGE_SELECTED_NODE, s->node);
    work_request_as(w, "PATCH", path, NULL, MERGE, patch, fn);
}

bool claim_steps_send(const struct claim_steps *s, struct work *w, work_answer_fn *fn)
{
    if (s->done == s->n) {
        return false;
    }
    const struct step *t = &s->list[s->done];
    if (t->volume) {
        send_binding(s, t, w, fn);
    } else {
        send_selection(s, t, w, fn);
    }
    return true;
}

void claim_steps_count(struct claim_steps *s)
{
    s->done++;
}
