/* SPDX-License-Identifier: Apache-2.0 */
/* tenet status: a project, what is wrong in it, and what to do. */
#include "base/timeutil.h"
#include "cli/session.h"
#include "cli/workloads/survey.h"

#include <stdio.h>

enum { OPT_SUGGEST = OPT_FIRST_FREE, OPT_PROBLEMS };

static const struct command_option options[] = {
    {"suggest", OPT_SUGGEST, NULL, "also hints, and what to do about each problem"},
    {"problems", OPT_PROBLEMS, NULL, "exits with 1 when there is an error",
     .detail = "For scripts: the picture is the same."},
    {0},
};

/* Reads the lists.  A list that the user may not read, or that the server does not have, is left
 * out with a line. */
static int read_lists(struct session *s, struct json *lists[SURVEY_N])
{
    for (size_t i = 0; i < SURVEY_N; i++) {
        const struct survey_source *source = &survey_sources[i];
        char *path = api_path(source->version, source->plural, s->ns, NULL, NULL);
        struct err e = {0};
        int r = api_request_sync(s->client, "GET", path, NULL, NULL, NULL, &lists[i], &e);
        free(path);
        if (r == -EACCES || (r == -ENOENT && !source->optional)) {
            fprintf(stderr, "%s are not shown: %s\n", source->plural, e.text);
        } else if (r < 0 && r != -ENOENT) {
            return session_fail(s, &e, NULL);
        }
    }
    return 0;
}

static bool has_errors(const struct survey *v)
{
    CLEANUP(json_free) struct json *problems = survey_problems(v);
    return streq(json_get_text(json_at(problems, 0), "severity"), "error");
}

static int run(int argc, char **argv)
{
    CLEANUP_SESSION struct session s = {0};
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    struct json *lists[SURVEY_N] = {NULL};
    struct survey v = {.now_ms = time_wall_ms()};
    bool problems = false;
    int opt;
    while ((opt = session_getopt(&s, &cmd_status, argc, argv, NULL)) != -1) {
        if (opt != OPT_SUGGEST && opt != OPT_PROBLEMS) {
            return opt == OPT_HELP ? 0 : 2;
        }
        v.suggest |= opt == OPT_SUGGEST;
        problems |= opt == OPT_PROBLEMS;
    }
    int status = command_expect_end(&cmd_status, argc, argv);
    if (status >= 0) {
        return status;
    }
    status = session_open(&s);
    if (status == 0) {
        status = read_lists(&s, lists);
    }
    if (status == 0) {
        v.project = s.ns;
        v.server = api_client_server(s.client);
        for (size_t i = 0; i < SURVEY_N; i++) {
            v.lists[i] = lists[i];
        }
        survey_draw(&v, &out);
        fwrite(strbuf_cstr(&out), 1, out.size, stdout);
        status = problems && has_errors(&v);
    }
    for (size_t i = 0; i < SURVEY_N; i++) {
        json_free(lists[i]);
    }
    return status;
}

const struct command cmd_status = {
    .name = "status",
    .summary = "draw a project: services, workloads, pods, what is wrong and what to do",
    .help =
        "usage: tenet status [OPTIONS]\n"
        "\n"
        "Draws the project: routes, services, the workloads behind them with their pods, and\n"
        "jobs. Then it says what is wrong (crash loops, images that cannot be pulled, services\n"
        "without endpoints, refusals by quotas, claims without a volume) and what to do.\n",
    .options = options,
    .shared = session_options,
    .run = run};
