/* SPDX-License-Identifier: Apache-2.0 */
/* Moves registries between stores, for "tenet store export" and "import".  The functions block,
 * with an event loop of their own. */
#pragma once

#include "base/err.h"
#include "store/store.h"

#include <stdio.h>

/* Writes the store of 'cfg' to 'out' in a form that every backend can import.  '*ret_keys' is the
 * number of keys written, '*ret_revision' the store's newest revision. */
int store_export(const struct store_config *cfg, FILE *out, size_t *ret_keys,
                 uint64_t *ret_revision, struct err *e);

struct import_result {
    size_t keys;       /* Keys in the store afterwards. */
    uint64_t revision; /* The store's newest revision afterwards. */
};
/* Replaces the contents of the store of 'cfg' by the export 'in', which is read twice, first to
 * check all of it: it must be seekable.  With 'force' the contents of the
 * store are replaced; without it a store with contents is -EEXIST.  SQLite: the file is replaced in
 * one step when the new one is complete.  etcd: until the import has ended, no master serves the
 * store, and the same import can be begun again.  Revisions go on after those of both stores, and
 * after cfg->min_revision, so that no client sees an older revision than before. */
int store_import(const struct store_config *cfg, FILE *in, bool force, struct import_result *ret,
                 struct err *e);
/* Removes one of the store's internal keys. -ENOENT: it does not exist. */
int store_remove_key(const struct store_config *cfg, const char *key, struct err *e);
