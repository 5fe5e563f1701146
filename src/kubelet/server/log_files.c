/* SPDX-License-Identifier: Apache-2.0 */
#include "kubelet/server/log_files.h"

#include "base/mem.h"
#include "base/str.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#define MAX_FILES 64
#define BLOCK 65536
#define OPEN_ATTEMPTS 5

struct log_file {
    int fd;              /* -1: 'gz' has it. */
    gzFile gz;           /* NULL: not compressed. */
    char *name;          /* Of a rotated one, without ".gz"; NULL: the one that is written. */
    uint64_t skip_lines; /* At the beginning of a compressed file. */
};

struct log_files {
    char *path, *dir;
    const char *base; /* The name of the file in 'dir', within 'path'. */
    struct log_file list[MAX_FILES];
    size_t n, at;
    char
        *newest; /* The name of the newest rotated file when the last one was opened; NULL: none. */
};

static void file_done(struct log_file *f)
{
    if (f->gz) {
        gzclose(f->gz);
    }
    fd_close(f->fd);
    free(f->name);
    *f = (struct log_file){.fd = -1};
}

static void files_clear(struct log_files *f)
{
    for (size_t i = 0; i < f->n; i++) {
        file_done(&f->list[i]);
    }
    f->n = f->at = 0;
}

/* ---- finding the files ---- */

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *) a, *(char *const *) b);
}

/* The names of the rotated files, without ".gz", sorted: so are their times.  A file may be there in
 * both forms for a moment. */
static size_t list_rotated(const struct log_files *f, char *names[MAX_FILES])
{
    size_t n = 0, size = strlen(f->base);
    DIR *d = opendir(f->dir);
    const struct dirent *entry;
    while (d && n < MAX_FILES - 1 && (entry = readdir(d))) {
        const char *s = entry->d_name;
        if (!str_has_prefix(s, f->base) || s[size] != '.' || str_has_suffix(s, ".tmp")) {
            continue;
        }
        size_t length = strlen(s) - (str_has_suffix(s, ".gz") ? 3 : 0);
        bool known = false;
        for (size_t i = 0; i < n; i++) {
            known |= strlen(names[i]) == length && memcmp(names[i], s, length) == 0;
        }
        if (!known) {
            names[n++] = xstrndup(s, length);
        }
    }
    if (d) {
        closedir(d);
    }
    qsort(names, n, sizeof *names, by_name);
    return n;
}

static void names_free(char *names[MAX_FILES], size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(names[i]);
    }
}

static int open_in(const struct log_files *f, const char *name, const char *suffix)
{
    CLEANUP_FREE char *path = xasprintf("%s/%s%s", f->dir, name, suffix);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat st;
    if (fd >= 0 && (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))) {
        fd = fd_close(fd);
    }
    return fd;
}

/* Adds a rotated file, in the form in which it is there; one that is gone is left out. */
static void add_rotated(struct log_files *f, const char *name)
{
    struct log_file file = {.fd = open_in(f, name, "")};
    if (file.fd < 0) {
        int fd = open_in(f, name, ".gz");
        file.gz = fd >= 0 ? gzdopen(fd, "rb") : NULL;
        if (!file.gz) {
            fd_close(fd);
            return;
        }
    }
    file.name = xstrdup(name);
    f->list[f->n++] = file;
}

/* Whether 'fd' is the file at the path now. */
static bool is_current(const struct log_files *f, int fd)
{
    struct stat a, b;
    return fstat(fd, &a) == 0 && stat(f->path, &b) == 0 && a.st_ino == b.st_ino &&
           a.st_dev == b.st_dev;
}

/* Opens the rotated files after 'after' (NULL: all) but the first 'skip', and the one that is
 * written; a rotation in between is a reason to begin again. */
static int open_after(struct log_files *f, const char *after, size_t skip, struct err *e)
{
    for (int attempt = 0; attempt < OPEN_ATTEMPTS; attempt++) {
        char *names[MAX_FILES];
        size_t n = list_rotated(f, names), skipped = 0;
        files_clear(f);
        for (size_t i = 0; i < n; i++) {
            if (after && strcmp(names[i], after) <= 0) {
                continue;
            }
            if (skipped < skip) {
                skipped++;
                continue;
            }
            add_rotated(f, names[i]);
        }
        int fd = open_in(f, f->base, "");
        if (fd >= 0 && is_current(f, fd)) {
            f->list[f->n++] = (struct log_file){.fd = fd};
            char *again[MAX_FILES];
            size_t m = list_rotated(f, again);
            bool same = m == n && (!n || streq(again[m - 1], names[n - 1]));
            names_free(again, m);
            if (same) {
                free(f->newest);
                f->newest = n ? xstrdup(names[n - 1]) : NULL;
                names_free(names, n);
                return 0;
            }
        } else {
            fd_close(fd);
        }
        names_free(names, n);
    }
    return err_set(e, -ENOENT, "no such log file: %s", f->path);
}

/* ---- the last lines ---- */

/* Lines in a compressed file. */
static uint64_t count_lines(gzFile gz)
{
    char buf[BLOCK];
    uint64_t lines = 0;
    int n;
    while ((n = gzread(gz, buf, sizeof buf)) > 0) {
        for (const char *p = buf; (p = memchr(p, '\n', (size_t) (buf + n - p))); p++) {
            lines++;
        }
    }
    (void) gzrewind(gz);
    return lines;
}

/* Moves a plain file to the beginning of its last '*lines' lines, or to its beginning; takes those it
 * has off '*lines'.  True: there were enough. */
static bool seek_tail(int fd, uint64_t *lines)
{
    char buf[BLOCK];
    off_t end = lseek(fd, 0, SEEK_END);
    bool last = true; /* The line feed that ends the file ends its last line, and begins none. */
    if (!*lines) {
        return true; /* At the end. */
    }
    while (end > 0) {
        size_t size = (size_t) MIN(end, (off_t) sizeof buf);
        ssize_t n = pread(fd, buf, size, end - (off_t) size);
        if (n != (ssize_t) size) {
            break;
        }
        for (size_t i = size; i-- > 0; last = false) {
            if (buf[i] == '\n' && !last && --*lines == 0) {
                (void) lseek(fd, end - (off_t) size + (off_t) i + 1, SEEK_SET);
                return true;
            }
        }
        end -= (off_t) size;
    }
    (void) lseek(fd, 0, SEEK_SET);
    /* The first line begins at the beginning. */
    *lines -= !last;
    return *lines == 0;
}

static void seek_files(struct log_files *f, uint64_t lines)
{
    for (size_t i = f->n; i-- > 0;) {
        struct log_file *file = &f->list[i];
        bool enough;
        if (file->gz) {
            uint64_t has = count_lines(file->gz);
            file->skip_lines = has > lines ? has - lines : 0;
            enough = has >= lines;
            lines -= MIN(lines, has);
        } else {
            enough = seek_tail(file->fd, &lines);
        }
        if (enough) {
            f->at = i;
            return;
        }
    }
}

/* ---- reading ---- */

int log_files_open(const char *path, int64_t tail, struct log_files **ret, struct err *e)
{
    CLEANUP(log_files_free) struct log_files *f = NEW(struct log_files);
    f->path = xstrdup(path);
    const char *slash = strrchr(f->path, '/');
    f->dir = slash ? xstrndup(f->path, (size_t) (slash - f->path)) : xstrdup(".");
    f->base = slash ? slash + 1 : f->path;
    int r = open_after(f, NULL, 0, e);
    if (r < 0) {
        return r;
    }
    if (tail >= 0) {
        seek_files(f, (uint64_t) tail);
    }
    *ret = TAKE(f);
    return 0;
}

struct log_files *log_files_free(struct log_files *f)
{
    if (f) {
        files_clear(f);
        free(f->path);
        free(f->dir);
        free(f->newest);
        free(f);
    }
    return NULL;
}

/* Reads a compressed file; a broken one ends early. */
static ssize_t read_gz(struct log_file *file, char *buf, size_t size)
{
    for (;;) {
        int n = gzread(file->gz, buf, (unsigned) MIN(size, (size_t) BLOCK));
        if (n <= 0 || !file->skip_lines) {
            return MAX(n, 0);
        }
        const char *p = buf, *end = buf + n;
        while (file->skip_lines && (p = memchr(p, '\n', (size_t) (end - p)))) {
            file->skip_lines--;
            p++;
        }
        if (!file->skip_lines && p < end) {
            memmove(buf, p, (size_t) (end - p));
            return end - p;
        }
    }
}

ssize_t log_files_read(struct log_files *f, void *buf, size_t size, struct err *e)
{
    while (f->at < f->n) {
        struct log_file *file = &f->list[f->at];
        ssize_t n = file->gz ? read_gz(file, buf, size) : read(file->fd, buf, size);
        if (n < 0 && errno != EINTR) {
            return err_sys(e, -errno, "%s", f->path);
        }
        if (n > 0) {
            return n;
        }
        if (f->at + 1 == f->n) {
            return 0;
        }
        file_done(file);
        f->at++;
    }
    return 0;
}

bool log_files_is_rotated(const struct log_files *f)
{
    return f->at + 1 == f->n && !is_current(f, f->list[f->at].fd) && access(f->path, F_OK) == 0;
}

bool log_files_advance(struct log_files *f)
{
    if (!log_files_is_rotated(f)) {
        return false;
    }
    struct log_file *last = &f->list[f->n - 1];
    CLEANUP_FREE char *after = f->newest ? xstrdup(f->newest) : NULL;
    struct log_file old = *last;
    f->n--;
    struct err e = {0};
    if (open_after(f, after, 1, &e) < 0 || f->n == MAX_FILES) {
        files_clear(f);
        f->list[f->n++] = old;
        return false;
    }
    memmove(f->list + 1, f->list, f->n * sizeof *f->list);
    f->list[0] = old;
    f->n++;
    return true;
}
