/* SPDX-License-Identifier: Apache-2.0 */
/* Tables (meta.k8s.io Table): the format that kubectl requests. The writers append JSON text, so
 * that an object's stored bytes are copied unchanged. */
#pragma once

#include "api/kind.h"

enum api_include { API_INCLUDE_METADATA, API_INCLUDE_OBJECT, API_INCLUDE_NONE };

/* The value of "columnDefinitions". */
void api_table_columns(const struct api_kind *k, struct strbuf *out);
/* One element of "rows": 'obj' is the object, 'text' its bytes. */
void api_table_row(const struct api_kind *k, const struct json *obj, const char *text, size_t size,
                   enum api_include include, int64_t now_ms, struct strbuf *out);
/* The value of a column of 'obj', owned; 'now_ms' is the wall clock, for ages. */
struct json *api_column_cell(const struct api_column *c, const struct json *obj, int64_t now_ms);
