/* SPDX-License-Identifier: Apache-2.0 */
/* The file of "tenet collect": a tar archive, compressed by gzip, mode 0600.
 *
 * It is written beside its name and appears there whole.  All files of the archive are in the
 * folder "tenet-collect/".  Not thread-safe. */
#pragma once

#include "base/err.h"
#include "base/str.h"

struct bundle;
int bundle_open(const char *path, struct bundle **ret, struct err *e);
/* Adds the file 'name' (of at most 80 bytes; others are cut). */
int bundle_add(struct bundle *b, const char *name, const void *data, size_t size, struct err *e);
/* Finishes the archive and gives it its name. */
int bundle_finish(struct bundle *b, struct err *e);
/* Without bundle_finish the file is removed. */
struct bundle *bundle_free(struct bundle *b);
DEFINE_CLEANUP(struct bundle *, bundle_free)
