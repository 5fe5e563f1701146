/* SPDX-License-Identifier: Apache-2.0 */
#include "oauth/template.h"

#include "base/mem.h"

#include <ctype.h>

#define OPS_MAX 4096
#define DEPTH_MAX 16

/* A template is a program: a list of steps, in which blocks are jumps. */
enum op_type { OP_TEXT, OP_VALUE, OP_UNLESS, OP_JUMP, OP_RANGE, OP_NEXT };

struct op {
    enum op_type type;
    char *text;     /* OP_TEXT; the path of a value in all others; NULL: none. */
    char *variable; /* OP_RANGE: the name with "$"; NULL: none. */
    char *compared; /* OP_UNLESS: eq or ne with this text; NULL: whether the value is empty. */
    bool negated;   /* OP_UNLESS: not, ne. */
    size_t target;  /* The step to go to; OP_NEXT: its OP_RANGE. */
};

struct template
{
    struct op *ops;
    size_t n, cap;
};

struct template *template_free(struct template *t)
{
    for (size_t i = 0; t && i < t->n; i++) {
        free(t->ops[i].text);
        free(t->ops[i].variable);
        free(t->ops[i].compared);
    }
    if (t) {
        free(t->ops);
        free(t);
    }
    return NULL;
}

/* ---- where in the HTML a value stands ---- */

enum html_state { HTML_TEXT, HTML_TAG, HTML_DOUBLE, HTML_SINGLE, HTML_RAW, HTML_COMMENT };

struct html {
    enum html_state state;
    char tag[8]; /* The element whose content is raw: script or style. */
};

static bool begins(const char *p, const char *end, const char *word)
{
    for (; *word; word++, p++) {
        if (p == end || tolower((unsigned char) *p) != *word) {
            return false;
        }
    }
    return true;
}

static void html_open_tag(struct html *h, const char *p, const char *end)
{
    static const char *const raw[] = {"script", "style"};
    h->state = HTML_TAG;
    h->tag[0] = '\0';
    for (size_t i = 0; i < ARRAY_SIZE(raw); i++) {
        if (begins(p + 1, end, raw[i])) {
            memcpy(h->tag, raw[i], strlen(raw[i]) + 1);
        }
    }
}

static void html_step(struct html *h, const char *p, const char *end)
{
    switch (h->state) {
    case HTML_TEXT:
        if (begins(p, end, "<!--")) {
            h->state = HTML_COMMENT;
        } else if (*p == '<' &&
                   (p + 1 == end || isalpha((unsigned char) p[1]) || strchr("/!?", p[1]))) {
            html_open_tag(h, p, end);
        }
        break;
    case HTML_TAG:
        h->state = *p == '"'           ? HTML_DOUBLE
                   : *p == '\''        ? HTML_SINGLE
                   : *p != '>'         ? HTML_TAG
                   : h->tag[0] != '\0' ? HTML_RAW
                                       : HTML_TEXT;
        break;
    case HTML_DOUBLE:
        h->state = *p == '"' ? HTML_TAG : HTML_DOUBLE;
        break;
    case HTML_SINGLE:
        h->state = *p == '\'' ? HTML_TAG : HTML_SINGLE;
        break;
    case HTML_RAW:
        if (*p == '<' && p + 1 < end && p[1] == '/' && begins(p + 2, end, h->tag)) {
            h->state = HTML_TAG;
            h->tag[0] = '\0';
        }
        break;
    case HTML_COMMENT:
        h->state = begins(p, end, "-->") ? HTML_TEXT : HTML_COMMENT;
        break;
    }
}

static void html_read(struct html *h, const char *p, const char *end)
{
    for (; p < end; p++) {
        html_step(h, p, end);
    }
}

/* ---- parsing ---- */

struct block {
    size_t start;     /* The OP_UNLESS or OP_RANGE. */
    size_t jumps[64]; /* Ends of branches, which go behind the block. */
    size_t n_jumps;
    bool range, has_else;
};

struct parser {
    struct template *t;
    const char *text, *end, *at;
    struct html html;
    struct block blocks[DEPTH_MAX];
    size_t depth;
    bool trim; /* White space at the beginning of the next text is taken away. */
    struct err *e;
};

static int fail(struct parser *p, const char *why)
{
    size_t line = 1;
    for (const char *c = p->text; c < p->at && c < p->end; c++) {
        line += *c == '\n';
    }
    return err_set(p->e, -EINVAL, "line %zu: %s", line, why);
}

static struct op *add_op(struct parser *p, enum op_type type)
{
    struct template *t = p->t;
    t->ops = grow(t->ops, &t->cap, t->n + 1, sizeof *t->ops);
    t->ops[t->n] = (struct op){.type = type};
    return &t->ops[t->n++];
}

static void add_text(struct parser *p, const char *from, const char *to, bool trim_end)
{
    while (p->trim && from < to && isspace((unsigned char) *from)) {
        from++;
    }
    while (trim_end && to > from && isspace((unsigned char) to[-1])) {
        to--;
    }
    p->trim = false;
    html_read(&p->html, from, to);
    if (from < to) {
        struct op *o = add_op(p, OP_TEXT);
        o->text = xstrndup(from, (size_t) (to - from));
    }
}

/* The next word of an action, owned; a quoted text keeps its first quote.  NULL: there is none. */
static char *take_word(const char **at)
{
    const char *s = *at + strspn(*at, " \t\r\n");
    size_t n = strcspn(s, " \t\r\n");
    if (*s == '"') {
        const char *close = strchr(s + 1, '"');
        n = close ? (size_t) (close - s) : 0;
        *at = close ? close + 1 : s + strlen(s);
        return n ? xstrndup(s, n) : NULL;
    }
    *at = s + n;
    return n ? xstrndup(s, n) : NULL;
}

static bool is_path(const char *s)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.";
    if (*s == '$') {
        s++;
    } else if (*s != '.') {
        return false;
    }
    return strspn(s, letters) == strlen(s) && !strstr(s, "..");
}

/* Reads the condition of an "if" into 'o'. */
static int read_condition(struct parser *p, struct op *o, const char *args)
{
    CLEANUP_FREE char *word = take_word(&args);
    bool compares = word && (streq(word, "eq") || streq(word, "ne"));
    o->negated = word && (streq(word, "not") || streq(word, "ne"));
    if (compares || o->negated) {
        free(word);
        word = take_word(&args);
    }
    CLEANUP_FREE char *literal = compares ? take_word(&args) : NULL;
    CLEANUP_FREE char *more = take_word(&args);
    if (!word || !is_path(word) || more || (compares && (!literal || *literal != '"'))) {
        return fail(p, "a condition is a value, \"not\" and a value, or \"eq\" or \"ne\" with a "
                       "value and a quoted text");
    }
    o->text = TAKE(word);
    o->compared = literal ? xstrdup(literal + 1) : NULL;
    return 0;
}

static int open_block(struct parser *p, bool range)
{
    if (p->depth == DEPTH_MAX) {
        return fail(p, "blocks are nested too deeply");
    }
    p->blocks[p->depth++] = (struct block){.start = p->t->n - 1, .range = range};
    return 0;
}

static int read_if(struct parser *p, const char *args)
{
    struct op *o = add_op(p, OP_UNLESS);
    int r = read_condition(p, o, args);
    return r < 0 ? r : open_block(p, false);
}

static int read_range(struct parser *p, const char *args)
{
    CLEANUP_FREE char *word = take_word(&args);
    CLEANUP_FREE char *assign = word && *word == '$' ? take_word(&args) : NULL;
    CLEANUP_FREE char *path = assign ? take_word(&args) : NULL;
    CLEANUP_FREE char *more = take_word(&args);
    if (assign && (!streq(assign, ":=") || strchr(word, '.') || !is_path(word))) {
        return fail(p, "a range with a variable is \"range $name := .List\"");
    }
    const char *list = assign ? path : word;
    if (!list || !is_path(list) || more) {
        return fail(p, "a range needs a list such as .Providers");
    }
    struct op *o = add_op(p, OP_RANGE);
    o->text = xstrdup(list);
    o->variable = assign ? xstrdup(word) : NULL;
    return open_block(p, true);
}

/* Ends a branch of the innermost block: its end jumps behind the block, and what comes next begins
 * the other branch. */
static int end_branch(struct parser *p)
{
    struct block *b = p->depth ? &p->blocks[p->depth - 1] : NULL;
    if (!b || b->range || b->has_else) {
        return fail(p, "else without an if");
    }
    if (b->n_jumps == ARRAY_SIZE(b->jumps)) {
        return fail(p, "too many branches");
    }
    (void) add_op(p, OP_JUMP);
    b->jumps[b->n_jumps++] = p->t->n - 1;
    p->t->ops[b->start].target = p->t->n;
    return 0;
}

static int read_else(struct parser *p, const char *args)
{
    CLEANUP_FREE char *word = take_word(&args);
    int r = end_branch(p);
    if (r < 0) {
        return r;
    }
    struct block *b = &p->blocks[p->depth - 1];
    if (!word) {
        b->has_else = true;
        return 0;
    }
    if (!streq(word, "if")) {
        return fail(p, "only \"if\" may follow \"else\"");
    }
    struct op *o = add_op(p, OP_UNLESS);
    b->start = p->t->n - 1;
    return read_condition(p, o, args);
}

static int read_end(struct parser *p)
{
    if (!p->depth) {
        return fail(p, "end without a block");
    }
    struct block *b = &p->blocks[--p->depth];
    if (b->range) {
        struct op *o = add_op(p, OP_NEXT);
        o->target = b->start;
    }
    if (!b->has_else) {
        p->t->ops[b->start].target = p->t->n;
    }
    for (size_t i = 0; i < b->n_jumps; i++) {
        p->t->ops[b->jumps[i]].target = p->t->n;
    }
    return 0;
}

static int read_value(struct parser *p, const char *path, const char *args)
{
    CLEANUP_FREE char *more = take_word(&args);
    if (!is_path(path) || more) {
        return fail(p, "this action is not supported: there are values, if, else, end and range");
    }
    if (p->html.state != HTML_TEXT && p->html.state != HTML_DOUBLE &&
        p->html.state != HTML_SINGLE) {
        return fail(p, "a value may stand in text and in quoted attributes only");
    }
    struct op *o = add_op(p, OP_VALUE);
    o->text = xstrdup(path);
    return 0;
}

static int read_action(struct parser *p, const char *body)
{
    if (strncmp(body, "/*", 2) == 0) {
        return 0;
    }
    CLEANUP_FREE char *word = take_word(&body);
    if (p->t->n >= OPS_MAX) {
        return fail(p, "the template has too many actions");
    }
    return !word                  ? fail(p, "an action is empty")
           : streq(word, "if")    ? read_if(p, body)
           : streq(word, "else")  ? read_else(p, body)
           : streq(word, "end")   ? read_end(p)
           : streq(word, "range") ? read_range(p, body)
                                  : read_value(p, word, body);
}

/* Reads the text up to the next action, and the action. */
static int read_piece(struct parser *p)
{
    const char *open = memmem(p->at, (size_t) (p->end - p->at), "{{", 2);
    const char *close = open ? memmem(open, (size_t) (p->end - open), "}}", 2) : NULL;
    if (!open) {
        add_text(p, p->at, p->end, false);
        p->at = p->end;
        return 0;
    }
    bool trim_left = open + 2 < p->end && open[2] == '-';
    add_text(p, p->at, open, trim_left);
    p->at = open;
    if (!close) {
        return fail(p, "\"{{\" without \"}}\"");
    }
    const char *from = open + 2 + trim_left, *to = close;
    bool trim_right = to > from && to[-1] == '-';
    to -= trim_right;
    CLEANUP_FREE char *body = xstrndup(from < to ? from : to, from < to ? (size_t) (to - from) : 0);
    int r = read_action(p, body + strspn(body, " \t\r\n"));
    p->at = close + 2;
    p->trim = trim_right;
    return r;
}

int template_parse(const char *text, size_t size, struct template **ret, struct err *e)
{
    CLEANUP(template_free) struct template *t = NEW(struct template);
    struct parser p = {.t = t, .text = text, .end = text + size, .at = text, .e = e};
    if (size > TEMPLATE_SIZE_MAX) {
        return err_set(e, -EINVAL, "the template is larger than %zu bytes", TEMPLATE_SIZE_MAX);
    }
    if (memchr(text, '\0', size)) {
        return err_set(e, -EINVAL, "the template has a NUL");
    }
    while (p.at < p.end) {
        int r = read_piece(&p);
        if (r < 0) {
            return r;
        }
    }
    if (p.depth) {
        return fail(&p, "a block has no end");
    }
    *ret = TAKE(t);
    return 0;
}

/* ---- writing ---- */

void template_escape(const char *s, struct strbuf *out)
{
    for (; *s; s++) {
        switch (*s) {
        case '&':
            strbuf_adds(out, "&amp;");
            break;
        case '<':
            strbuf_adds(out, "&lt;");
            break;
        case '>':
            strbuf_adds(out, "&gt;");
            break;
        case '"':
            strbuf_adds(out, "&#34;");
            break;
        case '\'':
            strbuf_adds(out, "&#39;");
            break;
        case '`':
            strbuf_adds(out, "&#96;");
            break;
        default:
            strbuf_addc(out, *s);
        }
    }
}

struct loop_state {
    const struct json *list;
    size_t i;
    const char *variable;
    size_t op;
};

struct writer {
    const struct template *t;
    const struct json *root;
    struct loop_state loops[DEPTH_MAX];
    size_t depth;
};

static const struct json *item(const struct loop_state *l)
{
    return json_at(l->list, l->i);
}

/* The value of a path: from the variable it names, else from the innermost element. */
static const struct json *look_up(const struct writer *w, const char *path)
{
    const struct json *v = w->root;
    size_t name = strcspn(path, ".");
    if (*path == '$' && name > 1) {
        v = NULL;
        for (size_t i = w->depth; i-- > 0 && !v;) {
            const char *variable = w->loops[i].variable;
            v = variable && strlen(variable) == name && strncmp(variable, path, name) == 0
                    ? item(&w->loops[i])
                    : NULL;
        }
    } else if (*path != '$') {
        for (size_t i = 0; i < w->depth; i++) {
            v = w->loops[i].variable ? v : item(&w->loops[i]);
        }
    }
    path += name;
    while (*path == '.' && path[1]) {
        size_t n = strcspn(path + 1, ".");
        CLEANUP_FREE char *key = xstrndup(path + 1, n);
        v = json_get(v, key);
        path += 1 + n;
    }
    return v;
}

static bool is_true(const struct json *v)
{
    switch (json_type(v)) {
    case JSON_BOOL:
        return json_get_bool(v, false);
    case JSON_NUMBER:
        return !streq(json_number_text(v), "0");
    case JSON_STRING:
        return json_string_size(v) > 0;
    case JSON_ARRAY:
    case JSON_OBJECT:
        return json_count(v) > 0;
    default:
        return false;
    }
}

static bool holds(const struct writer *w, const struct op *o)
{
    const struct json *v = look_up(w, o->text);
    const char *text = json_get_string(v);
    bool r = o->compared ? streq(text ? text : "", o->compared) : is_true(v);
    return r != o->negated;
}

static void write_value(const struct json *v, struct strbuf *out)
{
    if (json_is(v, JSON_STRING)) {
        template_escape(json_get_string(v), out);
    } else if (json_is(v, JSON_NUMBER)) {
        strbuf_adds(out, json_number_text(v));
    } else if (json_is(v, JSON_BOOL)) {
        strbuf_adds(out, json_get_bool(v, false) ? "true" : "false");
    }
}

/* Begins a loop, or goes on with it; the step that comes next. */
static size_t run_loop(struct writer *w, const struct op *o, size_t at)
{
    if (o->type == OP_RANGE) {
        const struct json *list = look_up(w, o->text);
        if (!json_is(list, JSON_ARRAY) || !json_count(list)) {
            return o->target;
        }
        w->loops[w->depth++] = (struct loop_state){list, 0, o->variable, at};
        return at + 1;
    }
    struct loop_state *l = &w->loops[w->depth - 1];
    if (++l->i < json_count(l->list)) {
        return l->op + 1;
    }
    w->depth--;
    return at + 1;
}

void template_write(const struct template *t, const struct json *data, struct strbuf *out)
{
    struct writer w = {.t = t, .root = data};
    for (size_t i = 0; i < t->n && !out->failed;) {
        const struct op *o = &t->ops[i];
        switch (o->type) {
        case OP_TEXT:
            strbuf_adds(out, o->text);
            i++;
            break;
        case OP_VALUE:
            write_value(look_up(&w, o->text), out);
            i++;
            break;
        case OP_UNLESS:
            i = holds(&w, o) ? i + 1 : o->target;
            break;
        case OP_JUMP:
            i = o->target;
            break;
        case OP_RANGE:
        case OP_NEXT:
            i = run_loop(&w, o, i);
            break;
        }
    }
}
