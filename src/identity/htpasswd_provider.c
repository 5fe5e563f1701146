/* SPDX-License-Identifier: Apache-2.0 */
/* HTPasswdPasswordIdentityProvider: users of a file that htpasswd(1) writes.
 *
 * The file is read again when its inode, size or time changes; one that cannot be read, or has a
 * line in error, is reported in the log, and the previous one stays in force.  Files are read, and
 * hashes computed, on the threads of a pool (pool.h). */
#include "identity/attempt.h"
#include "identity/htpasswd.h"
#include "identity/kinds.h"
#include "identity/pool.h"

#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

LOG_MODULE("identity");

struct provider {
    struct identity_provider base;
    struct identity_pool *pool;
    struct loop *loop;
    char *path;
    pthread_mutex_t lock; /* Guards the rest but for 'attempts'. */
    struct htpasswd *file;
    struct stat seen; /* Of 'file'. */
    struct err said;  /* The last problem, so that it is logged once. */
    struct list attempts;
};

struct attempt {
    struct identity_attempt base;
    struct list node;
    struct loop_task task; /* The answer when the pool takes no job. */
    struct provider *provider;
    char *user, *password;
    bool queued; /* The pool has it, and frees it at its end. */
    bool cancelled, proved;
    identity_fn *fn;
    void *ctx;
};

/* ---- the file ---- */

static int read_all(int fd, size_t size, struct strbuf *b)
{
    char *p = strbuf_reserve(b, size + 1);
    ssize_t n = p ? 1 : -1;
    size_t done = 0;
    while (n > 0 && done <= size) {
        n = read(fd, p + done, size + 1 - done);
        done += n > 0 ? (size_t) n : 0;
    }
    b->size = MIN(done, size);
    return n < 0 ? -errno : done > size ? -EAGAIN : 0;
}

static int load(const char *path, struct htpasswd **ret, struct stat *ret_stat, struct err *e)
{
    CLEANUP(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0) {
        return err_sys(e, -errno, "%s", path);
    }
    if (!S_ISREG(st.st_mode) || st.st_size > (off_t) HTPASSWD_SIZE_MAX) {
        return err_set(e, -EINVAL, "%s: is no file of at most %zu bytes", path, HTPASSWD_SIZE_MAX);
    }
    int r = read_all(fd, (size_t) st.st_size, &b);
    if (r < 0) {
        return err_sys(e, r, "%s", path);
    }
    r = htpasswd_parse(strbuf_cstr(&b), b.size, ret, e);
    if (r < 0) {
        return err_prefix(e, "%s", path), r;
    }
    *ret_stat = st;
    return 0;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* Reads the file again if it has changed; 'lock' is held. */
static void refresh(struct provider *p)
{
    struct htpasswd *file;
    struct stat st;
    struct err e = {0};
    if (stat(p->path, &st) == 0 && is_same(&st, &p->seen)) {
        return;
    }
    if (load(p->path, &file, &st, &e) < 0) {
        if (!streq(e.text, p->said.text)) {
            log_error("the htpasswd file was not read again; the previous users stay",
                      "error=\"%s\"", e.text);
        }
        p->said = e;
        return;
    }
    htpasswd_free(p->file);
    p->file = file;
    p->seen = st;
    p->said = (struct err){0};
    log_info("the htpasswd file was read again", "file=%s users=%zu", p->path,
             htpasswd_count(file));
}

/* ---- attempts ---- */

static void attempt_free(struct attempt *a)
{
    loop_task_cancel(&a->task);
    list_remove(&a->node);
    free(a->user);
    explicit_bzero(a->password, strlen(a->password));
    free(a->password);
    free(a);
}

static void work(void *ctx)
{
    struct attempt *a = ctx;
    struct provider *p = a->provider;
    pthread_mutex_lock(&p->lock);
    refresh(p);
    /* The hash is computed with the lock held, since another thread may replace the file: checks of
     * one provider run one after the other. */
    a->proved = htpasswd_check(p->file, a->user, a->password);
    pthread_mutex_unlock(&p->lock);
}

static void dropped(void *ctx)
{
    attempt_free(ctx);
}

static void done(void *ctx)
{
    struct attempt *a = ctx;
    struct identity id = {0};
    struct err why = {0};
    bool proved = a->proved;
    identity_fn *fn = a->cancelled ? NULL : a->fn;
    void *fn_ctx = a->ctx;
    if (proved) {
        id.user = xstrdup(a->user);
    } else {
        err_set(&why, -EACCES, "unknown user or wrong password");
    }
    attempt_free(a);
    if (fn) {
        fn(fn_ctx, proved ? IDENTITY_PROVED : IDENTITY_REFUSED, &id, &why);
    }
    identity_done(&id);
}

static void busy(void *ctx)
{
    struct attempt *a = ctx;
    struct err why = {0};
    identity_fn *fn = a->fn;
    void *fn_ctx = a->ctx;
    attempt_free(a);
    err_set(&why, -EBUSY, "too many logins at once");
    fn(fn_ctx, IDENTITY_FAILED, NULL, &why);
}

static const struct identity_job_ops ops = {work, done, dropped};

static void cancel(struct identity_attempt *base)
{
    struct attempt *a = CONTAINER_OF(base, struct attempt, base);
    a->cancelled = true;
    if (!a->queued) {
        attempt_free(a);
    }
}

static struct identity_attempt *password(struct identity_provider *base, const char *user,
                                         const char *text, identity_fn *fn, void *ctx)
{
    struct provider *p = CONTAINER_OF(base, struct provider, base);
    struct attempt *a = NEW(struct attempt);
    *a = (struct attempt){.base.cancel = cancel,
                          .provider = p,
                          .user = xstrdup(user),
                          .password = xstrdup(text),
                          .fn = fn,
                          .ctx = ctx};
    list_push_back(&p->attempts, &a->node);
    loop_task_init(&a->task, p->loop, busy, a);
    a->queued = identity_pool_run(p->pool, &ops, a) == 0;
    if (!a->queued) {
        loop_task_queue(&a->task);
    }
    return &a->base;
}

/* ---- provider ---- */

static int check(const struct json *provider, struct err *e)
{
    if (!*json_get_text(provider, "file")) {
        return err_set(e, -EINVAL, "file: must name a file of htpasswd");
    }
    return identity_check_keys(provider, "file", e);
}

static void close_provider(struct identity_provider *base)
{
    struct provider *p = CONTAINER_OF(base, struct provider, base);
    struct attempt *a;
    p->pool = identity_pool_free(p->pool);
    LIST_FOREACH (a, struct attempt, node, &p->attempts) {
        attempt_free(a);
    }
    pthread_mutex_destroy(&p->lock);
    htpasswd_free(p->file);
    free(p->path);
    free(p);
}

static int open_provider(struct loop *l, const struct json *config, struct identity_provider **ret,
                         struct err *e)
{
    struct provider *p = NEW(struct provider);
    p->base.kind = &identity_htpasswd;
    p->path = xstrdup(json_get_text(config, "file"));
    p->loop = l;
    list_init(&p->attempts);
    pthread_mutex_init(&p->lock, NULL);
    int r = load(p->path, &p->file, &p->seen, e);
    if (r < 0) {
        close_provider(&p->base);
        return err_prefix(e, "file"), r;
    }
    p->pool = identity_pool_new(l, 0, 0);
    *ret = &p->base;
    return 0;
}

const struct identity_kind identity_htpasswd = {.name = "HTPasswdPasswordIdentityProvider",
                                                .check = check,
                                                .open = open_provider,
                                                .close = close_provider,
                                                .password = password};
