/* SPDX-License-Identifier: Apache-2.0 */
/* The program 'tenet': finds the command and runs it. */
#include "base/suggest.h"
#include "cli/command.h"
#include "cli/plugin.h"

#include "base/str.h"

#include <signal.h>
#include <stdio.h>

#define COMMANDS_MAX 64 /* Names that a misspelt command is compared with. */

static void print_help(void)
{
    puts("tenet: the OpenShift 3 software-defined network in C\n"
         "\n"
         "usage: tenet COMMAND [OPTIONS] ...\n"
         "\n"
         "commands:");
    for (size_t i = 0; commands[i]; i++) {
        printf("  %-10s %s\n", commands[i]->name, commands[i]->summary);
    }
    puts("\n"
         "  tenet COMMAND --help   all about a command\n"
         "  tenet --version        the version of this program");
}

static int unknown(const char *name)
{
    const char *names[COMMANDS_MAX];
    size_t n = 0;
    for (; commands[n] && n < COMMANDS_MAX; n++) {
        names[n] = commands[n]->name;
    }
    const char *near = suggest(name, names, n);
    fprintf(stderr, "%s: unknown command \"%s\"", command_program(), name);
    if (near) {
        fprintf(stderr, "; did you mean \"%s\"?", near);
    }
    fprintf(stderr, " See %s --help\n", command_program());
    return 2;
}

/* The names by which the program may be called, beside its own: links to it. */
static const struct {
    const char *file, *program;
} names[] = {
    {"oc", "oc"},
    {"kubectl-tenet", "kubectl tenet"},
    {"kubectl-oc", "kubectl oc"},
};

static void set_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *file = slash ? slash + 1 : path;
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        if (streq(names[i].file, file)) {
            command_set_program(names[i].program);
        }
    }
}

int main(int argc, char **argv)
{
    if (argc > 0) {
        set_name(argv[0]);
    }
    if (argc < 2) {
        print_help();
        return 2;
    }
    /* A write to a closed pipe must fail with EPIPE, and not end a daemon by a signal. */
    signal(SIGPIPE, SIG_IGN);
    const char *name = argv[1];
    const struct command *c = command_find(name);
    int status = 0;
    if (c) {
        status = c->run(argc - 1, argv + 1);
    } else if (streq(name, "help") && argc > 2) {
        c = command_find(argv[2]);
        if (!c) {
            return unknown(argv[2]);
        }
        CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
        command_help(c, &text);
        fputs(strbuf_cstr(&text), stdout);
    } else if (streq(name, "--help") || streq(name, "-h") || streq(name, "help")) {
        print_help();
    } else if (streq(name, "--version") || streq(name, "version")) {
        puts("tenet " TENET_VERSION);
    } else {
        plugin_run(argc - 1, argv + 1);
        return unknown(name);
    }
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fputs("tenet: standard output: write failed\n", stderr);
        return status ? status : 1;
    }
    return status;
}
