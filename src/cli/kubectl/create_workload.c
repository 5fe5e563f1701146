/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/kubectl/create_workload.h"

#include "base/mem.h"
#include "cli/kubectl/compose.h"
#include "cli/kubectl/target.h"

#include <stdio.h>

#define MAX_IMAGES 16

static const char help[] =
    "usage: tenet create deployment NAME --image IMAGE [OPTIONS] [-- COMMAND...]\n"
    "       tenet create deploymentconfig NAME --image IMAGE [OPTIONS] [-- COMMAND...]\n"
    "       tenet create job NAME --image IMAGE [OPTIONS] [-- COMMAND...]\n"
    "       tenet create job NAME --from cronjob/NAME [OPTIONS]\n"
    "       tenet create cronjob NAME --image IMAGE --schedule CRON [OPTIONS] [-- COMMAND...]\n"
    "\n"
    "Creates a workload from an image.\n";

static const struct command_option options[] = {CREATE_WORKLOAD_OPTIONS, {0}};

static const struct command create_kind = {
    .name = "create", .help = help, .options = options, .shared = target_new_options};

const char *create_workload_kind(const char *word)
{
    static const struct {
        const char *word, *kind;
    } rows[] = {{"deployment", "Deployment"}, {"deploy", "Deployment"},
                {"dep", "Deployment"},        {"deploymentconfig", "DeploymentConfig"},
                {"dc", "DeploymentConfig"},   {"job", "Job"},
                {"cronjob", "CronJob"},       {"cj", "CronJob"}};
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        if (streq(word, rows[i].word)) {
            return rows[i].kind;
        }
    }
    return NULL;
}

/* "cronjob/NAME" to the Job it would make. */
static int from_cron_job(struct targets *t, const char *name, const char *from, struct json **ret)
{
    CLEANUP(json_free) struct json *cron_job = NULL;
    const char *slash = strchr(from, '/');
    CLEANUP_FREE char *word = slash ? xstrndup(from, (size_t) (slash - from)) : xstrdup("");
    struct err e = {0};
    if (!streq_null(create_workload_kind(word), "CronJob") && !streq(word, "cronjobs") &&
        !streq(word, "cronjobs.batch") && !streq(word, "cronjob.batch")) {
        return session_error("from must be an existing cronjob: \"%s\" is not cronjob/NAME", from);
    }
    CLEANUP_FREE char *path = api_path("batch/v1", "cronjobs", t->s.ns, slash + 1, NULL);
    if (api_request_sync(t->s.client, "GET", path, NULL, NULL, NULL, &cron_job, &e) < 0) {
        return session_fail(&t->s, &e, NULL);
    }
    *ret = compose_job_from(name, cron_job);
    return 0;
}

static int create(struct targets *t, const char *kind, struct compose_options *o, const char *from)
{
    CLEANUP(json_free) struct json *made = NULL;
    struct err e = {0};
    int status = session_open(&t->s);
    if (status == 0 && from) {
        status = from_cron_job(t, o->name, from, &made);
    } else if (status == 0) {
        made = compose_object(kind, o, &e);
        status = made ? 0 : session_error("%s", e.text);
    }
    if (status != 0) {
        return status;
    }
    const struct api_kind *k = api_kind_by_name(json_get_text(made, "apiVersion"), kind);
    k = k ? k : targets_kind(t, "deploymentconfigs");
    return k ? targets_create(t, k, made, "created") : 1;
}

static int set_number(const char *what, int64_t min, int64_t max, int64_t *ret)
{
    return str_to_i64(optarg, min, max, ret) < 0
               ? command_usage(&create_kind, "--%s \"%s\" is not a number from %d to %d", what,
                               optarg, (int) min, (int) max)
               : -1;
}

int create_workload(const char *kind, int argc, char **argv, char **command, int n_command)
{
    CLEANUP_TARGETS struct targets t = {0};
    const char *images[MAX_IMAGES + 1] = {NULL};
    struct compose_options o = {
        .images = images, .command = command, .n_command = n_command, .replicas = -1, .port = -1};
    const char *from = NULL;
    size_t n_images = 0;
    int opt, status = -1;
    optind = 0; /* The arguments are read a second time, with other options. */
    while (status < 0 && (opt = targets_getopt(&t, &create_kind, argc, argv)) != -1) {
        switch (opt) {
        case OPT_CREATE_IMAGE:
            if (n_images == MAX_IMAGES) {
                return command_usage(&create_kind, "more than %d images", MAX_IMAGES);
            }
            images[n_images++] = optarg;
            break;
        case OPT_CREATE_REPLICAS:
            status = set_number("replicas", 0, INT32_MAX, &o.replicas);
            break;
        case OPT_CREATE_PORT:
            status = set_number("port", 1, 65535, &o.port);
            break;
        case OPT_CREATE_SCHEDULE:
            o.schedule = optarg;
            break;
        case OPT_CREATE_RESTART:
            o.restart = optarg;
            break;
        case OPT_CREATE_FROM:
            from = optarg;
            break;
        default:
            return opt == OPT_HELP ? 0 : 2;
        }
    }
    if (status >= 0) {
        return status;
    }
    if (argc - optind != 2) {
        return session_error("exactly one NAME is required, got %d", argc - optind - 1);
    }
    if (from && (n_images || !streq(kind, "Job"))) {
        return session_error("either --image or --from must be specified, and --from for a job "
                             "only");
    }
    o.name = argv[optind + 1];
    return create(&t, kind, &o, from);
}
