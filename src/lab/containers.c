/* SPDX-License-Identifier: Apache-2.0 */
/* Containers of the lab's nodes: a containerd and a "tenet kubelet" for each, in the node's network
 * namespace and in a mount namespace that lasts as long as the node.
 *
 * The mount namespace is kept by a bind mount of it on nodes/NODE/mnt/ns, so that a containerd and
 * a kubelet that are started again find the mounts of running pods, and each other's.  Its mounts
 * are shared within, and follow those of the machine; the network namespaces of pods, and runc's
 * and the shims' files, are on file systems of its own. So everything that is mounted for pods goes
 * with the last process in it. */
#include "base/mem.h"
#include "lab/images.h"
#include "lab/lab_internal.h"
#include "net/kernel/cgroup.h"
#include "net/kernel/netns.h"
#include "net/loop/sock.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PLUGINS "/usr/lib/cni"
#define DATA_ROOT "/var/lib/tenet/lab"
#define CGROUPS "/sys/fs/cgroup"
#define MOUNTINFO_MAX ((size_t) 16 << 20)
#define CAP_SYS_RESOURCE_NUMBER 24

/* ---- names ---- */

bool lab_has_containers(const struct lab *l)
{
    return json_get_bool(json_get(l->config, "containers"), false);
}

char *containerd_socket(const struct lab *l, const char *node)
{
    return lab_path(l, "nodes/%s/containerd/containerd.sock", node);
}

static struct daemon containerd_daemon(const struct lab *l, const char *node, char **dir,
                                       char **title)
{
    *dir = lab_path(l, "nodes/%s/containerd", node);
    *title = xasprintf("containerd of %s", node);
    return (struct daemon){*dir, "containerd", *title};
}

pid_t containerd_pid(const struct lab *l, const char *node)
{
    CLEANUP_FREE char *dir = NULL;
    CLEANUP_FREE char *title = NULL;
    struct daemon d = containerd_daemon(l, node, &dir, &title);
    return daemon_pid(&d);
}

static struct daemon kubelet_daemon(const struct lab *l, const char *node, char **dir, char **title)
{
    *dir = lab_path(l, "nodes/%s", node);
    *title = xasprintf("the kubelet of %s", node);
    return (struct daemon){*dir, "kubelet", *title};
}

pid_t kubelet_pid(const struct lab *l, const char *node)
{
    CLEANUP_FREE char *dir = NULL;
    CLEANUP_FREE char *title = NULL;
    struct daemon d = kubelet_daemon(l, node, &dir, &title);
    return daemon_pid(&d);
}

/* Owned. Layers of images are larger than what belongs into /run, which may be in memory. */
static char *data_path(const struct lab *l, const char *node)
{
    return xasprintf(DATA_ROOT "/%s%s%s", l->name, node ? "/" : "", node ? node : "");
}

int containers_check(struct err *e)
{
    static const char *const tools[][2] = {{"containerd", "containerd"},
                                           {"ctr", "containerd"},
                                           {"runc", "runc"},
                                           {"busybox", "busybox-static"},
                                           {"nsenter", "util-linux"}};
    for (size_t i = 0; i < ARRAY_SIZE(tools); i++) {
        if (!tool_exists(tools[i][0])) {
            return err_set(e, -ENOENT,
                           "%s is not installed (Debian package %s); install it, or make a lab "
                           "of networks only with --no-containers",
                           tools[i][0], tools[i][1]);
        }
    }
    if (access(PLUGINS "/loopback", X_OK) < 0) {
        return err_set(e, -ENOENT,
                       PLUGINS "/loopback is not installed (Debian package "
                               "containernetworking-plugins); install it, or make a lab of "
                               "networks only with --no-containers");
    }
    return 0;
}

/* ---- the mount namespace ---- */

struct mount_job {
    const char *resolv_conf, *data;
    sem_t made, kept;
    pid_t tid;
    int error;
    const char *what; /* That failed. */
    bool overlay;
};

static int do_mount(struct mount_job *j, const char *what, const char *source, const char *target,
                    const char *type, unsigned long flags)
{
    if (mount(source, target, type, flags, NULL) < 0) {
        j->error = -errno;
        j->what = what;
    }
    return j->error;
}

/* Detaches the copies of mounts that hold namespaces of other hosts and labs. */
static int drop_copies(struct mount_job *j)
{
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    j->error = file_read("/proc/thread-self/mountinfo", MOUNTINFO_MAX, &text, NULL);
    j->what = "read the list of mounts";
    /* Last first: a mount comes after the one that it is on. */
    while (j->error == 0 && text.size) {
        char *line = text.data;
        for (char *p = text.data + text.size - 1; p-- > text.data;) {
            if (*p == '\n') {
                line = p + 1;
                break;
            }
        }
        /* ID PARENT DEVICE ROOT TARGET ... */
        char *at = line;
        for (unsigned i = 0; at && i < 4; i++) {
            at = strchr(at, ' ');
            at = at ? at + 1 : NULL;
        }
        char *end = at ? strchr(at, ' ') : NULL;
        if (end) {
            *end = '\0';
            if (str_has_prefix(at, NETNS_DIR) || str_has_prefix(at, LAB_ROOT "/")) {
                umount2(at, MNT_DETACH | UMOUNT_NOFOLLOW);
            }
        }
        text.size = (size_t) (line - text.data);
    }
    return j->error;
}

/* Whether layers can be laid one over the other there: not if it is such a file system itself. */
static bool overlay_works(const char *dir)
{
    static const char *const names[] = {"lower", "upper", "work", "all"};
    CLEANUP_FREE char *probe = xasprintf("%s/probe", dir);
    bool works = false;
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        CLEANUP_FREE char *path = xasprintf("%s/%s", probe, names[i]);
        if (dir_make(path, 0700, NULL) < 0) {
            return false;
        }
    }
    CLEANUP_FREE char *all = xasprintf("%s/all", probe);
    CLEANUP_FREE char *how =
        xasprintf("lowerdir=%s/lower,upperdir=%s/upper,workdir=%s/work", probe, probe, probe);
    if (mount("overlay", all, "overlay", 0, how) == 0) {
        umount2(all, MNT_DETACH);
        works = true;
    }
    dir_remove(probe, NULL);
    return works;
}

static void make_mounts(struct mount_job *j)
{
    if (unshare(CLONE_FS | CLONE_NEWNS) < 0) {
        j->error = -errno;
        j->what = "make a mount namespace";
        return;
    }
    if (do_mount(j, "detach from the machine's mounts", NULL, "/", NULL, MS_REC | MS_SLAVE) < 0 ||
        drop_copies(j) < 0 || do_mount(j, "mount " NETNS_DIR, "tmpfs", NETNS_DIR, "tmpfs", 0) < 0 ||
        do_mount(j, "mount /run/containerd", "tmpfs", "/run/containerd", "tmpfs", 0) < 0) {
        return;
    }
    /* As "ip netns exec" does; without it the node has the machine's own. */
    mount(j->resolv_conf, "/etc/resolv.conf", NULL, MS_BIND, NULL);
    j->overlay = overlay_works(j->data);
    do_mount(j, "share the mounts", NULL, "/", NULL, MS_REC | MS_SHARED);
}

static void *run_mount_job(void *ctx)
{
    struct mount_job *j = ctx;
    j->tid = (pid_t) syscall(SYS_gettid);
    make_mounts(j);
    sem_post(&j->made);
    sem_wait(&j->kept);
    return NULL;
}

/* Binds the thread's mount namespace to 'path'.  The mount below it must not be shared, as the
 * namespace would then be mounted in itself. */
static int keep_namespace(struct mount_job *j, const char *dir, const char *path, struct err *e)
{
    CLEANUP_FREE char *ns = xasprintf("/proc/self/task/%d/ns/mnt", (int) j->tid);
    int r = dir_make(dir, 0755, e);
    if (r < 0) {
        return r;
    }
    if (mount(dir, dir, NULL, MS_BIND, NULL) < 0 || mount(NULL, dir, NULL, MS_PRIVATE, NULL) < 0) {
        return err_sys(e, -errno, "mount %s", dir);
    }
    CLEANUP(fd_close) int fd = open(path, O_RDONLY | O_CREAT | O_CLOEXEC, 0444);
    if (fd < 0 || mount(ns, path, NULL, MS_BIND, NULL) < 0) {
        return err_sys(e, -errno, "keep the mount namespace on %s", path);
    }
    return 0;
}

/* Makes the node's mount namespace; '*ret_overlay': whether overlayfs works in it. */
static int make_namespace(struct lab *l, const char *node, bool *ret_overlay, struct err *e)
{
    CLEANUP_FREE char *netns = lab_ns(l, node);
    CLEANUP_FREE char *resolv_conf = xasprintf("%s/%s/resolv.conf", NETNS_ETC, netns);
    CLEANUP_FREE char *dir = lab_path(l, "nodes/%s/mnt", node);
    CLEANUP_FREE char *path = xasprintf("%s/ns", dir);
    CLEANUP_FREE char *data = data_path(l, node);
    struct mount_job j = {.resolv_conf = resolv_conf, .data = data};
    pthread_t thread;
    int r = dir_make("/run/containerd", 0711, e);
    if (r < 0 || (r = dir_make(data, 0711, e)) < 0) {
        return r;
    }
    sem_init(&j.made, 0, 0);
    sem_init(&j.kept, 0, 0);
    r = -pthread_create(&thread, NULL, run_mount_job, &j);
    if (r < 0) {
        return err_sys(e, r, "start a thread");
    }
    while (sem_wait(&j.made) < 0) {
    }
    r = j.error < 0 ? err_sys(e, j.error, "%s", j.what) : keep_namespace(&j, dir, path, e);
    sem_post(&j.kept);
    pthread_join(thread, NULL);
    sem_destroy(&j.made);
    sem_destroy(&j.kept);
    *ret_overlay = j.overlay;
    return r;
}

/* ---- containerd ---- */

/* A folder with all plug-ins, ours among them: containerd takes one. */
static int link_plugins(const char *dir, struct err *e)
{
    CLEANUP_FREE char *cni = NULL;
    int r = program_find("tenet-cni", &cni, e);
    if (r < 0 || (r = dir_make(dir, 0755, e)) < 0) {
        return r;
    }
    CLEANUP_FREE char *own = xasprintf("%s/tenet-cni", dir);
    if (symlink(cni, own) < 0 && errno != EEXIST) {
        return err_sys(e, -errno, "link %s", own);
    }
    DIR *d = opendir(PLUGINS);
    struct dirent *ent;
    while (d && (ent = readdir(d))) {
        CLEANUP_FREE char *from = xasprintf(PLUGINS "/%s", ent->d_name);
        CLEANUP_FREE char *to = xasprintf("%s/%s", dir, ent->d_name);
        if (ent->d_name[0] != '.' && symlink(from, to) < 0 && errno != EEXIST) {
            r = err_sys(e, -errno, "link %s", to);
        }
    }
    if (d) {
        closedir(d);
    }
    return r;
}

/* crun 1.8 refuses a machine with both versions of cgroups mounted. */
static bool crun_works(void)
{
    return tool_exists("crun") && access(CGROUPS "/unified", F_OK) < 0;
}

static int write_containerd_config(struct lab *l, const char *node, bool overlay, struct err *e)
{
    CLEANUP_FREE char *dir = lab_path(l, "nodes/%s/containerd", node);
    CLEANUP_FREE char *plugins = xasprintf("%s/bin", dir);
    CLEANUP_FREE char *data = data_path(l, node);
    CLEANUP_FREE char *socket = containerd_socket(l, node);
    CLEANUP_FREE char *conf = lab_path(l, "nodes/%s/cni", node);
    static const char crun[] =
        "[plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.crun]\n"
        "runtime_type = \"io.containerd.runc.v2\"\n"
        "[plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.crun.options]\n"
        "BinaryName = \"crun\"\n";
    int r = dir_make(dir, 0755, e);
    if (r < 0 || (r = link_plugins(plugins, e)) < 0) {
        return r;
    }
    bool may_lower_oom = prctl(PR_CAPBSET_READ, CAP_SYS_RESOURCE_NUMBER, 0, 0, 0) == 1;
    CLEANUP_FREE char *text =
        xasprintf("version = 2\n"
                  "root = \"%s/containerd\"\n"
                  "state = \"%s/state\"\n"
                  "[grpc]\n"
                  "address = \"%s\"\n"
                  "[ttrpc]\n"
                  "address = \"%s/ttrpc.sock\"\n"
                  "[plugins.\"io.containerd.internal.v1.opt\"]\n"
                  "path = \"%s/opt\"\n"
                  "[plugins.\"io.containerd.grpc.v1.cri\"]\n"
                  "sandbox_image = \"" LAB_IMAGE_PAUSE "\"\n"
                  "restrict_oom_score_adj = %s\n"
                  "disable_apparmor = true\n"
                  "disable_tcp_service = true\n"
                  "[plugins.\"io.containerd.grpc.v1.cri\".cni]\n"
                  "bin_dir = \"%s\"\n"
                  "conf_dir = \"%s\"\n"
                  "[plugins.\"io.containerd.grpc.v1.cri\".containerd]\n"
                  "snapshotter = \"%s\"\n"
                  "default_runtime_name = \"runc\"\n"
                  "[plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.runc]\n"
                  "runtime_type = \"io.containerd.runc.v2\"\n"
                  "%s",
                  data, dir, socket, dir, data, may_lower_oom ? "false" : "true", plugins, conf,
                  overlay ? "overlayfs" : "native", crun_works() ? crun : "");
    return lab_write(l, text, e, "nodes/%s/containerd/config.toml", node);
}

static int answers(void *ctx)
{
    int fd = -1;
    int r = sock_connect_unix(ctx, &fd, NULL);
    fd_close(fd);
    return r == 0;
}

int node_enter_spec(struct lab *l, const char *node, const char *const command[],
                    struct node_command *ret, struct err *e)
{
    size_t n = 0;
    int r = host_open(l, node, &ret->netns, e);
    if (r < 0) {
        return r;
    }
    while (command[n]) {
        n++;
    }
    ret->mount = xasprintf("--mount=%s/nodes/%s/mnt/ns", l->dir, node);
    ret->argv = xcalloc(n + 4, sizeof *ret->argv);
    ret->argv[0] = "nsenter";
    ret->argv[1] = ret->mount;
    ret->argv[2] = "--";
    memcpy(ret->argv + 3, command, n * sizeof *command);
    ret->spec = PROCESS_SPEC_INIT;
    ret->spec.argv = ret->argv;
    ret->spec.netns_fd = ret->netns;
    return 0;
}

void node_command_done(struct node_command *c)
{
    fd_close(c->netns);
    free(c->mount);
    free(c->argv);
}

int containerd_start(struct lab *l, const char *node, struct err *e)
{
    CLEANUP_FREE char *dir = NULL;
    CLEANUP_FREE char *title = NULL;
    struct daemon d = containerd_daemon(l, node, &dir, &title);
    CLEANUP_FREE char *config = xasprintf("%s/config.toml", dir);
    CLEANUP_FREE char *socket = containerd_socket(l, node);
    const char *argv[] = {"containerd", "--config", config, NULL};
    struct node_command c = {.netns = -1};
    int r = node_enter_spec(l, node, argv, &c, e);
    bool started;
    if (r == 0 && (r = daemon_start(&d, &c.spec, &started, e)) == 0) {
        r = daemon_wait(&d, "answer", answers, socket, e);
    }
    node_command_done(&c);
    return r;
}

/* ---- kubelet ---- */

/* Where the node's agent answers DNS for pods: the first address of the node's subnet. */
static int node_gateway(struct lab *l, const char *node, uint32_t *ret, struct err *e)
{
    CLEANUP(json_free) struct json *subnet = NULL;
    struct ip4_prefix p;
    int r = lab_get(l, NETWORK_API, "hostsubnets", NULL, node, &subnet, e);
    if (r < 0) {
        return r;
    }
    const char *text = json_path_string(subnet, "subnet", NULL);
    r = prefix_parse(text ? text : "", &p, e);
    if (r == 0) {
        *ret = p.addr + 1;
    }
    return r;
}

int kubelet_configure(struct lab *l, const char *node, struct err *e)
{
    CLEANUP_FREE char *dir = lab_path(l, "nodes/%s", node);
    CLEANUP_FREE char *data = data_path(l, node);
    CLEANUP_FREE char *socket = containerd_socket(l, node);
    CLEANUP_FREE char *cgroup = node_cgroup(l, node);
    CLEANUP_FREE char *more = master_more_servers(l, true);
    CLEANUP_FREE char *servers = more ? xasprintf("masterServers: %s\n", more) : xstrdup("");
    uint32_t addr = 0, gateway = 0;
    int r = node_address(l, node, &addr, e);
    if (r < 0 || (r = node_gateway(l, node, &gateway, e)) < 0) {
        return r;
    }
    CLEANUP_FREE char *text = xasprintf("nodeName: %s\n"
                                        "nodeIP: %s\n"
                                        "masterKubeConfig: %s/node.kubeconfig\n"
                                        "%s"
                                        "containerRuntimeEndpoint: unix://%s\n"
                                        "rootDir: %s/kubelet\n"
                                        "podLogsDir: %s/logs\n"
                                        "clusterDNS: [%s]\n"
                                        "cgroupRoot: /%s\n"
                                        "registerNode: false\n",
                                        node, IP4_TEXT(addr), lab_has_tls(l) ? dir : l->dir,
                                        servers, socket, data, data, IP4_TEXT(gateway), cgroup);
    return lab_write(l, text, e, "nodes/%s/kubelet-config.yaml", node);
}

int kubelet_start(struct lab *l, const char *node, struct err *e)
{
    CLEANUP_FREE char *dir = NULL;
    CLEANUP_FREE char *title = NULL;
    CLEANUP_FREE char *tenet = NULL;
    struct daemon d = kubelet_daemon(l, node, &dir, &title);
    CLEANUP_FREE char *config = xasprintf("%s/kubelet-config.yaml", dir);
    int r = program_find("tenet", &tenet, e);
    if (r < 0) {
        return r;
    }
    const char *argv[] = {tenet, "kubelet", "--config", config, NULL};
    struct node_command c = {.netns = -1};
    bool started;
    r = node_enter_spec(l, node, argv, &c, e);
    if (r == 0) {
        r = daemon_start(&d, &c.spec, &started, e);
    }
    node_command_done(&c);
    return r;
}

int kubelet_check(struct lab *l, const char *node, struct err *e)
{
    CLEANUP_FREE char *dir = NULL;
    CLEANUP_FREE char *title = NULL;
    struct daemon d = kubelet_daemon(l, node, &dir, &title);
    return daemon_pid(&d) ? 0 : daemon_ended(&d, e);
}

/* ---- images ---- */

static int import_images(struct lab *l, const char *node, bool overlay, struct err *e)
{
    CLEANUP_FREE char *socket = containerd_socket(l, node);
    CLEANUP_FREE char *archive = lab_path(l, "images.tar");
    const char *argv[] = {"ctr",
                          "-a",
                          socket,
                          "-n",
                          "k8s.io",
                          "images",
                          "import",
                          "--snapshotter",
                          overlay ? "overlayfs" : "native",
                          archive,
                          NULL};
    struct node_command c = {.netns = -1};
    int r = node_enter_spec(l, node, argv, &c, e);
    if (r == 0) {
        r = tool_run_spec(&c.spec, e);
    }
    node_command_done(&c);
    return r;
}

int containers_create(struct lab *l, const char *node, struct err *e)
{
    bool overlay = false;
    int r = make_namespace(l, node, &overlay, e);
    if (r < 0 || (r = write_containerd_config(l, node, overlay, e)) < 0 ||
        (r = containerd_start(l, node, e)) < 0) {
        return r;
    }
    return import_images(l, node, overlay, e);
}

int containers_write_images(struct lab *l, struct err *e)
{
    CLEANUP_FREE char *archive = lab_path(l, "images.tar");
    return lab_images_write(archive, e);
}

/* ---- removing ---- */

struct pidfds {
    int *v;
    size_t n, cap;
};

/* 'check' guards against another process that has got the id; NULL: none is known. */
static void take_pid(struct pidfds *p, pid_t pid, const char *check)
{
    int fd = (int) syscall(SYS_pidfd_open, pid, 0);
    if (fd >= 0 && (!check || process_is(pid, check))) {
        p->v = grow(p->v, &p->cap, p->n + 1, sizeof *p->v);
        p->v[p->n++] = fd;
    } else {
        fd_close(fd);
    }
}

/* The processes below 'pid'. */
static void take_children(struct pidfds *p, pid_t pid)
{
    CLEANUP_FREE char *path = xasprintf("/proc/%d/task", (int) pid);
    DIR *d = opendir(path);
    struct dirent *ent;
    while (d && (ent = readdir(d))) {
        CLEANUP_FREE char *file = xasprintf("%s/%s/children", path, ent->d_name);
        CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
        if (ent->d_name[0] == '.' || file_read(file, MOUNTINFO_MAX, &text, NULL) < 0) {
            continue;
        }
        char *at = text.data, *end;
        while (at && (end = strchr(at, ' '))) {
            uint64_t child;
            *end = '\0';
            if (str_to_u64(at, INT32_MAX, &child) == 0) {
                take_children(p, (pid_t) child);
                take_pid(p, (pid_t) child, NULL);
            }
            at = end + 1;
        }
    }
    if (d) {
        closedir(d);
    }
}

/* Shims have the address of their containerd's socket in their arguments. */
static void take_shims(struct pidfds *p, const char *needle)
{
    DIR *proc = opendir("/proc");
    struct dirent *ent;
    while (proc && (ent = readdir(proc))) {
        uint64_t pid;
        CLEANUP_FREE char *path = xasprintf("/proc/%s/comm", ent->d_name);
        CLEANUP_STRBUF struct strbuf comm = STRBUF_INIT;
        if (str_to_u64(ent->d_name, INT32_MAX, &pid) == 0 &&
            file_read(path, 64, &comm, NULL) == 0 &&
            str_has_prefix(strbuf_cstr(&comm), "containerd-shim") &&
            process_is((pid_t) pid, needle)) {
            take_pid(p, (pid_t) pid, needle);
            take_children(p, (pid_t) pid);
        }
    }
    if (proc) {
        closedir(proc);
    }
}

static size_t kill_shims(const char *needle)
{
    struct pidfds p = {0};
    take_shims(&p, needle);
    for (size_t i = 0; i < p.n; i++) {
        syscall(SYS_pidfd_send_signal, p.v[i], SIGKILL, NULL, 0);
    }
    for (size_t i = 0; i < p.n; i++) {
        struct pollfd f = {.fd = p.v[i], .events = POLLIN};
        poll(&f, 1, STOP_TIMEOUT_MS);
        fd_close(p.v[i]);
    }
    free(p.v);
    return p.n;
}

static int is_removed(void *ctx)
{
    return rmdir(ctx) == 0 || errno == ENOENT;
}

/* Ends the processes of a cgroup, whose shim may have been killed before, and removes it. */
static void remove_cgroup(const char *path)
{
    DIR *d = opendir(path);
    struct dirent *ent;
    while (d && (ent = readdir(d))) {
        if (ent->d_type == DT_DIR && ent->d_name[0] != '.') {
            CLEANUP_FREE char *below = xasprintf("%s/%s", path, ent->d_name);
            remove_cgroup(below);
        }
    }
    if (d) {
        closedir(d);
        cgroup_kill(path);
        lab_wait(is_removed, (void *) (uintptr_t) path, STOP_TIMEOUT_MS);
    }
}

char *node_cgroup(const struct lab *l, const char *node)
{
    return xasprintf("tenet-%s%s%s", l->name, node ? "/" : "", node ? node : "");
}

/* In each hierarchy: containerd leaves the cgroups of its sandboxes behind. */
static void remove_cgroups(const struct lab *l, const char *node)
{
    CLEANUP_FREE char *name = node_cgroup(l, node);
    CLEANUP_FREE char *unified = xasprintf(CGROUPS "/%s", name);
    remove_cgroup(unified);
    DIR *d = opendir(CGROUPS);
    struct dirent *ent;
    while (d && (ent = readdir(d))) {
        CLEANUP_FREE char *path = xasprintf(CGROUPS "/%s/%s", ent->d_name, name);
        if (ent->d_name[0] != '.') {
            remove_cgroup(path);
        }
    }
    if (d) {
        closedir(d);
    }
}

/* Kills what would start more. */
static void kill_starters(const struct lab *l, const char *node)
{
    CLEANUP_FREE char *dir = NULL;
    CLEANUP_FREE char *title = NULL;
    CLEANUP_FREE char *kubelet_dir = NULL;
    CLEANUP_FREE char *kubelet_title = NULL;
    struct daemon kubelet = kubelet_daemon(l, node, &kubelet_dir, &kubelet_title);
    struct daemon containerd = containerd_daemon(l, node, &dir, &title);
    daemon_stop(&kubelet, true, NULL);
    daemon_stop(&containerd, true, NULL);
}

void containers_kill(struct lab *l, const char *node)
{
    CLEANUP_FREE char *nodes = lab_path(l, "nodes");
    CLEANUP_FREE char *needle = xasprintf("%s/%s%s", nodes, node ? node : "", node ? "/" : "");
    DIR *dir = opendir(nodes);
    struct dirent *ent;
    while (dir && (ent = readdir(dir))) {
        if (ent->d_name[0] != '.' && (!node || streq(node, ent->d_name))) {
            kill_starters(l, ent->d_name);
        }
    }
    if (dir) {
        closedir(dir);
    }
    /* Again for a shim that was being started while the others were found. */
    while (kill_shims(needle)) {
    }
}

void containers_unmount(struct lab *l, const char *node)
{
    CLEANUP_FREE char *dir = lab_path(l, "nodes/%s/mnt", node);
    CLEANUP_FREE char *path = xasprintf("%s/ns", dir);
    umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW);
    umount2(dir, MNT_DETACH | UMOUNT_NOFOLLOW);
}

int containers_remove(struct lab *l, const char *node, struct err *e)
{
    CLEANUP_FREE char *data = data_path(l, node);
    remove_cgroups(l, node);
    return dir_remove(data, e);
}

/* Acts on a daemon of the node. */
static int act(struct lab *l, const char *node, enum lab_action action, const struct daemon *d,
               int (*start)(struct lab *l, const char *node, struct err *e), struct err *e)
{
    int r = node_check(l, node, e);
    if (r == 0 && !lab_has_containers(l)) {
        return err_set(e, -ENOENT, "lab %s was made with --no-containers", l->name);
    }
    if (r == 0 && action != LAB_START) {
        r = daemon_stop(d, action == LAB_KILL, e);
    }
    return r == 0 && (action == LAB_START || action == LAB_RESTART) ? start(l, node, e) : r;
}

int lab_containerd(struct lab *l, const char *node, enum lab_action action, struct err *e)
{
    CLEANUP_FREE char *dir = NULL;
    CLEANUP_FREE char *title = NULL;
    struct daemon d = containerd_daemon(l, node, &dir, &title);
    return act(l, node, action, &d, containerd_start, e);
}

int lab_kubelet(struct lab *l, const char *node, enum lab_action action, struct err *e)
{
    CLEANUP_FREE char *dir = NULL;
    CLEANUP_FREE char *title = NULL;
    struct daemon d = kubelet_daemon(l, node, &dir, &title);
    return act(l, node, action, &d, kubelet_start, e);
}
