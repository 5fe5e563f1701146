/* SPDX-License-Identifier: Apache-2.0 */
#include "datapath/record.h"

#include "base/mem.h"
#include "net/loop/process.h"
#include "wire/json.h"

#include <dirent.h>
#include <stdio.h>
#include <unistd.h>

#define SUFFIX ".json"
#define FILE_MAX 65536

/* ---- text ---- */

char *record_format(const struct dp_pod *p)
{
    CLEANUP(json_free) struct json *v = json_object();
    json_set_string(v, "containerID", p->container_id);
    json_set_string(v, "ifname", p->ifname);
    json_set_string(v, "namespace", p->pod_namespace);
    json_set_string(v, "name", p->pod_name);
    json_set_string(v, "netns", p->netns);
    json_set_string(v, "link", p->host_if);
    json_set_string(v, "ip", IP4_TEXT(p->ip));
    json_set_string(v, "mac", MAC_TEXT(p->mac));
    json_set_int(v, "vnid", p->vnid);
    if (p->has_also_vnid) {
        json_set_int(v, "alsoVNID", p->also_vnid);
    }
    json_set_string(v, "hostPorts", p->host_ports);
    json_set_string(v, "bandwidth", p->bandwidth);
    return json_to_text(v);
}

static char *get(const struct json *v, const char *key)
{
    const char *s = json_get_string(json_get(v, key));
    return s ? xstrdup(s) : NULL;
}

static bool get_vnid(const struct json *v, const char *key, uint32_t *ret)
{
    int64_t id = json_get_int_or(json_get(v, key), -1);
    if (id < 0 || id > SDN_VNID_MAX) {
        return false;
    }
    *ret = (uint32_t) id;
    return true;
}

int record_parse(const char *text, size_t size, struct dp_pod **ret, struct err *e)
{
    CLEANUP(json_free) struct json *v = NULL;
    CLEANUP(dp_pod_free) struct dp_pod *p = NEW(struct dp_pod);
    int r = json_parse(text, size, &v, e);
    if (r < 0) {
        return r;
    }
    p->container_id = get(v, "containerID");
    p->ifname = get(v, "ifname");
    p->pod_namespace = get(v, "namespace");
    p->pod_name = get(v, "name");
    p->netns = get(v, "netns");
    p->host_ports = get(v, "hostPorts");
    p->bandwidth = get(v, "bandwidth");
    const char *link = json_get_string(json_get(v, "link"));
    const char *ip = json_get_string(json_get(v, "ip"));
    const char *mac = json_get_string(json_get(v, "mac"));
    if (!p->container_id || !p->ifname) {
        return err_set(e, -EINVAL, "containerID or ifname is missing");
    }
    if (!link || !*link || strlen(link) >= sizeof p->host_if || strchr(link, '/')) {
        return err_set(e, -EINVAL, "link is missing or no name of a link");
    }
    if (!ip || ip4_parse(ip, &p->ip) < 0 || !mac || mac_parse(mac, &p->mac) < 0) {
        return err_set(e, -EINVAL, "ip or mac is missing or no address");
    }
    if (!get_vnid(v, "vnid", &p->vnid)) {
        return err_set(e, -EINVAL, "vnid is missing or not in 0-%u", SDN_VNID_MAX);
    }
    p->has_also_vnid = json_get(v, "alsoVNID") != NULL;
    if (p->has_also_vnid && !get_vnid(v, "alsoVNID", &p->also_vnid)) {
        return err_set(e, -EINVAL, "alsoVNID is not in 0-%u", SDN_VNID_MAX);
    }
    snprintf(p->host_if, sizeof p->host_if, "%s", link);
    snprintf(p->port, sizeof p->port, "%s", link);
    *ret = TAKE(p);
    return 0;
}

/* ---- files ---- */

static char *path_of(const char *dir, const struct dp_pod *p)
{
    return xasprintf("%s/%s" SUFFIX, dir, p->host_if);
}

int record_write(const char *dir, const struct dp_pod *p, struct err *e)
{
    CLEANUP_FREE char *path = path_of(dir, p);
    CLEANUP_FREE char *text = record_format(p);
    int r = file_write_unsynced(path, text, strlen(text), 0600, e);
    if (r == -ENOENT && (r = dir_make(dir, 0700, e)) == 0) {
        r = file_write_unsynced(path, text, strlen(text), 0600, e);
    }
    return r;
}

int record_remove(const char *dir, const struct dp_pod *p, struct err *e)
{
    CLEANUP_FREE char *path = path_of(dir, p);
    return unlink(path) < 0 && errno != ENOENT ? err_sys(e, -errno, "remove %s", path) : 0;
}

int record_read_all(const char *dir, void (*bad)(void *ctx, const char *file, const char *why),
                    void *ctx, struct dp_pod ***ret, size_t *ret_n, struct err *e)
{
    struct dp_pod **pods = NULL;
    size_t n = 0, cap = 0;
    DIR *d = opendir(dir);
    if (!d && errno != ENOENT) {
        return err_sys(e, -errno, "open %s", dir);
    }
    struct dirent *ent;
    while (d && (ent = readdir(d))) {
        if (ent->d_name[0] == '.' || !str_has_suffix(ent->d_name, SUFFIX)) {
            continue; /* A temporary file of an interrupted write. */
        }
        CLEANUP_FREE char *path = xasprintf("%s/%s", dir, ent->d_name);
        CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
        struct dp_pod *p = NULL;
        struct err why = {0};
        if (file_read(path, FILE_MAX, &text, &why) < 0 ||
            record_parse(strbuf_cstr(&text), text.size, &p, &why) < 0) {
            bad(ctx, path, why.text);
            continue;
        }
        pods = grow(pods, &cap, n + 1, sizeof(struct dp_pod *));
        pods[n++] = p;
    }
    if (d) {
        closedir(d);
    }
    *ret = pods;
    *ret_n = n;
    return 0;
}
