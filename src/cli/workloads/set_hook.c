/* SPDX-License-Identifier: Apache-2.0 */
/* tenet set deployment-hook: hooks of a DeploymentConfig's rollouts. */
#include "base/mem.h"
#include "cli/workloads/set.h"

#include <stdio.h>

struct hook_change {
    const char *container, *policy;
    const char *hook; /* The hook to set; NULL with 'remove'. */
    bool pre, mid, post, remove;
    char **command;
    int n_command;
    struct json *env, *volumes;
};

enum { OPT_PRE = OPT_FIRST_FREE, OPT_MID, OPT_POST, OPT_REMOVE, OPT_VOLUMES, OPT_POLICY };

static const struct command_option options[] = {
    {"pre", OPT_PRE, NULL, "the hook before the rollout"},
    {"mid", OPT_MID, NULL, "the hook between old and new pods, with the strategy Recreate"},
    {"post", OPT_POST, NULL, "the hook after the rollout"},
    {"remove", OPT_REMOVE, NULL, "removes the hooks"},
    {"container", 'c', "NAME", "the container whose image the hook runs; default: the first"},
    {"environment", 'e', "NAME=VALUE", "a variable of the hook; may be repeated"},
    {"volumes", OPT_VOLUMES, "NAME[,NAME]", "volumes of the template that the hook gets"},
    {"failure-policy", OPT_POLICY, "POLICY", "what happens when it fails; default: ignore",
     "abort retry ignore"},
    {0},
};

static int check(struct hook_change *c)
{
    int n = c->pre + c->mid + c->post;
    if (c->remove) {
        if (c->n_command || c->container || json_count(c->env) || json_count(c->volumes)) {
            return session_error("--remove may not be used with any option except --pre, --mid, or "
                                 "--post");
        }
        return n ? 0
                 : session_error("you must specify at least one of --pre, --mid, or --post with "
                                 "the --remove flag");
    }
    if (n != 1) {
        return session_error("you must specify one of --pre, --mid, or --post");
    }
    c->hook = c->pre ? "pre" : c->mid ? "mid" : "post";
    return c->n_command ? 0 : session_error("you must specify a command for the deployment hook");
}

static struct json *make_hook(const struct hook_change *c, const struct json *template)
{
    struct json *hook = json_object();
    struct json *run = json_ensure_object(hook, "execNewPod");
    const struct json *first = json_at(json_path(template, "spec", "containers", NULL), 0);
    for (int i = 0; i < c->n_command; i++) {
        json_append(json_ensure_array(run, "command"), json_string(c->command[i]));
    }
    json_set_string(run, "containerName",
                    c->container ? c->container : json_get_text(first, "name"));
    if (json_count(c->env)) {
        json_set(run, "env", json_clone(c->env));
    }
    if (json_count(c->volumes)) {
        json_set(run, "volumes", json_clone(c->volumes));
    }
    json_set_string(hook, "failurePolicy", c->policy);
    return hook;
}

/* Changes the hooks of one strategy; 'mid': it has a hook between old and new pods. */
static void change_strategy(const struct hook_change *c, struct json *params, bool mid,
                            const struct json *template)
{
    if (!json_is(params, JSON_OBJECT)) {
        return;
    }
    if (!c->remove) {
        if (mid || !c->mid) {
            json_set(params, c->hook, make_hook(c, template));
        }
        return;
    }
    const bool wanted[] = {c->pre, c->mid, c->post};
    static const char *const names[] = {"pre", "mid", "post"};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        if (wanted[i]) {
            json_remove(params, names[i]);
        }
    }
}

static int change(void *ctx, const struct api_kind *k, struct json *object, struct err *e)
{
    const struct hook_change *c = ctx;
    const struct json *template = template_of(k, object), *v;
    struct json *strategy = json_path(object, "spec", "strategy", NULL);
    struct json *recreate = json_get(strategy, "recreateParams");
    struct json *rolling = json_get(strategy, "rollingParams");
    if (!kind_is_dc(k) || (!recreate && (!rolling || c->mid))) {
        return err_set(e, -EINVAL,
                       "%s/%s is not a deployment config or does not have an applicable strategy",
                       k->plural, json_path_string(object, "metadata", "name", NULL));
    }
    if (c->container &&
        !template_named(json_path(template, "spec", "containers", NULL), c->container)) {
        return set_no_container(c->container, e);
    }
    JSON_FOREACH (v, c->volumes) {
        if (!template_named(json_path(template, "spec", "volumes", NULL), json_get_string(v))) {
            return err_set(e, -EINVAL, "the pod template has no volume \"%.100s\"",
                           json_get_string(v));
        }
    }
    change_strategy(c, recreate, true, template);
    change_strategy(c, rolling, false, template);
    return 0;
}

static int set_policy(struct hook_change *c, const char *value)
{
    static const struct {
        const char *word, *value;
    } rows[] = {{"abort", "Abort"}, {"retry", "Retry"}, {"ignore", "Ignore"}};
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        if (streq(value, rows[i].word)) {
            c->policy = rows[i].value;
            return -1;
        }
    }
    return command_usage(&set_deployment_hook,
                         "valid values for --failure-policy are: abort, retry, ignore");
}

static int take_variable(struct hook_change *c, const char *arg)
{
    const char *equals = strchr(arg, '=');
    if (!equals || equals == arg) {
        return command_usage(&set_deployment_hook, "\"%s\" is not NAME=VALUE", arg);
    }
    struct json *v = json_append(c->env, json_object());
    json_set(v, "name", json_string_n(arg, (size_t) (equals - arg)));
    json_set_string(v, "value", equals + 1);
    return -1;
}

static void take_volumes(struct hook_change *c, const char *arg)
{
    for (const char *p = arg; *p; p += strspn(p, ",")) {
        size_t n = strcspn(p, ",");
        json_append(c->volumes, json_string_n(p, n));
        p += n;
    }
}

/* Returns -1 to go on, else the exit status. */
static int parse_options(struct targets *t, struct hook_change *c, int argc, char **argv)
{
    int opt, status = -1;
    while (status < 0 && (opt = targets_getopt(t, &set_deployment_hook, argc, argv)) != -1) {
        switch (opt) {
        case OPT_PRE:
            c->pre = true;
            break;
        case OPT_MID:
            c->mid = true;
            break;
        case OPT_POST:
            c->post = true;
            break;
        case OPT_REMOVE:
            c->remove = true;
            break;
        case 'c':
            c->container = optarg;
            break;
        case 'e':
            status = take_variable(c, optarg);
            break;
        case OPT_VOLUMES:
            take_volumes(c, optarg);
            break;
        case OPT_POLICY:
            status = set_policy(c, optarg);
            break;
        default:
            return opt == OPT_HELP ? 0 : 2;
        }
    }
    return status;
}

static void change_done(struct hook_change *c)
{
    json_free(c->env);
    json_free(c->volumes);
}

static int run(int argc, char **argv)
{
    CLEANUP_TARGETS struct targets t = {0};
    __attribute__((cleanup(change_done))) struct hook_change c = {
        .policy = "Ignore", .env = json_array(), .volumes = json_array()};
    int all = argc;
    c.command = command_take_rest(&argc, argv);
    c.n_command = c.command ? (int) (argv + all - c.command) : 0;
    int status = parse_options(&t, &c, argc, argv);
    if (status >= 0) {
        return status;
    }
    status = check(&c);
    if (status != 0) {
        return status;
    }
    status = targets_load(&t, "deploymentconfigs", argc - optind, argv + optind);
    return status | targets_change(&t, change, &c, "hooks updated");
}

const struct command set_deployment_hook = {
    .name = "set deployment-hook",
    .summary = "hooks of a DeploymentConfig's rollouts",
    .help = "usage: tenet set deployment-hook dc/NAME... (--pre | --mid | --post) [OPTIONS] -- "
            "COMMAND...\n"
            "       tenet set deployment-hook dc/NAME... --remove [--pre] [--mid] [--post]\n"
            "\n"
            "Sets or removes a hook: a command in a new pod before, during or after a rollout.\n",
    .options = options,
    .shared = target_options,
    .run = run};
