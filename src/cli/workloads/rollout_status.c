/* SPDX-License-Identifier: Apache-2.0 */
/* tenet rollout status: waits until a rollout is complete, and says how far it is. */
#include "base/mem.h"
#include "base/timeutil.h"
#include "cli/kubectl/watch.h"
#include "cli/workloads/progress.h"
#include "cli/workloads/rollout.h"

#include <stdio.h>

struct follow {
    const struct api_kind *kind;
    const char *name;
    int64_t revision;
    bool once;
    char *said; /* The last line, which is not printed twice. */
};

enum { OPT_REVISION = OPT_FIRST_FREE, OPT_TIMEOUT };

static const struct command_option options[] = {
    {"watch", 'w', "[=false]", "whether to wait for the end; default: true", "true false"},
    {"revision", OPT_REVISION, "N", "fails when another revision is the current one"},
    {"timeout", OPT_TIMEOUT, "DURATION", "longest wait, such as 30s or 2m; default: no limit",
     .detail = "After it the exit status is 1."},
    {0},
};

static int on_state(void *ctx, const struct json *object, struct err *e)
{
    struct follow *f = ctx;
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    if (!object) {
        return err_set(e, -EINVAL, "%s \"%s\" was deleted", f->kind->singular, f->name);
    }
    int r = progress_write(f->kind, object, f->revision, &out, e);
    if (r >= 0 && !streq_null(f->said, strbuf_cstr(&out))) {
        fputs(strbuf_cstr(&out), stdout);
        fflush(stdout);
        free(f->said);
        f->said = xstrdup(strbuf_cstr(&out));
    }
    return r == 0 && f->once ? 1 : r;
}

static int follow(struct targets *t, const struct target *g, struct follow *f, uint64_t timeout_ms)
{
    struct err e = {0};
    const char *ns = json_path_string(g->object, "metadata", "namespace", NULL);
    uint64_t deadline = timeout_ms ? time_mono_ms() + timeout_ms : 0;
    f->kind = g->kind;
    f->name = target_name(g);
    int r = watch_object(&t->s, g->kind, ns, f->name, deadline, on_state, f, &e);
    free(f->said);
    f->said = NULL;
    if (r == -EINVAL) {
        return session_error("%s", e.text);
    }
    return r == -ETIMEDOUT ? session_error("timed out waiting for the condition")
           : r < 0         ? session_fail(&t->s, &e, NULL)
                           : 0;
}

static int run(int argc, char **argv)
{
    CLEANUP_TARGETS struct targets t = {.local_all = true};
    struct follow f = {0};
    int64_t timeout = 0;
    int opt, status = 0;
    while ((opt = targets_getopt(&t, &rollout_status, argc, argv)) != -1) {
        switch (opt) {
        case 'w':
            f.once = optarg && streq(optarg, "false");
            break;
        case OPT_REVISION:
            if (str_to_i64(optarg, 0, INT64_MAX, &f.revision) < 0) {
                return command_usage(&rollout_status, "--revision \"%s\" is not a number", optarg);
            }
            break;
        case OPT_TIMEOUT:
            if (time_parse_duration(optarg, &timeout) < 0 || timeout < 0) {
                return command_usage(&rollout_status, "--timeout \"%s\" is not a time such as 30s",
                                     optarg);
            }
            break;
        default:
            return opt == OPT_HELP ? 0 : 2;
        }
    }
    status = targets_load(&t, NULL, argc - optind, argv + optind);
    for (size_t i = 0; i < t.n && status == 0; i++) {
        status = follow(&t, &t.list[i], &f, (uint64_t) (timeout / NS_PER_MS));
    }
    return status;
}

const struct command rollout_status = {
    .name = "rollout status",
    .summary = "waits until the rollout is complete",
    .help = "usage: tenet rollout status KIND/NAME [OPTIONS]\n"
            "\n"
            "Prints how far the rollout is, and waits until it is complete. The exit status is 1\n"
            "when it failed.\n",
    .options = options,
    .shared = target_options,
    .complete = COMPLETE_KIND,
    .run = run};
