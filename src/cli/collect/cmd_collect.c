/* SPDX-License-Identifier: Apache-2.0 */
/* tenet collect: one file with what others need to understand a problem on this host, without
 * secrets. */
#include "base/mem.h"
#include "base/timeutil.h"
#include "cli/collect/bundle.h"
#include "cli/collect/redact.h"
#include "cli/command.h"
#include "cli/explain/agents.h"
#include "client/discovery.h"
#include "lab/lab.h"
#include "net/loop/config_file.h"
#include "net/loop/process.h"
#include "wire/yaml.h"

#include <dirent.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#define USER_AGENT "tenet-collect/" TENET_VERSION
#define TOOL_MS 15000
#define FILE_SIZE_MAX (1u << 20)
#define CUT_NOTE "\n[cut: longer than 1 MiB]\n"

static const char help[] =
    "usage: tenet collect [OPTIONS]\n"
    "\n"
    "Writes one file (tar.gz) with what others need to understand a problem on this host: "
    "versions,\n"
    "configuration, objects of the API, the state of the node's agent with its flows and metrics,\n"
    "Open vSwitch, links, routes and rules, and logs. It changes nothing.\n"
    "\n"
    "Secrets are removed: data of Secrets and ConfigMaps, values of environment variables, "
    "arguments\n"
    "of containers, annotations of others, keys, tokens, passwords. Names, addresses and labels "
    "are\n"
    "not: look into the file before you give it away.\n";

enum { OPT_KUBECONFIG_FILE = OPT_FIRST_FREE, OPT_LINES, OPT_PREFIX, OPT_NO_OBJECTS, OPT_RUN_DIR };

static const struct command_option options[] = {
    {"output", 'o', "FILE", "default: tenet-collect-HOST-TIME.tar.gz in this folder",
     COMPLETE_FILE},
    {"kubeconfig", OPT_KUBECONFIG_FILE, "FILE",
     "the user whose objects are collected; default: $KUBECONFIG, else the administrator of the "
     "master on this host, else its node",
     COMPLETE_FILE},
    {"no-objects", OPT_NO_OBJECTS, NULL, "does not ask the API"},
    {"log-lines", OPT_LINES, "N", "the last lines of each log; default: 5000"},
    {"run-dir", OPT_RUN_DIR, "DIR", "runDir of the node's agent; default: /run/tenet/node",
     COMPLETE_FILE},
    {"prefix", OPT_PREFIX, "DIR", "the DIR of \"tenet setup\"", COMPLETE_FILE},
    {0},
};

struct collect {
    struct bundle *bundle;
    const char *output, *kubeconfig, *prefix, *run_dir;
    uint64_t lines;
    bool no_objects;
    struct strbuf failures; /* "WHAT: why", a line each. */
    size_t n;               /* Files. */
};

static void done(struct collect *c)
{
    bundle_free(c->bundle);
    strbuf_done(&c->failures);
}

/* ---- adding ---- */

/* Says what is being done: it may take some time. */
static void progress(const struct collect *c, const char *what)
{
    if (isatty(STDERR_FILENO)) {
        fprintf(stderr, "\r\033[K%zu files; %.60s", c->n, what);
        fflush(stderr);
    }
}

static int add(struct collect *c, const char *name, const char *text, size_t size, struct err *e)
{
    c->n++;
    return bundle_add(c->bundle, name, text, size, e);
}

/* A text, searched for credentials. */
static int add_text(struct collect *c, const char *name, const char *text, size_t size,
                    struct err *e)
{
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    redact_text(text, size, &out);
    return add(c, name, strbuf_cstr(&out), out.size, e);
}

/* A document, cleaned by its structure. */
static int add_json(struct collect *c, const char *name, struct json *v, struct err *e)
{
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    redact_json(v);
    json_write(v, 2, &out);
    strbuf_addc(&out, '\n');
    return add(c, name, out.data, out.size, e);
}

/* What could not be collected is a line of failures.txt, and no failure of the command. */
static void missed(struct collect *c, const char *what, const char *why)
{
    strbuf_addf(&c->failures, "%s: %.*s\n", what, (int) strcspn(why, "\n"), why);
}

/* ---- tools ---- */

struct tool {
    const char *name; /* The file. */
    const char *argv[10];
    bool when_there; /* A program that need not be installed. */
};

static int add_tool(struct collect *c, const struct tool *t, struct err *e)
{
    struct process_spec spec = PROCESS_SPEC_INIT;
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT_MAX(FILE_SIZE_MAX);
    CLEANUP_STRBUF struct strbuf errors = STRBUF_INIT_MAX(FILE_SIZE_MAX);
    struct err why = {0};
    int status = 0;
    if (t->when_there && !tool_exists(t->argv[0])) {
        return 0;
    }
    progress(c, t->name);
    spec.argv = t->argv;
    if (process_run(&spec, TOOL_MS, &out, &errors, &status, &why) < 0) {
        missed(c, t->name, why.text);
        return 0;
    }
    if (status != 0) {
        CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
        redact_text(strbuf_cstr(&errors), MIN(errors.size, (size_t) 200), &text);
        missed(c, t->name, text.size ? strbuf_cstr(&text) : "failed");
    }
    return out.size ? add_text(c, t->name, out.data, out.size, e) : 0;
}

static int add_tools(struct collect *c, struct err *e)
{
    static const struct tool tools[] = {
        {"host/uname", {"uname", "-a"}},
        {"host/processes", {"ps", "-eo", "pid,ppid,user,stat,rss,etimes,comm"}},
        {"host/disk", {"df", "-h"}},
        {"host/inodes", {"df", "-i"}},
        {"host/time", {"timedatectl"}, true},
        {"net/links", {"ip", "-d", "-s", "link"}},
        {"net/addresses", {"ip", "addr"}},
        {"net/routes", {"ip", "route", "show", "table", "all"}},
        {"net/rules", {"ip", "rule"}},
        {"net/neighbours", {"ip", "neigh"}},
        {"net/sockets", {"ss", "-lntup"}, true},
        {"net/qdiscs", {"tc", "-s", "qdisc"}, true},
        {"net/nftables", {"nft", "list", "ruleset"}, true},
        {"net/sysctls", {"sysctl", "-e", "-r", "-a", "^net\\.ipv4\\.(ip_forward|conf)"}, true},
        {"ovs/show", {"ovs-vsctl", "--timeout=10", "show"}, true},
        {"ovs/bridges", {"ovs-vsctl", "--timeout=10", "list", "bridge"}, true},
        {"ovs/interfaces", {"ovs-vsctl", "--timeout=10", "list", "interface"}, true},
        {"ovs/flows", {"ovs-ofctl", "-O", "OpenFlow14", "dump-flows", "br0"}, true},
        {"ovs/groups", {"ovs-ofctl", "-O", "OpenFlow14", "dump-groups", "br0"}, true},
        {"ovs/ports", {"ovs-ofctl", "-O", "OpenFlow14", "dump-ports", "br0"}, true},
        {"ovs/datapath", {"ovs-appctl", "dpif/show"}, true},
        {"ovs/coverage", {"ovs-appctl", "coverage/show"}, true},
        {"runtime/containerd", {"containerd", "--version"}, true},
        {"runtime/pods", {"crictl", "pods"}, true},
        {"host/services", {"systemctl", "--no-pager", "status", "tenet-*"}, true},
    };
    int r = 0;
    for (size_t i = 0; i < ARRAY_SIZE(tools) && r == 0; i++) {
        r = add_tool(c, &tools[i], e);
    }
    return r;
}

/* The checks of "tenet setup", by this program. */
static int add_checks(struct collect *c, struct err *e)
{
    char self[PATH_MAX] = "";
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    struct tool t = {"host/checks", {self, "setup", "check"}};
    self[MAX(n, (ssize_t) 0)] = '\0';
    struct process_spec spec = PROCESS_SPEC_INIT;
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    int status = 0; /* 1: a check fails, which is no failure here. */
    progress(c, t.name);
    spec.argv = t.argv;
    if (process_run(&spec, TOOL_MS, &out, &out, &status, NULL) < 0) {
        missed(c, t.name, "could not be run");
    }
    return out.size ? add_text(c, t.name, out.data, out.size, e) : 0;
}

static int add_logs(struct collect *c, struct err *e)
{
    static const char *const units[] = {"tenet-master",       "tenet-node",        "tenet-kubelet",
                                        "tenet-apiserver",    "tenet-controllers", "containerd",
                                        "openvswitch-switch", "ovs-vswitchd"};
    CLEANUP_FREE char *lines = xasprintf("%llu", (unsigned long long) c->lines);
    int r = 0;
    for (size_t i = 0; i < ARRAY_SIZE(units) && r == 0; i++) {
        CLEANUP_FREE char *name = xasprintf("logs/%s", units[i]);
        struct tool t = {
            name,
            {"journalctl", "--no-pager", "-q", "-o", "short-iso", "-n", lines, "-u", units[i]},
            true};
        r = add_tool(c, &t, e);
    }
    return r;
}

/* ---- files ---- */

static int add_file(struct collect *c, const char *name, const char *path, bool document,
                    struct err *e)
{
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    CLEANUP(json_free) struct json *v = NULL;
    struct err why = {0};
    int r = file_read(path, FILE_SIZE_MAX, &text, &why);
    if (r == -ENOENT) {
        return 0;
    }
    if (r == 0 && document) {
        r = yaml_parse(strbuf_cstr(&text), text.size, &v, &why);
    }
    if (r < 0) {
        missed(c, name, why.text);
        return 0;
    }
    return document ? add_json(c, name, v, e) : add_text(c, name, text.data, text.size, e);
}

/* The documents of a folder, those in YAML and JSON. */
static int add_folder(struct collect *c, const char *folder, const char *dir, struct err *e)
{
    static const char *const endings[] = {".yaml", ".yml",      ".json",
                                          ".conf", ".conflist", ".kubeconfig"};
    CLEANUP_FREE char *full = xasprintf("%s%s", c->prefix, dir);
    DIR *d = opendir(full);
    struct dirent *ent;
    int r = 0;
    while (d && r == 0 && (ent = readdir(d))) {
        bool good = false;
        for (size_t i = 0; i < ARRAY_SIZE(endings); i++) {
            good |= str_has_suffix(ent->d_name, endings[i]);
        }
        if (good && *ent->d_name != '.') {
            CLEANUP_FREE char *name = xasprintf("%s/%s", folder, ent->d_name);
            CLEANUP_FREE char *path = xasprintf("%s/%s", full, ent->d_name);
            r = add_file(c, name, path, true, e);
        }
    }
    if (d) {
        closedir(d);
    }
    return r;
}

static int add_files(struct collect *c, struct err *e)
{
    static const struct {
        const char *name, *path;
    } files[] = {{"host/os-release", "/etc/os-release"}, {"host/meminfo", "/proc/meminfo"},
                 {"host/loadavg", "/proc/loadavg"},      {"host/mounts", "/proc/mounts"},
                 {"host/modules", "/proc/modules"},      {"host/resolv.conf", "/etc/resolv.conf"}};
    int r = add_folder(c, "config", "/etc/tenet", e);
    r = r < 0 ? r : add_folder(c, "cni", "/etc/cni/net.d", e);
    for (size_t i = 0; i < ARRAY_SIZE(files) && r == 0; i++) {
        r = add_file(c, files[i].name, files[i].path, false, e);
    }
    return r;
}

/* ---- the agent ---- */

struct reply {
    bool done;
    int status;
    struct strbuf body;
};

static void on_reply(void *ctx, const struct http_result *r)
{
    struct reply *p = ctx;
    p->done = true;
    p->status = r->error < 0 ? r->error : r->status;
    if (r->error == 0) {
        strbuf_add(&p->body, r->body, r->size);
    }
}

static int add_agent(struct collect *c, struct loop *loop, struct err *e)
{
    static const struct {
        const char *path, *name;
        bool document;
    } rows[] = {{"/v1/state", "agent/state.json", true},
                {"/v1/flows", "agent/flows.json", true},
                {"/v1/maps", "agent/maps.json", true},
                {"/healthz", "agent/healthz", false},
                {"/metrics", "agent/metrics", false}};
    CLEANUP_FREE char *socket = xasprintf("%s/agent.sock", c->run_dir);
    CLEANUP_FREE char *url = xasprintf("unix://%s", socket);
    struct http_client_config config = {.url = url, .connect_ms = TOOL_MS, .response_ms = TOOL_MS};
    if (access(socket, F_OK) < 0) {
        return 0;
    }
    int r = 0;
    for (size_t i = 0; i < ARRAY_SIZE(rows) && r == 0; i++) {
        struct http_client *http = NULL;
        struct reply p = {.body = STRBUF_INIT};
        CLEANUP(json_free) struct json *v = NULL;
        progress(c, rows[i].name);
        if ((r = http_client_new(loop, &config, &http, e)) < 0) {
            return r;
        }
        http_call(http, "GET", rows[i].path, "*/*", NULL, NULL, 0, on_reply, &p);
        loop_run_until(loop, &p.done, 0);
        http_client_free(http);
        if (p.status < 0) {
            missed(c, rows[i].name, "the agent does not answer");
        } else if (rows[i].document && p.status == 200 &&
                   json_parse(strbuf_cstr(&p.body), p.body.size, &v, NULL) == 0) {
            r = add_json(c, rows[i].name, v, e);
        } else {
            r = add_text(c, rows[i].name, strbuf_cstr(&p.body), p.body.size, e);
        }
        strbuf_done(&p.body);
    }
    return r;
}

/* ---- objects ---- */

struct metadata_call {
    bool done;
    int error;
    char text[256];
    struct json *list;
};

static void got_metadata(void *ctx, int error, const char *text, struct json *obj)
{
    struct metadata_call *m = ctx;
    m->done = true;
    m->error = error;
    snprintf(m->text, sizeof m->text, "%.250s", text ? text : "");
    m->list = obj ? json_clone(obj) : NULL;
}

/* All objects of a kind.  Of kinds that this program does not know only the metadata: where their
 * secrets are is not known either. */
static int add_kind(struct collect *c, struct loop *loop, struct api_client *client,
                    const struct api_kind *k, bool known, struct err *e)
{
    CLEANUP_FREE char *version =
        *k->group ? xasprintf("%s/%s", k->group, k->version) : xstrdup(k->version);
    CLEANUP_FREE char *path = api_path(version, k->plural, NULL, NULL, NULL);
    CLEANUP_FREE char *name =
        xasprintf("objects/%s%s%s.json", k->plural, *k->group ? "." : "", k->group);
    struct metadata_call m = {0};
    progress(c, name);
    api_request_as(client, "GET", path, known ? NULL : API_ACCEPT_METADATA_LIST, NULL, NULL,
                   got_metadata, &m);
    loop_run_until(loop, &m.done, 0);
    CLEANUP(json_free) struct json *list = m.list;
    struct json *item;
    if (m.error < 0) {
        missed(c, name, m.text);
        return 0;
    }
    JSON_FOREACH (item, json_get(list, "items")) {
        json_remove(json_get(item, "metadata"), "managedFields");
    }
    return json_count(json_get(list, "items")) ? add_json(c, name, list, e) : 0;
}

/* The kubeconfig whose user is asked; NULL: there is none.  Owned. */
static char *choose_kubeconfig(const struct collect *c)
{
    CLEANUP_FREE char *admin = xasprintf("%s/var/lib/tenet/pki/admin.kubeconfig", c->prefix);
    CLEANUP_FREE char *node = xasprintf("%s/etc/tenet/node.kubeconfig", c->prefix);
    const char *env = getenv("KUBECONFIG");
    return c->kubeconfig              ? xstrdup(c->kubeconfig)
           : env && *env              ? xstrndup(env, strcspn(env, ":"))
           : access(admin, R_OK) == 0 ? TAKE(admin)
           : access(node, R_OK) == 0  ? TAKE(node)
                                      : NULL;
}

static int add_objects(struct collect *c, struct loop *loop, struct err *e)
{
    CLEANUP_FREE char *kubeconfig = choose_kubeconfig(c);
    CLEANUP(api_client_free) struct api_client *client = NULL;
    CLEANUP(discovery_free) struct discovery *d = NULL;
    struct api_registry own = {0};
    struct err why = {0};
    if (!kubeconfig) {
        missed(c, "objects", "there is no kubeconfig");
        return 0;
    }
    progress(c, "objects");
    if (api_client_from_kubeconfig(loop, kubeconfig, USER_AGENT, &client, &why) < 0 ||
        discovery_fetch_sync(client, &d, &why) < 0) {
        missed(c, "objects", why.text);
        return 0;
    }
    const struct api_registry *kinds = discovery_registry(d);
    int r = 0;
    api_registry_init(&own, NULL);
    for (size_t i = 0; i < kinds->n && r == 0; i++) {
        const struct api_kind *k = kinds->list[i];
        bool token = strstr(k->plural, "token") != NULL; /* Their names are credentials. */
        if (discovery_verbs(k) & DISCOVERY_LIST && discovery_is_preferred(d, k) && !token) {
            bool known = api_registry_find(&own, k->group, k->version, k->plural) != NULL;
            r = add_kind(c, loop, client, k, known, e);
        }
    }
    api_registry_done(&own);
    return r;
}

/* ---- the command ---- */

static int add_all(struct collect *c, struct err *e)
{
    CLEANUP(loop_free) struct loop *loop = loop_new();
    CLEANUP(json_free) struct json *about = json_object();
    char host[CONFIG_HOST_NAME_SIZE], now[TIME_TEXT_SIZE];
    config_file_host_name(host);
    time_format_s(time_wall_ms(), now);
    json_set_string(about, "program", "tenet " TENET_VERSION);
    json_set_string(about, "host", host);
    json_set_string(about, "time", now);
    int r = add_json(c, "about.json", about, e);
    r = r < 0 ? r : add_files(c, e);
    r = r < 0 ? r : add_tools(c, e);
    r = r < 0 ? r : add_checks(c, e);
    r = r < 0 ? r : add_agent(c, loop, e);
    r = r < 0 || c->no_objects ? r : add_objects(c, loop, e);
    r = r < 0 ? r : add_logs(c, e);
    return r < 0 ? r : add(c, "failures.txt", strbuf_cstr(&c->failures), c->failures.size, e);
}

static int parse(struct collect *c, int argc, char **argv)
{
    int opt;
    optind = 0;
    while ((opt = command_getopt(&cmd_collect, argc, argv, NULL)) != -1) {
        switch (opt) {
        case 'o':
            c->output = optarg;
            break;
        case OPT_KUBECONFIG_FILE:
            c->kubeconfig = optarg;
            break;
        case OPT_LINES:
            if (str_to_u64(optarg, 1000000, &c->lines) < 0) {
                return command_usage(&cmd_collect, "--log-lines %s is not a number up to 1000000",
                                     optarg);
            }
            break;
        case OPT_PREFIX:
            c->prefix = optarg;
            break;
        case OPT_RUN_DIR:
            c->run_dir = optarg;
            break;
        case OPT_NO_OBJECTS:
            c->no_objects = true;
            break;
        default:
            return opt == OPT_HELP ? 0 : 2;
        }
    }
    return command_expect_end(&cmd_collect, argc, argv);
}

static int run(int argc, char **argv)
{
    __attribute__((cleanup(done))) struct collect c = {
        .prefix = "", .lines = 5000, .failures = STRBUF_INIT};
    char host[CONFIG_HOST_NAME_SIZE], now[TIME_TEXT_SIZE];
    struct err e = {0};
    int status = parse(&c, argc, argv);
    if (status >= 0) {
        return status;
    }
    config_file_host_name(host);
    time_format_s(time_wall_ms(), now);
    CLEANUP_FREE char *run_dir = xasprintf("%s/run/tenet/node", c.prefix);
    CLEANUP_FREE char *output = xasprintf("tenet-collect-%s-%s.tar.gz", host, now);
    c.run_dir = c.run_dir ? c.run_dir : run_dir;
    c.output = c.output ? c.output : output;
    int r = bundle_open(c.output, &c.bundle, &e);
    r = r < 0 ? r : add_all(&c, &e);
    r = r < 0 ? r : bundle_finish(c.bundle, &e);
    if (isatty(STDERR_FILENO)) {
        fputs("\r\033[K", stderr);
    }
    if (r < 0) {
        return command_fail(&e, NULL);
    }
    size_t missing = 0;
    for (const char *p = strbuf_cstr(&c.failures); (p = strchr(p, '\n')); p++) {
        missing++;
    }
    printf("%s: %zu files", c.output, c.n);
    printf(missing ? "; %zu could not be had (failures.txt in it says why)\n" : "\n", missing);
    return 0;
}

const struct command cmd_collect = {.name = "collect",
                                    .summary =
                                        "one file about this host for support, without secrets",
                                    .help = help,
                                    .options = options,
                                    .run = run};
