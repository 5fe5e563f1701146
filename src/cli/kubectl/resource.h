/* SPDX-License-Identifier: Apache-2.0 */
/* The resources a command line names: "nodes", "node,ns", "node n1 n2", "node/n1 ns/red".  Pure. */
#pragma once

#include "api/registry.h"

struct resource {
    const struct api_kind *kind;
    char *name; /* NULL: all objects of the kind, or those that a selector matches. */
};
struct resources {
    struct resource *list;
    size_t n, cap;
    bool by_slash;  /* The arguments have the form KIND/NAME. */
    size_t n_kinds; /* The number of kinds in KIND[,KIND]. */
};
void resources_done(struct resources *r);
#define CLEANUP_RESOURCES __attribute__((cleanup(resources_done)))

/* Reads the arguments of get, describe and delete, with the kinds of 'known'. A category ("all")
 * stands for its kinds. -EINVAL has kubectl's text.  -ENOENT: a kind is unknown, or the name is a
 * category to which the server may add kinds. */
int resources_parse(const struct api_registry *known, int n, char *const *args,
                    struct resources *ret, struct err *e);
/* Adds a resource; 'name' (NULL: all) is copied. */
void resources_add(struct resources *r, const struct api_kind *k, const char *name);

/* Returns the prefix of "/NAME" in output, owned: "node", or "hostsubnet.network.openshift.io". */
char *resource_label(const struct api_kind *k);
/* Returns the owned path of one object (of all if 'name' is NULL).  'ns' is used only for kinds
 * with a namespace; NULL means all namespaces. */
char *resource_path(const struct api_kind *k, const char *ns, const char *name);
/* Adds "?key=value" or "&key=value" with the value escaped; does nothing when 'value' is NULL or
 * "". */
void resource_query(struct strbuf *path, const char *key, const char *value);
