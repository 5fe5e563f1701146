/* SPDX-License-Identifier: Apache-2.0 */
/* Moving registries between stores, for "tenet store export" and "import".  Block, with a loop of their own. */
#pragma once

#include "base/err.h"
#include "store/store.h"

#include <stdio.h>

/* Writes what 'cfg' has to 'out'; '*ret_keys' of it. */
int store_export(const struct store_config *cfg, FILE *out, size_t *ret_keys,
                 uint64_t *ret_revision, struct err *e);

struct import_result {
    size_t keys;
    uint64_t revision; /* Of the store afterwards. */
};
/* Reads 'in' twice, first to check all of it: it must be seekable.  'force': what 'cfg' has is replaced; else that is
 * -EEXIST.  SQLite: the file is replaced at once when all is there.  etcd: until it has come to its end, no
 * master serves it, and the same import can be begun again.
 * Revisions go on after those of both, and after cfg->min_revision, so that no client that has seen one of them is told
 * of an older one. */
int store_import(const struct store_config *cfg, FILE *in, bool force, struct import_result *ret,
                 struct err *e);
/* Removes one key of the store's own.  -ENOENT: it was not there. */
int store_remove_key(const struct store_config *cfg, const char *key, struct err *e);
