/* SPDX-License-Identifier: Apache-2.0 */
/* tenet router: routes from outside to services, through HAProxy. */
#include "base/log.h"
#include "cli/command.h"
#include "net/loop/config_file.h"
#include "router/router.h"

#include <getopt.h>
#include <unistd.h>

LOG_MODULE("router");

static const char help[] =
    "usage: tenet router [--kubeconfig FILE] [OPTIONS]\n"
    "\n"
    "Serves routes: follows Routes, Services and EndpointSlices, and drives HAProxy, which "
    "carries\n"
    "the traffic. Changes are live without a reload where HAProxy can. Needs no root, but the\n"
    "capability CAP_NET_BIND_SERVICE for ports below 1024. OpenShift's variables of the\n"
    "environment (ROUTER_*) are read as well.\n";

static void warn(const char *name, const char *why)
{
    log_warn("a variable has no effect", "name=%s reason=\"%s\"", name, why);
}

static int run_with(struct router_config *c, int argc, char **argv)
{
    struct err e = {0};
    CLEANUP_SETTINGS struct command_settings settings = {0};
    const char *name = NULL;
    int opt;
    optind = 0;
    while ((opt = command_getopt(&cmd_router, argc, argv, &name)) != -1) {
        if (opt != OPT_SETTING) {
            return opt == OPT_HELP ? 0 : 2;
        }
        command_settings_add(&settings, name, optarg ? optarg : "true");
    }
    int status = command_expect_end(&cmd_router, argc, argv);
    if (status >= 0) {
        return status;
    }
    if (router_config_read_env(c, (const char *const *) environ, warn, &e) < 0) {
        return command_fail(&e, NULL);
    }
    if (command_settings_apply(&settings, &router_options, c, &e) < 0 ||
        router_config_check(c, &e) < 0) {
        return command_usage(&cmd_router, "%s", e.text);
    }
    if (config_file_set_log(c->log_level, NULL, &e) < 0) {
        return command_usage(&cmd_router, "--log-level: %s", e.text);
    }
    status = router_run(c, &e);
    return status < 0 ? command_fail(&e, NULL) : status;
}

static int run(int argc, char **argv)
{
    struct router_config c = {0};
    router_config_init(&c);
    int status = run_with(&c, argc, argv);
    router_config_done(&c);
    return status;
}

const struct command cmd_router = {
    .name = "router",
    .summary = "serve routes from outside, through HAProxy",
    .help = help,
    .notes = "SIGTERM ends HAProxy when its connections have ended; SIGQUIT leaves it running for\n"
             "the next router. Exit status: 0 stopped, 1 it cannot start, 2 wrong usage.\n",
    .settings = &router_options,
    .run = run,
};
