/* SPDX-License-Identifier: Apache-2.0 */
/* The text of Open vSwitch's ofproto/trace (ovs-vswitchd(8)): the flows that a packet matched,
 * and its outcome.  Pure: text in, values out.  Unknown lines are skipped: the format is made
 * for people. */
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
    struct ovstrace_step *steps; /* In the order of matching. */
    size_t n, cap;
    char *datapath_actions; /* Actions of the last pass: "drop", "5", "tnl_push(...),1" ... */
    char *remark;           /* The last explanation of the switch (">> ..."); NULL: none. */
};

/* Keeps the steps of 'bridge' only. -EBADMSG: no trace. '*ret' is freed by ovstrace_done. */
int ovstrace_parse(const char *text, const char *bridge, struct ovstrace *ret, struct err *e);
void ovstrace_done(struct ovstrace *t);
static inline UNUSED void ovstrace_donep(struct ovstrace *t)
{
    ovstrace_done(t);
}
