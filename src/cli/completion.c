/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/completion.h"

#include "api/kind.h"
#include "base/mem.h"
#include "cli/command.h"

#define HEAD                                                                                   \
    "# SPDX-License-Identifier: Apache-2.0\n# Made by \"make generate\" from the rows of the " \
    "commands.\n"

/* ---- walks ---- */

/* Calls 'fn' for each command and each of its subcommands. */
static void each_command(void (*fn)(struct strbuf *out, const struct command *c),
                         struct strbuf *out)
{
    for (size_t i = 0; commands[i]; i++) {
        fn(out, commands[i]);
        for (size_t k = 0; commands[i]->groups && commands[i]->groups[k]; k++) {
            fn(out, commands[i]->groups[k]);
        }
    }
}

static const char *last_word(const char *name)
{
    const char *blank = strrchr(name, ' ');
    return blank ? blank + 1 : name;
}

/* Values of a command's arguments: its own, or the names of its subcommands. */
static void add_words(struct strbuf *out, const struct command *c)
{
    for (size_t i = 0; c->groups && c->groups[i]; i++) {
        strbuf_addf(out, "%s%s", i ? " " : "", last_word(c->groups[i]->name));
    }
    strbuf_adds(out, c->complete ? c->complete : "");
}

/* The plurals of all kinds that can be listed, with blanks between. */
static void add_kinds(struct strbuf *out)
{
    const char *blank = "";
    for (size_t i = 0; api_kinds[i]; i++) {
        bool again = api_kinds[i]->create_only || api_kinds[i]->composed;
        for (size_t k = 0; k < i; k++) {
            again |= streq(api_kinds[k]->plural, api_kinds[i]->plural);
        }
        if (!again) {
            strbuf_addf(out, "%s%s", blank, api_kinds[i]->plural);
            blank = " ";
        }
    }
}

static void add_command_names(struct strbuf *out)
{
    for (size_t i = 0; commands[i]; i++) {
        strbuf_addf(out, "%s ", commands[i]->name);
    }
    strbuf_adds(out, "help");
}

/* Writes a text within single quotes of a shell. */
static void add_quoted(struct strbuf *out, const char *text)
{
    strbuf_addc(out, '\'');
    for (const char *p = text; *p; p++) {
        if (*p == '\'') {
            strbuf_adds(out, "'\\''");
        } else if (*p != '`') {
            strbuf_addc(out, *p);
        }
    }
    strbuf_addc(out, '\'');
}

/* ---- bash ---- */

static const char bash_head[] = HEAD
    "# bash completion of tenet(1).\n"
    "\n"
    "# Names of objects of kind $1, from the cluster that the line so far means.\n"
    "_tenet_names() {\n"
    "    local -a where=()\n"
    "    local i\n"
    "    for ((i = 2; i < COMP_CWORD; i++)); do\n"
    "        case ${COMP_WORDS[i]} in\n"
    "        -n | --namespace | -s | --server | --kubeconfig)\n"
    "            where+=(\"${COMP_WORDS[i]}\" \"${COMP_WORDS[i + 1]}\")\n"
    "            ;;\n"
    "        esac\n"
    "    done\n"
    "    timeout 2 tenet get \"$1\" --no-headers -o custom-columns=N:.metadata.name "
    "\"${where[@]}\" "
    "2>/dev/null\n"
    "}\n"
    "\n"
    "# The first word after the command that is no option: the kind.\n"
    "_tenet_kind() {\n"
    "    local i\n"
    "    for ((i = 2; i < COMP_CWORD; i++)); do\n"
    "        case ${COMP_WORDS[i]} in\n"
    "        -n | --namespace | -s | --server | --kubeconfig | -o | --output | -l | --selector | "
    "--field-selector | --timeout | --grace-period)\n"
    "            ((i++))\n"
    "            ;;\n"
    "        -*) ;;\n"
    "        *)\n"
    "            echo \"${COMP_WORDS[i]}\"\n"
    "            return\n"
    "            ;;\n"
    "        esac\n"
    "    done\n"
    "}\n"
    "\n"
    "# Adds to COMPREPLY what the words $1 stand for: themselves, or what @... means.\n"
    "_tenet_expand() {\n"
    "    local word kind list=\"\"\n"
    "    for word in $1; do\n"
    "        case $word in\n"
    "        @file) mapfile -t COMPREPLY < <(compgen -f -- \"$cur\") ;;\n"
    "        @kinds)\n"
    "            kind=$(_tenet_kind)\n"
    "            if [[ -n $kind ]]; then list+=\" $(_tenet_names \"$kind\")\"; else list+=\" "
    "$kinds\"; "
    "fi\n"
    "            ;;\n"
    "        @*) list+=\" $(_tenet_names \"${word#@}\")\" ;;\n"
    "        *) list+=\" $word\" ;;\n"
    "        esac\n"
    "    done\n"
    "    mapfile -t -O \"${#COMPREPLY[@]}\" COMPREPLY < <(compgen -W \"$list\" -- \"$cur\")\n"
    "}\n"
    "\n"
    "_tenet() {\n"
    "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}\n"
    "    local command=${COMP_WORDS[1]} words=\"\" options=\"\" values=\"\"\n";

static void bash_name(struct strbuf *out, const struct command *c)
{
    if (strchr(c->name, ' ')) {
        strbuf_addf(out, "        \"%s\") command=\"%s\" ;;\n", c->name, c->name);
    }
}

struct bash_values {
    struct strbuf *out;
    const struct command *command;
};

static void bash_value(void *ctx, const struct command_option *o)
{
    struct bash_values *b = ctx;
    if (!o->name || !o->complete) {
        return;
    }
    strbuf_adds(b->out, "    ");
    if (o->id < OPT_HELP) {
        strbuf_addf(b->out, "\"%s -%c\" | ", b->command->name, o->id);
    }
    strbuf_addf(b->out, "\"%s --%s\") values=\"%s\" ;;\n", b->command->name, o->name, o->complete);
}

static void bash_values(struct strbuf *out, const struct command *c)
{
    struct bash_values b = {out, c};
    command_each_option(c, bash_value, &b);
}

static void bash_option(void *ctx, const struct command_option *o)
{
    if (o->name) {
        strbuf_addf(ctx, " --%s", o->name);
    }
}

static void bash_words(struct strbuf *out, const struct command *c)
{
    strbuf_addf(out, "    \"%s\")\n        words=\"", c->name);
    add_words(out, c);
    strbuf_adds(out, "\"\n        options=\"");
    command_each_option(c, bash_option, out);
    strbuf_adds(out, "\"\n        ;;\n");
}

void completion_bash(struct strbuf *out)
{
    strbuf_adds(out, bash_head);
    strbuf_adds(out, "    local kinds=\"");
    add_kinds(out);
    strbuf_adds(out, "\"\n"
                     "    COMPREPLY=()\n"
                     "    if ((COMP_CWORD == 1)); then\n"
                     "        _tenet_expand \"");
    add_command_names(out);
    strbuf_adds(out, " --help --version\"\n"
                     "        return\n"
                     "    fi\n"
                     "    if ((COMP_CWORD > 2)); then\n"
                     "        case \"$command ${COMP_WORDS[2]}\" in\n");
    each_command(bash_name, out);
    strbuf_adds(out, "        esac\n"
                     "    fi\n"
                     "    case \"$command $prev\" in\n");
    each_command(bash_values, out);
    strbuf_adds(out, "    esac\n"
                     "    if [[ -n $values ]]; then\n"
                     "        _tenet_expand \"$values\"\n"
                     "        return\n"
                     "    fi\n"
                     "    case $command in\n"
                     "    help) words=\"");
    add_command_names(out);
    strbuf_adds(out, "\" ;;\n");
    each_command(bash_words, out);
    strbuf_adds(out, "    esac\n"
                     "    if [[ $cur == -* || -z $words ]]; then\n"
                     "        words=$options\n"
                     "    fi\n"
                     "    _tenet_expand \"$words\"\n"
                     "}\n"
                     "complete -F _tenet tenet\n");
}

/* ---- zsh ---- */

static const char zsh_head[] =
    "#compdef tenet\n" HEAD "# zsh completion of tenet(1).\n"
    "\n"
    "# Names of objects of kind $1.\n"
    "_tenet_names() {\n"
    "    local -a names\n"
    "    names=(${(f)\"$(timeout 2 tenet get $1 --no-headers -o custom-columns=N:.metadata.name "
    "2>/dev/null)\"})\n"
    "    compadd -a names\n"
    "}\n"
    "\n"
    "# A kind, or names of the kind that the line has.\n"
    "_tenet_kinds() {\n"
    "    local word\n"
    "    for word in ${words[2,CURRENT-1]}; do\n"
    "        if (( ${_tenet_kind_list[(Ie)$word]} )); then\n"
    "            _tenet_names $word\n"
    "            return\n"
    "        fi\n"
    "    done\n"
    "    compadd -a _tenet_kind_list\n"
    "}\n"
    "\n";

/* Returns the action of _arguments for values: "_files", "(a b)", or a function. */
static void zsh_action(struct strbuf *out, const char *complete)
{
    if (!complete) {
        return;
    }
    if (streq(complete, COMPLETE_FILE)) {
        strbuf_adds(out, "_files");
    } else if (streq(complete, COMPLETE_KIND)) {
        strbuf_adds(out, "_tenet_kinds");
    } else if (*complete == '@') {
        strbuf_addf(out, "{_tenet_names %s}", complete + 1);
    } else {
        /* Values from the cluster come last, after the fixed ones. */
        strbuf_addf(out, "(%.*s)", (int) strcspn(complete, "@"), complete);
    }
}

/* Writes a text within "[...]" of a specification. */
static void zsh_text(struct strbuf *out, const char *text)
{
    for (const char *p = text; *p; p++) {
        if (strchr("[]:\\", *p)) {
            strbuf_addc(out, '\\');
        }
        strbuf_addc(out, *p);
    }
}

static void zsh_spec(struct strbuf *out, const char *name, const struct command_option *o)
{
    CLEANUP_STRBUF struct strbuf spec = STRBUF_INIT;
    strbuf_addf(&spec, "*%s[", name);
    zsh_text(&spec, o->help);
    strbuf_addc(&spec, ']');
    if (o->arg && *o->arg != '[') {
        strbuf_addc(&spec, ':');
        zsh_text(&spec, o->arg);
        strbuf_addc(&spec, ':');
        zsh_action(&spec, o->complete);
    }
    strbuf_adds(out, " \\\n        ");
    add_quoted(out, strbuf_cstr(&spec));
}

static void zsh_option(void *ctx, const struct command_option *o)
{
    char letter[] = {'-', (char) o->id, '\0'};
    CLEANUP_FREE char *name = o->name ? xasprintf("--%s", o->name) : NULL;
    if (name && o->id < OPT_HELP) {
        zsh_spec(ctx, letter, o);
    }
    if (name) {
        zsh_spec(ctx, name, o);
    }
}

static void zsh_command(struct strbuf *out, const struct command *c)
{
    CLEANUP_STRBUF struct strbuf words = STRBUF_INIT;
    strbuf_addf(out, "    %s\"%s\")\n        _arguments", "", c->name);
    command_each_option(c, zsh_option, out);
    add_words(&words, c);
    if (words.size) {
        CLEANUP_STRBUF struct strbuf spec = STRBUF_INIT;
        strbuf_adds(&spec, "*:word:");
        zsh_action(&spec, strbuf_cstr(&words));
        strbuf_adds(out, " \\\n        ");
        add_quoted(out, strbuf_cstr(&spec));
    }
    strbuf_adds(out, "\n        ;;\n");
}

static void zsh_name(struct strbuf *out, const struct command *c)
{
    if (!strchr(c->name, ' ')) {
        CLEANUP_STRBUF struct strbuf item = STRBUF_INIT;
        strbuf_addf(&item, "%s:%s", c->name, c->summary);
        strbuf_adds(out, "            ");
        add_quoted(out, strbuf_cstr(&item));
        strbuf_addc(out, '\n');
    }
}

static void zsh_group(struct strbuf *out, const struct command *c)
{
    if (strchr(c->name, ' ')) {
        strbuf_addf(out, "    \"%s\") command=\"%s\"; shift words; ((CURRENT--)) ;;\n", c->name,
                    c->name);
    }
}

void completion_zsh(struct strbuf *out)
{
    strbuf_adds(out, zsh_head);
    strbuf_adds(out, "typeset -ga _tenet_kind_list=(");
    add_kinds(out);
    strbuf_adds(out, ")\n"
                     "\n"
                     "_tenet() {\n"
                     "    local command=${words[2]}\n"
                     "    local -a names\n"
                     "    if ((CURRENT == 2)); then\n"
                     "        names=(\n");
    each_command(zsh_name, out);
    strbuf_adds(out, "            'help:all about a command'\n"
                     "        )\n"
                     "        _describe command names\n"
                     "        return\n"
                     "    fi\n"
                     "    shift words\n"
                     "    ((CURRENT--))\n"
                     "    ((CURRENT > 2)) && case \"$command ${words[2]}\" in\n");
    each_command(zsh_group, out);
    strbuf_adds(out, "    esac\n"
                     "    case $command in\n");
    each_command(zsh_command, out);
    strbuf_adds(out, "    esac\n"
                     "}\n"
                     "\n"
                     "_tenet \"$@\"\n");
}

/* ---- fish ---- */

static const char fish_head[] = HEAD
    "# fish completion of tenet(1).\n"
    "\n"
    "# Names of objects of kind $argv[1].\n"
    "function __tenet_names\n"
    "    timeout 2 tenet get $argv[1] --no-headers -o custom-columns=N:.metadata.name 2>/dev/null\n"
    "end\n"
    "\n"
    "# A kind, or names of the kind that the line has.\n"
    "function __tenet_kinds\n"
    "    for word in (commandline -opc)[3..-1]\n"
    "        if contains -- $word $__tenet_kind_list\n"
    "            __tenet_names $word\n"
    "            return\n"
    "        end\n"
    "    end\n"
    "    string join \\n $__tenet_kind_list\n"
    "end\n"
    "\n"
    "# Whether the line's command is $argv[1], with one below it if there is $argv[2].\n"
    "function __tenet_command\n"
    "    set -l line (commandline -opc)\n"
    "    test \"$line[2]\" = $argv[1]; or return 1\n"
    "    set -q argv[2]; or return 0\n"
    "    test \"$line[3]\" = $argv[2]\n"
    "end\n"
    "\n"
    "complete -c tenet -f\n";

/* Returns "(__tenet_names nodes)", "wide json", or nothing for files. */
static void fish_values(struct strbuf *out, const char *complete)
{
    const char *gap = "";
    for (const char *p = complete; *p; p += strspn(p, " ")) {
        CLEANUP_FREE char *word = xstrndup(p, strcspn(p, " "));
        p += strlen(word);
        if (streq(word, COMPLETE_KIND)) {
            strbuf_addf(out, "%s(__tenet_kinds)", gap);
        } else if (*word == '@') {
            strbuf_addf(out, "%s(__tenet_names %s)", gap, word + 1);
        } else {
            strbuf_addf(out, "%s%s", gap, word);
        }
        gap = " ";
    }
}

struct fish_options {
    struct strbuf *out;
    const struct command *command;
};

static void fish_option(void *ctx, const struct command_option *o)
{
    struct fish_options *f = ctx;
    if (!o->name) {
        return;
    }
    strbuf_addf(f->out, "complete -c tenet -n '__tenet_command %s' -l %s", f->command->name,
                o->name);
    if (o->id < OPT_HELP) {
        strbuf_addf(f->out, " -s %c", o->id);
    }
    if (o->arg && *o->arg != '[') {
        strbuf_adds(f->out, o->complete && streq(o->complete, COMPLETE_FILE) ? " -r" : " -x");
    }
    if (o->complete && streq(o->complete, COMPLETE_FILE)) {
        strbuf_adds(f->out, " -F");
    } else if (o->complete) {
        CLEANUP_STRBUF struct strbuf values = STRBUF_INIT;
        fish_values(&values, o->complete);
        strbuf_adds(f->out, " -a ");
        add_quoted(f->out, strbuf_cstr(&values));
    }
    strbuf_adds(f->out, " -d ");
    add_quoted(f->out, o->help);
    strbuf_addc(f->out, '\n');
}

static void fish_command(struct strbuf *out, const struct command *c)
{
    CLEANUP_STRBUF struct strbuf words = STRBUF_INIT, values = STRBUF_INIT;
    struct fish_options f = {out, c};
    if (!strchr(c->name, ' ')) {
        strbuf_addf(out, "complete -c tenet -n __fish_use_subcommand -a %s -d ", c->name);
        add_quoted(out, c->summary);
        strbuf_addc(out, '\n');
    }
    add_words(&words, c);
    const char *file = strstr(strbuf_cstr(&words), COMPLETE_FILE);
    CLEANUP_FREE char *fixed =
        xstrndup(strbuf_cstr(&words), file ? (size_t) (file - strbuf_cstr(&words)) : words.size);
    if (words.size) {
        fish_values(&values, fixed);
        strbuf_addf(out, "complete -c tenet -n '__tenet_command %s' %s-a ", c->name,
                    file ? "-F " : "");
        add_quoted(out, strbuf_cstr(&values));
        strbuf_addc(out, '\n');
    }
    command_each_option(c, fish_option, &f);
}

void completion_fish(struct strbuf *out)
{
    strbuf_adds(out, fish_head);
    strbuf_adds(out, "set -g __tenet_kind_list ");
    add_kinds(out);
    strbuf_addc(out, '\n');
    each_command(fish_command, out);
}
