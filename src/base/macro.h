/* SPDX-License-Identifier: Apache-2.0 */
/* Language helpers that every file uses: cleanup attributes, TAKE, array sizes.
 *
 * Ownership is written with CLEANUP(fn): the variable is released when its scope ends, on all
 * paths. TAKE(p) returns the pointer and leaves NULL, so the cleanup then does nothing. Every
 * "x_free" accepts NULL and returns NULL, so "p = x_free(p)" leaves nothing dangling. */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

#define PRINTF_LIKE(f, a) __attribute__((format(printf, f, a)))
#define UNUSED __attribute__((unused))
/* A large buffer, which every call would set to zero (-ftrivial-auto-var-init) without need. */
#define UNINITIALIZED __attribute__((uninitialized))
#define MUST_USE __attribute__((warn_unused_result))

/* The struct of type 'type' whose member 'member' is at 'ptr'. */
#define CONTAINER_OF(ptr, type, member) ((type *) (void *) ((char *) (ptr) -offsetof(type, member)))

#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

/* Releases the variable by 'name##p' at the end of its scope; see DEFINE_CLEANUP. */
#define CLEANUP(free_fn) __attribute__((cleanup(free_fn##p)))

/* Defines the function which CLEANUP(free_fn) calls for a variable of pointer type 'type'. */
#define DEFINE_CLEANUP(type, free_fn)             \
    static inline UNUSED void free_fn##p(type *p) \
    {                                             \
        if (*p) {                                 \
            free_fn(*p);                          \
        }                                         \
    }

/* Value of 'p', which becomes NULL: the caller of TAKE no longer owns it. */
#define TAKE(p)                  \
    (__extension__({             \
        __typeof__(p) take_ = p; \
        (p) = NULL;              \
        take_;                   \
    }))

/* File descriptors: CLEANUP(fd_close) int fd = -1; */
int fd_close(int fd); /* Closes 'fd' if it is >= 0, keeps errno; returns -1. */
static inline UNUSED void fd_closep(int *p)
{
    fd_close(*p);
}
static inline int fd_take(int *p)
{
    int fd = *p;
    *p = -1;
    return fd;
}
