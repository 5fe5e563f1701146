/* SPDX-License-Identifier: Apache-2.0 */
#include "api/kinds/route_fields.h"

#include "api/kind_util.h"

#define MAX_NAME 63
#define MAX_HEADER_NAME 255
#define MAX_HEADER_VALUE 16384
#define HEADER_NAME_CHARACTERS                          \
    "!#$%&'*+-.0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ^_`" \
    "abcdefghijklmnopqrstuvwxyz|~"

const char *route_check_name(const char *s)
{
    const char *wrong = api_check_dns_subdomain(s);
    return wrong ? wrong : strlen(s) > MAX_NAME ? "must be no more than 63 characters" : NULL;
}

/* The first label that is wrong decides. */
static const char *check_labels(const char *s)
{
    while (true) {
        size_t n = strcspn(s, ".");
        char label[MAX_NAME + 1];
        if (n > MAX_NAME) {
            return "must be no more than 63 characters";
        }
        memcpy(label, s, n);
        label[n] = '\0';
        const char *wrong = api_check_dns_label(label);
        if (wrong || !s[n]) {
            return wrong;
        }
        s += n + 1;
    }
}

const char *route_check_host(const char *s)
{
    if (api_check_dns_subdomain(s)) {
        return "host must conform to DNS 952 subdomain conventions";
    }
    return check_labels(s);
}

const char *route_check_subdomain(const char *s)
{
    const char *wrong = api_check_dns_subdomain(s);
    return wrong ? wrong : check_labels(s);
}

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

const char *route_check_path(const char *s)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  "-._~!$&'()*+,;=:@/%";
    static const char rule[] = "must have only characters of a URL's path (RFC 3986, section 3.3); "
                               "others are written as % and two hexadecimal digits";
    if (*s != '/') {
        return "path must begin with /";
    }
    if (strlen(s) > ROUTE_MAX_PATH) {
        return "must have at most 2048 bytes";
    }
    for (const char *p = s; *p; p++) {
        if (!strchr(allowed, *p) || (*p == '%' && (!is_hex(p[1]) || !is_hex(p[2])))) {
            return rule;
        }
    }
    return NULL;
}

const char *route_check_port(const char *s)
{
    uint64_t number;
    bool good = str_to_u64(s, 65535, &number) == 0 ? number > 0 : !api_check_port_name(s);
    return good ? NULL : "must be a port's number (1 to 65535) or name";
}

const char *route_check_header_name(const char *s)
{
    static const char *const reserved[] = {"strict-transport-security", "proxy", "cookie",
                                           "set-cookie"};
    if (strlen(s) > MAX_HEADER_NAME) {
        return "name exceeds the maximum length, which is 255";
    }
    for (size_t i = 0; i < ARRAY_SIZE(reserved); i++) {
        if (strcasecmp(s, reserved[i]) == 0) {
            return "the following headers may not be modified using this API: "
                   "strict-transport-security, proxy, cookie, set-cookie";
        }
    }
    if (!*s || strspn(s, HEADER_NAME_CHARACTERS) != strlen(s)) {
        return "name must be a valid HTTP header name as defined in RFC 2616 section 4.2";
    }
    return NULL;
}

/* Passes 'word' at '*p'. */
static bool skip(const char **p, const char *word)
{
    if (!str_has_prefix(*p, word)) {
        return false;
    }
    *p += strlen(word);
    return true;
}

/* "{+Q,-X}": options of a log format's expression. */
static bool skip_options(const char **p)
{
    if (!skip(p, "{")) {
        return true;
    }
    do {
        if (**p == '-' || **p == '+') {
            (*p)++;
        }
        if (!**p || !strchr("QXE", **p)) {
            return false;
        }
        (*p)++;
    } while (skip(p, ","));
    return skip(p, "}");
}

/* "[req.hdr(NAME),lower]", after "%". */
static bool skip_expression(const char **p, bool request)
{
    if (!skip_options(p) || !skip(p, "[")) {
        return false;
    }
    if (skip(p, request ? "req.hdr(" : "res.hdr(")) {
        size_t n = strspn(*p, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-");
        *p += n;
        if (n == 0 || !skip(p, ")")) {
            return false;
        }
    } else if (!skip(p, "ssl_c_der")) {
        return false;
    }
    while (skip(p, ",")) {
        if (!skip(p, "lower") && !skip(p, "base64")) {
            return false;
        }
    }
    return skip(p, "]");
}

const char *route_check_header_value(const char *s, bool request)
{
    static const char *const rules[2] = {
        "must be a value of an HTTP header (RFC 7230, section 3.2); expressions in %[] may be "
        "res.hdr(NAME) and ssl_c_der, with the converters lower and base64; a percent sign is %%",
        "must be a value of an HTTP header (RFC 7230, section 3.2); expressions in %[] may be "
        "req.hdr(NAME) and ssl_c_der, with the converters lower and base64; a percent sign is %%"};
    if (strlen(s) > MAX_HEADER_VALUE) {
        return "value exceeds the maximum length, which is 16384";
    }
    for (const char *p = s; *p;) {
        if ((unsigned char) *p < ' ' || *p == '\x7f') {
            return rules[request];
        }
        if (*p++ == '%' && !skip(&p, "%") && !skip_expression(&p, request)) {
            return rules[request];
        }
    }
    return NULL;
}
