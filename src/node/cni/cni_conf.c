/* SPDX-License-Identifier: Apache-2.0 */
#include "node/cni/cni_conf.h"

#include "base/mem.h"
#include "net/loop/process.h"
#include "wire/cni.h"

#include <unistd.h>

#define PORTS "portMappings"
#define BANDWIDTH "bandwidth"

static char *path_of(const struct cni_conf *c, bool list)
{
    return xasprintf("%s/%s%s", c->dir, c->name, list ? "list" : "");
}

static bool is_list(const struct cni_conf *c)
{
    return c->portmap || c->bandwidth;
}

char *cni_conf_path(const struct cni_conf *c)
{
    return path_of(c, is_list(c));
}

/* CNI runtimes older than 1.1.0 refuse "cniVersions"; later ones take the highest version that both
 * sides know. */
static void add_head(struct json *conf)
{
    json_set_string(conf, "cniVersion", cni_versions[CNI_1_0_0]);
    struct json *versions = json_set(conf, "cniVersions", json_array());
    for (size_t i = 0; i < CNI_N_VERSIONS; i++) {
        json_append(versions, json_string(cni_versions[i]));
    }
    json_set_string(conf, "name", "tenet");
}

/* A capability that the runtime passes goes to the plug-in that implements it. */
static void add_own(const struct cni_conf *c, struct json *plugin)
{
    json_set_string(plugin, "type", "tenet-cni");
    json_set_string(plugin, "socket", c->socket);
    if (is_list(c)) {
        struct json *chained = json_set(plugin, "chained", json_array());
        if (c->portmap) {
            json_append(chained, json_string("portmap"));
        }
        if (c->bandwidth) {
            json_append(chained, json_string("bandwidth"));
        }
    }
    if (!c->portmap || !c->bandwidth) {
        struct json *capabilities = json_set(plugin, "capabilities", json_object());
        if (!c->portmap) {
            json_set_bool(capabilities, PORTS, true);
        }
        if (!c->bandwidth) {
            json_set_bool(capabilities, BANDWIDTH, true);
        }
    }
}

static void add_chained(struct json *plugins, const char *type, const char *capability)
{
    struct json *plugin = json_append(plugins, json_object());
    json_set_string(plugin, "type", type);
    json_set_bool(json_ensure_object(plugin, "capabilities"), capability, true);
}

void cni_conf_text(const struct cni_conf *c, struct strbuf *out)
{
    CLEANUP(json_free) struct json *conf = json_object();
    add_head(conf);
    if (is_list(c)) {
        struct json *plugins = json_set(conf, "plugins", json_array());
        add_own(c, json_append(plugins, json_object()));
        if (c->portmap) {
            add_chained(plugins, "portmap", PORTS);
        }
        if (c->bandwidth) {
            add_chained(plugins, "bandwidth", BANDWIDTH);
        }
    } else {
        add_own(c, conf);
    }
    json_write(conf, 2, out);
    strbuf_addc(out, '\n');
}

int cni_conf_write(const struct cni_conf *c, struct err *e)
{
    CLEANUP_FREE char *path = cni_conf_path(c);
    CLEANUP_FREE char *other = path_of(c, !is_list(c));
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    cni_conf_text(c, &text);
    int r = dir_make(c->dir, 0755, e);
    r = r < 0 ? r : file_write_atomic(path, text.data, text.size, 0600, e);
    if (r == 0) {
        unlink(other);
    }
    return r;
}

void cni_conf_remove(const struct cni_conf *c)
{
    for (int i = 0; i < 2; i++) {
        CLEANUP_FREE char *path = path_of(c, i);
        unlink(path);
    }
}
