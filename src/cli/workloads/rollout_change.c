/* SPDX-License-Identifier: Apache-2.0 */
/* tenet rollout pause, resume and restart. */
#include "base/mem.h"
#include "base/timeutil.h"
#include "cli/workloads/rollout.h"
#include "cli/workloads/template.h"

#include <stdio.h>

#define RESTARTED_AT "kubectl.kubernetes.io/restartedAt"

enum change { CHANGE_PAUSE, CHANGE_RESUME, CHANGE_RESTART };

static const struct {
    const char *said, *doing;
} words[] = {
    [CHANGE_PAUSE] = {"paused", "pausing"},
    [CHANGE_RESUME] = {"resumed", "resuming"},
    [CHANGE_RESTART] = {"restarted", "restarting"},
};

static int refuse(const struct api_kind *k, const struct json *o, struct err *e, const char *why)
{
    return err_set(e, -EINVAL, "%s%s%s \"%s\" %s", k->plural, *k->group ? "." : "", k->group,
                   json_path_string(o, "metadata", "name", NULL), why);
}

static int unsupported(const struct api_kind *k, const struct json *o, enum change c, struct err *e)
{
    char why[100];
    (void) snprintf(why, sizeof(why), "%s is not supported%s", words[c].doing,
                    c == CHANGE_RESTART && kind_is_dc(k) ? "; use tenet rollout latest" : "");
    return refuse(k, o, e, why);
}

static int set_paused(const struct api_kind *k, struct json *o, enum change c, struct err *e)
{
    bool pause = c == CHANGE_PAUSE;
    if (!kind_is(k, "apps", "Deployment") && !kind_is_dc(k)) {
        return unsupported(k, o, c, e);
    }
    struct json *spec = json_ensure_object(o, "spec");
    if (json_get_bool(json_get(spec, "paused"), false) == pause) {
        return refuse(k, o, e, pause ? "is already paused" : "is not paused");
    }
    if (pause) {
        json_set_bool(spec, "paused", true);
    } else {
        json_remove(spec, "paused");
    }
    return 0;
}

static int restart(const struct api_kind *k, struct json *o, struct err *e)
{
    char now[TIME_TEXT_SIZE];
    if (!kind_is(k, "apps", "Deployment") && !kind_is(k, "apps", "DaemonSet") &&
        !kind_is(k, "apps", "StatefulSet")) {
        return unsupported(k, o, CHANGE_RESTART, e);
    }
    if (json_get_bool(json_path(o, "spec", "paused", NULL), false)) {
        return refuse(k, o, e, "can't restart paused deployment (run rollout resume first)");
    }
    time_format_s(time_wall_ms(), now);
    struct json *template = json_ensure_object(json_ensure_object(o, "spec"), "template");
    struct json *meta = json_ensure_object(template, "metadata");
    json_set_string(json_ensure_object(meta, "annotations"), RESTARTED_AT, now);
    return 0;
}

static int change(void *ctx, const struct api_kind *k, struct json *object, struct err *e)
{
    enum change c = *(enum change *) ctx;
    return c == CHANGE_RESTART ? restart(k, object, e) : set_paused(k, object, c, e);
}

static int run_change(const struct command *c, enum change what, int argc, char **argv)
{
    CLEANUP_TARGETS struct targets t = {.local_all = true};
    int opt = targets_getopt(&t, c, argc, argv);
    if (opt != -1) {
        return opt == OPT_HELP ? 0 : 2;
    }
    int status = targets_load(&t, NULL, argc - optind, argv + optind);
    return status | targets_change(&t, change, &what, words[what].said);
}

static int run_pause(int argc, char **argv)
{
    return run_change(&rollout_pause, CHANGE_PAUSE, argc, argv);
}

static int run_resume(int argc, char **argv)
{
    return run_change(&rollout_resume, CHANGE_RESUME, argc, argv);
}

static int run_restart(int argc, char **argv)
{
    return run_change(&rollout_restart, CHANGE_RESTART, argc, argv);
}

const struct command rollout_pause = {
    .name = "rollout pause",
    .summary = "changes of the template start no rollout",
    .help = "usage: tenet rollout pause KIND/NAME... [OPTIONS]\n"
            "\n"
            "Pauses Deployments and DeploymentConfigs: changes of the template start no rollout\n"
            "until \"tenet rollout resume\".\n",
    .shared = target_options,
    .complete = COMPLETE_KIND,
    .run = run_pause};
const struct command rollout_resume = {
    .name = "rollout resume",
    .summary = "changes of the template start rollouts again",
    .help = "usage: tenet rollout resume KIND/NAME... [OPTIONS]\n"
            "\n"
            "Ends the pause of Deployments and DeploymentConfigs. All changes that were made\n"
            "meanwhile come with one rollout.\n",
    .shared = target_options,
    .complete = COMPLETE_KIND,
    .run = run_resume};
const struct command rollout_restart = {
    .name = "rollout restart",
    .summary = "makes all pods anew",
    .help = "usage: tenet rollout restart KIND/NAME... [OPTIONS]\n"
            "\n"
            "Makes all pods of Deployments, DaemonSets or StatefulSets anew, by a rollout.\n",
    .shared = target_options,
    .complete = COMPLETE_KIND,
    .run = run_restart};
