/* SPDX-License-Identifier: Apache-2.0 */
/* The kinds of configuration files, and how OpenShift's become Tenet's.
 *
 * A file is judged by the rows of its daemon (wire/options.h), and by the checks that join several
 * rows.  No file is read or written here.  Any thread. */
#pragma once

#include "wire/options.h"

struct config_file_kind {
    const char *kind; /* "MasterConfig" */
    const char *file; /* "master-config.yaml" */
    const struct option_table *table;
    /* The other daemon whose keys OpenShift's file has; NULL: none. */
    const struct config_file_kind *beside;
    /* Adds all errors and warnings about the document to 'f'; relative names are of 'dir'. */
    void (*check)(const struct json *doc, const char *dir, struct option_findings *f);
};

/* NULL: no such kind. */
const struct config_file_kind *config_file_kind_find(const char *kind);

#define CONFIG_FILES_MAX 2

/* Makes Tenet's files of the document that 'source' names, with absolute names of files (relative
 * ones are of 'dir').  Stores their texts, which the caller frees, and their names (constant), and
 * returns their number.  Values that Tenet refuses are errors in 'f'; a key that is unknown or has
 * no effect is dropped, and named in a comment. */
size_t config_file_convert(const struct config_file_kind *kind, const struct json *doc,
                           const char *dir, const char *source, struct strbuf *texts,
                           const char **names, struct option_findings *f);
