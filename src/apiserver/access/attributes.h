/* SPDX-License-Identifier: Apache-2.0 */
/* What a request is about: the one reading of method, path and query, on which authorization,
 * audit, flow control and the handlers all go.  Kubernetes' RequestInfo.
 *
 * It does not depend on which kinds there are, so that a user without the right gets 403 and not
 * 404.  Pure.  The texts belong to the caller of attributes_parse (path) or to the struct;
 * attributes_done frees them. */
#pragma once

#include "base/macro.h"

struct attributes {
    bool is_resource;      /* Else only 'verb' and 'path' count. */
    bool in_namespace;     /* The path has "namespaces/NAMESPACE/" before the resource. */
    bool malformed;        /* An empty segment, or more segments than a resource's path has. */
    bool name_is_demanded; /* 'name' is what the field selector of a list or watch demands. */
    const char *verb;      /* "get", "list", ...; of another path the method in lower case. */
    const char *path;
    const char *group, *version;  /* Never NULL; "" for the core group. */
    const char *resource;         /* Never NULL. */
    const char *subresource;      /* Never NULL; "": none. */
    const char *namespace, *name; /* Never NULL; "": none. */
    /* The node to which spec.nodeName limits a list or watch; never NULL; "": none. */
    const char *node;
    char *texts; /* All texts that were made here; NULL: none. */
};

/* 'path' is borrowed and must outlive '*a'.  'watch': the query has that flag; 'field_selector'
 * (NULL: none) may narrow a list to one name. */
void attributes_parse(struct attributes *a, const char *method, const char *path, bool watch,
                      const char *field_selector);
void attributes_done(struct attributes *a);
static inline UNUSED void attributes_donep(struct attributes *a)
{
    attributes_done(a);
}
/* The resource as messages name it: "pods/status" (owned). */
char *attributes_resource_text(const struct attributes *a);
