/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/field.h"

#include "api/quantity.h"
#include "base/mem.h"

/* ---- fields ---- */

/* Appends 's' as Go's %q prints a string of valid UTF-8. */
static void add_quoted(struct strbuf *out, const char *s)
{
    static const char named[] = "\aa\bb\ff\nn\rr\tt\vv\"\"\\\\";
    strbuf_addc(out, '"');
    for (; *s; s++) {
        const char *known = NULL;
        for (size_t i = 0; named[i]; i += 2) {
            known = named[i] == *s ? &named[i + 1] : known;
        }
        if (known) {
            strbuf_addf(out, "\\%c", *known);
        } else if ((unsigned char) *s < 0x20 || *s == 0x7f) {
            strbuf_addf(out, "\\x%02x", (unsigned) *s);
        } else {
            strbuf_addc(out, *s);
        }
    }
    strbuf_addc(out, '"');
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *) a, *(const char *const *) b);
}

/* Lines KEY="VALUE", sorted by key, without a newline at the end. */
static char *format_map(const struct json *map)
{
    size_t n = json_count(map);
    CLEANUP_FREE const char **keys = xcalloc(n + 1, sizeof *keys);
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    for (size_t i = 0; i < n; i++) {
        keys[i] = json_key_at(map, i);
    }
    if (n > 1) {
        qsort(keys, n, sizeof *keys, by_text);
    }
    for (size_t i = 0; i < n; i++) {
        strbuf_addf(&out, "%s%s=", i ? "\n" : "", keys[i]);
        add_quoted(&out, json_get_text(map, keys[i]));
    }
    return strbuf_steal(&out);
}

/* The value at "metadata.labels['KEY']" or the like; NULL: the path has another form. */
static char *subscript(const struct json *meta, const char *path)
{
    static const char *const maps[] = {"labels", "annotations"};
    for (size_t i = 0; i < ARRAY_SIZE(maps); i++) {
        CLEANUP_FREE char *prefix = xasprintf("metadata.%s['", maps[i]);
        if (str_has_prefix(path, prefix) && str_has_suffix(path, "']") &&
            strlen(path) >= strlen(prefix) + 2) {
            size_t skip = strlen(prefix);
            CLEANUP_FREE char *key = xstrndup(path + skip, strlen(path) - skip - 2);
            return xstrdup(json_get_text(json_get(meta, maps[i]), key));
        }
    }
    return NULL;
}

static char *join(struct runtime_texts t)
{
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    for (size_t i = 0; i < t.n; i++) {
        strbuf_addf(&out, "%s%s", i ? "," : "", t.v[i]);
    }
    return strbuf_steal(&out);
}

static const char *service_account(const struct json *pod)
{
    const char *name = json_path_string(pod, "spec", "serviceAccountName", NULL);
    return name ? name : "";
}

int pod_field_value(const struct json *pod, const char *path, const struct pod_facts *f, char **ret,
                    struct err *e)
{
    const struct json *meta = json_get(pod, "metadata");
    const char *text = NULL;
    char *value = NULL;
    if (streq(path, "metadata.name")) {
        text = json_get_text(meta, "name");
    } else if (streq(path, "metadata.namespace")) {
        text = json_get_text(meta, "namespace");
    } else if (streq(path, "metadata.uid")) {
        text = json_get_text(meta, "uid");
    } else if (streq(path, "metadata.labels") || streq(path, "metadata.annotations")) {
        value = format_map(json_get(meta, path + strlen("metadata.")));
    } else if (streq(path, "spec.nodeName")) {
        text = json_get_text(json_get(pod, "spec"), "nodeName");
    } else if (streq(path, "spec.serviceAccountName")) {
        text = service_account(pod);
    } else if (streq(path, "status.hostIP") || streq(path, "status.hostIPs")) {
        text = f->host_ip;
    } else if (streq(path, "status.podIP")) {
        text = f->pod_ips.n ? f->pod_ips.v[0] : NULL;
    } else if (streq(path, "status.podIPs")) {
        value = f->pod_ips.n ? join(f->pod_ips) : NULL;
    } else if (!(value = subscript(meta, path))) {
        return err_set(e, -EINVAL, "unsupported fieldPath: %s", path);
    }
    if (!text && !value) {
        return err_set(e, -EAGAIN, "%s is not known yet", path);
    }
    *ret = value ? value : xstrdup(text);
    return 0;
}

/* ---- resources ---- */

const struct json *pod_find_container(const struct json *pod, const char *name)
{
    static const char *const lists[] = {"containers", "initContainers", "ephemeralContainers"};
    const struct json *c;
    for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
        JSON_FOREACH (c, json_path(pod, "spec", lists[i], NULL)) {
            if (streq_null(json_get_string(json_get(c, "name")), name)) {
                return c;
            }
        }
    }
    return NULL;
}

/* The amount of a quantity in an object; 0 when it is absent. */
static int amount(const struct json *list, const char *name, int exponent, int64_t *ret,
                  struct err *e)
{
    const char *text = json_get_string(json_get(list, name));
    *ret = 0;
    return text ? api_quantity_value(text, exponent, ret, e) : 0;
}

int pod_resource_value(const struct json *pod, const struct json *container, const struct json *ref,
                       const struct pod_facts *f, char **ret, struct err *e)
{
    const char *name = json_get_text(ref, "containerName");
    const char *resource = json_get_text(ref, "resource");
    const char *divisor = json_get_string(json_get(ref, "divisor"));
    const struct json *c = *name ? pod_find_container(pod, name) : container;
    bool limit = str_has_prefix(resource, "limits.");
    if (!c) {
        return err_set(e, -EINVAL, "container %s not found", name);
    }
    if (!limit && !str_has_prefix(resource, "requests.")) {
        return err_set(e, -EINVAL, "unsupported container resource : %s", resource);
    }
    const char *what = strchr(resource, '.') + 1;
    bool node_bound =
        streq(what, "cpu") || streq(what, "memory") || streq(what, "ephemeral-storage");
    if (!node_bound && !str_has_prefix(what, "hugepages-")) {
        return err_set(e, -EINVAL, "unsupported container resource : %s", resource);
    }
    int exponent = streq(what, "cpu") ? -3 : 0;
    int64_t value, by = 0;
    int r = amount(json_path(c, "resources", limit ? "limits" : "requests", NULL), what, exponent,
                   &value, e);
    if (r == 0 && value == 0 && limit && node_bound) {
        r = amount(f->allocatable, what, exponent, &value, e);
    }
    if (r == 0) {
        r = divisor ? api_quantity_value(divisor, exponent, &by, e) : 0;
    }
    if (r < 0) {
        return err_prefix(e, "resourceFieldRef %s", resource);
    }
    by = by > 0 ? by : exponent ? 1000 : 1;
    *ret = xasprintf("%lld", (long long) value / by + (value % by > 0));
    return 0;
}

/* ---- objects ---- */

int pod_find_object(const struct json *pod, enum pod_object_kind kind, const char *name,
                    const struct pod_facts *f, const struct json **ret, struct err *e)
{
    const char *ns = json_get_text(json_get(pod, "metadata"), "namespace");
    int r = f->find_object ? f->find_object(f->ctx, kind, ns, name, ret) : -ENOENT;
    if (r == -ENOENT) {
        return err_set(e, r, "%s \"%s\" not found", pod_object_singular(kind), name);
    }
    return r < 0 ? err_set(e, r, "waiting for %s \"%s\" from the API server",
                           pod_object_singular(kind), name)
                 : 0;
}
