/* SPDX-License-Identifier: Apache-2.0 */
#include "api/selector.h"

#include "base/mem.h"

#include <stdio.h>

/* ---- index ---- */

/* Offsets into 'text' of the fields, then of the labels' keys and values in turn. */
struct api_index {
    uint32_t n_fields, n_labels;
    uint32_t offset[];
};

#define N_COMMON 2 /* metadata.name and metadata.namespace. */

int api_field_find(const struct api_kind *k, const char *label)
{
    if (streq(label, "metadata.name")) {
        return 0;
    }
    if (streq(label, "metadata.namespace")) {
        return 1;
    }
    for (size_t i = 0; k->selectable && k->selectable[i].label; i++) {
        if (streq(k->selectable[i].label, label)) {
            return (int) (i + N_COMMON);
        }
    }
    return -1;
}

int api_field_indexed(const struct api_kind *k)
{
    for (size_t i = 0; k->selectable && k->selectable[i].label; i++) {
        if (k->selectable[i].indexed) {
            return (int) (i + N_COMMON);
        }
    }
    return -1;
}

/* The value at a dotted path as text: a string, a number or a boolean. */
static const char *field_text(const struct json *obj, const char *path)
{
    while (obj && *path) {
        char key[64];
        size_t n = strcspn(path, ".");
        snprintf(key, sizeof key, "%.*s", (int) n, path);
        obj = json_get(obj, key);
        path += n + (path[n] == '.');
    }
    if (json_is(obj, JSON_BOOL)) {
        return json_get_bool(obj, false) ? "true" : "false";
    }
    return json_is(obj, JSON_NUMBER) ? json_number_text(obj) : json_get_string(obj);
}

static uint32_t add_text(struct strbuf *b, const char *s)
{
    uint32_t at = (uint32_t) b->size;
    strbuf_add(b, s, strlen(s) + 1);
    return at;
}

struct api_index *api_index_new(const struct api_kind *k, const struct json *obj)
{
    const struct json *labels = json_path(obj, "metadata", "labels", NULL);
    uint32_t n_fields = N_COMMON, n_labels = 0, at = 0;
    for (size_t i = 0; k->selectable && k->selectable[i].label; i++) {
        n_fields++;
    }
    if (json_is(labels, JSON_OBJECT)) {
        n_labels = (uint32_t) json_count(labels);
    }
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    CLEANUP_FREE uint32_t *offset = xcalloc(n_fields + 2 * (size_t) n_labels, sizeof *offset);
    for (uint32_t i = 0; i < n_fields; i++) {
        const struct api_field_label *f = i < N_COMMON ? NULL : &k->selectable[i - N_COMMON];
        const char *path = i == 0   ? "metadata.name"
                           : i == 1 ? "metadata.namespace"
                                    : (f->path ? f->path : f->label);
        const char *s = field_text(obj, path);
        offset[at++] = add_text(&text, s ? s : f && f->dflt ? f->dflt : "");
    }
    for (uint32_t i = 0; i < n_labels; i++) {
        const char *s = json_get_string(json_at(labels, i));
        offset[at++] = add_text(&text, json_key_at(labels, i));
        offset[at++] = add_text(&text, s ? s : "");
    }
    size_t table = at * sizeof *offset;
    struct api_index *x = xmalloc(sizeof *x + table + text.size);
    x->n_fields = n_fields;
    x->n_labels = n_labels;
    for (uint32_t i = 0; i < at; i++) {
        x->offset[i] = offset[i];
    }
    memcpy((char *) x + sizeof *x + table, text.data, text.size);
    return x;
}

struct api_index *api_index_free(struct api_index *x)
{
    free(x);
    return NULL;
}

static const char *text_at(const struct api_index *x, size_t i)
{
    const char *text = (const char *) &x->offset[x->n_fields + 2 * (size_t) x->n_labels];
    return text + x->offset[i];
}

const char *api_index_field(const struct api_index *x, size_t i)
{
    return i < x->n_fields ? text_at(x, i) : "";
}

const char *api_index_label(const struct api_index *x, const char *key)
{
    for (size_t i = 0; i < x->n_labels; i++) {
        if (streq(text_at(x, x->n_fields + 2 * i), key)) {
            return text_at(x, x->n_fields + 2 * i + 1);
        }
    }
    return NULL;
}

/* ---- selectors ---- */

enum op { OP_IN, OP_NOT_IN, OP_EXISTS, OP_ABSENT, OP_GREATER, OP_LESS };

struct requirement {
    enum op op;
    int field; /* Number of the field, -1: a label. */
    char *key; /* Key of a label. */
    char **values;
    size_t n, cap;
    int64_t number; /* For OP_GREATER and OP_LESS. */
};

struct api_selector {
    struct requirement *list;
    size_t n, cap;
};

struct api_selector *api_selector_free(struct api_selector *s)
{
    for (size_t i = 0; s && i < s->n; i++) {
        struct requirement *r = &s->list[i];
        for (size_t j = 0; j < r->n; j++) {
            free(r->values[j]);
        }
        free(r->values);
        free(r->key);
    }
    if (s) {
        free(s->list);
        free(s);
    }
    return NULL;
}

static struct requirement *add_requirement(struct api_selector *s, enum op op, int field)
{
    s->list = grow(s->list, &s->cap, s->n + 1, sizeof *s->list);
    s->list[s->n] = (struct requirement){.op = op, .field = field};
    return &s->list[s->n++];
}

static void add_value(struct requirement *r, char *value)
{
    r->values = grow(r->values, &r->cap, r->n + 1, sizeof *r->values);
    r->values[r->n++] = value;
}

static bool has_value(const struct requirement *r, const char *s)
{
    for (size_t i = 0; i < r->n; i++) {
        if (streq(r->values[i], s)) {
            return true;
        }
    }
    return false;
}

static bool requirement_matches(const struct requirement *r, const struct api_index *x)
{
    const char *v =
        r->field >= 0 ? api_index_field(x, (size_t) r->field) : api_index_label(x, r->key);
    int64_t i;
    switch (r->op) {
    case OP_IN:
        return v && has_value(r, v);
    case OP_NOT_IN:
        return !v || !has_value(r, v);
    case OP_EXISTS:
        return v != NULL;
    case OP_ABSENT:
        return v == NULL;
    case OP_GREATER:
        return v && str_to_i64(v, INT64_MIN, INT64_MAX, &i) == 0 && i > r->number;
    case OP_LESS:
        return v && str_to_i64(v, INT64_MIN, INT64_MAX, &i) == 0 && i < r->number;
    }
    return false;
}

const char *api_selector_value(const struct api_selector *s, size_t i)
{
    for (size_t j = 0; s && j < s->n; j++) {
        const struct requirement *r = &s->list[j];
        if (r->op == OP_IN && r->field == (int) i && r->n == 1) {
            return r->values[0];
        }
    }
    return NULL;
}

bool api_selector_matches(const struct api_selector *s, const struct api_index *x)
{
    for (size_t i = 0; s && i < s->n; i++) {
        if (!requirement_matches(&s->list[i], x)) {
            return false;
        }
    }
    return true;
}

/* ---- label selector text ---- */

enum token { T_END, T_WORD, T_COMMA, T_OPEN, T_CLOSE, T_NOT, T_EQ, T_NE, T_GT, T_LT };

struct lexer {
    const char *p;
    enum token token;
    const char *word; /* For a T_WORD. */
    size_t size;
};

static void next(struct lexer *l)
{
    l->p += strspn(l->p, " \t\r\n");
    const char *p = l->p;
    switch (*p) {
    case '\0':
        l->token = T_END;
        return;
    case ',':
        l->token = T_COMMA;
        break;
    case '(':
        l->token = T_OPEN;
        break;
    case ')':
        l->token = T_CLOSE;
        break;
    case '>':
        l->token = T_GT;
        break;
    case '<':
        l->token = T_LT;
        break;
    case '!':
        l->token = p[1] == '=' ? T_NE : T_NOT;
        l->p += p[1] == '=';
        break;
    case '=':
        l->token = T_EQ;
        l->p += p[1] == '=';
        break;
    default:
        l->token = T_WORD;
        l->word = p;
        l->size = strcspn(p, " \t\r\n,()><!=");
        l->p = p + l->size;
        return;
    }
    l->p++;
}

static bool is_word(const struct lexer *l, const char *s)
{
    return l->token == T_WORD && l->size == strlen(s) && !memcmp(l->word, s, l->size);
}

static int check_value(const char *s, struct err *e)
{
    const char *wrong = api_check_label_value(s);
    return wrong ? err_set(e, -EINVAL, "invalid label value: \"%.80s\": %s", s, wrong) : 0;
}

/* "(a,b)": an empty element is the empty value. */
static int parse_set(struct lexer *l, struct requirement *r, struct err *e)
{
    if (l->token != T_OPEN) {
        return err_set(e, -EINVAL, "unable to parse requirement: expected '(' after in or notin");
    }
    for (next(l);; next(l)) {
        char *value = l->token == T_WORD ? xstrndup(l->word, l->size) : xstrdup("");
        add_value(r, value);
        if (check_value(value, e) < 0) {
            return -EINVAL;
        }
        if (l->token == T_WORD) {
            next(l);
        }
        if (l->token == T_CLOSE) {
            next(l);
            return 0;
        }
        if (l->token != T_COMMA) {
            return err_set(e, -EINVAL, "unable to parse requirement: expected ',' or ')'");
        }
    }
}

static int parse_requirement(struct lexer *l, struct api_selector *s, struct err *e)
{
    bool absent = l->token == T_NOT;
    if (absent) {
        next(l);
    }
    if (l->token != T_WORD) {
        return err_set(e, -EINVAL, "unable to parse requirement: expected a label key");
    }
    struct requirement *r = add_requirement(s, absent ? OP_ABSENT : OP_EXISTS, -1);
    r->key = xstrndup(l->word, l->size);
    const char *wrong = api_check_qualified_name(r->key);
    if (wrong) {
        return err_set(e, -EINVAL, "unable to parse requirement: \"%.80s\": %s", r->key, wrong);
    }
    next(l);
    if (absent || l->token == T_END || l->token == T_COMMA) {
        return 0;
    }
    enum token op = l->token;
    if (is_word(l, "in") || is_word(l, "notin")) {
        r->op = l->size == 2 ? OP_IN : OP_NOT_IN;
        next(l);
        return parse_set(l, r, e);
    }
    if (op != T_EQ && op != T_NE && op != T_GT && op != T_LT) {
        return err_set(e, -EINVAL,
                       "unable to parse requirement: found '%.40s', expected an operator",
                       l->token == T_WORD ? l->word : l->p - 1);
    }
    next(l);
    char *value = l->token == T_WORD ? xstrndup(l->word, l->size) : xstrdup("");
    add_value(r, value);
    if (l->token == T_WORD) {
        next(l);
    }
    r->op = op == T_EQ ? OP_IN : op == T_NE ? OP_NOT_IN : op == T_GT ? OP_GREATER : OP_LESS;
    if ((op == T_GT || op == T_LT) && str_to_i64(value, INT64_MIN, INT64_MAX, &r->number) < 0) {
        return err_set(e, -EINVAL, "for '>' and '<' the value must be an integer, not \"%.40s\"",
                       value);
    }
    return check_value(value, e);
}

int api_selector_parse_labels(const char *text, struct api_selector **ret, struct err *e)
{
    CLEANUP(api_selector_free) struct api_selector *s = NEW(struct api_selector);
    struct lexer l = {.p = text};
    for (next(&l); l.token != T_END;) {
        int r = parse_requirement(&l, s, e);
        if (r < 0) {
            return r;
        }
        if (l.token == T_COMMA) {
            next(&l);
            if (l.token == T_END) {
                return err_set(e, -EINVAL, "found '', expected: identifier after ','");
            }
        } else if (l.token != T_END) {
            return err_set(e, -EINVAL, "unable to parse requirement: expected ',' before \"%.40s\"",
                           l.token == T_WORD ? l.word : l.p - 1);
        }
    }
    *ret = TAKE(s);
    return 0;
}

/* ---- field selector text ---- */

/* Appends the value up to an unescaped comma; -EINVAL on a bad escape. */
static int unescape(const char *p, size_t n, struct strbuf *out)
{
    for (size_t i = 0; i < n; i++) {
        if (p[i] == '\\') {
            if (++i == n || !strchr("\\,=", p[i])) {
                return -EINVAL;
            }
        } else if (p[i] == '=') {
            return -EINVAL;
        }
        strbuf_addc(out, p[i]);
    }
    return 0;
}

static int parse_field(const struct api_kind *k, const char *p, size_t n, struct api_selector *s,
                       struct err *e)
{
    size_t eq = 0;
    while (eq < n && p[eq] != '=' && p[eq] != '!') {
        eq++;
    }
    bool not = eq < n && p[eq] == '!';
    size_t value = eq + not ;
    if (value >= n || p[value] != '=') {
        return err_set(e, -EINVAL, "invalid selector: can't understand '%.*s'",
                       (int) MIN(n, (size_t) 80), p);
    }
    value++;
    if (!not &&value < n && p[value] == '=') {
        value++;
    }
    CLEANUP_FREE char *label = xstrndup(p, eq);
    int field = api_field_find(k, label);
    if (field < 0 && !k->selectable && !k->custom) {
        return err_set(e, -ENOTSUP,
                       "\"%.80s\" is not a known field selector: only \"metadata.name\", "
                       "\"metadata.namespace\"",
                       label);
    }
    if (field < 0) {
        return err_set(e, -ENOTSUP, "field label not supported: %.80s", label);
    }
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    if (unescape(p + value, n - value, &text) < 0) {
        return err_set(e, -EINVAL,
                       "invalid field selector: invalid escape sequence or unescaped "
                       "'=' in '%.*s'",
                       (int) MIN(n, (size_t) 80), p);
    }
    add_value(add_requirement(s, not ? OP_NOT_IN : OP_IN, field), strbuf_steal(&text));
    return 0;
}

int api_selector_parse_fields(const struct api_kind *k, const char *text, struct api_selector **ret,
                              struct err *e)
{
    CLEANUP(api_selector_free) struct api_selector *s = NEW(struct api_selector);
    while (*text) {
        size_t n = 0;
        while (text[n] && text[n] != ',') {
            n += text[n] == '\\' && text[n + 1] ? 2 : 1;
        }
        int r = n ? parse_field(k, text, n, s, e) : 0;
        if (r < 0) {
            return r;
        }
        text += n + (text[n] == ',');
    }
    *ret = TAKE(s);
    return 0;
}
