/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/files.h"

#include "base/base64.h"
#include "base/map.h"
#include "base/mem.h"

#define TOTAL_MAX (16 << 20)
#define COMPONENT_MAX 255
#define PATH_TEXT_MAX 4095
#define DEFAULT_MODE 0644
#define TOKEN_MODE 0600
#define TOKEN_SECONDS 3600

struct build {
    const struct json *pod;
    const struct pod_facts *facts;
    struct pod_tokens tokens;
    size_t next_token;
    uint32_t default_mode;
    size_t total;
    struct pod_files files;
    struct smap places; /* Path to the file's index. */
};

/* ---- lists of files ---- */

void pod_files_done(struct pod_files *f)
{
    for (size_t i = 0; i < f->n; i++) {
        free(f->v[i].path);
        blob_unref(f->v[i].data);
    }
    free(f->v);
    *f = (struct pod_files){0};
}

static bool same(const struct pod_file *a, const struct pod_file *b)
{
    return streq(a->path, b->path) && a->mode == b->mode && a->has_owner == b->has_owner &&
           a->owner == b->owner && a->data->size == b->data->size &&
           memcmp(a->data->data, b->data->data, a->data->size) == 0;
}

bool pod_files_equal(const struct pod_files *a, const struct pod_files *b)
{
    for (size_t i = 0; a->n == b->n && i < a->n; i++) {
        if (!same(&a->v[i], &b->v[i])) {
            return false;
        }
    }
    return a->n == b->n;
}

/* Why the path cannot be one of a file in a volume; NULL: it can.  A first component that begins with
 * ".." belongs to the atomic writer. */
static const char *path_fault(const char *path)
{
    if (!*path || strlen(path) > PATH_TEXT_MAX) {
        return "must have 1 to 4095 characters";
    }
    if (*path == '/') {
        return "must be relative";
    }
    if (str_has_prefix(path, "..")) {
        return "must not start with '..'";
    }
    for (const char *s = path; *s;) {
        size_t n = strcspn(s, "/");
        if ((n == 2 && s[0] == '.' && s[1] == '.') || n > COMPONENT_MAX) {
            return "must not contain '..' or a component of more than 255 bytes";
        }
        s += n + (s[n] == '/');
    }
    return NULL;
}

/* The path without empty components and "."; "" when nothing is left. */
static char *normal_path(const char *path)
{
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    for (const char *s = path; *s;) {
        size_t n = strcspn(s, "/");
        if (n && !(n == 1 && *s == '.')) {
            strbuf_adds(&out, out.size ? "/" : "");
            strbuf_add(&out, s, n);
        }
        s += n + (s[n] == '/');
    }
    return strbuf_steal(&out);
}

/* Adds a file, in place of one with the same path. */
static int add(struct build *b, const char *path, uint32_t mode, const void *data, size_t size,
               struct pod_file **ret, struct err *e)
{
    CLEANUP_FREE char *normal = normal_path(path);
    const char *fault = path_fault(path);
    fault = fault || !*normal ? fault : path_fault(normal);
    if (fault || !*normal) {
        return err_set(e, -EINVAL, "invalid path %.256s: %s", path,
                       fault ? fault : "names no file");
    }
    b->total += size;
    if (b->total > TOTAL_MAX) {
        return err_set(e, -EFBIG, "the volume has more than %d bytes", TOTAL_MAX);
    }
    struct pod_files *f = &b->files;
    size_t *at = smap_get(&b->places, normal);
    if (!at) {
        f->v = grow(f->v, &f->cap, f->n + 1, sizeof *f->v);
        f->v[f->n] = (struct pod_file){.path = xstrdup(normal)};
        at = xmemdup(&f->n, sizeof f->n);
        smap_set(&b->places, normal, at);
        f->n++;
    }
    struct pod_file *file = &f->v[*at];
    blob_unref(file->data);
    file->data = blob_new(data, size);
    file->mode = mode & 0777;
    file->has_owner = false;
    if (ret) {
        *ret = file;
    }
    return 0;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct pod_file *) a)->path, ((const struct pod_file *) b)->path);
}

/* Refuses a file whose path is a directory of another file. */
static int check_nesting(const struct pod_files *f, struct err *e)
{
    for (size_t i = 0; i < f->n; i++) {
        size_t n = strlen(f->v[i].path);
        for (size_t j = i + 1; j < f->n && strncmp(f->v[j].path, f->v[i].path, n) == 0; j++) {
            if (f->v[j].path[n] == '/') {
                return err_set(e, -EINVAL, "conflicting paths %s and %s", f->v[i].path,
                               f->v[j].path);
            }
        }
    }
    return 0;
}

/* ---- sources ---- */

static uint32_t mode_of(const struct build *b, const struct json *item)
{
    return (uint32_t) json_get_int_or(json_get(item, "mode"), b->default_mode);
}

/* Adds the value of a key of a ConfigMap or Secret; -ENOENT: it has no such key. */
static int add_key(struct build *b, const struct json *object, enum pod_object_kind kind,
                   const char *key, const char *path, uint32_t mode, struct err *e)
{
    const struct json *text = json_get(json_get(object, "data"), key);
    const struct json *binary = json_get(json_get(object, "binaryData"), key);
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT_MAX(TOTAL_MAX);
    if (kind == POD_CONFIG_MAP && json_is(text, JSON_STRING)) {
        return add(b, path, mode, json_get_string(text), json_string_size(text), NULL, e);
    }
    const struct json *coded = kind == POD_SECRET ? text : binary;
    if (!json_is(coded, JSON_STRING)) {
        return -ENOENT;
    }
    if (base64_decode(json_get_string(coded), json_string_size(coded), &out) < 0) {
        return err_set(e, -EINVAL, "the value of key %s is not base64", key);
    }
    return add(b, path, mode, strbuf_cstr(&out), out.size, NULL, e);
}

static int add_all_keys(struct build *b, const struct json *object, enum pod_object_kind kind,
                        struct err *e)
{
    static const char *const maps[] = {"data", "binaryData"};
    for (size_t m = 0; m < ARRAY_SIZE(maps); m++) {
        const struct json *map = json_get(object, maps[m]);
        for (size_t i = 0; i < json_count(map); i++) {
            const char *key = json_key_at(map, i);
            int r = add_key(b, object, kind, key, key, b->default_mode, e);
            if (r < 0 && r != -ENOENT) {
                return r;
            }
        }
    }
    return 0;
}

/* The files of one ConfigMap or Secret; 'source' has items and optional. */
static int add_object(struct build *b, enum pod_object_kind kind, const struct json *source,
                      const char *name, struct err *e)
{
    bool optional = json_get_bool(json_get(source, "optional"), false);
    const struct json *items = json_get(source, "items"), *item, *object;
    int r = pod_find_object(b->pod, kind, name, b->facts, &object, e);
    if (r < 0) {
        return r == -ENOENT && optional ? 0 : r;
    }
    if (!json_count(items)) {
        return add_all_keys(b, object, kind, e);
    }
    JSON_FOREACH (item, items) {
        const char *key = json_get_text(item, "key");
        r = add_key(b, object, kind, key, json_get_text(item, "path"), mode_of(b, item), e);
        if (r == -ENOENT && !optional) {
            return err_set(e, r,
                           kind == POD_SECRET ? "references non-existent secret key: %s"
                                              : "configmap references non-existent config key: %s",
                           key);
        }
        if (r < 0 && r != -ENOENT) {
            return r;
        }
    }
    return 0;
}

static int add_fields(struct build *b, const struct json *source, struct err *e)
{
    const struct json *item;
    JSON_FOREACH (item, json_get(source, "items")) {
        CLEANUP_FREE char *value = NULL;
        const struct json *field = json_get(item, "fieldRef");
        const struct json *resource = json_get(item, "resourceFieldRef");
        int r =
            field ? pod_field_value(b->pod, json_get_text(field, "fieldPath"), b->facts, &value, e)
                  : pod_resource_value(b->pod, NULL, resource, b->facts, &value, e);
        if (r == 0) {
            r = add(b, json_get_text(item, "path"), mode_of(b, item), value, strlen(value), NULL,
                    e);
        }
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

/* The user that all containers run as; false: they differ, or one of them does not say. */
static bool common_user(const struct json *spec, uint32_t *ret)
{
    static const char *const lists[] = {"initContainers", "containers"};
    int64_t common = json_get_int_or(json_path(spec, "securityContext", "runAsUser", NULL), -1);
    bool first = true;
    int64_t user = -1;
    for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
        const struct json *c;
        JSON_FOREACH (c, json_get(spec, lists[i])) {
            int64_t own =
                json_get_int_or(json_path(c, "securityContext", "runAsUser", NULL), common);
            if (own < 0 || own > UINT32_MAX - 1 || (!first && own != user)) {
                return false;
            }
            user = own;
            first = false;
        }
    }
    if (first) {
        return false;
    }
    *ret = (uint32_t) user;
    return true;
}

static int add_token(struct build *b, const struct json *source, struct err *e)
{
    const struct json *spec = json_get(b->pod, "spec");
    size_t i = b->next_token++;
    const char *text = i < b->tokens.n ? b->tokens.v[i] : NULL;
    struct pod_file *file;
    uint32_t user = 0;
    bool has_user = common_user(spec, &user);
    bool has_group = json_path(spec, "securityContext", "fsGroup", NULL) != NULL;
    if (!text) {
        return err_set(e, -EAGAIN, "waiting for a service account token from the API server");
    }
    int r = add(b, json_get_text(source, "path"),
                has_user || has_group ? TOKEN_MODE : b->default_mode, text, strlen(text), &file, e);
    if (r == 0 && has_user) {
        file->has_owner = true;
        file->owner = user;
    }
    return r;
}

static int add_projected(struct build *b, const struct json *projected, struct err *e)
{
    const struct json *source, *s;
    JSON_FOREACH (source, json_get(projected, "sources")) {
        int r;
        if ((s = json_get(source, "configMap"))) {
            r = add_object(b, POD_CONFIG_MAP, s, json_get_text(s, "name"), e);
        } else if ((s = json_get(source, "secret"))) {
            r = add_object(b, POD_SECRET, s, json_get_text(s, "name"), e);
        } else if ((s = json_get(source, "downwardAPI"))) {
            r = add_fields(b, s, e);
        } else if ((s = json_get(source, "serviceAccountToken"))) {
            r = add_token(b, s, e);
        } else {
            const char *name = json_key_at(source, 0);
            r = err_set(e, -EINVAL, "the projected source %s is not supported",
                        name ? name : "without a member");
        }
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

/* ---- volumes ---- */

static const struct json *source_of(const struct json *volume, const char **ret_kind)
{
    static const char *const kinds[] = {"configMap", "secret", "downwardAPI", "projected"};
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        const struct json *s = json_get(volume, kinds[i]);
        if (json_is(s, JSON_OBJECT)) {
            *ret_kind = kinds[i];
            return s;
        }
    }
    return NULL;
}

bool pod_files_has_source(const struct json *volume)
{
    const char *kind;
    return source_of(volume, &kind) != NULL;
}

bool pod_files_is_secret(const struct json *volume)
{
    const struct json *source;
    bool secret = json_get(volume, "secret") != NULL;
    JSON_FOREACH (source, json_path(volume, "projected", "sources", NULL)) {
        secret |= json_get(source, "secret") || json_get(source, "serviceAccountToken");
    }
    return secret;
}

bool pod_files_token_source(const struct json *volume, size_t i, struct pod_token_source *ret)
{
    const struct json *source;
    JSON_FOREACH (source, json_path(volume, "projected", "sources", NULL)) {
        const struct json *t = json_get(source, "serviceAccountToken");
        if (t && i-- == 0) {
            *ret = (struct pod_token_source){
                .audience = json_get_text(t, "audience"),
                .seconds = json_get_int_or(json_get(t, "expirationSeconds"), TOKEN_SECONDS)};
            return true;
        }
    }
    return false;
}

int pod_files_make(const struct json *pod, const struct json *volume, const struct pod_facts *f,
                   struct pod_tokens tokens, struct pod_files *ret, struct err *e)
{
    const char *kind = NULL;
    const struct json *s = source_of(volume, &kind);
    struct build b = {.pod = pod,
                      .facts = f,
                      .tokens = tokens,
                      .default_mode =
                          (uint32_t) json_get_int_or(json_get(s, "defaultMode"), DEFAULT_MODE)};
    int r;
    if (!s) {
        return err_set(e, -EINVAL, "the volume is not made of API objects");
    }
    smap_init(&b.places, free);
    if (streq(kind, "configMap")) {
        r = add_object(&b, POD_CONFIG_MAP, s, json_get_text(s, "name"), e);
    } else if (streq(kind, "secret")) {
        r = add_object(&b, POD_SECRET, s, json_get_text(s, "secretName"), e);
    } else if (streq(kind, "downwardAPI")) {
        r = add_fields(&b, s, e);
    } else {
        r = add_projected(&b, s, e);
    }
    smap_done(&b.places);
    if (r == 0 && b.files.n > 1) {
        qsort(b.files.v, b.files.n, sizeof *b.files.v, by_path);
    }
    r = r < 0 ? r : check_nesting(&b.files, e);
    if (r < 0) {
        pod_files_done(&b.files);
        return r;
    }
    *ret = b.files;
    return 0;
}
