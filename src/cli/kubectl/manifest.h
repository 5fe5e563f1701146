/* SPDX-License-Identifier: Apache-2.0 */
/* Objects from files: -f FILE, -f DIRECTORY and -f - (standard input), as JSON or YAML,
 * several documents and Lists included. */
#pragma once

#include "api/registry.h"

struct manifest {
    struct json *object;
    const struct api_kind *kind; /* The kind; NULL before manifests_resolve. */
    /* The argument that named the file; borrowed from the command line. */
    const char *source;
};
struct manifests {
    struct manifest *list;
    size_t n, cap;
};
void manifests_done(struct manifests *m);

/* Finds the kinds of the objects among 'known'.  -ENOENT names the first object of an
 * unknown kind. */
int manifests_resolve(struct manifests *m, const struct api_registry *known, struct err *e);
/* Adds the objects of 'source'.  The error names the file. */
int manifests_read(struct manifests *m, const char *source, struct err *e);
/* Pure: adds the objects of 'text', which came from 'source'. */
int manifests_parse(struct manifests *m, const char *source, const char *text, size_t size,
                    struct err *e);
