/* SPDX-License-Identifier: Apache-2.0 */
/* tenet adm create-master-certs: makes and renews the certificates that an API server and
 * controllers in processes of their own need. */
#include "base/log.h"
#include "cli/admin/adm.h"
#include "master/master_pki.h"
#include "net/tls/pki.h"

#include <getopt.h>
#include <stdio.h>

#define DEFAULT_DIR "/etc/tenet/pki"

static const char help[] =
    "usage: tenet adm create-master-certs [--config FILE] [--dir DIR]\n"
    "\n"
    "Makes in DIR each file that is missing, does not fit the configuration, or has less than a\n"
    "third of its time left; run it again to renew. The authority and sa.key never change.\n"
    "\n"
    "  ca.crt ca.key            the cluster's authority; the key is for the controllers\n"
    "  server.crt server.key    of the API server\n"
    "  sa.key                   signs the tokens of service accounts, for the API server\n"
    "  controllers.kubeconfig   how the controllers reach the API\n"
    "  admin.kubeconfig         how you do\n";

enum { OPT_DIR = OPT_FIRST_FREE };

static const struct command_option options[] = {
    {"config", 'c', "FILE",
     "master-config.yaml, for the names and the port of the API; see tenet-master-config(5)",
     COMPLETE_FILE},
    {"dir", OPT_DIR, "DIR", "where the files are; default: " DEFAULT_DIR, COMPLETE_FILE},
    {"quiet", 'q', NULL, "prints something only when files were made"},
    {0},
};

struct line {
    const char *config, *dir;
    bool quiet;
};

/* Returns -1 to go on, else the exit status. */
static int parse(int argc, char **argv, struct line *ret)
{
    int opt;
    optind = 0;
    while ((opt = command_getopt(&adm_create_master_certs, argc, argv, NULL)) != -1) {
        switch (opt) {
        case 'c':
            ret->config = optarg;
            break;
        case OPT_DIR:
            ret->dir = optarg;
            break;
        case 'q':
            ret->quiet = true;
            break;
        default:
            return opt == OPT_HELP ? 0 : 2;
        }
    }
    return command_expect_end(&adm_create_master_certs, argc, argv);
}

/* The port of "HOST:PORT". */
static int port_of(const char *address, int *ret, struct err *e)
{
    uint64_t port = 0;
    char host[OPTION_HOST_SIZE];
    int r = option_split_endpoint(address, host, &port);
    if (r < 0 || port == 0) {
        return err_set(e, -EINVAL, "servingInfo.bindAddress: needs a port that does not change");
    }
    *ret = (int) port;
    return 0;
}

static int run(int argc, char **argv)
{
    __attribute__((cleanup(master_config_donep))) struct master_config c;
    struct line line = {.dir = DEFAULT_DIR};
    struct pki_ca *ca = NULL;
    struct err e = {0};
    bool made = false;
    int port = 0;
    master_config_init(&c);
    int status = parse(argc, argv, &line);
    if (status >= 0) {
        return status;
    }
    int r = line.config ? master_config_load(line.config, &c, &e) : 0;
    if (r < 0 || (r = port_of(c.bind_address, &port, &e)) < 0 ||
        (r = master_pki_ensure(&c, line.dir, port, true, &ca, &made, &e)) < 0) {
        pki_ca_free(ca);
        return command_fail(&e, NULL);
    }
    pki_ca_free(ca);
    if (made) {
        printf("certificates and keys are in %s\n", line.dir);
    } else if (!line.quiet) {
        printf("nothing to do: all in %s is good\n", line.dir);
    }
    return 0;
}

const struct command adm_create_master_certs = {
    .name = "adm create-master-certs",
    .summary = "certificates and keys of an API server and controllers apart",
    .help = help,
    .options = options,
    .run = run};
