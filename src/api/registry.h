/* SPDX-License-Identifier: Apache-2.0 */
/* The registered kinds: the compiled-in ones, and those added at run time, from a
 * CustomResourceDefinition or from a server's discovery.
 *
 * A registry stores pointers; the caller that adds a kind keeps it valid until it has removed
 * it. Their order is that of discovery.  Not thread-safe. */
#pragma once

#include "api/kind.h"

struct api_registry {
    const struct api_kind **list;
    size_t n, cap;
    uint64_t generation; /* Counts changes. */
};

/* Adds the compiled-in kinds, except those of the group 'without' (NULL: all). */
void api_registry_init(struct api_registry *r, const char *without);
void api_registry_done(struct api_registry *r);
/* Versions of one resource are adjacent, in the order of adding. */
void api_registry_add(struct api_registry *r, const struct api_kind *k);
void api_registry_remove(struct api_registry *r, const struct api_kind *k);

/* NULL: not known. */
const struct api_kind *api_registry_find(const struct api_registry *r, const char *group,
                                         const char *version, const char *plural);
const struct api_kind *api_registry_by_name(const struct api_registry *r, const char *api_version,
                                            const char *kind);
/* Finds a kind by user input: plural, singular, kind, short name, any case, "plural.group" too. */
const struct api_kind *api_registry_by_alias(const struct api_registry *r, const char *alias);
