/* SPDX-License-Identifier: Apache-2.0 */
#include "store/encryption.h"

#include "base/base64.h"
#include "base/random.h"
#include "base/str.h"
#include "net/loop/process.h"
#include "wire/yaml.h"

#include <openssl/evp.h>
#include <sys/stat.h>

#define REGISTRY "/registry/"
#define ENVELOPE "k8s:enc:"
#define MAX_FILE ((size_t) 1 << 20)
#define MAX_KEY 32
#define MAX_NAME 255
#define GCM_NONCE 12
#define GCM_TAG 16
#define CBC_IV 16

enum cipher { CIPHER_IDENTITY, CIPHER_AESGCM, CIPHER_AESCBC };
static const char *const cipher_names[] = {"identity", "aesgcm", "aescbc"};

struct key {
    char *head; /* "k8s:enc:aesgcm:v1:NAME:" */
    char *name;
    uint8_t secret[MAX_KEY];
    size_t size; /* 16, 24 or 32 bytes. */
};

struct provider {
    enum cipher cipher;
    struct key *keys;
    size_t n;
};

/* The providers of some resources. */
struct rule {
    char **resources; /* "secrets", "deployments.apps", "*.apps", "*.", "*.*" */
    size_t n_resources;
    struct provider *providers;
    size_t n;
};

struct encryption {
    struct rule *rules;
    size_t n;
};

/* ---- freeing ---- */

struct encryption *encryption_free(struct encryption *x)
{
    for (size_t r = 0; x && r < x->n; r++) {
        struct rule *rule = &x->rules[r];
        for (size_t p = 0; p < rule->n; p++) {
            for (size_t k = 0; k < rule->providers[p].n; k++) {
                free(rule->providers[p].keys[k].head);
                free(rule->providers[p].keys[k].name);
                explicit_bzero(&rule->providers[p].keys[k], sizeof(struct key));
            }
            free(rule->providers[p].keys);
        }
        for (size_t i = 0; i < rule->n_resources; i++) {
            free(rule->resources[i]);
        }
        free(rule->resources);
        free(rule->providers);
    }
    if (x) {
        free(x->rules);
        free(x);
    }
    return NULL;
}

/* ---- the configuration ---- */

static int check_members(const struct json *v, const char *field, const char *const *names,
                         struct err *e)
{
    if (!json_is(v, JSON_OBJECT)) {
        return err_set(e, -EINVAL, "%s: must be an object", field);
    }
    for (size_t i = 0; i < json_count(v); i++) {
        size_t n = 0;
        while (names[n] && !streq(names[n], json_key_at(v, i))) {
            n++;
        }
        if (!names[n]) {
            return err_set(e, -EINVAL, "%s.%.60s: unknown field", field, json_key_at(v, i));
        }
    }
    return 0;
}

static int check_list(const struct json *v, const char *field, struct err *e)
{
    if (!json_is(v, JSON_ARRAY) || !json_count(v)) {
        return err_set(e, -EINVAL, "%s: must be a list with at least one element", field);
    }
    return 0;
}

static int read_key(struct provider *p, const struct json *v, const char *field, struct err *e)
{
    static const char *const names[] = {"name", "secret", NULL};
    int r = check_members(v, field, names, e);
    const char *name = json_get_text(v, "name");
    const struct json *secret = json_get(v, "secret");
    struct key *k = &p->keys[p->n];
    if (r < 0) {
        return r;
    }
    if (!*name || strchr(name, ':') || strlen(name) > MAX_NAME) {
        return err_set(e, -EINVAL, "%s.name: must have 1 to %d bytes and no colon", field,
                       MAX_NAME);
    }
    for (size_t i = 0; i < p->n; i++) {
        if (streq(p->keys[i].name, name)) {
            return err_set(e, -EINVAL, "%s.name: \"%s\" is the name of another key", field, name);
        }
    }
    CLEANUP_STRBUF struct strbuf raw = {.max = MAX_KEY};
    r = json_string_size(secret)
            ? base64_decode(json_get_string(secret), json_string_size(secret), &raw)
            : -EINVAL;
    if (r < 0 || (raw.size != 16 && raw.size != 24 && raw.size != 32)) {
        if (raw.data) {
            explicit_bzero(raw.data, raw.size);
        }
        return err_set(e, -EINVAL, "%s.secret: must be 16, 24 or 32 bytes in base64", field);
    }
    memcpy(k->secret, raw.data, raw.size);
    explicit_bzero(raw.data, raw.size);
    k->size = raw.size;
    k->name = xstrdup(name);
    k->head = xasprintf(ENVELOPE "%s:v1:%s:", cipher_names[p->cipher], name);
    p->n++;
    return 0;
}

static int read_keys(struct provider *p, const struct json *v, const char *field, struct err *e)
{
    static const char *const names[] = {"keys", NULL};
    const struct json *keys = json_get(v, "keys");
    CLEANUP_FREE char *at = xasprintf("%s.keys", field);
    int r = check_members(v, field, names, e);
    r = r < 0 ? r : check_list(keys, at, e);
    if (r < 0) {
        return r;
    }
    p->keys = xcalloc(json_count(keys), sizeof *p->keys);
    for (size_t i = 0; r == 0 && i < json_count(keys); i++) {
        CLEANUP_FREE char *key = xasprintf("%s[%zu]", at, i);
        r = read_key(p, json_at(keys, i), key, e);
    }
    return r;
}

static int read_provider(struct provider *p, const struct json *v, const char *field, struct err *e)
{
    if (!json_is(v, JSON_OBJECT) || json_count(v) != 1) {
        return err_set(e, -EINVAL, "%s: must have exactly one provider", field);
    }
    const char *name = json_key_at(v, 0);
    const struct json *spec = json_at(v, 0);
    CLEANUP_FREE char *at = xasprintf("%s.%s", field, name);
    size_t i = 0;
    while (i < ARRAY_SIZE(cipher_names) && !streq(cipher_names[i], name)) {
        i++;
    }
    if (streq(name, "kms") || streq(name, "secretbox")) {
        return err_set(e, -EINVAL, "%s: the provider %s is not supported, use aesgcm", field, name);
    }
    if (i == ARRAY_SIZE(cipher_names)) {
        return err_set(e, -EINVAL, "%s: the provider \"%.60s\" is none of identity, aesgcm, aescbc",
                       field, name);
    }
    p->cipher = (enum cipher) i;
    return p->cipher == CIPHER_IDENTITY ? check_members(spec, at, (const char *const[]){NULL}, e)
                                        : read_keys(p, spec, at, e);
}

static int read_resource(struct rule *rule, const struct json *v, const char *field, struct err *e)
{
    const char *s = json_get_string(v);
    if (!s || !*s || strpbrk(s, "/ \t\n") || (streq(s, "*"))) {
        return err_set(e, -EINVAL,
                       "%s: must be RESOURCE, RESOURCE.GROUP, \"*.GROUP\", \"*.\" or \"*.*\"",
                       field);
    }
    rule->resources[rule->n_resources++] = xstrdup(s);
    return 0;
}

static int read_rule(struct rule *rule, const struct json *v, const char *field, struct err *e)
{
    static const char *const names[] = {"resources", "providers", NULL};
    const struct json *resources = json_get(v, "resources"), *providers = json_get(v, "providers");
    CLEANUP_FREE char *at_resources = xasprintf("%s.resources", field);
    CLEANUP_FREE char *at_providers = xasprintf("%s.providers", field);
    int r = check_members(v, field, names, e);
    r = r < 0 ? r : check_list(resources, at_resources, e);
    r = r < 0 ? r : check_list(providers, at_providers, e);
    if (r < 0) {
        return r;
    }
    rule->resources = xcalloc(json_count(resources), sizeof *rule->resources);
    for (size_t i = 0; r == 0 && i < json_count(resources); i++) {
        CLEANUP_FREE char *at = xasprintf("%s[%zu]", at_resources, i);
        r = read_resource(rule, json_at(resources, i), at, e);
    }
    rule->providers = xcalloc(json_count(providers), sizeof *rule->providers);
    for (size_t i = 0; r == 0 && i < json_count(providers); i++) {
        CLEANUP_FREE char *at = xasprintf("%s[%zu]", at_providers, i);
        r = read_provider(&rule->providers[rule->n++], json_at(providers, i), at, e);
    }
    return r;
}

int encryption_parse(const char *text, size_t size, struct encryption **ret, struct err *e)
{
    static const char *const names[] = {"apiVersion", "kind", "resources", NULL};
    CLEANUP(json_free) struct json *doc = NULL;
    CLEANUP(encryption_free) struct encryption *x = NEW(struct encryption);
    int r = yaml_parse(text, size, &doc, e);
    if (r < 0) {
        return r;
    }
    const struct json *rules = json_get(doc, "resources");
    if (!streq(json_get_text(doc, "kind"), "EncryptionConfiguration") ||
        !streq(json_get_text(doc, "apiVersion"), "apiserver.config.k8s.io/v1")) {
        return err_set(e, -EINVAL,
                       "kind: must be EncryptionConfiguration of apiserver.config.k8s.io/v1");
    }
    r = check_members(doc, "", names, e);
    r = r < 0 ? r : check_list(rules, "resources", e);
    if (r < 0) {
        return r;
    }
    x->rules = xcalloc(json_count(rules), sizeof *x->rules);
    for (size_t i = 0; r == 0 && i < json_count(rules); i++) {
        CLEANUP_FREE char *at = xasprintf("resources[%zu]", i);
        r = read_rule(&x->rules[x->n++], json_at(rules, i), at, e);
    }
    if (r == 0) {
        *ret = TAKE(x);
    }
    return r;
}

int encryption_load(const char *path, struct encryption **ret, struct err *e)
{
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    struct stat st;
    int r = file_read(path, MAX_FILE, &text, e);
    if (r < 0) {
        return r;
    }
    if (stat(path, &st) == 0 && (st.st_mode & (S_IROTH | S_IWOTH))) {
        r = err_set(e, -EPERM,
                    "it has keys, and every user of the host can read it: chmod 0600 it");
    }
    r = r < 0 ? r : encryption_parse(strbuf_cstr(&text), text.size, ret, e);
    if (text.data) {
        explicit_bzero(text.data, text.size);
    }
    return r < 0 ? err_prefix(e, "%s", path) : 0;
}

/* ---- the rule of a key ---- */

/* Whether 'spec' names the resource 'plural' of 'group', which are 'n' and 'm' bytes long. */
static bool names_resource(const char *spec, const char *plural, size_t n, const char *group,
                           size_t m)
{
    const char *dot = strchr(spec, '.');
    size_t size = dot ? (size_t) (dot - spec) : strlen(spec);
    bool any = size == 1 && *spec == '*';
    if (dot && any && streq(dot, ".*")) {
        return true;
    }
    return (any || (size == n && memcmp(spec, plural, n) == 0)) &&
           (dot ? strlen(dot + 1) == m && memcmp(dot + 1, group, m) == 0 : m == 0);
}

/* "/registry/PLURAL/..." or "/registry/GROUP/PLURAL/...": a group has a dot, or is one of the old
 * groups without one, whose keys have one part more. */
static const struct rule *rule_find(const struct encryption *x, const char *key)
{
    if (!x || !str_has_prefix(key, REGISTRY)) {
        return NULL;
    }
    const char *first = key + strlen(REGISTRY);
    size_t n = strcspn(first, "/");
    const char *second = first[n] ? first + n + 1 : first + n;
    size_t m = strcspn(second, "/");
    static const char *const groups[] = {"apps", "batch", "autoscaling", "policy", "extensions"};
    bool grouped = memchr(first, '.', n) != NULL;
    for (size_t i = 0; i < ARRAY_SIZE(groups) && !grouped; i++) {
        grouped = strlen(groups[i]) == n && memcmp(groups[i], first, n) == 0;
    }
    for (size_t r = 0; r < x->n; r++) {
        for (size_t i = 0; i < x->rules[r].n_resources; i++) {
            const char *spec = x->rules[r].resources[i];
            if (grouped ? names_resource(spec, second, m, first, n)
                        : names_resource(spec, first, n, "", 0)) {
                return &x->rules[r];
            }
        }
    }
    return NULL;
}

/* ---- ciphers ---- */

static const EVP_CIPHER *cipher_of(enum cipher c, size_t size)
{
    return c == CIPHER_AESGCM ? (size == 16   ? EVP_aes_128_gcm()
                                 : size == 24 ? EVP_aes_192_gcm()
                                              : EVP_aes_256_gcm())
                              : (size == 16   ? EVP_aes_128_cbc()
                                 : size == 24 ? EVP_aes_192_cbc()
                                              : EVP_aes_256_cbc());
}

int encryption_seal(const struct encryption *x, const char *key, struct blob *value,
                    struct blob **ret, struct err *e)
{
    const struct rule *rule = rule_find(x, key);
    const struct provider *p = rule ? &rule->providers[0] : NULL;
    int n = 0, last = 0;
    if (!p || p->cipher == CIPHER_IDENTITY) {
        *ret = blob_ref(value);
        return 0;
    }
    bool gcm = p->cipher == CIPHER_AESGCM;
    const struct key *k = &p->keys[0];
    size_t head = strlen(k->head), iv = gcm ? GCM_NONCE : CBC_IV;
    size_t most = head + iv + value->size + GCM_TAG + CBC_IV;
    if (value->size > INT32_MAX - 1024) {
        return err_set(e, -EIO, "%s: the value is too large", key);
    }
    CLEANUP_FREE uint8_t *out = xcalloc(1, most);
    uint8_t *text = out + head + iv;
    memcpy(out, k->head, head);
    random_bytes(out + head, iv);
    EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
    bool ok =
        c &&
        EVP_EncryptInit_ex(c, cipher_of(p->cipher, k->size), NULL, k->secret, out + head) == 1 &&
        (!gcm || EVP_EncryptUpdate(c, NULL, &n, (const uint8_t *) key, (int) strlen(key)) == 1) &&
        EVP_EncryptUpdate(c, text, &n, (const uint8_t *) value->data, (int) value->size) == 1 &&
        EVP_EncryptFinal_ex(c, text + n, &last) == 1 &&
        (!gcm || EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_GET_TAG, GCM_TAG, text + n + last) == 1);
    EVP_CIPHER_CTX_free(c);
    if (!ok) {
        return err_set(e, -EIO, "%s: encryption failed", key);
    }
    *ret = blob_new(out, head + iv + (size_t) n + (size_t) last + (gcm ? GCM_TAG : 0));
    return 0;
}

/* The text of 'size' bytes at 'data', behind the envelope's head; NULL: it is not of this key. */
static struct blob *open_with(const struct provider *p, const struct key *k, const char *key,
                              const uint8_t *data, size_t size)
{
    bool gcm = p->cipher == CIPHER_AESGCM;
    size_t iv = gcm ? GCM_NONCE : CBC_IV, tag = gcm ? GCM_TAG : 0;
    int n = 0, last = 0;
    uint8_t expected[GCM_TAG];
    if (size < iv + tag || size > INT32_MAX - 1024 || (!gcm && (size - iv) % CBC_IV)) {
        return NULL;
    }
    size_t text = size - iv - tag;
    CLEANUP_FREE uint8_t *out = xcalloc(1, text + CBC_IV);
    memcpy(expected, data + size - tag, tag);
    EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
    bool ok =
        c && EVP_DecryptInit_ex(c, cipher_of(p->cipher, k->size), NULL, k->secret, data) == 1 &&
        (!gcm || EVP_DecryptUpdate(c, NULL, &n, (const uint8_t *) key, (int) strlen(key)) == 1) &&
        EVP_DecryptUpdate(c, out, &n, data + iv, (int) text) == 1 &&
        (!gcm || EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_SET_TAG, GCM_TAG, expected) == 1) &&
        EVP_DecryptFinal_ex(c, out + n, &last) == 1;
    EVP_CIPHER_CTX_free(c);
    struct blob *ret = ok ? blob_new(out, (size_t) n + (size_t) last) : NULL;
    explicit_bzero(out, text + CBC_IV);
    return ret;
}

static bool has_head(const struct blob *value, const char *head)
{
    size_t n = strlen(head);
    return value->size >= n && memcmp(value->data, head, n) == 0;
}

/* The name of the key in an envelope, for messages: owned. */
static char *name_of(const struct blob *value)
{
    const char *p = (const char *) value->data, *end = p + MIN(value->size, (size_t) 320);
    unsigned colons = 0;
    size_t begin = 0;
    for (const char *q = p; q < end; q++) {
        if (*q == ':' && ++colons == 4) {
            begin = (size_t) (q - p) + 1;
        } else if (*q == ':' && colons == 5) {
            return xstrndup(p + begin, (size_t) (q - p) - begin);
        }
    }
    return xstrdup("");
}

int encryption_open(const struct encryption *x, const char *key, struct blob *value,
                    struct blob **ret, struct err *e)
{
    const struct rule *rule;
    if (!has_head(value, ENVELOPE)) {
        *ret = blob_ref(value);
        return 0;
    }
    rule = rule_find(x, key);
    for (size_t i = 0; rule && i < rule->n; i++) {
        const struct provider *p = &rule->providers[i];
        for (size_t k = 0; k < p->n; k++) {
            size_t head = strlen(p->keys[k].head);
            if (!has_head(value, p->keys[k].head)) {
                continue;
            }
            *ret = open_with(p, &p->keys[k], key, (const uint8_t *) value->data + head,
                             value->size - head);
            return *ret ? 0
                        : err_set(e, -EBADMSG,
                                  "the key \"%.64s\" of %s does not decrypt it: its secret is "
                                  "another one, or the value was changed or moved",
                                  p->keys[k].name, cipher_names[p->cipher]);
        }
    }
    CLEANUP_FREE char *name = name_of(value);
    return err_set(
        e, -ENOKEY,
        "it is encrypted with the key \"%.64s\", which the encryption configuration does "
        "not have for this resource",
        name);
}

bool encryption_is_stale(const struct encryption *x, const char *key, const struct blob *value)
{
    const struct rule *rule = rule_find(x, key);
    if (!rule) {
        return false;
    }
    const struct provider *p = &rule->providers[0];
    return p->cipher == CIPHER_IDENTITY ? has_head(value, ENVELOPE)
                                        : !has_head(value, p->keys[0].head);
}
