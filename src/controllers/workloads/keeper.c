/* SPDX-License-Identifier: Apache-2.0 */
#include "controllers/workloads/keeper.h"

#include "api/label_selector.h"
#include "api/obj.h"
#include "base/mem.h"

static struct json *spec_selector(const struct keeper *k, const struct json *owner)
{
    const struct json *selector = json_path(owner, "spec", "selector", NULL);
    return selector ? json_clone(selector) : NULL;
}

void keeper_init(struct keeper *k, const struct controller_env *env,
                 const struct workload_kind *owner,
                 const struct workload_kind *const children[KEEPER_CHILDREN])
{
    engine_init(&k->engine, env, owner);
    engine_watch(&k->engine, owner, &k->owners);
    owned_init(&k->of_namespace, NULL);
    k->selector = spec_selector;
    for (size_t i = 0; i < KEEPER_CHILDREN && children[i]; i++) {
        engine_watch(&k->engine, children[i], &k->children[i]);
        owned_init(&k->of_owner[k->n_children++], owner);
    }
}

void keeper_done(struct keeper *k)
{
    engine_done(&k->engine);
    owned_done(&k->of_namespace);
    for (size_t i = 0; i < k->n_children; i++) {
        owned_done(&k->of_owner[i]);
    }
}

void keeper_find(const struct keeper *k, size_t i, const struct json *owner, struct owned_list *ret)
{
    owned_find(&k->of_owner[i], k->children[i], owner, true, ret);
    engine_mark_leaving(&k->engine, ret);
}

const struct json *keeper_begin(struct keeper *k, struct work *w, const char *key)
{
    const struct json *owner = informer_get(k->owners, key);
    if (!engine_is_current(&k->engine, w)) {
        return NULL;
    }
    if (!owner) {
        work_done(w);
    }
    return owner;
}

/* ---- owners ---- */

void keeper_owner_changed(void *ctx, const char *key, const struct json *old,
                          const struct json *obj)
{
    struct keeper *k = ctx;
    owned_change(&k->of_namespace, key, old, obj);
    workqueue_add(k->engine.env.queue, key);
}

void keeper_owner_deleted(void *ctx, const char *key, const struct json *obj)
{
    struct keeper *k = ctx;
    owned_change(&k->of_namespace, key, obj, NULL);
    engine_forget(&k->engine, key);
}

/* ---- children ---- */

static void add_adopters(struct keeper *k, const struct json *child)
{
    const struct json *labels = json_path(child, "metadata", "labels", NULL);
    struct owned_list owners = {0};
    owned_find_in(&k->of_namespace, k->owners, obj_namespace(child), &owners);
    for (size_t i = 0; i < owners.n; i++) {
        const struct json *owner = owners.list[i].obj;
        CLEANUP(json_free) struct json *selector = k->selector(k, owner);
        if (selector && label_selector_matches(selector, labels)) {
            CLEANUP_FREE char *key = xasprintf("%s/%s", obj_namespace(owner), obj_name(owner));
            workqueue_add(k->engine.env.queue, key);
        }
    }
    free(owners.list);
}

static void add_owners(struct keeper *k, size_t i, const struct json *child)
{
    CLEANUP_FREE char *key = owned_owner_key(&k->of_owner[i], child);
    if (key) {
        workqueue_add(k->engine.env.queue, key);
    } else if (!obj_controller(child) && !obj_is_terminating(child)) {
        add_adopters(k, child);
    }
}

static const char *controller_uid(const struct json *obj)
{
    const struct json *ref = obj ? obj_controller(obj) : NULL;
    return ref ? json_get_text(ref, "uid") : "";
}

static bool labels_differ(const struct json *a, const struct json *b)
{
    const struct json *x = json_path(a, "metadata", "labels", NULL);
    const struct json *y = json_path(b, "metadata", "labels", NULL);
    return !x != !y || (x && !json_equal(x, y));
}

static void changed(struct keeper *k, size_t i, const char *key, const struct json *old,
                    const struct json *obj)
{
    bool moved = !old || !streq(controller_uid(old), controller_uid(obj));
    owned_change(&k->of_owner[i], key, old, obj);
    if (obj_is_terminating(obj)) {
        engine_is_gone(&k->engine, obj);
    }
    if (old && moved && obj_controller(old)) {
        add_owners(k, i, old);
    }
    /* An object that nothing controls concerns others only when they may adopt it now. */
    if (obj_controller(obj) || moved || labels_differ(old, obj)) {
        add_owners(k, i, obj);
    }
}

static void deleted(struct keeper *k, size_t i, const char *key, const struct json *obj)
{
    owned_change(&k->of_owner[i], key, obj, NULL);
    engine_is_gone(&k->engine, obj);
    if (obj_controller(obj)) {
        add_owners(k, i, obj);
    }
}

void keeper_child_changed(void *ctx, const char *key, const struct json *old,
                          const struct json *obj)
{
    changed(ctx, 0, key, old, obj);
}

void keeper_child_deleted(void *ctx, const char *key, const struct json *obj)
{
    deleted(ctx, 0, key, obj);
}

void keeper_second_changed(void *ctx, const char *key, const struct json *old,
                           const struct json *obj)
{
    changed(ctx, 1, key, old, obj);
}

void keeper_second_deleted(void *ctx, const char *key, const struct json *obj)
{
    deleted(ctx, 1, key, obj);
}

/* ---- quotas ---- */

void keeper_quota_changed(void *ctx, const char *key, const struct json *old,
                          const struct json *obj)
{
    struct keeper *k = ctx;
    engine_quota_changed(&k->engine, old, obj);
}

void keeper_quota_deleted(void *ctx, const char *key, const struct json *obj)
{
    struct keeper *k = ctx;
    engine_quota_changed(&k->engine, obj, NULL);
}
