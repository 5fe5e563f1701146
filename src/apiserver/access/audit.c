/* SPDX-License-Identifier: Apache-2.0 */
#include "apiserver/access/audit.h"

#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/timeutil.h"
#include "net/http/http.h"
#include "net/loop/process.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

LOG_MODULE("audit");

#define MAX_POLICY (1u << 20)
#define DEFAULT_SIZE (UINT64_C(100) << 20)
#define DEFAULT_BACKUPS 10

/* ---- the file; worker thread, one at a time ---- */

struct sink {
    char *path;
    uint64_t max_size;
    unsigned max_backups;
    int fd;
    uint64_t size;
    int64_t now_ms;
    int error; /* The errno of the last write; 0: it succeeded. */
};

static int sink_open(struct sink *s)
{
    struct stat st;
    s->fd = open(s->path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (s->fd < 0 || fstat(s->fd, &st) < 0) {
        int r = -errno;
        s->fd = fd_close(s->fd);
        return r;
    }
    s->size = (uint64_t) st.st_size;
    return 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *) a, *(char *const *) b);
}

/* Removes the oldest files "PATH-TIME" above the maximum. */
static void sink_trim(const struct sink *s)
{
    const char *slash = strrchr(s->path, '/'), *base = slash ? slash + 1 : s->path;
    CLEANUP_FREE char *dir =
        slash ? xstrndup(s->path, (size_t) (slash - s->path + 1)) : xstrdup(".");
    CLEANUP_FREE char *prefix = xasprintf("%s-", base);
    char **names = NULL;
    size_t n = 0, cap = 0;
    DIR *d = opendir(dir);
    struct dirent *ent;
    while (d && (ent = readdir(d))) {
        if (str_has_prefix(ent->d_name, prefix)) {
            names = grow(names, &cap, n + 1, sizeof *names);
            names[n++] = xasprintf("%s/%s", dir, ent->d_name);
        }
    }
    if (d) {
        closedir(d);
    }
    if (n) {
        qsort(names, n, sizeof *names, by_name); /* Times sort as text. */
    }
    for (size_t i = 0; i < n; i++) {
        if (i + s->max_backups < n) {
            (void) unlink(names[i]);
        }
        free(names[i]);
    }
    free(names);
}

static int sink_rotate(struct sink *s)
{
    CLEANUP_FREE char *old = NULL;
    /* A second rotation within a millisecond must not replace the file of the first. */
    for (int64_t ms = s->now_ms; !old || access(old, F_OK) == 0; ms++) {
        char time[TIME_TEXT_SIZE];
        time_format_ms(ms, time);
        free(old);
        old = xasprintf("%s-%s", s->path, time);
    }
    if (rename(s->path, old) < 0) {
        return -errno;
    }
    s->fd = fd_close(s->fd);
    sink_trim(s);
    return sink_open(s);
}

static int sink_write(struct sink *s, const char *p, size_t size)
{
    int r = s->fd < 0 ? sink_open(s) : 0;
    if (r == 0 && s->size && s->size + size > s->max_size) {
        r = sink_rotate(s);
    }
    while (r == 0 && size) {
        ssize_t n = write(s->fd, p, size);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            r = -errno;
            s->fd = fd_close(s->fd); /* Retry with a new file at the next write. */
            break;
        }
        p += n;
        size -= (size_t) n;
        s->size += (uint64_t) n;
    }
    return r;
}

/* ---- the queue ---- */

struct audit_log {
    struct loop *loop;
    struct audit_policy *policy;
    char *policy_file;
    struct sink sink;
    struct strbuf queue;   /* Lines to be written next. */
    struct strbuf writing; /* Lines that the worker is writing. */
    bool busy;
    uint64_t dropped;
    struct log_limit drop_limit, error_limit;
};

static void work(void *ctx)
{
    struct audit_log *log = ctx;
    log->sink.error = sink_write(&log->sink, log->writing.data, log->writing.size);
}

static void begin_writing(struct audit_log *log);

static void worked(void *ctx)
{
    struct audit_log *log = ctx;
    log->busy = false;
    if (log->sink.error < 0) {
        log_limited(&log->error_limit, LOG_ERROR, "the audit log cannot be written",
                    "file=%s error=\"%s\"", log->sink.path, strerror(-log->sink.error));
    }
    begin_writing(log);
}

static void begin_writing(struct audit_log *log)
{
    if (log->busy || !log->queue.size) {
        return;
    }
    struct strbuf empty = log->writing;
    log->writing = log->queue;
    log->queue = empty;
    strbuf_reset(&log->queue);
    log->sink.now_ms = time_wall_ms();
    log->busy = true;
    loop_work(log->loop, work, worked, log);
}

static void add_line(struct audit_log *log, const struct json *event)
{
    size_t before = log->queue.size;
    json_write(event, 0, &log->queue);
    strbuf_addc(&log->queue, '\n');
    if (log->queue.failed || log->queue.size > AUDIT_QUEUE_MAX) {
        log->queue.size = before;
        log->queue.failed = false;
        log->dropped++;
        log_limited(&log->drop_limit, LOG_ERROR, "audit lines dropped: the disk is too slow",
                    "dropped=%" PRIu64, log->dropped);
        return;
    }
    begin_writing(log);
}

static int load_policy(const char *path, struct audit_policy **ret, struct err *e)
{
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    if (!path) {
        *ret = audit_policy_default();
        return 0;
    }
    int r = file_read(path, MAX_POLICY, &text, e);
    if (r == 0 && (r = audit_policy_parse(strbuf_cstr(&text), text.size, ret, e)) < 0) {
        err_prefix(e, "%s", path);
    }
    return r;
}

int audit_log_open(struct loop *l, const struct audit_config *cfg, struct audit_log **ret,
                   struct err *e)
{
    struct audit_policy *policy = NULL;
    int r = load_policy(cfg->policy_file, &policy, e);
    if (r < 0) {
        return r;
    }
    struct audit_log *log = NEW(struct audit_log);
    *log = (struct audit_log){.loop = l,
                              .policy = policy,
                              .policy_file = cfg->policy_file ? xstrdup(cfg->policy_file) : NULL,
                              .queue = STRBUF_INIT,
                              .writing = STRBUF_INIT};
    log->sink = (struct sink){.path = xstrdup(cfg->path),
                              .max_size = cfg->max_size ? cfg->max_size : DEFAULT_SIZE,
                              .max_backups = cfg->max_backups ? cfg->max_backups : DEFAULT_BACKUPS,
                              .fd = -1};
    r = sink_open(&log->sink);
    if (r < 0) {
        audit_log_close(log);
        return err_sys(e, r, "%s", cfg->path);
    }
    *ret = log;
    return 0;
}

struct audit_log *audit_log_close(struct audit_log *log)
{
    if (log) {
        bool idle = !log->busy;
        while (!idle) { /* The worker still has the file. */
            (void) loop_run_until(log->loop, &idle, 10);
            idle = !log->busy;
        }
        if (log->queue.size) {
            log->sink.now_ms = time_wall_ms();
            (void) sink_write(&log->sink, log->queue.data, log->queue.size);
        }
        fd_close(log->sink.fd);
        free(log->sink.path);
        free(log->policy_file);
        audit_policy_free(log->policy);
        strbuf_done(&log->queue);
        strbuf_done(&log->writing);
        free(log);
    }
    return NULL;
}

int audit_log_reload(struct audit_log *log, struct err *e)
{
    struct audit_policy *policy = NULL;
    int r = load_policy(log->policy_file, &policy, e);
    if (r == 0) {
        audit_policy_free(log->policy);
        log->policy = policy;
    }
    return r;
}

/* ---- events ---- */

struct audit_event {
    struct audit_log *log;
    struct audit_decision decision;
    struct json *base; /* The members that the events of all stages share. */
};

struct audit_event *audit_event_free(struct audit_event *ev)
{
    if (ev) {
        json_free(ev->base);
        free(ev);
    }
    return NULL;
}

static void set_time(struct json *o, const char *key)
{
    char text[TIME_TEXT_SIZE];
    time_format_ms(time_wall_ms(), text);
    json_set_string(o, key, text);
}

void audit_make_id(const struct http_exchange *x, char out[AUDIT_ID_MAX + 1])
{
    const char *given = http_header(x, "audit-id");
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-";
    if (given && *given && strlen(given) <= AUDIT_ID_MAX &&
        strspn(given, letters) == strlen(given)) {
        memcpy(out, given, strlen(given) + 1);
        return;
    }
    random_uuid(out);
}

/* Whether the query parameter with this name (of 'n' bytes) carries a token, a code or another
 * secret of a login.  An escaped name is treated as one that does. */
static bool is_token(const char *name, size_t n)
{
    static const char *const secrets[] = {
        "access_token", "client_secret", "code",          "code_verifier", "csrf", "id_token",
        "nonce",        "password",      "refresh_token", "state",         "then"};
    for (size_t i = 0; i < ARRAY_SIZE(secrets); i++) {
        if (strlen(secrets[i]) == n && memcmp(name, secrets[i], n) == 0) {
            return true;
        }
    }
    return memchr(name, '%', n);
}

/* Path and query, with tokens redacted.  A client older than OpenShift 4.6 may name a token's
 * object by the token itself: 'a' has the object's name then. */
static struct json *uri(const struct http_exchange *x, const struct attributes *a)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    const char *p = http_query_raw(x);
    if (a->is_resource && strstr(a->resource, "oauth") && *a->name && !a->name_is_demanded) {
        strbuf_addf(&b, "/apis/%s/%s/%s/%s", a->group, a->version, a->resource, a->name);
    } else {
        strbuf_adds(&b, http_path(x));
    }
    for (char sep = '?'; *p; sep = '&') {
        size_t n = strcspn(p, "&"), name = strcspn(p, "&=");
        strbuf_addc(&b, sep);
        if (is_token(p, name)) {
            strbuf_add(&b, p, name);
            strbuf_adds(&b, "=REDACTED");
        } else {
            strbuf_add(&b, p, n);
        }
        p += n + (p[n] == '&');
    }
    return json_string(strbuf_cstr(&b));
}

static void set_not_empty(struct json *o, const char *key, const char *s)
{
    if (*s) {
        json_set_string(o, key, s);
    }
}

/* Whether request and response bodies of the resource contain secrets, which are never logged. */
static bool is_secret(const struct attributes *a)
{
    return a->is_resource &&
           ((!*a->group && (streq(a->resource, "secrets") || streq(a->resource, "configmaps"))) ||
            streq(a->resource, "tokenreviews") || streq(a->subresource, "token") ||
            str_has_prefix(a->resource, "oauth"));
}

struct audit_event *audit_begin(struct audit_log *log, struct http_exchange *x, const char *id,
                                const struct user_info *user, const struct attributes *a)
{
    struct audit_decision d = audit_policy_decide(log->policy, user, a);
    if (d.level == AUDIT_NONE) {
        return NULL;
    }
    if (is_secret(a)) {
        d.level = AUDIT_METADATA;
    }
    struct audit_event *ev = NEW(struct audit_event);
    struct json *o = ev->base = json_object();
    ev->log = log;
    ev->decision = d;
    json_set_string(o, "kind", "Event");
    json_set_string(o, "apiVersion", "audit.k8s.io/v1");
    json_set_string(o, "level", audit_level_names[d.level]);
    json_set_string(o, "auditID", id);
    json_set_string(o, "stage", "");
    json_set(o, "requestURI", uri(x, a));
    json_set_string(o, "verb", a->verb);
    json_set(o, "user", user ? user_object(user) : json_object());
    const char *peer = http_peer(x), *agent = http_header(x, "user-agent");
    json_append(json_ensure_array(o, "sourceIPs"), json_string_n(peer, strcspn(peer, ":")));
    set_not_empty(o, "userAgent", agent ? agent : "");
    if (a->is_resource) {
        struct json *ref = json_ensure_object(o, "objectRef");
        set_not_empty(ref, "resource", a->resource);
        set_not_empty(ref, "namespace", a->namespace);
        set_not_empty(ref, "name", a->name);
        set_not_empty(ref, "apiGroup", a->group);
        set_not_empty(ref, "apiVersion", a->version);
        set_not_empty(ref, "subresource", a->subresource);
    }
    set_time(o, "requestReceivedTimestamp");
    audit_stage(ev, x, AUDIT_RECEIVED, 0, NULL, 0);
    return ev;
}

void audit_impersonated(struct audit_event *ev, const struct user_info *user)
{
    json_set(ev->base, "impersonatedUser", user_object(user));
}

void audit_decision_set(struct audit_event *ev, bool allowed, const char *why)
{
    struct json *notes = json_ensure_object(ev->base, "annotations");
    json_set_string(notes, "authorization.k8s.io/decision", allowed ? "allow" : "forbid");
    json_set_string(notes, "authorization.k8s.io/reason", why);
}

void audit_annotate(struct audit_event *ev, const char *key, const char *value)
{
    if (ev) {
        json_set_string(json_ensure_object(ev->base, "annotations"), key, value);
    }
}

/* Sets 'key' to the body if it is JSON. */
static void set_body(struct json *o, const char *key, const char *p, size_t size)
{
    CLEANUP(json_free) struct json *v = NULL;
    if (p && size && json_parse(p, size, &v, NULL) == 0) {
        json_set(o, key, TAKE(v));
    }
}

void audit_stage(struct audit_event *ev, const struct http_exchange *x, enum audit_stage stage,
                 int code, const char *body, size_t size)
{
    if (ev->decision.omit & 1u << stage) {
        return;
    }
    CLEANUP(json_free) struct json *o = json_clone(ev->base);
    json_set_string(o, "stage", audit_stage_names[stage]);
    if (stage != AUDIT_RECEIVED) {
        struct json *st = json_ensure_object(o, "responseStatus");
        json_set(st, "metadata", json_object());
        CLEANUP(json_free) struct json *answer = NULL;
        if (code >= 400 && body && json_parse(body, size, &answer, NULL) == 0) {
            static const char *const keys[] = {"status", "message", "reason"};
            for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
                json_set_string(st, keys[i], json_path_string(answer, keys[i], NULL));
            }
        }
        json_set_int(st, "code", code);
    }
    if (stage == AUDIT_COMPLETE && ev->decision.level >= AUDIT_REQUEST && x) {
        size_t n;
        const char *p = http_body(x, &n);
        set_body(o, "requestObject", p, n);
    }
    if (stage == AUDIT_COMPLETE && ev->decision.level == AUDIT_REQUEST_RESPONSE) {
        set_body(o, "responseObject", body, size);
    }
    set_time(o, "stageTimestamp");
    add_line(ev->log, o);
}
