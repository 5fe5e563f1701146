/* SPDX-License-Identifier: Apache-2.0 */
#include "kubelet/volumes/device_plan.h"

#include "base/mem.h"
#include "kubelet/csi/parts.h"

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"
#define TEXT_MAX 253
#define LUN_MAX 16383

void device_plan_done(struct device_plan *p)
{
    free(p->id);
    free(p->path);
    json_free(p->attach);
    json_free(p->detach);
    *p = (struct device_plan){0};
}

/* Whether the text has these characters only, and does not begin as an option or a hidden file. */
static bool is_of(const char *text, const char *characters)
{
    size_t n = strlen(text);
    return n > 0 && n <= TEXT_MAX && *text != '-' && *text != '.' && strspn(text, characters) == n;
}

/* Appends a command line, whose words end with NULL. */
static void add(struct json *list, const char *const *words)
{
    struct json *argv = json_append(list, json_array());
    for (; *words; words++) {
        json_append(argv, json_string(*words));
    }
}

static void begin(struct device_plan *p, const struct json *source)
{
    const char *type = json_get_text(source, "fsType");
    *p = (struct device_plan){.attach = json_array(),
                              .detach = json_array(),
                              .readonly = json_get_bool(json_get(source, "readOnly"), false),
                              .fs_type = *type ? type : "ext4"};
}

static int check_fs_type(const struct json *source, struct err *e)
{
    const char *type = json_get_text(source, "fsType");
    return !*type || is_of(type, LETTERS DIGITS)
               ? 0
               : err_set(e, -EINVAL, "fsType: invalid value %.64s", type);
}

/* "address:port" (owned), with iSCSI's port when the text has none; NULL: it is no address. */
static char *portal_of(const char *text)
{
    const char *colon = strrchr(text, ':');
    bool bracket = *text == '[';
    if (!is_of(text, LETTERS DIGITS ".:-[]")) {
        return NULL;
    }
    bool has_port = colon && (bracket ? colon[-1] == ']' : strchr(text, ':') == colon);
    return has_port ? xstrdup(text) : xasprintf("%s:3260", text);
}

int iscsi_plan(const struct json *source, bool has_key, struct device_plan *ret, struct err *e)
{
    const char *iqn = json_get_text(source, "iqn");
    const char *interface = json_get_text(source, "iscsiInterface");
    int64_t lun = json_get_int_or(json_get(source, "lun"), -1);
    CLEANUP_FREE char *portal = portal_of(json_get_text(source, "targetPortal"));
    interface = *interface ? interface : "default";
    if (json_get_bool(json_get(source, "chapAuthDiscovery"), false) ||
        json_get_bool(json_get(source, "chapAuthSession"), false) || has_key) {
        /* iscsiadm(8) takes the password on its command line, where every user of the node sees it. */
        return err_set(e, -EOPNOTSUPP, "iscsi: CHAP is not supported on this node");
    }
    if (!is_of(iqn, LETTERS DIGITS ".:-") || !is_of(interface, LETTERS DIGITS "._-") || !portal ||
        lun < 0 || lun > LUN_MAX) {
        return err_set(e, -EINVAL, "iscsi: invalid targetPortal, iqn, iscsiInterface or lun");
    }
    int r = check_fs_type(source, e);
    if (r < 0) {
        return err_prefix(e, "iscsi");
    }
    begin(ret, source);
    const char *discover[] = {"iscsiadm", "-m", "discoverydb", "-t",         "sendtargets", "-p",
                              portal,     "-I", interface,     "--discover", NULL};
    const char *login[] = {"iscsiadm", "-m", "node",    "-p",      portal, "-T",
                           iqn,        "-I", interface, "--login", NULL};
    const char *logout[] = {"iscsiadm", "-m", "node",    "-p",       portal, "-T",
                            iqn,        "-I", interface, "--logout", NULL};
    const char *forget[] = {"iscsiadm", "-m", "node",    "-p", portal,   "-T",
                            iqn,        "-I", interface, "-o", "delete", NULL};
    add(ret->attach, discover);
    add(ret->attach, login);
    add(ret->detach, logout);
    add(ret->detach, forget);
    ret->path =
        xasprintf("/dev/disk/by-path/*ip-%s-iscsi-%s-lun-%lld", portal, iqn, (long long) lun);
    CLEANUP_FREE char *text = xasprintf("%s %s %lld", portal, iqn, (long long) lun);
    ret->id = csi_hash(text);
    return 0;
}

int fc_plan(const struct json *source, bool has_key, struct device_plan *ret, struct err *e)
{
    const char *wwn = json_get_string(json_at(json_get(source, "targetWWNs"), 0));
    const char *wwid = json_get_string(json_at(json_get(source, "wwids"), 0));
    int64_t lun = json_get_int_or(json_get(source, "lun"), -1);
    bool by_target = wwn && is_of(wwn, DIGITS "abcdefABCDEF") && lun >= 0 && lun <= LUN_MAX;
    if (!by_target && (!wwid || !is_of(wwid, LETTERS DIGITS "_-"))) {
        return err_set(e, -EINVAL, "fc: invalid targetWWNs and lun, or wwids");
    }
    int r = check_fs_type(source, e);
    if (r < 0) {
        return err_prefix(e, "fc");
    }
    begin(ret, source);
    ret->rescans = true;
    ret->path = by_target ? xasprintf("/dev/disk/by-path/*-fc-0x%s-lun-%lld", wwn, (long long) lun)
                          : xasprintf("/dev/disk/by-id/scsi-%s", wwid);
    ret->id = csi_hash(ret->path);
    return 0;
}

/* "host:port,..." (owned); NULL: a monitor is no address. */
static char *monitors_of(const struct json *source)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT_MAX(4096);
    const struct json *m;
    JSON_FOREACH (m, json_get(source, "monitors")) {
        const char *text = json_get_string(m);
        if (!text || !is_of(text, LETTERS DIGITS ".:-[]")) {
            return NULL;
        }
        strbuf_addf(&b, "%s%s", b.size ? "," : "", text);
    }
    return b.size && !b.failed ? strbuf_steal(&b) : NULL;
}

int rbd_plan(const struct json *source, bool has_key, struct device_plan *ret, struct err *e)
{
    const char *image = json_get_text(source, "image"), *pool = json_get_text(source, "pool");
    const char *user = json_get_text(source, "user"), *ring = json_get_text(source, "keyring");
    CLEANUP_FREE char *monitors = monitors_of(source);
    CLEANUP_FREE char *ring_end = xasprintf("%s/", ring);
    pool = *pool ? pool : "rbd";
    user = *user ? user : "admin";
    if (!is_of(image, LETTERS DIGITS "._-") || !is_of(pool, LETTERS DIGITS "._-") ||
        !is_of(user, LETTERS DIGITS "._-") || !monitors) {
        return err_set(e, -EINVAL, "rbd: invalid monitors, image, pool or user");
    }
    if (*ring && (*ring != '/' || strstr(ring_end, "/../") || strlen(ring) > TEXT_MAX ||
                  strpbrk(ring, "\n\r\t"))) {
        return err_set(e, -EINVAL, "rbd: invalid keyring");
    }
    int r = check_fs_type(source, e);
    if (r < 0) {
        return err_prefix(e, "rbd");
    }
    begin(ret, source);
    const char *map[] = {"rbd",
                         "map",
                         image,
                         "--pool",
                         pool,
                         "--id",
                         user,
                         "-m",
                         monitors,
                         has_key ? "--keyfile" : "--keyring",
                         has_key ? "/proc/self/fd/3"
                         : *ring ? ring
                                 : "/etc/ceph/keyring",
                         ret->readonly ? "--read-only" : NULL,
                         NULL};
    const char *unmap[] = {"rbd", "unmap", image, "--pool", pool, "--id", user, NULL};
    add(ret->attach, map);
    add(ret->detach, unmap);
    ret->takes_key = has_key;
    ret->prints_path = true;
    ret->path = xasprintf("/dev/rbd/%s/%s", pool, image);
    CLEANUP_FREE char *text = xasprintf("%s %s %s", monitors, pool, image);
    ret->id = csi_hash(text);
    return 0;
}
