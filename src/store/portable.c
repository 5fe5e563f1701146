/* SPDX-License-Identifier: Apache-2.0 */
#include "store/portable.h"

#include "base/base64.h"
#include "store/backend.h"
#include "wire/json.h"

#include <inttypes.h>
#include <openssl/evp.h>
#include <stdio.h>

#define FORMAT "tenet-registry"
#define VERSION 1
#define SHA256_SIZE 32
#define SUM_TEXT_SIZE 17

struct portable {
    EVP_MD_CTX *sha;
    uint64_t revision;
    size_t n_keys, n_items;
    size_t line; /* Lines read. */
    char *last_key;
    bool has_head, has_end;
    char checksum[2 * SHA256_SIZE + 1]; /* Valid once the end is known. */
};

static void must(int ok)
{
    if (!ok) {
        abort(); /* OpenSSL is out of memory. */
    }
}

struct portable *portable_new(void)
{
    struct portable *p = NEW(struct portable);
    p->sha = EVP_MD_CTX_new();
    must(p->sha != NULL);
    must(EVP_DigestInit_ex(p->sha, EVP_sha256(), NULL));
    return p;
}

struct portable *portable_free(struct portable *p)
{
    if (p) {
        EVP_MD_CTX_free(p->sha);
        free(p->last_key);
        free(p);
    }
    return NULL;
}

static void hash_add(struct portable *p, const char *line, size_t size)
{
    must(EVP_DigestUpdate(p->sha, line, size));
}

static void hash_end(struct portable *p)
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned n = 0;
    must(EVP_DigestFinal_ex(p->sha, digest, &n));
    for (unsigned i = 0; i < SHA256_SIZE; i++) {
        snprintf(p->checksum + (size_t) 2 * i, 3, "%02x", digest[i]);
    }
}

static void item_sum(const char *key, uint64_t revision, const void *value, size_t size,
                     char out[SUM_TEXT_SIZE])
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    strbuf_addf(&b, "%s\n%" PRIu64 "\n", key, revision);
    strbuf_add(&b, value, size);
    snprintf(out, SUM_TEXT_SIZE, "%016" PRIx64, hash_bytes(b.data, b.size));
}

/* ---- writing ---- */

static void line_end(struct portable *p, struct strbuf *out, size_t begin)
{
    strbuf_addc(out, '\n');
    hash_add(p, out->data + begin, out->size - begin);
}

void portable_write_head(struct portable *p, uint64_t revision, size_t n_keys, struct strbuf *out)
{
    size_t begin = out->size;
    strbuf_addf(out,
                "{\"format\":\"" FORMAT "\",\"version\":%d,\"revision\":%" PRIu64 ",\"keys\":%zu}",
                VERSION, revision, n_keys);
    line_end(p, out, begin);
}

/* Whether a JSON string preserves 'b' unchanged. */
static bool is_text(const struct blob *b)
{
    CLEANUP_STRBUF struct strbuf quoted = STRBUF_INIT;
    CLEANUP(json_free) struct json *v = NULL;
    if (memchr(b->data, 0, b->size)) {
        return false;
    }
    json_write_string((const char *) b->data, b->size, &quoted);
    return json_parse(quoted.data, quoted.size, &v, NULL) == 0 && json_string_size(v) == b->size &&
           memcmp(json_get_string(v), b->data, b->size) == 0;
}

void portable_write_item(struct portable *p, const struct store_item *item, struct strbuf *out)
{
    size_t begin = out->size;
    char sum[SUM_TEXT_SIZE];
    const struct blob *v = item->value;
    strbuf_adds(out, "{\"key\":");
    json_write_string(item->key, strlen(item->key), out);
    strbuf_addf(out, ",\"revision\":%" PRIu64 ",", item->revision);
    if (is_text(v)) {
        strbuf_adds(out, "\"value\":");
        json_write_string((const char *) v->data, v->size, out);
    } else {
        strbuf_adds(out, "\"base64\":\"");
        base64_encode(v->data, v->size, out);
        strbuf_addc(out, '"');
    }
    item_sum(item->key, item->revision, v->data, v->size, sum);
    strbuf_addf(out, ",\"sum\":\"%s\"}", sum);
    line_end(p, out, begin);
    p->n_items++;
}

void portable_write_end(struct portable *p, struct strbuf *out)
{
    hash_end(p);
    strbuf_addf(out, "{\"end\":true,\"keys\":%zu,\"sha256\":\"%s\"}\n", p->n_items, p->checksum);
}

/* ---- reading ---- */

static int bad(const struct portable *p, struct err *e, const char *what)
{
    return err_set(e, -EBADMSG, "line %zu: %s", p->line, what);
}

static int get_u64(const struct json *v, uint64_t *ret)
{
    const char *text = json_number_text(v);
    return text ? str_to_u64(text, INT64_MAX, ret) : -EINVAL;
}

static int read_head(struct portable *p, const struct json *v, struct err *e)
{
    uint64_t version = 0, n = 0;
    if (!streq_null(json_get_string(json_get(v, "format")), FORMAT)) {
        return bad(p, e, "this is no exported registry");
    }
    if (get_u64(json_get(v, "version"), &version) < 0 || version != VERSION) {
        return bad(p, e, "written by a newer version of tenet");
    }
    if (get_u64(json_get(v, "revision"), &p->revision) < 0 ||
        get_u64(json_get(v, "keys"), &n) < 0) {
        return bad(p, e, "revision and keys must be numbers");
    }
    p->n_keys = n;
    p->has_head = true;
    return 0;
}

static int read_last(struct portable *p, const struct json *v, struct err *e)
{
    uint64_t n = 0;
    hash_end(p);
    if (get_u64(json_get(v, "keys"), &n) < 0 || n != p->n_items || n != p->n_keys) {
        return bad(p, e, "the number of keys is not what the lines before have: some are missing");
    }
    if (!streq_null(json_get_string(json_get(v, "sha256")), p->checksum)) {
        return bad(p, e, "the checksum is not that of the lines before: the file was changed");
    }
    p->has_end = true;
    return 0;
}

static int item_value(const struct json *v, struct blob **ret)
{
    const struct json *text = json_get(v, "value"), *coded = json_get(v, "base64");
    if (json_is(text, JSON_STRING) && !coded) {
        *ret = blob_new(json_get_string(text), json_string_size(text));
        return 0;
    }
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT_MAX(STORE_MAX_VALUE);
    if (text || !json_is(coded, JSON_STRING) ||
        base64_decode(json_get_string(coded), json_string_size(coded), &b) < 0) {
        return -EBADMSG;
    }
    *ret = blob_new(strbuf_cstr(&b), b.size);
    return 0;
}

static int read_item(struct portable *p, const struct json *v, char **ret_key,
                     struct blob **ret_value, uint64_t *ret_revision, struct err *e)
{
    const char *key = json_get_string(json_get(v, "key"));
    uint64_t revision = 0;
    CLEANUP(blob_unref) struct blob *value = NULL;
    char sum[SUM_TEXT_SIZE];
    if (!key || !str_has_prefix(key, STORE_PREFIX) || !key[sizeof STORE_PREFIX - 1]) {
        return bad(p, e, "key: must begin with " STORE_PREFIX);
    }
    if (p->last_key && strcmp(p->last_key, key) >= 0) {
        return bad(p, e, "key: not in order");
    }
    if (get_u64(json_get(v, "revision"), &revision) < 0 || !revision || revision > p->revision) {
        return bad(p, e, "revision: must be a number from 1 to that of the first line");
    }
    if (item_value(v, &value) < 0) {
        return bad(p, e, "value: must be a string, or base64");
    }
    item_sum(key, revision, value->data, value->size, sum);
    if (!streq_null(json_get_string(json_get(v, "sum")), sum)) {
        return bad(p, e, "the checksum is not that of the line: it was changed");
    }
    free(p->last_key);
    p->last_key = xstrdup(key);
    p->n_items++;
    *ret_key = xstrdup(key);
    *ret_value = TAKE(value);
    *ret_revision = revision;
    return 0;
}

int portable_read_line(struct portable *p, const char *line, size_t size, char **ret_key,
                       struct blob **ret_value, uint64_t *ret_revision, struct err *e)
{
    CLEANUP(json_free) struct json *v = NULL;
    struct err wrong = {0};
    p->line++;
    *ret_key = NULL;
    if (p->has_end) {
        return bad(p, e, "there is something after the end");
    }
    if (json_parse(line, size, &v, &wrong) < 0) {
        return bad(p, e, wrong.text);
    }
    int r = !p->has_head         ? read_head(p, v, e)
            : json_get(v, "end") ? read_last(p, v, e)
                                 : read_item(p, v, ret_key, ret_value, ret_revision, e);
    if (r == 0 && !p->has_end) {
        hash_add(p, line, size);
        hash_add(p, "\n", 1);
    }
    return r;
}

int portable_read_end(const struct portable *p, struct err *e)
{
    return p->has_end
               ? 0
               : err_set(e, -EBADMSG, "line %zu: the last line is missing: the file is cut off",
                         p->line + 1);
}

uint64_t portable_revision(const struct portable *p)
{
    return p->revision;
}

size_t portable_n_keys(const struct portable *p)
{
    return p->n_keys;
}

const char *portable_checksum(const struct portable *p)
{
    return p->checksum;
}
