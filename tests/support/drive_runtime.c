/* SPDX-License-Identifier: Apache-2.0 */
/* Drives a container runtime by src/runtime/runtime.h, for tests written in Python:
 *
 *     drive_runtime KIND ENDPOINT
 *
 * Each line of standard input is a JSON object {"id": 1, "call": "stop_container", ...} with the
 * arguments of the call by their names in runtime.h; the end of input
 * ends the program.  Each line of standard output is {"id": 1, "error": 0, ...} with the result,
 * or {"event": "changed" | "resync" | "connection", ...}. */
#include "base/mem.h"
#include "base/str.h"
#include "check.h"
#include "runtime/runtime.h"
#include "wire/json.h"

#include <stdio.h>
#include <unistd.h>

struct driver {
    struct loop *loop;
    struct runtime *runtime;
    struct strbuf in;
    bool over;
};

struct asked {
    int64_t id;
};

/* ---- output ---- */

static void print(struct json *line)
{
    CLEANUP_FREE char *text = json_to_text(line);
    printf("%s\n", text);
    fflush(stdout);
    json_free(line);
}

static struct json *answer(void *ctx, int error, const char *text)
{
    struct asked *a = ctx;
    struct json *line = json_object();
    json_set_int(line, "id", a->id);
    json_set_int(line, "error", error);
    if (text) {
        json_set_string(line, "text", text);
    }
    free(a);
    return line;
}

static struct json *json_pairs(const struct runtime_pairs *p)
{
    struct json *o = json_object();
    for (size_t i = 0; i < p->n; i++) {
        json_set_string(o, p->v[i].key, p->v[i].value);
    }
    return o;
}

static struct json *json_texts(const struct runtime_texts *t)
{
    struct json *a = json_array();
    for (size_t i = 0; i < t->n; i++) {
        json_append(a, json_string(t->v[i]));
    }
    return a;
}

static void on_done(void *ctx, int error, const char *text)
{
    print(answer(ctx, error, text));
}

static void on_id(void *ctx, int error, const char *text, const char *id)
{
    struct json *line = answer(ctx, error, text);
    if (error == 0) {
        json_set_string(line, "result", id);
    }
    print(line);
}

static void on_version(void *ctx, int error, const char *text, const struct runtime_version *v)
{
    struct json *line = answer(ctx, error, text);
    if (error == 0) {
        json_set_string(line, "name", v->name);
        json_set_string(line, "version", v->version);
    }
    print(line);
}

static void on_status(void *ctx, int error, const char *text, const struct runtime_status *s)
{
    struct json *line = answer(ctx, error, text);
    if (error == 0) {
        json_set_bool(line, "runtime", !s->runtime_reason);
        json_set_bool(line, "network", !s->network_reason);
        json_set_string(line, "message", s->network_message ? s->network_message : "");
    }
    print(line);
}

static void on_sandboxes(void *ctx, int error, const char *text, const struct runtime_sandbox *s,
                         size_t n)
{
    struct json *line = answer(ctx, error, text);
    struct json *all = json_array();
    for (size_t i = 0; i < n; i++) {
        struct json *o = json_append(all, json_object());
        json_set_string(o, "id", s[i].id);
        json_set_string(o, "name", s[i].name);
        json_set_string(o, "uid", s[i].uid);
        json_set_string(o, "namespace", s[i].namespace);
        json_set_int(o, "attempt", s[i].attempt);
        json_set_bool(o, "ready", s[i].ready);
        json_set_int(o, "created", s[i].created_ns);
        json_set_string(o, "ip", s[i].ip ? s[i].ip : "");
        json_set_int(o, "network", s[i].network);
        json_set(o, "labels", json_pairs(&s[i].labels));
        json_set(o, "annotations", json_pairs(&s[i].annotations));
    }
    json_set(line, "result", all);
    print(line);
}

static void on_containers(void *ctx, int error, const char *text, const struct runtime_container *c,
                          size_t n)
{
    struct json *line = answer(ctx, error, text);
    struct json *all = json_array();
    for (size_t i = 0; i < n; i++) {
        struct json *o = json_append(all, json_object());
        json_set_string(o, "id", c[i].id);
        json_set_string(o, "sandbox", c[i].sandbox_id ? c[i].sandbox_id : "");
        json_set_string(o, "name", c[i].name);
        json_set_int(o, "attempt", c[i].attempt);
        json_set_int(o, "state", c[i].state);
        json_set_int(o, "created", c[i].created_ns);
        json_set_int(o, "started", c[i].started_ns);
        json_set_int(o, "finished", c[i].finished_ns);
        json_set_int(o, "exitCode", c[i].exit_code);
        json_set_string(o, "image", c[i].image);
        json_set_string(o, "imageRef", c[i].image_ref);
        json_set_string(o, "reason", c[i].reason ? c[i].reason : "");
        json_set_string(o, "message", c[i].message ? c[i].message : "");
        json_set_string(o, "logPath", c[i].log_path ? c[i].log_path : "");
        json_set(o, "labels", json_pairs(&c[i].labels));
        json_set(o, "annotations", json_pairs(&c[i].annotations));
    }
    json_set(line, "result", all);
    print(line);
}

static void on_exec(void *ctx, int error, const char *text, const struct runtime_exec_result *r)
{
    struct json *line = answer(ctx, error, text);
    if (error == 0) {
        json_set(line, "out", json_string_n(r->out ? r->out : "", r->out_size));
        json_set(line, "err", json_string_n(r->err ? r->err : "", r->err_size));
        json_set_int(line, "exitCode", r->exit_code);
    }
    print(line);
}

static void on_images(void *ctx, int error, const char *text, const struct runtime_image *v,
                      size_t n)
{
    struct json *line = answer(ctx, error, text);
    struct json *all = json_array();
    for (size_t i = 0; i < n; i++) {
        struct json *o = json_append(all, json_object());
        json_set_string(o, "id", v[i].id);
        json_set(o, "tags", json_texts(&v[i].tags));
        json_set_int(o, "size", (int64_t) v[i].size);
        json_set_int(o, "user", v[i].has_user ? v[i].user : -1);
        json_set_string(o, "username", v[i].username);
    }
    json_set(line, "result", all);
    print(line);
}

static void on_usage(void *ctx, int error, const char *text, const struct runtime_filesystem *f,
                     size_t n)
{
    struct json *line = answer(ctx, error, text);
    struct json *all = json_array();
    for (size_t i = 0; i < n; i++) {
        struct json *o = json_append(all, json_object());
        json_set_string(o, "mountpoint", f[i].mountpoint);
        json_set_int(o, "bytes", (int64_t) f[i].used_bytes);
        json_set_int(o, "inodes", (int64_t) f[i].used_inodes);
    }
    json_set(line, "result", all);
    print(line);
}

static void on_changed(void *ctx, const char *sandbox_id, const char *container_id)
{
    struct json *line = json_object();
    json_set_string(line, "event", "changed");
    json_set_string(line, "sandbox", sandbox_id ? sandbox_id : "");
    json_set_string(line, "container", container_id ? container_id : "");
    print(line);
}

static void on_resync(void *ctx)
{
    struct json *line = json_object();
    json_set_string(line, "event", "resync");
    print(line);
}

static void on_connection(void *ctx, const char *lost_reason)
{
    struct json *line = json_object();
    json_set_string(line, "event", "connection");
    json_set(line, "lost", lost_reason ? json_string(lost_reason) : json_null());
    print(line);
}

/* ---- arguments ---- */

static struct runtime_texts texts_of(const struct json *line, const char *key)
{
    const struct json *a = json_get(line, key);
    const char **v = xcalloc(json_count(a) + 1, sizeof *v);
    for (size_t i = 0; i < json_count(a); i++) {
        v[i] = json_get_string(json_at(a, i));
    }
    return (struct runtime_texts){v, json_count(a)};
}

static struct runtime_pairs pairs_of(const struct json *line, const char *key)
{
    const struct json *o = json_get(line, key);
    struct runtime_pair *v = xcalloc(json_count(o) + 1, sizeof *v);
    for (size_t i = 0; i < json_count(o); i++) {
        v[i] = (struct runtime_pair){json_key_at(o, i), json_get_string(json_at(o, i))};
    }
    return (struct runtime_pairs){v, json_count(o)};
}

static void free_texts(struct runtime_texts *t)
{
    free((void *) t->v);
}

static void free_pairs(struct runtime_pairs *p)
{
    free((void *) p->v);
}

static int64_t number(const struct json *line, const char *key)
{
    return json_get_int_or(json_get(line, key), 0);
}

static bool flag(const struct json *line, const char *key)
{
    return json_get_bool(json_get(line, key), false);
}

static void sandbox_of(const struct json *o, struct runtime_sandbox_spec *s)
{
    *s = (struct runtime_sandbox_spec){
        .name = json_get_text(o, "name"),
        .uid = json_get_text(o, "uid"),
        .namespace = json_get_text(o, "namespace"),
        .attempt = (uint32_t) number(o, "attempt"),
        .hostname = json_get_text(o, "hostname"),
        .log_directory = json_get_text(o, "logs"),
        .cgroup_parent = json_get_text(o, "cgroupParent"),
        .labels = pairs_of(o, "labels"),
        .annotations = pairs_of(o, "annotations"),
        .sysctls = pairs_of(o, "sysctls"),
        .dns_servers = texts_of(o, "dnsServers"),
        .dns_searches = texts_of(o, "dnsSearches"),
        .dns_options = texts_of(o, "dnsOptions"),
    };
    s->security.namespaces.pid = RUNTIME_NS_CONTAINER;
    if (flag(o, "hostNetwork")) {
        s->security.namespaces.network = RUNTIME_NS_NODE;
    }
}

static void sandbox_free(struct runtime_sandbox_spec *s)
{
    free_pairs(&s->labels);
    free_pairs(&s->annotations);
    free_pairs(&s->sysctls);
    free_texts(&s->dns_servers);
    free_texts(&s->dns_searches);
    free_texts(&s->dns_options);
}

static void container_of(const struct json *o, struct runtime_container_spec *c)
{
    *c = (struct runtime_container_spec){
        .name = json_get_text(o, "name"),
        .attempt = (uint32_t) number(o, "attempt"),
        .image = json_get_text(o, "image"),
        .command = texts_of(o, "command"),
        .args = texts_of(o, "args"),
        .working_dir = json_get_text(o, "workingDir"),
        .env = pairs_of(o, "env"),
        .labels = pairs_of(o, "labels"),
        .annotations = pairs_of(o, "annotations"),
        .log_path = json_get_text(o, "logPath"),
        .stdin_open = flag(o, "stdin"),
        .tty = flag(o, "tty"),
    };
    const struct json *mounts = json_get(o, "mounts");
    struct runtime_mount *m = xcalloc(json_count(mounts) + 1, sizeof *m);
    for (size_t i = 0; i < json_count(mounts); i++) {
        const struct json *from = json_at(mounts, i);
        m[i] = (struct runtime_mount){json_get_text(from, "to"), json_get_text(from, "from"),
                                      flag(from, "readonly"), false, RUNTIME_PROPAGATE_NONE};
    }
    c->mounts = m;
    c->n_mounts = json_count(mounts);
    c->resources.memory_limit = number(o, "memory");
    c->resources.cpu_shares = number(o, "cpuShares");
    c->resources.oom_score_adj = number(o, "oomScoreAdj");
    c->security.namespaces.pid = RUNTIME_NS_CONTAINER;
    c->security.readonly_rootfs = flag(o, "readonlyRoot");
    c->security.no_new_privs = flag(o, "noNewPrivs");
    c->security.has_user = json_get(o, "user");
    c->security.user = number(o, "user");
    c->security.add_capabilities = texts_of(o, "addCapabilities");
    c->security.drop_capabilities = texts_of(o, "dropCapabilities");
    c->security.masked_paths = texts_of(o, "maskedPaths");
    c->security.readonly_paths = texts_of(o, "readonlyPaths");
    c->security.seccomp.given = flag(o, "seccompDefault");
}

static void container_free(struct runtime_container_spec *c)
{
    free_texts(&c->command);
    free_texts(&c->args);
    free_pairs(&c->env);
    free_pairs(&c->labels);
    free_pairs(&c->annotations);
    free((void *) c->mounts);
    free_texts(&c->security.add_capabilities);
    free_texts(&c->security.drop_capabilities);
    free_texts(&c->security.masked_paths);
    free_texts(&c->security.readonly_paths);
}

static struct runtime_call *begin(struct runtime *r, const char *call, const struct json *line,
                                  struct asked *a)
{
    const char *id = json_get_string(json_get(line, "of"));
    struct runtime_streams streams = {flag(line, "tty"), flag(line, "in"), true,
                                      !flag(line, "tty")};
    struct runtime_sandbox_spec s;
    struct runtime_container_spec c;
    struct runtime_texts cmd = texts_of(line, "cmd");
    uint16_t port = (uint16_t) number(line, "port");
    sandbox_of(json_get(line, "sandbox"), &s);
    container_of(json_get(line, "container"), &c);
    struct runtime_call *made = NULL;
    if (streq(call, "version")) {
        made = runtime_version(r, on_version, a);
    } else if (streq(call, "status")) {
        made = runtime_status(r, on_status, a);
    } else if (streq(call, "run_sandbox")) {
        made = runtime_run_sandbox(r, &s, "", on_id, a);
    } else if (streq(call, "stop_sandbox")) {
        made = runtime_stop_sandbox(r, id, on_done, a);
    } else if (streq(call, "remove_sandbox")) {
        made = runtime_remove_sandbox(r, id, on_done, a);
    } else if (streq(call, "get_sandbox")) {
        made = runtime_get_sandbox(r, id, on_sandboxes, a);
    } else if (streq(call, "list_sandboxes")) {
        made = runtime_list_sandboxes(r, id, on_sandboxes, a);
    } else if (streq(call, "create_container")) {
        made = runtime_create_container(r, id, &c, &s, on_id, a);
    } else if (streq(call, "start_container")) {
        made = runtime_start_container(r, id, on_done, a);
    } else if (streq(call, "stop_container")) {
        made = runtime_stop_container(r, id, (uint32_t) number(line, "grace"), on_done, a);
    } else if (streq(call, "remove_container")) {
        made = runtime_remove_container(r, id, on_done, a);
    } else if (streq(call, "get_container")) {
        made = runtime_get_container(r, id, on_containers, a);
    } else if (streq(call, "list_containers")) {
        made = runtime_list_containers(r, id, on_containers, a);
    } else if (streq(call, "update_resources")) {
        made = runtime_update_resources(r, id, &c.resources, on_done, a);
    } else if (streq(call, "reopen_log")) {
        made = runtime_reopen_log(r, id, on_done, a);
    } else if (streq(call, "exec_sync")) {
        made =
            runtime_exec_sync(r, id, cmd.v, cmd.n, (uint32_t) number(line, "timeout"), on_exec, a);
    } else if (streq(call, "exec")) {
        made = runtime_exec(r, id, &streams, cmd.v, cmd.n, on_id, a);
    } else if (streq(call, "attach")) {
        made = runtime_attach(r, id, &streams, on_id, a);
    } else if (streq(call, "port_forward")) {
        made = runtime_port_forward(r, id, &port, 1, on_id, a);
    } else if (streq(call, "list_images")) {
        made = runtime_list_images(r, on_images, a);
    } else if (streq(call, "get_image")) {
        made = runtime_get_image(r, id, on_images, a);
    } else if (streq(call, "pull_image")) {
        made = runtime_pull_image(r, id, NULL, &s, on_id, a);
    } else if (streq(call, "remove_image")) {
        made = runtime_remove_image(r, id, on_done, a);
    } else if (streq(call, "image_filesystems")) {
        made = runtime_image_filesystems(r, on_usage, a);
    }
    CHECK(made, "no call is named %s", call);
    free_texts(&cmd);
    sandbox_free(&s);
    container_free(&c);
    return made;
}

static void run_line(struct driver *d, const char *p, size_t size)
{
    struct json *line;
    struct err e;
    CHECK(json_parse(p, size, &line, &e) == 0, "%s", e.text);
    struct asked *a = NEW(struct asked);
    a->id = number(line, "id");
    begin(d->runtime, json_get_text(line, "call"), line, a);
    json_free(line);
}

static void on_input(void *ctx, unsigned events)
{
    struct driver *d = ctx;
    char buf[65536];
    ssize_t n = read(0, buf, sizeof buf);
    if (n <= 0) {
        d->over = true;
        loop_stop(d->loop);
        return;
    }
    strbuf_add(&d->in, buf, (size_t) n);
    char *end;
    while (d->in.size && (end = memchr(d->in.data, '\n', d->in.size))) {
        size_t size = (size_t) (end - d->in.data);
        run_line(d, d->in.data, size);
        strbuf_consume(&d->in, size + 1);
    }
}

int main(int argc, char **argv)
{
    static const struct runtime_events events = {on_changed, on_resync, on_connection};
    CHECK(argc == 3, "usage: drive_runtime KIND ENDPOINT");
    struct driver d = {.loop = loop_new(), .in = STRBUF_INIT};
    struct err e;
    CHECK(runtime_open(d.loop, argv[1], argv[2], &events, &d, &d.runtime, &e) == 0, "%s", e.text);
    struct loop_fd *in = loop_fd_new(d.loop, 0, LOOP_READ, on_input, &d);
    loop_run(d.loop);
    loop_fd_free(in);
    runtime_free(d.runtime);
    strbuf_done(&d.in);
    loop_free(d.loop);
    return 0;
}
