/* SPDX-License-Identifier: Apache-2.0 */
/* The text of Open vSwitch's ofproto/trace (ovs-vswitchd(8)): which flows a packet met, and
 * what became of it.  Pure: text in, values out.  Lines that are not understood are left
 * out: the format is made for people. */
#pragma once

#include "base/err.h"
#include "base/str.h"

struct ovstrace_step {
    uint8_t table;
    uint16_t priority;
    uint64_t cookie;
    char *match;   /* "ip,nw_dst=10.128.0.2"; "" matches everything. */
    char *actions; /* "set_field:0xa->reg0, goto_table:50" */
};

struct ovstrace {
    struct ovstrace_step *steps; /* In the order in which they were met. */
    size_t n, cap;
    char *datapath_actions; /* Of the last pass: "drop", "5", "tnl_push(...),1" ... */
    char *remark; /* The last line with which the switch explains itself (">> ..."); NULL: none. */
};

/* Takes the steps of 'bridge' only.  -EBADMSG: no trace.  '*ret' is done by ovstrace_done. */
int ovstrace_parse(const char *text, const char *bridge, struct ovstrace *ret, struct err *e);
void ovstrace_done(struct ovstrace *t);
static inline UNUSED void ovstrace_donep(struct ovstrace *t)
{
    ovstrace_done(t);
}
