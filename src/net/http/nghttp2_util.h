/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers for all users of nghttp2: fields from strings, and calls that can only fail when
 * memory is out. No state. */
#pragma once

#include "base/macro.h"

#include <nghttp2/nghttp2.h>
#include <stdlib.h>
#include <string.h>

/* Running out of memory ends the process, as everywhere. */
static inline void nghttp2_must(int error)
{
    if (error) {
        abort();
    }
}

static inline nghttp2_session_callbacks *nghttp2_callbacks(void)
{
    nghttp2_session_callbacks *callbacks;
    nghttp2_must(nghttp2_session_callbacks_new(&callbacks));
    return callbacks;
}

/* A field; both strings are copied when it is submitted. */
static inline UNUSED nghttp2_nv nghttp2_field(const char *name, const char *value)
{
    return (nghttp2_nv){(uint8_t *) (uintptr_t) name, (uint8_t *) (uintptr_t) value, strlen(name),
                        strlen(value), NGHTTP2_NV_FLAG_NONE};
}
