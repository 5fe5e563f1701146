/* SPDX-License-Identifier: Apache-2.0 */
/* The object model: a kind is data, and adding one is adding a file.
 *
 * Each kind's file fills a 'struct api_kind' (names, scope, columns) and gives functions for
 * defaults and validation. The API server, the CLI's tests and the documentation all work from
 * these tables. A kind that a CustomResourceDefinition makes at run time (crd.h) is the same
 * structure, and belongs to its definition. Pure: objects in, objects and causes out. Kinds are
 * constant; those compiled in are shared by all threads. */
#pragma once

#include "wire/json.h"

/* One error of an object: an entry of Status.details.causes. */
struct api_cause {
    char *field;        /* "spec.clusterNetworks[1].CIDR" */
    const char *reason; /* FieldValueRequired, FieldValueInvalid, ...: a constant text */
    char *message;      /* "Invalid value: \"10.1.0.0/8\": overlaps with ..." */
};
struct api_causes {
    struct api_cause *list;
    size_t n, cap;
};
#define API_MAX_CAUSES 64 /* Further causes are dropped. */
void api_causes_done(struct api_causes *c);
static inline UNUSED void api_causes_donep(struct api_causes *c)
{
    api_causes_done(c);
}
/* "Invalid value: VALUE: text" */
void api_invalid(struct api_causes *c, const char *field, const struct json *value, const char *fmt,
                 ...) PRINTF_LIKE(4, 5);
/* The same for a value with a wrong type. */
void api_type_invalid(struct api_causes *c, const char *field, const struct json *value,
                      const char *fmt, ...) PRINTF_LIKE(4, 5);
/* "Required value[: text]" */
void api_required(struct api_causes *c, const char *field, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* "Forbidden[: text]" */
void api_forbidden(struct api_causes *c, const char *field, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* "Duplicate value: VALUE" */
void api_duplicate(struct api_causes *c, const char *field, const struct json *value);
/* "Not found: VALUE[: text]" */
void api_not_found(struct api_causes *c, const char *field, const struct json *value,
                   const char *fmt, ...) PRINTF_LIKE(4, 5);
/* "Unsupported value: VALUE: supported values: ..."; 'values' ends with NULL. */
void api_unsupported(struct api_causes *c, const char *field, const struct json *value,
                     const char *const *values);
/* "Too long: may not be more than MAX bytes", "Too many: N: must have at most MAX items" */
void api_too_long(struct api_causes *c, const char *field, size_t max);
void api_too_many(struct api_causes *c, const char *field, size_t n, size_t max);

/* FieldManagerConflict: 'field' belongs to 'manager' ("conflict with MANAGER"). */
void api_conflicting(struct api_causes *c, const char *field, const char *manager);

/* A field's name, formatted in place: API_FIELD("subsets[%zu].name", i). */
#define API_FIELD(...) (api_field_((char[256]){0}, 256, __VA_ARGS__))
const char *api_field_(char *buf, size_t size, const char *fmt, ...) PRINTF_LIKE(3, 4);

struct api_column {
    const char *name, *type, *format; /* Table column definition; format may be "". */
    const char *description;
    int priority; /* 0 always shown, 1 with -o wide */
    /* Owned cell value; 'now_ms' is the wall clock, for ages. */
    struct json *(*cell)(const struct json *obj, int64_t now_ms);
    const char *path; /* Used without 'cell': the JSONPath of the cell's value. */
    const char *const
        /* The same as a NULL-terminated list when the path has only members; else NULL. */
        *members;
    bool count;         /* The cell is the number of elements at 'path'. */
    bool list;          /* The cell is a text with the strings of the list at 'path': "[a, b]". */
    const char *absent; /* Text of the cell when 'path' finds nothing; NULL: the cell is null. */
};

struct api_field_label {
    const char *label; /* "spec.nodeName" */
    const char *path;  /* NULL: the same as 'label'. */
    const char *dflt;  /* Value of an absent field; NULL: "". */
    /* The index by which lists and watches for one value skip other objects; one per kind. */
    bool indexed;
};

/* Paths of an object's Scale, such as ".spec.replicas". */
struct api_scale {
    const char *spec, *status;
    const char *selector; /* NULL: has none. */
};

/* Group, version and kind of every subresource scale. */
#define API_SCALE_GROUP "autoscaling"
#define API_SCALE_VERSION "v1"

struct api_schema;
struct api_paths;

/* A kind whose objects are those of another kind in another form. */
struct api_view {
    const struct api_kind *of;
    /* Convert an object of that kind to this one's form, and back; apiVersion and kind are set
     * elsewhere. */
    void (*show)(struct json *obj);
    void (*store)(struct json *obj);
};

/* A part of an object with a path of its own: "serviceaccounts/NAME/token". */
struct api_subresource {
    const char *name;
    const char *const *verbs; /* Some of create, delete, get, patch, update; ends with NULL. */
    /* Type of its bodies, when they are not the kind's own objects; else NULL. */
    const char *group, *version, *kind;
};

#define API_EVENT_TTL_S 3600

/* The effect of a kind's objects. No kind pretends to have an effect that is not built. */
enum api_effect {
    API_EFFECT_FULL,    /* The server and its components act upon them. */
    API_EFFECT_NONE,    /* They are stored only: each write is answered with a Warning. */
    API_EFFECT_REFUSED, /* Safety depends on the effect, so writes are refused. */
};

struct api_kind {
    const char *group;   /* "" for the core group */
    const char *version; /* "v1" */
    const char *kind, *plural, *singular;
    const char *list_kind;          /* NULL: KINDList */
    const char *const *short_names; /* NULL-terminated or NULL */
    const char *const *categories;
    /* The default roles that include its objects in projects: of "edit" (may change them) and
     * "view" (may read them); NULL: none of them. */
    const char *const *roles;
    bool namespaced;
    bool status_subresource; /* PUT on the object keeps status, PUT on /status keeps the rest */
    /* Create-only (reviews): the request is evaluated and answered; nothing is stored. */
    bool create_only;
    /* A kind that is only created can also be listed, which answers with a Status: whether the
     * user may create it (ProjectRequest). */
    bool probed;
    /* Subresources other than status, scale and a namespace's finalize; ends with a NULL name;
     * NULL: none. */
    const struct api_subresource *subresources;
    const struct api_scale *scale; /* NULL: no such subresource. */
    bool custom;                   /* Defined by a CustomResourceDefinition. */
    const struct api_view *view;   /* NULL: the kind stores its own objects. */
    bool create_on_update;         /* PUT creates an absent object. */
    bool versioned_update;         /* PUT must name the resourceVersion that it is based on. */
    bool protobuf;                 /* Its bodies may be protobuf. */
    bool generation;               /* metadata.generation counts changes of what is wanted. */
    bool returns_deleted;          /* DELETE answers with the removed object, not a Status. */
    /* Lists and watches contain only the objects that the user may get, unless the user may list
     * the underlying kind. */
    bool personal;
    bool read_only;      /* Objects are read only; no client writes them. */
    const char *instead; /* The resources to write instead of a read-only kind; NULL: none. */
    /* The creation of an empty object of a read-only kind is accepted, and changes nothing
     * (PolicyBinding). */
    bool create_empty;
    /* A view of which each user gets, lists, watches and deletes the objects that have the user in
     * their selectable fields userName and userUID, and no others (UserOAuthAccessToken). */
    bool own;
    /* Objects are parts of other kinds' objects: clients get, create, update and delete them, and
     * nothing is stored under their own keys (UserIdentityMapping). */
    bool composed;
    /* Deletion without a propagationPolicy leaves the dependents, as in Kubernetes' oldest kinds. */
    bool orphans;
    const char *warning; /* Warning for clients of this version; NULL: none. */
    enum api_effect effect;
    const char *missing; /* A phrase for users: the missing effect; NULL with API_EFFECT_FULL. */
    unsigned ttl_s;      /* Seconds after their last change when objects are deleted; 0: never. */
    const char *description;
    const struct api_column *columns;
    size_t n_columns;
    /* Check of names; NULL: api_check_dns_subdomain. */
    const char *(*check_name)(const char *name);
    /* Removes unknown members, which the schema does not show, and adds their paths to 'unknown'
     * (may be NULL), as api_schema_prune does with the others before; may be NULL. */
    void (*prune)(struct json *obj, struct api_paths *unknown);
    /* Sets defaults for absent fields; may be NULL. */
    void (*defaults)(struct json *obj);
    /* Sets fields that only the server decides, before defaults; 'old' NULL on creation; may be
     * NULL. On updates status and metadata are already final. */
    void (*prepare)(struct json *obj, const struct json *old);
    /* A PUT or PATCH of the object itself, where status is a subresource: 'obj' has the old status
     * already, and takes from 'wish', the client's (may be NULL), what a client may set in this way.
     * Returns whether that is another intent, which counts in metadata.generation; NULL: nothing. */
    bool (*accept_status)(struct json *obj, const struct json *wish);
    /* A change through 'subresource': writes the relevant parts of 'obj' into 'out', a copy of
     * the old object.  NULL: the member called like the subresource is replaced. */
    void (*merge_part)(const char *subresource, struct json *out, const struct json *obj);
    /* 'old' NULL on creation.  Metadata is validated generically before. */
    void (*validate)(const struct json *obj, const struct json *old, struct api_causes *c);
    /* Validates a change through 'subresource'.  NULL: 'validate' is called. */
    void (*validate_part)(const char *subresource, const struct json *obj, const struct json *old,
                          struct api_causes *c);
    /* Seconds that another component has to stop it before its deletion: 'asked' (NULL: none) is
     * the deletion request's value. NULL: objects are deleted at once. */
    int64_t (*grace_s)(const struct json *obj, const int64_t *asked);
    /* Fields for fieldSelector beyond metadata.name and metadata.namespace; ends with a NULL
     * label. */
    const struct api_field_label *selectable;
    /* Schema of the whole object (api/schema.h); NULL: any content. */
    const struct api_schema *schema;
};

/* Whether its objects are the namespaces: Namespace, and Project. */
bool api_kind_is_namespace(const struct api_kind *k);

/* All kinds that are compiled in, NULL-terminated, in discovery order. */
extern const struct api_kind *const api_kinds[];
char *api_kind_api_version(const struct api_kind *k); /* Owned "v1" or "group/v1". */
char *api_kind_list_kind(const struct api_kind *k);   /* Owned "PodList". */
/* Searches the compiled-in kinds; see registry.h for all. */
const struct api_kind *api_kind_find(const char *group, const char *version, const char *plural);
const struct api_kind *api_kind_by_name(const char *api_version, const char *kind);
/* The subresource 'name' of 'k', status included; NULL: there is none. */
const struct api_subresource *api_kind_subresource(const struct api_kind *k, const char *name);
/* The i-th subresource, in discovery order; NULL at the end. */
const struct api_subresource *api_kind_subresource_at(const struct api_kind *k, size_t i);
const struct api_kind *api_kind_by_alias(const char *alias);

/* All checks of an object: its schema, its metadata, its immutable fields, and then the kind's
 * own code, which can rely on types.  'old' NULL on creation. */
void api_validate_object(const struct api_kind *k, const struct json *obj, const struct json *old,
                         struct api_causes *c);
/* The same for a change through 'subresource' ("": of the object itself). */
void api_validate_part(const struct api_kind *k, const char *subresource, const struct json *obj,
                       const struct json *old, struct api_causes *c);

/* Names: RFC 1123 label (63) and subdomain (253) as Kubernetes has them; NULL: valid, else a
 * constant text with the rule. */
const char *api_check_dns_label(const char *s);
const char *api_check_dns_subdomain(const char *s);
/* A path segment: not ".", "..", and without "/" and "%". */
const char *api_check_path_segment(const char *s);
/* "[prefix/]name" of labels, annotations and finalizers; a label's value. */
const char *api_check_qualified_name(const char *s);
const char *api_check_label_value(const char *s);
