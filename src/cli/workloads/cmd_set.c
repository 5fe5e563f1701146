/* SPDX-License-Identifier: Apache-2.0 */
/* tenet set: changes parts of workloads. */
#include "cli/workloads/set.h"

static const struct command *const groups[] = {
    &set_deployment_hook, &set_env,      &set_image,          &set_probe,   &set_resources,
    &set_selector,        &set_triggers, &set_serviceaccount, &set_volumes, NULL};

static const char help[] =
    "usage: tenet set COMMAND KIND/NAME... [OPTIONS]\n"
    "\n"
    "Changes parts of workloads; each change of a pod template starts a rollout.\n"
    "\n"
    "  deployment-hook   hooks of a DeploymentConfig's rollouts\n"
    "  env               environment variables\n"
    "  image             images of containers\n"
    "  probe             probes of containers\n"
    "  resources         requests and limits\n"
    "  selector          the selector of a Service\n"
    "  triggers          what starts rollouts\n"
    "  serviceaccount    the account of the pods\n"
    "  volumes           volumes and their mounts\n";

int set_split(int n, char *const *args, bool (*is_value)(const char *arg))
{
    int i = 0;
    while (i < n && !is_value(args[i])) {
        i++;
    }
    return i;
}

bool set_is_pair(const char *arg)
{
    return strchr(arg, '=') != NULL;
}

int set_no_container(const char *pattern, struct err *e)
{
    return err_set(e, -EINVAL, "unable to find container named \"%.100s\"", pattern);
}

int set_no_template(const struct api_kind *k, const struct json *object, struct err *e)
{
    return err_set(e, -EINVAL, "%s/%s is not a pod or does not have a pod template", k->plural,
                   json_path_string(object, "metadata", "name", NULL));
}

static int run(int argc, char **argv)
{
    return command_run_group(&cmd_set, argc, argv);
}

const struct command cmd_set = {
    .name = "set",
    .summary = "change images, environment, resources, probes, triggers or volumes of workloads",
    .help = help,
    .notes = "tenet set COMMAND --help prints all about a command.\n",
    .groups = groups,
    .run = run};
