/* SPDX-License-Identifier: Apache-2.0 */
#include "typed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define WORDS_MAX 32
#define PATIENCE_MS 60000

static void on_end(void *ctx, int status)
{
    struct outcome *o = ctx;
    o->ended = true;
    o->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

static char *content(FILE *f)
{
    struct strbuf b = STRBUF_INIT;
    char buf[4096];
    size_t n;
    rewind(f);
    strbuf_adds(&b, "");
    while ((n = fread(buf, 1, sizeof buf, f)) > 0) {
        strbuf_add(&b, buf, n);
    }
    fclose(f);
    return strbuf_steal(&b);
}

const struct command *typed_find(const char *name)
{
    const struct command *c = command_find(name);
    assert_non_null(c);
    return c;
}

struct outcome typed_run(struct harness *h, const char *line)
{
    struct outcome o = {0};
    char *argv[WORDS_MAX + 3] = {NULL};
    int argc = 0;
    CLEANUP_FREE char *words = xstrdup(line);
    CLEANUP_FREE char *url = h ? harness_url(h) : NULL;
    char *rest = words;
    while (rest && argc < WORDS_MAX) {
        argv[argc++] = strsep(&rest, " ");
    }
    const struct command *c = typed_find(argv[0]);
    if (h && !strstr(line, "--kubeconfig")) {
        /* Before "--": the words after it are those of a command in a container. */
        int at = 0;
        while (at < argc && !streq(argv[at], "--")) {
            at++;
        }
        memmove(&argv[at + 2], &argv[at], (size_t) (argc - at) * sizeof *argv);
        argv[at] = (char *) "--server";
        argv[at + 1] = url;
        argc += 2;
    }
    FILE *out = tmpfile(), *err = tmpfile();
    assert_true(out && err);
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        dup2(fileno(out), STDOUT_FILENO);
        dup2(fileno(err), STDERR_FILENO);
        int status = c->run(argc, argv);
        fflush(NULL);
        _exit(status);
    }
    struct loop *loop = h ? h->loop : loop_new();
    struct loop_child *child = loop_child_new(loop, pid, on_end, &o);
    int r = loop_run_until(loop, &o.ended, PATIENCE_MS);
    loop_child_free(child);
    if (!h) {
        loop_free(loop);
    }
    if (r < 0) {
        kill(pid, SIGKILL);
        fail_msg("%s: does not end", line);
    }
    o.out = content(out);
    o.err = content(err);
    return o;
}

static bool fits(const char *got, const char *want)
{
    size_t n = want ? strlen(want) : 0;
    return !want || (n >= 3 && streq(want + n - 3, "...") ? strncmp(got, want, n - 3) == 0
                                                          : streq(got, want));
}

void typed_check(struct harness *h, const struct typed_row *rows, size_t n)
{
    size_t wrong = 0;
    for (size_t i = 0; i < n; i++) {
        struct outcome o = typed_run(h, rows[i].line);
        if (o.status != rows[i].status || !fits(o.out, rows[i].out) || !fits(o.err, rows[i].err)) {
            print_error("tenet %s: %d\n%s\n%s\n", rows[i].line, o.status, o.out, o.err);
            wrong++;
        }
        free(o.out);
        free(o.err);
    }
    assert_int_equal(wrong, 0);
}
