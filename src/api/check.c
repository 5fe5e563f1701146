/* SPDX-License-Identifier: Apache-2.0 */
/* Syntax of names, labels and the like, as in k8s.io/apimachinery/pkg/util/validation. */
#include "api/kind_util.h"

#include <arpa/inet.h>

static bool is_lower_alnum(char ch)
{
    return (ch >= 'a' && ch <= 'z') || (ch >= '0' && ch <= '9');
}

static bool is_alnum(char ch)
{
    return is_lower_alnum(ch) || (ch >= 'A' && ch <= 'Z');
}

/* [a-z0-9]([-a-z0-9]*[a-z0-9])? */
static bool is_label(const char *s, size_t n)
{
    if (n == 0 || !is_lower_alnum(s[0]) || !is_lower_alnum(s[n - 1])) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        if (!is_lower_alnum(s[i]) && s[i] != '-') {
            return false;
        }
    }
    return true;
}

/* ([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9] */
static bool is_word(const char *s, size_t n)
{
    if (n == 0 || !is_alnum(s[0]) || !is_alnum(s[n - 1])) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        if (!is_alnum(s[i]) && !strchr("-_.", s[i])) {
            return false;
        }
    }
    return true;
}

const char *api_check_dns_label(const char *s)
{
    size_t n = strlen(s);
    if (n > 63) {
        return "must be no more than 63 characters";
    }
    return is_label(s, n) ? NULL
                          : "a lowercase RFC 1123 label must consist of lower case alphanumeric "
                            "characters or '-', and must start and end with an alphanumeric "
                            "character (e.g. 'my-name',  or '123-abc', regex used for validation "
                            "is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
}

static bool is_subdomain(const char *s, size_t n)
{
    for (size_t start = 0, i = 0; i <= n; i++) {
        if (i == n || s[i] == '.') {
            if (!is_label(s + start, i - start)) {
                return false;
            }
            start = i + 1;
        }
    }
    return true;
}

const char *api_check_dns_subdomain(const char *s)
{
    size_t n = strlen(s);
    if (n > 253) {
        return "must be no more than 253 characters";
    }
    return is_subdomain(s, n)
               ? NULL
               : "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric "
                 "characters, '-' or '.', and must start and end with an alphanumeric character "
                 "(e.g. 'example.com', regex used for validation is "
                 "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
}

const char *api_check_path_segment(const char *s)
{
    if (streq(s, ".") || streq(s, "..")) {
        return "may not be '.' or '..'";
    }
    if (strchr(s, '/')) {
        return "may not contain '/'";
    }
    if (strchr(s, '%')) {
        return "may not contain '%'";
    }
    return strlen(s) > 253 ? "must be no more than 253 characters" : NULL;
}

const char *api_check_qualified_name(const char *s)
{
    const char *name = s, *slash = strchr(s, '/');
    if (slash) {
        size_t n = (size_t) (slash - s);
        if (n == 0) {
            return "prefix part must be non-empty";
        }
        if (n > 253) {
            return "prefix part must be no more than 253 characters";
        }
        if (!is_subdomain(s, n)) {
            return "prefix part a lowercase RFC 1123 subdomain must consist of lower case "
                   "alphanumeric characters, '-' or '.', and must start and end with an "
                   "alphanumeric character (e.g. 'example.com', regex used for validation is "
                   "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
        }
        name = slash + 1;
    }
    size_t n = strlen(name);
    if (n == 0) {
        return "name part must be non-empty";
    }
    if (n > 63) {
        return "name part must be no more than 63 characters";
    }
    return is_word(name, n)
               ? NULL
               : "name part must consist of alphanumeric characters, '-', '_' or '.', and must "
                 "start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or "
                 "'123-abc', regex used for validation is "
                 "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
}

const char *api_check_label_value(const char *s)
{
    size_t n = strlen(s);
    if (n > 63) {
        return "must be no more than 63 characters";
    }
    return n == 0 || is_word(s, n)
               ? NULL
               : "a valid label must be an empty string or consist of alphanumeric characters, "
                 "'-', '_' or '.', and must start and end with an alphanumeric character (e.g. "
                 "'MyValue',  or 'my_value',  or '12345', regex used for validation is "
                 "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
}

const char *api_check_config_key(const char *s)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    if (strlen(s) > 253) {
        return "must be no more than 253 characters";
    }
    for (const char *p = s; *p; p++) {
        if (!strchr(letters, *p) && !strchr("-._", *p)) {
            s = "";
            break;
        }
    }
    if (!*s) {
        return "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. "
               "'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is "
               "'[-._a-zA-Z0-9]+')";
    }
    return str_has_prefix(s, "..") ? "must not start with '..'"
           : streq(s, ".")         ? "must not be '.'"
                                   : NULL;
}

/* ---- addresses ---- */

const char *api_check_ip4(const char *s)
{
    uint32_t ip;
    return ip4_parse(s, &ip) == 0 ? NULL : "must be a valid IPv4 address, (e.g. 10.9.8.7)";
}

const char *api_check_ip(const char *s)
{
    struct in6_addr six;
    return !api_check_ip4(s) || inet_pton(AF_INET6, s, &six) == 1
               ? NULL
               : "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
}

int api_parse_cidr4(const char *s, struct err *e)
{
    struct ip4_prefix p;
    return prefix_parse(s, &p, e);
}

static bool is_unspecified6(const uint8_t a[16])
{
    static const uint8_t zero[16];
    return memcmp(a, zero, 16) == 0;
}

static bool is_loopback6(const uint8_t a[16])
{
    static const uint8_t one[16] = {[15] = 1};
    return memcmp(a, one, 16) == 0;
}

const char *api_check_endpoint_ip(const char *s)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    uint8_t a[16] = {0};
    uint32_t ip;
    const char *wrong = api_check_ip(s);
    if (wrong) {
        return wrong;
    }
    bool four = ip4_parse(s, &ip) == 0;
    (void) inet_pton(AF_INET6, s, a);
    if (!four && memcmp(a, mapped, sizeof mapped) == 0) {
        return "must not be an IPv4-mapped IPv6 address";
    }
    if (four ? ip == 0 : is_unspecified6(a)) {
        return "may not be unspecified (0.0.0.0 or ::)";
    }
    if (four ? ip >> 24 == 127 : is_loopback6(a)) {
        return "may not be in the loopback range (127.0.0.0/8, ::1/128)";
    }
    if (four ? ip >> 16 == 0xa9fe : a[0] == 0xfe && (a[1] & 0xc0) == 0x80) {
        return "may not be in the link-local range (169.254.0.0/16, fe80::/10)";
    }
    if (four ? ip >> 8 == 0xe00000 : a[0] == 0xff && (a[1] & 0x0f) == 2) {
        return "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)";
    }
    return NULL;
}

/* ---- ports ---- */

const char *api_check_port_name(const char *s)
{
    size_t n = strlen(s);
    bool letter = false;
    if (n > 15) {
        return "must be no more than 15 characters";
    }
    for (size_t i = 0; i < n; i++) {
        bool lower = s[i] >= 'a' && s[i] <= 'z';
        letter |= lower;
        if (!is_lower_alnum(s[i]) && s[i] != '-') {
            return "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)";
        }
        if (s[i] == '-' && s[i + 1] == '-') {
            return "must not contain consecutive hyphens";
        }
    }
    if (n && (s[0] == '-' || s[n - 1] == '-')) {
        return "must not begin or end with a hyphen";
    }
    return letter ? NULL : "must contain at least one letter (a-z)";
}
