/* SPDX-License-Identifier: Apache-2.0 */
#include "ovs.h"

#include "check.h"

#include <fcntl.h>
#include <ftw.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SCHEMA "/usr/share/openvswitch/vswitch.ovsschema"
#define REPLY_TIMEOUT_S 60

const char *ovs_unavailable(void)
{
    const char *why = geteuid() != 0              ? "needs root"
                      : access(SCHEMA, R_OK) != 0 ? "Open vSwitch is not installed"
                                                  : NULL;
    if (why && getenv("TENET_ALL_TESTS")) {
        fprintf(stderr, "tests were left out: %s\n", why);
        abort();
    }
    return why;
}

/* ---- the daemons ---- */

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    return remove(path);
}

/* Whether 'pid' runs and works in 'dir'. */
static bool runs_in(int pid, const char *dir)
{
    char path[64], line[4096];
    snprintf(path, sizeof path, "/proc/%d/cmdline", pid);
    FILE *f = fopen(path, "re");
    size_t n = f ? fread(line, 1, sizeof line, f) : 0;
    if (f) {
        fclose(f);
    }
    return n && memmem(line, n, dir, strlen(dir));
}

/* Kills the daemon of a pid file, if it is still the one that works in 'dir', and waits for its end. */
void ovs_kill_daemon(const char *dir, const char *name)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s.pid", dir, name);
    FILE *f = fopen(path, "re");
    int pid = 0;
    if (!f || fscanf(f, "%d", &pid) != 1 || pid <= 1) {
        pid = 0;
    }
    if (f) {
        fclose(f);
    }
    /* It is over when its last file is closed, long after it has no command line. */
    CLEANUP(fd_close) int fd = pid ? pidfd_open(pid, 0) : -1;
    if (fd >= 0 && runs_in(pid, dir)) {
        pidfd_send_signal(fd, SIGKILL, NULL, 0);
        poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 10000);
    }
}

static void watch(const char *dir, int fd)
{
    setsid();
    char c;
    while (read(fd, &c, 1) > 0) {
    }
    ovs_kill_daemon(dir, "vswitchd");
    ovs_kill_daemon(dir, "ovsdb");
    nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    _exit(0);
}

static void loopback_up(void)
{
    CLEANUP(fd_close) int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifreq ifr = {.ifr_name = "lo", .ifr_flags = IFF_UP};
    CHECK(fd >= 0 && ioctl(fd, SIOCSIFFLAGS, &ifr) == 0, "%m");
}

void ovs_start(struct ovs *o)
{
    CHECK(unshare(CLONE_NEWNET) == 0, "%m");
    loopback_up();
    snprintf(o->dir, sizeof o->dir, "/tmp/tenet-test-ovs-XXXXXX");
    CHECK(mkdtemp(o->dir), "%m");
    int fds[2];
    CHECK(pipe2(fds, O_CLOEXEC) == 0, "%m");
    o->watcher = fork();
    CHECK(o->watcher >= 0, "%m");
    if (o->watcher == 0) {
        close(fds[1]);
        watch(o->dir, fds[0]);
    }
    close(fds[0]);
    o->watcher_fd = fds[1];

    char conf[64], remote[80], db[80], pidfile[80], log[80], ctl[80];
    snprintf(conf, sizeof conf, "%s/conf.db", o->dir);
    snprintf(remote, sizeof remote, "--remote=punix:%s/db.sock", o->dir);
    snprintf(db, sizeof db, "unix:%s/db.sock", o->dir);
    OVS_RUN(o, NULL, "ovsdb-tool", "create", conf, SCHEMA);
    snprintf(pidfile, sizeof pidfile, "--pidfile=%s/ovsdb.pid", o->dir);
    snprintf(log, sizeof log, "--log-file=%s/ovsdb.log", o->dir);
    snprintf(ctl, sizeof ctl, "--unixctl=%s/ovsdb.ctl", o->dir);
    OVS_RUN(o, NULL, "ovsdb-server", "-vconsole:off", conf, remote, pidfile, log, ctl, "--detach");
    OVS_VSCTL(o, "--no-wait", "init");
    snprintf(pidfile, sizeof pidfile, "--pidfile=%s/vswitchd.pid", o->dir);
    snprintf(log, sizeof log, "--log-file=%s/vswitchd.log", o->dir);
    snprintf(ctl, sizeof ctl, "--unixctl=%s/vswitchd.ctl", o->dir);
    OVS_RUN(o, NULL, "ovs-vswitchd", "-vconsole:off", db, pidfile, log, ctl, "--enable-dummy",
            "--detach");
}

void ovs_stop(struct ovs *o)
{
    close(o->watcher_fd);
    waitpid(o->watcher, NULL, 0);
}

void ovs_run(const struct ovs *o, struct strbuf *out, const char *const *argv)
{
    int fds[2];
    CHECK(pipe2(fds, O_CLOEXEC) == 0, "%m");
    pid_t pid = fork();
    CHECK(pid >= 0, "%m");
    if (pid == 0) {
        setenv("OVS_RUNDIR", o->dir, 1);
        setenv("OVS_DBDIR", o->dir, 1);
        setenv("OVS_LOGDIR", o->dir, 1);
        setenv("OVS_SYSCONFDIR", o->dir, 1);
        dup2(fds[1], STDOUT_FILENO);
        execvp(argv[0], (char *const *) argv);
        _exit(127);
    }
    close(fds[1]);
    char buf[16384];
    for (ssize_t n; (n = read(fds[0], buf, sizeof buf)) > 0;) {
        if (out) {
            strbuf_add(out, buf, (size_t) n);
        }
    }
    close(fds[0]);
    int status;
    CHECK(waitpid(pid, &status, 0) == pid && status == 0, "%s %s %s: status %#x", argv[0], argv[1],
          argv[1] && argv[2] ? argv[2] : "", status);
}

void ovs_write_flows(const struct ovs *o, const char *bridge, char ret[OVS_PATH_SIZE])
{
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    OVS_RUN(o, &text, "ovs-ofctl", "-OOpenFlow14", "--no-stats", "--no-names", "dump-flows",
            bridge);
    snprintf(ret, OVS_PATH_SIZE, "%s/flows.txt", o->dir);
    FILE *f = fopen(ret, "we");
    CHECK(f && fwrite(text.data, 1, text.size, f) == text.size && fclose(f) == 0, "%s: %m", ret);
}

void ovs_tool(const struct ovs *o, struct strbuf *out, const char *tool, const char *option,
              const char *file, const char *const *argv)
{
    char target[96];
    const char *all[64] = {tool, target, "--timeout=30"};
    snprintf(target, sizeof target, "%s%s%s", option, o->dir, file);
    for (size_t i = 0; argv[i]; i++) {
        CHECK(i + 4 < ARRAY_SIZE(all), "too many arguments");
        all[i + 3] = argv[i];
    }
    ovs_run(o, out, all);
}

void ovs_add_route(const struct ovs *o, const char *prefix, const char *link)
{
    static const char again[] = "for i in $(seq 1000); do"
                                "  why=$(ovs-appctl --target=\"$1\" --timeout=30 ovs/route/add "
                                "\"$2\" \"$3\" 2>&1) && exit 0;"
                                "  sleep 0.01; "
                                "done; echo \"$why\" >&2; exit 1";
    char target[96];
    snprintf(target, sizeof target, "%s/vswitchd.ctl", o->dir);
    OVS_RUN(o, NULL, "sh", "-c", again, "add-route", target, prefix, link);
}

/* ---- OpenFlow client ---- */

void of_client_open(struct of_client *c, const struct ovs *o, const char *bridge)
{
    *c = (struct of_client){.in = STRBUF_INIT};
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    snprintf(sa.sun_path, sizeof sa.sun_path, "%s/%s.mgmt", o->dir, bridge);
    c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(c->fd >= 0, "%m");
    struct timeval tv = {.tv_sec = REPLY_TIMEOUT_S};
    CHECK(setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof tv) == 0, "%m");
    CHECK(connect(c->fd, (struct sockaddr *) &sa, sizeof sa) == 0, "%s: %m", sa.sun_path);
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    of_put_hello(&out, ++c->xid);
    of_client_send(c, &out);
    struct of_msg m = of_client_receive(c);
    struct err e = {0};
    CHECK(of_hello_negotiate(&m, &e) == 0, "%s", e.text);
}

void of_client_close(struct of_client *c)
{
    c->fd = fd_close(c->fd);
    strbuf_done(&c->in);
}

void of_client_send(struct of_client *c, const struct strbuf *out)
{
    for (size_t at = 0; at < out->size;) {
        ssize_t n = send(c->fd, out->data + at, out->size - at, MSG_NOSIGNAL);
        CHECK(n > 0, "%m");
        at += (size_t) n;
    }
}

struct of_msg of_client_receive(struct of_client *c)
{
    for (;;) {
        struct of_msg m;
        size_t used;
        struct err e = {0};
        int r = of_msg_parse(c->in.data + c->used, c->in.size - c->used, &m, &used, &e);
        CHECK(r == 0 || r == -EAGAIN, "%s", e.text);
        if (r == 0) {
            c->used += used;
            if (m.type != OF_ECHO_REQUEST) {
                return m;
            }
            CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
            of_put_echo_reply(&out, m.xid, m.body, m.body_size);
            of_client_send(c, &out);
            continue;
        }
        strbuf_consume(&c->in, c->used);
        c->used = 0;
        char *p = strbuf_reserve(&c->in, 256 << 10);
        ssize_t n = recv(c->fd, p, 256 << 10, 0);
        CHECK(n > 0, "the switch does not answer: %s", n ? strerror(errno) : "closed");
        c->in.size += (size_t) n;
    }
}

static void fail_on_error(const struct of_msg *m)
{
    struct of_error er;
    struct err e = {0};
    if (m->type == OF_ERROR) {
        char text[96];
        CHECK(of_error_parse(m, &er, &e) == 0, "%s", e.text);
        CHECK(m->type != OF_ERROR, "message %u: %s", m->xid, of_error_text(&er, text));
    }
}

static void await_bundle(struct of_client *c, uint32_t bundle, enum of_bundle_ctrl request)
{
    uint32_t id;
    uint16_t type;
    struct of_msg m;
    do {
        m = of_client_receive(c);
        fail_on_error(&m);
    } while (of_bundle_control_parse(&m, &id, &type, NULL) < 0 || id != bundle ||
             type != (uint16_t) request + 1);
}

void of_client_commit(struct of_client *c, enum of_flow_command cmd,
                      const struct of_flow_list *flows)
{
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    uint32_t bundle = c->xid + 1;
    of_put_bundle_control(&out, ++c->xid, bundle, OF_BUNDLE_OPEN);
    for (size_t i = 0; i < flows->n; i++) {
        of_put_bundle_flow_mod(&out, ++c->xid, bundle, cmd, flows->flows[i]);
    }
    of_put_bundle_control(&out, ++c->xid, bundle, OF_BUNDLE_CLOSE);
    of_client_send(c, &out);
    await_bundle(c, bundle, OF_BUNDLE_CLOSE);
    strbuf_reset(&out);
    of_put_bundle_control(&out, ++c->xid, bundle, OF_BUNDLE_COMMIT);
    of_client_send(c, &out);
    await_bundle(c, bundle, OF_BUNDLE_COMMIT);
}

void of_client_dump(struct of_client *c, struct of_flow_list *ret)
{
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    of_put_flow_dump_request(&out, ++c->xid);
    of_client_send(c, &out);
    for (bool more = true; more;) {
        struct of_msg m = of_client_receive(c);
        fail_on_error(&m);
        struct err e = {0};
        CHECK(of_flow_dump_parse(&m, ret, NULL, NULL, &more, &e) == 0, "%s", e.text);
    }
}
