/* SPDX-License-Identifier: Apache-2.0 */
/* A private Open vSwitch for tests and benchmarks, and a small blocking OpenFlow client.
 *
 * ovs_start moves the calling process (one thread) into a network namespace of its own and starts
 * ovsdb-server and ovs-vswitchd there, with all their files in a new temporary directory.  A watcher
 * process ends both and removes the directory on ovs_stop, and also when the caller dies of anything.
 * Nothing here returns on a failure that makes testing pointless: it prints why and aborts. */
#pragma once

#include "base/str.h"
#include "wire/openflow.h"

#include <sys/types.h>

struct ovs {
    char dir[40]; /* Run directory: db.sock, BRIDGE.mgmt, vswitchd.ctl, logs. */
    int watcher_fd;
    pid_t watcher;
};

/* NULL when this process may start one, else why not (not root, not installed). */
const char *ovs_unavailable(void);
void ovs_start(struct ovs *o);
void ovs_stop(struct ovs *o);
/* Kills "ovsdb" or "vswitchd" (nothing when it does not run) and waits for its end. */
void ovs_kill_daemon(const char *dir, const char *name);

/* Runs a program with its standard output appended to 'out' (NULL: discarded) and fails the test when its
 * exit status is not 0.  The arguments end with NULL. */
#define OVS_RUN(o, out, ...) ovs_run(o, out, (const char *const[]){__VA_ARGS__, NULL})
void ovs_run(const struct ovs *o, struct strbuf *out, const char *const *argv);
/* ovs-vsctl and ovs-appctl with where they find the daemon. */
#define OVS_VSCTL(o, ...)                                    \
    ovs_tool(o, NULL, "ovs-vsctl", "--db=unix:", "/db.sock", \
             (const char *const[]){__VA_ARGS__, NULL})
#define OVS_APPCTL(o, out, ...)                                  \
    ovs_tool(o, out, "ovs-appctl", "--target=", "/vswitchd.ctl", \
             (const char *const[]){__VA_ARGS__, NULL})
void ovs_tool(const struct ovs *o, struct strbuf *out, const char *tool, const char *option,
              const char *file, const char *const *argv);

/* Adds a route for tunnels.  The switch takes it only when it knows the address of 'link', a moment
 * after the kernel; until then this asks again. */
void ovs_add_route(const struct ovs *o, const char *prefix, const char *link);

/* Writes the bridge's flows as ovs-ofctl reads them to a file in o->dir, whose path 'ret' gets. */
#define OVS_PATH_SIZE 64
void ovs_write_flows(const struct ovs *o, const char *bridge, char ret[OVS_PATH_SIZE]);

/* A connection to BRIDGE.mgmt after the exchange of hellos. */
struct of_client {
    int fd;
    uint32_t xid;
    struct strbuf in;
    size_t used; /* Of 'in', by messages already returned. */
};
void of_client_open(struct of_client *c, const struct ovs *o, const char *bridge);
void of_client_close(struct of_client *c);
void of_client_send(struct of_client *c, const struct strbuf *out);
/* Next message that is not an echo request; valid until the next call. */
struct of_msg of_client_receive(struct of_client *c);
/* Adds 'flows' in one bundle and waits for the commit; an error of the switch fails the test. */
void of_client_commit(struct of_client *c, enum of_flow_command cmd,
                      const struct of_flow_list *flows);
/* All flows of the bridge. */
void of_client_dump(struct of_client *c, struct of_flow_list *ret);
