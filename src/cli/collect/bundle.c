/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/collect/bundle.h"

#include "base/mem.h"
#include "wire/tar.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#define FOLDER "tenet-collect/"
#define NAME_MAX_SIZE 80

struct bundle {
    char *path, *tmp;
    gzFile gz;
};

int bundle_open(const char *path, struct bundle **ret, struct err *e)
{
    CLEANUP_FREE char *tmp = xasprintf("%s.XXXXXX", path);
    int fd = mkostemp(tmp, O_CLOEXEC);
    if (fd < 0) {
        return err_sys(e, -errno, "make %s", path);
    }
    gzFile gz = fchmod(fd, 0600) == 0 ? gzdopen(fd, "wb6") : NULL;
    if (!gz) {
        fd_close(fd);
        unlink(tmp);
        return err_set(e, -ENOMEM, "make %s", path);
    }
    struct bundle *b = NEW(struct bundle);
    b->path = xstrdup(path);
    b->tmp = TAKE(tmp);
    b->gz = gz;
    *ret = b;
    return 0;
}

static int put(struct bundle *b, const struct strbuf *block, struct err *e)
{
    int code = 0;
    if (!block->size || gzwrite(b->gz, block->data, (unsigned) block->size) > 0) {
        return 0;
    }
    const char *text = gzerror(b->gz, &code);
    return code == Z_ERRNO ? err_sys(e, -errno, "write %s", b->path)
                           : err_set(e, -EIO, "write %s: %s", b->path, text);
}

int bundle_add(struct bundle *b, const char *name, const void *data, size_t size, struct err *e)
{
    CLEANUP_STRBUF struct strbuf block = STRBUF_INIT;
    CLEANUP_FREE char *full = xasprintf(FOLDER "%.*s", NAME_MAX_SIZE, name);
    struct tar_entry t = {
        .name = full, .mode = 0600, .data = data ? data : "", .size = data ? size : 0};
    tar_add(&block, &t);
    return put(b, &block, e);
}

int bundle_finish(struct bundle *b, struct err *e)
{
    CLEANUP_STRBUF struct strbuf block = STRBUF_INIT;
    tar_end(&block);
    int r = put(b, &block, e);
    if (r < 0) {
        return r;
    }
    int closed = gzclose(b->gz);
    b->gz = NULL;
    if (closed != Z_OK) {
        return err_sys(e, closed == Z_ERRNO ? -errno : -EIO, "write %s", b->path);
    }
    if (rename(b->tmp, b->path) < 0) {
        return err_sys(e, -errno, "rename to %s", b->path);
    }
    free(TAKE(b->tmp));
    return 0;
}

struct bundle *bundle_free(struct bundle *b)
{
    if (b) {
        if (b->gz) {
            gzclose(b->gz);
        }
        if (b->tmp) {
            unlink(b->tmp);
        }
        free(b->tmp);
        free(b->path);
        free(b);
    }
    return NULL;
}
