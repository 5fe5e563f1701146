/* SPDX-License-Identifier: Apache-2.0 */
/* The object model: a kind is data, and adding one is adding a file.
 *
 * Each kind's file fills a 'struct api_kind' (names, scope, columns) and gives functions for defaults and
 * validation.  The API server, the CLI's tests and the documentation all work from these tables.
 * Pure: objects in, objects and causes out.  Kinds are constant and shared by all threads. */
#pragma once

#include "wire/json.h"

/* What is wrong with an object: becomes Status.details.causes. */
struct api_cause {
    char *field; /* "spec.clusterNetworks[1].CIDR" */
    char *
        reason; /* FieldValueRequired, FieldValueInvalid, FieldValueDuplicate, FieldValueForbidden, ... */
    char *message; /* "Invalid value: \"10.1.0.0/8\": overlaps with ..." */
};
struct api_causes {
    struct api_cause *list;
    size_t n, cap;
};
void api_causes_done(struct api_causes *c);
void api_invalid(struct api_causes *c, const char *field, const struct json *value, const char *fmt,
                 ...) PRINTF_LIKE(4, 5);
void api_required(struct api_causes *c, const char *field, const char *fmt, ...) PRINTF_LIKE(3, 4);
void api_forbidden(struct api_causes *c, const char *field, const char *fmt, ...) PRINTF_LIKE(3, 4);

struct api_column {
    const char *name, *type, *format; /* Table column definition; format may be "". */
    const char *description;
    int priority; /* 0 always shown, 1 with -o wide */
    /* Owned cell value; 'now_ms' is the wall clock, for ages. */
    struct json *(*cell)(const struct json *obj, int64_t now_ms);
};

struct api_kind {
    const char *group;   /* "" for the core group */
    const char *version; /* "v1" */
    const char *kind, *plural, *singular;
    const char *const *short_names; /* NULL-terminated or NULL */
    const char *const *categories;
    bool namespaced;
    bool status_subresource; /* PUT on the object keeps status, PUT on /status keeps the rest */
    const char *description;
    const struct api_column *columns;
    size_t n_columns;
    /* Fills in what the client left out; may be NULL. */
    void (*defaults)(struct json *obj);
    /* 'old' NULL on creation.  Metadata is validated generically before. */
    void (*validate)(const struct json *obj, const struct json *old, struct api_causes *c);
    /* Extra field selectors beyond metadata.name/namespace: NULL-terminated dotted paths. */
    const char *const *selectable;
};

/* All kinds, NULL-terminated, in discovery order. */
extern const struct api_kind *const api_kinds[];
const struct api_kind *api_kind_find(const char *group, const char *version, const char *plural);
const struct api_kind *api_kind_by_name(const char *api_version, const char *kind);
/* By what a user types: plural, singular, kind, short name, any case, "plural.group" too. */
const struct api_kind *api_kind_by_alias(const char *alias);
char *api_kind_api_version(const struct api_kind *k); /* Owned "v1" or "group/v1". */

/* Names: RFC 1123 label (63) and subdomain (253) as Kubernetes has them; NULL: fine, else a constant text
 * saying what is allowed. */
const char *api_check_dns_label(const char *s);
const char *api_check_dns_subdomain(const char *s);
