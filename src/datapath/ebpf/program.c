/* SPDX-License-Identifier: Apache-2.0 */
#include "datapath/ebpf/program.h"

#include "base/mem.h"
#include "base/str.h"
#include "datapath/ebpf/bpf/datapath_bpf.h"
#include "datapath/ebpf/bpf/maps.h"
#include "datapath/ebpf/hook.h"
#include "net/process.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/* ---- what libbpf says ---- */

static _Thread_local char last_words[256];

static int keep_words(enum libbpf_print_level level, const char *fmt, va_list ap)
{
    char text[sizeof last_words];
    if (level != LIBBPF_WARN) {
        return 0;
    }
    int n = vsnprintf(text, sizeof text, fmt, ap);
    text[strcspn(text, "\n")] = '\0';
    /* The first one has the reason, those that follow only whom it concerns. */
    if (n > 0 && !last_words[0]) {
        const char *from = str_has_prefix(text, "libbpf: ") ? text + 8 : text;
        snprintf(last_words, sizeof last_words, "%s", from);
    }
    return n;
}

static int fail(struct err *e, int code, const char *what)
{
    return last_words[0] ? err_set(e, code, "%s: %s", what, last_words)
                         : err_sys(e, code, "%s", what);
}

/* ---- the kernel ---- */

static bool has_tcx(void)
{
    static const struct bpf_insn pass[] = {
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = -1},
        {.code = BPF_JMP | BPF_EXIT}};
    CLEANUP(fd_close)
    int fd = bpf_prog_load(BPF_PROG_TYPE_SCHED_CLS, "tenet_probe", "Apache-2.0", pass,
                           ARRAY_SIZE(pass), NULL);
    /* No such device is what only a kernel says that knows the hook. */
    int link = fd < 0 ? fd : bpf_link_create(fd, INT32_MAX, HOOK_TCX_INGRESS, NULL);
    bool known = link == -ENODEV;
    fd_close(link);
    return known;
}

static bool is_in(const char *list, const char *word)
{
    for (const char *p = list; p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL) {
        size_t n = strcspn(p, ",");
        if (n == strlen(word) && strncmp(p, word, n) == 0) {
            return true;
        }
    }
    return false;
}

int program_probe(const char *without, struct program_features *ret, struct err *e)
{
    /* Kernels before 5.11 count maps as locked memory. */
    setrlimit(RLIMIT_MEMLOCK, &(struct rlimit){RLIM_INFINITY, RLIM_INFINITY});
    libbpf_set_print(keep_words);
    int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "tenet_probe", 4, 4, 1, NULL);
    if (fd == -EPERM) {
        return err_set(e, fd,
                       "the kernel does not let this process make eBPF maps: it needs CAP_BPF and "
                       "CAP_NET_ADMIN, or CAP_SYS_ADMIN, and no seccomp filter against bpf(2)");
    }
    if (fd < 0) {
        return err_sys(e, fd, "the kernel makes no eBPF maps");
    }
    fd_close(fd);
    if (libbpf_probe_bpf_prog_type(BPF_PROG_TYPE_SCHED_CLS, NULL) != 1) {
        return err_set(e, -EOPNOTSUPP,
                       "the kernel runs no eBPF programs at tc hooks (CONFIG_NET_CLS_BPF)");
    }
    if (libbpf_probe_bpf_map_type(BPF_MAP_TYPE_LPM_TRIE, NULL) != 1) {
        return err_set(e, -EOPNOTSUPP, "the kernel has no eBPF maps by longest prefix");
    }
    ret->redirect_peer =
        !is_in(without, "redirect_peer") &&
        libbpf_probe_bpf_helper(BPF_PROG_TYPE_SCHED_CLS, BPF_FUNC_redirect_peer, NULL) == 1;
    ret->tcx = !is_in(without, "tcx") && has_tcx();
    return 0;
}

int program_mount(const char *dir, struct err *e)
{
    struct statfs fs;
    int r = dir_make(dir, 0700, e);
    if (r < 0) {
        return r;
    }
    if (statfs(dir, &fs) < 0) {
        return err_sys(e, -errno, "look at %s", dir);
    }
    if (fs.f_type == BPF_FS_MAGIC) {
        return 0;
    }
    return mount("bpf", dir, "bpf", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=0700") < 0
               ? err_sys(e, -errno, "mount a bpffs on %s", dir)
               : 0;
}

/* ---- loading ---- */

static const char *const map_names[] = {
    EBPF_SERVICES, EBPF_BACKENDS,  EBPF_SERVING,    EBPF_REFUSALS, EBPF_CONNECTIONS,
    EBPF_AFFINITY, EBPF_PODS,      EBPF_PORTS,      EBPF_ROUTES,   EBPF_VTEPS,
    EBPF_SETTINGS, EBPF_DROPS,     EBPF_GENERATION, EBPF_CLASSES,  EBPF_BLOCKS,
    EBPF_PAIRS,    EBPF_PORT_SETS, EBPF_TRACKED,    EBPF_SHARES,   EBPF_FRAGMENTS};

static int open_object(const struct program_features *f, bool under_test, const char *pins,
                       struct bpf_object **ret, struct err *e)
{
    LIBBPF_OPTS(bpf_object_open_opts, o, .object_name = "tenet");
    struct bpf_object *obj = bpf_object__open_mem(datapath_bpf, sizeof datapath_bpf, &o);
    if (!obj) {
        return fail(e, -errno, "open the eBPF programs");
    }
    struct ebpf_options options = {.redirect_peer = f->redirect_peer, .under_test = under_test};
    int r = bpf_map__set_initial_value(bpf_object__find_map_by_name(obj, ".rodata"), &options,
                                       sizeof options);
    if (r < 0) {
        bpf_object__close(obj);
        return fail(e, r, "set the options of the eBPF programs");
    }
    for (size_t i = 0; pins && i < ARRAY_SIZE(map_names); i++) {
        CLEANUP_FREE char *path = xasprintf("%s/%s", pins, map_names[i]);
        bpf_map__set_pin_path(bpf_object__find_map_by_name(obj, map_names[i]), path);
    }
    *ret = obj;
    return 0;
}

/* Whether a pinned map is what the programs want. */
static bool fits(const struct bpf_map *m)
{
    CLEANUP(fd_close) int fd = bpf_obj_get(bpf_map__pin_path(m));
    struct bpf_map_info info = {0};
    uint32_t size = sizeof info;
    return fd >= 0 && bpf_obj_get_info_by_fd(fd, &info, &size) == 0 &&
           info.type == bpf_map__type(m) && info.key_size == bpf_map__key_size(m) &&
           info.value_size == bpf_map__value_size(m) &&
           info.max_entries == bpf_map__max_entries(m) && info.map_flags == bpf_map__map_flags(m);
}

/* Forgets the pins of maps of another version: what still uses them keeps them until it is replaced.  Whether all are
 * there. */
static bool keep_fitting(struct bpf_object *o)
{
    bool all = true;
    for (size_t i = 0; i < ARRAY_SIZE(map_names); i++) {
        const struct bpf_map *m = bpf_object__find_map_by_name(o, map_names[i]);
        if (!fits(m)) {
            unlink(bpf_map__pin_path(m));
            all = false;
        }
    }
    return all;
}

static int map_fd(struct bpf_object *o, const char *name)
{
    return bpf_map__fd(bpf_object__find_map_by_name(o, name));
}

static int prog_fd(struct bpf_object *o, const char *name)
{
    return bpf_program__fd(bpf_object__find_program_by_name(o, name));
}

int program_load(const char *pins, const struct program_features *f, bool under_test,
                 struct program *ret, struct err *e)
{
    libbpf_set_print(keep_words);
    if (pins && mkdir(pins, 0700) < 0 && errno != EEXIST) {
        return err_sys(e, -errno, "make %s", pins);
    }
    struct bpf_object *o = NULL;
    last_words[0] = '\0';
    int r = open_object(f, under_test, pins, &o, e);
    if (r < 0) {
        return r;
    }
    bool reused = pins && keep_fitting(o);
    r = bpf_object__load(o);
    if (r < 0) {
        fail(e, r, "load the eBPF programs");
        bpf_object__close(o);
        return r;
    }
    *ret = (struct program){
        .object = o,
        .from_pod = prog_fd(o, "from_pod"),
        .from_tunnel = prog_fd(o, "from_tunnel"),
        .from_host = prog_fd(o, "from_host"),
        .pods = map_fd(o, EBPF_PODS),
        .ports = map_fd(o, EBPF_PORTS),
        .routes = map_fd(o, EBPF_ROUTES),
        .vteps = map_fd(o, EBPF_VTEPS),
        .services = map_fd(o, EBPF_SERVICES),
        .backends = map_fd(o, EBPF_BACKENDS),
        .serving = map_fd(o, EBPF_SERVING),
        .conns = map_fd(o, EBPF_CONNECTIONS),
        .affinity = map_fd(o, EBPF_AFFINITY),
        .settings = map_fd(o, EBPF_SETTINGS),
        .drops = map_fd(o, EBPF_DROPS),
        .generation = map_fd(o, EBPF_GENERATION),
        .classes = map_fd(o, EBPF_CLASSES),
        .blocks = map_fd(o, EBPF_BLOCKS),
        .pairs = map_fd(o, EBPF_PAIRS),
        .port_sets = map_fd(o, EBPF_PORT_SETS),
        .tracked = map_fd(o, EBPF_TRACKED),
        .shares = map_fd(o, EBPF_SHARES),
        .fragments = map_fd(o, EBPF_FRAGMENTS),
        .reused = reused,
    };
    return 0;
}

void program_done(struct program *p)
{
    bpf_object__close(TAKE(p->object));
}
