/* SPDX-License-Identifier: Apache-2.0 */
/* The kinds that are known: those compiled in, and those learned at run time, from a CustomResourceDefinition
 * or from a server's discovery.
 *
 * A registry holds pointers; whoever adds a kind keeps it alive until it has removed it.  Order is that of
 * discovery.  Not thread-safe. */
#pragma once

#include "api/kind.h"

struct api_registry {
    const struct api_kind **list;
    size_t n, cap;
    uint64_t generation; /* Counts changes. */
};

/* With the kinds that are compiled in, without those of the group 'without' (NULL: with all). */
void api_registry_init(struct api_registry *r, const char *without);
void api_registry_done(struct api_registry *r);
/* Versions of one resource stay together, in the order of their adding. */
void api_registry_add(struct api_registry *r, const struct api_kind *k);
void api_registry_remove(struct api_registry *r, const struct api_kind *k);

/* NULL: not known. */
const struct api_kind *api_registry_find(const struct api_registry *r, const char *group,
                                         const char *version, const char *plural);
const struct api_kind *api_registry_by_name(const struct api_registry *r, const char *api_version,
                                            const char *kind);
/* By what a user types: plural, singular, kind, short name, any case, "plural.group" too. */
const struct api_kind *api_registry_by_alias(const struct api_registry *r, const char *alias);
