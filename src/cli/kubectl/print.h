/* SPDX-License-Identifier: Apache-2.0 */
/* Prints tables, and objects as JSON or YAML, in kubectl's form. Pure. */
#pragma once

#include "wire/json.h"

#define PRINT_MAX_COLUMNS 32

struct print_table_options {
    bool wide; /* Print columns of priority above 0, too. */
    bool no_headers;
    bool show_namespace; /* Print a first column NAMESPACE. */
    bool show_labels;    /* Print a last column LABELS. */
    const char *kind;    /* Prefix of each name: "node" gives "node/n1"; NULL: none. */
};
/* Column widths so far: further rows of a watch stay in line.  Starts as zeros. */
struct print_widths {
    size_t width[PRINT_MAX_COLUMNS];
    bool header_done;
};
/* Appends the meta.k8s.io Table 'table'.  The header is written once per 'w'. */
void print_table(const struct json *table, const struct print_table_options *o,
                 struct print_widths *w, struct strbuf *out);

/* -o custom-columns=SPEC: appends a table of the objects of the array 'items'; SPEC is
 * NAME:PATH[,NAME:PATH]...  -EINVAL: SPEC is wrong, and '*e' says why. */
int print_custom_columns(const char *spec, const struct json *items, bool no_headers,
                         struct strbuf *out, struct err *e);

/* Appends rows of cells in columns, like the tables in "describe". */
void print_columns(const char *const *cells, size_t n_columns, size_t n_rows, const char *indent,
                   struct strbuf *out);

/* The same for rows that are an array of arrays of strings, of equal lengths. */
void print_rows(const struct json *rows, struct strbuf *out);

/* Returns the sorted keys of an object: an owned array of '*ret_n' strings that the object owns. */
const char **print_sorted_keys(const struct json *o, size_t *ret_n);

/* Appends one object (a List if there are several), with sorted keys and without managedFields. */
void print_json(const struct json *v, struct strbuf *out);
void print_yaml(const struct json *v, struct strbuf *out);
