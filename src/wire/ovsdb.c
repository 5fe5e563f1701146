/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/ovsdb.h"

#include "base/mem.h"

#include <ctype.h>
#include <inttypes.h>

/* ---- framing ---- */

int ovsdb_frame(struct ovsdb_framer *f, const char *data, size_t size, size_t *ret_size,
                struct err *e)
{
    size_t i = f->scanned;
    for (; i < size; i++) {
        char c = data[i];
        if (f->in_string) {
            if (f->escaped) {
                f->escaped = false;
            } else if (c == '\\') {
                f->escaped = true;
            } else if (c == '"') {
                f->in_string = false;
            }
            continue;
        }
        if (f->depth == 0) {
            if (c == ' ' || c == '\n' || c == '\r' || c == '\t') {
                continue;
            }
            if (c != '{') {
                return err_set(e, -EBADMSG, "byte 0x%02x where a JSON-RPC message should start",
                               (unsigned char) c);
            }
        }
        if (c == '"') {
            f->in_string = true;
        } else if (c == '{' || c == '[') {
            f->depth++;
        } else if ((c == '}' || c == ']') && --f->depth == 0) {
            *f = (struct ovsdb_framer){0};
            *ret_size = i + 1;
            return 0;
        }
    }
    f->scanned = i;
    return -EAGAIN;
}

static const struct json *not_null(const struct json *v)
{
    return v && json_type(v) != JSON_NULL ? v : NULL;
}

int ovsdb_msg_parse(const char *text, size_t size, struct ovsdb_msg *ret, struct err *e)
{
    CLEANUP(json_free) struct json *json = NULL;
    int r = json_parse(text, size, &json, e);
    if (r < 0) {
        if (e) {
            e->code = -EBADMSG;
        }
        return -EBADMSG;
    }
    struct ovsdb_msg m = {0};
    const struct json *method = json_get(json, "method");
    m.id = not_null(json_get(json, "id"));
    if (not_null(method)) {
        m.method = json_get_string(method);
        m.params = json_get(json, "params");
        m.kind = m.id ? OVSDB_REQUEST : OVSDB_NOTIFICATION;
        if (!m.method || !json_is(m.params, JSON_ARRAY)) {
            return err_set(e, -EBADMSG, "JSON-RPC message without method name or params array");
        }
    } else {
        m.kind = OVSDB_REPLY;
        m.result = not_null(json_get(json, "result"));
        m.error = not_null(json_get(json, "error"));
        if (!m.id || (m.result && m.error)) {
            return err_set(e, -EBADMSG, "JSON-RPC message is neither request nor reply");
        }
    }
    m.json = TAKE(json);
    *ret = m;
    return 0;
}

void ovsdb_msg_done(struct ovsdb_msg *m)
{
    json_free(m->json);
    *m = (struct ovsdb_msg){0};
}

bool ovsdb_msg_id(const struct ovsdb_msg *m, uint64_t *ret)
{
    int64_t id;
    if (json_get_int(m->id, &id) < 0 || id < 0) {
        return false;
    }
    *ret = (uint64_t) id;
    return true;
}

/* ---- messages to the server ---- */

void ovsdb_put_transact(struct strbuf *out, uint64_t id, const char *db, const struct json *ops)
{
    strbuf_addf(out, "{\"id\":%" PRIu64 ",\"method\":\"transact\",\"params\":[", id);
    json_write_string(db, strlen(db), out);
    const struct json *op;
    JSON_FOREACH (op, ops) {
        strbuf_addc(out, ',');
        json_write(op, 0, out);
    }
    strbuf_adds(out, "]}");
}

void ovsdb_put_monitor_cond(struct strbuf *out, uint64_t id, const char *db, const char *monitor,
                            const struct json *tables)
{
    strbuf_addf(out, "{\"id\":%" PRIu64 ",\"method\":\"monitor_cond\",\"params\":[", id);
    json_write_string(db, strlen(db), out);
    strbuf_addc(out, ',');
    json_write_string(monitor, strlen(monitor), out);
    strbuf_addc(out, ',');
    json_write(tables, 0, out);
    strbuf_adds(out, "]}");
}

void ovsdb_put_echo(struct strbuf *out, uint64_t id)
{
    strbuf_addf(out, "{\"id\":%" PRIu64 ",\"method\":\"echo\",\"params\":[]}", id);
}

static void put_reply(struct strbuf *out, const struct ovsdb_msg *request,
                      const struct json *result, const char *error)
{
    strbuf_adds(out, "{\"id\":");
    json_write(request->id, 0, out);
    strbuf_adds(out, ",\"result\":");
    if (result) {
        json_write(result, 0, out);
    } else {
        strbuf_adds(out, "null");
    }
    strbuf_adds(out, ",\"error\":");
    if (error) {
        json_write_string(error, strlen(error), out);
    } else {
        strbuf_adds(out, "null");
    }
    strbuf_addc(out, '}');
}

void ovsdb_put_echo_reply(struct strbuf *out, const struct ovsdb_msg *request)
{
    put_reply(out, request, request->params, NULL);
}

void ovsdb_put_unknown_method(struct strbuf *out, const struct ovsdb_msg *request)
{
    put_reply(out, request, NULL, "unknown method");
}

/* ---- values ---- */

/* An array of the values that are not NULL; takes ownership of them. */
static struct json *array(struct json *a, struct json *b, struct json *c)
{
    struct json *v = json_array();
    json_append(v, a);
    json_append(v, b);
    json_append(v, c);
    return v;
}

static struct json *tagged(const char *tag, struct json *v)
{
    return array(json_string(tag), v, NULL);
}

struct json *ovsdb_uuid(const char *uuid)
{
    return tagged("uuid", json_string(uuid));
}

struct json *ovsdb_named_uuid(const char *name)
{
    return tagged("named-uuid", json_string(name));
}

struct json *ovsdb_set(void)
{
    return tagged("set", json_array());
}

struct json *ovsdb_set_add(struct json *set, struct json *atom)
{
    json_append(json_at(set, 1), atom);
    return set;
}

struct json *ovsdb_map(void)
{
    return tagged("map", json_array());
}

struct json *ovsdb_map_add(struct json *map, const char *key, const char *value)
{
    json_append(json_at(map, 1), array(json_string(key), json_string(value), NULL));
    return map;
}

/* Members of ["TAG", [...]]; NULL when 'v' is something else. */
static const struct json *members(const struct json *v, const char *tag)
{
    if (!json_is(v, JSON_ARRAY) || json_count(v) != 2) {
        return NULL;
    }
    const char *t = json_get_string(json_at(v, 0));
    const struct json *list = json_at(v, 1);
    return t && streq(t, tag) && json_is(list, JSON_ARRAY) ? list : NULL;
}

size_t ovsdb_set_count(const struct json *v)
{
    const struct json *list = members(v, "set");
    return list ? json_count(list) : v ? 1 : 0;
}

const struct json *ovsdb_set_at(const struct json *v, size_t i)
{
    const struct json *list = members(v, "set");
    return list ? json_at(list, i) : i == 0 ? v : NULL;
}

static bool uuid_is_valid(const char *s)
{
    for (size_t i = 0; i < OVSDB_UUID_SIZE - 1; i++) {
        bool dash = i == 8 || i == 13 || i == 18 || i == 23;
        if (dash ? s[i] != '-' : !isxdigit((unsigned char) s[i])) {
            return false;
        }
    }
    return s[OVSDB_UUID_SIZE - 1] == '\0';
}

const char *ovsdb_get_uuid(const struct json *atom)
{
    if (!json_is(atom, JSON_ARRAY) || json_count(atom) != 2) {
        return NULL;
    }
    const char *tag = json_get_string(json_at(atom, 0));
    const char *uuid = json_get_string(json_at(atom, 1));
    return tag && uuid && streq(tag, "uuid") && uuid_is_valid(uuid) ? uuid : NULL;
}

static int bad_column(const char *column, const char *expected, struct err *e)
{
    return err_set(e, -EBADMSG, "column %s is not %s", column, expected);
}

int ovsdb_read_string(const struct json *row, const char *column, char **value, struct err *e)
{
    const struct json *v = json_get(row, column);
    if (!v) {
        return 0;
    }
    const char *s = json_get_string(ovsdb_set_at(v, 0));
    size_t n = ovsdb_set_count(v);
    if (n > 1 || (n == 1 && !s)) {
        return bad_column(column, "a string", e);
    }
    free(*value);
    *value = s ? xstrdup(s) : NULL;
    return 0;
}

int ovsdb_read_int(const struct json *row, const char *column, int64_t none, int64_t *value,
                   struct err *e)
{
    const struct json *v = json_get(row, column);
    if (!v) {
        return 0;
    }
    size_t n = ovsdb_set_count(v);
    int64_t i = none;
    if (n > 1 || (n == 1 && json_get_int(ovsdb_set_at(v, 0), &i) < 0)) {
        return bad_column(column, "an integer", e);
    }
    *value = i;
    return 0;
}

static const char *set_key(const struct json *atom)
{
    const char *s = json_get_string(atom);
    return s ? s : ovsdb_get_uuid(atom);
}

int ovsdb_read_set(const struct json *row, const char *column, bool diff, struct smap *set,
                   struct err *e)
{
    static char present; /* Any address that is not NULL. */
    const struct json *v = json_get(row, column);
    if (!v) {
        return 0;
    }
    size_t n = ovsdb_set_count(v);
    for (size_t i = 0; i < n; i++) {
        if (!set_key(ovsdb_set_at(v, i))) {
            return bad_column(column, "a set of strings or uuids", e);
        }
    }
    if (!diff) {
        smap_clear(set);
    }
    for (size_t i = 0; i < n; i++) {
        const char *key = set_key(ovsdb_set_at(v, i));
        if (!diff || !smap_remove(set, key)) {
            smap_set(set, key, &present);
        }
    }
    return 0;
}

int ovsdb_read_map(const struct json *row, const char *column, bool diff, struct smap *map,
                   struct err *e)
{
    const struct json *v = json_get(row, column);
    if (!v) {
        return 0;
    }
    const struct json *pairs = members(v, "map");
    if (!pairs) {
        return bad_column(column, "a map", e);
    }
    const struct json *pair;
    JSON_FOREACH (pair, pairs) {
        if (json_count(pair) != 2 || !json_get_string(json_at(pair, 0)) ||
            !json_get_string(json_at(pair, 1))) {
            return bad_column(column, "a map of strings", e);
        }
    }
    if (!diff) {
        smap_clear(map);
    }
    JSON_FOREACH (pair, pairs) {
        const char *key = json_get_string(json_at(pair, 0));
        const char *value = json_get_string(json_at(pair, 1));
        const char *old = diff ? smap_get(map, key) : NULL;
        if (old && streq(old, value)) {
            smap_remove(map, key);
        } else {
            smap_set(map, key, xstrdup(value));
        }
    }
    return 0;
}

/* ---- operations ---- */

static struct json *operation(const char *op, const char *table)
{
    struct json *o = json_object();
    json_set_string(o, "op", op);
    json_set_string(o, "table", table);
    return o;
}

struct json *ovsdb_where_uuid(const char *uuid)
{
    return array(array(json_string("_uuid"), json_string("=="), ovsdb_uuid(uuid)), NULL, NULL);
}

struct json *ovsdb_insert(const char *table, struct json *row, const char *uuid_name)
{
    struct json *o = operation("insert", table);
    json_set(o, "row", row);
    json_set_string(o, "uuid-name", uuid_name);
    return o;
}

struct json *ovsdb_update(const char *table, struct json *where, struct json *row)
{
    struct json *o = operation("update", table);
    json_set(o, "where", where);
    json_set(o, "row", row);
    return o;
}

struct json *ovsdb_mutate(const char *table, struct json *where, const char *column,
                          const char *mutator, struct json *value)
{
    struct json *o = operation("mutate", table);
    json_set(o, "where", where);
    json_set(o, "mutations", json_array());
    return ovsdb_mutate_add(o, column, mutator, value);
}

struct json *ovsdb_mutate_add(struct json *op, const char *column, const char *mutator,
                              struct json *value)
{
    json_append(json_get(op, "mutations"), array(json_string(column), json_string(mutator), value));
    return op;
}

struct json *ovsdb_wait_equal(const char *table, struct json *where, struct json *row)
{
    struct json *o = operation("wait", table);
    struct json *columns = json_array();
    for (size_t i = 0; i < json_count(row); i++) {
        json_append(columns, json_string(json_key_at(row, i)));
    }
    json_set(o, "where", where);
    json_set(o, "columns", columns);
    json_set_string(o, "until", "==");
    json_set(o, "rows", array(row, NULL, NULL));
    json_set_int(o, "timeout", 0);
    return o;
}

struct json *ovsdb_select(const char *table, struct json *where, const char *column)
{
    struct json *o = operation("select", table);
    json_set(o, "where", where);
    json_set(o, "columns", array(json_string(column), NULL, NULL));
    return o;
}

struct json *ovsdb_comment(const char *text)
{
    struct json *o = json_object();
    json_set_string(o, "op", "comment");
    json_set_string(o, "comment", text);
    return o;
}

/* ---- replies and notifications ---- */

static int error_code(const char *error)
{
    static const struct {
        const char *error;
        int code;
    } codes[] = {
        {"timed out", -EAGAIN},
        {"constraint violation", -EEXIST},
        {"referential integrity violation", -ENOENT},
        {"aborted", -ECANCELED},
    };
    for (size_t i = 0; i < ARRAY_SIZE(codes); i++) {
        if (streq(error, codes[i].error)) {
            return codes[i].code;
        }
    }
    return -EIO;
}

int ovsdb_reply_error(const struct ovsdb_msg *m, struct err *e)
{
    if (!m->error) {
        return 0;
    }
    /* Either a string, or an <error> object (RFC 7047 3.1). */
    const char *error = json_get_string(m->error);
    const char *details = json_path_string(m->error, "details", NULL);
    if (!error) {
        error = json_path_string(m->error, "error", NULL);
    }
    return err_set(e, -EPROTO, "%s%s%s", error ? error : "error without text", details ? ": " : "",
                   details ? details : "");
}

int ovsdb_transact_result(const struct ovsdb_msg *m, size_t n_ops, size_t *ret_failed,
                          struct err *e)
{
    if (m->error) {
        ovsdb_reply_error(m, e);
        if (e) {
            e->code = -EIO;
        }
        *ret_failed = n_ops;
        return -EIO;
    }
    size_t n = json_count(m->result);
    for (size_t i = 0; i < n; i++) {
        const struct json *result = json_at(m->result, i);
        const char *error = json_path_string(result, "error", NULL);
        if (error) {
            const char *details = json_path_string(result, "details", NULL);
            *ret_failed = MIN(i, n_ops);
            return err_set(e, error_code(error), "%s%s%s", error, details ? ": " : "",
                           details ? details : "");
        }
    }
    if (!json_is(m->result, JSON_ARRAY) || n != n_ops) {
        *ret_failed = n_ops;
        return err_set(e, -EBADMSG, "reply has %zu results for %zu operations", n, n_ops);
    }
    return 0;
}

const struct json *ovsdb_selected_row(const struct ovsdb_msg *m, size_t op)
{
    return json_at(json_get(json_at(m->result, op), "rows"), 0);
}

static int walk_row(const char *table, const char *uuid, const struct json *change,
                    ovsdb_row_fn *fn, void *ctx, struct err *e)
{
    static const struct {
        const char *key;
        enum ovsdb_change change;
    } kinds[] = {{"initial", OVSDB_INSERT},
                 {"insert", OVSDB_INSERT},
                 {"modify", OVSDB_MODIFY},
                 {"delete", OVSDB_DELETE}};
    if (!uuid_is_valid(uuid)) {
        return err_set(e, -EBADMSG, "table %s: row key is not a uuid", table);
    }
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        const struct json *row = json_get(change, kinds[i].key);
        if (!row) {
            continue;
        }
        if (kinds[i].change == OVSDB_DELETE) {
            row = NULL;
        } else if (!json_is(row, JSON_OBJECT)) {
            break;
        }
        return fn(ctx, table, uuid, kinds[i].change, row, e);
    }
    return err_set(e, -EBADMSG, "table %s: row %s: malformed update", table, uuid);
}

int ovsdb_walk_updates(const struct json *updates, ovsdb_row_fn *fn, void *ctx, struct err *e)
{
    if (!json_is(updates, JSON_OBJECT)) {
        return err_set(e, -EBADMSG, "table updates are not an object");
    }
    for (size_t t = 0; t < json_count(updates); t++) {
        const char *table = json_key_at(updates, t);
        const struct json *rows = json_at(updates, t);
        if (!json_is(rows, JSON_OBJECT)) {
            return err_set(e, -EBADMSG, "table %s: updates are not an object", table);
        }
        for (size_t i = 0; i < json_count(rows); i++) {
            int r = walk_row(table, json_key_at(rows, i), json_at(rows, i), fn, ctx, e);
            if (r < 0) {
                return r;
            }
        }
    }
    return 0;
}

const struct json *ovsdb_update_of(const struct ovsdb_msg *m, const char *monitor)
{
    if (m->kind != OVSDB_NOTIFICATION || !streq(m->method, "update2")) {
        return NULL;
    }
    const char *id = json_get_string(json_at(m->params, 0));
    return id && streq(id, monitor) ? json_at(m->params, 1) : NULL;
}
