/* SPDX-License-Identifier: Apache-2.0 */
#include "kubelet/csi/parts.h"

#include "base/base64.h"
#include "base/mem.h"
#include "kubelet/mount_option.h"

#include <openssl/evp.h>

#define SECRET_MAX ((size_t) 1 << 20)

static int full(struct err *e)
{
    return err_set(e, -EMSGSIZE, "the request is too large");
}

int csi_pairs(struct pb_store *s, const struct json *object, struct runtime_pairs *ret,
              struct err *e)
{
    size_t n = json_count(object);
    struct runtime_pair *v = pb_store_alloc(s, (n + 1) * sizeof *v);
    *ret = (struct runtime_pairs){0};
    if (!v) {
        return full(e);
    }
    struct runtime_pairs pairs = {.v = v};
    for (size_t i = 0; i < n; i++) {
        const char *value = json_get_string(json_at(object, i)), *key = json_key_at(object, i);
        if (value) {
            struct runtime_pair p = {pb_store_text(s, key, strlen(key)),
                                     pb_store_text(s, value, strlen(value))};
            if (!p.key || !p.value) {
                return full(e);
            }
            v[pairs.n++] = p;
        }
    }
    *ret = pairs;
    return 0;
}

int csi_secrets(struct pb_store *s, const struct json *secret, struct runtime_pairs *ret,
                struct err *e)
{
    const struct json *data = json_get(secret, "data");
    CLEANUP(json_free) struct json *plain = json_object();
    for (size_t i = 0; i < json_count(data); i++) {
        const char *key = json_key_at(data, i), *value = json_get_string(json_at(data, i));
        struct strbuf text = STRBUF_INIT_MAX(SECRET_MAX);
        bool ok = value && base64_decode(value, strlen(value), &text) == 0 &&
                  !memchr(strbuf_cstr(&text), '\0', text.size);
        if (ok) {
            json_set(plain, key, json_string_n(strbuf_cstr(&text), text.size));
        }
        if (text.data) {
            explicit_bzero(text.data, text.size);
        }
        strbuf_done(&text);
        if (!ok) {
            return err_set(e, -EINVAL, "the value of the secret's key %.100s is not a text", key);
        }
    }
    return csi_pairs(s, plain, ret, e);
}

static int mode_of(const char *mode, bool single_writer)
{
    static const struct {
        const char *name;
        enum csi_access_mode plain, fine;
    } modes[] = {
        {"ReadWriteOnce", CSI_SINGLE_NODE_WRITER, CSI_SINGLE_NODE_MULTI_WRITER},
        {"ReadWriteOncePod", CSI_SINGLE_NODE_WRITER, CSI_SINGLE_NODE_SINGLE_WRITER},
        {"ReadOnlyMany", CSI_MULTI_NODE_READER_ONLY, CSI_MULTI_NODE_READER_ONLY},
        {"ReadWriteMany", CSI_MULTI_NODE_MULTI_WRITER, CSI_MULTI_NODE_MULTI_WRITER},
    };
    for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
        if (streq(mode, modes[i].name)) {
            return (int) (single_writer ? modes[i].fine : modes[i].plain);
        }
    }
    return CSI_MODE_UNKNOWN;
}

int csi_capability_make(struct pb_store *s, const struct json *modes, bool block,
                        const char *fs_type, const struct json *options, bool single_writer,
                        struct csi_capability *ret, struct err *e)
{
    const char *mode = json_get_string(json_at(modes, 0));
    size_t n = json_count(options);
    const char **flags = pb_store_alloc(s, (n + 1) * sizeof *flags);
    const char *type = pb_store_text(s, fs_type, strlen(fs_type));
    struct csi_capability c = {.is_block = block,
                               .is_mount = !block,
                               .fs_type = type,
                               .group = "",
                               .mode = mode_of(mode ? mode : "ReadWriteOnce", single_writer)};
    if (!flags || !type) {
        return full(e);
    }
    if (c.mode == CSI_MODE_UNKNOWN) {
        return err_set(e, -EINVAL, "the access mode %.64s is unknown", mode);
    }
    for (size_t i = 0; i < n; i++) {
        const char *text = json_get_string(json_at(options, i));
        int r = text ? mount_option_check(text, e)
                     : err_set(e, -EINVAL, "a mount option is not a string");
        if (r < 0) {
            return r;
        }
        flags[i] = pb_store_text(s, text, strlen(text));
        if (!flags[i]) {
            return full(e);
        }
    }
    c.flags = (struct runtime_texts){flags, n};
    *ret = c;
    return 0;
}

char *csi_hash(const char *text)
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    if (EVP_Digest(text, strlen(text), digest, &size, EVP_sha256(), NULL) != 1) {
        abort(); /* OpenSSL always has SHA-256. */
    }
    for (unsigned i = 0; i < size; i++) {
        strbuf_addf(&b, "%02x", digest[i]);
    }
    return strbuf_steal(&b);
}

char *csi_attachment_name(const char *handle, const char *driver, const char *node)
{
    CLEANUP_FREE char *text = xasprintf("%s%s%s", handle, driver, node);
    CLEANUP_FREE char *hash = csi_hash(text);
    return xasprintf("csi-%s", hash);
}

/* A merge patch of a claim's status, without conditions: '*ret' is their list. */
static struct json *growth_patch(struct json **ret)
{
    struct json *body = json_object();
    *ret = json_set(json_ensure_object(body, "status"), "conditions", json_array());
    return body;
}

static struct json *add_condition(struct json *conditions, const char *type)
{
    struct json *condition = json_append(conditions, json_object());
    json_set_string(condition, "type", type);
    json_set_string(condition, "status", "True");
    return condition;
}

struct json *csi_growth_begun(void)
{
    struct json *conditions;
    struct json *body = growth_patch(&conditions);
    add_condition(conditions, "Resizing");
    return body;
}

struct json *csi_growth_status(bool node_expands, int64_t bytes)
{
    struct json *conditions;
    struct json *body = growth_patch(&conditions);
    if (node_expands) {
        struct json *condition = add_condition(conditions, "FileSystemResizePending");
        json_set_string(condition, "message",
                        "Waiting for user to (re-)start a pod to finish file system resize of "
                        "volume on node.");
    } else {
        json_set(json_ensure_object(json_get(body, "status"), "capacity"), "storage",
                 json_stringf("%lld", (long long) bytes));
    }
    return body;
}
