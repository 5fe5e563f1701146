/* SPDX-License-Identifier: Apache-2.0 */
/* Generates the texts in the tree that are made from rows: the lists of the manual, sample
 * configurations, and completion of shells.
 *
 * A file is made whole, or it has parts between a line with "generated: NAME" and one with
 * "generated: end", which are generated. "make generate" rewrites the files, and a test compares
 * them. Pure. */
#pragma once

#include "base/err.h"
#include "base/str.h"

struct texts_file {
    const char *path;
    void (*whole)(struct strbuf *out); /* NULL: only parts of 'path' are generated. */
};
extern const struct texts_file texts_files[]; /* Ends with a NULL path. */

/* Returns the text that the file should have, in place of 'now'. -EINVAL: a part has no end, or a
 * name that is not known. */
int texts_make(const struct texts_file *f, const char *now, struct strbuf *out, struct err *e);
