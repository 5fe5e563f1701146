/* SPDX-License-Identifier: Apache-2.0 */
/* Output as kubectl writes it: tables, and objects as JSON or YAML.  Pure. */
#pragma once

#include "wire/json.h"

#define PRINT_MAX_COLUMNS 32

struct print_table_options {
    bool wide; /* Columns of priority above 0 too. */
    bool no_headers;
    bool show_namespace; /* A first column NAMESPACE. */
    bool show_labels;    /* A last column LABELS. */
    const char *kind;    /* Before each name: "node" gives "node/n1"; NULL: nothing. */
};
/* Column widths so far: further rows of a watch stay in line.  Starts as zeros. */
struct print_widths {
    size_t width[PRINT_MAX_COLUMNS];
    bool header_done;
};
/* Appends the meta.k8s.io Table 'table'.  The header is written once per 'w'. */
void print_table(const struct json *table, const struct print_table_options *o,
                 struct print_widths *w, struct strbuf *out);

/* -o custom-columns=SPEC: a table of the objects of the array 'items', SPEC being NAME:PATH[,NAME:PATH]...
 * -EINVAL says what is wrong with it. */
int print_custom_columns(const char *spec, const struct json *items, bool no_headers,
                         struct strbuf *out, struct err *e);

/* Rows of cells in columns, as the tables in "describe" are. */
void print_columns(const char *const *cells, size_t n_columns, size_t n_rows, const char *indent,
                   struct strbuf *out);

/* The keys of an object, sorted: an owned array of '*ret_n' strings of the object's. */
const char **print_sorted_keys(const struct json *o, size_t *ret_n);

/* Appends one object (a List for several), keys sorted and without managedFields. */
void print_json(const struct json *v, struct strbuf *out);
void print_yaml(const struct json *v, struct strbuf *out);
