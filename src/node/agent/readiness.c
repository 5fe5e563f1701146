/* SPDX-License-Identifier: Apache-2.0 */
#include "node/agent/readiness.h"

#include "base/macro.h"

#include <stdio.h>

const char *agent_phase_name(enum agent_phase p)
{
    static const char *const names[] = {
        [AGENT_WAITING] = "waiting",
        [AGENT_STARTING] = "starting",
        [AGENT_RUNNING] = "running",
        [AGENT_STOPPING] = "stopping",
    };
    return names[p];
}

static void fail(struct readiness *ret, enum readiness_state state, const char *reason)
{
    ret->state = state;
    ret->serves_pods = false;
    ret->reason = reason;
}

static void judge_datapath(const struct agent_facts *f, struct readiness *ret)
{
    if (f->datapath == PART_REFUSED) {
        fail(ret, READINESS_FAILED, f->datapath_refuse_reason);
        snprintf(ret->text, sizeof ret->text, "%s refuses its configuration: %s", f->datapath_title,
                 f->datapath_text);
        return;
    }
    bool lost = f->datapath == PART_LOST;
    fail(ret, lost ? READINESS_FAILED : READINESS_PENDING,
         lost ? f->datapath_lost_reason : "TenetStarting");
    snprintf(ret->text, sizeof ret->text, "%s is not available: %s", f->datapath_title,
             f->datapath_text);
}

static void judge_host(const struct agent_facts *f, struct readiness *ret)
{
    bool lost = f->host == PART_LOST;
    fail(ret, lost ? READINESS_FAILED : READINESS_PENDING, lost ? "HostNotReady" : "TenetStarting");
    snprintf(ret->text, sizeof ret->text, "the host is not set up: %s", f->host_text);
}

void readiness_judge(const struct agent_facts *f, struct readiness *ret)
{
    *ret =
        (struct readiness){.state = READINESS_READY, .serves_pods = true, .reason = "TenetReady"};
    if (f->phase == AGENT_STOPPING) {
        fail(ret, READINESS_PENDING, "TenetStopping");
        snprintf(ret->text, sizeof ret->text, "the node's agent is stopping");
    } else if (f->phase == AGENT_WAITING) {
        fail(ret, READINESS_PENDING, "TenetStarting");
        snprintf(ret->text, sizeof ret->text, "waiting for %s", f->waiting_for);
    } else if (f->datapath != PART_READY) {
        judge_datapath(f, ret);
    } else if (f->host != PART_READY) {
        judge_host(f, ret);
    } else if (f->phase != AGENT_RUNNING) {
        fail(ret, READINESS_PENDING, "TenetStarting");
        snprintf(ret->text, sizeof ret->text, "the pods of this node are being taken over");
    } else if (f->network_refused) {
        ret->state = READINESS_FAILED;
        ret->reason = "ClusterNetworkRefused";
        snprintf(ret->text, sizeof ret->text, "%s", f->network_refused);
    }
}
