/* SPDX-License-Identifier: Apache-2.0 */
/* A CSI driver for tests: volumes are directories of DIR/volumes, which are bound to where they are asked for.
 *
 *     serve_csi NAME NODE DIR CSI_SOCKET [REGISTRATION_SOCKET]
 *
 * Each call is a line of JSON in DIR/calls: the method and what it was given.  The file DIR/fail-METHOD
 * ("14 text") makes a method fail, DIR/hang-METHOD makes it never answer, DIR/no-stage lets the driver have
 * no staging, and DIR/junk-METHOD makes the bytes in it the answer.  A volume of the mode Block is the device
 * whose path is in DIR/device-ID.  It ends with SIGTERM. */
#include "base/mem.h"
#include "check.h"
#include "grpc_server.h"
#include "kubelet/csi/messages.h"
#include "kubelet/volumes/tree.h"
#include "net/loop/process.h"
#include "wire/json.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define STORE_MAX ((size_t) 16 << 20)

static const char *driver_name, *node_name, *dir, *csi_socket;
static struct loop *loop;

static char *in_dir(const char *fmt, const char *name)
{
    CLEANUP_FREE char *rest = xasprintf(fmt, name);
    return xasprintf("%s/%s", dir, rest);
}

static bool has_file(const char *fmt, const char *name)
{
    CLEANUP_FREE char *path = in_dir(fmt, name);
    return access(path, F_OK) == 0;
}

/* ---- calls ---- */

struct call {
    struct grpc_request *q;
    enum csi_method_id method;
    struct json *log;
};

static void answer(const struct call *c, const void *message)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    pb_format(&b, csi_methods[c->method].response, message);
    grpc_request_send(c->q, &b);
    grpc_request_end(c->q, GRPC_OK, NULL);
}

static void answer_empty(const struct call *c)
{
    answer(c, "");
}

static void log_pairs(const struct call *c, const char *key, struct runtime_pairs pairs)
{
    struct json *o = json_set(c->log, key, json_object());
    for (size_t i = 0; i < pairs.n; i++) {
        json_set_string(o, pairs.v[i].key, pairs.v[i].value);
    }
}

static void log_capability(const struct call *c, const struct csi_capability *v)
{
    json_set_int(c->log, "mode", v->mode);
    json_set_bool(c->log, "block", v->is_block);
    json_set_string(c->log, "fsType", v->fs_type ? v->fs_type : "");
    struct json *flags = json_set(c->log, "flags", json_array());
    for (size_t i = 0; i < v->flags.n; i++) {
        json_append(flags, json_string(v->flags.v[i]));
    }
}

static void write_log(const struct call *c)
{
    CLEANUP_FREE char *path = in_dir("%s", "calls");
    CLEANUP_FREE char *text = json_to_text(c->log);
    CLEANUP_FREE char *line = xasprintf("%s\n", text);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    CHECK(fd >= 0 && write(fd, line, strlen(line)) == (ssize_t) strlen(line), "write %s", path);
    close(fd);
}

static void refuse(const struct call *c, enum grpc_status status, const char *text)
{
    grpc_request_end(c->q, status, text);
}

/* ---- volumes ---- */

static char *volume_dir_of(const char *id)
{
    return xasprintf("%s/volumes/%s", dir, id);
}

static bool bind(const char *from, const char *to, bool readonly)
{
    if (tree_is_mount_point(AT_FDCWD, to)) {
        return true;
    }
    if (mkdir(to, 0750) < 0 && errno != EEXIST) {
        return false;
    }
    return mount(from, to, NULL, MS_BIND, NULL) == 0 &&
           (!readonly || mount(NULL, to, NULL, MS_BIND | MS_REMOUNT | MS_RDONLY, NULL) == 0);
}

static void unbind(const char *path, bool removes)
{
    while (umount2(path, UMOUNT_NOFOLLOW) == 0) {
    }
    if (removes) {
        remove(path);
    }
}

/* Binds the device that DIR/device-ID names onto a file. */
static bool bind_device(const char *id, const char *to)
{
    CLEANUP_FREE char *path = in_dir("device-%s", id);
    CLEANUP_STRBUF struct strbuf device = STRBUF_INIT;
    if (tree_is_mount_point(AT_FDCWD, to)) {
        return true;
    }
    int fd = open(to, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || file_read(path, 4096, &device, NULL) < 0) {
        fd_close(fd);
        return false;
    }
    close(fd);
    return mount(strbuf_cstr(&device), to, NULL, MS_BIND, NULL) == 0;
}

static void node_stage(const struct call *c, const struct csi_node_stage *q)
{
    CLEANUP_FREE char *from = volume_dir_of(q->id);
    json_set_string(c->log, "volume", q->id);
    json_set_string(c->log, "staging", q->staging_path);
    log_pairs(c, "publishContext", q->publish_context);
    log_pairs(c, "secrets", q->secrets);
    log_pairs(c, "context", q->context);
    log_capability(c, &q->capability);
    if (q->capability.is_block) {
        answer_empty(c);
    } else if (access(from, F_OK) < 0) {
        refuse(c, GRPC_NOT_FOUND, "no such volume");
    } else if (!bind(from, q->staging_path, false)) {
        refuse(c, GRPC_INTERNAL, strerror(errno));
    } else {
        answer_empty(c);
    }
}

static void node_publish(const struct call *c, const struct csi_node_publish *q)
{
    CLEANUP_FREE char *own = volume_dir_of(q->id);
    json_set_string(c->log, "volume", q->id);
    json_set_string(c->log, "target", q->target_path);
    json_set_bool(c->log, "readonly", q->readonly);
    log_pairs(c, "publishContext", q->publish_context);
    log_pairs(c, "secrets", q->secrets);
    log_pairs(c, "context", q->context);
    log_capability(c, &q->capability);
    if (!*q->staging_path) {
        mkdir(own, 0777);
    }
    const char *from = *q->staging_path ? q->staging_path : own;
    if (!(q->capability.is_block ? bind_device(q->id, q->target_path)
                                 : bind(from, q->target_path, q->readonly))) {
        refuse(c, GRPC_INTERNAL, strerror(errno));
    } else {
        answer_empty(c);
    }
}

static void node_stats(const struct call *c, const struct csi_node_stats *q)
{
    const struct csi_usage v[] = {{.available = 600, .total = 1000, .used = 400, .unit = 1},
                                  {.available = 90, .total = 100, .used = 10, .unit = 2}};
    json_set_string(c->log, "volume", q->id);
    answer(c, &(struct csi_usages){.v = v, .n = 2});
}

static void create_volume(const struct call *c, const struct csi_create_volume *q)
{
    CLEANUP_FREE char *id = xasprintf("id-%s", q->name);
    CLEANUP_FREE char *path = volume_dir_of(id);
    const struct runtime_pair context[] = {{"made-by", "serve_csi"}};
    json_set_string(c->log, "name", q->name);
    json_set_int(c->log, "bytes", q->required_bytes);
    log_pairs(c, "parameters", q->parameters);
    log_pairs(c, "secrets", q->secrets);
    log_capability(c, q->n_capabilities ? q->capabilities : &(struct csi_capability){0});
    json_set_int(c->log, "requisite", (int64_t) q->n_requisite);
    if (mkdir(path, 0777) < 0 && errno != EEXIST) {
        refuse(c, GRPC_INTERNAL, strerror(errno));
        return;
    }
    chmod(path, 0777);
    answer(c, &(struct csi_volume){
                  .capacity_bytes = q->required_bytes, .id = id, .context = {context, 1}});
}

static void delete_volume(const struct call *c, const char *id)
{
    CLEANUP_FREE char *path = volume_dir_of(id);
    json_set_string(c->log, "volume", id);
    if (dir_remove(path, NULL) < 0) {
        refuse(c, GRPC_FAILED_PRECONDITION, "the volume is in use");
    } else {
        answer_empty(c);
    }
}

/* A volume is attached to one node at a time. */
static void controller_publish(const struct call *c, const struct csi_controller_publish *q)
{
    CLEANUP_FREE char *path = in_dir("attached-%s", q->id);
    CLEANUP_STRBUF struct strbuf now = STRBUF_INIT;
    const struct runtime_pair context[] = {{"device", "/dev/none"}, {"node", q->node_id}};
    json_set_string(c->log, "volume", q->id);
    json_set_string(c->log, "node", q->node_id);
    log_pairs(c, "secrets", q->secrets);
    if (file_read(path, 4096, &now, NULL) == 0 && !streq(strbuf_cstr(&now), q->node_id)) {
        refuse(c, GRPC_FAILED_PRECONDITION, "the volume is attached to another node");
        return;
    }
    CHECK(file_write_unsynced(path, q->node_id, strlen(q->node_id), 0600, NULL) == 0, "%s", path);
    answer(c, &(struct csi_publish_context){.context = {context, 2}});
}

static void identity(const struct call *c)
{
    static const char *const versions[] = {"1.0.0"};
    static const struct csi_plugin_ability services[] = {{1}};
    static const struct csi_ability controller[] = {
        {CSI_CAN_CREATE_DELETE}, {CSI_CAN_PUBLISH}, {CSI_CAN_EXPAND}};
    static const struct csi_ability node[] = {
        {CSI_NODE_CAN_STATS}, {CSI_NODE_CAN_EXPAND}, {CSI_NODE_CAN_STAGE}};
    const struct runtime_pair segments[] = {{"test.tenet.io/node", node_name}};
    switch (c->method) {
    case CSI_PLUGIN_GET_INFO:
        answer(c, &(struct csi_registration){.type = "CSIPlugin",
                                             .name = driver_name,
                                             .endpoint = csi_socket,
                                             .versions = {versions, 1}});
        return;
    case CSI_GET_PLUGIN_INFO:
        answer(c, &(struct csi_plugin_info){driver_name, "1"});
        return;
    case CSI_GET_PLUGIN_CAPABILITIES:
        answer(c, &(struct csi_plugin_abilities){services, 1});
        return;
    case CSI_PROBE:
        answer(c, &(struct csi_probe){true, true});
        return;
    case CSI_CONTROLLER_GET_CAPABILITIES:
        answer(c, &(struct csi_abilities){controller, ARRAY_SIZE(controller)});
        return;
    case CSI_NODE_GET_CAPABILITIES:
        answer(c, &(struct csi_abilities){node,
                                          ARRAY_SIZE(node) - (has_file("%s", "no-stage") ? 1 : 0)});
        return;
    default:
        answer(c, &(struct csi_node_info){
                      .node_id = node_name, .max_volumes = 7, .topology = {{segments, 1}}});
        return;
    }
}

union request {
    struct csi_registration_status status;
    struct csi_create_volume create;
    struct csi_delete_volume delete;
    struct csi_controller_publish controller_publish;
    struct csi_controller_unpublish controller_unpublish;
    struct csi_controller_expand controller_expand;
    struct csi_node_stage stage;
    struct csi_node_unstage unstage;
    struct csi_node_publish publish;
    struct csi_node_unpublish unpublish;
    struct csi_node_stats stats;
    struct csi_node_expand expand;
};

static void run(const struct call *c, const union request *q)
{
    CLEANUP_FREE char *attached = NULL;
    switch (c->method) {
    case CSI_PLUGIN_NOTIFY:
        json_set_bool(c->log, "registered", q->status.registered);
        json_set_string(c->log, "error", q->status.error);
        answer_empty(c);
        return;
    case CSI_CREATE_VOLUME:
        create_volume(c, &q->create);
        return;
    case CSI_DELETE_VOLUME:
        log_pairs(c, "secrets", q->delete.secrets);
        delete_volume(c, q->delete.id);
        return;
    case CSI_CONTROLLER_PUBLISH:
        controller_publish(c, &q->controller_publish);
        return;
    case CSI_CONTROLLER_UNPUBLISH:
        attached = in_dir("attached-%s", q->controller_unpublish.id);
        json_set_string(c->log, "volume", q->controller_unpublish.id);
        unlink(attached);
        answer_empty(c);
        return;
    case CSI_CONTROLLER_EXPAND:
        json_set_string(c->log, "volume", q->controller_expand.id);
        json_set_int(c->log, "bytes", q->controller_expand.required_bytes);
        answer(c, &(struct csi_expanded){q->controller_expand.required_bytes, true});
        return;
    case CSI_NODE_STAGE:
        node_stage(c, &q->stage);
        return;
    case CSI_NODE_UNSTAGE:
        json_set_string(c->log, "volume", q->unstage.id);
        unbind(q->unstage.staging_path, false);
        answer_empty(c);
        return;
    case CSI_NODE_PUBLISH:
        node_publish(c, &q->publish);
        return;
    case CSI_NODE_UNPUBLISH:
        json_set_string(c->log, "volume", q->unpublish.id);
        unbind(q->unpublish.target_path, true);
        answer_empty(c);
        return;
    case CSI_NODE_GET_VOLUME_STATS:
        node_stats(c, &q->stats);
        return;
    case CSI_NODE_EXPAND:
        json_set_string(c->log, "volume", q->expand.id);
        json_set_int(c->log, "bytes", q->expand.required_bytes);
        answer(c, &(struct csi_expanded){.capacity_bytes = q->expand.required_bytes});
        return;
    default:
        identity(c);
        return;
    }
}

/* Plays a fault that the test asked for; true: the call is dealt with. */
static bool play_fault(const struct call *c, const char *name)
{
    CLEANUP_FREE char *fail = in_dir("fail-%s", name), *junk = in_dir("junk-%s", name);
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    if (has_file("hang-%s", name)) {
        return true;
    }
    if (file_read(junk, 1 << 22, &text, NULL) == 0) {
        grpc_request_send(c->q, &text);
        grpc_request_end(c->q, GRPC_OK, NULL);
        return true;
    }
    if (file_read(fail, 4096, &text, NULL) < 0) {
        return false;
    }
    const char *space = strchr(strbuf_cstr(&text), ' ');
    refuse(c, (enum grpc_status) strtol(strbuf_cstr(&text), NULL, 10), space ? space + 1 : "");
    return true;
}

static void begun(void *ctx, struct grpc_request *q)
{
    struct call c = {.q = q, .log = json_object()};
    union request request = {0};
    size_t size;
    const char *message = grpc_request_message(q, &size), *path = grpc_request_path(q);
    while (c.method < CSI_METHODS && !streq(csi_methods[c.method].path, path)) {
        c.method++;
    }
    CHECK(c.method < CSI_METHODS, "no method %s", path);
    CLEANUP_PB_STORE struct pb_store store = PB_STORE_INIT(STORE_MAX);
    CHECK(pb_parse(&store, csi_methods[c.method].request, message, size, &request) == 0,
          "%s cannot be read", path);
    const char *name = strrchr(path, '/') + 1;
    json_set_string(c.log, "method", name);
    if (!play_fault(&c, name)) {
        run(&c, &request);
    }
    write_log(&c);
    json_free(c.log);
}

static void gone(void *ctx, struct grpc_request *q)
{
}

static void on_term(void *ctx)
{
    loop_stop(loop);
}

int main(int argc, char **argv)
{
    static const struct grpc_server_ops ops = {begun, gone};
    if (argc < 5) {
        fprintf(stderr, "usage: serve_csi NAME NODE DIR CSI_SOCKET [REGISTRATION_SOCKET]\n");
        return 2;
    }
    driver_name = argv[1];
    node_name = argv[2];
    dir = argv[3];
    csi_socket = argv[4];
    CLEANUP_FREE char *volumes = in_dir("%s", "volumes");
    mkdir(volumes, 0755);
    loop = loop_new();
    struct loop_signal *term = loop_signal_new(loop, SIGTERM, on_term, NULL);
    unlink(csi_socket);
    struct grpc_server *csi = grpc_server_new(loop, csi_socket, &ops, NULL);
    struct grpc_server *registration = NULL;
    if (argc > 5) {
        unlink(argv[5]);
        registration = grpc_server_new(loop, argv[5], &ops, NULL);
    }
    printf("ready\n");
    fflush(stdout);
    loop_run(loop);
    if (registration) {
        grpc_server_free(registration);
    }
    grpc_server_free(csi);
    loop_signal_free(term);
    loop_free(loop);
    return 0;
}
