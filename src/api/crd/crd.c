/* SPDX-License-Identifier: Apache-2.0 */
#include "api/crd/crd.h"
#include "api/condition.h"

#include "api/crd/crd_schema.h"
#include "api/kind_util.h"
#include "api/kinds.h"
#include "base/mem.h"

struct crd_version {
    struct api_kind kind;
    struct api_scale scale;
    bool served;
};

struct crd {
    uint32_t refs;
    bool terminating;
    char *name;
    struct json *spec, *names; /* Source of the definition, which owns the kinds' texts. */
    struct crd_version *versions;
    size_t n, stored;
    struct crd_nodes *nodes;
    char **lists[2]; /* Short names and categories, NULL-terminated; 'names' owns the strings. */
    struct api_column **columns; /* Columns of each version. */
    struct api_field_label *labels;
    char **texts; /* Other texts. */
    size_t n_texts, cap_texts;
};

/* 's' (owned) is freed with 'c'. */
static const char *keep(struct crd *c, char *s)
{
    c->texts = grow(c->texts, &c->cap_texts, c->n_texts + 1, sizeof(*c->texts));
    return c->texts[c->n_texts++] = s;
}

static char **string_list(const struct json *list)
{
    size_t n = json_count(list);
    char **s = n ? xcalloc(n + 1, sizeof(*s)) : NULL;
    for (size_t i = 0; i < n; i++) {
        s[i] = (char *) json_get_string(json_at(list, i));
    }
    return s;
}

/* The name, and the version's columns; without any, the age. */
static struct api_column *make_columns(const struct json *list, size_t *ret_n)
{
    static const struct api_column name = API_COLUMN_NAME, age = API_COLUMN_AGE;
    size_t n = json_count(list);
    struct api_column *columns = xcalloc(MAX(n, 1) + 1, sizeof(*columns));
    columns[0] = name;
    columns[1] = age;
    for (size_t i = 0; i < n; i++) {
        const struct json *c = json_at(list, i);
        columns[i + 1] = (struct api_column){
            .name = json_get_text(c, "name"),
            .type = json_get_text(c, "type"),
            .format = json_get_text(c, "format"),
            .description = json_get_text(c, "description"),
            .priority = (int) json_get_int_or(json_get(c, "priority"), 0),
            .path = json_get_text(c, "jsonPath"),
        };
    }
    *ret_n = MAX(n, 1) + 1;
    return columns;
}

/* The fields by which objects of any version can be selected: ".spec.color" is the label
 * "spec.color". */
static struct api_field_label *make_labels(const struct json *versions)
{
    struct api_field_label *labels = NULL;
    size_t n = 0, cap = 0;
    const struct json *v, *f;
    JSON_FOREACH (v, versions) {
        JSON_FOREACH (f, json_get(v, "selectableFields")) {
            const char *label =
                json_get_text(f, "jsonPath") + (*json_get_text(f, "jsonPath") == '.');
            bool known = false;
            for (size_t i = 0; i < n; i++) {
                known |= streq(labels[i].label, label);
            }
            if (!known) {
                labels = grow(labels, &cap, n + 2, sizeof(*labels));
                labels[n++] = (struct api_field_label){.label = label};
                labels[n] = (struct api_field_label){0};
            }
        }
    }
    return labels;
}

/* Kubernetes, too, leaves the status of a new object to its controller. */
static void without_status(struct json *obj, const struct json *old)
{
    if (!old) {
        json_remove(obj, "status");
    }
}

static void make_version(struct crd *c, const struct json *v, struct crd_version *ret,
                         struct api_column **ret_columns)
{
    const struct json *sub = json_get(v, "subresources"), *scale = json_get(sub, "scale");
    struct api_kind *k = &ret->kind;
    const char *selector = json_path_string(scale, "labelSelectorPath", NULL);
    *k = (struct api_kind){
        .group = json_get_text(c->spec, "group"),
        .version = json_get_text(v, "name"),
        .kind = json_get_text(c->names, "kind"),
        .plural = json_get_text(c->names, "plural"),
        .singular = json_get_text(c->names, "singular"),
        .list_kind = json_get_text(c->names, "listKind"),
        .short_names = (const char *const *) c->lists[0],
        .categories = (const char *const *) c->lists[1],
        .namespaced = streq(json_get_text(c->spec, "scope"), "Namespaced"),
        .status_subresource = json_is(json_get(sub, "status"), JSON_OBJECT),
        .custom = true,
        .generation = true,
        .prepare = json_is(json_get(sub, "status"), JSON_OBJECT) ? without_status : NULL,
        .selectable = c->labels,
        .schema = crd_schema_make(c->nodes, json_path(v, "schema", "openAPIV3Schema", NULL)),
    };
    k->description = k->schema->description ? k->schema->description : "";
    if (scale) {
        ret->scale = (struct api_scale){
            .spec = json_get_text(scale, "specReplicasPath"),
            .status = json_get_text(scale, "statusReplicasPath"),
            .selector = selector && *selector ? selector : NULL,
        };
        k->scale = &ret->scale;
    }
    if (json_get_bool(json_get(v, "deprecated"), false)) {
        const char *given = json_path_string(v, "deprecationWarning", NULL);
        k->warning =
            given ? given
                  : keep(c, xasprintf("%s/%s %s is deprecated", k->group, k->version, k->kind));
    }
    *ret_columns = make_columns(json_get(v, "additionalPrinterColumns"), &k->n_columns);
    k->columns = *ret_columns;
    ret->served = json_get_bool(json_get(v, "served"), false);
}

/* Users can write the status, too: texts that become paths are used only after a check. */
static bool are_names(const struct json *accepted, const struct json *wanted)
{
    static const char *const words[] = {"singular", "listKind"};
    for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
        const char *s = json_get_text(accepted, words[i]);
        if (!*s ||
            s[strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-")]) {
            return false;
        }
    }
    return *json_get_text(accepted, "plural") &&
           streq(json_get_text(accepted, "plural"), json_get_text(wanted, "plural")) &&
           *json_get_text(accepted, "kind") &&
           streq(json_get_text(accepted, "kind"), json_get_text(wanted, "kind"));
}

int crd_new(const struct json *obj, struct crd **ret, struct err *e)
{
    CLEANUP(api_causes_done) struct api_causes causes = {0};
    const struct json *names = json_path(obj, "status", "acceptedNames", NULL);
    if (!condition_is_true(obj, "Established")) {
        return err_set(e, -ENOENT, "it is not established");
    }
    api_validate_object(&api_kind_crd, obj, NULL, &causes);
    if (causes.n) {
        return err_set(e, -EINVAL, "%.128s: %.256s", causes.list[0].field, causes.list[0].message);
    }
    if (!are_names(names, json_path(obj, "spec", "names", NULL))) {
        return err_set(e, -ENOENT, "its names are not accepted");
    }
    struct crd *c = NEW(struct crd);
    c->refs = 1;
    c->name = xstrdup(json_path_string(obj, "metadata", "name", NULL));
    c->terminating = json_path_string(obj, "metadata", "deletionTimestamp", NULL) != NULL;
    c->spec = json_clone(json_get(obj, "spec"));
    c->names = json_clone(names);
    const struct json *versions = json_get(c->spec, "versions");
    c->nodes = crd_nodes_new();
    c->lists[0] = string_list(json_get(c->names, "shortNames"));
    c->lists[1] = string_list(json_get(c->names, "categories"));
    c->labels = make_labels(versions);
    c->n = json_count(versions);
    c->versions = xcalloc(c->n, sizeof(*c->versions));
    c->columns = xcalloc(c->n, sizeof(*c->columns));
    for (size_t i = 0; i < c->n; i++) {
        make_version(c, json_at(versions, i), &c->versions[i], &c->columns[i]);
        if (json_get_bool(json_get(json_at(versions, i), "storage"), false)) {
            c->stored = i;
        }
    }
    *ret = c;
    return 0;
}

struct crd *crd_ref(struct crd *c)
{
    c->refs++;
    return c;
}

struct crd *crd_unref(struct crd *c)
{
    if (c && --c->refs == 0) {
        for (size_t i = 0; i < c->n; i++) {
            free(c->columns[i]);
        }
        for (size_t i = 0; i < c->n_texts; i++) {
            free(c->texts[i]);
        }
        free(c->texts);
        free(c->columns);
        free(c->versions);
        free(c->labels);
        free(c->lists[0]);
        free(c->lists[1]);
        crd_nodes_free(c->nodes);
        json_free(c->names);
        json_free(c->spec);
        free(c->name);
        free(c);
    }
    return NULL;
}

const char *crd_name(const struct crd *c)
{
    return c->name;
}

const struct api_kind *crd_stored(const struct crd *c)
{
    return &c->versions[c->stored].kind;
}

const struct api_kind *crd_served(const struct crd *c, size_t i)
{
    for (size_t v = 0; v < c->n; v++) {
        if (c->versions[v].served && i-- == 0) {
            return &c->versions[v].kind;
        }
    }
    return NULL;
}

bool crd_has_kind(const struct crd *c, const struct api_kind *k)
{
    for (size_t v = 0; v < c->n; v++) {
        if (k == &c->versions[v].kind) {
            return true;
        }
    }
    return false;
}

bool crd_same(const struct crd *a, const struct crd *b)
{
    return json_equal(a->names, b->names) && json_equal(a->spec, b->spec);
}

bool crd_is_terminating(const struct crd *c)
{
    return c->terminating;
}

void crd_set_terminating(struct crd *c, bool terminating)
{
    c->terminating = terminating;
}
