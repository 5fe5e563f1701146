/* SPDX-License-Identifier: Apache-2.0 */
#include "api/table/jsonpath.h"

#include "base/mem.h"

#include <stdlib.h>

#define MAX_NESTING 16

/* Values found so far; they belong to the object. */
struct values {
    const struct json **list;
    size_t n, cap;
};

static void values_done(struct values *v)
{
    free(v->list);
}
#define CLEANUP_VALUES __attribute__((cleanup(values_done)))

static void values_add(struct values *v, const struct json *j)
{
    if (j) {
        v->list = grow(v->list, &v->cap, v->n + 1, sizeof(*v->list));
        v->list[v->n++] = j;
    }
}

static void values_add_all(struct values *v, const struct json *j)
{
    if (json_is(j, JSON_ARRAY) || json_is(j, JSON_OBJECT)) {
        for (size_t i = 0; i < json_count(j); i++) {
            values_add(v, json_at(j, i));
        }
    }
}

/* The rest of a template, and the values of '@' and '$'. */
struct cursor {
    const char *p;
    const struct json *root, *here;
    const char *between; /* Separator of several results. */
    struct err *e;
    unsigned nesting;
};

static int wrong(struct cursor *c, const char *what)
{
    return err_set(c->e, -EINVAL, "jsonpath: %s at \"%.30s\"", what, c->p);
}

static void skip_blanks(struct cursor *c)
{
    while (*c->p == ' ' || *c->p == '\t' || *c->p == '\n') {
        c->p++;
    }
}

/* A string in ' or ", with escapes; appended to 'out'. */
static int parse_quoted(struct cursor *c, struct strbuf *out)
{
    char quote = *c->p++;
    for (; *c->p && *c->p != quote; c->p++) {
        if (*c->p != '\\') {
            strbuf_addc(out, *c->p);
            continue;
        }
        c->p++;
        switch (*c->p) {
        case 'n':
            strbuf_addc(out, '\n');
            break;
        case 't':
            strbuf_addc(out, '\t');
            break;
        case 'r':
            strbuf_addc(out, '\r');
            break;
        case '\0':
            return wrong(c, "unterminated string");
        default:
            strbuf_addc(out, *c->p);
        }
    }
    if (*c->p != quote) {
        return wrong(c, "unterminated string");
    }
    c->p++;
    return 0;
}

/* The name of a field up to its end; "\." is a dot in the name. */
static int parse_name(struct cursor *c, struct strbuf *out)
{
    while (*c->p && !strchr(".[]{}()=!<>,| \t\n\"'", *c->p)) {
        if (*c->p == '\\' && c->p[1]) {
            c->p++;
        }
        strbuf_addc(out, *c->p++);
    }
    return out->size ? 0 : wrong(c, "field name expected");
}

static int parse_path(struct cursor *c, struct values *ret);

static void descend(const struct json *v, const char *name, struct values *ret)
{
    if (json_is(v, JSON_OBJECT)) {
        values_add(ret, json_get(v, name));
    }
    if (json_is(v, JSON_OBJECT) || json_is(v, JSON_ARRAY)) {
        for (size_t i = 0; i < json_count(v); i++) {
            descend(json_at(v, i), name, ret);
        }
    }
}

/* ---- filters ---- */

/* One side of a comparison: a path, or a literal, which '*owned' then has. */
static int parse_operand(struct cursor *c, struct values *ret, struct json **owned)
{
    skip_blanks(c);
    if (*c->p == '\'' || *c->p == '"') {
        CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
        int r = parse_quoted(c, &text);
        if (r < 0) {
            return r;
        }
        *owned = json_string_n(strbuf_cstr(&text), text.size);
    } else if (*c->p == '@' || *c->p == '$' || *c->p == '.') {
        return parse_path(c, ret);
    } else {
        size_t n = strcspn(c->p, " \t)=!<>");
        CLEANUP(json_free) struct json *v = NULL;
        if (json_parse(c->p, n, &v, NULL) < 0) {
            return wrong(c, "value expected");
        }
        c->p += n;
        *owned = TAKE(v);
    }
    values_add(ret, *owned);
    return 0;
}

static bool number_of(const struct json *v, double *ret)
{
    const char *text = json_number_text(v);
    if (text) {
        *ret = strtod(text, NULL);
    }
    return text != NULL;
}

static bool compare(const struct json *a, const char *op, const struct json *b)
{
    double x = 0, y = 0;
    int order = 0;
    if (number_of(a, &x) && number_of(b, &y)) {
        order = x < y ? -1 : x > y;
    } else if (json_is(a, JSON_STRING) && json_is(b, JSON_STRING)) {
        order = strcmp(json_get_string(a), json_get_string(b));
    } else if (op[0] == '=' || op[0] == '!') {
        return json_equal(a, b) == (op[0] == '=');
    } else {
        return false;
    }
    switch (op[0]) {
    case '=':
        return order == 0;
    case '!':
        return order != 0;
    case '<':
        return op[1] ? order <= 0 : order < 0;
    default:
        return op[1] ? order >= 0 : order > 0;
    }
}

/* "@.a==1)": the condition inside of [?( )], about '@' = c->here. */
static int parse_condition(struct cursor *c, bool *ret)
{
    static const char *const ops[] = {"==", "!=", "<=", ">=", "<", ">"};
    CLEANUP_VALUES struct values left = {0}, right = {0};
    CLEANUP(json_free) struct json *left_owned = NULL;
    CLEANUP(json_free) struct json *right_owned = NULL;
    int r = parse_operand(c, &left, &left_owned);
    if (r < 0) {
        return r;
    }
    skip_blanks(c);
    const char *op = NULL;
    for (size_t i = 0; !op && i < ARRAY_SIZE(ops); i++) {
        op = str_has_prefix(c->p, ops[i]) ? ops[i] : NULL;
    }
    if (!op) {
        *ret = left.n > 0;
        return 0;
    }
    c->p += strlen(op);
    r = parse_operand(c, &right, &right_owned);
    if (r < 0) {
        return r;
    }
    *ret = left.n > 0 && right.n > 0 && compare(left.list[0], op, right.list[0]);
    return 0;
}

static int parse_filter(struct cursor *c, const struct values *in, struct values *ret)
{
    const char *start = c->p;
    const struct json *outer = c->here;
    CLEANUP_VALUES struct values elements = {0};
    for (size_t i = 0; i < in->n; i++) {
        values_add_all(&elements, in->list[i]);
    }
    /* Also once without an element, so that the text is checked and skipped. */
    for (size_t i = 0; i <= elements.n; i++) {
        bool holds = false;
        c->p = start;
        c->here = i < elements.n ? elements.list[i] : NULL;
        int r = parse_condition(c, &holds);
        if (r < 0) {
            return r;
        }
        if (holds && i < elements.n) {
            values_add(ret, elements.list[i]);
        }
    }
    c->here = outer;
    skip_blanks(c);
    if (c->p[0] != ')' || c->p[1] != ']') {
        return wrong(c, "\")]\" expected");
    }
    c->p += 2;
    return 0;
}

/* ---- paths ---- */

static int parse_index(struct cursor *c, int64_t *ret)
{
    size_t n = strspn(c->p, "-0123456789");
    CLEANUP_FREE char *text = xstrndup(c->p, n);
    if (str_to_i64(text, INT32_MIN, INT32_MAX, ret) < 0) {
        return wrong(c, "number expected");
    }
    c->p += n;
    return 0;
}

/* "0]", "-1]", "1:3]", ":2]", "1:]" */
static int parse_elements(struct cursor *c, const struct values *in, struct values *ret)
{
    int64_t from = 0, to = 0;
    bool range = false, open = false;
    if (*c->p != ':' && parse_index(c, &from) < 0) {
        return -EINVAL;
    }
    if (*c->p == ':') {
        c->p++;
        range = true;
        open = *c->p == ']';
        if (!open && parse_index(c, &to) < 0) {
            return -EINVAL;
        }
    }
    if (*c->p++ != ']') {
        c->p--;
        return wrong(c, "\"]\" expected");
    }
    for (size_t i = 0; i < in->n; i++) {
        if (!json_is(in->list[i], JSON_ARRAY)) {
            continue;
        }
        int64_t n = (int64_t) json_count(in->list[i]);
        int64_t first = from < 0 ? from + n : from;
        int64_t end = !range ? first + 1 : open ? n : to < 0 ? to + n : to;
        for (int64_t k = MAX(first, 0); k < MIN(end, n); k++) {
            values_add(ret, json_at(in->list[i], (size_t) k));
        }
    }
    return 0;
}

/* The part after "[". */
static int parse_bracket(struct cursor *c, const struct values *in, struct values *ret)
{
    if (str_has_prefix(c->p, "*]")) {
        c->p += 2;
        for (size_t i = 0; i < in->n; i++) {
            values_add_all(ret, in->list[i]);
        }
        return 0;
    }
    if (str_has_prefix(c->p, "?(")) {
        c->p += 2;
        if (++c->nesting > MAX_NESTING) {
            return wrong(c, "too deep");
        }
        int r = parse_filter(c, in, ret);
        c->nesting--;
        return r;
    }
    if (*c->p != '\'' && *c->p != '"') {
        return parse_elements(c, in, ret);
    }
    CLEANUP_STRBUF struct strbuf name = STRBUF_INIT;
    int r = parse_quoted(c, &name);
    if (r < 0) {
        return r;
    }
    if (*c->p != ']') {
        return wrong(c, "\"]\" expected");
    }
    c->p++;
    for (size_t i = 0; i < in->n; i++) {
        values_add(ret, json_get(in->list[i], strbuf_cstr(&name)));
    }
    return 0;
}

/* The part after ".": a name, "*", or a second dot and a name. */
static int parse_field(struct cursor *c, const struct values *in, struct values *ret)
{
    if (*c->p == '*') {
        c->p++;
        for (size_t i = 0; i < in->n; i++) {
            values_add_all(ret, in->list[i]);
        }
        return 0;
    }
    bool deep = *c->p == '.';
    c->p += deep;
    CLEANUP_STRBUF struct strbuf name = STRBUF_INIT;
    int r = parse_name(c, &name);
    if (r < 0) {
        return r;
    }
    for (size_t i = 0; i < in->n; i++) {
        if (deep) {
            descend(in->list[i], strbuf_cstr(&name), ret);
        } else {
            values_add(ret, json_get(in->list[i], strbuf_cstr(&name)));
        }
    }
    return 0;
}

static int parse_path(struct cursor *c, struct values *ret)
{
    values_add(ret, *c->p == '$' ? c->root : c->here);
    if (*c->p == '$' || *c->p == '@') {
        c->p++;
    }
    while (*c->p == '.' || *c->p == '[') {
        char how = *c->p++;
        if (how == '.' && (*c->p == '[' || strchr("})= \t", *c->p))) {
            continue; /* "{.}" and ".[0]" */
        }
        struct values next = {0};
        int r = how == '.' ? parse_field(c, ret, &next) : parse_bracket(c, ret, &next);
        free(ret->list);
        *ret = next;
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

/* ---- templates ---- */

static void print_value(const struct json *v, struct strbuf *out)
{
    if (json_is(v, JSON_STRING)) {
        strbuf_add(out, json_get_string(v), json_string_size(v));
    } else if (!json_is(v, JSON_NULL)) {
        json_write(v, 0, out);
    }
}

static int print_expression(struct cursor *c, struct strbuf *out)
{
    if (*c->p == '"' || *c->p == '\'') {
        return parse_quoted(c, out);
    }
    if (!strchr(".[$@", *c->p) || !*c->p) {
        return wrong(c, "path expected");
    }
    CLEANUP_VALUES struct values v = {0};
    int r = parse_path(c, &v);
    for (size_t i = 0; r == 0 && i < v.n; i++) {
        strbuf_adds(out, i > 0 ? c->between : "");
        print_value(v.list[i], out);
    }
    return r;
}

static int print_template(struct cursor *c, struct strbuf *out, bool in_range);

static int close_brace(struct cursor *c)
{
    skip_blanks(c);
    if (*c->p != '}') {
        return wrong(c, "\"}\" expected");
    }
    c->p++;
    return 0;
}

/* The part after "{range ": the path, and the repeated text up to "{end}". */
static int print_range(struct cursor *c, struct strbuf *out)
{
    CLEANUP_VALUES struct values v = {0};
    skip_blanks(c);
    int r = ++c->nesting > MAX_NESTING ? wrong(c, "too deep") : parse_path(c, &v);
    if (r < 0 || (r = close_brace(c)) < 0) {
        return r;
    }
    const char *body = c->p;
    const struct json *outer = c->here;
    CLEANUP_STRBUF struct strbuf unused = STRBUF_INIT;
    for (size_t i = 0; i < MAX(v.n, 1); i++) {
        c->p = body;
        c->here = v.n ? v.list[i] : NULL;
        r = print_template(c, v.n ? out : &unused, true);
        if (r < 0) {
            return r;
        }
    }
    c->here = outer;
    c->nesting--;
    return 0;
}

static int print_template(struct cursor *c, struct strbuf *out, bool in_range)
{
    while (*c->p) {
        if (*c->p != '{') {
            strbuf_addc(out, *c->p++);
            continue;
        }
        c->p++;
        skip_blanks(c);
        int r;
        if (str_has_prefix(c->p, "end") && strchr("} ", c->p[3])) {
            c->p += 3;
            return in_range ? close_brace(c) : wrong(c, "\"end\" without \"range\"");
        }
        if (str_has_prefix(c->p, "range ")) {
            c->p += 6;
            r = print_range(c, out);
        } else {
            r = print_expression(c, out);
            r = r < 0 ? r : close_brace(c);
        }
        if (r < 0) {
            return r;
        }
    }
    return in_range ? wrong(c, "\"{end}\" expected") : 0;
}

int jsonpath_print(const char *template, const struct json *v, struct strbuf *out, struct err *e)
{
    return jsonpath_join(template, v, " ", out, e);
}

int jsonpath_join(const char *template, const struct json *v, const char *between,
                  struct strbuf *out, struct err *e)
{
    /* A bare path needs no braces, as in kubectl. */
    CLEANUP_FREE char *text = NULL;
    if (!strchr(template, '{')) {
        text =
            strchr(".[$@", *template) ? xasprintf("{%s}", template) : xasprintf("{.%s}", template);
    }
    struct cursor c = {
        .p = text ? text : template, .root = v, .here = v, .between = between, .e = e};
    return print_template(&c, out, false);
}

ssize_t jsonpath_find(const char *path, const struct json *v, const struct json **ret, size_t max,
                      struct err *e)
{
    struct cursor c = {.p = path, .root = v, .here = v, .e = e};
    CLEANUP_VALUES struct values found = {0};
    if (*path != '.' && *path != '[' && *path != '$') {
        return wrong(&c, "path expected");
    }
    int r = parse_path(&c, &found);
    if (r < 0) {
        return r;
    }
    if (*c.p) {
        return wrong(&c, "unexpected text");
    }
    for (size_t i = 0; i < MIN(found.n, max); i++) {
        ret[i] = found.list[i];
    }
    return (ssize_t) found.n;
}
