/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ovs_fixture.h"

#include "base/mem.h"
#include "base/timeutil.h"
#include "net/kernel/netns.h"

#include <signal.h>
#include <stdio.h>

/* ---- events ---- */

static void on_inventory(void *ctx)
{
    struct fixture *f = ctx;
    f->inventory = true;
    f->n_inventory++;
}

static void on_ready(void *ctx)
{
    struct fixture *f = ctx;
    f->ready = true;
    f->n_ready++;
}

static void on_lost(void *ctx, const char *reason)
{
    struct fixture *f = ctx;
    f->lost = true;
    f->n_lost++;
    snprintf(f->reason, sizeof f->reason, "%s", reason);
}

static void on_refused(void *ctx, const char *reason)
{
    struct fixture *f = ctx;
    f->refused = true;
    f->n_refused++;
    snprintf(f->reason, sizeof f->reason, "%s", reason);
}

static void on_fatal(void *ctx, const char *reason)
{
    struct fixture *f = ctx;
    f->fatal = true;
    snprintf(f->reason, sizeof f->reason, "%s", reason);
}

static const struct datapath_events events = {.inventory = on_inventory,
                                              .ready = on_ready,
                                              .lost = on_lost,
                                              .refused = on_refused,
                                              .fatal = on_fatal};

/* ---- life ---- */

int fixture_setup(void **state)
{
    struct fixture *f = NEW(struct fixture);
    *state = f;
    if (ovs_unavailable()) {
        return 0;
    }
    ovs_start(&f->ovs);
    f->loop = loop_new();
    struct err e = {0};
    if (rtnl_open(&f->rtnl, &e) < 0) {
        print_error("%s\n", e.text);
        return -1;
    }
    f->datapath_type = "netdev";
    f->net = (struct sdn_network){
        .plugin = SDN_MULTITENANT,
        .cluster = {{0x0a800000, 14}},
        .n_cluster = 1,
        .service = {0xac1e0000, 16},
        .local = {0x0a800000, 23},
        .host_ip = 0xc0a80001,
        .vxlan_port = SDN_VXLAN_PORT,
        .mtu = 1450,
        .remotes = f->remotes,
    };
    fixture_add_remote(f, 1);
    fixture_add_remote(f, 2);
    return 0;
}

int fixture_teardown(void **state)
{
    struct fixture *f = *state;
    if (f->loop) {
        fixture_close(f);
        rtnl_close(f->rtnl);
        loop_free(f->loop);
        if (f->run_dir) {
            CLEANUP_FREE char *ends = xasprintf("%s/ports.netns", f->run_dir);
            netns_release(ends, NULL);
        }
        ovs_stop(&f->ovs);
    }
    free(f);
    return 0;
}

void fixture_open(struct fixture *f)
{
    char db[64];
    snprintf(db, sizeof db, "%s/db.sock", f->ovs.dir);
    struct smap settings;
    smap_init(&settings, free);
    smap_set(&settings, "ovs.database", xstrdup(db));
    smap_set(&settings, "ovs.runDir", xstrdup(f->ovs.dir));
    if (f->datapath_type) {
        smap_set(&settings, "ovs.datapathType", xstrdup(f->datapath_type));
    }
    struct datapath_config cfg = {
        .kind = "ovs", .node_name = "node1", .run_dir = f->run_dir, .settings = &settings};
    struct err e = {0};
    f->inventory = f->ready = f->lost = f->refused = f->fatal = false;
    f->n_inventory = f->n_ready = f->n_lost = f->n_refused = 0;
    f->reason[0] = '\0';
    if (datapath_open(f->loop, &cfg, &events, f, &f->dp, &e) < 0) {
        fail_msg("%s", e.text);
    }
    smap_done(&settings);
}

void fixture_close(struct fixture *f)
{
    f->dp = datapath_close(f->dp);
}

void fixture_wait(struct fixture *f, const bool *flag)
{
    if (loop_run_until(f->loop, flag, WAIT_MS) < 0) {
        struct datapath_status s;
        datapath_get_status(f->dp, &s);
        fail_msg("nothing after %d ms; last reason: %s; connected %d, in place %d", WAIT_MS,
                 f->reason, s.connected, s.in_place);
    }
}

void fixture_wait_for_ports(struct fixture *f)
{
    for (uint64_t end = time_mono_ms() + WAIT_MS; !ovs_ports_are_settled(f->dp);) {
        bool never = false;
        loop_run_until(f->loop, &never, 2);
        assert_true(time_mono_ms() < end);
    }
}

void fixture_up(struct fixture *f)
{
    fixture_open(f);
    fixture_wait(f, &f->inventory);
    datapath_set_network(f->dp, &f->net);
    fixture_wait(f, &f->ready);
    fixture_wait_for_ports(f);
}

void fixture_restart_agent(struct fixture *f)
{
    fixture_close(f);
    fixture_up(f);
}

void fixture_add_remote(struct fixture *f, unsigned n)
{
    f->remotes[f->net.n_remotes++] = (struct sdn_remote){.host_ip = 0xc0a80001 + n,
                                                         .subnet = {0x0a800000 + n * 0x200, 23},
                                                         .id = 0x1234567 * (uint64_t) n};
}

/* ---- pods ---- */

void fixture_make_veth(struct fixture *f, unsigned n)
{
    char name[16], peer[16];
    snprintf(name, sizeof name, "vp%u", n);
    snprintf(peer, sizeof peer, "pp%u", n);
    struct rtnl_veth v = {
        .name = name, .peer_name = peer, .peer_ns_fd = -1, .mtu = 1450, .up = true};
    struct err e = {0};
    if (rtnl_veth_add(f->rtnl, &v, &e) < 0) {
        fail_msg("%s", e.text);
    }
}

void fixture_pod(unsigned n, struct dp_pod *ret)
{
    static char id[32], name[32];
    snprintf(id, sizeof id, "container-%u", n);
    snprintf(name, sizeof name, "pod-%u", n);
    *ret = (struct dp_pod){.container_id = id,
                           .ifname = (char *) "eth0",
                           .pod_namespace = (char *) (n % 2 ? "red" : "blue"),
                           .pod_name = name,
                           .netns = (char *) "/run/netns/none",
                           .ip = 0x0a800002 + n,
                           .mac = mac_from_ip4(0x0a800002 + n),
                           .vnid = n % 2 ? 101 : 102};
    snprintf(ret->host_if, sizeof ret->host_if, "vp%u", n);
}

void fixture_port(void *ctx, const char *port, const char *host_if)
{
    struct outcome *o = ctx;
    assert_false(o->done);
    assert_string_equal(o->port, "");
    snprintf(o->port, sizeof o->port, "%s", port);
}

void fixture_done(void *ctx, int error, const char *text)
{
    struct outcome *o = ctx;
    assert_false(o->done);
    o->done = true;
    o->error = error;
    snprintf(o->text, sizeof o->text, "%s", text);
}

int fixture_attach(struct fixture *f, unsigned n)
{
    struct dp_pod p;
    struct outcome o = {0};
    fixture_pod(n, &p);
    datapath_attach(f->dp, &p, fixture_port, fixture_done, &o);
    assert_false(o.done);
    fixture_wait(f, &o.done);
    snprintf(f->reason, sizeof f->reason, "%s", o.text);
    return o.error;
}

int fixture_detach(struct fixture *f, unsigned n)
{
    struct dp_pod p;
    struct outcome o = {0};
    fixture_pod(n, &p);
    datapath_detach(f->dp, p.container_id, p.ifname, fixture_done, &o);
    assert_false(o.done);
    fixture_wait(f, &o.done);
    snprintf(f->reason, sizeof f->reason, "%s", o.text);
    return o.error;
}

/* ---- oracle ---- */

static int compare_lines(const void *a, const void *b)
{
    return strcmp(*(char *const *) a, *(char *const *) b);
}

char *fixture_flows(struct fixture *f)
{
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    OVS_RUN(&f->ovs, &text, "ovs-ofctl", "-O", "OpenFlow14", "--no-stats", "--no-names",
            "dump-flows", "br0");
    char *lines[4096], *save = NULL;
    size_t n = 0;
    for (char *l = text.data ? strtok_r(text.data, "\n", &save) : NULL; l;
         l = strtok_r(NULL, "\n", &save)) {
        assert_true(n < ARRAY_SIZE(lines));
        lines[n++] = l;
    }
    qsort(lines, n, sizeof *lines, compare_lines);
    struct strbuf out = STRBUF_INIT;
    for (size_t i = 0; i < n; i++) {
        strbuf_addf(&out, "%s\n", lines[i]);
    }
    return strbuf_steal(&out);
}

size_t fixture_count_flows(struct fixture *f)
{
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    OVS_RUN(&f->ovs, &text, "ovs-ofctl", "-O", "OpenFlow14", "--no-stats", "dump-flows", "br0");
    return fixture_count(strbuf_cstr(&text), "\n");
}

size_t fixture_count(const char *text, const char *word)
{
    size_t n = 0;
    for (const char *p = text; (p = strstr(p, word)); p += strlen(word)) {
        n++;
    }
    return n;
}

const char *fixture_port_of(struct fixture *f, unsigned n)
{
    struct dp_pod p;
    fixture_pod(n, &p);
    const struct dp_pod *there = datapath_find(f->dp, p.container_id, p.ifname);
    return there ? there->port : "";
}

char *fixture_links(struct fixture *f)
{
    CLEANUP_FREE char *ids =
        FIXTURE_VSCTL(f, "--bare", "--columns=external_ids", "list", "interface");
    char *links[256], *save = NULL;
    size_t n = 0;
    for (char *w = strtok_r(ids, " \n", &save); w; w = strtok_r(NULL, " \n", &save)) {
        if (str_has_prefix(w, "tenet-link=")) {
            assert_true(n < ARRAY_SIZE(links));
            links[n++] = w + strlen("tenet-link=");
        }
    }
    qsort(links, n, sizeof *links, compare_lines);
    struct strbuf out = STRBUF_INIT;
    for (size_t i = 0; i < n; i++) {
        strbuf_addf(&out, "%s%s", i ? " " : "", links[i]);
    }
    return strbuf_steal(&out);
}

char *fixture_vsctl(struct fixture *f, const char *const *argv)
{
    struct strbuf out = STRBUF_INIT;
    ovs_tool(&f->ovs, &out, "ovs-vsctl", "--db=unix:", "/db.sock", argv);
    while (out.size && out.data[out.size - 1] == '\n') {
        out.data[--out.size] = '\0';
    }
    return strbuf_steal(&out);
}

/* ---- disturbances ---- */

void fixture_signal(struct fixture *f, const char *daemon, int signo)
{
    char path[96];
    snprintf(path, sizeof path, "%s/%s.pid", f->ovs.dir, daemon);
    FILE *file = fopen(path, "re");
    int pid = 0;
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%d", &pid), 1);
    fclose(file);
    assert_true(pid > 1);
    assert_int_equal(kill(pid, signo), 0);
}

void fixture_kill_vswitchd(struct fixture *f)
{
    ovs_kill_daemon(f->ovs.dir, "vswitchd");
}

void fixture_kill_ovsdb(struct fixture *f)
{
    ovs_kill_daemon(f->ovs.dir, "ovsdb");
}

void fixture_start_vswitchd(struct fixture *f)
{
    char db[80], pidfile[80], log[80], ctl[80];
    snprintf(db, sizeof db, "unix:%s/db.sock", f->ovs.dir);
    snprintf(pidfile, sizeof pidfile, "--pidfile=%s/vswitchd.pid", f->ovs.dir);
    snprintf(log, sizeof log, "--log-file=%s/vswitchd.log", f->ovs.dir);
    snprintf(ctl, sizeof ctl, "--unixctl=%s/vswitchd.ctl", f->ovs.dir);
    OVS_RUN(&f->ovs, NULL, "ovs-vswitchd", "-vconsole:off", db, pidfile, log, ctl, "--detach");
}

void fixture_start_ovsdb(struct fixture *f)
{
    char conf[64], remote[80], pidfile[80], log[80], ctl[80];
    snprintf(conf, sizeof conf, "%s/conf.db", f->ovs.dir);
    snprintf(remote, sizeof remote, "--remote=punix:%s/db.sock", f->ovs.dir);
    snprintf(pidfile, sizeof pidfile, "--pidfile=%s/ovsdb.pid", f->ovs.dir);
    snprintf(log, sizeof log, "--log-file=%s/ovsdb.log", f->ovs.dir);
    snprintf(ctl, sizeof ctl, "--unixctl=%s/ovsdb.ctl", f->ovs.dir);
    OVS_RUN(&f->ovs, NULL, "ovsdb-server", "-vconsole:off", conf, remote, pidfile, log, ctl,
            "--detach");
}
