/* SPDX-License-Identifier: Apache-2.0 */
/* Schemas written down in a test: constants that live as long as the program, at file scope. */
#pragma once

#include "api/schema.h"

#define API_OBJECT_OF(f, definition_, description_)                                            \
    {                                                                                          \
        .type = API_OBJECT, .fields = f, .n_fields = ARRAY_SIZE(f), .definition = definition_, \
        .description = description_                                                            \
    }
#define API_ENUM(...)                               \
    (&(const struct api_schema){.type = API_STRING, \
                                .values_allowed = (const char *const[]){__VA_ARGS__, NULL}})
/* A list that is replaced as a whole. */
#define API_LIST_OF(item) (&(const struct api_schema){.type = API_ARRAY, .items = item})
/* As before for apply, and merged by 'patch_key' in a strategic merge patch. */
#define API_PATCH_LIST(item, patch_key_) \
    (&(const struct api_schema){.type = API_ARRAY, .items = item, .patch_key = patch_key_})
/* Objects identified by members: API_MAP_LIST(&item, patch_key or NULL, "key"...). */
#define API_MAP_LIST(item, patch_key_, ...)                                       \
    (&(const struct api_schema){.type = API_ARRAY,                                \
                                .items = item,                                    \
                                .list_type = API_LIST_MAP,                        \
                                .keys = (const char *const[]){__VA_ARGS__, NULL}, \
                                .patch_key = patch_key_})
/* Objects of any name with values of one shape. */
#define API_MAP_OF(value) (&(const struct api_schema){.type = API_OBJECT, .others = value})
