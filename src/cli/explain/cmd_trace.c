/* SPDX-License-Identifier: Apache-2.0 */
/* tenet trace: what becomes of a pod's packet, and by which rule. */
#include "cli/command.h"
#include "cli/explain/trace.h"
#include "cli/kubectl/print.h"

#include <stdio.h>

static const char help[] =
    "usage: tenet trace [OPTIONS] PROJECT/POD DESTINATION [PROTOCOL [PORT]]\n"
    "\n"
    "Says what becomes of a packet from a pod to DESTINATION (PROJECT/POD, PROJECT/SERVICE, an\n"
    "IPv4 address, or the name of a node): each table and rule that decides on it, on the pod's\n"
    "node and on the one it\n"
    "is tunnelled to, and the object that each rule comes from. PROTOCOL is icmp (default), tcp, "
    "udp\n"
    "or sctp. No packet is sent: the node's datapath is asked what it would do, and the model in\n"
    "this program what it should do.\n"
    "\n"
    "Run as root on the pod's node; what another node does is computed from the registry there, "
    "and\n"
    "asked from its own switch in a lab.\n"
    "\n"
    "options:\n" AGENTS_HELP "  -o, --output json       data for programs\n"
    "  -h, --help\n"
    "\n"
    "Exit status: 0 allowed, 1 dropped, 2 wrong usage, 3 it cannot be told, or switch and model\n"
    "disagree.\n";

static int parse_port(const char *s, uint8_t proto, uint16_t *ret)
{
    uint64_t v;
    if (!explain_has_ports(proto)) {
        return command_usage(&cmd_trace, "%s has no ports", explain_proto_name(proto));
    }
    if (str_to_u64(s, UINT16_MAX, &v) < 0 || v == 0) {
        return command_usage(&cmd_trace, "\"%s\" is not a port", s);
    }
    *ret = (uint16_t) v;
    return 0;
}

static int run(int argc, char **argv)
{
    static const struct option options[] = {AGENTS_OPTIONS,
                                            {"output", required_argument, NULL, 'o'},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    CLEANUP_AGENTS struct agents a = {0};
    CLEANUP(json_free) struct json *trace = NULL;
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    struct trace_request q = {.proto = 1};
    struct err e = {0};
    bool json = false;
    int c, status;
    opterr = 0;
    optind = 0;
    while ((c = getopt_long(argc, argv, ":ho:s:", options, NULL)) != -1) {
        if (c == 'h') {
            fputs(help, stdout);
            return 0;
        }
        if (c == 'o' && !streq(optarg, "json")) {
            return command_usage(&cmd_trace, "-o: \"%s\" is not json", optarg);
        }
        if (c == 'o') {
            json = true;
        } else if (c == ':') {
            return command_usage(&cmd_trace, "%s needs a value", argv[optind - 1]);
        } else if (!agents_option(&a, c, optarg)) {
            return command_usage(&cmd_trace, "%s: no such option", argv[optind - 1]);
        }
    }
    int n = argc - optind;
    if (n < 2 || n > 4) {
        return command_usage(&cmd_trace,
                             n < 2 ? "say from which pod and to where" : "too many arguments");
    }
    q.from = argv[optind];
    q.to = argv[optind + 1];
    if (n > 2 && explain_proto_parse(argv[optind + 2], &q.proto, &e) < 0) {
        return command_usage(&cmd_trace, "%s", e.text);
    }
    if (n > 3 && (status = parse_port(argv[optind + 3], q.proto, &q.port)) != 0) {
        return status;
    }
    if ((status = agents_open(&a)) != 0) {
        return status;
    }
    if (trace_follow(&a, &q, &trace, &e) < 0) {
        (void) command_fail(&e, NULL);
        return CANNOT_TELL;
    }
    if (json) {
        json_write(trace, 4, &out);
        strbuf_addc(&out, '\n');
    } else {
        trace_render(trace, &out);
    }
    fputs(strbuf_cstr(&out), stdout);
    return trace_exit_status(trace);
}

const struct command cmd_trace = {
    .name = "trace",
    .summary = "say what becomes of a pod's packet, and by which rule",
    .help = help,
    .run = run,
};
