/* SPDX-License-Identifier: Apache-2.0 */
/* The "ovs" datapath under test on a private Open vSwitch (tests/support/ovs.h), with what it says
 * recorded, and ways to disturb the switch. */
#pragma once

#include "datapath/datapath.h"
#include "datapath/ovs/ovs.h"
#include "net/kernel/rtnl.h"

#include "ovs.h" /* tests/support */

#define WAIT_MS 20000

struct fixture {
    struct ovs ovs;
    struct loop *loop;
    struct rtnl *rtnl;
    struct datapath *dp;
    const char *datapath_type;
    const char
        *run_dir; /* Where the other ends of ports have their namespace; NULL: they have none. */
    struct sdn_network net;
    struct sdn_remote remotes[8];

    /* Set when the event comes; a test clears what it waits for next. */
    bool inventory, ready, lost, refused, fatal;
    unsigned n_inventory, n_ready, n_lost, n_refused;
    char reason[512];
};

/* cmocka's setup and teardown of a test; '*state' is the fixture. */
int fixture_setup(void **state);
int fixture_teardown(void **state);

void fixture_open(struct fixture *f);
void fixture_close(struct fixture *f);
/* Runs the loop until '*flag'; fails the test when that takes too long. */
void fixture_wait(struct fixture *f, const bool *flag);
/* Waits until the spare ports are there, so that a test sees its own transactions only. */
void fixture_wait_for_ports(struct fixture *f);
/* Opens, sets the network and waits until it is in place, with spare ports. */
void fixture_up(struct fixture *f);
/* Closes, as if the agent stopped, and opens a new one up to 'ready'. */
void fixture_restart_agent(struct fixture *f);

/* Adds 'remotes[n]' for node 'n', 10.128.(2n).0/23. */
void fixture_add_remote(struct fixture *f, unsigned n);

/* A pod 'n' whose veth exists: 10.128.0.(n+2), link "vp<n>". */
void fixture_make_veth(struct fixture *f, unsigned n);
void fixture_pod(unsigned n, struct dp_pod *ret);
struct outcome {
    char port[16];
    bool done;
    int error;
    char text[400];
};
void fixture_port(void *ctx, const char *port,
                  const char *host_if); /* A datapath_port_fn; likewise. */
void fixture_done(void *ctx, int error,
                  const char *text); /* A datapath_done_fn; ctx is an outcome. */
/* Attaches pod 'n' and waits; returns what 'done' got. */
int fixture_attach(struct fixture *f, unsigned n);
int fixture_detach(struct fixture *f, unsigned n);

/* Flows as ovs-ofctl prints them, without counters, sorted; owned. */
char *fixture_flows(struct fixture *f);
size_t fixture_count_flows(struct fixture *f);
size_t fixture_count(const char *text, const char *word);
/* Name of the port that pod 'n' has; "": none. */
const char *fixture_port_of(struct fixture *f, unsigned n);
/* Links of the pods that the database knows, sorted, a blank between them; owned. */
char *fixture_links(struct fixture *f);
/* Trimmed output of ovs-vsctl (owned). */
#define FIXTURE_VSCTL(f, ...) fixture_vsctl(f, (const char *const[]){__VA_ARGS__, NULL})
char *fixture_vsctl(struct fixture *f, const char *const *argv);

/* Sends 'signo' to "ovsdb" or "vswitchd". */
void fixture_signal(struct fixture *f, const char *daemon, int signo);
void fixture_kill_vswitchd(struct fixture *f);
void fixture_start_vswitchd(struct fixture *f);
void fixture_kill_ovsdb(struct fixture *f);
void fixture_start_ovsdb(struct fixture *f);
