/* SPDX-License-Identifier: Apache-2.0 */
/* What a request is about, as authorization and audit see it: read off method, path and query alone, whether
 * there is such a kind or not, so that who may not know gets 403 and not 404.  Kubernetes' RequestInfo.
 * Pure. */
#pragma once

#include "base/macro.h"

struct attributes {
    bool is_resource; /* Else only 'verb' and 'path' count. */
    const char *verb; /* "get", "list", ...; of a path the method in lower case. */
    char *path;
    char *group, *version;  /* Never NULL; "" for the core group. */
    char *resource;         /* Never NULL. */
    char *subresource;      /* Never NULL; "": none. */
    char *namespace, *name; /* Never NULL; "": none. */
    char *node; /* That a list or watch is limited to by spec.nodeName; never NULL; "": none. */
    char *verb_text; /* What 'verb' is in, if it is not constant. */
};

/* 'watch': the query asks for one; 'field_selector' (NULL: none) may narrow a list to one name. */
void attributes_parse(struct attributes *a, const char *method, const char *path, bool watch,
                      const char *field_selector);
void attributes_done(struct attributes *a);
static inline UNUSED void attributes_donep(struct attributes *a)
{
    attributes_done(a);
}
/* As messages name them: "pods/status" (owned). */
char *attributes_resource_text(const struct attributes *a);
