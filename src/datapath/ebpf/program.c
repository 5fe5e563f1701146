/* SPDX-License-Identifier: Apache-2.0 */
#include "datapath/ebpf/program.h"

#include "base/mem.h"
#include "base/str.h"
#include "datapath/ebpf/bpf/datapath_bpf.h"
#include "datapath/ebpf/bpf/maps.h"
#include "datapath/ebpf/hook.h"
#include "net/loop/process.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <dirent.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/magic.h>
#include <malloc.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>

#define PROC_FILE_MAX 65536

/* ---- messages of libbpf ---- */

static _Thread_local char last_words[256];

static int keep_words(enum libbpf_print_level level, const char *fmt, va_list ap)
{
    char text[sizeof last_words];
    if (level != LIBBPF_WARN) {
        return 0;
    }
    int n = vsnprintf(text, sizeof text, fmt, ap);
    text[strcspn(text, "\n")] = '\0';
    /* The first message has the reason, the following ones only name the object. */
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

int program_load_idle(void)
{
    static const struct bpf_insn pass[] = {
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = -1},
        {.code = BPF_JMP | BPF_EXIT}};
    return bpf_prog_load(BPF_PROG_TYPE_SCHED_CLS, "tenet_idle", "Apache-2.0", pass,
                         ARRAY_SIZE(pass), NULL);
}

static bool has_tcx(void)
{
    CLEANUP(fd_close) int fd = program_load_idle();
    /* ENODEV is returned only by a kernel that knows the hook. */
    int link = fd < 0 ? fd : bpf_link_create(fd, INT32_MAX, HOOK_TCX_INGRESS, NULL);
    bool known = link == -ENODEV;
    fd_close(link);
    return known;
}

static bool has_helper(enum bpf_func_id id)
{
    return libbpf_probe_bpf_helper(BPF_PROG_TYPE_SCHED_CLS, id, NULL) == 1;
}

static bool has_redirect_peer(void)
{
    return has_helper(BPF_FUNC_redirect_peer);
}

/* No helper reports this, and a test needs links; a kernel with an earlier backport loses
 * nothing. */
static bool has_scrub(void)
{
    struct utsname u;
    return uname(&u) == 0 && strverscmp(u.release, "6.15") >= 0;
}

static bool has_ringbuf(void)
{
    return libbpf_probe_bpf_map_type(BPF_MAP_TYPE_RINGBUF, NULL) == 1;
}

/* Calling a helper shows which flags it knows. */
static bool has_encap(void)
{
    const uint64_t flags = EBPF_ENCAP_FLAGS;
    const struct bpf_insn grow[] = {
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 2, .imm = EBPF_OUTER_SIZE},
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 3, .imm = BPF_ADJ_ROOM_MAC},
        {.code = BPF_LD | BPF_IMM | BPF_DW, .dst_reg = 4, .imm = (int32_t) (uint32_t) flags},
        {.imm = (int32_t) (uint32_t) (flags >> 32)},
        {.code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_skb_adjust_room},
        {.code = BPF_JMP | BPF_EXIT}};
    if (!has_helper(BPF_FUNC_redirect_neigh) || !has_helper(BPF_FUNC_ktime_get_coarse_ns) ||
        !has_helper(BPF_FUNC_csum_level)) {
        return false;
    }
    CLEANUP(fd_close)
    int fd = bpf_prog_load(BPF_PROG_TYPE_SCHED_CLS, "tenet_probe", "Apache-2.0", grow,
                           ARRAY_SIZE(grow), NULL);
    unsigned char frame[ETH_HLEN + 40] = {[12] = 0x08, [ETH_HLEN] = 0x45};
    unsigned char out[sizeof frame + EBPF_OUTER_SIZE];
    LIBBPF_OPTS(bpf_test_run_opts, o, .data_in = frame, .data_size_in = sizeof frame,
                .data_out = out, .data_size_out = sizeof out);
    return fd >= 0 && bpf_prog_test_run_opts(fd, &o) == 0 && o.retval == 0;
}

/* All optional features, and the only names that 'without' accepts. */
static const struct {
    const char *name;
    bool (*has)(void);
    size_t member;
} optional[] = {
    {"redirect_peer", has_redirect_peer, offsetof(struct program_features, redirect_peer)},
    {"scrub", has_scrub, offsetof(struct program_features, scrub)},
    {"tcx", has_tcx, offsetof(struct program_features, tcx)},
    {"ringbuf", has_ringbuf, offsetof(struct program_features, ringbuf)},
    {"encap", has_encap, offsetof(struct program_features, encap)},
};

const char *program_feature_name(size_t i)
{
    return i < ARRAY_SIZE(optional) ? optional[i].name : NULL;
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

static int not_permitted(const char *what, struct err *e)
{
    return err_set(e, -EPERM,
                   "the kernel does not let this process %s: it needs CAP_BPF, CAP_PERFMON and "
                   "CAP_NET_ADMIN, or CAP_SYS_ADMIN and CAP_NET_ADMIN, and no seccomp filter "
                   "against bpf(2)",
                   what);
}

int program_probe(const char *without, struct program_features *ret, struct err *e)
{
    /* Kernels before 5.11 count maps as locked memory. */
    setrlimit(RLIMIT_MEMLOCK, &(struct rlimit){RLIM_INFINITY, RLIM_INFINITY});
    libbpf_set_print(keep_words);
    int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "tenet_probe", 4, 4, 1, NULL);
    if (fd < 0) {
        return fd == -EPERM ? not_permitted("make eBPF maps", e)
                            : err_sys(e, fd, "the kernel makes no eBPF maps");
    }
    fd_close(fd);
    fd = program_load_idle();
    if (fd < 0) {
        return fd == -EPERM
                   ? not_permitted("load eBPF programs for links", e)
                   : err_sys(e, fd,
                             "the kernel runs no eBPF programs at tc hooks "
                             "(CONFIG_NET_CLS_BPF): use another kernel, or the datapath ovs");
    }
    fd_close(fd);
    if (libbpf_probe_bpf_map_type(BPF_MAP_TYPE_LPM_TRIE, NULL) != 1) {
        return err_set(e, -EOPNOTSUPP,
                       "the kernel has no eBPF maps by longest prefix (Linux 4.11): use another "
                       "kernel, or the datapath ovs");
    }
    for (size_t i = 0; i < ARRAY_SIZE(optional); i++) {
        bool *has = (bool *) ((char *) ret + optional[i].member);
        *has = !is_in(without, optional[i].name) && optional[i].has();
    }
    return 0;
}

bool program_is_mounted(const char *dir)
{
    struct statfs fs;
    return statfs(dir, &fs) == 0 && fs.f_type == BPF_FS_MAGIC;
}

/* Whether a line of 'path' ends with the word. */
static bool has_line(const char *path, const char *word)
{
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    CLEANUP_FREE char *line = xasprintf("\t%s\n", word);
    return file_read(path, PROC_FILE_MAX, &text, NULL) < 0 || strstr(strbuf_cstr(&text), line);
}

int program_check_mount(const char *dir, struct err *e)
{
    if (program_is_mounted(dir)) {
        return 0;
    }
    if (!has_line("/proc/filesystems", "bpf")) {
        return err_set(e, -ENODEV,
                       "the kernel has no file system bpf (CONFIG_BPF_SYSCALL): use another "
                       "kernel, or the datapath ovs");
    }
    return 0;
}

int program_mount(const char *dir, struct err *e)
{
    int r = dir_make(dir, 0700, e);
    if (r < 0 || program_is_mounted(dir)) {
        return r;
    }
    return mount("bpf", dir, "bpf", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=0700") < 0
               ? err_sys(e, -errno,
                         "a bpffs cannot be mounted on %s (\"mount -t bpf bpf %s\" before the "
                         "agent starts will do)",
                         dir, dir)
               : 0;
}

/* ---- loading ---- */

/* The affinity map is in both groups: a trace reads it, and options.dry prevents that it writes
 * there. */
static const struct program_map map_list[] = {
    {EBPF_PODS, false},
    {EBPF_POD_CACHE, false},
    {EBPF_PORTS, false},
    {EBPF_ROUTES, false},
    {EBPF_SUBNETS, false},
    {EBPF_VTEPS, false},
    {EBPF_SERVICES, false},
    {EBPF_BACKENDS, false},
    {EBPF_SERVING, false},
    {EBPF_SETTINGS, false},
    {EBPF_AFFINITY, false},
    {EBPF_CONNECTIONS, true},
    {EBPF_CLIENTS, true},
    {EBPF_REFUSALS, true},
    {EBPF_DROPS, true},
    {EBPF_GENERATION, false},
    {EBPF_CLASSES, false},
    {EBPF_BLOCKS, false},
    {EBPF_PAIRS, false},
    {EBPF_PORT_SETS, false},
    {EBPF_TRACKED, true},
    {EBPF_SHARES, true},
    {EBPF_FRAGMENTS, true},
    {EBPF_FIREWALLS, false},
    {EBPF_FIREWALL_BLOCKS, false},
};

const struct program_map *program_map(size_t i)
{
    return i < ARRAY_SIZE(map_list) ? &map_list[i] : NULL;
}

static struct bpf_map *find_map(const struct bpf_object *o, const char *name)
{
    return bpf_object__find_map_by_name(o, name);
}

/* Whether the map pinned at 'path' has the layout of the programs' map. */
static bool fits(const struct bpf_map *m, const char *path)
{
    CLEANUP(fd_close) int fd = bpf_obj_get(path);
    struct bpf_map_info info = {0};
    uint32_t size = sizeof info;
    return fd >= 0 && bpf_obj_get_info_by_fd(fd, &info, &size) == 0 &&
           info.type == bpf_map__type(m) && info.key_size == bpf_map__key_size(m) &&
           info.value_size == bpf_map__value_size(m) &&
           info.max_entries == bpf_map__max_entries(m) && info.map_flags == bpf_map__map_flags(m);
}

static char *pin_of(const char *pins, size_t i)
{
    return xasprintf("%s/%s", pins, map_list[i].name);
}

/* Reuses the pinned maps with the right layout; returns whether these are all. */
static bool find_pinned(struct bpf_object *o, const char *pins)
{
    bool all = true;
    for (size_t i = 0; i < ARRAY_SIZE(map_list); i++) {
        struct bpf_map *m = find_map(o, map_list[i].name);
        CLEANUP_FREE char *path = pin_of(pins, i);
        all = fits(m, path) && bpf_map__set_pin_path(m, path) == 0 && all;
    }
    return all;
}

static int open_object(const struct ebpf_options *options, uint32_t max_entries,
                       struct bpf_object **ret, struct err *e)
{
    LIBBPF_OPTS(bpf_object_open_opts, o, .object_name = "tenet");
    struct bpf_object *obj = bpf_object__open_mem(datapath_bpf, datapath_bpf_size, &o);
    if (!obj) {
        return fail(e, -errno, "open the eBPF programs");
    }
    int r = bpf_map__set_initial_value(find_map(obj, ".rodata"), options, sizeof *options);
    static const char *const rings[] = {EBPF_EVENTS, EBPF_UPCALLS};
    for (size_t i = 0; r == 0 && !options->events && i < ARRAY_SIZE(rings); i++) {
        r = bpf_map__set_autocreate(find_map(obj, rings[i]), false);
    }
    for (size_t i = 0; max_entries && r == 0 && i < ARRAY_SIZE(map_list); i++) {
        struct bpf_map *m = find_map(obj, map_list[i].name);
        bool is_filled = !map_list[i].by_packets && bpf_map__type(m) != BPF_MAP_TYPE_ARRAY;
        if (is_filled && bpf_map__max_entries(m) > max_entries) {
            r = bpf_map__set_max_entries(m, max_entries);
        }
    }
    if (r < 0) {
        bpf_object__close(obj);
        return fail(e, r, "set the options of the eBPF programs");
    }
    *ret = obj;
    return 0;
}

/* Offset of the descriptors in struct program. */
struct part {
    const char *name;
    size_t at;
};
#define PART(name, member)                     \
    {                                          \
        name, offsetof(struct program, member) \
    }
static const struct part programs[] = {
    PART("from_pod", from_pod),
    PART("from_tunnel", from_tunnel),
    PART("from_host", from_host),
    PART("from_wire", from_wire),
};
static const struct part maps[] = {
    PART(EBPF_PODS, pods),           PART(EBPF_POD_CACHE, pod_cache),
    PART(EBPF_PORTS, ports),         PART(EBPF_ROUTES, routes),
    PART(EBPF_SUBNETS, subnets),     PART(EBPF_VTEPS, vteps),
    PART(EBPF_SERVICES, services),   PART(EBPF_BACKENDS, backends),
    PART(EBPF_SERVING, serving),     PART(EBPF_CONNECTIONS, conns),
    PART(EBPF_AFFINITY, affinity),   PART(EBPF_CLIENTS, clients),
    PART(EBPF_REFUSALS, refusals),   PART(EBPF_SETTINGS, settings),
    PART(EBPF_DROPS, drops),         PART(EBPF_GENERATION, generation),
    PART(EBPF_CLASSES, classes),     PART(EBPF_BLOCKS, blocks),
    PART(EBPF_PAIRS, pairs),         PART(EBPF_PORT_SETS, port_sets),
    PART(EBPF_TRACKED, tracked),     PART(EBPF_SHARES, shares),
    PART(EBPF_FRAGMENTS, fragments), PART(EBPF_EVENTS, events),
    PART(EBPF_WATCHED, watched),     PART(EBPF_UPCALLS, upcalls),
    PART(EBPF_FIREWALLS, firewalls), PART(EBPF_FIREWALL_BLOCKS, firewall_blocks),
};

static int *fd_at(const struct program *p, const struct part *part)
{
    return (int *) ((char *) p + part->at);
}

/* -1: absent. */
static int keep_fd(int fd)
{
    return fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
}

/* Takes ownership of 'o' and frees it: it has some megabytes that the kernel has by now. */
static int load_object(struct bpf_object *o, struct program *ret, struct err *e)
{
    int r = bpf_object__load(o);
    if (r < 0) {
        fail(e, r, "load the eBPF programs");
        bpf_object__close(o);
        return r;
    }
    *ret = (struct program){.loaded = true};
    for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
        const struct bpf_program *p = bpf_object__find_program_by_name(o, programs[i].name);
        *fd_at(ret, &programs[i]) = keep_fd(bpf_program__fd(p));
    }
    for (size_t i = 0; i < ARRAY_SIZE(maps); i++) {
        *fd_at(ret, &maps[i]) = keep_fd(bpf_map__fd(find_map(o, maps[i].name)));
    }
    bpf_object__close(o);
    malloc_trim(0);
    return 0;
}

int program_load(const char *pins, const struct program_features *f, bool under_test,
                 struct program *ret, struct err *e)
{
    struct ebpf_options options = {.redirect_peer = f->redirect_peer,
                                   .scrub = f->scrub,
                                   .events = f->ringbuf,
                                   .encap = f->encap,
                                   .under_test = under_test};
    struct bpf_object *o = NULL;
    libbpf_set_print(keep_words);
    last_words[0] = '\0';
    int r = open_object(&options, f->max_entries, &o, e);
    if (r < 0) {
        return r;
    }
    bool reused = pins && find_pinned(o, pins);
    r = load_object(o, ret, e);
    if (r == 0) {
        ret->reused = reused;
    }
    return r;
}

/* Whether the map is the one pinned at 'path'. */
static bool is_pinned(int fd, const char *path)
{
    CLEANUP(fd_close) int there = bpf_obj_get(path);
    struct bpf_map_info a = {0}, b = {0};
    uint32_t size_a = sizeof a, size_b = sizeof b;
    return there >= 0 && bpf_obj_get_info_by_fd(there, &a, &size_a) == 0 &&
           bpf_obj_get_info_by_fd(fd, &b, &size_b) == 0 && a.id == b.id;
}

/* Removes the pins of maps that another version had and this one does not: they would keep the
 * maps in memory until the node restarts. */
static void unpin_unknown(const char *pins)
{
    DIR *d = opendir(pins);
    const struct dirent *entry;
    while (d && (entry = readdir(d))) {
        bool known = entry->d_name[0] == '.';
        for (size_t i = 0; i < ARRAY_SIZE(map_list) && !known; i++) {
            known = streq(entry->d_name, map_list[i].name);
        }
        if (!known) {
            unlinkat(dirfd(d), entry->d_name, 0);
        }
    }
    if (d) {
        closedir(d);
    }
}

/* An old program keeps using a map of another version until the program is replaced. */
int program_pin(const struct program *p, const char *pins, struct err *e)
{
    if (mkdir(pins, 0700) < 0 && errno != EEXIST) {
        return err_sys(e, -errno, "make %s", pins);
    }
    for (size_t i = 0; i < ARRAY_SIZE(map_list); i++) {
        int fd = program_map_fd(p, map_list[i].name);
        CLEANUP_FREE char *path = pin_of(pins, i);
        if (!is_pinned(fd, path)) {
            unlink(path);
            int r = bpf_obj_pin(fd, path);
            if (r < 0) {
                return err_sys(e, r, "pin the maps of the eBPF programs at %s", path);
            }
        }
    }
    unpin_unknown(pins);
    return 0;
}

void program_done(struct program *p)
{
    for (size_t i = 0; p->loaded && i < ARRAY_SIZE(programs); i++) {
        fd_close(*fd_at(p, &programs[i]));
    }
    for (size_t i = 0; p->loaded && i < ARRAY_SIZE(maps); i++) {
        fd_close(*fd_at(p, &maps[i]));
    }
    p->loaded = false;
}

int program_map_fd(const struct program *p, const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(maps); i++) {
        if (streq(maps[i].name, name)) {
            return *fd_at(p, &maps[i]);
        }
    }
    return -1;
}

/* ---- traces ---- */

/* Size of the maps that a single traced packet writes. */
#define DRY_ENTRIES 64

static int lend_maps(struct bpf_object *o, const struct program *live)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(map_list); i++) {
        const struct program_map *m = &map_list[i];
        struct bpf_map *own = find_map(o, m->name);
        if (!m->by_packets) {
            r = bpf_map__reuse_fd(own, program_map_fd(live, m->name));
        } else if (bpf_map__max_entries(own) > DRY_ENTRIES) {
            r = bpf_map__set_max_entries(own, DRY_ENTRIES);
        }
    }
    return r;
}

int program_load_dry(const struct program *live, const struct program_features *f, const char *name,
                     struct program *ret, struct err *e)
{
    struct ebpf_options options = {
        .redirect_peer = f->redirect_peer, .scrub = f->scrub, .under_test = true, .dry = true};
    struct bpf_object *o = NULL;
    struct bpf_program *p;
    libbpf_set_print(keep_words);
    last_words[0] = '\0';
    int r = open_object(&options, f->max_entries, &o, e);
    if (r < 0) {
        return r;
    }
    bpf_object__for_each_program(p, o)
    {
        /* The verifier needs time for each program. */
        bpf_program__set_autoload(p, streq(bpf_program__name(p), name));
    }
    r = lend_maps(o, live);
    if (r < 0) {
        fail(e, r, "share the maps of the eBPF programs");
        bpf_object__close(o);
        return r;
    }
    return load_object(o, ret, e);
}

int program_run(int prog_fd, uint32_t cb[5], const void *frame, size_t size, void *out,
                size_t *ret_size, int *ret_action, struct err *e)
{
    struct __sk_buff in = {0}, after = {0};
    memcpy(in.cb, cb, sizeof in.cb);
    LIBBPF_OPTS(bpf_test_run_opts, o, .data_in = frame, .data_size_in = (uint32_t) size,
                .data_out = out, .data_size_out = (uint32_t) *ret_size, .ctx_in = &in,
                .ctx_size_in = sizeof in, .ctx_out = &after, .ctx_size_out = sizeof after);
    int r = bpf_prog_test_run_opts(prog_fd, &o);
    if (r < 0) {
        return err_sys(e, r, "run an eBPF program on a frame of %zu bytes", size);
    }
    memcpy(cb, after.cb, sizeof after.cb);
    *ret_size = o.data_size_out;
    *ret_action = (int) o.retval;
    return 0;
}
