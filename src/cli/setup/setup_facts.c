/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/setup/setup_facts.h"

#include "base/mem.h"
#include "base/timeutil.h"
#include "lab/lab.h"
#include "net/kernel/rtnl.h"
#include "net/loop/config_file.h"
#include "net/loop/process.h"
#include "net/loop/sock.h"
#include "node/host/host.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <linux/bpf.h>
#include <linux/magic.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>

#define SMALL_FILE 65536
#define PROC_NET_MAX ((size_t) 16 << 20)
#define CONNECT_MS 3000
#define TOOL_MS 10000
#define OVS_SOCKET "/run/openvswitch/db.sock"

bool setup_has_systemd(void)
{
    struct stat st;
    return lstat("/run/systemd/system", &st) == 0 && S_ISDIR(st.st_mode); /* sd_booted(3) */
}

/* ---- the host ---- */

static bool reads_word(const char *path, const char *word)
{
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    return file_read(path, SMALL_FILE, &text, NULL) == 0 && strstr(strbuf_cstr(&text), word);
}

static void read_kernel(struct setup_facts *f)
{
    struct utsname u;
    if (uname(&u) < 0) {
        return;
    }
    snprintf(f->kernel, sizeof f->kernel, "%.60s", u.release);
    const char *p = u.release;
    for (; isdigit((unsigned char) *p); p++) {
        f->kernel_major = f->kernel_major * 10 + (unsigned) (*p - '0');
    }
    for (p += *p == '.'; isdigit((unsigned char) *p); p++) {
        f->kernel_minor = f->kernel_minor * 10 + (unsigned) (*p - '0');
    }
}

static void read_time(struct setup_facts *f)
{
    static const char zones[] = "/zoneinfo/";
    char path[PATH_MAX] = "";
    struct timex t = {0};
    f->now_ms = time_wall_ms();
    f->clock_synced = adjtimex(&t) >= 0 && !(t.status & STA_UNSYNC);
    f->rtc_local = reads_word("/etc/adjtime", "LOCAL");
    char *real = realpath("/etc/localtime", path);
    const char *zone = real ? strstr(real, zones) : NULL;
    snprintf(f->zone, sizeof f->zone, "%.60s",
             zone   ? zone + strlen(zones)
             : real ? "of /etc/localtime"
                    : "");
}

static void read_disk(const char *dir, struct setup_facts *f)
{
    static const long remote[] = {NFS_SUPER_MAGIC,  SMB_SUPER_MAGIC,  0xff534d42 /* CIFS */,
                                  SMB2_SUPER_MAGIC, CEPH_SUPER_MAGIC, V9FS_MAGIC,
                                  AFS_SUPER_MAGIC};
    CLEANUP_FREE char *path = xstrdup(dir);
    struct statfs fs;
    struct statvfs v;
    char *at = path;
    while (access(at, F_OK) < 0 && !streq(at, "/") && !streq(at, ".")) {
        at = dirname(at);
    }
    f->state_dir = dir;
    if (statvfs(at, &v) < 0 || statfs(at, &fs) < 0) {
        return;
    }
    f->disk_free = (int64_t) (v.f_bavail * v.f_frsize);
    f->inodes = (int64_t) v.f_files;
    f->inodes_free = (int64_t) v.f_favail;
    f->disk_read_only = v.f_flag & ST_RDONLY;
    for (size_t i = 0; i < ARRAY_SIZE(remote); i++) {
        f->disk_remote |= (unsigned) fs.f_type == (unsigned) remote[i];
    }
}

/* A line "MemTotal:  16384 kB" of /proc/meminfo, in bytes. */
static int64_t memory_line(const char *text, const char *name)
{
    const char *p = strstr(text, name);
    uint64_t kib = 0;
    if (!p) {
        return 0;
    }
    p += strlen(name);
    p += strspn(p, ": ");
    CLEANUP_FREE char *number = xstrndup(p, strspn(p, "0123456789"));
    return str_to_u64(number, INT64_MAX / 1024, &kib) < 0 ? 0 : (int64_t) kib * 1024;
}

static void read_memory(struct setup_facts *f)
{
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    if (file_read("/proc/meminfo", SMALL_FILE, &text, NULL) == 0) {
        f->memory = memory_line(strbuf_cstr(&text), "MemTotal");
        f->memory_available = memory_line(strbuf_cstr(&text), "MemAvailable");
    }
}

/* ---- programs ---- */

static bool answers(const char *socket)
{
    int fd = -1;
    bool good = sock_connect_unix(socket, &fd, NULL) == 0;
    fd_close(fd);
    return good;
}

static void read_tools(struct setup_facts *f)
{
    static const char *const names[SETUP_N_TOOLS] = {[SETUP_NFT] = "nft",
                                                     [SETUP_VSWITCHD] = "ovs-vswitchd",
                                                     [SETUP_OVSDB_SERVER] = "ovsdb-server",
                                                     [SETUP_VSCTL] = "ovs-vsctl"};
    static const char *const runtimes[] = {"/run/containerd/containerd.sock",
                                           "/run/crio/crio.sock"};
    CLEANUP_FREE char *cni = NULL;
    for (size_t i = 0; i < SETUP_N_TOOLS; i++) {
        f->tools[i] = tool_exists(names[i]);
    }
    f->cni_plugin = program_find("tenet-cni", &cni, NULL) == 0;
    f->ovs_answers = answers(OVS_SOCKET);
    f->ovs_module = access("/sys/module/openvswitch", F_OK) == 0;
    for (size_t i = 0; i < ARRAY_SIZE(runtimes) && !*f->runtime; i++) {
        if (answers(runtimes[i])) {
            snprintf(f->runtime, sizeof f->runtime, "%s", runtimes[i]);
        }
    }
    f->firewalld = access("/run/firewalld", F_OK) == 0;
    f->ufw = reads_word("/etc/ufw/ufw.conf", "ENABLED=yes");
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *) a, *(const char *const *) b);
}

static void read_cni(const char *dir, struct setup_facts *f)
{
    DIR *d = opendir(dir);
    struct dirent *ent;
    size_t cap = 0;
    while (d && (ent = readdir(d))) {
        const char *name = ent->d_name;
        if (*name != '.' && (str_has_suffix(name, ".conf") || str_has_suffix(name, ".conflist") ||
                             str_has_suffix(name, ".json"))) {
            f->cni = grow(f->cni, &cap, f->n_cni + 1, sizeof *f->cni);
            f->cni[f->n_cni++] = xstrdup(name);
        }
    }
    if (d) {
        closedir(d);
    }
    if (f->n_cni) {
        qsort(f->cni, f->n_cni, sizeof *f->cni, by_name);
    }
}

/* ---- features of the kernel, in a namespace of their own ---- */

static bool try_bpf(void)
{
    union bpf_attr a = {0};
    a.map_type = BPF_MAP_TYPE_ARRAY;
    a.key_size = 4;
    a.value_size = 8;
    a.max_entries = 1;
    int fd = (int) syscall(SYS_bpf, BPF_MAP_CREATE, &a, sizeof a);
    fd_close(fd);
    return fd >= 0;
}

/* What nodes do with nftables: a table with a map and address translation. */
static bool try_nft(int ns)
{
    static const char *const argv[] = {"nft", "-f", "-", NULL};
    struct process_spec s = PROCESS_SPEC_INIT;
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    int status = -1;
    s.argv = argv;
    s.netns_fd = ns;
    s.stdin_text = "table ip t {\n"
                   "  map m { type inet_service : ipv4_addr; }\n"
                   "  chain c { type nat hook prerouting priority dstnat; "
                   "dnat to tcp dport map @m; }\n"
                   "}\n";
    return process_run(&s, TOOL_MS, &out, &out, &status, NULL) == 0 && status == 0;
}

static void try_links(struct setup_facts *f, struct rtnl *r)
{
    static const struct rtnl_veth veth = {.name = "t0", .peer_name = "t1", .peer_ns_fd = -1};
    static const struct rtnl_vxlan vxlan = {
        .name = "t2", .mac = {{0x0a, 0x58, 0, 0, 0, 1}}, .mtu = 1450, .port = 4789};
    f->features[SETUP_VETH] = rtnl_veth_add(r, &veth, NULL) == 0;
    f->features[SETUP_VXLAN] = rtnl_vxlan_add(r, &vxlan, NULL) == 0;
    f->features[SETUP_MACVLAN] = rtnl_has_macvlan(r);
}

static void *try_features(void *ctx)
{
    struct setup_facts *f = ctx;
    CLEANUP(rtnl_close) struct rtnl *r = NULL;
    CLEANUP(fd_close) int ns = -1;
    struct err e = {0};
    if (unshare(CLONE_NEWNET) < 0) {
        err_sys(&e, -errno, "make a network namespace");
    } else if ((ns = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC)) < 0) {
        err_sys(&e, -errno, "open a network namespace");
    } else if (rtnl_open(&r, &e) == 0) {
        try_links(f, r);
        f->features[SETUP_NFTABLES] = f->tools[SETUP_NFT] && try_nft(ns);
        f->features[SETUP_BPF] = try_bpf();
        f->features_tried = true;
        return NULL;
    }
    snprintf(f->features_error, sizeof f->features_error, "%.120s", e.text);
    return NULL;
}

/* On a thread of its own, with which the namespace ends. */
static void read_features(struct setup_facts *f)
{
    pthread_t thread;
    int r = pthread_create(&thread, NULL, try_features, f);
    if (r == 0) {
        pthread_join(thread, NULL);
    } else {
        snprintf(f->features_error, sizeof f->features_error, "no thread");
    }
}

/* ---- the network ---- */

static const char *link_name(const struct rtnl_link *links, size_t n, int ifindex)
{
    for (size_t i = 0; i < n; i++) {
        if (links[i].ifindex == ifindex) {
            return links[i].name;
        }
    }
    return "";
}

static void read_network(struct setup_facts *f)
{
    CLEANUP(rtnl_close) struct rtnl *r = NULL;
    CLEANUP_FREE struct rtnl_link *links = NULL;
    CLEANUP_FREE struct rtnl_addr *addrs = NULL;
    CLEANUP_FREE struct rtnl_route *routes = NULL;
    size_t n_links = 0, n_addrs = 0, n_routes = 0;
    if (rtnl_open(&r, NULL) < 0 || rtnl_link_list(r, &links, &n_links, NULL) < 0 ||
        rtnl_addr_list(r, 0, &addrs, &n_addrs, NULL) < 0 ||
        rtnl_route_list(r, 0, &routes, &n_routes, NULL) < 0) {
        return;
    }
    f->links = xcalloc(n_links + 1, sizeof *f->links);
    for (f->n_links = 0; f->n_links < n_links; f->n_links++) {
        struct setup_link *l = &f->links[f->n_links];
        snprintf(l->name, sizeof l->name, "%s", links[f->n_links].name);
        snprintf(l->kind, sizeof l->kind, "%s", links[f->n_links].kind);
        l->mtu = links[f->n_links].mtu;
        l->vxlan_port = links[f->n_links].vxlan_port;
    }
    f->nets = xcalloc(n_addrs + 1, sizeof *f->nets);
    for (f->n_nets = 0; f->n_nets < n_addrs; f->n_nets++) {
        struct ip4_prefix p = addrs[f->n_nets].addr;
        struct netconf_host_net *net = &f->nets[f->n_nets];
        net->addr = p.addr;
        net->net = (struct ip4_prefix){p.addr & prefix_mask(p.len), p.len};
        snprintf(net->ifname, sizeof net->ifname, "%s",
                 link_name(links, n_links, addrs[f->n_nets].ifindex));
    }
    f->routes = xcalloc(n_routes + 1, sizeof *f->routes);
    for (f->n_routes = 0; f->n_routes < n_routes; f->n_routes++) {
        struct setup_route *t = &f->routes[f->n_routes];
        t->dst = routes[f->n_routes].dst;
        t->gateway = routes[f->n_routes].gateway != 0;
        snprintf(t->link, sizeof t->link, "%s",
                 link_name(links, n_links, routes[f->n_routes].ifindex));
    }
    (void) host_default_address(r, &f->address, NULL);
}

/* ---- sockets and their owners ---- */

/* The socket with this inode gets its owner. */
static void set_owner(struct setup_facts *f, const char *target, const char *pid)
{
    static const char prefix[] = "socket:[";
    uint64_t inode;
    if (!str_has_prefix(target, prefix)) {
        return;
    }
    target += strlen(prefix);
    CLEANUP_FREE char *number = xstrndup(target, strspn(target, "0123456789"));
    if (str_to_u64(number, UINT64_MAX, &inode) < 0) {
        return;
    }
    for (size_t i = 0; i < f->n_sockets; i++) {
        struct setup_socket *s = &f->sockets[i];
        if (s->inode != inode || *s->owner) {
            continue;
        }
        CLEANUP_FREE char *comm = xasprintf("/proc/%s/comm", pid);
        CLEANUP_STRBUF struct strbuf name = STRBUF_INIT;
        if (file_read(comm, SMALL_FILE, &name, NULL) == 0) {
            int n = (int) strcspn(strbuf_cstr(&name), "\n");
            snprintf(s->owner, sizeof s->owner, "%.*s (pid %.10s)", MIN(n, 20), strbuf_cstr(&name),
                     pid);
            s->tenet = n == 5 && str_has_prefix(strbuf_cstr(&name), "tenet");
        }
    }
}

static void read_owners(struct setup_facts *f, const char *pid)
{
    CLEANUP_FREE char *path = xasprintf("/proc/%s/fd", pid);
    DIR *d = opendir(path);
    struct dirent *ent;
    while (d && (ent = readdir(d))) {
        char target[64];
        ssize_t n = readlinkat(dirfd(d), ent->d_name, target, sizeof target - 1);
        if (n > 0) {
            target[n] = '\0';
            set_owner(f, target, pid);
        }
    }
    if (d) {
        closedir(d);
    }
}

static void read_sockets(struct setup_facts *f)
{
    static const char *const files[] = {"tcp", "tcp6", "udp", "udp6"};
    for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
        CLEANUP_FREE char *path = xasprintf("/proc/thread-self/net/%s", files[i]);
        CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
        if (file_read(path, PROC_NET_MAX, &text, NULL) == 0) {
            setup_sockets_add(f, strbuf_cstr(&text), *files[i] == 'u');
        }
    }
    DIR *d = opendir("/proc");
    struct dirent *ent;
    while (d && (ent = readdir(d))) {
        if (isdigit((unsigned char) ent->d_name[0])) {
            read_owners(f, ent->d_name);
        }
    }
    if (d) {
        closedir(d);
    }
}

/* ---- etcd ---- */

/* Connects to "http://HOST:PORT" or "https://HOST:PORT". */
static int try_endpoint(const char *url, struct err *e)
{
    const char *host = strstr(url, "://");
    const char *at = host ? host + 3 : url, *colon = strrchr(at, ':');
    uint64_t port;
    CLEANUP_FREE char *name = colon ? xstrndup(at, (size_t) (colon - at)) : NULL;
    CLEANUP_FREE char *address = NULL;
    CLEANUP(fd_close) int fd = -1;
    if (!colon || str_to_u64(colon + 1, UINT16_MAX, &port) < 0) {
        return err_set(e, -EINVAL, "%.80s is not https://HOST:PORT", url);
    }
    int r = sock_resolve(name, &address, e);
    if (r < 0 || (r = sock_connect_tcp(address, (uint16_t) port, &fd, e)) < 0) {
        return r;
    }
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    r = poll(&p, 1, CONNECT_MS) == 1 ? sock_connect_result(fd) : -ETIMEDOUT;
    return r < 0 ? err_sys(e, r, "connect to %.80s", url) : 0;
}

static void read_etcd(const char *endpoints, struct setup_facts *f)
{
    CLEANUP_FREE char *first = xstrndup(endpoints, strcspn(endpoints, ","));
    struct err e = {0};
    if (try_endpoint(first, &e) < 0) {
        snprintf(f->etcd_error, sizeof f->etcd_error, "%.150s", e.text);
    }
}

void setup_facts_read(const struct setup_places *p, unsigned roles, struct setup_facts *ret)
{
    struct setup_facts f = {.root = geteuid() == 0, .systemd = setup_has_systemd()};
    config_file_host_name(f.host_name);
    read_kernel(&f);
    read_time(&f);
    read_disk(p->state_dir, &f);
    read_memory(&f);
    read_tools(&f);
    read_network(&f);
    read_sockets(&f);
    read_cni(p->cni_conf_dir, &f);
    if (roles & SETUP_NODE) {
        read_features(&f);
    }
    if (p->endpoints) {
        read_etcd(p->endpoints, &f);
    }
    *ret = f;
}
