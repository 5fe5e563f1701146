/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a volume that is made of API objects: configMap, secret, downwardAPI and projected
 * (Kubernetes' pkg/volume/{configmap,secret,downwardapi,projected}).  Pure. */
#pragma once

#include "pod/field.h"

struct pod_file {
    char *path; /* Relative, without "..": components joined by "/". */
    uint32_t mode;
    bool has_owner; /* It belongs to 'owner', not to root. */
    uint32_t owner;
    struct blob *data;
};

struct pod_files {
    struct pod_file *v; /* Sorted by path; no path is another one or its directory. */
    size_t n, cap;
};
void pod_files_done(struct pod_files *f);
static inline UNUSED void pod_files_donep(struct pod_files *f)
{
    pod_files_done(f);
}
bool pod_files_equal(const struct pod_files *a, const struct pod_files *b);

/* Whether this module makes the volume's files. */
bool pod_files_has_source(const struct json *volume);
/* Whether the files are secret, and so belong in memory: secret, and projected of a secret or a
 * token. */
bool pod_files_is_secret(const struct json *volume);

/* The i-th token that a projected volume needs; false: there are no more.  '*ret_audience' "": the
 * API server's own. */
struct pod_token_source {
    const char *audience;
    int64_t seconds;
};
bool pod_files_token_source(const struct json *volume, size_t i, struct pod_token_source *ret);

/* The texts of the tokens by the index of pod_files_token_source; a NULL text is not there yet. */
struct pod_tokens {
    const char *const *v;
    size_t n;
};

/* The volume's files.  Errors are the cause in an Event FailedMount, in the kubelet's words: -ENOENT:
 * an object or a key is missing and not optional; -EAGAIN: an answer or a token is awaited; -EINVAL:
 * a path leads out of the volume, or a value is invalid; -EFBIG: more than 16 MiB in all.  '*ret' is the
 * caller's, to be released with pod_files_done; untouched on failure. */
int pod_files_make(const struct json *pod, const struct json *volume, const struct pod_facts *f,
                   struct pod_tokens tokens, struct pod_files *ret, struct err *e);
