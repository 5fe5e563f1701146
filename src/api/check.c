/* SPDX-License-Identifier: Apache-2.0 */
/* What names, labels and the like may be, as in k8s.io/apimachinery/pkg/util/validation. */
#include "api/kind.h"

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
