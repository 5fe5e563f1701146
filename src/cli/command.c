/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command.h"

#include "base/log.h"
#include "base/mem.h"
#include "cli/shown.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

LOG_MODULE("tenet");

#define HELP_WIDTH 96  /* Columns of "--help". */
#define HELP_NAMES 30  /* Longer option names have a line of their own. */
#define HELP_INDENT 26 /* The least column of the help texts. */

/* ---- rows ---- */

/* The attributes of a setting, besides its default. */
static char *setting_help(const struct option_row *row)
{
    const char *dflt = row->dflt && *row->dflt ? row->dflt : row->dflt ? "none" : row->unset;
    return dflt ? xasprintf("%s; default: %s", row->help, dflt) : xstrdup(row->help);
}

void command_each_option(const struct command *c,
                         void (*fn)(void *ctx, const struct command_option *o), void *ctx)
{
    static const struct command_option help = {.name = "help", .id = 'h', .help = "this text"};
    const struct command_option *const lists[] = {c->options, c->shared};
    for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
        for (const struct command_option *o = lists[i]; o && (o->name || o->help); o++) {
            fn(ctx, o);
        }
    }
    for (size_t i = 0; c->settings && i < c->settings->n; i++) {
        const struct option_row *row = &c->settings->rows[i];
        if (!row->flag || !option_is_for(row, c->daemons)) {
            continue;
        }
        CLEANUP_FREE char *text = setting_help(row);
        struct command_option o = {.name = row->flag,
                                   .id = OPT_SETTING,
                                   .arg = row->arg,
                                   .help = text,
                                   .complete =
                                       row->type == OPTION_FILE ? COMPLETE_FILE : row->choices};
        fn(ctx, &o);
    }
    fn(ctx, &help);
}

/* ---- parsing ---- */

/* Option tables for getopt_long(3). */
struct parser {
    struct option *longs;
    size_t n, cap;
    struct strbuf shorts;
};

static void add_option(void *ctx, const struct command_option *o)
{
    struct parser *p = ctx;
    bool optional = o->arg && *o->arg == '[';
    if (!o->name) {
        return;
    }
    p->longs = grow(p->longs, &p->cap, p->n + 2, sizeof(*p->longs));
    p->longs[p->n++] = (struct option){.name = o->name,
                                       .has_arg = optional ? optional_argument
                                                  : o->arg ? required_argument
                                                           : no_argument,
                                       .val = o->id};
    p->longs[p->n] = (struct option){0};
    if (o->id < OPT_HELP) {
        strbuf_addf(&p->shorts, "%c%s", o->id, o->arg ? ":" : "");
    }
}

/* The long name of the option that getopt_long found; rows outlive the parser. */
static const char *name_of(const struct parser *p, int id, int index)
{
    for (size_t i = 0; index < 0 && i < p->n; i++) {
        if (p->longs[i].val == id) {
            index = (int) i;
        }
    }
    return index < 0 ? NULL : p->longs[index].name;
}

static int report(const struct command *c, int opt, char **argv)
{
    char letter[] = {'-', (char) optopt, '\0'};
    bool is_short = optopt > ' ' && optopt < 0x7f;
    (void) command_usage(c, "%s %s", opt == ':' ? "a value is missing after" : "wrong option",
                         is_short ? letter : argv[optind - 1]);
    return '?';
}

int command_getopt(const struct command *c, int argc, char **argv, const char **ret_name)
{
    struct parser p = {.shorts = STRBUF_INIT};
    int index = -1;
    strbuf_addc(&p.shorts, ':');
    command_each_option(c, add_option, &p);
    opterr = 0;
    int opt = getopt_long(argc, argv, strbuf_cstr(&p.shorts), p.longs, &index);
    if (ret_name) {
        *ret_name = name_of(&p, opt, index);
    }
    free(p.longs);
    strbuf_done(&p.shorts);
    if (opt == 'h') {
        CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
        command_help(c, &text);
        fputs(strbuf_cstr(&text), stdout);
        return OPT_HELP;
    }
    return opt == ':' || opt == '?' ? report(c, opt, argv) : opt;
}

int command_run_group(const struct command *c, int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && c->groups[i]; i++) {
        if (streq(argv[1], c->groups[i]->name + strlen(c->name) + 1)) {
            return c->groups[i]->run(argc - 1, argv + 1);
        }
    }
    if (argc < 2) {
        CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
        command_help(c, &text);
        fputs(strbuf_cstr(&text), stdout);
        return 2;
    }
    int opt = command_getopt(c, argc, argv, NULL);
    return opt == OPT_HELP ? 0
           : opt == -1     ? command_usage(c, "unknown command \"%s\"", argv[1])
                           : 2;
}

char **command_take_rest(int *argc, char **argv)
{
    for (int i = 1; i < *argc; i++) {
        if (streq(argv[i], "--")) {
            *argc = i;
            return argv + i + 1;
        }
    }
    return NULL;
}

int command_expect_end(const struct command *c, int argc, char **argv)
{
    return optind < argc ? command_usage(c, "unexpected argument \"%s\"", argv[optind]) : -1;
}

/* ---- settings ---- */

void command_settings_add(struct command_settings *s, const char *flag, const char *value)
{
    s->items = grow(s->items, &s->cap, s->n + 1, sizeof(*s->items));
    s->items[s->n++] = (struct command_setting){flag, value};
}

int command_settings_apply(const struct command_settings *s, const struct option_table *t,
                           void *config, struct err *e)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < s->n; i++) {
        r = options_set_flag(t, config, s->items[i].flag, s->items[i].value, e);
    }
    return r;
}

void command_settings_done(struct command_settings *s)
{
    free(s->items);
    *s = (struct command_settings){0};
}

/* ---- help ---- */

struct help {
    struct strbuf *out;
    size_t column; /* The column where the help texts of options begin. */
    bool measure;
};

/* Appends a text in lines of HELP_WIDTH, each but the first indented. */
static void add_wrapped(struct strbuf *out, const char *text, size_t column)
{
    size_t at = column;
    while (*text) {
        size_t n = strcspn(text, " ");
        if (at > column && at + 1 + n > HELP_WIDTH) {
            strbuf_addf(out, "\n%*s", (int) column, "");
            at = column;
        } else if (at > column) {
            strbuf_addc(out, ' ');
            at++;
        }
        strbuf_add(out, text, n);
        at += n;
        text += n + strspn(text + n, " ");
    }
    strbuf_addc(out, '\n');
}

static void help_option(void *ctx, const struct command_option *o)
{
    struct help *h = ctx;
    CLEANUP_STRBUF struct strbuf name = STRBUF_INIT;
    if (!o->name) {
        strbuf_addf(h->out, "\n%s\n", o->help);
        return;
    }
    if (o->id < OPT_HELP) {
        strbuf_addf(&name, "  -%c, --%s", o->id, o->name);
    } else {
        strbuf_addf(&name, "      --%s", o->name);
    }
    if (o->arg) {
        strbuf_addf(&name, "%s%s", *o->arg == '[' ? "" : " ", o->arg);
    }
    if (h->measure) {
        h->column = MAX(h->column, name.size <= HELP_NAMES ? name.size + 2 : 0);
        return;
    }
    strbuf_adds(h->out, strbuf_cstr(&name));
    if (name.size + 2 > h->column) {
        strbuf_addc(h->out, '\n');
        name.size = 0;
    }
    strbuf_addf(h->out, "%*s", (int) (h->column - name.size), "");
    add_wrapped(h->out, o->help, h->column);
}

void command_help(const struct command *c, struct strbuf *out)
{
    CLEANUP_STRBUF struct strbuf unused = STRBUF_INIT;
    struct help h = {.out = &unused, .column = HELP_INDENT, .measure = true};
    command_each_option(c, help_option, &h);
    h.measure = false;
    h.out = out;
    strbuf_adds(out, c->help);
    strbuf_addc(out, '\n');
    command_each_option(c, help_option, &h);
    if (c->notes) {
        strbuf_addf(out, "\n%s", c->notes);
    }
}

/* ---- errors ---- */

static const char *program = "tenet";

const char *command_program(void)
{
    return program;
}

char *command_take_secret(char *value)
{
    char *copy = xstrdup(value);
    memset(value, '*', strlen(value));
    return copy;
}

void command_set_program(const char *name)
{
    program = name;
}

int command_fail(const struct err *e, const char *fmt, ...)
{
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    fflush(stdout);
    if (fmt) {
        va_list ap;
        va_start(ap, fmt);
        strbuf_vaddf(&text, fmt, ap);
        va_end(ap);
    }
    if (e) {
        strbuf_addf(&text, "%s%s", fmt ? ": " : "", e->text);
    }
    if (log_is_json()) {
        log_error("failed", "error=\"%s\"", strbuf_cstr(&text));
    } else {
        CLEANUP_FREE char *harmless = shown(strbuf_cstr(&text));
        fprintf(stderr, "tenet: %s\n", harmless);
    }
    return 1;
}

int command_usage(const struct command *c, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fflush(stdout);
    fprintf(stderr, "%s %s: ", program, c->name);
    vfprintf(stderr, fmt, ap);
    fprintf(stderr, "; see %s %s --help\n", program, c->name);
    va_end(ap);
    return 2;
}
