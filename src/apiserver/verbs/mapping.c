/* SPDX-License-Identifier: Apache-2.0 */
#include "apiserver/verbs/mapping.h"

#include "apiserver/admission/admission.h"
#include "apiserver/cache/object.h"
#include "apiserver/request/filter.h"
#include "apiserver/verbs/delete.h"
#include "apiserver/verbs/fields.h"
#include "apiserver/verbs/write.h"
#include "base/timeutil.h"

#define GROUP "user.openshift.io"
#define MAX_HALVES 16 /* That one mapping repairs. */

bool mapping_is_asked(const struct request *q)
{
    return q->kind == api_kind_find(GROUP, "v1", "useridentitymappings");
}

static struct cache_kind *kind_of(const struct apiserver *a, const char *plural)
{
    return cache_find(&a->cache, api_kind_find(GROUP, "v1", plural));
}

/* ---- the two objects ---- */

/* An identity and the user that it names. */
struct pair {
    const struct cache_kind *identities, *users;
    struct object *identity, *user; /* Borrowed from the cache; NULL: absent. */
    struct json *identity_obj, *user_obj;
    bool mapped; /* Each names the other. */
};

static void pair_donep(struct pair *p)
{
    json_free(p->identity_obj);
    json_free(p->user_obj);
}

/* The position of 'name' in the user's identities, or their number. */
static size_t identity_position(const struct json *user, const char *name)
{
    const struct json *list = json_get(user, "identities");
    size_t i = 0;
    while (i < json_count(list) && !streq_null(json_get_string(json_at(list, i)), name)) {
        i++;
    }
    return i;
}

static bool lists_identity(const struct json *user, const char *name)
{
    return identity_position(user, name) < json_count(json_get(user, "identities"));
}

static struct pair pair_find(const struct apiserver *a, const char *identity)
{
    struct pair p = {.identities = kind_of(a, "identities"), .users = kind_of(a, "users")};
    p.identity = keyset_get(&p.identities->objects, identity);
    p.identity_obj = p.identity ? object_parse(p.identity) : NULL;
    const char *name = json_path_string(p.identity_obj, "user", "name", NULL);
    const char *uid = json_path_string(p.identity_obj, "user", "uid", NULL);
    p.user = name && *name ? keyset_get(&p.users->objects, name) : NULL;
    p.user_obj = p.user ? object_parse(p.user) : NULL;
    p.mapped = p.user && uid && *uid &&
               streq_null(uid, json_path_string(p.user_obj, "metadata", "uid", NULL)) &&
               lists_identity(p.user_obj, identity);
    return p;
}

/* The mapping of an identity, as of the revision of the identity. */
static struct blob *mapping_text(const struct request *q, const struct json *identity,
                                 uint64_t revision)
{
    CLEANUP(json_free) struct json *o = json_object();
    CLEANUP(blob_unref) struct blob *value = NULL;
    const struct json *meta = json_get(identity, "metadata"), *user = json_get(identity, "user");
    struct json *own = json_ensure_object(o, "metadata");
    struct json *to = json_ensure_object(o, "identity"), *from = json_ensure_object(o, "user");
    json_set_string(own, "name", json_path_string(meta, "name", NULL));
    json_set_string(own, "uid", json_path_string(meta, "uid", NULL));
    json_set_string(to, "name", json_path_string(meta, "name", NULL));
    json_set_string(to, "uid", json_path_string(meta, "uid", NULL));
    json_set_string(from, "name", json_path_string(user, "name", NULL));
    json_set_string(from, "uid", json_path_string(user, "uid", NULL));
    object_complete(q->kind, o);
    (void) object_encode(q->kind, o, &value); /* It is not nested deeply. */
    return object_text(q->ck->head, value, revision);
}

/* ---- changes ---- */

static void set_user(struct json *identity, const struct json *user)
{
    struct json *ref = json_set(identity, "user", json_object());
    json_set_string(ref, "name", json_path_string(user, "metadata", "name", NULL));
    json_set_string(ref, "uid", json_path_string(user, "metadata", "uid", NULL));
}

static void add_identity(struct json *user, const char *name)
{
    if (!lists_identity(user, name)) {
        json_append(json_ensure_array(user, "identities"), json_string(name));
    }
}

static void remove_identity(struct json *user, const char *name)
{
    struct json *list = json_get(user, "identities");
    for (size_t i; (i = identity_position(user, name)) < json_count(list);) {
        json_remove_at(list, i);
    }
    if (list && !json_count(list)) {
        json_remove(user, "identities");
    }
}

/* The bytes of 'obj' in place of 'base', with the record of the manager; NULL: the outcome is
 * filled. */
static struct blob *encode(const struct request *q, const struct cache_kind *ck,
                           const struct object *base, struct json *obj, struct outcome *outcome)
{
    CLEANUP(json_free) struct json *old = object_parse(base);
    struct api_manager m = fields_manager(q, false);
    struct blob *value = NULL;
    api_managed_update(ck->kind, old, obj, &m);
    if (object_encode(ck->kind, obj, &value) < 0) {
        outcome_error(outcome, 500, "InternalError", "%s \"%s\" is nested too deeply",
                      RESOURCE_TEXT(ck->kind), base->key);
    }
    return value;
}

/* Adds the change of a user to the write.  Negative: the outcome is filled. */
static int add_user(struct write *w, const struct cache_kind *users, const struct object *base,
                    struct json *obj, struct outcome *outcome)
{
    struct blob *value = encode(w->q, users, base, obj, outcome);
    if (!value) {
        return -E2BIG;
    }
    write_add_other(w, users, base, value);
    return 0;
}

/* Takes the identity away from users that list it although it names another user, or none: halves
 * that writes of single objects left.  Users that cannot list it are not parsed.  Negative: the
 * outcome is filled. */
static int remove_halves(struct write *w, const struct pair *p, const struct object *owner,
                         struct outcome *outcome)
{
    CLEANUP_STRBUF struct strbuf quoted = STRBUF_INIT;
    struct cache_walk walk;
    struct object *o;
    struct cache_range all = {0};
    unsigned left = MAX_HALVES;
    int r = 0;
    json_write_string(w->key, strlen(w->key), &quoted);
    cache_walk_init(&walk, p->users, &all, w->server->cache.revision);
    while (r == 0 && left && (o = cache_walk_next(&walk))) {
        if (o == owner || o == p->user ||
            !memmem(o->text->data, o->text->size, quoted.data, quoted.size)) {
            continue;
        }
        CLEANUP(json_free) struct json *user = object_parse(o);
        if (lists_identity(user, w->key)) {
            remove_identity(user, w->key);
            r = add_user(w, p->users, o, user, outcome);
            left--;
        }
    }
    cache_walk_done(&walk);
    return r;
}

static void send(struct write *w, const struct pair *p, struct outcome *outcome)
{
    struct blob *value = encode(w->q, p->identities, p->identity, p->identity_obj, outcome);
    if (value && w->q->dry_run) {
        w->value = value;
        w->stored(w, p->identity->revision, outcome);
    } else if (value) {
        write_put(w, p->identity, value, outcome);
    }
}

/* ---- create and update ---- */

static void map_stored(struct write *w, uint64_t revision, struct outcome *outcome)
{
    CLEANUP(json_free) struct json *identity = NULL;
    json_parse(w->value->data, w->value->size, &identity, NULL);
    outcome_object(outcome, w->creates ? 201 : 200, mapping_text(w->q, identity, revision));
}

static void outcome_no_reference(const struct write *w, const char *field, const char *name,
                                 const char *why, struct outcome *outcome)
{
    CLEANUP(api_causes_done) struct api_causes causes = {0};
    CLEANUP(json_free) struct json *v = json_string(name);
    api_invalid(&causes, field, v, "%s", why);
    outcome_invalid(outcome, w->q->kind, w->key, &causes);
}

/* Whether the mapping may be written in the present state.  Negative: the outcome is filled. */
static int check_state(struct write *w, const struct pair *p, struct outcome *outcome)
{
    struct request *q = w->q;
    if (p->mapped && q->verb == VERB_CREATE) {
        outcome_exists(outcome, q->kind, w->key);
        return -EEXIST;
    }
    if (p->mapped) {
        CLEANUP(blob_unref)
        struct blob *text = mapping_text(q, p->identity_obj, p->identity->revision);
        CLEANUP(json_free) struct json *old = NULL;
        json_parse(text->data, text->size, &old, NULL);
        return write_check_preconditions(q, w->body, old, outcome);
    }
    if (json_string_size(json_path(w->body, "metadata", "resourceVersion", NULL))) {
        outcome_not_found(outcome, q->kind, w->key);
        return -ENOENT;
    }
    return q->verb == VERB_UPDATE ? filter_may_create(q, outcome) : 0;
}

/* Computes the change from the objects of the cache. */
static void attempt_map(struct write *w, struct outcome *outcome)
{
    __attribute__((cleanup(pair_donep))) struct pair p = pair_find(w->server, w->key);
    const char *name = json_path_string(w->body, "user", "name", NULL);
    write_drop_others(w);
    if (check_state(w, &p, outcome) < 0) {
        return;
    }
    if (p.mapped && streq(p.user->key, name)) {
        outcome_object(outcome, 200, mapping_text(w->q, p.identity_obj, p.identity->revision));
        return;
    }
    if (!p.identity) {
        outcome_no_reference(w, "identity.name", w->key, "referenced identity does not exist",
                             outcome);
        return;
    }
    struct object *user = keyset_get(&p.users->objects, name);
    if (!user) {
        outcome_no_reference(w, "user.name", name, "referenced user does not exist", outcome);
        return;
    }
    w->creates = !p.mapped;
    CLEANUP(json_free) struct json *user_obj = object_parse(user);
    add_identity(user_obj, w->key);
    set_user(p.identity_obj, user_obj);
    /* The user is written even when it lists the identity already: it must not be deleted or
     * replaced meanwhile. */
    if (add_user(w, p.users, user, user_obj, outcome) < 0) {
        return;
    }
    if (p.user && p.user != user && lists_identity(p.user_obj, w->key)) {
        remove_identity(p.user_obj, w->key);
        if (add_user(w, p.users, p.user, p.user_obj, outcome) < 0) {
            return;
        }
    }
    if (remove_halves(w, &p, user, outcome) == 0) {
        send(w, &p, outcome);
    }
}

/* Reads the mapping that the client wants, and checks it as far as no other object is needed. */
static int read_mapping(struct request *q, struct json **ret, struct outcome *outcome)
{
    CLEANUP(json_free) struct json *obj = NULL;
    struct object_target target = {.kind = q->kind, .name = q->name};
    struct err e = {0};
    if (write_begin(q, outcome) < 0 || write_read_body(q, &obj, outcome) < 0) {
        return -EINVAL;
    }
    if (object_check_target(obj, &target, &e) < 0) {
        outcome_error(outcome, 400, "BadRequest", "%s", e.text);
        return -EINVAL;
    }
    const struct json *version = json_path(obj, "metadata", "resourceVersion", NULL);
    CLEANUP_FREE char *demanded =
        json_string_size(version) ? xstrdup(json_get_string(version)) : NULL;
    if (demanded && q->verb == VERB_CREATE) {
        outcome_error(outcome, 400, "BadRequest",
                      "resourceVersion should not be set on objects to be created");
        return -EINVAL;
    }
    const struct json *uid = json_path(obj, "metadata", "uid", NULL);
    CLEANUP_FREE char *demanded_uid = json_string_size(uid) ? xstrdup(json_get_string(uid)) : NULL;
    if (fields_prune(q, obj, false, outcome) < 0) {
        return -EINVAL;
    }
    object_prepare_create(q->kind, obj, time_wall_ms());
    struct json *meta = json_get(obj, "metadata");
    json_remove(meta, "uid");
    if (q->verb == VERB_UPDATE) {
        json_set_string(meta, "uid", demanded_uid);
        json_set_string(meta, "resourceVersion", demanded);
    }
    *ret = TAKE(obj);
    return 0;
}

/* The first attempt: admission judges the mapping once, as a new object. */
static void attempt_first(struct write *w, struct outcome *outcome)
{
    CLEANUP(json_free) struct json *obj = json_clone(w->body);
    struct json *meta = json_get(obj, "metadata");
    json_remove(meta, "resourceVersion");
    if (write_check(w, obj, NULL, outcome) == 0) {
        w->attempt = attempt_map;
        attempt_map(w, outcome);
    }
}

static struct write *mapping_write(struct request *q, const char *name, struct json *body,
                                   write_attempt_fn *attempt)
{
    struct write *w = write_new(q, kind_of(q->server, "identities"), name, attempt);
    w->body = body;
    return w;
}

static void handle_map(struct request *q, struct outcome *outcome)
{
    struct json *obj;
    if (read_mapping(q, &obj, outcome) < 0) {
        return;
    }
    struct write *w =
        mapping_write(q, json_path_string(obj, "metadata", "name", NULL), obj, attempt_first);
    w->stored = map_stored;
    outcome_take_over(outcome);
    write_try(w);
}

/* ---- delete ---- */

static void unmap_stored(struct write *w, uint64_t revision, struct outcome *outcome)
{
    CLEANUP(json_free) struct json *identity = NULL;
    json_parse(w->value->data, w->value->size, &identity, NULL);
    outcome_deleted(outcome, w->key, json_path_string(identity, "metadata", "uid", NULL));
}

static void attempt_unmap(struct write *w, struct outcome *outcome)
{
    __attribute__((cleanup(pair_donep))) struct pair p = pair_find(w->server, w->key);
    write_drop_others(w);
    if (!p.mapped) {
        outcome_not_found(outcome, w->q->kind, w->key);
        return;
    }
    if (check_state(w, &p, outcome) < 0) {
        return;
    }
    remove_identity(p.user_obj, w->key);
    json_set(p.identity_obj, "user", json_object());
    w->ending = true;
    if (add_user(w, p.users, p.user, p.user_obj, outcome) == 0) {
        send(w, &p, outcome);
    }
}

static void handle_unmap(struct request *q, struct outcome *outcome)
{
    struct json *demanded;
    if (admission_run(q, NULL, NULL, outcome) < 0 ||
        delete_read_preconditions(q, &demanded, outcome) < 0) {
        return;
    }
    struct write *w = mapping_write(q, q->name, demanded, attempt_unmap);
    w->stored = unmap_stored;
    outcome_take_over(outcome);
    write_try(w);
}

/* ---- dispatch ---- */

static void handle_get_mapping(struct request *q, struct outcome *outcome)
{
    __attribute__((cleanup(pair_donep))) struct pair p = pair_find(q->server, q->name);
    if (p.mapped) {
        outcome_object(outcome, 200, mapping_text(q, p.identity_obj, p.identity->revision));
    } else {
        outcome_not_found(outcome, q->kind, q->name);
    }
}

void handle_mapping(struct request *q, struct outcome *outcome)
{
    if (q->verb == VERB_GET) {
        handle_get_mapping(q, outcome);
    } else if (q->verb == VERB_DELETE) {
        handle_unmap(q, outcome);
    } else {
        handle_map(q, outcome);
    }
}
