/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/admin/config_file_kind.h"

#include "base/mem.h"
#include "base/timeutil.h"
#include "kubelet/config.h"
#include "master/master_config.h"
#include "node/config.h"
#include "wire/yaml.h"

/* ---- judging ---- */

/* Adds an error of the form "networkConfig.mtu: reason". */
static void add_error(struct option_findings *f, const char *text)
{
    size_t n = strcspn(text, ": ");
    bool has_path = text[n] == ':' && text[n + 1] == ' ';
    CLEANUP_FREE char *path = xstrndup(text, has_path ? n : 0);
    option_findings_add(f, true, path, has_path ? text + n + 2 : text);
}

static bool has_errors(const struct option_findings *f)
{
    for (size_t i = 0; i < f->n; i++) {
        if (f->list[i].is_error) {
            return true;
        }
    }
    return false;
}

/* Rules that join keys are judged only when each key is right. */
static void check_master(const struct json *doc, const char *dir, struct option_findings *f)
{
    __attribute__((cleanup(master_config_donep))) struct master_config c;
    struct err e = {0};
    master_config_init(&c);
    options_check(&master_options, &c, doc, dir, f);
    if (!has_errors(f) &&
        (master_config_join(&c, doc, &e) < 0 || master_config_check(&c, MASTER_WHOLE, &e) < 0)) {
        add_error(f, e.text);
    }
}

static void check_node(const struct json *doc, const char *dir, struct option_findings *f)
{
    CLEANUP(node_config_done) struct node_config c;
    struct err e = {0};
    node_config_init(&c);
    options_check(&node_options, &c, doc, dir, f);
    if (!has_errors(f) && node_config_finish(&c, &e) < 0) {
        add_error(f, e.text);
    }
}

static void check_kubelet(const struct json *doc, const char *dir, struct option_findings *f)
{
    CLEANUP(kubelet_config_done) struct kubelet_config c;
    struct err e = {0};
    kubelet_config_init(&c);
    options_check(&kubelet_options, &c, doc, dir, f);
    if (!has_errors(f) && kubelet_config_finish(&c, &e) < 0) {
        add_error(f, e.text);
    }
}

static const struct config_file_kind kubelet_kind = {"KubeletConfiguration", "kubelet-config.yaml",
                                                     &kubelet_options, NULL, check_kubelet};
static const struct config_file_kind kinds[] = {
    {"MasterConfig", "master-config.yaml", &master_options, NULL, check_master},
    {"NodeConfig", "node-config.yaml", &node_options, &kubelet_kind, check_node},
};

const struct config_file_kind *config_file_kind_find(const char *kind)
{
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        if (streq(kinds[i].kind, kind)) {
            return &kinds[i];
        }
    }
    return streq(kubelet_kind.kind, kind) ? &kubelet_kind : NULL;
}

/* ---- converting ---- */

struct converter {
    const struct option_table *table;
    const struct option_table *other; /* Of the file beside it; NULL: none. */
    const char *dir;
    struct json *out;
    struct strbuf dropped; /* Lines of comment. */
};

static bool is_list(const struct option_row *row)
{
    return row->type == OPTION_LIST || row->type == OPTION_TEXTS;
}

/* The value with absolute names of files (owned). */
static struct json *absolute(const struct converter *c, const struct option_row *row,
                             const struct json *v)
{
    const char *s = json_get_string(v);
    bool files = row->type == OPTION_FILE || row->files;
    if (row->resolve && c->dir) {
        struct json *value = json_clone(v);
        row->resolve(value, c->dir);
        return value;
    }
    if (files && json_is(v, JSON_ARRAY)) {
        struct json *list = json_array();
        for (size_t i = 0; i < json_count(v); i++) {
            json_append(list, absolute(c, row, json_at(v, i)));
        }
        return list;
    }
    return files && c->dir && s && *s && *s != '/' ? json_stringf("%s/%s", c->dir, s)
                                                   : json_clone(v);
}

/* The value that a row of this table has in place of a flag's list of values (owned). */
static struct json *flag_value(const struct option_row *row, const struct option_alias *alias,
                               const struct json *v)
{
    if (!json_is(v, JSON_ARRAY) || is_list(row) || json_count(v) == 0) {
        return json_clone(v);
    }
    const struct json *last = json_at(v, json_count(v) - 1);
    const char *s = json_get_string(last);
    int64_t ns = 0, n = 0;
    if (s && alias && alias->seconds && time_parse_duration(s, &ns) == 0) {
        return json_int(ns / 1000000000);
    }
    if (s && row->type == OPTION_NUMBER && str_to_i64(s, INT64_MIN, INT64_MAX, &n) == 0) {
        return json_int(n);
    }
    return s && row->type == OPTION_BOOL && (streq(s, "true") || streq(s, "false"))
               ? json_bool(streq(s, "true"))
               : json_clone(last);
}

static void set_path(struct json *out, const char *path, struct json *v)
{
    const char *dot;
    while ((dot = strchr(path, '.'))) {
        CLEANUP_FREE char *section = xstrndup(path, (size_t) (dot - path));
        out = json_ensure_object(out, section);
        path = dot + 1;
    }
    json_set(out, path, v);
}

static void drop(struct converter *c, const char *path, const char *why)
{
    enum option_use beside = c->other ? options_place(c->other, path).use : OPTION_USE_NONE;
    if (beside == OPTION_USE_NONE || beside == OPTION_USE_IDLE) {
        strbuf_addf(&c->dropped, "#   %s: %s\n", path, why);
    }
}

/* Adds the entries of the mapping 'v' (taken over), which several keys may have a part of. */
static void merge_path(struct json *out, const char *path, struct json *v)
{
    for (size_t i = 0; i < json_count(v); i++) {
        CLEANUP_FREE char *section = xasprintf("%s.", path);
        struct json *at = out;
        for (const char *p = section, *dot; (dot = strchr(p, '.')); p = dot + 1) {
            CLEANUP_FREE char *name = xstrndup(p, (size_t) (dot - p));
            at = json_ensure_object(at, name);
        }
        json_set(at, json_key_at(v, i), json_clone(json_at(v, i)));
    }
    json_free(v);
}

/* Removes the entries of a mapping that have no effect. */
static void drop_entries(struct converter *c, const char *path, const struct option_row *row,
                         struct json *v)
{
    for (size_t i = json_count(v); row->idle_entry && json_is(v, JSON_OBJECT) && i-- > 0;) {
        const char *why = row->idle_entry(json_key_at(v, i), json_at(v, i));
        if (why) {
            CLEANUP_FREE char *entry = xasprintf("%s.%s", path, json_key_at(v, i));
            drop(c, entry, why);
            (void) json_remove_at(v, i);
        }
    }
}

static void keep(struct converter *c, const char *path, const struct option_row *row,
                 const struct option_alias *alias, const struct json *v)
{
    const char *to = row->path ? row->path : path;
    CLEANUP(json_free)
    struct json *value = streq(to, path) ? json_clone(v) : flag_value(row, alias, v);
    drop_entries(c, path, row, value);
    if (row->idle_entry) {
        merge_path(c->out, to, absolute(c, row, value));
    } else {
        set_path(c->out, to, absolute(c, row, value));
    }
}

static void convert_key(struct converter *c, const char *path, const struct json *v)
{
    const struct option_place at = options_place(c->table, path);
    switch (at.use) {
    case OPTION_USE_ROW:
    case OPTION_USE_ALIAS:
        if (!json_is(v, JSON_NULL)) {
            keep(c, path, at.row, at.alias, v);
        }
        break;
    case OPTION_USE_ARGUMENTS:
    case OPTION_USE_SECTION:
        for (size_t i = 0; i < json_count(v) && json_is(v, JSON_OBJECT); i++) {
            CLEANUP_FREE char *below = xasprintf("%s.%s", path, json_key_at(v, i));
            convert_key(c, below, json_at(v, i));
        }
        break;
    case OPTION_USE_IDLE:
        if (!option_idle_is_quiet(at.idle, v)) {
            drop(c, path, at.idle->why);
        }
        break;
    case OPTION_USE_NONE:
        drop(c, path, "unknown key");
        break;
    }
}

static void convert_one(const struct config_file_kind *kind, const struct option_table *other,
                        const struct json *doc, const char *dir, const char *source,
                        struct strbuf *out, struct option_findings *f)
{
    struct converter c = {.table = kind->table, .other = other, .dir = dir, .dropped = STRBUF_INIT};
    c.out = json_object();
    json_set_string(c.out, "apiVersion", "v1");
    json_set_string(c.out, "kind", kind->kind);
    for (size_t i = 0; i < json_count(doc); i++) {
        const char *key = json_key_at(doc, i);
        if (!streq(key, "apiVersion") && !streq(key, "kind")) {
            convert_key(&c, key, json_at(doc, i));
        }
    }
    kind->check(c.out, dir, f);
    strbuf_addf(out, "# Made by \"tenet adm config convert\" from %s.\n", source);
    if (c.dropped.size) {
        strbuf_addf(out, "# Dropped, because Tenet has nothing that they change:\n%s",
                    strbuf_cstr(&c.dropped));
    }
    yaml_write(c.out, out);
    json_free(c.out);
    strbuf_done(&c.dropped);
}

size_t config_file_convert(const struct config_file_kind *kind, const struct json *doc,
                           const char *dir, const char *source, struct strbuf *texts,
                           const char **names, struct option_findings *f)
{
    const struct config_file_kind *const both[CONFIG_FILES_MAX] = {kind, kind->beside};
    size_t n = 0;
    if (!json_is(doc, JSON_OBJECT)) {
        option_findings_add(f, true, "", "must be a mapping of keys to values");
        return 0;
    }
    for (; n < CONFIG_FILES_MAX && both[n]; n++) {
        const struct config_file_kind *other = kind->beside ? both[!n] : NULL;
        texts[n] = (struct strbuf) STRBUF_INIT;
        names[n] = both[n]->file;
        convert_one(both[n], other ? other->table : NULL, doc, dir, source, &texts[n], f);
    }
    return n;
}
