/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/options.h"

#include "base/mem.h"
#include "base/suggest.h"
#include "base/timeutil.h"

#include <stdio.h>

static void *member(const struct option_row *row, void *config)
{
    return (char *) config + row->offset;
}

static char **texts_free(char **list)
{
    for (size_t i = 0; list && list[i]; i++) {
        free(list[i]);
    }
    free(list);
    return NULL;
}

/* ---- storing ---- */

static int store_text(char **to, const char *s)
{
    free(*to);
    *to = *s ? xstrdup(s) : NULL;
    return 0;
}

static bool is_choice(const char *choices, const char *s)
{
    size_t n = strlen(s);
    for (const char *p = choices; *p; p += strspn(p, " ")) {
        size_t size = strcspn(p, " ");
        if (size == n && memcmp(p, s, n) == 0) {
            return true;
        }
        p += size;
    }
    return false;
}

static int check_choice(const struct option_row *row, const char *s, struct err *e)
{
    CLEANUP_STRBUF struct strbuf list = STRBUF_INIT;
    for (const char *p = row->choices; *p; p++) {
        strbuf_adds(&list, *p == ' ' ? ", " : (char[]){*p, '\0'});
    }
    return is_choice(row->choices, s)
               ? 0
               : err_set(e, -EINVAL, "\"%.40s\" is not one of %s", s, strbuf_cstr(&list));
}

static int set_bool(const struct option_row *row, void *config, const char *s, struct err *e)
{
    if (!streq(s, "true") && !streq(s, "false")) {
        return err_set(e, -EINVAL, "\"%.40s\" is neither true nor false", s);
    }
    *(bool *) member(row, config) = streq(s, "true");
    return 0;
}

static void store_number(const struct option_row *row, void *config, int64_t v)
{
    void *to = member(row, config);
    if (row->size == sizeof(uint16_t)) {
        *(uint16_t *) to = (uint16_t) v;
    } else if (row->size == sizeof(uint32_t)) {
        *(uint32_t *) to = (uint32_t) v;
    } else {
        *(int64_t *) to = v;
    }
}

static int set_number(const struct option_row *row, void *config, const char *s, struct err *e)
{
    int64_t v = 0;
    if (str_to_i64(s, INT64_MIN, INT64_MAX, &v) < 0) {
        return err_set(e, -EINVAL, "\"%.40s\" is not a whole number", s);
    }
    if (v < row->min || v > row->max) {
        return err_set(e, -EINVAL, "%lld is not in %lld-%lld", (long long) v, (long long) row->min,
                       (long long) row->max);
    }
    store_number(row, config, v);
    return 0;
}

int option_split_endpoint(const char *s, char host[OPTION_HOST_SIZE], uint64_t *ret_port)
{
    const char *colon = strrchr(s, ':');
    uint32_t addr = 0;
    if (!colon || colon - s >= OPTION_HOST_SIZE ||
        str_to_u64(colon + 1, UINT16_MAX, ret_port) < 0) {
        return -EINVAL;
    }
    memcpy(host, s, (size_t) (colon - s));
    host[colon - s] = '\0';
    return streq(host, "localhost") ? 0 : ip4_parse(host, &addr);
}

static int check_endpoint(const struct option_row *row, const char *s, struct err *e)
{
    char host[OPTION_HOST_SIZE];
    uint64_t port = 0;
    if (option_split_endpoint(s, host, &port) < 0 || (int64_t) port < row->min) {
        return err_set(e, -EINVAL, "\"%.80s\" is not an IPv4 address and port such as %s", s,
                       row->dflt ? row->dflt : row->example);
    }
    return 0;
}

/* The items of "a,b" as a list that NULL ends; "": no item. */
static char **split(const char *s)
{
    char **list = xcalloc(strlen(s) + 2, sizeof(*list));
    size_t n = 0;
    for (const char *p = s; *p; p += *p == ',') {
        size_t size = strcspn(p, ",");
        list[n++] = xstrndup(p, size);
        p += size;
    }
    return list;
}

static int set_list(const struct option_row *row, void *config, const char *s, struct err *e)
{
    char **list = split(s);
    int r = !*s && row->not_empty ? err_set(e, -EINVAL, "must not be empty") : 0;
    for (size_t i = 0; r == 0 && list[i]; i++) {
        r = !*list[i]    ? err_set(e, -EINVAL, "\"%.80s\" has an empty item", s)
            : row->check ? row->check(list[i], e)
                         : 0;
    }
    if (r == 0 && row->type == OPTION_TEXTS) {
        char ***to = member(row, config);
        texts_free(*to);
        *to = TAKE(list);
    } else if (r == 0) {
        store_text(member(row, config), s);
    }
    texts_free(list);
    return r;
}

int option_set(const struct option_row *row, void *config, const char *s, struct err *e)
{
    int r = 0;
    if (row->set) {
        return row->set(config, s, e);
    }
    if (row->set_path) {
        return row->set_path(config, row->path, s, e);
    }
    switch (row->type) {
    case OPTION_BOOL:
        return set_bool(row, config, s, e);
    case OPTION_NUMBER:
        return set_number(row, config, s, e);
    case OPTION_CIDR:
        return prefix_parse(s, member(row, config), e);
    case OPTION_LIST:
    case OPTION_TEXTS:
        return set_list(row, config, s, e);
    case OPTION_TEXT:
    case OPTION_FILE:
        r = *s ? 0 : err_set(e, -EINVAL, "must not be empty");
        break;
    case OPTION_CHOICE:
        r = check_choice(row, s, e);
        break;
    case OPTION_ENDPOINT:
        r = check_endpoint(row, s, e);
        break;
    }
    if (r == 0 && row->check) {
        r = row->check(s, e);
    }
    return r < 0 ? r : store_text(member(row, config), s);
}

/* ---- findings ---- */

void option_findings_add(struct option_findings *f, bool is_error, const char *path,
                         const char *text)
{
    if (f->n == f->cap) {
        f->cap = f->cap ? f->cap * 2 : 8;
        f->list = xreallocarray(f->list, f->cap, sizeof(*f->list));
    }
    f->list[f->n++] = (struct option_finding){is_error, xstrdup(path), xstrdup(text)};
}

void option_findings_done(struct option_findings *f)
{
    for (size_t i = 0; i < f->n; i++) {
        free(f->list[i].path);
        free(f->list[i].text);
    }
    free(f->list);
    *f = (struct option_findings){0};
}

/* ---- places of keys ---- */

const struct option_row *options_find(const struct option_table *t, const char *path)
{
    for (size_t i = 0; i < t->n; i++) {
        if (t->rows[i].path && streq(t->rows[i].path, path)) {
            return &t->rows[i];
        }
    }
    return NULL;
}

static const struct option_row *find_flag(const struct option_table *t, const char *flag)
{
    for (size_t i = 0; i < t->n; i++) {
        if (t->rows[i].flag && streq(t->rows[i].flag, flag)) {
            return &t->rows[i];
        }
    }
    return NULL;
}

/* Whether 'path' is below 'above' ("networkConfig.mtu" is below "networkConfig"). */
static bool is_below(const char *path, const char *above)
{
    size_t n = strlen(above);
    return path && strncmp(path, above, n) == 0 && path[n] == '.';
}

static bool is_section(const struct option_table *t, const char *name)
{
    for (size_t i = 0; i < t->n; i++) {
        if (is_below(t->rows[i].path, name)) {
            return true;
        }
    }
    for (const struct option_alias *a = t->alias; a && a->path; a++) {
        if (is_below(a->path, name)) {
            return true;
        }
    }
    for (const struct option_idle *i = t->idle; i && i->path; i++) {
        if (is_below(i->path, name)) {
            return true;
        }
    }
    return false;
}

/* The row of 'path' itself, or of the nearest key above it; NULL: none. */
static const struct option_idle *find_idle(const struct option_table *t, const char *path)
{
    const struct option_idle *found = NULL;
    for (const struct option_idle *i = t->idle; i && i->path; i++) {
        if ((streq(path, i->path) || is_below(path, i->path)) &&
            (!found || strlen(i->path) > strlen(found->path))) {
            found = i;
        }
    }
    return found;
}

struct option_place options_place(const struct option_table *t, const char *path)
{
    const struct option_row *row = options_find(t, path);
    if (t->arguments && streq(path, t->arguments)) {
        return (struct option_place){.use = OPTION_USE_ARGUMENTS, .row = row};
    }
    if (t->arguments && is_below(path, t->arguments)) {
        row = find_flag(t, path + strlen(t->arguments) + 1);
    }
    if (row) {
        return (struct option_place){.use = OPTION_USE_ROW, .row = row};
    }
    for (const struct option_alias *a = t->alias; a && a->path; a++) {
        if (streq(a->path, path)) {
            return (struct option_place){
                .use = OPTION_USE_ALIAS, .row = options_find(t, a->to), .alias = a};
        }
    }
    const struct option_idle *idle = find_idle(t, path);
    return (struct option_place){.use = is_section(t, path) ? OPTION_USE_SECTION
                                        : idle              ? OPTION_USE_IDLE
                                                            : OPTION_USE_NONE,
                                 .idle = idle};
}

bool option_idle_is_quiet(const struct option_idle *idle, const struct json *v)
{
    const char *s = json_is(v, JSON_BOOL)     ? (json_get_bool(v, false) ? "true" : "false")
                    : json_is(v, JSON_NUMBER) ? json_number_text(v)
                                              : json_get_string(v);
    if (json_is(v, JSON_NULL) || (s && !*s)) {
        return true;
    }
    if (json_is(v, JSON_ARRAY) || json_is(v, JSON_OBJECT)) {
        return json_count(v) == 0;
    }
    return s && streq_null(idle->quiet, s);
}

/* The known key that an unknown one is probably meant to be: beside it, or of the same name
 * elsewhere; NULL: none. */
static const char *near_key(const struct option_table *t, const char *path)
{
    const char *dot = strrchr(path, '.');
    size_t n = 0, above = dot ? (size_t) (dot - path) + 1 : 0;
    const char **words = xcalloc(t->n + 1, sizeof(*words));
    if (t->arguments && is_below(path, t->arguments)) {
        for (size_t i = 0; i < t->n; i++) {
            words[n] = t->rows[i].flag;
            n += words[n] != NULL;
        }
        const char *flag = suggest(path + above, words, n);
        free(words);
        return flag;
    }
    for (size_t i = 0; i < t->n; i++) {
        const char *other = t->rows[i].path;
        if (other && strncmp(other, path, above) == 0) {
            words[n++] = other + above;
        }
    }
    const char *found = suggest(path + above, words, n);
    found = found ? found - above : NULL;
    for (size_t i = 0; i < t->n && !found; i++) {
        const char *other = t->rows[i].path;
        const char *last = other ? strrchr(other, '.') : NULL;
        found = last && streq(last + 1, path + above) ? other : NULL;
    }
    free(words);
    return found;
}

static int unknown_key(const struct option_table *t, const char *path, struct err *e)
{
    const char *near = near_key(t, path);
    return near ? err_set(e, -EINVAL, "unknown key; did you mean %.160s?", near)
                : err_set(e, -EINVAL, "unknown key");
}

/* ---- the file ---- */

struct reader {
    const struct option_table *table;
    void *config;
    const char *dir;
    struct option_findings *findings; /* NULL: warnings are not kept. */
    bool goes_on;                     /* Errors are findings. */
};

static void add_file(const struct reader *rd, const char *s, struct strbuf *out)
{
    if (rd->dir && *s && *s != '/') {
        strbuf_addf(out, "%s/", rd->dir);
    }
    strbuf_adds(out, s);
}

static int join_list(const struct reader *rd, const struct option_row *row, const struct json *v,
                     struct strbuf *out, struct err *e)
{
    if (!json_is(v, JSON_ARRAY) || (row->not_empty && json_count(v) == 0)) {
        return err_set(e, -EINVAL, "must be a list of %s", row->items ? row->items : "strings");
    }
    for (size_t i = 0; i < json_count(v); i++) {
        const char *s = json_get_string(json_at(v, i));
        if (!s || !*s || strchr(s, ',')) {
            return err_set(e, -EINVAL, "[%zu]: must be a string without commas", i);
        }
        strbuf_adds(out, i ? "," : "");
        if (row->files) {
            add_file(rd, s, out);
        } else {
            strbuf_adds(out, s);
        }
    }
    return 0;
}

/* The text that a flag would have for the value; "off" is false to YAML 1.1. */
static const char *scalar_text(const struct reader *rd, const struct option_row *row,
                               const struct json *v)
{
    if (json_is(v, JSON_BOOL) && row->type == OPTION_BOOL) {
        return json_get_bool(v, false) ? "true" : "false";
    }
    if (json_is(v, JSON_BOOL) && row->type == OPTION_CHOICE && !json_get_bool(v, true) &&
        is_choice(row->choices, "off")) {
        return "off";
    }
    if (json_is(v, JSON_NUMBER) &&
        (row->type == OPTION_NUMBER || row->type == OPTION_BOOL || rd->table->any_scalar)) {
        return json_number_text(v);
    }
    return row->type == OPTION_NUMBER && !rd->table->any_scalar ? NULL : json_get_string(v);
}

static bool is_list(const struct option_row *row)
{
    return row->type == OPTION_LIST || row->type == OPTION_TEXTS;
}

static int set_text(const struct reader *rd, const struct option_row *row, const char *s,
                    struct err *e)
{
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    if (row->type == OPTION_FILE) {
        add_file(rd, s, &text);
        s = strbuf_cstr(&text);
    }
    return option_set(row, rd->config, s, e);
}

static int read_value(const struct reader *rd, const struct option_row *row, const struct json *v,
                      struct err *e)
{
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    int64_t i = 0;
    if (row->read) {
        CLEANUP(json_free) struct json *own = row->resolve && rd->dir ? json_clone(v) : NULL;
        if (own) {
            row->resolve(own, rd->dir);
        }
        return row->read(rd->config, own ? own : v, e);
    }
    const char *s = scalar_text(rd, row, v);
    if (is_list(row) && !(s && rd->table->any_scalar)) {
        int r = join_list(rd, row, v, &text, e);
        return r < 0 ? r : option_set(row, rd->config, strbuf_cstr(&text), e);
    }
    if (row->type == OPTION_NUMBER && (!s || str_to_i64(s, INT64_MIN, INT64_MAX, &i) < 0)) {
        return err_set(e, -EINVAL, "must be a whole number");
    }
    if (!s) {
        return err_set(e, -EINVAL, "must be %s",
                       row->type == OPTION_BOOL ? "true or false" : "a string");
    }
    if (row->type == OPTION_FILE && !*s && !row->dflt) {
        return 0; /* OpenShift's files have an empty name where there is no file. */
    }
    return set_text(rd, row, s, e);
}

static int set_seconds(const struct reader *rd, const struct option_row *row, const char *s,
                       struct err *e)
{
    int64_t ns = 0;
    char text[24];
    if (time_parse_duration(s, &ns) < 0 || ns < 0 || ns % 1000000000) {
        return err_set(e, -EINVAL, "\"%.40s\" is not whole seconds such as 40s or 1m30s", s);
    }
    snprintf(text, sizeof(text), "%lld", (long long) (ns / 1000000000));
    return option_set(row, rd->config, text, e);
}

/* A key with the values that a flag of another program has: a list of texts, of which the last one
 * counts unless the row has a list, too. */
static int read_flags(const struct reader *rd, const struct option_place *at, const struct json *v,
                      struct err *e)
{
    const struct option_row *row = at->row;
    if (!json_is(v, JSON_ARRAY)) {
        return read_value(rd, row, v, e);
    }
    if (is_list(row) && !row->read) {
        CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
        for (size_t i = 0; i < json_count(v); i++) {
            const char *s = json_get_string(json_at(v, i));
            if (!s) {
                return err_set(e, -EINVAL, "[%zu]: must be a string", i);
            }
            strbuf_addf(&text, "%s%s", i ? "," : "", s);
        }
        return option_set(row, rd->config, strbuf_cstr(&text), e);
    }
    for (size_t i = 0; i < json_count(v); i++) {
        const char *s = json_get_string(json_at(v, i));
        int r = !s                                ? err_set(e, -EINVAL, "must be a string")
                : at->alias && at->alias->seconds ? set_seconds(rd, row, s, e)
                                                  : set_text(rd, row, s, e);
        if (r < 0) {
            return err_prefix(e, "[%zu]", i), r;
        }
    }
    return 0;
}

/* Whether the error of a value goes on with a path below its key. */
static bool goes_on_below(const char *text)
{
    return *text == '[' || *text == '.';
}

/* Puts the key before the error of its value. */
static int prefix_path(struct err *e, const char *path, int r)
{
    CLEANUP_FREE char *text = e ? xstrdup(e->text) : NULL;
    if (r < 0 && text && goes_on_below(text)) {
        return err_set(e, r, "%s%s", path, text);
    }
    return r < 0 ? (err_prefix(e, "%.160s", path), r) : 0;
}

static void add_error(struct option_findings *f, const char *path, const char *text)
{
    const char *reason = goes_on_below(text) ? strstr(text, ": ") : NULL;
    CLEANUP_FREE char *whole = xasprintf("%s%.*s", path, reason ? (int) (reason - text) : 0, text);
    option_findings_add(f, true, whole, reason ? reason + 2 : text);
}

/* Ends the reading with the error in 'e', or goes on with it as a finding. */
static int fail(const struct reader *rd, const char *path, int r, struct err *e)
{
    if (r < 0 && rd->goes_on) {
        add_error(rd->findings, path, e->text);
        return 0;
    }
    return prefix_path(e, path, r);
}

static void warn(const struct reader *rd, const char *path, const struct option_idle *idle,
                 const struct json *v)
{
    if (rd->findings && !option_idle_is_quiet(idle, v)) {
        option_findings_add(rd->findings, false, path, idle->why);
    }
}

static void warn_of_entries(const struct reader *rd, const struct option_row *row, const char *path,
                            const struct json *v)
{
    for (size_t i = 0; rd->findings && row->idle_entry && i < json_count(v); i++) {
        const char *why = row->idle_entry(json_key_at(v, i), json_at(v, i));
        CLEANUP_FREE char *entry = why ? xasprintf("%s.%s", path, json_key_at(v, i)) : NULL;
        if (why) {
            option_findings_add(rd->findings, false, entry, why);
        }
    }
}

/* Reads the value of a key that has a row, or stands for one. */
static int read_place(const struct reader *rd, const char *path, const struct option_place *at,
                      const struct json *v, struct err *e)
{
    bool flags = at->alias || (rd->table->arguments && is_below(path, rd->table->arguments));
    int r = json_is(v, JSON_NULL) ? 0
            : flags               ? read_flags(rd, at, v, e)
                                  : read_value(rd, at->row, v, e);
    if (r == 0) {
        warn_of_entries(rd, at->row, path, v);
    }
    return fail(rd, path, r, e);
}

static int read_section(const struct reader *rd, const char *name, const struct json *v,
                        struct err *e);

static int read_key(const struct reader *rd, const char *path, const struct json *v, struct err *e)
{
    const struct option_place at = options_place(rd->table, path);
    switch (at.use) {
    case OPTION_USE_ROW:
    case OPTION_USE_ALIAS:
        return read_place(rd, path, &at, v, e);
    case OPTION_USE_ARGUMENTS:
    case OPTION_USE_SECTION:
        return read_section(rd, path, v, e);
    case OPTION_USE_IDLE:
        warn(rd, path, at.idle, v);
        return 0;
    case OPTION_USE_NONE:
        break;
    }
    return fail(rd, path, unknown_key(rd->table, path, e), e);
}

static int read_section(const struct reader *rd, const char *name, const struct json *v,
                        struct err *e)
{
    if (!json_is(v, JSON_OBJECT) && !json_is(v, JSON_NULL)) {
        return fail(rd, name, err_set(e, -EINVAL, "must be a mapping of keys to values"), e);
    }
    for (size_t i = 0; i < json_count(v); i++) {
        CLEANUP_FREE char *path = xasprintf("%s.%s", name, json_key_at(v, i));
        int r = read_key(rd, path, json_at(v, i), e);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

static int read_type(const struct reader *rd, const char *key, const struct json *v,
                     const char *want, const char *other, struct err *e)
{
    const char *s = json_get_string(v);
    int r = streq_null(s, want) || (other && streq_null(s, other))
                ? 0
                : err_set(e, -EINVAL, "must be \"%s\"", want);
    return fail(rd, key, r, e);
}

static int read_document(const struct reader *rd, const struct json *doc, struct err *e)
{
    const struct option_table *t = rd->table;
    int r = 0;
    if (!json_is(doc, JSON_OBJECT)) {
        r = err_set(e, -EINVAL, "must be a mapping of keys to values");
        if (rd->goes_on) {
            option_findings_add(rd->findings, true, "", e->text);
        }
        return rd->goes_on ? 0 : r;
    }
    for (size_t i = 0; r == 0 && i < json_count(doc); i++) {
        const char *key = json_key_at(doc, i);
        const struct json *v = json_at(doc, i);
        r = streq(key, "apiVersion") ? read_type(rd, key, v, "v1", NULL, e)
            : streq(key, "kind")     ? read_type(rd, key, v, t->kind, t->other_kind, e)
                                     : read_key(rd, key, v, e);
    }
    return r;
}

int options_read(const struct option_table *t, void *config, const struct json *doc,
                 const char *dir, struct err *e)
{
    void *kept = t->findings ? (char *) config + t->findings : NULL;
    const struct reader rd = {.table = t, .config = config, .dir = dir, .findings = kept};
    return read_document(&rd, doc, e);
}

void options_check(const struct option_table *t, void *config, const struct json *doc,
                   const char *dir, struct option_findings *f)
{
    struct err e = {0};
    const struct reader rd = {t, config, dir, f, true};
    (void) read_document(&rd, doc, &e);
}

/* ---- single values ---- */

int options_set_flag(const struct option_table *t, void *config, const char *flag,
                     const char *value, struct err *e)
{
    const struct option_row *row = find_flag(t, flag);
    int r = row ? option_set(row, config, value, e) : 0;
    return !row    ? err_set(e, -EINVAL, "--%.80s: unknown option", flag)
           : r < 0 ? (err_prefix(e, "--%s", flag), r)
                   : 0;
}

int options_set_path(const struct option_table *t, void *config, const char *path,
                     const char *value, struct err *e)
{
    const struct option_row *row = options_find(t, path);
    return row ? prefix_path(e, path, option_set(row, config, value, e))
               : err_set(e, -EINVAL, "%.160s: unknown key", path);
}

bool option_is_for(const struct option_row *row, unsigned daemons)
{
    return !daemons || !row->daemons || row->daemons & daemons;
}

void options_init(const struct option_table *t, void *config)
{
    for (size_t i = 0; i < t->n; i++) {
        const struct option_row *row = &t->rows[i];
        int r = row->dflt ? option_set(row, config, row->dflt, NULL) : 0;
        assert(r == 0);
        (void) r;
    }
}

void options_done(const struct option_table *t, void *config)
{
    if (t->findings) {
        option_findings_done((void *) ((char *) config + t->findings));
    }
    for (size_t i = 0; i < t->n; i++) {
        const struct option_row *row = &t->rows[i];
        if (!row->size || row->type == OPTION_BOOL || row->type == OPTION_NUMBER ||
            row->type == OPTION_CIDR) {
            continue;
        }
        if (row->type == OPTION_TEXTS) {
            char ***list = member(row, config);
            *list = texts_free(*list);
        } else {
            char **text = member(row, config);
            free(*text);
            *text = NULL;
        }
    }
}
