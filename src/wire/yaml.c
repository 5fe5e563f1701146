/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/yaml.h"

#include "base/mem.h"
#include "wire/json_internal.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <strings.h>
#include <yaml.h>

/* ---- types of plain scalars ---- */

enum scalar {
    SCALAR_STRING,
    SCALAR_NULL,
    SCALAR_FALSE,
    SCALAR_TRUE,
    SCALAR_NUMBER,
    SCALAR_NOT_FINITE
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* The words of YAML 1.1 that are not strings; SCALAR_STRING for all others. */
static enum scalar word_meaning(const char *s)
{
    static const struct {
        const char *word; /* Also capitalized, and in capitals. */
        enum scalar meaning;
    } words[] = {
        {"null", SCALAR_NULL}, {"y", SCALAR_TRUE},    {"yes", SCALAR_TRUE},
        {"on", SCALAR_TRUE},   {"true", SCALAR_TRUE}, {"n", SCALAR_FALSE},
        {"no", SCALAR_FALSE},  {"off", SCALAR_FALSE}, {"false", SCALAR_FALSE},
    };
    size_t size = strlen(s);
    if (size == 0 || streq(s, "~")) {
        return SCALAR_NULL;
    }
    const char *dot = s + (*s == '+' || *s == '-');
    if (streq(dot, ".inf") || streq(dot, ".Inf") || streq(dot, ".INF") || streq(s, ".nan") ||
        streq(s, ".NaN") || streq(s, ".NAN")) {
        return SCALAR_NOT_FINITE;
    }
    size_t capitals = 0;
    for (const char *p = s; *p; p++) {
        capitals += *p >= 'A' && *p <= 'Z';
    }
    bool one_case = capitals == 0 || capitals == size || (capitals == 1 && *s <= 'Z');
    for (size_t i = 0; one_case && i < ARRAY_SIZE(words); i++) {
        if (strcasecmp(words[i].word, s) == 0) {
            return words[i].meaning;
        }
    }
    return SCALAR_STRING;
}

/* Value of the digits 's' in 'base', all of them; false when there are others or over 64 bits. */
static bool digits_value(const char *s, unsigned base, uint64_t *ret)
{
    uint64_t v = 0;
    if (!*s) {
        return false;
    }
    for (; *s; s++) {
        char c = (char) (*s | 0x20);
        unsigned d = is_digit(*s)           ? (unsigned) (*s - '0')
                     : c >= 'a' && c <= 'f' ? c - 'a' + 10u
                                            : 99;
        if (d >= base || v > (UINT64_MAX - d) / base) {
            return false;
        }
        v = v * base + d;
    }
    *ret = v;
    return true;
}

/* 's' without sign and underscores in one of the forms 0x1f 0b101 0o17 017. */
static bool based_value(const char *s, uint64_t *ret)
{
    if (s[0] != '0') {
        return false;
    }
    switch (s[1]) {
    case 'x':
    case 'X':
        return digits_value(s + 2, 16, ret);
    case 'b':
    case 'B':
        return digits_value(s + 2, 2, ret);
    case 'o':
    case 'O':
        return digits_value(s + 2, 8, ret);
    default:
        return digits_value(s + 1, 8, ret);
    }
}

/* Decimal 's' without sign and underscores, as JSON writes it: "007." is "7", ".50" is "0.50",
 * "1.0" is "1".  Empty when it is not a decimal number. */
static void decimal_text(const char *s, struct strbuf *out)
{
    size_t whole = strspn(s, "0123456789"), fraction = 0;
    const char *rest = s + whole;
    if (*rest == '.') {
        fraction = strspn(rest + 1, "0123456789");
        rest += 1 + fraction;
    }
    const char *exponent = rest;
    if ((*rest | 0x20) == 'e') {
        rest += 1 + (rest[1] == '+' || rest[1] == '-');
        size_t n = strspn(rest, "0123456789");
        rest = n ? rest + n : exponent;
    }
    if (*rest || whole + fraction == 0) {
        return;
    }
    const char *point = s + whole;
    while (whole > 1 && *s == '0') {
        s++;
        whole--;
    }
    strbuf_add(out, whole ? s : "0", whole ? whole : 1);
    if (fraction && (*exponent || strspn(point + 1, "0") != fraction)) {
        strbuf_add(out, point, 1 + fraction);
    }
    strbuf_adds(out, exponent);
    if (isinf(strtod(strbuf_cstr(out), NULL))) {
        strbuf_reset(out);
    }
}

/* The type of the plain scalar 's'; a number's JSON text is appended to 'out'. */
static enum scalar plain_meaning(const char *s, struct strbuf *out)
{
    enum scalar word = word_meaning(s);
    if (word != SCALAR_STRING) {
        return word;
    }
    bool negative = *s == '-', has_sign = negative || *s == '+';
    if (!has_sign && !is_digit(*s) && (*s != '.' || strchr(s, '_'))) {
        return SCALAR_STRING;
    }
    CLEANUP_STRBUF struct strbuf plain = STRBUF_INIT;
    strbuf_adds(&plain, "");
    for (const char *p = s + has_sign; *p; p++) {
        if (*p != '_') {
            strbuf_addc(&plain, *p);
        }
    }
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    uint64_t v;
    if (based_value(plain.data, &v)) {
        strbuf_addf(&text, "%" PRIu64, v);
    } else {
        decimal_text(plain.data, &text);
    }
    if (!text.size) {
        return SCALAR_STRING;
    }
    if (negative && !streq(text.data, "0")) {
        strbuf_addc(out, '-');
    }
    strbuf_add(out, text.data, text.size);
    return SCALAR_NUMBER;
}

/* ---- reading ---- */

struct level {
    struct json *v; /* The container; its parent owns it, or the reader if it is the outermost. */
    char *key;      /* Owned; key of the member whose value comes next. */
};

struct reader {
    yaml_parser_t parser;
    struct level level[JSON_MAX_DEPTH];
    size_t depth;
    struct json *docs; /* Array. */
    struct err *e;
};

static int fail_at(struct reader *r, yaml_mark_t at, const char *what)
{
    return err_set(r->e, -EINVAL, "line %zu column %zu: %s", at.line + 1, at.column + 1, what);
}

static int fail_parser(struct reader *r)
{
    const yaml_parser_t *p = &r->parser;
    const char *what = p->problem ? p->problem : "malformed YAML";
    if (p->error == YAML_READER_ERROR) {
        return err_set(r->e, -EINVAL, "byte %zu: %s", p->problem_offset, what);
    }
    return fail_at(r, p->problem_mark, what);
}

/* Stores the complete or just begun value 'v' and takes ownership of it. */
static int store_value(struct reader *r, struct json *v)
{
    struct level *l = r->depth ? &r->level[r->depth - 1] : NULL;
    if (l && l->key) {
        json_set(l->v, l->key, v);
        free(TAKE(l->key));
    } else {
        json_append(l ? l->v : r->docs, v);
    }
    return 0;
}

static int read_key(struct reader *r, char *key, yaml_mark_t at)
{
    struct level *l = &r->level[r->depth - 1];
    if (json_get(l->v, key)) {
        char what[80];
        snprintf(what, sizeof what, "duplicate key \"%.40s\"", key);
        free(key);
        return fail_at(r, at, what);
    }
    l->key = key;
    return 0;
}

/* Whether a key comes next. */
static bool expects_key(const struct reader *r)
{
    return r->depth && json_is(r->level[r->depth - 1].v, JSON_OBJECT) &&
           !r->level[r->depth - 1].key;
}

static int read_scalar(struct reader *r, const yaml_event_t *ev)
{
    const char *s = (const char *) ev->data.scalar.value;
    size_t size = ev->data.scalar.length;
    bool is_key = expects_key(r);
    if (strlen(s) != size) {
        return fail_at(r, ev->start_mark, "NUL in a string");
    }
    CLEANUP_STRBUF struct strbuf number = STRBUF_INIT;
    enum scalar meaning = SCALAR_STRING;
    if (ev->data.scalar.style == YAML_PLAIN_SCALAR_STYLE) {
        meaning = plain_meaning(s, &number);
        if (is_key && streq(s, "<<")) {
            return fail_at(r, ev->start_mark, "merge keys are not supported");
        }
    }
    if (is_key) {
        static const char *const key_text[] = {[SCALAR_TRUE] = "true", [SCALAR_FALSE] = "false"};
        switch (meaning) {
        case SCALAR_NULL:
            return fail_at(r, ev->start_mark, "null is not a key");
        case SCALAR_TRUE:
        case SCALAR_FALSE:
            s = key_text[meaning];
            break;
        case SCALAR_NUMBER:
            s = number.data;
            break;
        case SCALAR_STRING:
        case SCALAR_NOT_FINITE:
            break;
        }
        return read_key(r, xstrdup(s), ev->start_mark);
    }
    switch (meaning) {
    case SCALAR_NULL:
        return size || r->depth ? store_value(r, json_null()) : 0; /* An empty document. */
    case SCALAR_TRUE:
    case SCALAR_FALSE:
        return store_value(r, json_bool(meaning == SCALAR_TRUE));
    case SCALAR_NUMBER:
        return store_value(r, json_number_n(number.data, number.size));
    case SCALAR_NOT_FINITE:
        return fail_at(r, ev->start_mark, "infinity and NaN have no JSON form");
    case SCALAR_STRING:
        break;
    }
    return store_value(r, json_string_n(s, size));
}

static int begin_container(struct reader *r, struct json *v, yaml_mark_t at)
{
    const char *why = expects_key(r)               ? "only scalars can be keys"
                      : r->depth == JSON_MAX_DEPTH ? "nested too deeply"
                                                   : NULL;
    if (why) {
        json_free(v);
        return fail_at(r, at, why);
    }
    store_value(r, v);
    r->level[r->depth++] = (struct level){.v = v};
    return 0;
}

static int read_event(struct reader *r, const yaml_event_t *ev)
{
    switch (ev->type) {
    case YAML_ALIAS_EVENT:
        return fail_at(r, ev->start_mark, "aliases are not supported");
    case YAML_SCALAR_EVENT:
        if (ev->data.scalar.tag) {
            return fail_at(r, ev->start_mark, "tags are not supported");
        }
        return read_scalar(r, ev);
    case YAML_SEQUENCE_START_EVENT:
        if (ev->data.sequence_start.tag) {
            return fail_at(r, ev->start_mark, "tags are not supported");
        }
        return begin_container(r, json_array(), ev->start_mark);
    case YAML_MAPPING_START_EVENT:
        if (ev->data.mapping_start.tag) {
            return fail_at(r, ev->start_mark, "tags are not supported");
        }
        return begin_container(r, json_object(), ev->start_mark);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        r->depth--;
        return 0;
    case YAML_NO_EVENT:
    case YAML_STREAM_START_EVENT:
    case YAML_STREAM_END_EVENT:
    case YAML_DOCUMENT_START_EVENT:
    case YAML_DOCUMENT_END_EVENT:
        break;
    }
    return 0;
}

static int read_yaml(const char *text, size_t size, struct json *docs, struct err *e)
{
    struct reader r = {.docs = docs, .e = e};
    if (!yaml_parser_initialize(&r.parser)) {
        abort();
    }
    yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&r.parser, (const unsigned char *) (text ? text : ""), size);
    int result = 0;
    for (bool more = true; more && result == 0;) {
        yaml_event_t ev;
        if (!yaml_parser_parse(&r.parser, &ev)) {
            result = fail_parser(&r);
            break;
        }
        more = ev.type != YAML_STREAM_END_EVENT;
        result = read_event(&r, &ev);
        yaml_event_delete(&ev);
    }
    while (r.depth) {
        free(r.level[--r.depth].key);
    }
    yaml_parser_delete(&r.parser);
    return result;
}

/* A stream of JSON objects: JSON's escapes and long keys are not all YAML. */
static int read_json(const char *text, size_t size, struct json *docs)
{
    for (size_t at = 0;;) {
        while (at < size && strchr(" \t\r\n", text[at])) {
            at++;
        }
        if (at == size && json_count(docs)) {
            return 0;
        }
        if (at == size || (text[at] != '{' && text[at] != '[')) {
            return -EINVAL;
        }
        struct json *v = NULL;
        size_t used = 0;
        int r = json_parse_first(text + at, size - at, &v, &used, NULL);
        if (r < 0) {
            return r;
        }
        json_append(docs, v);
        at += used;
    }
}

int yaml_parse_all(const char *text, size_t size, struct json **ret_array, struct err *e)
{
    const char *nul = size ? memchr(text, '\0', size) : NULL;
    if (nul) {
        return err_set(e, -EINVAL, "byte %zu: NUL in the text", (size_t) (nul - text));
    }
    CLEANUP(json_free) struct json *docs = json_array();
    if (read_json(text, size, docs) < 0) {
        json_free(docs);
        docs = json_array();
        int r = read_yaml(text, size, docs, e);
        if (r < 0) {
            return r;
        }
    }
    *ret_array = TAKE(docs);
    return 0;
}

int yaml_parse(const char *text, size_t size, struct json **ret, struct err *e)
{
    CLEANUP(json_free) struct json *docs = NULL;
    int r = yaml_parse_all(text, size, &docs, e);
    if (r < 0) {
        return r;
    }
    if (json_count(docs) > 1) {
        return err_set(e, -EINVAL, "%zu documents where one was expected", json_count(docs));
    }
    *ret = json_count(docs) ? json_take_at(docs, 0) : json_object();
    return 0;
}

/* ---- lines ---- */

/* A walk along the events, with the path of the node that begins. */
struct finder {
    struct {
        bool map, key_next;
        size_t index, size; /* Of the next item; of the container's own path. */
    } level[JSON_MAX_DEPTH];
    size_t depth;
    struct strbuf path;
    const char *target;
    size_t best, line; /* Characters of the target that were found, and where. */
};

static void compare(struct finder *f, size_t line)
{
    size_t n = f->path.size;
    const char *t = f->target;
    if (n > f->best && !strncmp(t, strbuf_cstr(&f->path), n) &&
        (!t[n] || t[n] == '.' || t[n] == '[')) {
        f->best = n;
        f->line = line;
    }
}

/* A node begins; 'text' is a scalar's.  Returns false where the path cannot be followed. */
static bool begin_node(struct finder *f, const char *text, size_t line, bool map, bool list)
{
    if (f->depth) {
        size_t size = f->level[f->depth - 1].size;
        CLEANUP_FREE char *above = xstrndup(strbuf_cstr(&f->path), size);
        if (f->level[f->depth - 1].map && f->level[f->depth - 1].key_next) {
            if (!text) {
                return false;
            }
            strbuf_reset(&f->path);
            strbuf_addf(&f->path, "%s%s%s", above, size ? "." : "", text);
            compare(f, line);
            f->level[f->depth - 1].key_next = false;
            return true;
        }
        if (!f->level[f->depth - 1].map) {
            strbuf_reset(&f->path);
            strbuf_addf(&f->path, "%s[%zu]", above, f->level[f->depth - 1].index++);
            compare(f, line);
        }
        f->level[f->depth - 1].key_next = f->level[f->depth - 1].map;
    }
    if ((map || list) && f->depth == JSON_MAX_DEPTH) {
        return false;
    }
    if (map || list) {
        f->level[f->depth].map = f->level[f->depth].key_next = map;
        f->level[f->depth].index = 0;
        f->level[f->depth++].size = f->path.size;
    }
    return true;
}

static bool follow(struct finder *f, const yaml_event_t *ev)
{
    bool map = ev->type == YAML_MAPPING_START_EVENT, list = ev->type == YAML_SEQUENCE_START_EVENT;
    bool scalar = ev->type == YAML_SCALAR_EVENT;
    if (ev->type == YAML_MAPPING_END_EVENT || ev->type == YAML_SEQUENCE_END_EVENT) {
        f->depth -= f->depth > 0;
        return true;
    }
    if (ev->type == YAML_DOCUMENT_END_EVENT || ev->type == YAML_ALIAS_EVENT ||
        ev->type == YAML_STREAM_END_EVENT) {
        return false;
    }
    return (!map && !list && !scalar) ||
           begin_node(f, scalar ? (const char *) ev->data.scalar.value : NULL,
                      ev->start_mark.line + 1, map, list);
}

size_t yaml_find_line(const char *text, size_t size, const char *path)
{
    struct finder f = {.path = STRBUF_INIT, .target = path};
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser)) {
        abort();
    }
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser, (const unsigned char *) (text ? text : ""), size);
    for (bool more = true; more;) {
        yaml_event_t ev;
        if (!yaml_parser_parse(&parser, &ev)) {
            break;
        }
        more = follow(&f, &ev);
        yaml_event_delete(&ev);
    }
    yaml_parser_delete(&parser);
    strbuf_done(&f.path);
    return f.line;
}

/* ---- writing ---- */

/* Numbers with colons, as 12:30:45: base 60 in YAML 1.1. */
static bool is_base60(const char *s)
{
    s += *s == '+' || *s == '-';
    size_t first = is_digit(*s) ? strspn(s, "0123456789_") : 0;
    return first && s[first] == ':' && s[strspn(s, "0123456789_:.")] == '\0';
}

/* Texts that begin as "2026-11-21" does. */
static bool is_date(const char *s)
{
    return strspn(s, "0123456789") == 4 && s[4] == '-' && is_digit(s[5]) && strchr(s + 5, '-');
}

/* Whether 's' unquoted would be read as the same string. */
static bool reads_as_string(const char *s)
{
    CLEANUP_STRBUF struct strbuf number = STRBUF_INIT;
    return plain_meaning(s, &number) == SCALAR_STRING && !is_base60(s) && !is_date(s) &&
           !streq(s, "<<");
}

static int write_bytes(void *out, unsigned char *p, size_t size)
{
    return strbuf_add(out, p, size) == 0;
}

static int emit_scalar(yaml_emitter_t *em, const char *s, size_t size, yaml_scalar_style_t style)
{
    yaml_event_t ev;
    return yaml_scalar_event_initialize(&ev, NULL, NULL, (const unsigned char *) s, (int) size, 1,
                                        1, style) &&
           yaml_emitter_emit(em, &ev);
}

static int emit_string(yaml_emitter_t *em, const char *s, size_t size)
{
    CLEANUP_STRBUF struct strbuf valid = STRBUF_INIT;
    json_add_utf8(s, size, &valid);
    yaml_scalar_style_t style = YAML_DOUBLE_QUOTED_SCALAR_STYLE;
    if (memchr(strbuf_cstr(&valid), '\n', valid.size)) {
        style = YAML_LITERAL_SCALAR_STYLE;
    } else if (reads_as_string(strbuf_cstr(&valid))) {
        style = YAML_PLAIN_SCALAR_STYLE; /* The emitter quotes it where the syntax needs it. */
    }
    return emit_scalar(em, strbuf_cstr(&valid), valid.size, style);
}

/* Emits a leaf, or the start of a container. */
static int emit_node(yaml_emitter_t *em, const struct json *v)
{
    yaml_event_t ev;
    switch (json_type(v)) {
    case JSON_NULL:
        return emit_scalar(em, "null", 4, YAML_PLAIN_SCALAR_STYLE);
    case JSON_BOOL:
        return json_get_bool(v, false) ? emit_scalar(em, "true", 4, YAML_PLAIN_SCALAR_STYLE)
                                       : emit_scalar(em, "false", 5, YAML_PLAIN_SCALAR_STYLE);
    case JSON_NUMBER:
        return emit_scalar(em, json_number_text(v), strlen(json_number_text(v)),
                           YAML_PLAIN_SCALAR_STYLE);
    case JSON_STRING:
        return emit_string(em, json_get_string(v), json_string_size(v));
    case JSON_ARRAY:
        return yaml_sequence_start_event_initialize(&ev, NULL, NULL, 1,
                                                    YAML_BLOCK_SEQUENCE_STYLE) &&
               yaml_emitter_emit(em, &ev);
    case JSON_OBJECT:
        break;
    }
    return yaml_mapping_start_event_initialize(&ev, NULL, NULL, 1, YAML_BLOCK_MAPPING_STYLE) &&
           yaml_emitter_emit(em, &ev);
}

static int emit_end(yaml_emitter_t *em, const struct json *v)
{
    yaml_event_t ev;
    return (json_is(v, JSON_OBJECT) ? yaml_mapping_end_event_initialize(&ev)
                                    : yaml_sequence_end_event_initialize(&ev)) &&
           yaml_emitter_emit(em, &ev);
}

static int emit_tree(yaml_emitter_t *em, const struct json *v)
{
    struct json_walk w;
    json_walk_init(&w);
    int ok = emit_node(em, v);
    if (json_type(v) >= JSON_ARRAY) {
        json_walk_push(&w, v, NULL);
    }
    while (w.n && ok) {
        struct json_frame *f = &w.frames[w.n - 1];
        if (f->i == json_count(f->v)) {
            ok = emit_end(em, f->v);
            w.n--;
            continue;
        }
        const char *key = json_key_at(f->v, f->i);
        const struct json *child = json_at(f->v, f->i++);
        ok = (!key || emit_string(em, key, strlen(key))) && emit_node(em, child);
        if (json_type(child) >= JSON_ARRAY) {
            json_walk_push(&w, child, NULL);
        }
    }
    json_walk_done(&w);
    return ok;
}

void yaml_write(const struct json *v, struct strbuf *out)
{
    yaml_emitter_t em;
    yaml_event_t ev;
    if (!yaml_emitter_initialize(&em)) {
        abort();
    }
    yaml_emitter_set_output(&em, write_bytes, out);
    yaml_emitter_set_encoding(&em, YAML_UTF8_ENCODING);
    yaml_emitter_set_unicode(&em, 1);
    yaml_emitter_set_width(&em, -1);
    bool ok = yaml_stream_start_event_initialize(&ev, YAML_UTF8_ENCODING) &&
              yaml_emitter_emit(&em, &ev) &&
              yaml_document_start_event_initialize(&ev, NULL, NULL, NULL, 1) &&
              yaml_emitter_emit(&em, &ev) && emit_tree(&em, v) &&
              yaml_document_end_event_initialize(&ev, 1) && yaml_emitter_emit(&em, &ev) &&
              yaml_stream_end_event_initialize(&ev) && yaml_emitter_emit(&em, &ev);
    if (!ok) {
        out->failed = true;
    }
    yaml_emitter_delete(&em);
}
