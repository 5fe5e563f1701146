/* SPDX-License-Identifier: Apache-2.0 */
/* The attributes of a request, read once from method, path and query, and used by authorization,
 * audit, flow control and the handlers.  Kubernetes' RequestInfo.
 *
 * The result does not depend on the kinds that are served, so that a user without the right
 * gets 403 and not 404.  Pure.  The texts belong to the caller of attributes_parse (path) or
 * to the struct; attributes_done frees them. */
#pragma once

#include "base/macro.h"

struct attributes {
    bool is_resource;  /* Otherwise only 'verb' and 'path' are meaningful. */
    bool in_namespace; /* The path has "namespaces/NAMESPACE/" before the resource. */
    bool malformed;    /* An empty segment, or more segments than a resource's path has. */
    /* The path is /oapi/v1/... (api/legacy.h), or that of such a resource in /api/v1; 'group' is
     * the resource's own. */
    bool legacy;
    bool name_is_demanded; /* 'name' comes from the field selector of a list or watch. */
    /* "get", "list", ...; for a path that is no resource, the method in lower case. */
    const char *verb;
    const char *path;
    const char *group, *version;  /* Never NULL; "" for the core group. */
    const char *resource;         /* Never NULL. */
    const char *subresource;      /* Never NULL; "": none. */
    const char *namespace, *name; /* Never NULL; "": none. */
    /* The node to which spec.nodeName limits a list or watch; never NULL; "": none. */
    const char *node;
    /* The path behind a subresource proxy: "/pods", which is not decoded further; "": none. */
    const char *rest;
    char *texts; /* The texts allocated by attributes_parse; NULL: none. */
};

/* 'path' is borrowed and must outlive '*a'.  'watch': the query has the parameter watch.
 * 'field_selector' (NULL: none) may limit a list to one name. */
void attributes_parse(struct attributes *a, const char *method, const char *path, bool watch,
                      const char *field_selector);
void attributes_done(struct attributes *a);
static inline UNUSED void attributes_donep(struct attributes *a)
{
    attributes_done(a);
}
/* The resource as messages name it: "pods/status" (owned). */
char *attributes_resource_text(const struct attributes *a);
