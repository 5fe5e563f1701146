/* SPDX-License-Identifier: Apache-2.0 */
/* Schemas: the structure of a kind's objects, as data.
 *
 * One tree per kind serves all code that needs its fields: finding and pruning unknown fields
 * (fieldValidation), types and limits, strategic merge patches, server-side apply (how lists and
 * maps are merged and owned), OpenAPI 2 and 3 and with them 'kubectl explain'.
 *
 * The schema of a compiled-in kind is constant data that tools/gen-kinds makes from
 * src/api/kinds. The schema of a CustomResourceDefinition is the same structure, made at run
 * time from openAPIV3Schema: this code does not distinguish the two. The maker of a schema owns
 * the nodes, and keeps them unchanged and valid as long as the kind is served. A node may be
 * used in several places, and a node may contain itself (JSONSchemaProps does).
 *
 * The root of a kind is an API_OBJECT with the fields apiVersion, kind, metadata
 * (api_schema_object_meta) and its own. A kind without a schema (NULL) is api_schema_open: any
 * content, lists are replaced as a whole.
 *
 * Pure, and constant once made: shared by all threads. */
#pragma once

#include "api/kind.h"

struct pattern;

enum api_type {
    API_ANY, /* Any value.  Objects below it are merged member by member, lists are replaced. */
    API_BOOLEAN,
    API_INTEGER,
    API_NUMBER,
    API_STRING,
    API_INT_OR_STRING, /* x-kubernetes-int-or-string */
    API_ARRAY,
    API_OBJECT,
};

/* x-kubernetes-list-type: how elements are merged and owned. */
enum api_list_type {
    API_LIST_ATOMIC, /* The list is one value. */
    API_LIST_SET,    /* Scalars, each at most once: an element is identified by its value. */
    API_LIST_MAP,    /* Objects, identified by the values of 'keys'. */
};

/* Meaning of an empty text; for a list, only API_EMPTY_REFUSED has an effect. */
enum api_empty {
    API_EMPTY_IS_VALUE, /* A value like others. */
    /* It is not checked, and the default replaces it, as in the kinds of Kubernetes. */
    API_EMPTY_IS_ABSENT,
    API_EMPTY_REFUSED, /* The value is required. */
};

struct api_schema;

/* Messages that protobuf nests between an object's own message and a field of the object. */
#define API_MAX_OUTER 2

struct api_field {
    const char *name;
    const struct api_schema *schema;
    const char *description; /* For 'kubectl explain'; NULL: that of the schema. */
    bool required;
    /* Number in the kind's protobuf message; 0: the field has none, and exists in JSON only. */
    uint16_t number;
    /* Numbers of the enclosing messages, from the outside in, when protobuf nests a field that JSON
     * does not; 0: no further one. */
    uint8_t outer[API_MAX_OUTER];
    /* A scalar whose absence differs from 0, false or an empty text: Kubernetes' type has a
     * pointer. */
    bool pointer;
    /* The field is there even when it is empty: Kubernetes' type has no omitempty, or a structure
     * in place.  An object without 'always' may be absent. */
    bool always;
    /* The schema of its message, where JSON has any value whose checks are in C (the schema of a
     * CustomResourceDefinition); NULL: 'schema'. */
    const struct api_schema *wire;
};

/* Limits that few nodes have, of a CRD's schema. -1 and NULL: no limit. */
struct api_limits {
    bool has_minimum, has_maximum;
    bool exclusive_minimum, exclusive_maximum;
    bool
        compiled_in; /* For a compiled-in kind: messages have the texts of Kubernetes' own kinds. */
    double minimum, maximum;
    double multiple_of;             /* 0: none */
    int64_t min_length, max_length; /* Length of strings, in characters. */
    int64_t min_items, max_items;
    int64_t min_properties, max_properties;
    bool unique_items;
    const char *pattern; /* As written by the user, for messages. */
    const struct pattern
        *compiled; /* The same in compiled form (api/pattern.h); NULL: not checked. */
    /* Value validations only, as in structural schemas: NULL-terminated lists of nodes, which
     * may use 'fields', 'items', 'others', 'limits' and the rest. */
    const struct api_schema *const *all_of, *const *any_of, *const *one_of;
    const struct api_schema *not_;
};
#define API_LIMITS_NONE                                                       \
    {                                                                         \
        .min_length = -1, .max_length = -1, .min_items = -1, .max_items = -1, \
        .min_properties = -1, .max_properties = -1                            \
    }

/* Bits come first, and together: there are some thousand nodes, in each process. */
struct api_schema {
    enum api_type type : 8;
    enum api_empty empty : 2;
    bool nullable : 1;    /* null is a value; else null means absent. */
    bool defaulted : 1;   /* This node or one below it has a default. */
    bool completed : 1;   /* A field that is always there is below this node. */
    bool micro_timed : 1; /* A MicroTime is below this node, outside of lists and maps. */
    bool immutable : 1;   /* The value cannot change after creation. */

    /* Bits of an API_OBJECT. */
    bool preserve_unknown : 1; /* x-kubernetes-preserve-unknown-fields: others are API_ANY. */
    /* x-kubernetes-embedded-resource: apiVersion, kind, metadata are declared, too. */
    bool embedded : 1;
    bool atomic : 1; /* x-kubernetes-map-type: atomic: it is one value. */
    /* The JSON value is that of one field: an object, a list or a boolean.  The message has the
     * fields themselves; the last one counts.  Only schemas of 'wire' are such. */
    bool either : 1;

    /* Bits of an API_ARRAY. */
    enum api_list_type list_type : 2;
    /* Elements may have equal keys, as in those kinds of Kubernetes whose lists are identified by
     * keys only when they are merged. */
    bool repeats : 1;
    /* Published with the patch strategy; the patch itself contains $retainKeys. */
    bool retain_keys : 1;

    /* Published once under this name and referred to: "io.k8s.api.core.v1.PodSpec"; NULL: in
     * place. */
    const char *definition;
    const char *description; /* NULL: none */
    /* "int32", "int64", "double", "byte", "date-time", ...; NULL: none.  int32, int64 and those of
     * api/format.h are checked. */
    const char *format;
    const char *const *values_allowed; /* enum of strings, NULL-terminated; NULL: any */
    const struct json *enum_json;      /* enum of other values (a list); NULL: none */
    const struct json *dflt;           /* Set when absent (api_schema_default); NULL: none. */
    const char *dflt_text;             /* The same as JSON text, for a compiled-in kind. */
    const struct api_limits *limits;
    /* Check of a text that is not empty: returns a constant sentence, or NULL if valid; NULL: no
     * check. */
    const char *(*check)(const char *text);
    /* The same with a detailed error: 0, or a negative errno with 'e' filled in. */
    int (*parse)(const char *text, struct err *e);

    /* API_OBJECT: the declared members, and the schema of all others. */
    const struct api_field
        *fields; /* Sorted by name (strcmp), so that lookup is a binary search. */
    /* The places in 'fields' of those with protobuf numbers, in the order of their paths: the
     * numbers of 'outer', then 'number'. */
    const uint16_t *by_number;
    uint32_t n_fields, n_numbered;
    const struct api_schema *others; /* additionalProperties; NULL: no other members are allowed. */

    /* API_ARRAY */
    const struct api_schema *items; /* NULL: API_ANY */
    const char *const *keys;        /* For API_LIST_MAP, NULL-terminated, in alphabetical order. */
    /* x-kubernetes-patch-merge-key: the member by which a strategic merge patch matches
     * elements; "": a set of plain values; NULL: the patch replaces the list. */
    const char *patch_key;
};

/* ---- nodes that all kinds use ---- */

extern const struct api_schema api_schema_open; /* Any object. */
extern const struct api_schema api_schema_any;  /* Any value. */
extern const struct api_schema api_schema_string, api_schema_boolean, api_schema_int32,
    api_schema_int64, api_schema_double, api_schema_int_or_string, api_schema_time,
    api_schema_micro_time, api_schema_duration, api_schema_bytes, api_schema_quantity;
extern const struct api_schema api_schema_string_map;   /* A map with strings as values. */
extern const struct api_schema api_schema_bytes_map;    /* A map with Base64 texts as values. */
extern const struct api_schema api_schema_quantity_map; /* Quantities by resource name. */
extern const struct api_schema api_schema_string_list;  /* Replaced as a whole. */
extern const struct api_schema api_schema_string_set;   /* Elements are unique. */
extern const struct api_schema api_schema_object_meta;
extern const struct api_schema api_schema_label_selector;
extern const struct api_schema api_schema_status, api_schema_list_meta;

/* ---- fields that every kind has ---- */

#define API_ROOT_API_VERSION                                                            \
    {                                                                                   \
        "apiVersion", &api_schema_string,                                               \
            "APIVersion is the group and version whose schema this object follows, as " \
            "GROUP/VERSION."                                                            \
    }
#define API_ROOT_KIND                                                                \
    {                                                                                \
        "kind", &api_schema_string, "Kind is the type of this object, in CamelCase." \
    }
#define API_ROOT_METADATA                                                                      \
    {                                                                                          \
        "metadata", &api_schema_object_meta,                                                   \
            "Standard metadata: names, labels, owners, versions.", .number = 1, .always = true \
    }

/* A body of a request or an answer that is no kind of its own: DeleteOptions, APIGroupList. */
struct api_body {
    const char *kind;
    const struct api_schema *schema;
};
extern const struct api_body api_bodies[]; /* Ends with a NULL kind. */

/* ---- use of a schema ---- */

const struct api_schema *api_kind_schema(const struct api_kind *k); /* Never NULL. */
/* The field called 'name'; NULL: not among the declared ones. */
const struct api_field *api_schema_field(const struct api_schema *s, const char *name);
/* The schema of member 'name' of an object: a field's, that of other members, or api_schema_any
 * if unknown fields are preserved; NULL: there is no such member.  's' may be NULL (then NULL). */
const struct api_schema *api_schema_member(const struct api_schema *s, const char *name);
/* The schema of an array's elements; never NULL for an API_ARRAY or API_ANY. */
const struct api_schema *api_schema_items(const struct api_schema *s);
/* An object or any value whose members have no schema, which protobuf has as JSON text:
 * RawExtension, FieldsV1. */
bool api_schema_is_raw(const struct api_schema *s);
/* Elements of the list (members of the object) are owned and merged one by one. */
bool api_schema_is_granular(const struct api_schema *s, const struct json *v);

/* Appends the identity of 'item' in a list of the schema 's', in the format of managedFields:
 * "k:{"name":"a"}" of an API_LIST_MAP with keys in alphabetical order, else "v:VALUE". */
void api_schema_element_key(const struct api_schema *s, const struct json *item,
                            struct strbuf *out);

/* Texts, in order: paths of unknown fields. */
struct api_paths {
    char **list;
    size_t n, cap;
};
#define API_MAX_PATHS 64 /* Further ones are dropped. */
void api_paths_done(struct api_paths *p);
static inline UNUSED void api_paths_donep(struct api_paths *p)
{
    api_paths_done(p);
}

/* Removes members that are not in the schema, and nulls of declared fields that are not nullable
 * (they mean absent).  'ret' (may be NULL) gets the paths of the unknown ones:
 * "spec.containers[0].colour". */
void api_schema_prune(const struct api_schema *s, struct json *obj, struct api_paths *ret);
/* Puts in the defaults of absent members, from the outside in. */
void api_schema_default(const struct api_schema *s, struct json *obj);
/* The default of the node, owned; NULL: it has none. */
struct json *api_schema_default_of(const struct api_schema *s);
/* Adds a cause for each immutable value that differs from 'old', outside of lists and maps. */
void api_schema_check_immutable(const struct api_schema *s, const struct json *obj,
                                const struct json *old, struct api_causes *c);
/* Adds a cause for each value of a wrong type, missing required member, value outside of the
 * allowed ones, violated limit, and duplicate list element. */
void api_schema_validate(const struct api_schema *s, const struct json *obj, struct api_causes *c);
/* The same for a configuration of server-side apply: no two elements of a list have equal keys, also
 * where the list may repeat them. */
void api_schema_validate_applied(const struct api_schema *s, const struct json *config,
                                 struct api_causes *c);
