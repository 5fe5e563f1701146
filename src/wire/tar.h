/* SPDX-License-Identifier: Apache-2.0 */
/* Writing of tar archives (POSIX.1-2017 pax, ustar), entry by entry.  Pure. */
#pragma once

#include "base/str.h"

#define TAR_NAME_MAX 100

/* An entry: a file with 'data'; 'data' NULL: a link to 'link', or without that a folder.  'name'
 * has at most TAR_NAME_MAX bytes.  Times and owners are 0. */
struct tar_entry {
    const char *name;
    unsigned mode;
    const char *data;
    size_t size;
    const char *link;
};
void tar_add(struct strbuf *b, const struct tar_entry *t);
/* The blocks that end the archive. */
void tar_end(struct strbuf *b);
