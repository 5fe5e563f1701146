/* SPDX-License-Identifier: Apache-2.0 */
/* Names of LDAP as text: URLs (RFC 4516) and distinguished names (RFC 4514). */
#include "base/mem.h"
#include "wire/ldap.h"

#include <stdlib.h>
#include <strings.h>

#define MAX_DN 8192
#define MAX_RDN_PARTS 16

static int hex(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* ---- URLs ---- */

void ldap_url_done(struct ldap_url *u)
{
    free(u->host);
    free(u->base);
    free(u->attribute);
    free(u->filter);
    *u = (struct ldap_url){0};
}

int ldap_scope_parse(const char *text, enum ldap_scope *ret)
{
    static const char *const names[] = {
        [LDAP_SCOPE_BASE] = "base", [LDAP_SCOPE_ONE] = "one", [LDAP_SCOPE_SUB] = "sub"};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        if (strcasecmp(text, names[i]) == 0) {
            *ret = (enum ldap_scope) i;
            return 0;
        }
    }
    return -EINVAL;
}

/* The part up to 'stop' or the end, percent-decoded; moves '*s' behind it and behind 'stop'. */
static int take_part(const char **s, const char *stop, char **ret)
{
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    const char *p = *s;
    for (; *p && !strchr(stop, *p); p++) {
        if (*p == '%') {
            int high = hex(p[1]), low = high < 0 ? -1 : hex(p[2]);
            if (low < 0 || (!high && !low)) {
                return -EINVAL;
            }
            strbuf_addc(&out, (char) (high << 4 | low));
            p += 2;
        } else if (*p < ' ' || *p == 0x7f) {
            return -EINVAL;
        } else {
            strbuf_addc(&out, *p);
        }
    }
    *s = p + (*p != '\0');
    *ret = strbuf_steal(&out);
    return 0;
}

static bool host_is_valid(const char *s)
{
    size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_");
    return n && !s[n] && n < 256;
}

static int set_host(struct ldap_url *u, const char *s, size_t size, struct err *e)
{
    CLEANUP_FREE char *text = xstrndup(s, size);
    char *colon = strrchr(text, ':');
    uint64_t port = u->tls ? LDAPS_PORT : LDAP_PORT;
    if (colon) {
        *colon = '\0';
        if (str_to_u64(colon + 1, UINT16_MAX, &port) < 0 || !port) {
            return err_set(e, -EINVAL, "port \"%.20s\" is not in 1-65535", colon + 1);
        }
    }
    if (!host_is_valid(text)) {
        return err_set(e, -EINVAL, "\"%.100s\" is no host name or IPv4 address", text);
    }
    u->host = TAKE(text);
    u->port = (uint16_t) port;
    return 0;
}

static int set_attribute(struct ldap_url *u, char *list, struct err *e)
{
    list[strcspn(list, ",")] = '\0';
    if (!*list) {
        return 0;
    }
    if (!ldap_attribute_is_valid(list)) {
        return err_set(e, -EINVAL, "\"%.100s\" is no attribute", list);
    }
    u->attribute = xstrdup(list);
    return 0;
}

static int set_query(struct ldap_url *u, const char *s, struct err *e)
{
    CLEANUP_FREE char *base = NULL, *attributes = NULL, *scope = NULL, *filter = NULL;
    if (take_part(&s, "?", &base) < 0 || take_part(&s, "?", &attributes) < 0 ||
        take_part(&s, "?", &scope) < 0 || take_part(&s, "?", &filter) < 0) {
        return err_set(e, -EINVAL, "malformed escapes");
    }
    if (*s) {
        return err_set(e, -EINVAL, "extensions (\"%.100s\") are not supported", s);
    }
    struct err inner = {0};
    if (*base && !ldap_dn_is_below(base, base)) {
        return err_set(e, -EINVAL, "\"%.200s\" is no distinguished name", base);
    }
    if (*scope && ldap_scope_parse(scope, &u->scope) < 0) {
        return err_set(e, -EINVAL, "scope \"%.20s\" is not base, one or sub", scope);
    }
    u->has_scope = *scope != '\0';
    if (*filter) {
        if (*filter != '(') {
            char *whole = xasprintf("(%s)", filter);
            free(filter);
            filter = whole;
        }
        if (ldap_filter_check(filter, &inner) < 0) {
            return err_set(e, -EINVAL, "%s", inner.text);
        }
        u->filter = TAKE(filter);
    }
    u->base = TAKE(base);
    return set_attribute(u, attributes, e);
}

int ldap_url_parse(const char *text, struct ldap_url *ret, struct err *e)
{
    CLEANUP(ldap_url_done) struct ldap_url u = {0};
    u.tls = strncasecmp(text, "ldaps://", 8) == 0;
    if (!u.tls && strncasecmp(text, "ldap://", 7) != 0) {
        return err_set(e, -EINVAL, "\"%.200s\" does not begin with ldap:// or ldaps://", text);
    }
    const char *host = text + (u.tls ? 8 : 7);
    size_t size = strcspn(host, "/?");
    int r = set_host(&u, host, size, e);
    if (r == 0) {
        r = set_query(&u, host + size + (host[size] == '/'), e);
    }
    if (r < 0) {
        return err_prefix(e, "\"%.200s\"", text);
    }
    *ret = u;
    u = (struct ldap_url){0};
    return 0;
}

/* ---- distinguished names ---- */

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char) (c - 'A' + 'a') : c;
}

/* The value of an attribute up to a "," or "+" that is not escaped, with blanks as normalized. */
static int take_dn_value(const char **s, struct strbuf *out)
{
    const char *p = *s;
    size_t solid = out->size; /* The end of what is no trailing blank. */
    size_t start = out->size;
    bool blank = false;
    while (*p == ' ') {
        p++;
    }
    if (*p == '#') { /* A value in BER, as hexadecimal digits. */
        while (*p && !strchr(",;+", *p)) {
            strbuf_addc(out, lower(*p++));
        }
        *s = p;
        return 0;
    }
    while (*p && !strchr(",;+", *p)) {
        char c = *p++;
        bool escaped = c == '\\';
        if (strchr("\"<>", c)) {
            return -EINVAL;
        }
        if (escaped) {
            int high = hex(*p), low = high < 0 ? -1 : hex(p[1]);
            if (low >= 0) {
                c = (char) (high << 4 | low);
                p += 2;
            } else if (*p && strchr(" \"#+,;<=>\\", *p)) {
                c = *p++;
            } else {
                return -EINVAL;
            }
        }
        if (c == ' ') {
            blank |= solid > start; /* Blanks at the start are dropped. */
            continue;
        }
        if (blank) {
            strbuf_addc(out, ' ');
            blank = false;
        }
        c = lower(c);
        if ((unsigned char) c < 0x20 || strchr("\"#+,;<=>\\", c)) {
            strbuf_addf(out, "\\%02x", (unsigned char) c);
        } else {
            strbuf_addc(out, c);
        }
        solid = out->size;
    }
    *s = p;
    return 0;
}

static int compare_text(const void *a, const void *b)
{
    return strcmp(*(char *const *) a, *(char *const *) b);
}

/* One "TYPE=VALUE[+TYPE=VALUE...]". */
static int take_rdn(const char **s, struct strbuf *out)
{
    char *parts[MAX_RDN_PARTS];
    size_t n = 0;
    int r = 0;
    do {
        CLEANUP_STRBUF struct strbuf part = STRBUF_INIT;
        const char *p = *s + (n > 0);
        p += strspn(p, " ");
        size_t size = strcspn(p, "= ,+;\\\"");
        CLEANUP_FREE char *type = xstrndup(p, size);
        p += size;
        p += strspn(p, " ");
        if (*p != '=' || !ldap_attribute_is_valid(type) || n == MAX_RDN_PARTS) {
            r = -EINVAL;
            break;
        }
        for (const char *c = type; *c; c++) {
            strbuf_addc(&part, lower(*c));
        }
        strbuf_addc(&part, '=');
        *s = p + 1;
        r = take_dn_value(s, &part);
        parts[n++] = strbuf_steal(&part);
    } while (r == 0 && **s == '+');
    qsort(parts, n, sizeof *parts, compare_text);
    for (size_t i = 0; i < n; i++) {
        strbuf_addf(out, "%s%s", i ? "+" : "", parts[i]);
        free(parts[i]);
    }
    return r;
}

int ldap_dn_normalize(const char *dn, struct strbuf *out, struct err *e)
{
    CLEANUP_STRBUF struct strbuf n = STRBUF_INIT;
    const char *s = dn;
    int r = strlen(dn) > MAX_DN ? -EINVAL : 0;
    if (s[strspn(s, " ")]) {
        r = r < 0 ? r : take_rdn(&s, &n);
        while (r == 0 && *s) {
            s++; /* "," or the ";" of RFC 2253. */
            strbuf_addc(&n, ',');
            r = take_rdn(&s, &n);
        }
    }
    if (r < 0) {
        return err_set(e, r, "\"%.200s\" is no distinguished name", dn);
    }
    return strbuf_adds(out, strbuf_cstr(&n));
}

bool ldap_dn_equal(const char *a, const char *b)
{
    CLEANUP_STRBUF struct strbuf na = STRBUF_INIT, nb = STRBUF_INIT;
    return ldap_dn_normalize(a, &na, NULL) == 0 && ldap_dn_normalize(b, &nb, NULL) == 0 &&
           streq(strbuf_cstr(&na), strbuf_cstr(&nb));
}

bool ldap_dn_is_below(const char *dn, const char *base)
{
    CLEANUP_STRBUF struct strbuf n = STRBUF_INIT, b = STRBUF_INIT;
    if (ldap_dn_normalize(dn, &n, NULL) < 0 || ldap_dn_normalize(base, &b, NULL) < 0 ||
        n.size < b.size) {
        return false;
    }
    size_t at = n.size - b.size;
    return streq(strbuf_cstr(&n) + at, strbuf_cstr(&b)) &&
           (at == 0 || b.size == 0 || n.data[at - 1] == ',');
}
