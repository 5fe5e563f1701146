/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/kubectl/manifest.h"

#include "base/mem.h"
#include "net/loop/process.h"
#include "wire/yaml.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_FILE (64u << 20)

void manifests_done(struct manifests *m)
{
    for (size_t i = 0; i < m->n; i++) {
        json_free(m->list[i].object);
    }
    free(m->list);
    *m = (struct manifests){0};
}

/* Takes over the objects of one document. */
static int add_document(struct manifests *m, const char *source, struct json *doc, struct err *e)
{
    CLEANUP(json_free) struct json *o = doc;
    const char *version = json_path_string(o, "apiVersion", NULL);
    const char *kind = json_path_string(o, "kind", NULL);
    if (!json_is(o, JSON_OBJECT)) {
        return err_set(e, -EINVAL, "%s: a document is not an object", source);
    }
    if (!version || !kind) {
        return err_set(e, -EINVAL, "%s: %s not set", source, !version ? "apiVersion" : "kind");
    }
    if (str_has_suffix(kind, "List") && json_is(json_get(o, "items"), JSON_ARRAY)) {
        const struct json *item;
        JSON_FOREACH (item, json_get(o, "items")) {
            int r = add_document(m, source, json_clone(item), e);
            if (r < 0) {
                return r;
            }
        }
        return 0;
    }
    m->list = grow(m->list, &m->cap, m->n + 1, sizeof(*m->list));
    m->list[m->n++] = (struct manifest){TAKE(o), NULL, source};
    return 0;
}

int manifests_resolve(struct manifests *m, const struct api_registry *known, struct err *e)
{
    for (size_t i = 0; i < m->n; i++) {
        const struct json *o = m->list[i].object;
        const char *version = json_path_string(o, "apiVersion", NULL);
        const char *kind = json_path_string(o, "kind", NULL);
        const char *name = json_path_string(o, "metadata", "name", NULL);
        const char *ns = json_path_string(o, "metadata", "namespace", NULL);
        m->list[i].kind = api_registry_by_name(known, version, kind);
        if (!m->list[i].kind) {
            return err_set(e, -ENOENT,
                           "resource mapping not found for name: \"%.80s\" namespace: \"%.63s\" "
                           "from \"%.100s\": no matches for kind \"%.60s\" in version \"%.60s\"",
                           name ? name : "", ns ? ns : "", m->list[i].source, kind, version);
        }
    }
    return 0;
}

int manifests_parse(struct manifests *m, const char *source, const char *text, size_t size,
                    struct err *e)
{
    CLEANUP(json_free) struct json *docs = NULL;
    int r = yaml_parse_all(text, size, &docs, e);
    if (r < 0) {
        err_prefix(e, "%s", source);
        return r;
    }
    const struct json *doc;
    JSON_FOREACH (doc, docs) {
        r = add_document(m, source, json_clone(doc), e);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

/* Reads standard input, or a pipe that a shell makes of "<(command)". */
static int read_stream(int fd, const char *name, struct strbuf *out, struct err *e)
{
    char buf[16384];
    for (;;) {
        ssize_t n = read(fd, buf, sizeof(buf));
        if (n == 0) {
            return 0;
        }
        if (n < 0 && errno != EINTR) {
            return err_sys(e, -errno, "%s", name);
        }
        if (n > 0 && strbuf_add(out, buf, (size_t) n) < 0) {
            return err_set(e, -EFBIG, "%s: more than %u bytes", name, MAX_FILE);
        }
    }
}

static int read_source(const char *path, struct strbuf *out, struct err *e)
{
    struct stat st;
    if (streq(path, "-")) {
        return read_stream(STDIN_FILENO, "standard input", out, e);
    }
    if (stat(path, &st) < 0 || !S_ISFIFO(st.st_mode)) {
        return file_read(path, MAX_FILE, out, e);
    }
    CLEANUP(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? err_sys(e, -errno, "read %s", path) : read_stream(fd, path, out, e);
}

static int read_file(struct manifests *m, const char *source, const char *path, struct err *e)
{
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT_MAX(MAX_FILE);
    int r = read_source(path, &text, e);
    if (r == -ENOENT) {
        return err_set(e, r, "the path \"%s\" does not exist", path);
    }
    return r < 0 ? r : manifests_parse(m, source, strbuf_cstr(&text), text.size, e);
}

static int is_manifest(const struct dirent *d)
{
    return str_has_suffix(d->d_name, ".yaml") || str_has_suffix(d->d_name, ".yml") ||
           str_has_suffix(d->d_name, ".json");
}

int manifests_read(struct manifests *m, const char *source, struct err *e)
{
    struct stat st;
    if (streq(source, "-") || stat(source, &st) < 0 || !S_ISDIR(st.st_mode)) {
        return read_file(m, source, source, e);
    }
    struct dirent **names = NULL;
    int n = scandir(source, &names, is_manifest, alphasort);
    if (n < 0) {
        return err_sys(e, -errno, "%s", source);
    }
    int r = 0;
    for (int i = 0; i < n; i++) {
        CLEANUP_FREE char *path = xasprintf("%s/%s", source, names[i]->d_name);
        r = r < 0 ? r : read_file(m, source, path, e);
        free(names[i]);
    }
    free(names);
    return r;
}
