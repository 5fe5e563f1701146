/* SPDX-License-Identifier: Apache-2.0 */
#include "base/timeutil.h"

#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

uint64_t time_mono_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t) ts.tv_sec * 1000000000u + (uint64_t) ts.tv_nsec;
}

uint64_t time_mono_ms(void)
{
    return time_mono_ns() / 1000000;
}

int64_t time_wall_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    return (int64_t) ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* Milliseconds after the full second, also before 1970. */
static unsigned fraction_ms(int64_t wall_ms)
{
    return (unsigned) ((wall_ms % 1000 + 1000) % 1000);
}

static size_t format_seconds(int64_t wall_ms, char out[TIME_TEXT_SIZE])
{
    time_t t = (time_t) ((wall_ms - fraction_ms(wall_ms)) / 1000);
    struct tm tm;
    gmtime_r(&t, &tm);
    return strftime(out, TIME_TEXT_SIZE, "%Y-%m-%dT%H:%M:%S", &tm);
}

void time_format_ms(int64_t wall_ms, char out[TIME_TEXT_SIZE])
{
    size_t n = format_seconds(wall_ms, out);
    snprintf(out + n, TIME_TEXT_SIZE - n, ".%03uZ", fraction_ms(wall_ms));
}

void time_format_s(int64_t wall_ms, char out[TIME_TEXT_SIZE])
{
    size_t n = format_seconds(wall_ms, out);
    snprintf(out + n, TIME_TEXT_SIZE - n, "Z");
}

void time_format_http(int64_t wall_ms, char out[TIME_TEXT_SIZE])
{
    static const char days[] = "SunMonTueWedThuFriSat";
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    time_t t = (time_t) ((wall_ms - fraction_ms(wall_ms)) / 1000);
    struct tm tm;
    gmtime_r(&t, &tm);
    snprintf(out, TIME_TEXT_SIZE, "%.3s, %02u %.3s %04u %02u:%02u:%02u GMT", days + 3 * tm.tm_wday,
             (unsigned) tm.tm_mday % 100, months + 3 * tm.tm_mon,
             (unsigned) (tm.tm_year + 1900) % 10000, (unsigned) tm.tm_hour % 100,
             (unsigned) tm.tm_min % 100, (unsigned) tm.tm_sec % 100);
}

void time_format_micro(int64_t wall_ms, char out[TIME_TEXT_SIZE])
{
    size_t n = format_seconds(wall_ms, out);
    snprintf(out + n, TIME_TEXT_SIZE - n, ".%03u000Z", fraction_ms(wall_ms));
}

/* Reads exactly 'n' digits at '*s'; -1 when there are fewer. */
static int digits(const char **s, int n)
{
    int v = 0;
    for (int i = 0; i < n; i++) {
        char c = (*s)[i];
        if (c < '0' || c > '9') {
            return -1;
        }
        v = v * 10 + (c - '0');
    }
    *s += n;
    return v;
}

static bool skip(const char **s, char c)
{
    if (**s != c) {
        return false;
    }
    (*s)++;
    return true;
}

int time_parse(const char *s, int64_t *ret_wall_ms)
{
    struct tm tm = {0};
    if ((tm.tm_year = digits(&s, 4)) < 0 || !skip(&s, '-') || (tm.tm_mon = digits(&s, 2)) < 1 ||
        tm.tm_mon > 12 || !skip(&s, '-') || (tm.tm_mday = digits(&s, 2)) < 1 || tm.tm_mday > 31 ||
        !(skip(&s, 'T') || skip(&s, 't')) || (tm.tm_hour = digits(&s, 2)) < 0 || tm.tm_hour > 23 ||
        !skip(&s, ':') || (tm.tm_min = digits(&s, 2)) < 0 || tm.tm_min > 59 || !skip(&s, ':') ||
        (tm.tm_sec = digits(&s, 2)) < 0 || tm.tm_sec > 60) {
        return -EINVAL;
    }
    int ms = 0;
    if (skip(&s, '.')) {
        int scale = 100;
        if (*s < '0' || *s > '9') {
            return -EINVAL;
        }
        for (; *s >= '0' && *s <= '9'; s++) {
            ms += (*s - '0') * scale;
            scale /= 10;
        }
    }
    int offset = 0;
    if (!skip(&s, 'Z') && !skip(&s, 'z')) {
        int sign = *s == '-' ? -1 : 1;
        int h, m;
        if (!(skip(&s, '+') || skip(&s, '-')) || (h = digits(&s, 2)) < 0 || h > 23 ||
            !skip(&s, ':') || (m = digits(&s, 2)) < 0 || m > 59) {
            return -EINVAL;
        }
        offset = sign * (h * 60 + m) * 60;
    }
    if (*s) {
        return -EINVAL;
    }
    static const uint8_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int y = tm.tm_year;
    bool leap_day = tm.tm_mon == 2 && tm.tm_mday == 29 && y % 4 == 0 && (y % 100 || y % 400 == 0);
    if (tm.tm_mday > days[tm.tm_mon - 1] && !leap_day) {
        return -EINVAL;
    }
    tm.tm_year -= 1900;
    tm.tm_mon -= 1;
    *ret_wall_ms = ((int64_t) timegm(&tm) - offset) * 1000 + ms;
    return 0;
}

int time_parse_duration(const char *text, int64_t *ret_ns)
{
    static const struct {
        const char *name;
        int64_t ns;
    } units[] = {{"ms", INT64_C(1000000)},
                 {"h", INT64_C(3600000000000)},
                 {"m", INT64_C(60000000000)},
                 {"s", INT64_C(1000000000)}};
    int64_t sum = 0;
    bool bad = !*text;
    for (const char *p = text; *p && !bad;) {
        size_t digits = strspn(p, "0123456789"), u = 0;
        CLEANUP_FREE char *number = xstrndup(p, digits);
        uint64_t n = 0;
        p += digits;
        while (u < ARRAY_SIZE(units) && !str_has_prefix(p, units[u].name)) {
            u++;
        }
        bad = u == ARRAY_SIZE(units) || str_to_u64(number, 1000000, &n) < 0 ||
              __builtin_add_overflow(sum, (int64_t) n * units[u].ns, &sum);
        p += bad ? 0 : strlen(units[u].name);
    }
    if (bad) {
        return -EINVAL;
    }
    *ret_ns = sum;
    return 0;
}

void time_format_age(int64_t age_ms, char out[TIME_TEXT_SIZE])
{
    int64_t s = age_ms < 0 ? 0 : age_ms / 1000;
    int64_t m = s / 60, h = m / 60, d = h / 24;
    if (s < 120) {
        snprintf(out, TIME_TEXT_SIZE, "%" PRId64 "s", s);
    } else if (m < 10) {
        snprintf(out, TIME_TEXT_SIZE, s % 60 ? "%" PRId64 "m%" PRId64 "s" : "%" PRId64 "m", m,
                 s % 60);
    } else if (h < 3) {
        snprintf(out, TIME_TEXT_SIZE, "%" PRId64 "m", m);
    } else if (h < 8) {
        snprintf(out, TIME_TEXT_SIZE, m % 60 ? "%" PRId64 "h%" PRId64 "m" : "%" PRId64 "h", h,
                 m % 60);
    } else if (h < 48) {
        snprintf(out, TIME_TEXT_SIZE, "%" PRId64 "h", h);
    } else if (d < 8) {
        snprintf(out, TIME_TEXT_SIZE, h % 24 ? "%" PRId64 "d%" PRId64 "h" : "%" PRId64 "d", d,
                 h % 24);
    } else if (d < 2 * 365) {
        snprintf(out, TIME_TEXT_SIZE, "%" PRId64 "d", d);
    } else {
        int64_t y = d / 365;
        snprintf(out, TIME_TEXT_SIZE,
                 d % 365 && y < 8 ? "%" PRId64 "y%" PRId64 "d" : "%" PRId64 "y", y, d % 365);
    }
}

uint64_t time_backoff_ms(unsigned attempt, uint64_t min_ms, uint64_t max_ms, uint32_t seed)
{
    uint64_t d = min_ms;
    while (attempt-- && d < max_ms) {
        d *= 2;
    }
    d = MIN(d, max_ms);
    uint32_t x = seed * 2654435761u;
    return d - d / 4 + (d / 4 ? (x >> 8) % (d / 4 + 1) : 0);
}
