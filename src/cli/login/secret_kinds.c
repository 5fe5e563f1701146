/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/login/secret_kinds.h"

#include "base/base64.h"
#include "base/mem.h"

struct json *secret_new(const char *name, const char *type)
{
    struct json *o = json_object();
    json_set_string(o, "kind", "Secret");
    json_set_string(o, "apiVersion", "v1");
    json_set_string(json_ensure_object(o, "metadata"), "name", name);
    json_set_string(o, "type", type);
    return o;
}

static void erase(struct strbuf *b)
{
    if (b->size) {
        explicit_bzero(b->data, b->size);
    }
    strbuf_done(b);
}

void secret_add(struct json *secret, const char *key, const void *p, size_t size)
{
    struct strbuf b = STRBUF_INIT;
    base64_encode(p, size, &b);
    json_set_string(json_ensure_object(secret, "data"), key, strbuf_cstr(&b));
    erase(&b);
}

void secret_add_dockercfg(struct json *secret, const char *server, const char *user,
                          const char *password, const char *email)
{
    struct strbuf pair = STRBUF_INIT, auth = STRBUF_INIT, text = STRBUF_INIT;
    CLEANUP(json_free) struct json *o = json_object();
    struct json *entry = json_ensure_object(o, server);
    strbuf_addf(&pair, "%s:%s", user, password);
    base64_encode(strbuf_cstr(&pair), pair.size, &auth);
    json_set_string(entry, "username", user);
    json_set_string(entry, "password", password);
    json_set_string(entry, "email", email);
    json_set_string(entry, "auth", strbuf_cstr(&auth));
    json_write(o, 0, &text);
    secret_add(secret, ".dockercfg", strbuf_cstr(&text), text.size);
    erase(&pair);
    erase(&auth);
    erase(&text);
}

static bool names(const struct json *ref, const char *secret)
{
    return streq(json_get_text(ref, "name"), secret);
}

bool secret_link(struct json *account, const char *key, const char *secret)
{
    const struct json *item;
    JSON_FOREACH (item, json_get(account, key)) {
        if (names(item, secret)) {
            return false;
        }
    }
    json_set_string(json_append(json_ensure_array(account, key), json_object()), "name", secret);
    return true;
}

bool secret_unlink(struct json *account, const char *key, const char *secret)
{
    struct json *list = json_get(account, key), *kept = json_array();
    const struct json *item;
    JSON_FOREACH (item, list) {
        if (!names(item, secret)) {
            json_append(kept, json_clone(item));
        }
    }
    bool changed = json_count(kept) < json_count(list);
    if (changed) {
        json_set(account, key, kept);
    } else {
        json_free(kept);
    }
    return changed;
}
