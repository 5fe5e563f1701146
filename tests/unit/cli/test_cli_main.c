/* SPDX-License-Identifier: Apache-2.0 */
/* The program's own words: which command runs, and what is said of one that there is not. */
int tenet_main(int argc, char **argv);
#define main tenet_main
#include "../../../src/cli/main.c"
#undef main

#include "base/mem.h"
#include "net/loop/process.h"

#include <setjmp.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* Runs the words in a child; the exit status, and what it prints (both outputs). */
static int run(const char *a, const char *b, char **ret)
{
    char *argv[] = {(char *) "tenet", (char *) a, (char *) b, NULL};
    int argc = a ? b ? 3 : 2 : 1;
    FILE *f = tmpfile();
    assert_non_null(f);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(fileno(f), STDOUT_FILENO);
        dup2(fileno(f), STDERR_FILENO);
        int status = tenet_main(argc, argv);
        fflush(NULL);
        _exit(status);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    char buf[8192];
    rewind(f);
    size_t n = fread(buf, 1, sizeof buf - 1, f);
    buf[n] = '\0';
    fclose(f);
    *ret = xstrdup(buf);
    return WEXITSTATUS(status);
}

static void the_program_finds_its_command(void **state)
{
    static const struct {
        const char *a, *b;
        int status;
        const char *begins; /* What is printed. */
    } rows[] = {
        {NULL, NULL, 2, "tenet: the OpenShift 3 software-defined network in C\n\nusage: "},
        {"--help", NULL, 0, "tenet: the OpenShift 3 software-defined network in C\n"},
        {"-h", NULL, 0, "tenet: the OpenShift 3 software-defined network in C\n"},
        {"help", NULL, 0, "tenet: the OpenShift 3 software-defined network in C\n"},
        {"--version", NULL, 0, "tenet " TENET_VERSION "\n"},
        {"version", NULL, 0, "tenet " TENET_VERSION "\n"},
        {"help", "idle", 0, "usage: tenet idle SERVICE"},
        {"help", "x", 2, "tenet: unknown command \"x\""},
        {"idle", "--help", 0, "usage: tenet idle SERVICE"},
        {"idel", NULL, 2,
         "tenet: unknown command \"idel\"; did you mean \"idle\"? See tenet --help\n"},
        {"flow", NULL, 2,
         "tenet: unknown command \"flow\"; did you mean \"flows\"? See tenet --help\n"},
        {"frobnicate", NULL, 2, "tenet: unknown command \"frobnicate\" See tenet --help\n"},
        {"node", "x", 2, "tenet node: unexpected argument \"x\"; see tenet node --help\n"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        CLEANUP_FREE char *out = NULL;
        int status = run(rows[i].a, rows[i].b, &out);
        if (status != rows[i].status || !str_has_prefix(out, rows[i].begins)) {
            fail_msg("tenet %s %s: %d\n%s", rows[i].a, rows[i].b, status, out);
        }
    }
}

static void the_help_lists_every_command(void **state)
{
    CLEANUP_FREE char *out = NULL;
    assert_int_equal(run("--help", NULL, &out), 0);
    for (size_t i = 0; commands[i]; i++) {
        CLEANUP_FREE char *line =
            xasprintf("\n  %-10s %s\n", commands[i]->name, commands[i]->summary);
        assert_non_null(strstr(out, line));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_program_finds_its_command),
        cmocka_unit_test(the_help_lists_every_command),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
