/* SPDX-License-Identifier: Apache-2.0 */
#include "identity/htpasswd.h"

#include "base/base64.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"

#include <crypt.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>

#define SHA_PREFIX "{SHA}"
#define APR_PREFIX "$apr1$"
#define MD5_SIZE 16
#define SHA1_SIZE 20
#define BCRYPT_SIZE 60
/* A hash of no password, for the time of a check: bcrypt with the cost that htpasswd takes. */
#define EQUALIZER "$2y$05$abcdefghijklmnopqrstuuKd6y4OeAJFZ0DdoWQmmV0p.ufQxBI8C"

struct htpasswd {
    struct smap users;  /* Hashes by user. */
    const char *costly; /* The hash that takes longest; borrowed. */
    unsigned cost;      /* Its cost. */
};

struct htpasswd *htpasswd_free(struct htpasswd *h)
{
    if (h) {
        smap_done(&h->users);
        free(h);
    }
    return NULL;
}

size_t htpasswd_count(const struct htpasswd *h)
{
    return smap_size(&h->users);
}

/* ---- hashes ---- */

static bool is_bcrypt(const char *hash)
{
    static const char letters[] =
        "./ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    return strlen(hash) == BCRYPT_SIZE && hash[0] == '$' && hash[1] == '2' &&
           (hash[2] == 'a' || hash[2] == 'b' || hash[2] == 'y') && hash[3] == '$' &&
           hash[4] >= '0' && hash[4] <= '1' && hash[5] >= '0' && hash[5] <= '9' && hash[6] == '$' &&
           strspn(hash + 7, letters) == BCRYPT_SIZE - 7;
}

static unsigned bcrypt_cost(const char *hash)
{
    return (unsigned) (hash[4] - '0') * 10 + (unsigned) (hash[5] - '0');
}

static void md5(EVP_MD_CTX *c, uint8_t out[MD5_SIZE])
{
    unsigned n = MD5_SIZE;
    (void) EVP_DigestFinal_ex(c, out, &n);
    (void) EVP_DigestInit_ex(c, EVP_md5(), NULL);
}

static void add(EVP_MD_CTX *c, const void *p, size_t n)
{
    (void) EVP_DigestUpdate(c, p, n);
}

/* The 22 characters of Apache's MD5 (apr_md5_encode). */
static void apr1(const char *password, const char *salt, size_t salt_size, char out[23])
{
    static const char letters[] =
        "./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    static const uint8_t order[6][3] = {{0, 6, 12}, {1, 7, 13}, {2, 8, 14},
                                        {3, 9, 15}, {4, 10, 5}, {11, 0, 0}};
    uint8_t d[MD5_SIZE];
    size_t n = strlen(password);
    EVP_MD_CTX *c = EVP_MD_CTX_new();
    (void) EVP_DigestInit_ex(c, EVP_md5(), NULL);
    add(c, password, n);
    add(c, salt, salt_size);
    add(c, password, n);
    md5(c, d);
    add(c, password, n);
    add(c, APR_PREFIX, strlen(APR_PREFIX));
    add(c, salt, salt_size);
    for (size_t left = n; left; left -= MIN(left, (size_t) MD5_SIZE)) {
        add(c, d, MIN(left, (size_t) MD5_SIZE));
    }
    for (size_t bits = n; bits; bits >>= 1) {
        add(c, bits & 1 ? "" : password, 1);
    }
    md5(c, d);
    for (unsigned i = 0; i < 1000; i++) {
        add(c, i & 1 ? password : (const char *) d, i & 1 ? n : MD5_SIZE);
        add(c, salt, i % 3 ? salt_size : 0);
        add(c, password, i % 7 ? n : 0);
        add(c, i & 1 ? (const char *) d : password, i & 1 ? MD5_SIZE : n);
        md5(c, d);
    }
    EVP_MD_CTX_free(c);
    char *p = out;
    for (size_t i = 0; i < ARRAY_SIZE(order); i++) {
        bool last = i == ARRAY_SIZE(order) - 1;
        uint32_t v = last ? d[order[i][0]]
                          : (uint32_t) d[order[i][0]] << 16 | (uint32_t) d[order[i][1]] << 8 |
                                d[order[i][2]];
        for (unsigned k = 0; k < (last ? 2u : 4u); k++, v >>= 6) {
            *p++ = letters[v & 0x3f];
        }
    }
    *p = '\0';
    explicit_bzero(d, sizeof d);
}

static bool equal(const char *a, const char *b)
{
    return strlen(a) == strlen(b) && CRYPTO_memcmp(a, b, strlen(a)) == 0;
}

static bool check_bcrypt(const char *hash, const char *password)
{
    struct crypt_data *data = xcalloc(1, sizeof *data);
    const char *made = crypt_rn(password, hash, data, (int) sizeof *data);
    bool ok = made && equal(made, hash);
    explicit_bzero(data, sizeof *data);
    free(data);
    return ok;
}

static bool check_sha(const char *hash, const char *password)
{
    uint8_t digest[EVP_MAX_MD_SIZE];
    unsigned n = 0;
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    (void) EVP_Digest(password, strlen(password), digest, &n, EVP_sha1(), NULL);
    base64_encode(digest, n, &text);
    return equal(strbuf_cstr(&text), hash + sizeof SHA_PREFIX - 1);
}

static bool check_apr1(const char *hash, const char *password)
{
    const char *salt = hash + sizeof APR_PREFIX - 1;
    size_t n = strcspn(salt, "$");
    char made[23];
    apr1(password, salt, n, made);
    return equal(made, salt + n + 1);
}

/* NULL: the hash is of a kind that is accepted; else the reason. */
static const char *check_kind(const char *hash)
{
    CLEANUP_STRBUF struct strbuf digest = STRBUF_INIT;
    const char *salt = hash + sizeof APR_PREFIX - 1;
    if (is_bcrypt(hash)) {
        return bcrypt_cost(hash) >= 4 && bcrypt_cost(hash) <= 17
                   ? NULL
                   : "the cost of the bcrypt hash is not in 4-17";
    }
    if (str_has_prefix(hash, SHA_PREFIX)) {
        return base64_decode(hash + sizeof SHA_PREFIX - 1, strlen(hash) - sizeof SHA_PREFIX + 1,
                             &digest) == 0 &&
                       digest.size == SHA1_SIZE
                   ? NULL
                   : "the {SHA} hash is malformed";
    }
    if (str_has_prefix(hash, APR_PREFIX)) {
        size_t n = strcspn(salt, "$");
        return n >= 1 && n <= 8 && salt[n] == '$' && strlen(salt + n + 1) == 22
                   ? NULL
                   : "the $apr1$ hash is malformed";
    }
    return "the password is neither a bcrypt, $apr1$ nor {SHA} hash; make it with htpasswd -B";
}

bool htpasswd_check_hash(const char *hash, const char *password)
{
    return check_kind(hash)                   ? false
           : str_has_prefix(hash, SHA_PREFIX) ? check_sha(hash, password)
           : str_has_prefix(hash, APR_PREFIX) ? check_apr1(hash, password)
                                              : check_bcrypt(hash, password);
}

/* ---- the file ---- */

static int read_line(struct htpasswd *h, const char *line, size_t size, unsigned n, struct err *e)
{
    CLEANUP_FREE char *text = xstrndup(line, size);
    char *colon = strchr(text, ':');
    const char *wrong;
    if (!*text || *text == '#') {
        return 0;
    }
    if (strlen(text) != size) {
        return err_set(e, -EINVAL, "line %u: has a NUL", n);
    }
    if (!colon || colon == text) {
        return err_set(e, -EINVAL, "line %u: must be USER:HASH", n);
    }
    *colon = '\0';
    if (strlen(text) > HTPASSWD_USER_MAX) {
        return err_set(e, -EINVAL, "line %u: the user name has more than %d bytes", n,
                       HTPASSWD_USER_MAX);
    }
    /* Further fields, which some tools add, have no meaning here. */
    colon[1 + strcspn(colon + 1, ": \t")] = '\0';
    if ((wrong = check_kind(colon + 1))) {
        return err_set(e, -EINVAL, "line %u: user \"%.80s\": %s", n, text, wrong);
    }
    smap_set(&h->users, text, xstrdup(colon + 1));
    return 0;
}

static void find_costly(struct htpasswd *h)
{
    struct smap_entry *n;
    h->costly = NULL;
    SMAP_FOREACH (n, &h->users) {
        unsigned cost = is_bcrypt(n->value) ? bcrypt_cost(n->value) : 1;
        if (!h->costly || cost > h->cost) {
            h->costly = n->value;
            h->cost = cost;
        }
    }
}

int htpasswd_parse(const char *text, size_t size, struct htpasswd **ret, struct err *e)
{
    CLEANUP(htpasswd_free) struct htpasswd *h = NEW(struct htpasswd);
    smap_init(&h->users, free);
    unsigned n = 0;
    for (size_t i = 0; i < size;) {
        const char *end = memchr(text + i, '\n', size - i);
        size_t line = end ? (size_t) (end - text) - i : size - i;
        size_t bare = line && text[i + line - 1] == '\r' ? line - 1 : line;
        int r = read_line(h, text + i, bare, ++n, e);
        if (r < 0) {
            return r;
        }
        i += line + 1;
    }
    find_costly(h);
    *ret = TAKE(h);
    return 0;
}

bool htpasswd_check(const struct htpasswd *h, const char *user, const char *password)
{
    const char *hash = strlen(user) <= HTPASSWD_USER_MAX ? smap_get(&h->users, user) : NULL;
    if (!hash) {
        /* The time of an answer must not tell which users are in the file. */
        const char *costly = h->costly ? h->costly : EQUALIZER;
        (void) htpasswd_check_hash(costly, password);
        return false;
    }
    return htpasswd_check_hash(hash, password);
}
