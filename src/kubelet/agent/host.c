/* SPDX-License-Identifier: Apache-2.0 */
#include "kubelet/agent/host.h"

#include "base/mem.h"
#include "net/loop/process.h"

#include <dirent.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#define RESOLV_MAX 65536
#define WORDS_MAX 64

/* The number after "KEY:" in a text of /proc, in its own unit; 0: it is not there. */
static int64_t number_of(const char *text, const char *key)
{
    const char *p = strstr(text, key);
    uint64_t n = 0;
    p = p ? p + strlen(key) : "";
    p += strspn(p, " \t");
    CLEANUP_FREE char *digits = xstrndup(p, strspn(p, "0123456789"));
    return str_to_u64(digits, INT64_MAX / 1024, &n) == 0 ? (int64_t) n : 0;
}

static int64_t number_in(const char *path)
{
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    return file_read(path, 4096, &text, NULL) == 0 ? number_of(strbuf_cstr(&text), "") : 0;
}

void host_read(const char *root_dir, struct host_facts *ret)
{
    CLEANUP_STRBUF struct strbuf mem = STRBUF_INIT;
    CLEANUP_STRBUF struct strbuf load = STRBUF_INIT;
    struct statvfs fs;
    *ret = (struct host_facts){.milli_cpu = 1000 * MAX(sysconf(_SC_NPROCESSORS_ONLN), 1L)};
    if (file_read("/proc/meminfo", RESOLV_MAX, &mem, NULL) == 0) {
        ret->memory_bytes = number_of(strbuf_cstr(&mem), "MemTotal:") * 1024;
        ret->memory_available = number_of(strbuf_cstr(&mem), "MemAvailable:") * 1024;
    }
    if (statvfs(root_dir, &fs) == 0) {
        ret->disk_bytes = (int64_t) (fs.f_blocks * fs.f_frsize);
        ret->disk_free = (int64_t) (fs.f_bavail * fs.f_frsize);
        ret->inodes = (int64_t) fs.f_files;
        ret->inodes_free = (int64_t) fs.f_favail;
    }
    ret->pids_max = number_in("/proc/sys/kernel/pid_max");
    if (file_read("/proc/loadavg", 4096, &load, NULL) == 0) {
        ret->pids = number_of(strbuf_cstr(&load), "/");
    }
}

void host_signals(const char *root_dir, const char *image_dir,
                  struct evict_value ret[EVICT_SIGNALS])
{
    struct host_facts h;
    struct statvfs fs;
    host_read(root_dir, &h);
    memset(ret, 0, EVICT_SIGNALS * sizeof *ret);
    ret[EVICT_MEMORY] = (struct evict_value){h.memory_available, h.memory_bytes};
    ret[EVICT_NODEFS] = (struct evict_value){h.disk_free, h.disk_bytes};
    ret[EVICT_NODEFS_INODES] = (struct evict_value){h.inodes_free, h.inodes};
    ret[EVICT_PIDS] = (struct evict_value){h.pids_max - h.pids, h.pids_max};
    if (image_dir && statvfs(image_dir, &fs) == 0) {
        ret[EVICT_IMAGEFS] = (struct evict_value){(int64_t) (fs.f_bavail * fs.f_frsize),
                                                  (int64_t) (fs.f_blocks * fs.f_frsize)};
        ret[EVICT_IMAGEFS_INODES] =
            (struct evict_value){(int64_t) fs.f_favail, (int64_t) fs.f_files};
    }
}

struct json *host_hugepages(void)
{
    static const char prefix[] = "hugepages-";
    struct json *o = json_object();
    DIR *d = opendir("/sys/kernel/mm/hugepages");
    for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
        int64_t kb = str_has_prefix(e->d_name, prefix) ? number_of(e->d_name, prefix) : 0;
        if (kb <= 0) {
            continue;
        }
        CLEANUP_FREE char *path = xasprintf("/sys/kernel/mm/hugepages/%s/nr_hugepages", e->d_name);
        bool giga = kb % 1048576 == 0, mega = kb % 1024 == 0;
        CLEANUP_FREE char *key = xasprintf("%s%lld%s", prefix,
                                           (long long) (kb / (giga   ? 1048576
                                                              : mega ? 1024
                                                                     : 1)),
                                           giga   ? "Gi"
                                           : mega ? "Mi"
                                                  : "Ki");
        long long bytes = number_in(path) * kb * 1024;
        json_set(o, key, json_stringf("%lld", bytes));
    }
    if (d) {
        closedir(d);
    }
    return o;
}

const char *host_arch(void)
{
    static struct utsname u;
    uname(&u);
    return streq(u.machine, "x86_64") ? "amd64" : streq(u.machine, "aarch64") ? "arm64" : u.machine;
}

static char *os_image(void)
{
    static const char key[] = "PRETTY_NAME=";
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    const char *at = file_read("/etc/os-release", RESOLV_MAX, &text, NULL) == 0
                         ? strstr(strbuf_cstr(&text), key)
                         : NULL;
    if (!at) {
        return xstrdup("Linux");
    }
    at += strlen(key);
    at += *at == '"';
    return xstrndup(at, strcspn(at, "\"\n"));
}

static void set_line(struct json *o, const char *key, const char *path)
{
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    const char *s = file_read(path, 4096, &text, NULL) == 0 ? strbuf_cstr(&text) : "";
    json_set(o, key, json_string_n(s, strcspn(s, " \n")));
}

struct json *host_info(const char *runtime)
{
    struct utsname u = {0};
    uname(&u);
    struct json *info = json_object();
    set_line(info, "machineID", "/etc/machine-id");
    set_line(info, "systemUUID", "/sys/class/dmi/id/product_uuid");
    set_line(info, "bootID", "/proc/sys/kernel/random/boot_id");
    json_set_string(info, "kernelVersion", u.release);
    CLEANUP_FREE char *image = os_image();
    json_set_string(info, "osImage", image);
    json_set_string(info, "containerRuntimeVersion", runtime);
    json_set_string(info, "kubeletVersion", "tenet-" TENET_VERSION);
    json_set_string(info, "kubeProxyVersion", "");
    json_set_string(info, "operatingSystem", "linux");
    json_set_string(info, "architecture", host_arch());
    return info;
}

/* The blank-separated words of a line, at most WORDS_MAX. */
static struct runtime_texts words(const char *line, size_t size, struct arena *a)
{
    const char **v = ARENA_NEW(a, const char *, WORDS_MAX);
    size_t n = 0;
    for (const char *p = line; p < line + size && n < WORDS_MAX;) {
        p += strspn(p, " \t");
        size_t w = strcspn(p, " \t\n");
        if (w == 0 || p >= line + size) {
            break;
        }
        v[n++] = arena_strndup(a, p, w);
        p += w;
    }
    return (struct runtime_texts){v, n};
}

void host_resolver(const char *path, struct arena *a, struct runtime_texts *servers,
                   struct runtime_texts *searches, struct runtime_texts *options)
{
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    const char **v = ARENA_NEW(a, const char *, WORDS_MAX);
    *servers = *searches = *options = (struct runtime_texts){0};
    servers->v = v;
    if (file_read(path, RESOLV_MAX, &text, NULL) < 0) {
        return;
    }
    for (const char *p = strbuf_cstr(&text); *p;) {
        size_t size = strcspn(p, "\n");
        struct runtime_texts w = words(p, size, a);
        if (w.n > 1 && streq(w.v[0], "nameserver") && servers->n < WORDS_MAX) {
            v[servers->n++] = w.v[1];
        } else if (w.n && (streq(w.v[0], "search") || streq(w.v[0], "domain"))) {
            *searches = (struct runtime_texts){w.v + 1, w.n - 1};
        } else if (w.n && streq(w.v[0], "options")) {
            *options = (struct runtime_texts){w.v + 1, w.n - 1};
        }
        p += size + (p[size] == '\n');
    }
}
