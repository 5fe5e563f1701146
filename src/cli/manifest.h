/* SPDX-License-Identifier: Apache-2.0 */
/* Objects from files: -f FILE, -f DIRECTORY and -f - (standard input), as JSON or YAML, several documents
 * and Lists included. */
#pragma once

#include "api/kind.h"

struct manifest {
    struct json *object;
    const struct api_kind *kind;
    const char *source; /* The argument it came from; the command line's. */
};
struct manifests {
    struct manifest *list;
    size_t n, cap;
};
void manifests_done(struct manifests *m);

/* Adds the objects of 'source'.  The error names the file, and for an object of an unknown kind its name. */
int manifests_read(struct manifests *m, const char *source, struct err *e);
/* Pure: adds the objects of 'text', which came from 'source'. */
int manifests_parse(struct manifests *m, const char *source, const char *text, size_t size,
                    struct err *e);
