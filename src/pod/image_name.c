/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/image_name.h"

#include "base/mem.h"
#include "base/str.h"

#include <ctype.h>

#define DEFAULT_HOST "docker.io"
#define OLD_DEFAULT_HOST "index.docker.io"
#define NAME_MAX_SIZE 255 /* The largest size of a completed host and path. */
#define TAG_MAX_SIZE 128
#define DIGEST_MIN_DIGITS 32
#define SHA256_DIGITS 64

/* Parts of a name, which borrow its text. */
struct parts {
    const char *host; /* NULL: the default. */
    size_t host_size;
    const char *path;
    size_t path_size;
    const char *tag; /* NULL: none. */
    size_t tag_size;
    const char *digest; /* NULL: none. */
};

static bool is_lower_or_digit(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool is_alnum(char c)
{
    return is_lower_or_digit(c) || (c >= 'A' && c <= 'Z');
}

/* What is before the first slash is a host if it has a dot, a port or a capital, or is "localhost". */
static bool is_host(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (s[i] == '.' || s[i] == ':' || (s[i] >= 'A' && s[i] <= 'Z')) {
            return true;
        }
    }
    return n == 9 && strncmp(s, "localhost", n) == 0;
}

static bool check_host(const char *s, size_t n)
{
    const char *colon = memchr(s, ':', n);
    size_t size = colon ? (size_t) (colon - s) : n;
    for (size_t i = 0; i < size; i++) {
        bool edge = i == 0 || i + 1 == size || s[i - 1] == '.' || s[i + 1] == '.';
        if (!is_alnum(s[i]) && (edge || (s[i] != '-' && s[i] != '.'))) {
            return false;
        }
    }
    for (size_t i = size + 1; i < n; i++) {
        if (s[i] < '0' || s[i] > '9') {
            return false;
        }
    }
    return size > 0 && (!colon || size + 1 < n);
}

/* The size of what may separate two words of a component: ".", "_", "__", or any number of "-". */
static size_t separator(const char *s, size_t n)
{
    size_t dashes = 0;
    while (dashes < n && s[dashes] == '-') {
        dashes++;
    }
    if (dashes || n == 0) {
        return dashes;
    }
    return n > 1 && s[0] == '_' && s[1] == '_' ? 2 : s[0] == '.' || s[0] == '_' ? 1 : 0;
}

/* Words with separators between them, in components with slashes between them. */
static bool check_path(const char *s, size_t n)
{
    size_t i = 0;
    for (;;) {
        size_t word = i;
        while (i < n && is_lower_or_digit(s[i])) {
            i++;
        }
        if (i == word) {
            return false;
        }
        if (i == n) {
            return true;
        }
        size_t between = s[i] == '/' ? 1 : separator(s + i, n - i);
        if (between == 0) {
            return false;
        }
        i += between;
    }
}

static bool check_tag(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!is_alnum(s[i]) && s[i] != '_' && (i == 0 || (s[i] != '.' && s[i] != '-'))) {
            return false;
        }
    }
    return n > 0 && n <= TAG_MAX_SIZE;
}

/* ALGORITHM:HEXADECIMAL */
static bool check_digest(const char *s)
{
    const char *colon = strchr(s, ':');
    size_t digits = colon ? strlen(colon + 1) : 0;
    for (const char *p = s; p < colon; p++) {
        bool edge = p == s || p + 1 == colon;
        if (!is_alnum(*p) && (edge || !strchr("-_+.", *p))) {
            return false;
        }
    }
    for (size_t i = 0; i < digits; i++) {
        if (!isxdigit((unsigned char) colon[1 + i]) || isupper((unsigned char) colon[1 + i])) {
            return false;
        }
    }
    bool sha256 = str_has_prefix(s, "sha256:");
    return colon && colon > s && (sha256 ? digits == SHA256_DIGITS : digits >= DIGEST_MIN_DIGITS);
}

/* 64 hexadecimal digits are an image's id, which is no name. */
static bool is_id(const char *s, size_t n)
{
    return n == SHA256_DIGITS && strspn(s, "0123456789abcdef") >= n;
}

/* The name without tag and digest, with its host (owned). */
static char *repository(const struct parts *p)
{
    bool hub =
        !p->host ||
        (p->host_size == strlen(OLD_DEFAULT_HOST) &&
         strncmp(p->host, OLD_DEFAULT_HOST, p->host_size) == 0) ||
        (p->host_size == strlen(DEFAULT_HOST) && strncmp(p->host, DEFAULT_HOST, p->host_size) == 0);
    if (!hub) {
        return xasprintf("%.*s/%.*s", (int) p->host_size, p->host, (int) p->path_size, p->path);
    }
    bool library = !memchr(p->path, '/', p->path_size);
    return xasprintf(DEFAULT_HOST "/%s%.*s", library ? "library/" : "", (int) p->path_size,
                     p->path);
}

static int refuse(struct err *e, const char *image, const char *reason)
{
    return err_set(e, -EINVAL,
                   "Failed to apply default image tag \"%.100s\": couldn't parse image name "
                   "\"%.100s\": %s",
                   image, image, reason);
}

static int parse(const char *image, struct parts *ret, struct err *e)
{
    struct parts p = {0};
    size_t first = strcspn(image, "/");
    bool host = image[first] == '/' && is_host(image, first);
    p.host = host ? image : NULL;
    p.host_size = host ? first : 0;
    p.path = host ? image + first + 1 : image;
    size_t end = strcspn(p.path, "@");
    p.digest = p.path[end] == '@' ? p.path + end + 1 : NULL;
    const char *colon = memchr(p.path, ':', end);
    p.path_size = colon ? (size_t) (colon - p.path) : end;
    p.tag = colon ? colon + 1 : NULL;
    p.tag_size = colon ? end - p.path_size - 1 : 0;
    if ((host && !check_host(p.host, p.host_size)) || !check_path(p.path, p.path_size) ||
        (p.tag && !check_tag(p.tag, p.tag_size)) || (p.digest && !check_digest(p.digest)) ||
        (!host && !p.tag && !p.digest && is_id(p.path, p.path_size))) {
        return refuse(e, image, "invalid reference format");
    }
    CLEANUP_FREE char *name = repository(&p);
    if (strlen(name) > NAME_MAX_SIZE) {
        return refuse(e, image, "repository name must not be more than 255 characters");
    }
    *ret = p;
    return 0;
}

int image_name_complete(const char *image, char **ret, struct err *e)
{
    struct parts p;
    int r = parse(image, &p, e);
    if (r < 0) {
        return r;
    }
    CLEANUP_FREE char *name = repository(&p);
    const char *rest = p.path + p.path_size;
    *ret = xasprintf("%s%s", name, *rest ? rest : ":latest");
    return 0;
}

int image_name_repository(const char *image, char **ret, struct err *e)
{
    struct parts p;
    int r = parse(image, &p, e);
    if (r == 0) {
        *ret = repository(&p);
    }
    return r;
}

const char *image_name_pull_policy(const char *image)
{
    struct parts p;
    if (parse(image, &p, NULL) < 0 || p.digest) {
        return "IfNotPresent";
    }
    bool latest = !p.tag || (p.tag_size == 6 && strncmp(p.tag, "latest", 6) == 0);
    return latest ? "Always" : "IfNotPresent";
}
