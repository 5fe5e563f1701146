/* SPDX-License-Identifier: Apache-2.0 */
/* A policy compiler for tests in which pods have no node: any address counts for them.  'flows' NULL: nothing takes them. */
#pragma once

#include "sdn/policy.h"

static inline struct policy *policy_new_anywhere(struct ip4_prefix local,
                                                 const struct policy_flow_ops *flows, void *ctx)
{
    static const struct policy_ops ops = {0};
    static const char text[] = "{\"subnet\":\"0.0.0.0/0\"}";
    struct policy *p = policy_new(local, &ops, NULL);
    policy_want_flows(p, flows, ctx);
    CLEANUP(json_free) struct json *obj = NULL;
    if (json_parse(text, sizeof text - 1, &obj, NULL) == 0) {
        policy_set_host_subnet(p, "", obj);
    }
    return p;
}
