/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/kubectl/print.h"

#include "api/table/jsonpath.h"
#include "base/mem.h"
#include "wire/yaml.h"

#include <stdlib.h>

#define PADDING 3
#define MIN_WIDTH 6

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *) a, *(const char *const *) b);
}

const char **print_sorted_keys(const struct json *o, size_t *ret_n)
{
    size_t n = json_is(o, JSON_OBJECT) ? json_count(o) : 0;
    const char **keys = xcalloc(n + 1, sizeof(*keys));
    for (size_t i = 0; i < n; i++) {
        keys[i] = json_key_at(o, i);
    }
    qsort(keys, n, sizeof(*keys), by_text);
    return *ret_n = n, keys;
}

/* ---- columns ---- */

/* The number of characters of UTF-8 text. */
static size_t text_width(const char *s)
{
    size_t n = 0;
    for (; *s; s++) {
        n += ((unsigned char) *s & 0xc0) != 0x80;
    }
    return n;
}

/* A grid of cells, all owned. */
struct grid {
    char **cells;
    size_t n_columns, n_rows, cap;
};

static void grid_add_row(struct grid *g)
{
    g->n_rows++;
    g->cells = grow(g->cells, &g->cap, g->n_rows * g->n_columns, sizeof(*g->cells));
}

static char **grid_cell(struct grid *g, size_t row, size_t column)
{
    return &g->cells[row * g->n_columns + column];
}

static void grid_done(struct grid *g)
{
    for (size_t i = 0; i < g->n_rows * g->n_columns; i++) {
        free(g->cells[i]);
    }
    free(g->cells);
}

/* Works like Go's tabwriter with kubectl's settings: all columns but the last are padded with
 * blanks. */
static void grid_write(struct grid *g, const char *indent, size_t *widths, struct strbuf *out)
{
    for (size_t i = 0; i < g->n_rows; i++) {
        for (size_t j = 0; j + 1 < g->n_columns; j++) {
            widths[j] = MAX(widths[j], MAX(text_width(*grid_cell(g, i, j)) + PADDING, MIN_WIDTH));
        }
    }
    for (size_t i = 0; i < g->n_rows; i++) {
        strbuf_adds(out, indent);
        for (size_t j = 0; j < g->n_columns; j++) {
            const char *cell = *grid_cell(g, i, j);
            strbuf_adds(out, cell);
            for (size_t k = text_width(cell); j + 1 < g->n_columns && k < widths[j]; k++) {
                strbuf_addc(out, ' ');
            }
        }
        strbuf_addc(out, '\n');
    }
}

/* Writes the text of a cell: one line, without control characters for terminals. */
static char *clean(const char *s)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    for (; *s; s++) {
        if (*s == '\n' || *s == '\r') {
            strbuf_adds(&b, "...");
            break;
        }
        if (*s == '\033') {
            strbuf_adds(&b, "^[");
        } else {
            strbuf_addc(&b, (unsigned char) *s < 0x20 || *s == 0x7f ? '?' : *s);
        }
    }
    return strbuf_steal(&b);
}

static char *cell_text(const struct json *v)
{
    if (json_is(v, JSON_STRING)) {
        return clean(json_get_string(v));
    }
    return !v || json_is(v, JSON_NULL) ? xstrdup("<none>") : json_to_text(v);
}

void print_columns(const char *const *cells, size_t n_columns, size_t n_rows, const char *indent,
                   struct strbuf *out)
{
    struct grid g = {.n_columns = n_columns};
    for (size_t i = 0; i < n_rows; i++) {
        grid_add_row(&g);
        for (size_t j = 0; j < n_columns; j++) {
            *grid_cell(&g, i, j) = clean(cells[i * n_columns + j]);
        }
    }
    CLEANUP_FREE size_t *widths = xcalloc(n_columns, sizeof(*widths));
    grid_write(&g, indent, widths, out);
    grid_done(&g);
}

void print_rows(const struct json *rows, struct strbuf *out)
{
    size_t columns = json_count(json_at(rows, 0)), n = 0;
    CLEANUP_FREE const char **cells = xcalloc(columns * json_count(rows) + 1, sizeof *cells);
    const struct json *row;
    JSON_FOREACH (row, rows) {
        for (size_t i = 0; i < columns; i++) {
            cells[n++] = json_get_string(json_at(row, i));
        }
    }
    print_columns(cells, columns, json_count(rows), "", out);
}

/* ---- tables ---- */

static char *upper(const char *s)
{
    char *u = xstrdup(s);
    for (char *p = u; *p; p++) {
        *p = *p >= 'a' && *p <= 'z' ? (char) (*p - 'a' + 'A') : *p;
    }
    return u;
}

static char *labels_text(const struct json *labels)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    size_t n = 0;
    CLEANUP_FREE const char **keys = print_sorted_keys(labels, &n);
    for (size_t i = 0; i < n; i++) {
        const char *value = json_get_string(json_get(labels, keys[i]));
        strbuf_addf(&b, "%s%s=%s", i ? "," : "", keys[i], value ? value : "");
    }
    return b.size ? strbuf_steal(&b) : xstrdup("<none>");
}

/* Lists the columns of 'defs' that are shown, as indices; returns their number. */
static size_t choose_columns(const struct json *defs, bool wide, size_t shown[PRINT_MAX_COLUMNS])
{
    size_t n = 0;
    for (size_t i = 0; i < json_count(defs) && n < PRINT_MAX_COLUMNS - 2; i++) {
        if (wide || json_get_int_or(json_get(json_at(defs, i), "priority"), 0) == 0) {
            shown[n++] = i;
        }
    }
    return n;
}

static void add_header(struct grid *g, const struct json *defs, const size_t *shown, size_t n,
                       const struct print_table_options *o)
{
    size_t k = 0;
    grid_add_row(g);
    if (o->show_namespace) {
        *grid_cell(g, 0, k++) = xstrdup("NAMESPACE");
    }
    for (size_t i = 0; i < n; i++) {
        const char *name = json_path_string(json_at(defs, shown[i]), "name", NULL);
        *grid_cell(g, 0, k++) = upper(name ? name : "");
    }
    if (o->show_labels) {
        *grid_cell(g, 0, k) = xstrdup("LABELS");
    }
}

static void add_row(struct grid *g, const struct json *defs, const struct json *row,
                    const size_t *shown, size_t n, const struct print_table_options *o)
{
    size_t k = 0, r = g->n_rows;
    const struct json *meta = json_path(row, "object", "metadata", NULL);
    grid_add_row(g);
    if (o->show_namespace) {
        const char *ns = json_path_string(meta, "namespace", NULL);
        *grid_cell(g, r, k++) = clean(ns ? ns : "");
    }
    for (size_t i = 0; i < n; i++) {
        CLEANUP_FREE char *text = cell_text(json_at(json_get(row, "cells"), shown[i]));
        const char *format = json_path_string(json_at(defs, shown[i]), "format", NULL);
        bool name = o->kind && format && streq(format, "name");
        *grid_cell(g, r, k++) = name ? xasprintf("%s/%s", o->kind, text) : TAKE(text);
    }
    if (o->show_labels) {
        *grid_cell(g, r, k) = labels_text(json_get(meta, "labels"));
    }
}

void print_table(const struct json *table, const struct print_table_options *o,
                 struct print_widths *w, struct strbuf *out)
{
    size_t shown[PRINT_MAX_COLUMNS];
    const struct json *defs = json_get(table, "columnDefinitions"), *row;
    size_t n = choose_columns(defs, o->wide, shown);
    struct grid g = {.n_columns = n + o->show_namespace + o->show_labels};
    if (g.n_columns == 0) {
        return;
    }
    if (!o->no_headers && !w->header_done) {
        add_header(&g, defs, shown, n, o);
    }
    w->header_done = true;
    JSON_FOREACH (row, json_get(table, "rows")) {
        add_row(&g, defs, row, shown, n, o);
    }
    grid_write(&g, "", w->width, out);
    grid_done(&g);
}

/* Splits "NAME:PATH,NAME:PATH" in place into names and paths; returns their number, 0 when the text
 * is wrong. */
static size_t split_columns(char *spec, char *names[PRINT_MAX_COLUMNS],
                            char *paths[PRINT_MAX_COLUMNS])
{
    size_t n = 0;
    for (char *p = spec, *next; p; p = next) {
        next = strchr(p, ',');
        if (next) {
            *next++ = '\0';
        }
        char *colon = strchr(p, ':');
        if (!colon || colon == p || !colon[1] || n == PRINT_MAX_COLUMNS) {
            return 0;
        }
        *colon = '\0';
        names[n] = p;
        paths[n++] = colon + 1;
    }
    return n;
}

int print_custom_columns(const char *spec, const struct json *items, bool no_headers,
                         struct strbuf *out, struct err *e)
{
    char *names[PRINT_MAX_COLUMNS], *paths[PRINT_MAX_COLUMNS];
    CLEANUP_FREE char *text = xstrdup(spec);
    struct grid g = {.n_columns = split_columns(text, names, paths)};
    int r = 0;
    if (g.n_columns == 0) {
        return err_set(e, -EINVAL,
                       "expected <header>:<json-path-expr>[,...] in custom-columns, got \"%.100s\"",
                       spec);
    }
    for (size_t i = no_headers ? 1 : 0; r == 0 && i <= json_count(items); i++) {
        grid_add_row(&g);
        for (size_t j = 0; j < g.n_columns; j++) {
            CLEANUP_STRBUF struct strbuf cell = STRBUF_INIT;
            if (i == 0) {
                strbuf_adds(&cell, names[j]);
            } else if (r == 0) {
                r = jsonpath_join(paths[j], json_at(items, i - 1), ",", &cell, e);
            }
            *grid_cell(&g, g.n_rows - 1, j) = cell.size ? clean(cell.data) : xstrdup("<none>");
        }
    }
    if (r == 0) {
        size_t widths[PRINT_MAX_COLUMNS] = {0};
        grid_write(&g, "", widths, out);
    }
    grid_done(&g);
    return r;
}

/* ---- objects ---- */

/* An owned copy of 'v' with the keys of all objects sorted, the order that kubectl writes. */
static struct json *sorted(const struct json *v)
{
    if (json_is(v, JSON_ARRAY)) {
        struct json *a = json_array();
        for (size_t i = 0; i < json_count(v); i++) {
            json_append(a, sorted(json_at(v, i)));
        }
        return a;
    }
    if (!json_is(v, JSON_OBJECT)) {
        return json_clone(v);
    }
    size_t n = 0;
    CLEANUP_FREE const char **keys = print_sorted_keys(v, &n);
    struct json *o = json_object();
    for (size_t i = 0; i < n; i++) {
        json_set(o, keys[i], sorted(json_get(v, keys[i])));
    }
    return o;
}

static struct json *for_print(const struct json *v)
{
    struct json *o = sorted(v), *item;
    struct json *meta = json_get(o, "metadata");
    if (json_is(meta, JSON_OBJECT)) {
        json_remove(meta, "managedFields");
    }
    JSON_FOREACH (item, json_get(o, "items")) {
        meta = json_get(item, "metadata");
        if (json_is(meta, JSON_OBJECT)) {
            json_remove(meta, "managedFields");
        }
    }
    return o;
}

void print_json(const struct json *v, struct strbuf *out)
{
    CLEANUP(json_free) struct json *o = for_print(v);
    json_write(o, 4, out);
    strbuf_addc(out, '\n');
}

void print_yaml(const struct json *v, struct strbuf *out)
{
    CLEANUP(json_free) struct json *o = for_print(v);
    yaml_write(o, out);
}
