/* SPDX-License-Identifier: Apache-2.0 */
/* The program 'tenet': finds the command and runs it. */
#include "cli/command.h"
#include "cli/suggest.h"

#include "base/str.h"

#include <signal.h>
#include <stdio.h>

static const struct command *const commands[] = {
    &cmd_master, &cmd_node,   &cmd_lab,      &cmd_store, &cmd_get,
    &cmd_create, &cmd_delete, &cmd_describe, &cmd_idle,  &cmd_adm,
    &cmd_token,  &cmd_trace,  &cmd_flows,    &cmd_check, &cmd_dns,
};

static void print_help(void)
{
    puts("tenet: the OpenShift 3 software-defined network in C\n"
         "\n"
         "usage: tenet COMMAND [OPTIONS] ...\n"
         "\n"
         "commands:");
    for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
        printf("  %-10s %s\n", commands[i]->name, commands[i]->summary);
    }
    puts("\n"
         "  tenet COMMAND --help   all about a command\n"
         "  tenet --version        the version of this program");
}

static const struct command *find(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
        if (streq(name, commands[i]->name)) {
            return commands[i];
        }
    }
    return NULL;
}

static int unknown(const char *name)
{
    const char *names[ARRAY_SIZE(commands)];
    for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
        names[i] = commands[i]->name;
    }
    const char *near = suggest(name, names, ARRAY_SIZE(names));
    fprintf(stderr, "tenet: unknown command \"%s\"", name);
    if (near) {
        fprintf(stderr, "; did you mean \"%s\"?", near);
    }
    fputs(" See tenet --help\n", stderr);
    return 2;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        print_help();
        return 2;
    }
    /* A pipe whose reader went away is an error of write(2), not the end of a daemon. */
    signal(SIGPIPE, SIG_IGN);
    const char *name = argv[1];
    const struct command *c = find(name);
    int status = 0;
    if (c) {
        status = c->run(argc - 1, argv + 1);
    } else if (streq(name, "help") && argc > 2) {
        c = find(argv[2]);
        if (!c) {
            return unknown(argv[2]);
        }
        fputs(c->help, stdout);
    } else if (streq(name, "--help") || streq(name, "-h") || streq(name, "help")) {
        print_help();
    } else if (streq(name, "--version") || streq(name, "version")) {
        puts("tenet " TENET_VERSION);
    } else {
        return unknown(name);
    }
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fputs("tenet: standard output: write failed\n", stderr);
        return status ? status : 1;
    }
    return status;
}
