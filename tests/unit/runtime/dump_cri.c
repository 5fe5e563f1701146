/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes CRI messages for cri_by_protoc.  Each line of standard input is
 * "PATH request HEX" or "PATH response HEX" with the path of a method: prints in hexadecimal what
 * is written of what was read, or "-" when the message was refused.  "RunPodSandbox" and
 * "CreateContainer" alone print the request of structs that are filled here. */
#include "base/str.h"
#include "check.h"
#include "runtime/cri/messages.h"

#include <stdio.h>

#define TEXTS(...)                                                      \
    {                                                                   \
        (const char *const[]){__VA_ARGS__},                             \
            sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *) \
    }
#define PAIR(k, v)                               \
    {                                            \
        (const struct runtime_pair[]){{k, v}}, 1 \
    }

static const int64_t groups[] = {0, 300, -1};
static const struct runtime_hugepages hugepages[] = {{"2MB", 1 << 21}};

#define RESOURCES                                                                                 \
    {                                                                                             \
        .cpu_period = 100000, .cpu_quota = -1, .cpu_shares = 2, .memory_limit = INT64_C(1) << 40, \
        .oom_score_adj = -999, .hugepages = hugepages, .n_hugepages = 1,                          \
        .unified = PAIR("memory.high", "max")                                                     \
    }
#define SECURITY                                                                                 \
    {                                                                                            \
        .privileged = true, .readonly_rootfs = true, .no_new_privs = true,                       \
        .add_capabilities = TEXTS("NET_ADMIN"), .drop_capabilities = TEXTS("ALL"),               \
        .namespaces = {RUNTIME_NS_NODE, RUNTIME_NS_TARGET, RUNTIME_NS_POD, "t"},                 \
        .selinux = {"u", "r", "t", "s0:c1,c2"}, .has_user = true, .user = 0, .has_group = true,  \
        .group = 7, .username = "nobody", .groups = groups, .n_groups = 3,                       \
        .seccomp = {true, RUNTIME_PROFILE_LOCALHOST, "p.json"}, .apparmor = {true, 0, NULL},     \
        .masked_paths = TEXTS("/proc/kcore", "/proc/keys"), .readonly_paths = TEXTS("/proc/bus") \
    }

static const struct runtime_port ports[] = {{RUNTIME_UDP, 53, 5353, "10.0.0.1"},
                                            {RUNTIME_TCP, 80, 0, ""}};
static const struct runtime_sandbox_spec sandbox = {
    .name = "web",
    .uid = "u1",
    .namespace = "red",
    .attempt = 2,
    .hostname = "web",
    .log_directory = "/var/log/pods/x",
    .dns_servers = TEXTS("10.0.0.2"),
    .dns_searches = TEXTS("a", "b"),
    .dns_options = TEXTS("ndots:5"),
    .ports = ports,
    .n_ports = 2,
    .labels = PAIR("l", ""),
    .annotations = PAIR("", "a"),
    .cgroup_parent = "/kubepods",
    .security = SECURITY,
    .sysctls = PAIR("net.core.somaxconn", "1"),
    .resources = RESOURCES,
};
static const struct runtime_mount mounts[] = {{"/c", "/h", true, true, RUNTIME_PROPAGATE_BOTH},
                                              {"/d", "/i", false, false, 0}};
static const struct runtime_device devices[] = {{"/dev/c", "/dev/h", "rwm"}};
static const struct runtime_container_spec container = {
    .name = "c",
    .attempt = 300,
    .image = "sha256:1",
    .command = TEXTS("/bin/sh", ""),
    .args = TEXTS("-c"),
    .working_dir = "/w",
    .env = {(const struct runtime_pair[]){{"A", "1"}, {"E", ""}}, 2},
    .mounts = mounts,
    .n_mounts = 2,
    .devices = devices,
    .n_devices = 1,
    .labels = PAIR("k", "v"),
    .annotations = PAIR("k", "w"),
    .log_path = "c/0.log",
    .stdin_open = true,
    .stdin_once = true,
    .tty = true,
    .resources = RESOURCES,
    .security = SECURITY,
};

static void print_hex(const struct strbuf *b)
{
    for (size_t i = 0; i < b->size; i++) {
        printf("%02x", (unsigned char) b->data[i]);
    }
    printf("\n");
}

static void dump(enum cri_method_id method, const void *request)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    pb_format(&b, cri_methods[method].request, request);
    print_hex(&b);
}

static unsigned digit(char c)
{
    return (unsigned) (c <= '9' ? c - '0' : c - 'a' + 10);
}

static void copy(const char *path, bool request, const char *hex)
{
    const struct cri_method *m = NULL;
    for (size_t i = 0; i < CRI_METHODS; i++) {
        if (str_has_suffix(cri_methods[i].path, path)) {
            m = &cri_methods[i];
        }
    }
    CHECK(m, "no method %s", path);
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    for (; hex[0] && hex[1]; hex += 2) {
        strbuf_addc(&b, (char) (digit(hex[0]) << 4 | digit(hex[1])));
    }
    CLEANUP_PB_STORE struct pb_store store = PB_STORE_INIT(1 << 20);
    _Alignas(max_align_t) char parsed[1024];
    const struct pb_shape *shape = request ? m->request : m->response;
    CHECK(shape->size <= sizeof parsed, "a struct of %zu bytes", shape->size);
    if (pb_parse(&store, shape, b.data, b.size, parsed) < 0) {
        printf("-\n");
        return;
    }
    strbuf_reset(&b);
    pb_format(&b, shape, parsed);
    print_hex(&b);
}

int main(void)
{
    static char line[65536], path[100], what[16], hex[65536];
    while (fgets(line, sizeof line, stdin)) {
        hex[0] = what[0] = '\0';
        CHECK(sscanf(line, "%99s %15s %65535s", path, what, hex) >= 1, "an empty line");
        if (!what[0]) {
            streq(path, "RunPodSandbox")
                ? dump(CRI_RUN_SANDBOX, &(struct cri_run_sandbox){&sandbox, "crun"})
                : dump(CRI_CREATE_CONTAINER,
                       &(struct cri_create_container){"s1", &container, &sandbox});
        } else {
            copy(path, streq(what, "request"), hex);
        }
        fflush(stdout);
    }
    return 0;
}
