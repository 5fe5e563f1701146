/* SPDX-License-Identifier: Apache-2.0 */
/* tenet rollout latest, cancel and retry; tenet rollback; tenet deploy: rollouts of
 * DeploymentConfigs. */
#include "base/mem.h"
#include "cli/workloads/rollout.h"
#include "cli/workloads/template.h"

#include <inttypes.h>
#include <stdio.h>

#define DC "deploymentconfigs"

/* Requires that the object is a DeploymentConfig. */
static int expect_dc(const struct target *g)
{
    return kind_is_dc(g->kind)
               ? 0
               : session_error("expected deployment configuration, got %s", g->kind->plural);
}

static void print_no_rollout(int64_t latest, const char *phase)
{
    printf("No rollout is in progress (latest rollout #%" PRId64 " %s)\n", latest, phase);
}

/* ---- rollout latest, cancel, retry ---- */

enum { OPT_AGAIN = OPT_FIRST_FREE };

static const struct command_option latest_options[] = {
    {"again", OPT_AGAIN, NULL, "with the template as it is, without the images of triggers"},
    {0},
};

static int run_latest(int argc, char **argv)
{
    CLEANUP_TARGETS struct targets t = {0};
    CLEANUP(json_free) struct json *now = NULL;
    bool again = false;
    int opt;
    while ((opt = targets_getopt(&t, &rollout_latest, argc, argv)) != -1) {
        if (opt != OPT_AGAIN) {
            return opt == OPT_HELP ? 0 : 2;
        }
        again = true;
    }
    if (argc - optind != 1) {
        return session_error("one deployment config name is needed as argument.");
    }
    int status = targets_load(&t, DC, 1, argv + optind);
    if (status == 0) {
        status = expect_dc(&t.list[0]);
    }
    if (status == 0) {
        status = dc_start(&t, &t.list[0], again, &now);
    }
    return status ? status : target_print(&t, t.list[0].kind, now, "rolled out");
}

static int cancel(struct targets *t, const struct target *g)
{
    size_t n = 0;
    int64_t latest = 0;
    char phase[16] = "";
    if (json_get_bool(json_path(g->object, "spec", "paused", NULL), false)) {
        return session_error("unable to cancel paused deployment %s/%s",
                             json_path_string(g->object, "metadata", "namespace", NULL),
                             target_name(g));
    }
    if (dc_cancel(t, g, &n, &latest, phase) != 0) {
        return 1;
    }
    if (n == 0) {
        print_no_rollout(latest, phase);
        return 0;
    }
    return target_print(t, g->kind, g->object, "cancelling");
}

static int retry(struct targets *t, const struct target *g)
{
    CLEANUP_FREE char *said =
        xasprintf("retried rollout #%" PRId64, number_at(g->object, "status", "latestVersion", 0));
    return dc_retry(t, g) ? 1 : target_print(t, g->kind, g->object, said);
}

static int run_each(const struct command *c, int (*fn)(struct targets *t, const struct target *g),
                    int argc, char **argv)
{
    CLEANUP_TARGETS struct targets t = {0};
    int opt = targets_getopt(&t, c, argc, argv);
    if (opt != -1) {
        return opt == OPT_HELP ? 0 : 2;
    }
    int status = targets_load(&t, NULL, argc - optind, argv + optind);
    for (size_t i = 0; i < t.n; i++) {
        status |= expect_dc(&t.list[i]) ? 1 : fn(&t, &t.list[i]);
    }
    return status;
}

static int run_cancel(int argc, char **argv)
{
    return run_each(&rollout_cancel, cancel, argc, argv);
}

static int run_retry(int argc, char **argv)
{
    return run_each(&rollout_retry, retry, argc, argv);
}

/* ---- rollback ---- */

enum { OPT_TO_VERSION = OPT_FIRST_FREE, OPT_TRIGGERS, OPT_STRATEGY, OPT_SCALING };

static const struct command_option rollback_options[] = {
    {"to-version", OPT_TO_VERSION, "N", "the version; default, and 0: the latest complete one"},
    {"change-triggers", OPT_TRIGGERS, NULL, "also the triggers of that version"},
    {"change-strategy", OPT_STRATEGY, NULL, "also the strategy of that version"},
    {"change-scaling-settings", OPT_SCALING, NULL,
     "also the number of replicas and the selector of that version"},
    {0},
};

/* Warns about image triggers that the rollback has switched off. */
static void warn_triggers(const struct json *dc)
{
    CLEANUP_STRBUF struct strbuf off = STRBUF_INIT;
    const struct json *t;
    JSON_FOREACH (t, json_path(dc, "spec", "triggers", NULL)) {
        const struct json *p = json_get(t, "imageChangeParams");
        if (streq(json_get_text(t, "type"), "ImageChange") &&
            !json_get_bool(json_get(p, "automatic"), false)) {
            strbuf_addf(&off, "%s%s", off.size ? "," : "",
                        json_get_text(json_get(p, "from"), "name"));
        }
    }
    if (off.size) {
        printf("Warning: the following images triggers were disabled: %s\n"
               "  You can re-enable them with: tenet set triggers dc/%s --auto\n",
               strbuf_cstr(&off), json_path_string(dc, "metadata", "name", NULL));
    }
}

static int roll_back(struct targets *t, const struct target *g, int64_t version,
                     const char *const *parts)
{
    CLEANUP(json_free) struct json *now = NULL;
    CLEANUP_FREE char *from = NULL;
    if (dc_roll_back(t, g, version, parts, &now, &from) != 0) {
        return 1;
    }
    CLEANUP_FREE char *said = t->dry_run == DRY_RUN_CLIENT
                                  ? xasprintf("rolled back to %s", from)
                                  : xasprintf("deployment #%" PRId64 " rolled back to %s",
                                              number_at(now, "status", "latestVersion", 0), from);
    int status = target_print(t, g->kind, now, said);
    if (status == 0 && !t->output) {
        warn_triggers(now);
    }
    return status;
}

/* Finds the object that "tenet rollback NAME" means: a ReplicationController, by which the version
 * is known, else a DeploymentConfig. */
static int load_rollback(struct targets *t, char *arg, int64_t *version)
{
    CLEANUP_FREE char *rc_path = NULL;
    CLEANUP(json_free) struct json *rc = NULL;
    const char *slash = strchr(arg, '/');
    int status = session_open(&t->s);
    if (status != 0) {
        return status;
    }
    bool may_be_rc =
        !slash || str_has_prefix(arg, "rc/") || str_has_prefix(arg, "replicationcontroller");
    rc_path = api_path("v1", "replicationcontrollers", t->s.ns, slash ? slash + 1 : arg, NULL);
    if (may_be_rc &&
        api_request_sync(t->s.client, "GET", rc_path, NULL, NULL, NULL, &rc, NULL) == 0) {
        const char *dc = annotation_of(rc, DC_NAME), *number = annotation_of(rc, DC_VERSION);
        if (!dc || !number || str_to_i64(number, 1, INT64_MAX, version) < 0) {
            return session_error("%s is not a valid deployment or deployment config", arg);
        }
        char *names[] = {(char *) dc};
        session_done(&t->s);
        return targets_load(t, DC, 1, names);
    }
    session_done(&t->s);
    return targets_load(t, DC, 1, &arg);
}

static int run_rollback(int argc, char **argv)
{
    CLEANUP_TARGETS struct targets t = {0};
    const char *parts[5] = {"includeTemplate"};
    size_t n = 1;
    int64_t version = 0;
    int opt;
    while ((opt = targets_getopt(&t, &cmd_rollback, argc, argv)) != -1) {
        switch (opt) {
        case OPT_TO_VERSION:
            if (str_to_i64(optarg, 0, INT64_MAX, &version) < 0) {
                return command_usage(&cmd_rollback, "--to-version \"%s\" is not a number", optarg);
            }
            break;
        case OPT_TRIGGERS:
        case OPT_STRATEGY:
        case OPT_SCALING:
            /* A repeated option counts once. */
            if (n < ARRAY_SIZE(parts) - 1) {
                parts[n++] = opt == OPT_TRIGGERS   ? "includeTriggers"
                             : opt == OPT_STRATEGY ? "includeStrategy"
                                                   : "includeReplicationMeta";
            }
            break;
        default:
            return opt == OPT_HELP ? 0 : 2;
        }
    }
    if (argc - optind != 1) {
        return session_error("a deployment or deployment config name is required");
    }
    int status = load_rollback(&t, argv[optind], &version);
    if (status == 0) {
        status = expect_dc(&t.list[0]);
    }
    return status ? status : roll_back(&t, &t.list[0], version, parts);
}

/* ---- deploy ---- */

enum { OPT_LATEST = OPT_FIRST_FREE, OPT_RETRY, OPT_CANCEL, OPT_ENABLE_TRIGGERS };

static const struct command_option deploy_options[] = {
    {"latest", OPT_LATEST, NULL, "starts a rollout"},
    {"retry", OPT_RETRY, NULL, "tries the latest rollout again, which failed"},
    {"cancel", OPT_CANCEL, NULL, "ends the rollout that is under way"},
    {"enable-triggers", OPT_ENABLE_TRIGGERS, NULL, "makes all image triggers automatic"},
    {0},
};

static int enable(void *ctx, const struct api_kind *k, struct json *object, struct err *e)
{
    struct json *t;
    JSON_FOREACH (t, json_path(object, "spec", "triggers", NULL)) {
        struct json *p = json_get(t, "imageChangeParams");
        if (json_is(p, JSON_OBJECT)) {
            json_set_bool(p, "automatic", true);
        }
    }
    return 0;
}

/* What "tenet deploy NAME" prints without an option: the rollouts, the latest first. */
static int show_deployments(struct targets *t, const struct target *g)
{
    CLEANUP_HISTORY struct history h = {0};
    if (history_load(t, g, &h) != 0) {
        return 1;
    }
    printf("%s deploys from template of %zu rollouts\n", target_name(g), h.n);
    for (size_t i = h.n; i > 0; i--) {
        const struct json *rc = h.entries[i - 1].object;
        const char *reason = annotation_of(rc, DC_REASON);
        printf("  #%" PRId64 " %s%s%s - %" PRId64 " pods\n", h.entries[i - 1].revision,
               dc_phase(rc), reason && *reason ? ": " : "", reason ? reason : "",
               number_at(rc, "status", "replicas", 0));
    }
    if (h.n == 0) {
        puts("  no rollout so far");
    }
    return 0;
}

static int deploy(struct targets *t, const struct target *g, int what)
{
    CLEANUP(json_free) struct json *now = NULL;
    size_t n = 0;
    int64_t latest = 0;
    char phase[16] = "";
    switch (what) {
    case OPT_LATEST:
        if (dc_start(t, g, false, &now) != 0) {
            return 1;
        }
        printf("Started deployment #%" PRId64 "\n", number_at(now, "status", "latestVersion", 0));
        return 0;
    case OPT_RETRY:
        if (dc_retry(t, g) != 0) {
            return 1;
        }
        printf("Retried #%" PRId64 "\n", number_at(g->object, "status", "latestVersion", 0));
        return 0;
    case OPT_CANCEL:
        if (dc_cancel(t, g, &n, &latest, phase) != 0) {
            return 1;
        }
        if (n == 0) {
            print_no_rollout(latest, phase);
        } else {
            printf("Cancelled deployment #%" PRId64 "\n", latest);
        }
        return 0;
    case OPT_ENABLE_TRIGGERS:
        return targets_change(t, enable, NULL, "triggers enabled");
    default:
        return show_deployments(t, g);
    }
}

static int run_deploy(int argc, char **argv)
{
    CLEANUP_TARGETS struct targets t = {0};
    int opt, what = 0;
    while ((opt = targets_getopt(&t, &cmd_deploy, argc, argv)) != -1) {
        if (opt < OPT_LATEST || opt > OPT_ENABLE_TRIGGERS) {
            return opt == OPT_HELP ? 0 : 2;
        }
        if (what && what != opt) {
            return session_error("only one of --cancel, --enable-triggers, --latest and --retry "
                                 "is allowed");
        }
        what = opt;
    }
    if (argc - optind != 1) {
        return session_error("a deployment config name is required.");
    }
    int status = targets_load(&t, DC, 1, argv + optind);
    if (status == 0) {
        status = expect_dc(&t.list[0]);
    }
    return status ? status : deploy(&t, &t.list[0], what);
}

const struct command rollout_latest = {
    .name = "rollout latest",
    .summary = "starts a rollout of a DeploymentConfig",
    .help = "usage: tenet rollout latest NAME [OPTIONS]\n"
            "       tenet rollout latest dc/NAME [OPTIONS]\n"
            "\n"
            "Starts a rollout of a DeploymentConfig with the present template and the latest\n"
            "images of its triggers.\n",
    .options = latest_options,
    .shared = target_options,
    .run = run_latest};
const struct command rollout_cancel = {
    .name = "rollout cancel",
    .summary = "ends the rollout of a DeploymentConfig that is under way",
    .help = "usage: tenet rollout cancel dc/NAME... [OPTIONS]\n"
            "\n"
            "Ends the rollout of a DeploymentConfig that is under way. Its controller brings the\n"
            "pods of the latest complete rollout back.\n",
    .shared = target_options,
    .run = run_cancel};
const struct command rollout_retry = {
    .name = "rollout retry",
    .summary = "tries the failed rollout of a DeploymentConfig again",
    .help = "usage: tenet rollout retry dc/NAME... [OPTIONS]\n"
            "\n"
            "Tries the latest rollout of a DeploymentConfig again, which must have failed. Its\n"
            "deployer pod and the pods of its hooks are deleted.\n",
    .shared = target_options,
    .run = run_retry};
const struct command cmd_rollback = {
    .name = "rollback",
    .summary = "go back to an earlier rollout of a DeploymentConfig",
    .help = "usage: tenet rollback NAME [OPTIONS]\n"
            "       tenet rollback (dc/NAME | rc/NAME) [OPTIONS]\n"
            "\n"
            "Brings a DeploymentConfig back to the template of an earlier rollout, by a new\n"
            "rollout. NAME is the DeploymentConfig, or the ReplicationController of that rollout.\n"
            "With -o it is printed only.\n",
    .options = rollback_options,
    .shared = target_options,
    .run = run_rollback};
const struct command cmd_deploy = {
    .name = "deploy",
    .summary = "rollouts of a DeploymentConfig, as OpenShift 3.4 spells them",
    .help = "usage: tenet deploy NAME [--latest | --retry | --cancel | --enable-triggers] "
            "[OPTIONS]\n"
            "\n"
            "Shows, starts, retries or cancels rollouts of a DeploymentConfig: the spelling of\n"
            "OpenShift 3.4 for \"tenet rollout latest\", \"retry\" and \"cancel\".\n",
    .options = deploy_options,
    .shared = target_options,
    .run = run_deploy};
