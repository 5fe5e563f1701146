/* SPDX-License-Identifier: Apache-2.0 */
/* The status of a CustomResourceDefinition: which of its names are its own, and whether it is served. */
#include "api/condition.h"
#include "api/crd/crd.h"
#include "api/kind_util.h"
#include "base/mem.h"
#include "base/timeutil.h"

#include <ctype.h>
#include <stdio.h>

/* ---- versions ---- */

struct version {
    int stage; /* 3: v1, 2: v1beta1, 1: v1alpha1, 0: another form */
    uint64_t major, minor;
};

static uint64_t number(const char **s)
{
    uint64_t n = 0;
    const char *p = *s;
    while (isdigit((unsigned char) *p) && n < 1000000000) {
        n = n * 10 + (uint64_t) (*p++ - '0');
    }
    *s = p;
    return n;
}

static struct version parse_version(const char *s)
{
    struct version v = {0};
    const char *p = s + 1;
    if (*s != 'v' || !isdigit((unsigned char) *p)) {
        return v;
    }
    v.major = number(&p);
    v.stage = !*p ? 3 : str_has_prefix(p, "beta") ? 2 : str_has_prefix(p, "alpha") ? 1 : 0;
    if (v.stage == 1 || v.stage == 2) {
        p += v.stage == 2 ? 4 : 5;
        v.stage = isdigit((unsigned char) *p) ? v.stage : 0;
        v.minor = number(&p);
        v.stage = *p ? 0 : v.stage;
    }
    return v;
}

int api_version_compare(const char *a, const char *b)
{
    struct version x = parse_version(a), y = parse_version(b);
    if (x.stage != y.stage) {
        return x.stage > y.stage ? -1 : 1;
    }
    if (x.stage && x.major != y.major) {
        return x.major > y.major ? -1 : 1;
    }
    if (x.stage && x.minor != y.minor) {
        return x.minor > y.minor ? -1 : 1;
    }
    return strcmp(a, b);
}

/* ---- names ---- */

/* The kinds of a group without those of the definition itself. */
struct others {
    const struct api_registry *known;
    const struct crd *own;
    const char *group;
};

static bool has_short_name(const struct api_kind *k, const char *s)
{
    for (size_t i = 0; k->short_names && k->short_names[i]; i++) {
        if (streq(k->short_names[i], s)) {
            return true;
        }
    }
    return false;
}

static bool is_taken(const struct others *o, const char *name, bool is_kind)
{
    for (size_t i = 0; i < o->known->n; i++) {
        const struct api_kind *k = o->known->list[i];
        if (!streq(k->group, o->group) || (o->own && crd_has_kind(o->own, k))) {
            continue;
        }
        CLEANUP_FREE char *list = api_kind_list_kind(k);
        if (is_kind
                ? streq(k->kind, name) || streq(list, name)
                : streq(k->plural, name) || streq(k->singular, name) || has_short_name(k, name)) {
            return true;
        }
    }
    return false;
}

struct verdict {
    char reason[32], message[160]; /* Reason of the first conflict; "": none. */
};

static void refuse(struct verdict *v, const char *reason, const char *name)
{
    if (!*v->reason) {
        (void) snprintf(v->reason, sizeof(v->reason), "%s", reason);
        (void) snprintf(v->message, sizeof(v->message), "\"%.100s\" is already in use", name);
    }
}

/* One of the names: the requested one when it is free, else the one accepted before. */
static void accept_name(const struct others *o, const struct json *wanted,
                        const struct json *before, const char *key, const char *reason,
                        struct verdict *v, struct json *ret)
{
    const char *s = json_path_string(wanted, key, NULL);
    bool is_kind = streq(key, "kind") || streq(key, "listKind");
    if (s && is_taken(o, s, is_kind)) {
        refuse(v, reason, s);
        s = json_path_string(before, key, NULL);
    }
    json_set_string(ret, key, s ? s : "");
}

static struct json *accept_names(const struct others *o, const struct json *wanted,
                                 const struct json *before, struct verdict *v)
{
    static const char *const fields[][2] = {{"plural", "PluralConflict"},
                                            {"singular", "SingularConflict"},
                                            {"kind", "KindConflict"},
                                            {"listKind", "ListKindConflict"}};
    struct json *names = json_object();
    for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
        accept_name(o, wanted, before, fields[i][0], fields[i][1], v, names);
    }
    const struct json *shorts = json_get(wanted, "shortNames"), *item;
    bool free_all = true;
    JSON_FOREACH (item, shorts) {
        const char *s = json_get_string(item);
        if (s && is_taken(o, s, false)) {
            refuse(v, "ShortNamesConflict", s);
            free_all = false;
        }
    }
    shorts = free_all ? shorts : json_get(before, "shortNames");
    if (json_count(shorts)) {
        json_set(names, "shortNames", json_clone(shorts));
    }
    if (json_count(json_get(wanted, "categories"))) {
        json_set(names, "categories", json_clone(json_get(wanted, "categories")));
    }
    return names;
}

/* Adds the storage version to those in which objects may be stored. */
static bool add_stored_version(struct json *obj)
{
    struct json *list = json_ensure_array(json_ensure_object(obj, "status"), "storedVersions"), *v;
    JSON_FOREACH (v, json_path(obj, "spec", "versions", NULL)) {
        const struct json *name = json_get(v, "name"), *have;
        bool found = !json_get_bool(json_get(v, "storage"), false);
        JSON_FOREACH (have, list) {
            found |= json_equal(have, name);
        }
        if (!found) {
            json_append(list, json_clone(name));
            return true;
        }
    }
    return false;
}

bool crd_settle(struct json *obj, const struct api_registry *known, const struct crd *own,
                int64_t now_ms)
{
    struct others o = {known, own, json_path_string(obj, "spec", "group", NULL)};
    struct json *status = json_ensure_object(obj, "status");
    const struct json *before = json_get(status, "acceptedNames");
    struct verdict v = {0};
    if (!o.group) {
        return false;
    }
    CLEANUP(json_free)
    struct json *names = accept_names(&o, json_path(obj, "spec", "names", NULL), before, &v);
    bool changed = !json_equal(names, before);
    if (changed) {
        json_set(status, "acceptedNames", TAKE(names));
    }
    bool accepted = !*v.reason;
    changed |= condition_set(obj, "NamesAccepted", accepted ? "True" : "False",
                             accepted ? "NoConflicts" : v.reason,
                             accepted ? "no conflicts found" : v.message, now_ms) != NULL;
    if (accepted) {
        changed |= condition_set(obj, "Established", "True", "InitialNamesAccepted",
                                 "the initial names have been accepted", now_ms) != NULL;
    } else if (!condition_is_true(obj, "Established")) {
        changed |= condition_set(obj, "Established", "False", "NotAccepted",
                                 "not all names are accepted", now_ms) != NULL;
    }
    changed |= add_stored_version(obj);
    return changed;
}
