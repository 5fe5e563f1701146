/* SPDX-License-Identifier: Apache-2.0 */
#include "api/format.h"

#include "api/kind.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/timeutil.h"

#include <arpa/inet.h>
#include <ctype.h>

static bool is_ipv4(const char *s)
{
    struct in_addr a;
    return inet_pton(AF_INET, s, &a) == 1;
}

static bool is_ipv6(const char *s)
{
    struct in6_addr a;
    return inet_pton(AF_INET6, s, &a) == 1;
}

static bool is_cidr(const char *s)
{
    const char *slash = strchr(s, '/');
    uint64_t bits;
    if (!slash || (slash[1] == '0' && slash[2])) {
        return false;
    }
    CLEANUP_FREE char *address = xstrndup(s, (size_t) (slash - s));
    return (is_ipv4(address) && str_to_u64(slash + 1, 32, &bits) == 0) ||
           (is_ipv6(address) && str_to_u64(slash + 1, 128, &bits) == 0);
}

/* Each 'x' of 'shape' is a hexadecimal digit, any other character itself. */
static bool has_shape(const char *s, const char *shape)
{
    for (; *shape; s++, shape++) {
        if (*shape == 'x' ? !isxdigit((unsigned char) *s) : *s != *shape) {
            return false;
        }
    }
    return !*s;
}

static bool is_mac(const char *s)
{
    return has_shape(s, "xx:xx:xx:xx:xx:xx") || has_shape(s, "xx-xx-xx-xx-xx-xx");
}

static bool is_uuid(const char *s)
{
    return has_shape(s, "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx");
}

/* Base64 with padding (RFC 4648). */
static bool is_byte(const char *s)
{
    size_t n = strlen(s), letters = 0;
    while (isalnum((unsigned char) s[letters]) || s[letters] == '+' || s[letters] == '/') {
        letters++;
    }
    size_t padding = strspn(s + letters, "=");
    return n % 4 == 0 && letters + padding == n && padding <= 2;
}

static bool is_date_time(const char *s)
{
    int64_t ms;
    return time_parse(s, &ms) == 0;
}

static bool is_date(const char *s)
{
    CLEANUP_FREE char *midnight = xasprintf("%sT00:00:00Z", s);
    return strlen(s) == 10 && is_date_time(midnight);
}

static bool is_hostname(const char *s)
{
    CLEANUP_FREE char *lower = xstrdup(s);
    for (char *p = lower; *p; p++) {
        *p = (char) tolower((unsigned char) *p);
    }
    return !api_check_dns_subdomain(lower);
}

static bool is_email(const char *s)
{
    const char *at = strrchr(s, '@');
    return at && at > s && !strpbrk(s, " \t\r\n<>,") && is_hostname(at + 1);
}

/* With a scheme, or from the root. */
static bool is_uri(const char *s)
{
    size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-.");
    for (const char *p = s; *p; p++) {
        if ((unsigned char) *p <= ' ' || *p == 0x7f) {
            return false;
        }
    }
    return *s == '/' || (n && isalpha((unsigned char) *s) && s[n] == ':' && s[n + 1]);
}

static bool is_duration(const char *s)
{
    int64_t ns;
    return time_parse_duration(s, &ns) == 0;
}

bool api_format_fits(const char *format, const char *s)
{
    static const struct {
        const char *name;
        bool (*fits)(const char *s);
    } formats[] = {
        {"ipv4", is_ipv4},         {"ipv6", is_ipv6},           {"cidr", is_cidr},
        {"mac", is_mac},           {"uuid", is_uuid},           {"byte", is_byte},
        {"date", is_date},         {"date-time", is_date_time}, {"datetime", is_date_time},
        {"hostname", is_hostname}, {"email", is_email},         {"uri", is_uri},
        {"duration", is_duration},
    };
    for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
        if (streq(format, formats[i].name)) {
            return formats[i].fits(s);
        }
    }
    return true;
}
