/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/setup/setup_files.h"

#include "base/mem.h"
#include "net/loop/process.h"
#include "wire/json.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define LIST_NAME "setup.json"
#define LIST_MAX (1u << 20)
#define FILE_MAX (4u << 20)
#define HASH_SIZE 17
#define SUFFIX_SIZE 6

struct setup_files {
    char *path; /* Of the list. */
    int lock;   /* The folder. */
    struct json *doc;
};

/* The folder of the list. */
static char *folder_of(const struct setup_files *f)
{
    return xstrndup(f->path, strlen(f->path) - strlen("/" LIST_NAME));
}

struct setup_files *setup_files_free(struct setup_files *f)
{
    if (f) {
        if (f->doc && json_get_bool(json_get(f->doc, "made"), false) &&
            json_count(json_get(f->doc, "files")) == 0) {
            CLEANUP_FREE char *dir = folder_of(f);
            (void) rmdir(dir); /* It stays when it has files of others. */
        }
        fd_close(f->lock);
        json_free(f->doc);
        free(f->path);
        free(f);
    }
    return NULL;
}

/* Whether 'name' is the temporary file of a write to "DIR/BASE" that was killed: BASE and a suffix
 * of file_write_atomic. */
static bool is_leftover(const char *name, const char *base)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    size_t n = strlen(base);
    return str_has_prefix(name, base) && name[n] == '.' && strlen(name + n + 1) == SUFFIX_SIZE &&
           strspn(name + n + 1, letters) == SUFFIX_SIZE;
}

/* Removes what killed writes left in the folder, keys and tokens among them. */
static void sweep(const struct setup_files *f, const char *dir)
{
    DIR *d = opendir(dir);
    struct dirent *ent;
    while (d && (ent = readdir(d))) {
        const struct json *item;
        bool ours = is_leftover(ent->d_name, LIST_NAME);
        JSON_FOREACH (item, json_get(f->doc, "files")) {
            const char *path = json_get_text(item, "path"), *slash = strrchr(path, '/');
            ours |= slash && strlen(dir) == (size_t) (slash - path) && str_has_prefix(path, dir) &&
                    is_leftover(ent->d_name, slash + 1);
        }
        if (ours) {
            unlinkat(dirfd(d), ent->d_name, 0);
        }
    }
    if (d) {
        closedir(d);
    }
}

int setup_files_open(const char *dir, struct setup_files **ret, struct err *e)
{
    bool made = access(dir, F_OK) < 0;
    int r = dir_make(dir, 0755, e);
    if (r < 0) {
        return r;
    }
    CLEANUP(setup_files_free) struct setup_files *f = NEW(struct setup_files);
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    f->path = xasprintf("%s/" LIST_NAME, dir);
    f->lock = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (f->lock < 0) {
        return err_sys(e, -errno, "open %s", dir);
    }
    if (flock(f->lock, LOCK_EX | LOCK_NB) < 0) {
        return err_set(e, -EBUSY, "another \"tenet setup\" works on %s", dir);
    }
    r = file_read(f->path, LIST_MAX, &text, e);
    if (r == -ENOENT) {
        f->doc = json_object();
        if (made) {
            json_set_bool(f->doc, "made", true);
        }
        json_ensure_array(f->doc, "files");
    } else if (r < 0) {
        return r;
    } else if ((r = json_parse(strbuf_cstr(&text), text.size, &f->doc, e)) < 0) {
        return err_prefix(e, "%s", f->path), r;
    } else if (!json_is(json_get(f->doc, "files"), JSON_ARRAY)) {
        return err_set(e, -EINVAL, "%s: files: must be a list", f->path);
    }
    sweep(f, dir);
    *ret = TAKE(f);
    return 0;
}

static int save(struct setup_files *f, struct err *e)
{
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    if (json_count(json_get(f->doc, "files")) == 0) {
        return unlink(f->path) < 0 && errno != ENOENT ? err_sys(e, -errno, "remove %s", f->path)
                                                      : 0;
    }
    json_write(f->doc, 2, &text);
    strbuf_addc(&text, '\n');
    return file_write_atomic(f->path, text.data, text.size, 0600, e);
}

static struct json *find(const struct setup_files *f, const char *path)
{
    struct json *item;
    JSON_FOREACH (item, json_get(f->doc, "files")) {
        if (streq(json_get_text(item, "path"), path)) {
            return item;
        }
    }
    return NULL;
}

/* The item of 'path', made if there is none. */
static struct json *ensure(struct setup_files *f, const char *role, const char *path)
{
    struct json *item = find(f, path);
    if (!item) {
        item = json_append(json_ensure_array(f->doc, "files"), json_object());
        json_set_string(item, "path", path);
        json_set_string(item, "role", role);
    }
    return item;
}

static void hash_text(const char *text, size_t size, char out[HASH_SIZE])
{
    snprintf(out, HASH_SIZE, "%016llx", (unsigned long long) hash_bytes(text, size));
}

/* Whether the file has the contents that setup gave it last, or was about to. */
static bool is_own(const struct json *item, const struct strbuf *now)
{
    char hash[HASH_SIZE];
    hash_text(strbuf_cstr(now), now->size, hash);
    return item &&
           (streq(json_get_text(item, "hash"), hash) || streq(json_get_text(item, "before"), hash));
}

static enum setup_state state_of(const struct setup_files *f, const char *path,
                                 const struct strbuf *now, const char *sample)
{
    return is_own(find(f, path), now)                  ? SETUP_OWN
           : sample && streq(strbuf_cstr(now), sample) ? SETUP_SAMPLE
                                                       : SETUP_FOREIGN;
}

int setup_files_look(const struct setup_files *f, const char *path, const char *sample,
                     enum setup_state *ret, struct err *e)
{
    CLEANUP_STRBUF struct strbuf now = STRBUF_INIT;
    int r = file_read(path, FILE_MAX, &now, e);
    if (r < 0 && r != -ENOENT) {
        return r;
    }
    *ret = r < 0 ? SETUP_ABSENT : state_of(f, path, &now, sample);
    return 0;
}

int setup_files_write(struct setup_files *f, const char *role, const char *path, const char *text,
                      unsigned mode, const char *sample, enum setup_written *ret, struct err *e)
{
    CLEANUP_STRBUF struct strbuf now = STRBUF_INIT;
    char hash[HASH_SIZE];
    int r = file_read(path, FILE_MAX, &now, e);
    bool there = r == 0, same = there && streq(strbuf_cstr(&now), text);
    if (r < 0 && r != -ENOENT) {
        return r;
    }
    enum setup_state state = there ? state_of(f, path, &now, sample) : SETUP_ABSENT;
    if (same || state == SETUP_FOREIGN) {
        *ret = same ? SETUP_SAME : SETUP_KEPT;
        return 0;
    }
    struct json *item = ensure(f, role, path);
    if (there) {
        hash_text(strbuf_cstr(&now), now.size, hash);
        json_set_string(item, "before", hash);
    }
    hash_text(text, strlen(text), hash);
    json_set_string(item, "hash", hash);
    if (state == SETUP_SAMPLE) {
        json_set_bool(item, "sample", true);
    }
    if ((r = save(f, e)) < 0 || (r = file_write_atomic(path, text, strlen(text), mode, e)) < 0) {
        return r;
    }
    *ret = there ? SETUP_CHANGED : SETUP_MADE;
    return 0;
}

int setup_files_link(struct setup_files *f, const char *role, const char *path, const char *target,
                     enum setup_written *ret, struct err *e)
{
    char now[PATH_MAX];
    ssize_t n = readlink(path, now, sizeof now - 1);
    struct stat st;
    if (n >= 0) {
        now[n] = '\0';
        *ret = streq(now, target) ? SETUP_SAME : SETUP_KEPT;
        return 0;
    }
    if (lstat(path, &st) == 0) {
        *ret = SETUP_KEPT;
        return 0;
    }
    struct json *item = ensure(f, role, path);
    json_set_string(item, "link", target);
    int r = save(f, e);
    if (r < 0) {
        return r;
    }
    *ret = SETUP_MADE;
    return symlink(target, path) < 0 ? err_sys(e, -errno, "link %s", path) : 0;
}

int setup_files_note(struct setup_files *f, const char *role, const char *path, struct err *e)
{
    if (find(f, path)) {
        return 0;
    }
    json_set_bool(ensure(f, role, path), "changes", true);
    return save(f, e);
}

int setup_files_drop(struct setup_files *f, const char *path, struct err *e)
{
    struct json *files = json_get(f->doc, "files");
    for (size_t i = 0; i < json_count(files); i++) {
        if (!streq(json_get_text(json_at(files, i), "path"), path)) {
            continue;
        }
        if (unlink(path) < 0 && errno != ENOENT) {
            return err_sys(e, -errno, "remove %s", path);
        }
        json_remove_at(files, i);
        return save(f, e);
    }
    return 0;
}

int setup_files_dir(struct setup_files *f, const char *role, const char *path, unsigned mode,
                    struct err *e)
{
    for (const char *p = path; p; p = strchr(p + 1, '/')) {
        CLEANUP_FREE char *part = xstrndup(path, (size_t) (p - path));
        if (*part && access(part, F_OK) < 0) {
            json_set_bool(ensure(f, role, part), "dir", true);
        }
    }
    if (access(path, F_OK) < 0) {
        json_set_bool(ensure(f, role, path), "dir", true);
    }
    int r = save(f, e);
    return r < 0 ? r : dir_make(path, mode, e);
}

bool setup_files_has(const struct setup_files *f, const char *role)
{
    const struct json *item;
    JSON_FOREACH (item, json_get(f->doc, "files")) {
        if (streq(json_get_text(item, "role"), role)) {
            return true;
        }
    }
    return false;
}

/* Whether the link or file is as setup made it. */
static bool is_unchanged(const struct json *item, const char *path)
{
    CLEANUP_STRBUF struct strbuf now = STRBUF_INIT;
    const char *target = json_get_text(item, "link");
    char link[PATH_MAX];
    if (json_get_bool(json_get(item, "changes"), false)) {
        return true;
    }
    if (*target) {
        ssize_t n = readlink(path, link, sizeof link - 1);
        return n == (ssize_t) strlen(target) && memcmp(link, target, (size_t) n) == 0;
    }
    return file_read(path, FILE_MAX, &now, NULL) == 0 && is_own(item, &now);
}

static int remove_item(const struct json *item, bool edited,
                       const char *sample_of(const char *path),
                       void (*said)(const char *path, const char *what), struct err *e)
{
    const char *path = json_get_text(item, "path");
    const char *sample = json_get_bool(json_get(item, "sample"), false) ? sample_of(path) : NULL;
    struct stat st;
    if (lstat(path, &st) < 0) {
        return 0;
    }
    if (json_get_bool(json_get(item, "dir"), false)) {
        (void) rmdir(path); /* It stays when it has files of others. */
        return 0;
    }
    if (!edited && !is_unchanged(item, path)) {
        said(path, "kept: it was edited");
        return 0;
    }
    if (sample) {
        said(path, "is the sample again");
        return file_write_atomic(path, sample, strlen(sample), 0644, e);
    }
    said(path, "removed");
    return unlink(path) < 0 && errno != ENOENT ? err_sys(e, -errno, "remove %s", path) : 0;
}

int setup_files_remove(struct setup_files *f, const char *role, bool edited,
                       const char *sample_of(const char *path),
                       void (*said)(const char *path, const char *what), struct err *e)
{
    struct json *files = json_get(f->doc, "files");
    for (size_t i = json_count(files); i-- > 0;) {
        const struct json *item = json_at(files, i);
        if (!streq(json_get_text(item, "role"), role)) {
            continue;
        }
        int r = remove_item(item, edited, sample_of, said, e);
        if (r < 0) {
            return r;
        }
        json_remove_at(files, i);
        if ((r = save(f, e)) < 0) {
            return r;
        }
    }
    return 0;
}
