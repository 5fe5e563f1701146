/* SPDX-License-Identifier: Apache-2.0 */
#include "api/patch/apply.h"

#include "api/patch/merge.h"
#include "base/mem.h"
#include "base/timeutil.h"

#define ANCIENT "ancient-changes" /* Manager of merged old updates. */
/* Manager of the fields of an object that had no record. */
#define BEFORE_FIRST "before-first-apply"
/* kubectl's own record: it may take over fields that it applied before by patches. */
#define KUBECTL "kubectl"
#define LAST_APPLIED "kubectl.kubernetes.io/last-applied-configuration"
#define LAST_APPLIED_MAX ((size_t) 200 << 10)

/* ---- the record ---- */

static bool is_apply(const struct json *entry)
{
    return streq_null(json_path_string(entry, "operation", NULL), "Apply");
}

static struct json *set_of_entry(struct json *entry)
{
    return json_ensure_object(entry, "fieldsV1");
}

static bool is_of(const struct json *entry, const struct api_manager *m, const char *version)
{
    return is_apply(entry) == m->applies && streq(json_get_text(entry, "manager"), m->name) &&
           streq(json_get_text(entry, "subresource"), m->subresource) &&
           (m->applies || streq(json_get_text(entry, "apiVersion"), version));
}

/* Whether it is a well-formed record. Clients send anything, and validation comes later. */
static bool is_record(const struct json *list)
{
    const struct json *entry;
    bool is = json_is(list, JSON_ARRAY);
    JSON_FOREACH (entry, list) {
        const struct json *set = json_get(entry, "fieldsV1");
        is = is && json_is(entry, JSON_OBJECT) && (!set || fieldset_is_valid(set));
    }
    return is && json_count(list);
}

static struct json *find_entry(const struct json *list, const struct api_manager *m,
                               const char *version)
{
    struct json *entry;
    JSON_FOREACH (entry, list) {
        if (is_of(entry, m, version)) {
            return entry;
        }
    }
    return NULL;
}

/* Owned; takes ownership of 'set'. */
static struct json *entry_new(const struct api_manager *m, const char *version, struct json *set)
{
    struct json *entry = json_object();
    json_set_string(entry, "manager", m->name);
    json_set_string(entry, "operation", m->applies ? "Apply" : "Update");
    json_set_string(entry, "apiVersion", version);
    if (m->now_ms) {
        char text[TIME_TEXT_SIZE];
        time_format_s(m->now_ms, text);
        json_set_string(entry, "time", text);
    }
    json_set_string(entry, "fieldsType", "FieldsV1");
    json_set(entry, "fieldsV1", set);
    if (*m->subresource) {
        json_set_string(entry, "subresource", m->subresource);
    }
    return entry;
}

/* Removes the changed fields from all entries but 'own'; entries without fields are deleted. */
static void disown(struct json *list, const struct json *own, const struct json *changed,
                   const struct json *removed)
{
    for (size_t i = json_count(list); i-- > 0;) {
        struct json *entry = json_at(list, i);
        struct json *set = set_of_entry(entry);
        if (entry != own) {
            fieldset_subtract(set, changed);
            fieldset_subtract(set, removed);
        }
        if (fieldset_is_empty(set)) {
            json_remove_at(list, i);
        }
    }
}

/* The oldest updates become one entry when there are too many. */
static void cap_updaters(struct json *list, const char *version)
{
    for (;;) {
        struct json *entry, *oldest = NULL;
        size_t n = 0, at = 0;
        JSON_FOREACH (entry, list) {
            if (is_apply(entry)) {
                continue;
            }
            n++;
            if (!streq(json_get_text(entry, "manager"), ANCIENT) &&
                (!oldest ||
                 strcmp(json_get_text(entry, "time"), json_get_text(oldest, "time")) < 0)) {
                oldest = entry;
                at = entry_i;
            }
        }
        if (n <= API_MAX_UPDATERS || !oldest) {
            return;
        }
        const struct api_manager ancient = {.name = ANCIENT,
                                            .subresource = json_get_text(oldest, "subresource")};
        struct json *bucket = find_entry(list, &ancient, version);
        if (bucket) {
            fieldset_add(set_of_entry(bucket), json_get(oldest, "fieldsV1"));
            if (json_get(oldest, "time")) {
                json_set_string(bucket, "time", json_get_text(oldest, "time"));
            }
            json_remove_at(list, at);
        } else {
            json_set_string(oldest, "manager", ANCIENT);
            json_set_string(oldest, "apiVersion", version);
        }
    }
}

/* ---- updates ---- */

/* [{}]: the form in which a client clears the record. */
static bool is_reset(const struct json *list)
{
    return json_count(list) == 1 && json_is(json_at(list, 0), JSON_OBJECT) &&
           json_count(json_at(list, 0)) == 0;
}

/* The initial record of 'obj', put into it; NULL: none. */
static struct json *record_of(const struct json *old, struct json *obj)
{
    struct json *meta = json_ensure_object(obj, "metadata");
    struct json *given = json_get(meta, "managedFields");
    const struct json *kept = json_path(old, "metadata", "managedFields", NULL);
    if (is_reset(given)) {
        json_remove(meta, "managedFields");
        return NULL;
    }
    if (is_record(given)) {
        return given;
    }
    if (given && !json_is(given, JSON_NULL) &&
        !(json_is(given, JSON_ARRAY) && !json_count(given))) {
        return NULL; /* Left to validation, which refuses it. */
    }
    json_remove(meta, "managedFields");
    return is_record(kept) ? json_set(meta, "managedFields", json_clone(kept)) : NULL;
}

void api_managed_update(const struct api_kind *k, const struct json *old, struct json *obj,
                        const struct api_manager *m)
{
    struct json *meta = json_ensure_object(obj, "metadata");
    if (!old) {
        json_remove(meta, "managedFields");
    }
    struct json *list = record_of(old, obj);
    if (old && !list) {
        return;
    }
    CLEANUP(json_free) struct json *changed = NULL, *removed = NULL;
    CLEANUP_FREE char *version = api_kind_api_version(k);
    fieldset_compare(k, old, obj, &changed, &removed);
    if (fieldset_is_empty(changed) && fieldset_is_empty(removed)) {
        return;
    }
    list = json_ensure_array(meta, "managedFields");
    struct json *own = find_entry(list, m, version);
    disown(list, own, changed, removed);
    own = find_entry(list, m, version);
    CLEANUP(json_free) struct json *set = own ? json_clone(set_of_entry(own)) : TAKE(changed);
    if (own) {
        fieldset_subtract(set, removed);
        fieldset_add(set, changed);
    }
    for (size_t i = 0; own && i < json_count(list); i++) {
        if (json_at(list, i) == own) {
            json_remove_at(list, i);
            break;
        }
    }
    if (!fieldset_is_empty(set)) {
        json_append(list, entry_new(m, version, TAKE(set)));
    }
    cap_updaters(list, version);
    if (json_count(list) == 0) {
        json_remove(meta, "managedFields");
    }
}

/* ---- conflicts ---- */

struct conflicts {
    struct api_causes *causes;
    struct strbuf text; /* Lines by manager. */
    const char *manager;
    struct strbuf path; /* The latest. */
    size_t n;
};

static void add_conflict(void *ctx, const char *path)
{
    struct conflicts *c = ctx;
    if (c->causes->n < API_MAX_CAUSES) {
        api_conflicting(c->causes, path, c->manager);
        strbuf_addf(&c->text, "\n- %s", path);
    }
    strbuf_reset(&c->path);
    strbuf_adds(&c->path, path);
    c->n++;
}

/* Kubernetes' text for a manager: for updates with the version. */
static char *manager_text(const struct json *entry)
{
    struct strbuf b = STRBUF_INIT;
    strbuf_addf(&b, "\"%s\"", json_get_text(entry, "manager"));
    if (*json_get_text(entry, "subresource")) {
        strbuf_addf(&b, " with subresource \"%s\"", json_get_text(entry, "subresource"));
    }
    if (!is_apply(entry)) {
        strbuf_addf(&b, " using %s", json_get_text(entry, "apiVersion"));
    }
    return strbuf_steal(&b);
}

/* The fields of the entry that 'changed' would take over, without those in 'allowed'; owned. */
static struct json *contested(const struct json *entry, const struct json *changed,
                              const struct json *allowed)
{
    struct json *set = fieldset_intersect(json_get(entry, "fieldsV1"), changed);
    fieldset_subtract(set, allowed);
    return set;
}

/* Number of conflicts; 'ret_text' is set when there are any. */
static size_t find_conflicts(const struct json *list, const struct json *own,
                             const struct json *changed, const struct json *allowed,
                             struct api_causes *causes, char **ret_text)
{
    struct conflicts c = {.causes = causes, .text = STRBUF_INIT, .path = STRBUF_INIT};
    const struct json *entry;
    CLEANUP_FREE char *manager = NULL;
    JSON_FOREACH (entry, list) {
        CLEANUP(json_free) struct json *set = NULL;
        if (entry == own) {
            continue;
        }
        set = contested(entry, changed, allowed);
        if (!fieldset_is_empty(set)) {
            free(manager);
            manager = manager_text(entry);
            strbuf_addf(&c.text, "%sconflicts with %s:", c.text.size ? "\n" : "", manager);
            c.manager = manager;
            fieldset_foreach(set, add_conflict, &c);
        }
    }
    if (c.n == 1) {
        *ret_text = xasprintf("Apply failed with 1 conflict: conflict with %s: %s", manager,
                              strbuf_cstr(&c.path));
    } else if (c.n) {
        *ret_text = xasprintf("Apply failed with %zu conflicts: %s", c.n, strbuf_cstr(&c.text));
    }
    strbuf_done(&c.text);
    strbuf_done(&c.path);
    return c.n;
}

/* ---- applying ---- */

/* The fields that kubectl applied by patches and that no client has changed since: those whose
 * live value is still that of the annotation. NULL: none. */
static struct json *last_applied_set(const struct api_kind *k, const struct json *live,
                                     const char *version)
{
    const char *text = json_path_string(live, "metadata", "annotations", LAST_APPLIED, NULL);
    CLEANUP(json_free) struct json *obj = NULL, *changed = NULL, *removed = NULL;
    if (!text || json_parse(text, strlen(text), &obj, NULL) < 0 ||
        !streq(json_get_text(obj, "apiVersion"), version)) {
        return NULL;
    }
    struct json *set = fieldset_of(api_kind_schema(k), obj);
    fieldset_compare(k, obj, live, &changed, &removed);
    fieldset_subtract(set, changed);
    fieldset_subtract(set, removed);
    return set;
}

/* The annotation is updated with the applied configuration, for clients that return to patches. */
static void keep_last_applied(const struct json *config, struct json *obj)
{
    struct json *annotations = json_path(obj, "metadata", "annotations", NULL);
    if (!json_get(annotations, LAST_APPLIED)) {
        return;
    }
    CLEANUP(json_free) struct json *copy = json_clone(config);
    json_remove(json_path(copy, "metadata", "annotations", NULL), LAST_APPLIED);
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    json_write(copy, 0, &text);
    strbuf_addc(&text, '\n');
    if (text.size <= LAST_APPLIED_MAX) {
        json_set_string(annotations, LAST_APPLIED, text.data);
    } else {
        json_remove(annotations, LAST_APPLIED);
    }
}

/* The relevant part of 'config': without fields of the server, and only the written subresource. */
static struct json *effective(const struct api_kind *k, const struct json *config,
                              const char *subresource)
{
    static const char *const fields[] = {
        "creationTimestamp", "generation",    "resourceVersion",           "selfLink", "uid",
        "deletionTimestamp", "managedFields", "deletionGracePeriodSeconds"};
    struct json *out = json_clone(config);
    struct json *meta = json_get(out, "metadata");
    for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
        json_remove(meta, fields[i]);
    }
    if (!*subresource) {
        if (k->status_subresource) {
            json_remove(out, "status");
        }
        return out;
    }
    if (streq(subresource, "scale")) {
        json_remove(out, "metadata"); /* The remaining part is the number, at the kind's path. */
        return out;
    }
    struct json *part = json_object();
    json_set(part, subresource, json_take(out, subresource));
    json_free(out);
    return part;
}

static int check_record(const struct json *list, const struct json *own, struct err *e)
{
    size_t n = 0;
    const struct json *entry;
    JSON_FOREACH (entry, list) {
        n += is_apply(entry);
    }
    if (!own && n >= API_MAX_APPLIERS) {
        return err_set(e, -E2BIG, "the object has %d field managers that apply to it already",
                       API_MAX_APPLIERS);
    }
    return 0;
}

static int check_config(const struct api_schema *s, const struct json *config, struct err *e)
{
    CLEANUP(api_causes_done) struct api_causes causes = {0};
    struct api_causes *c = &causes;
    if (json_count(json_path(config, "metadata", "managedFields", NULL))) {
        return err_set(e, -EINVAL, "metadata.managedFields must be nil");
    }
    /* An applied configuration is partial: no field is required, but list elements must be
     * distinguishable. */
    api_schema_validate_applied(s, config, c);
    for (size_t i = 0; i < causes.n; i++) {
        const struct api_cause *cause = &causes.list[i];
        if (!streq(cause->reason, "FieldValueRequired")) {
            return err_set(e, -EINVAL, "failed to create typed patch object: %s: %s", cause->field,
                           cause->message);
        }
    }
    return 0;
}

static struct json *first_record(const struct api_kind *k, const struct json *live,
                                 const char *version)
{
    const struct json *list = json_path(live, "metadata", "managedFields", NULL);
    if (is_record(list)) {
        return json_clone(list);
    }
    struct json *out = json_array();
    if (live) {
        const struct api_manager before = {.name = BEFORE_FIRST, .subresource = ""};
        CLEANUP(json_free) struct json *changed = NULL, *removed = NULL;
        fieldset_compare(k, NULL, live, &changed, &removed);
        json_append(out, entry_new(&before, version, TAKE(changed)));
    }
    return out;
}

/* The fields that have an owner once 'set' is applied; owned. */
static struct json *owned_after(const struct json *list, const struct json *own,
                                const struct json *set)
{
    struct json *out = json_clone(set);
    const struct json *entry;
    JSON_FOREACH (entry, list) {
        if (entry != own) {
            fieldset_add(out, json_get(entry, "fieldsV1"));
        }
    }
    return out;
}

/* Adds the manager's own entry; without any change the present one stays with its time. */
static void record_apply(struct json *list, const struct api_manager *m, const char *version,
                         struct json *set, bool changed)
{
    struct json *own = find_entry(list, m, version);
    if (own && !changed && json_equal(json_get(own, "fieldsV1"), set)) {
        json_free(set);
        return;
    }
    for (size_t i = 0; own && i < json_count(list); i++) {
        if (json_at(list, i) == own) {
            json_remove_at(list, i);
            break;
        }
    }
    if (fieldset_is_empty(set)) {
        json_free(set);
    } else {
        json_append(list, entry_new(m, version, set));
    }
}

int api_apply(const struct api_kind *k, const struct json *live, const struct json *config,
              const struct api_manager *m, bool force, struct json **ret,
              struct api_causes *conflicts, char **ret_text, struct err *e)
{
    const struct api_schema *s = api_kind_schema(k);
    CLEANUP_FREE char *version = api_kind_api_version(k);
    if (check_config(s, config, e) < 0) {
        return -EINVAL;
    }
    CLEANUP(json_free) struct json *part = effective(k, config, m->subresource);
    CLEANUP(json_free) struct json *set = fieldset_of(s, part);
    CLEANUP(json_free) struct json *list = first_record(k, live, version);
    CLEANUP(json_free) struct json *obj = live ? json_clone(live) : json_object();
    CLEANUP(json_free) struct json *changed = NULL, *removed = NULL, *allowed = NULL;
    struct json *own = find_entry(list, m, version);
    if (check_record(list, own, e) < 0) {
        return -E2BIG;
    }
    api_merge(s, obj, part);
    if (own) {
        CLEANUP(json_free) struct json *owned = owned_after(list, own, set);
        api_remove_fields(s, obj, json_get(own, "fieldsV1"), owned);
    }
    fieldset_compare(k, live, obj, &changed, &removed);
    api_drop_emptied(s, obj, live);
    if (streq(m->name, KUBECTL)) {
        allowed = last_applied_set(k, live, version);
    }
    if (!force && find_conflicts(list, own, changed, allowed, conflicts, ret_text)) {
        return err_set(e, -EEXIST, "%s", *ret_text);
    }
    disown(list, own, changed, removed);
    record_apply(list, m, version, TAKE(set),
                 !fieldset_is_empty(changed) || !fieldset_is_empty(removed));
    if (streq(m->name, KUBECTL) && live && !*m->subresource) {
        keep_last_applied(part, obj);
    }
    cap_updaters(list, version);
    struct json *meta = json_ensure_object(obj, "metadata");
    json_remove(meta, "managedFields");
    if (json_count(list)) {
        json_set(meta, "managedFields", TAKE(list));
    }
    *ret = TAKE(obj);
    return 0;
}

/* ---- validation ---- */

static void validate_entry(const char *field, const struct json *entry, struct api_causes *c)
{
    static const char *const operations[] = {"Apply", "Update", NULL};
    static const char *const types[] = {"FieldsV1", NULL};
    const struct json *operation = json_get(entry, "operation");
    const struct json *type = json_get(entry, "fieldsType"), *set = json_get(entry, "fieldsV1");
    const char *s = json_get_string(operation);
    if (!s || (!streq(s, "Apply") && !streq(s, "Update"))) {
        api_unsupported(c, API_FIELD("%s.operation", field), operation, operations);
    }
    s = json_get_string(type);
    if (!s || !streq(s, "FieldsV1")) {
        api_unsupported(c, API_FIELD("%s.fieldsType", field), type, types);
    }
    if (set && !fieldset_is_valid(set)) {
        api_invalid(c, API_FIELD("%s.fieldsV1", field), NULL, "is not a set of fields");
    }
    if (strlen(json_get_text(entry, "manager")) > API_MANAGER_MAX) {
        api_too_long(c, API_FIELD("%s.manager", field), API_MANAGER_MAX);
    }
    if (strlen(json_get_text(entry, "subresource")) > 256) {
        api_too_long(c, API_FIELD("%s.subresource", field), 256);
    }
}

void api_managed_validate(const struct json *list, struct api_causes *c)
{
    if (is_reset(list)) {
        return;
    }
    for (size_t i = 0; i < json_count(list); i++) {
        validate_entry(API_FIELD("metadata.managedFields[%zu]", i), json_at(list, i), c);
    }
}
