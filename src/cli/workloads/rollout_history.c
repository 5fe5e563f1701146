/* SPDX-License-Identifier: Apache-2.0 */
/* tenet rollout history and undo: the revisions of a workload, and the way back to one. */
#include "base/mem.h"
#include "cli/workloads/rollout.h"
#include "cli/workloads/template.h"
#include "workload/template_hash.h"

#include <inttypes.h>
#include <stdio.h>

enum { OPT_REVISION = OPT_FIRST_FREE };

static const struct command_option history_options[] = {
    {"revision", OPT_REVISION, "N", "the pod template of this revision"},
    {0},
};
static const struct command_option undo_options[] = {
    {"to-revision", OPT_REVISION, "N", "the revision; default, and 0: the one before the latest"},
    {0},
};

static int parse_options(struct targets *t, const struct command *c, int argc, char **argv,
                         int64_t *revision)
{
    int opt;
    while ((opt = targets_getopt(t, c, argc, argv)) != -1) {
        if (opt != OPT_REVISION) {
            return opt == OPT_HELP ? 0 : 2;
        }
        if (str_to_i64(optarg, 0, INT64_MAX, revision) < 0) {
            return command_usage(c, "revision \"%s\" is not a positive integer", optarg);
        }
    }
    return -1;
}

/* ---- history ---- */

static int show(struct targets *t, const struct target *g, int64_t revision)
{
    CLEANUP_HISTORY struct history h = {0};
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    if (history_load(t, g, &h) != 0) {
        return 1;
    }
    if (revision == 0) {
        strbuf_addc(&out, '\n');
        if (h.n == 0) {
            strbuf_adds(&out, "No rollout history found.\n");
        } else {
            history_write(g->kind, &h, &out);
        }
        return target_print(t, g->kind, g->object, strbuf_cstr(&out));
    }
    const struct history_entry *entry = history_find(&h, revision);
    CLEANUP(json_free)
    struct json *template = entry ? history_template(g->kind, g->object, entry) : NULL;
    if (!template) {
        return session_error("unable to find the specified revision");
    }
    if (t->output) {
        return target_print(t, g->kind, entry->object, "");
    }
    strbuf_addf(&out, "with revision #%" PRId64 "\n", revision);
    history_describe(template, &out);
    return target_print(t, g->kind, g->object, strbuf_cstr(&out));
}

static int run_history(int argc, char **argv)
{
    CLEANUP_TARGETS struct targets t = {.local_all = true};
    int64_t revision = 0;
    int status = parse_options(&t, &rollout_history, argc, argv, &revision);
    if (status >= 0) {
        return status;
    }
    status = targets_load(&t, NULL, argc - optind, argv + optind);
    for (size_t i = 0; i < t.n; i++) {
        status |= show(&t, &t.list[i], revision);
    }
    return status;
}

/* ---- undo ---- */

struct undo {
    const struct json *template;
    const char *cause; /* kubernetes.io/change-cause of that revision; NULL: none. */
};

static int set_template(void *ctx, const struct api_kind *k, struct json *object, struct err *e)
{
    const struct undo *u = ctx;
    struct json *spec = json_ensure_object(object, "spec");
    json_set(spec, "template", json_clone(u->template));
    if (kind_is(k, "apps", "Deployment")) {
        struct json *meta = json_ensure_object(object, "metadata");
        struct json *annotations = json_ensure_object(meta, "annotations");
        if (u->cause) {
            json_set_string(annotations, CHANGE_CAUSE, u->cause);
        } else {
            json_remove(annotations, CHANGE_CAUSE);
        }
    }
    return 0;
}

static int undo_dc(struct targets *t, const struct target *g, int64_t revision)
{
    static const char *const parts[] = {"includeTemplate", NULL};
    CLEANUP(json_free) struct json *now = NULL;
    CLEANUP_FREE char *from = NULL;
    if (dc_roll_back(t, g, revision, parts, &now, &from) != 0) {
        return 1;
    }
    return target_print(t, g->kind, now, "rolled back");
}

static int undo(struct targets *t, const struct target *g, int64_t revision)
{
    CLEANUP_HISTORY struct history h = {0};
    const char *kind = g->kind->singular;
    if (kind_is_dc(g->kind)) {
        return undo_dc(t, g, revision);
    }
    if (json_get_bool(json_path(g->object, "spec", "paused", NULL), false)) {
        return session_error("you cannot rollback a paused deployment; resume it first with "
                             "'tenet rollout resume %s/%s' and try again",
                             kind, target_name(g));
    }
    if (history_load(t, g, &h) != 0) {
        return 1;
    }
    const struct history_entry *entry = history_find(&h, revision);
    CLEANUP(json_free)
    struct json *template = entry ? history_template(g->kind, g->object, entry) : NULL;
    if (!template && revision > 0) {
        return session_error("unable to find specified revision %" PRId64 " in history", revision);
    }
    if (!template) {
        return session_error("no rollout history found for %s \"%s\"", kind, target_name(g));
    }
    if (template_equal(template, json_path(g->object, "spec", "template", NULL))) {
        CLEANUP_FREE char *said = xasprintf("skipped rollback (current template already matches "
                                            "revision %" PRId64 ")",
                                            entry->revision);
        return target_print(t, g->kind, g->object, said);
    }
    struct undo u = {template, annotation_of(entry->object, CHANGE_CAUSE)};
    CLEANUP(json_free) struct json *now = NULL;
    bool changed = false;
    if (target_change(t, g, set_template, &u, &now, &changed) != 0) {
        return 1;
    }
    return target_print(t, g->kind, now, "rolled back");
}

static int run_undo(int argc, char **argv)
{
    CLEANUP_TARGETS struct targets t = {.local_all = true};
    int64_t revision = 0;
    int status = parse_options(&t, &rollout_undo, argc, argv, &revision);
    if (status >= 0) {
        return status;
    }
    status = targets_load(&t, NULL, argc - optind, argv + optind);
    for (size_t i = 0; i < t.n; i++) {
        status |= undo(&t, &t.list[i], revision);
    }
    return status;
}

const struct command rollout_history = {
    .name = "rollout history",
    .summary = "the revisions, or the pod template of one",
    .help = "usage: tenet rollout history KIND/NAME [OPTIONS]\n"
            "\n"
            "Lists the revisions of a Deployment, DaemonSet, StatefulSet or DeploymentConfig, or\n"
            "describes the pod template of one.\n",
    .options = history_options,
    .shared = target_options,
    .complete = COMPLETE_KIND,
    .run = run_history};
const struct command rollout_undo = {
    .name = "rollout undo",
    .summary = "goes back to an earlier revision",
    .help = "usage: tenet rollout undo KIND/NAME [OPTIONS]\n"
            "\n"
            "Goes back to the pod template of an earlier revision, by a new rollout.\n",
    .options = undo_options,
    .shared = target_options,
    .complete = COMPLETE_KIND,
    .run = run_undo};
