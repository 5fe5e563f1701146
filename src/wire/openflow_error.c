/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of OpenFlow 1.4 errors (7.5.4): of every type, and of the codes that our requests can
 * cause. */
#include "wire/openflow_priv.h"

#include <stdio.h>

static const char *const hello[] = {"no common version", "not permitted"};
static const char *const request[] = {
    "version not supported",
    "message type not supported",
    "multipart type not supported",
    "experimenter not supported",
    "experimenter type not supported",
    "not permitted",
    "wrong length",
    "buffer already used",
    "buffer does not exist",
    "no such table",
    "the controller is a slave",
    "no such port",
    "bad packet",
    "multipart buffer overflow",
    "multipart request timed out",
    "multipart reply timed out",
};
static const char *const action[] = {
    "unknown type",
    "wrong length",
    "unknown experimenter",
    "unknown experimenter type",
    "bad output port",
    "bad argument",
    "not permitted",
    "too many actions",
    "bad queue",
    "bad output group",
    "does not fit the match",
    "unsupported order",
    "bad tag",
    "unsupported field to set",
    "wrong length of a field to set",
    "bad value of a field to set",
};
static const char *const instruction[] = {
    "unknown instruction",
    "unsupported instruction",
    "bad table to go to",
    "unsupported metadata value",
    "unsupported metadata mask",
    "unknown experimenter",
    "unknown experimenter type",
    "wrong length",
    "not permitted",
    "duplicate instruction",
};
static const char *const match[] = {
    "unsupported type",
    "wrong length",
    "bad tag",
    "unsupported mask of an Ethernet address",
    "unsupported mask of an IP address",
    "unsupported wildcards",
    "unsupported field",
    "bad value",
    "unsupported mask",
    "a field lacks its prerequisite",
    "duplicate field",
    "not permitted",
};
static const char *const flow_mod[] = {
    "unknown reason",        "table full",   "no such table",        "overlapping flow",
    "not permitted",         "bad timeout",  "bad command",          "bad flags",
    "table is synchronised", "bad priority", "flow is synchronised",
};
static const char *const property[] = {
    "unknown type",
    "wrong length",
    "bad value",
    "too many",
    "duplicate type",
    "unknown experimenter",
    "bad experimenter type",
    "bad experimenter value",
    "not permitted",
};
static const char *const bundle[] = {
    "unknown reason",
    "not permitted",
    "no such bundle",
    "bundle exists already",
    "bundle is closed",
    "too many bundles",
    "bad control type",
    "bad flags",
    "message of wrong length",
    "message with another transaction id",
    "message type not supported",
    "messages conflict",
    "too many messages",
    "message failed",
    "timed out",
    "bundle in progress",
};

static const struct {
    const char *name;
    const char *const *codes;
    size_t n;
} types[] = {
    [0] = {"hello failed", hello, ARRAY_SIZE(hello)},
    [1] = {"bad request", request, ARRAY_SIZE(request)},
    [2] = {"bad action", action, ARRAY_SIZE(action)},
    [3] = {"bad instruction", instruction, ARRAY_SIZE(instruction)},
    [4] = {"bad match", match, ARRAY_SIZE(match)},
    [5] = {"flow-mod failed", flow_mod, ARRAY_SIZE(flow_mod)},
    [6] = {"group-mod failed"},
    [7] = {"port-mod failed"},
    [8] = {"table-mod failed"},
    [9] = {"queue operation failed"},
    [10] = {"switch configuration failed"},
    [11] = {"role request failed"},
    [12] = {"meter-mod failed"},
    [13] = {"table features failed"},
    [14] = {"bad property", property, ARRAY_SIZE(property)},
    [15] = {"asynchronous configuration failed"},
    [16] = {"flow monitor failed"},
    [17] = {"bundle failed", bundle, ARRAY_SIZE(bundle)},
};

const char *of_error_text(const struct of_error *er, char out[96])
{
    enum { SIZE = 96 };
    if (er->type >= ARRAY_SIZE(types)) {
        snprintf(out, SIZE, "error type %u, code %u", er->type, er->code);
    } else if (er->code >= types[er->type].n) {
        snprintf(out, SIZE, "%s: code %u", types[er->type].name, er->code);
    } else {
        snprintf(out, SIZE, "%s: %s", types[er->type].name, types[er->type].codes[er->code]);
    }
    return out;
}
