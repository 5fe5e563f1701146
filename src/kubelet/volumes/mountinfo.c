/* SPDX-License-Identifier: Apache-2.0 */
#include "kubelet/volumes/mountinfo.h"

#include "base/mem.h"
#include "base/str.h"
#include "net/loop/process.h"

#include <sys/mount.h>

#define FILE_MAX (64 << 20)
#define ROUNDS 64

void mount_table_done(struct mount_table *t)
{
    for (size_t i = 0; i < t->n; i++) {
        free(t->v[i].path);
        free(t->v[i].fs_type);
        free(t->v[i].source);
        free(t->v[i].device);
    }
    free(t->v);
    *t = (struct mount_table){0};
}

static bool is_octal(char c)
{
    return c >= '0' && c <= '7';
}

/* The byte of an escape \OOO at 's'; 0: there is none.  The kernel escapes no NUL. */
static int escape_at(const char *s, size_t size)
{
    if (size < 4 || *s != '\\' || s[1] > '3' || !is_octal(s[1]) || !is_octal(s[2]) ||
        !is_octal(s[3])) {
        return 0;
    }
    return (s[1] - '0') * 64 + (s[2] - '0') * 8 + (s[3] - '0');
}

/* The field with its escapes replaced (owned). */
static char *unescape(const char *s, size_t size)
{
    char *out = xmalloc(size + 1), *to = out;
    for (size_t i = 0; i < size; i++) {
        int byte = escape_at(s + i, size - i);
        *to++ = byte ? (char) byte : s[i];
        i += byte ? 3 : 0;
    }
    *to = '\0';
    return out;
}

struct field {
    const char *at;
    size_t size;
};

/* Takes the next field off a line; false: there is none. */
static bool take_field(const char **at, const char *end, struct field *ret)
{
    const char *s = *at;
    while (s < end && *s == ' ') {
        s++;
    }
    ret->at = s;
    while (s < end && *s != ' ') {
        s++;
    }
    ret->size = (size_t) (s - ret->at);
    *at = s;
    return ret->size > 0;
}

static int number(const struct field *f, uint64_t *ret)
{
    CLEANUP_FREE char *text = xstrndup(f->at, f->size);
    return str_to_u64(text, UINT64_MAX, ret);
}

/* "36 35 98:0 /root /mnt rw,noatime [tag...] - ext3 /dev/root rw": 'head' has the first six. */
static int parse_line(const char *at, const char *end, struct mount_entry *ret)
{
    struct field head[6], tag, type, source;
    for (size_t i = 0; i < ARRAY_SIZE(head); i++) {
        if (!take_field(&at, end, &head[i])) {
            return -EINVAL;
        }
    }
    do {
        if (!take_field(&at, end, &tag)) {
            return -EINVAL;
        }
    } while (tag.size != 1 || *tag.at != '-');
    if (!take_field(&at, end, &type) || number(&head[0], &ret->id) < 0 ||
        number(&head[1], &ret->parent) < 0) {
        return -EINVAL;
    }
    /* The source may be empty. */
    bool has_source = take_field(&at, end, &source);
    ret->device = xstrndup(head[2].at, head[2].size);
    ret->path = unescape(head[4].at, head[4].size);
    ret->fs_type = unescape(type.at, type.size);
    ret->source = has_source ? unescape(source.at, source.size) : xstrdup("");
    return 0;
}

int mount_table_parse(const char *text, size_t size, struct mount_table *ret, struct err *e)
{
    CLEANUP(mount_table_done) struct mount_table t = {0};
    const char *end = text + size;
    for (size_t n = 1; text < end; n++) {
        const char *line = memchr(text, '\n', (size_t) (end - text));
        line = line ? line : end;
        struct mount_entry entry = {0};
        if (memchr(text, '\0', (size_t) (line - text)) || parse_line(text, line, &entry) < 0) {
            return err_set(e, -EINVAL, "mountinfo: line %zu has an unknown form", n);
        }
        t.v = grow(t.v, &t.cap, t.n + 1, sizeof *t.v);
        t.v[t.n++] = entry;
        text = line + (line < end);
    }
    *ret = t;
    t = (struct mount_table){0};
    return 0;
}

int mount_table_read(struct mount_table *ret, struct err *e)
{
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    int r = file_read("/proc/self/mountinfo", FILE_MAX, &text, e);
    return r < 0 ? r : mount_table_parse(strbuf_cstr(&text), text.size, ret, e);
}

bool mount_path_is_below(const char *path, const char *top)
{
    size_t n = strlen(top);
    return strncmp(path, top, n) == 0 && (!path[n] || path[n] == '/' || streq(top, "/"));
}

static bool is_of_network(const char *fs_type)
{
    static const char *const types[] = {"nfs", "cifs", "smb", "ceph", "gluster", "fuse", "9p"};
    for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
        if (str_has_prefix(fs_type, types[i])) {
            return true;
        }
    }
    return false;
}

static int unmount(const struct mount_entry *m, struct err *e)
{
    int flags = UMOUNT_NOFOLLOW | (is_of_network(m->fs_type) ? MNT_DETACH : 0);
    if (umount2(m->path, flags) == 0 || errno == EINVAL || errno == ENOENT) {
        return 0;
    }
    return umount2(m->path, UMOUNT_NOFOLLOW | MNT_DETACH) == 0
               ? 0
               : err_sys(e, -errno, "unmount %s", m->path);
}

static int by_depth(const void *a, const void *b)
{
    const struct mount_entry *x = *(const struct mount_entry *const *) a;
    const struct mount_entry *y = *(const struct mount_entry *const *) b;
    size_t nx = strlen(x->path), ny = strlen(y->path);
    /* Later entries, at higher addresses of the table, were mounted over earlier ones. */
    return nx != ny ? (nx < ny ? 1 : -1) : (x < y) - (x > y);
}

int mount_remove_below(const char *top, struct err *e)
{
    for (int round = 0; round < ROUNDS; round++) {
        CLEANUP(mount_table_done) struct mount_table t = {0};
        int r = mount_table_read(&t, e);
        size_t n = 0;
        if (r < 0) {
            return r;
        }
        CLEANUP_FREE const struct mount_entry **below = xcalloc(t.n + 1, sizeof(void *));
        for (size_t i = 0; i < t.n; i++) {
            if (mount_path_is_below(t.v[i].path, top)) {
                below[n++] = &t.v[i];
            }
        }
        if (n == 0) {
            return 0;
        }
        qsort(below, n, sizeof(void *), by_depth);
        for (size_t i = 0; i < n; i++) {
            r = unmount(below[i], e);
            if (r < 0) {
                return r;
            }
        }
    }
    return err_set(e, -EBUSY, "mounts below %s appear anew again and again", top);
}
