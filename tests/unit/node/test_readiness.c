/* SPDX-License-Identifier: Apache-2.0 */
/* One row of facts each, and what readiness_judge says of them. */
#include "node/agent/readiness.h"

#include "base/macro.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define FACTS(phase_, datapath_, host_)                                                          \
    .phase = AGENT_##phase_, .datapath = PART_##datapath_, .host = PART_##host_,                 \
    .datapath_title = "Open vSwitch", .datapath_lost_reason = "OpenVSwitchGone",                 \
    .datapath_refuse_reason = "FlowsRefused", .datapath_text = "closed", .host_text = "no tun0", \
    .waiting_for = "the master"

static const struct {
    const char *name;
    struct agent_facts facts;
    enum readiness_state state;
    bool serves_pods;
    const char *reason, *text;
} rows[] = {
    {"all is well", {FACTS(RUNNING, READY, READY)}, READINESS_READY, true, "TenetReady", ""},
    {"the registry is awaited",
     {FACTS(WAITING, PENDING, READY)},
     READINESS_PENDING,
     false,
     "TenetStarting",
     "waiting for the master"},
    {"the datapath connects",
     {FACTS(STARTING, PENDING, PENDING)},
     READINESS_PENDING,
     false,
     "TenetStarting",
     "Open vSwitch is not available: closed"},
    {"the datapath is lost",
     {FACTS(RUNNING, LOST, READY)},
     READINESS_FAILED,
     false,
     "OpenVSwitchGone",
     "Open vSwitch is not available: closed"},
    {"the datapath is lost during the start",
     {FACTS(STARTING, LOST, PENDING)},
     READINESS_FAILED,
     false,
     "OpenVSwitchGone",
     "Open vSwitch is not available: closed"},
    {"the datapath refuses",
     {FACTS(RUNNING, REFUSED, READY)},
     READINESS_FAILED,
     false,
     "FlowsRefused",
     "Open vSwitch refuses its configuration: closed"},
    {"the datapath counts before the host",
     {FACTS(RUNNING, LOST, LOST)},
     READINESS_FAILED,
     false,
     "OpenVSwitchGone",
     "Open vSwitch is not available: closed"},
    {"the host is looked at",
     {FACTS(RUNNING, READY, PENDING)},
     READINESS_PENDING,
     false,
     "TenetStarting",
     "the host is not set up: no tun0"},
    {"the host cannot be set up",
     {FACTS(RUNNING, READY, LOST)},
     READINESS_FAILED,
     false,
     "HostNotReady",
     "the host is not set up: no tun0"},
    {"pods are taken over",
     {FACTS(STARTING, READY, READY)},
     READINESS_PENDING,
     false,
     "TenetStarting",
     "the pods of this node are being taken over"},
    {"the ClusterNetwork is refused, and pods are served",
     {FACTS(RUNNING, READY, READY), .network_refused = "mtu: too large"},
     READINESS_FAILED,
     true,
     "ClusterNetworkRefused",
     "mtu: too large"},
    {"the datapath counts before the ClusterNetwork",
     {FACTS(RUNNING, LOST, READY), .network_refused = "mtu: too large"},
     READINESS_FAILED,
     false,
     "OpenVSwitchGone",
     "Open vSwitch is not available: closed"},
    {"the agent stops, whatever else is wrong",
     {FACTS(STOPPING, LOST, LOST)},
     READINESS_PENDING,
     false,
     "TenetStopping",
     "the node's agent is stopping"},
};

static void each_row_of_facts_is_judged(void **state)
{
    (void) state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct readiness r;
        readiness_judge(&rows[i].facts, &r);
        print_message("%s\n", rows[i].name);
        assert_int_equal(r.state, rows[i].state);
        assert_int_equal(r.serves_pods, rows[i].serves_pods);
        assert_string_equal(r.reason, rows[i].reason);
        assert_string_equal(r.text, rows[i].text);
    }
}

static void only_a_running_agent_with_every_part_is_ready(void **state)
{
    (void) state;
    for (int phase = AGENT_WAITING; phase <= AGENT_STOPPING; phase++) {
        for (int datapath = PART_PENDING; datapath <= PART_REFUSED; datapath++) {
            for (int host = PART_PENDING; host <= PART_LOST; host++) {
                struct agent_facts f = {FACTS(RUNNING, READY, READY)};
                struct readiness r;
                f.phase = (enum agent_phase) phase;
                f.datapath = (enum part_state) datapath;
                f.host = (enum part_state) host;
                readiness_judge(&f, &r);
                bool all = phase == AGENT_RUNNING && datapath == PART_READY && host == PART_READY;
                assert_int_equal(r.serves_pods, all);
                assert_int_equal(r.state == READINESS_READY, all);
                assert_int_equal(r.text[0] == '\0', all);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_row_of_facts_is_judged),
        cmocka_unit_test(only_a_running_agent_with_every_part_is_ready),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
