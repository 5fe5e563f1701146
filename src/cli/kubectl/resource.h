/* SPDX-License-Identifier: Apache-2.0 */
/* The resources a command line names: "nodes", "node,ns", "node n1 n2", "node/n1 ns/red".  Pure. */
#pragma once

#include "api/registry.h"

struct resource {
    const struct api_kind *kind;
    char *name; /* NULL: all of the kind, or those that a selector takes. */
};
struct resources {
    struct resource *list;
    size_t n, cap;
    bool by_slash;  /* Given as KIND/NAME. */
    size_t n_kinds; /* Kinds in KIND[,KIND]. */
};
void resources_done(struct resources *r);
#define CLEANUP_RESOURCES __attribute__((cleanup(resources_done)))

/* Reads the arguments of get, describe and delete, with kinds of 'known'.  A category ("all") stands for its
 * kinds.  -EINVAL with a text as kubectl has it; -ENOENT: a kind is not known, or a category that others than
 * the kinds compiled in may belong to. */
int resources_parse(const struct api_registry *known, int n, char *const *args,
                    struct resources *ret, struct err *e);
/* Adds one; 'name' (NULL: all) is copied. */
void resources_add(struct resources *r, const struct api_kind *k, const char *name);

/* Owned "node", or "hostsubnet.network.openshift.io": what stands before "/NAME" in output. */
char *resource_label(const struct api_kind *k);
/* Owned path of one object (or of all: 'name' NULL); 'ns' counts only for kinds that have one, NULL there
 * means all namespaces. */
char *resource_path(const struct api_kind *k, const char *ns, const char *name);
/* Adds "?key=value" or "&key=value" with the value escaped; nothing when 'value' is NULL or "". */
void resource_query(struct strbuf *path, const char *key, const char *value);
