/* SPDX-License-Identifier: Apache-2.0 */
#include "identity/secret.h"

#include "base/mem.h"
#include "identity/peer_attempt.h"
#include "net/loop/process.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <stdlib.h>

#define MAX_SECRET 65536
#define MAX_PEM (1u << 20)
#define KEY_BLOCK "ENCRYPTING KEY"
#define SECRET_BLOCK "ENCRYPTED STRING"

/* ---- rows ---- */

static int check_texts(const struct json *v, const char *key, struct err *e)
{
    const struct json *item;
    JSON_FOREACH (item, v) {
        const char *text = json_get_string(item);
        if (!text || !*text) {
            return err_set(e, -EINVAL, "%s: must have texts that are not empty", key);
        }
    }
    return 0;
}

static int check_secret(const struct json *v, const char *key, struct err *e)
{
    static const struct config_row rows[] = {{"value", CONFIG_TEXT, false, NULL},
                                             {"env", CONFIG_TEXT, false, NULL},
                                             {"file", CONFIG_TEXT, false, NULL},
                                             {"keyFile", CONFIG_TEXT, false, NULL},
                                             {0}};
    if (json_get_string(v)) {
        return 0;
    }
    int sources = json_get(v, "value") != NULL;
    sources += json_get(v, "env") != NULL;
    sources += json_get(v, "file") != NULL;
    if (!json_is(v, JSON_OBJECT) || sources != 1) {
        return err_set(e, -EINVAL, "%s: must be a text, or an object with value, env or file", key);
    }
    return config_rows_check(v, rows, e) < 0 ? err_prefix(e, "%s", key) : 0;
}

static int check_value(const struct json *v, const struct config_row *row, struct err *e)
{
    const char *text = json_get_string(v);
    int64_t number;
    switch (row->type) {
    case CONFIG_TEXT:
        return text && (*text || !row->required)
                   ? 0
                   : err_set(e, -EINVAL, "%s: must be a text%s", row->key,
                             text ? " that is not empty" : "");
    case CONFIG_BOOL:
        return json_is(v, JSON_BOOL) ? 0
                                     : err_set(e, -EINVAL, "%s: must be true or false", row->key);
    case CONFIG_NUMBER:
        return json_get_int(v, &number) == 0 && number >= 0 && number <= INT32_MAX
                   ? 0
                   : err_set(e, -EINVAL, "%s: must be a number from 0", row->key);
    case CONFIG_SECRET:
        return check_secret(v, row->key, e);
    case CONFIG_TEXTS:
        if (!json_is(v, JSON_ARRAY) || (row->required && !json_count(v))) {
            return err_set(e, -EINVAL, "%s: must be a list%s", row->key,
                           row->required ? " that is not empty" : "");
        }
        return check_texts(v, row->key, e);
    case CONFIG_MAP:
    case CONFIG_OBJECT:
        if (!json_is(v, JSON_OBJECT)) {
            return err_set(e, -EINVAL, "%s: must be an object", row->key);
        }
        if (row->type == CONFIG_MAP) {
            return check_texts(v, row->key, e);
        }
        return config_rows_check(v, row->rows, e) < 0 ? err_prefix(e, "%s", row->key) : 0;
    }
    return -EINVAL;
}

int config_rows_check(const struct json *o, const struct config_row *rows, struct err *e)
{
    for (size_t i = 0; i < json_count(o); i++) {
        const char *key = json_key_at(o, i);
        const struct config_row *row = rows;
        while (row->key && !streq(row->key, key)) {
            row++;
        }
        if (!row->key && !streq(key, "kind") && !streq(key, "apiVersion")) {
            return err_set(e, -EINVAL, "%.80s: unknown key", key);
        }
        int r = row->key ? check_value(json_at(o, i), row, e) : 0;
        if (r < 0) {
            return r;
        }
    }
    for (const struct config_row *row = rows; row->key; row++) {
        if (row->required && !json_get(o, row->key)) {
            return err_set(e, -EINVAL, "%s: is required", row->key);
        }
    }
    return 0;
}

/* ---- secrets ---- */

static void wipe(struct strbuf *b)
{
    if (b->data) {
        explicit_bzero(b->data, b->cap);
    }
    strbuf_done(b);
}

static int read_secret_file(const char *path, char **ret, struct err *e)
{
    struct strbuf b = STRBUF_INIT_MAX(MAX_SECRET);
    int r = file_read(path, MAX_SECRET, &b, e);
    if (r == 0 && strlen(strbuf_cstr(&b)) != b.size) {
        r = err_set(e, -EINVAL, "%s: has a NUL byte", path);
    }
    if (r == 0) {
        while (b.size && strchr("\r\n", b.data[b.size - 1])) {
            b.data[--b.size] = '\0'; /* The end of the line is no part of the secret. */
        }
        *ret = xstrdup(strbuf_cstr(&b));
    }
    wipe(&b);
    return r;
}

struct password {
    const unsigned char *p;
    size_t size;
};

static int give_password(char *buf, int size, int writing, void *ctx)
{
    const struct password *k = ctx;
    if (k->size > (size_t) size) {
        return -1;
    }
    memcpy(buf, k->p, k->size);
    return (int) k->size;
}

/* The first PEM block of 'text', which must have this name. */
static int pem_block(const char *text, const char *name, char **header, unsigned char **data,
                     long *size)
{
    char *found = NULL;
    BIO *b = BIO_new_mem_buf(text, -1);
    int ok = b ? PEM_read_bio(b, &found, header, data, size) : 0;
    BIO_free(b);
    ERR_clear_error();
    bool right = ok == 1 && streq(found, name);
    OPENSSL_free(found);
    return right ? 0 : -EINVAL;
}

static int decrypt(const char *text, const char *key_text, char **ret, struct err *e)
{
    char *header = NULL, *key_header = NULL;
    unsigned char *data = NULL, *key = NULL;
    long size = 0, key_size = 0;
    EVP_CIPHER_INFO cipher = {0};
    int r = 0;
    if (pem_block(key_text, KEY_BLOCK, &key_header, &key, &key_size) < 0) {
        r = err_set(e, -EINVAL, "keyFile: no PEM block \"" KEY_BLOCK "\"");
    } else if (pem_block(text, SECRET_BLOCK, &header, &data, &size) < 0) {
        r = err_set(e, -EINVAL, "no PEM block \"" SECRET_BLOCK "\"");
    } else {
        struct password k = {.p = key, .size = (size_t) key_size};
        if (PEM_get_EVP_CIPHER_INFO(header, &cipher) != 1 || !cipher.cipher ||
            PEM_do_header(&cipher, data, &size, give_password, &k) != 1 || size < 0 ||
            memchr(data, 0, (size_t) size)) {
            r = err_set(e, -EINVAL, "cannot be decrypted with the key of keyFile");
        } else {
            *ret = xstrndup((char *) data, (size_t) size);
        }
    }
    ERR_clear_error();
    OPENSSL_free(header);
    OPENSSL_free(key_header);
    OPENSSL_clear_free(data, (size_t) MAX(size, 0));
    OPENSSL_clear_free(key, (size_t) key_size);
    return r;
}

int secret_read(const struct json *v, char **ret, struct err *e)
{
    const char *env = json_get_text(v, "env"), *file = json_get_text(v, "file");
    const char *key_file = json_get_text(v, "keyFile");
    char *text = NULL, *key = NULL, *plain = NULL;
    int r = 0;
    if (*env) {
        const char *value = getenv(env);
        r = value ? 0 : err_set(e, -ENOENT, "the variable %.80s is not set", env);
        text = xstrdup(value ? value : "");
    } else if (*file) {
        r = read_secret_file(file, &text, e);
    } else {
        text = xstrdup(json_get_string(v) ? json_get_string(v) : json_get_text(v, "value"));
    }
    if (r == 0 && *key_file) {
        r = read_secret_file(key_file, &key, e);
        r = r < 0 ? r : decrypt(text, key, &plain, e);
        secret_text_free(TAKE(text));
        text = TAKE(plain);
    }
    secret_text_free(key);
    if (r < 0) {
        secret_text_free(text);
        return r;
    }
    *ret = text;
    return 0;
}

int config_file_text(const char *path, char **ret, struct err *e)
{
    struct strbuf b = STRBUF_INIT_MAX(MAX_PEM);
    if (!path || !*path) {
        *ret = NULL;
        return 0;
    }
    int r = file_read(path, MAX_PEM, &b, e);
    if (r == 0 && strlen(strbuf_cstr(&b)) != b.size) {
        r = err_set(e, -EINVAL, "%s: has a NUL byte", path);
    }
    if (r == 0) {
        *ret = xstrdup(strbuf_cstr(&b));
    }
    wipe(&b);
    return r;
}
