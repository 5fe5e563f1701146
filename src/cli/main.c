/* SPDX-License-Identifier: Apache-2.0 */
/* The program 'tenet': finds the command and runs it. */
#include "base/suggest.h"
#include "cli/command.h"
#include "cli/plugin.h"
#include "cli/session.h"

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

/* As "oc types": the words that a new user meets. */
static const char types[] =
    "Concepts and kinds\n"
    "\n"
    "Projects share a cluster; what people work on has a project.\n"
    "\n"
    "  project               a namespace with a display name, members, quotas and a network\n"
    "  pod (po)              containers that run on one node and share an address\n"
    "  service (svc)         a lasting address in front of pods that labels choose\n"
    "  deployment (deploy)   keeps a number of pods of one template, and replaces them in turn\n"
    "  deploymentconfig (dc) the same by OpenShift's rules, with triggers and hooks\n"
    "  replicationcontroller (rc)  one revision of a deploymentconfig\n"
    "  job, cronjob          pods that end; at times\n"
    "  configmap, secret     values for pods; secrets are kept apart\n"
    "  persistentvolumeclaim (pvc)  storage that a project asks for\n"
    "  serviceaccount (sa)   the user that a pod is\n"
    "  template              objects with parameters\n"
    "  user, group           people who log in\n"
    "  role, rolebinding     what users, groups and service accounts may do in a project\n"
    "  securitycontextconstraints (scc)  what a pod may ask of its node\n"
    "  networkpolicy (netpol)  which pods may talk to each other\n"
    "  node (no)             a host that runs pods\n";

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
    {"oadm", "oc"}, /* Its commands are those of "oc adm". */
    {"kubectl-tenet", "kubectl tenet"},
    {"kubectl-oc", "kubectl oc"},
};

static const char *file_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static void set_name(const char *path)
{
    const char *file = file_of(path);
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        if (streq(names[i].file, file)) {
            command_set_program(names[i].program);
        }
    }
}

/* Whether the option takes the next word as its value. */
static bool takes_word(const char *word)
{
    for (const struct command_option *o = session_options; o->name; o++) {
        size_t n = strlen(o->name);
        if (str_has_prefix(word, "--") && strncmp(word + 2, o->name, n) == 0 && !word[2 + n]) {
            return o->arg != NULL;
        }
        if (word[1] == o->id && !word[2]) {
            return o->arg != NULL;
        }
    }
    return false;
}

/* "oc -n red get pods": moves the command's name before the options that precede it. */
static void find_command(int argc, char **argv)
{
    int at = 1;
    while (at < argc && argv[at][0] == '-' && argv[at][1]) {
        at += takes_word(argv[at]) ? 2 : 1;
    }
    if (at > 1 && at < argc && command_find(argv[at])) {
        char *name = argv[at];
        memmove(argv + 2, argv + 1, (size_t) (at - 1) * sizeof *argv);
        argv[1] = name;
    }
}

int main(int argc, char **argv)
{
    if (argc > 0) {
        set_name(argv[0]);
        find_command(argc, argv);
    }
    bool administers = argc > 0 && streq(file_of(argv[0]), "oadm");
    if (argc < 2 && !administers) {
        print_help();
        return 2;
    }
    /* A write to a closed pipe must fail with EPIPE, and not end a daemon by a signal. */
    signal(SIGPIPE, SIG_IGN);
    const char *name = argc > 1 ? argv[1] : "";
    const struct command *c = command_find(name);
    int status = 0;
    if (administers) {
        status = cmd_adm.run(argc, argv);
    } else if (c) {
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
    } else if (streq(name, "types")) {
        fputs(types, stdout);
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
