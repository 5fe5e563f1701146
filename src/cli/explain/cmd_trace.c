/* SPDX-License-Identifier: Apache-2.0 */
/* tenet trace: shows how a pod's packet is forwarded, and by which rule. */
#include "cli/command.h"
#include "cli/explain/trace.h"
#include "cli/kubectl/print.h"

#include <stdio.h>

static const char help[] =
    "usage: tenet trace [OPTIONS] PROJECT/POD DESTINATION [PROTOCOL [PORT]]\n"
    "\n"
    "Shows how a packet is forwarded from a pod to DESTINATION (PROJECT/POD, PROJECT/SERVICE, an\n"
    "IPv4 address, or the name of a node): each table and rule that decides on it, on the pod's\n"
    "node and on the one it\n"
    "is tunnelled to, and the object that each rule comes from. PROTOCOL is icmp (default), tcp, "
    "udp\n"
    "or sctp. No packet is sent: the node's datapath is asked what it would do, and the model in\n"
    "this program what it should do.\n"
    "\n"
    "Run as root on the pod's node; what another node does is computed from the registry there, "
    "and\n"
    "asked from its own switch in a lab.\n";

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
    CLEANUP_AGENTS struct agents a = {0};
    CLEANUP(json_free) struct json *trace = NULL;
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    struct trace_request q = {.proto = 1};
    struct err e = {0};
    int status;
    optind = 0;
    int c = agents_getopt(&a, &cmd_trace, argc, argv);
    if (c != -1) {
        return c == OPT_HELP ? 0 : 2;
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
    if (a.json) {
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
    .summary = "show how a pod's packet is forwarded, and by which rule",
    .help = help,
    .notes = "Exit status: 0 allowed, 1 dropped, 2 wrong usage, 3 unknown, or switch and "
             "model\n"
             "disagree.\n",
    .shared = agents_options,
    .complete = "icmp tcp udp sctp " COMPLETE_NODE,
    .run = run,
};
