/* SPDX-License-Identifier: Apache-2.0 */
/* tenet csi-controller: the controller side of a CSI driver. */
#include "base/log.h"
#include "base/str.h"
#include "cli/command.h"
#include "kubelet/storage/csi_controller.h"
#include "net/loop/config_file.h"
#include "net/loop/notify.h"

#include <getopt.h>

LOG_MODULE("csi");

enum { OPT_ADDRESS = OPT_FIRST_FREE, OPT_LOG_LEVEL };

static const char help[] =
    "usage: tenet csi-controller --csi-address SOCKET [--kubeconfig FILE] [OPTIONS]\n"
    "\n"
    "Runs beside the controller of a CSI driver: makes and deletes its volumes for claims, "
    "attaches\n"
    "and detaches them, and grows them. It stands for external-provisioner, external-attacher and\n"
    "external-resizer. One instance runs for each driver. Its user needs to read StorageClasses,\n"
    "CSINodes, Nodes and the drivers' Secrets, and to write PersistentVolumes, the status of "
    "claims,\n"
    "VolumeAttachments and Events.\n";

static const struct command_option options[] = {
    {"csi-address", OPT_ADDRESS, "SOCKET", "path of the driver's socket", COMPLETE_FILE},
    {"kubeconfig", OPT_KUBECONFIG, "FILE",
     "how to reach the API; default: $KUBECONFIG, then ~/.kube/config", COMPLETE_FILE},
    {"log-level", OPT_LOG_LEVEL, "LEVEL", "levels of logs, such as info or info,csi=debug"},
    {0},
};

static void on_term(void *ctx)
{
    log_info("stopping");
    loop_stop(ctx);
}

static int serve(const char *socket, const char *kubeconfig, struct err *e)
{
    struct loop *loop = loop_new();
    struct api_client *client = NULL;
    int r = api_client_from_kubeconfig(loop, kubeconfig, "tenet-csi-controller/" TENET_VERSION,
                                       &client, e);
    if (r == 0) {
        struct loop_signal *term = loop_signal_new(loop, SIGTERM, on_term, loop);
        struct loop_signal *interrupt = loop_signal_new(loop, SIGINT, on_term, loop);
        struct recorder *recorder = recorder_new(loop, client, "csi-controller");
        struct csi_controller_config c = {
            .loop = loop, .client = client, .recorder = recorder, .socket = socket};
        struct csi_controller *controller = csi_controller_new(&c);
        notify_manager("READY=1");
        loop_run(loop);
        csi_controller_free(controller);
        recorder_free(recorder);
        loop_signal_free(term);
        loop_signal_free(interrupt);
        api_client_free(client);
    }
    loop_free(loop);
    return r;
}

static int run(int argc, char **argv)
{
    const char *socket = NULL, *kubeconfig = NULL, *log_level = NULL;
    struct err e = {0};
    int opt;
    optind = 0;
    while ((opt = command_getopt(&cmd_csi_controller, argc, argv, NULL)) != -1) {
        switch (opt) {
        case OPT_ADDRESS:
            socket = optarg;
            break;
        case OPT_KUBECONFIG:
            kubeconfig = optarg;
            break;
        case OPT_LOG_LEVEL:
            log_level = optarg;
            break;
        default:
            return opt == OPT_HELP ? 0 : 2;
        }
    }
    int status = command_expect_end(&cmd_csi_controller, argc, argv);
    if (status >= 0) {
        return status;
    }
    if (!socket || *socket != '/') {
        return command_usage(&cmd_csi_controller, "--csi-address needs the path of a socket");
    }
    if (config_file_set_log(log_level, NULL, &e) < 0) {
        return command_usage(&cmd_csi_controller, "--log-level: %s", e.text);
    }
    status = serve(socket, kubeconfig, &e);
    return status < 0 ? command_fail(&e, NULL) : status;
}

const struct command cmd_csi_controller = {
    .name = "csi-controller",
    .summary = "make, attach and grow the volumes of a CSI driver",
    .help = help,
    .notes = "SIGTERM stops it. Exit status: 0 stopped, 1 it cannot start, 2 wrong usage.\n",
    .options = options,
    .run = run,
};
