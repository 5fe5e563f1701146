/* SPDX-License-Identifier: Apache-2.0 */
#include "api/moment.h"

#include "base/str.h"

#include <stdio.h>

/* An element of a layout of Go's package time. */
enum element { LITERAL, YEAR, MONTH, DAY, HOUR, MINUTE, SECOND, MICROS, ZONE };

struct step {
    enum element element;
    const char *text;
    int least, most; /* Limits of a number. */
    const char *name;
};

static const struct step steps[] = {
    {YEAR, "2006", 0, 9999, "year"}, {LITERAL, "-", 0, 0, NULL},
    {MONTH, "01", 1, 12, "month"},   {LITERAL, "-", 0, 0, NULL},
    {DAY, "02", 0, 99, "day"},       {LITERAL, "T", 0, 0, NULL},
    {HOUR, "15", 0, 23, "hour"},     {LITERAL, ":", 0, 0, NULL},
    {MINUTE, "04", 0, 59, "minute"}, {LITERAL, ":", 0, 0, NULL},
    {SECOND, "05", 0, 59, "second"}, {MICROS, ".000000", 0, 0, NULL},
    {ZONE, "Z07:00", 0, 0, NULL},
};

#define LAYOUT "2006-01-02T15:04:05Z07:00"
#define LAYOUT_MICRO "2006-01-02T15:04:05.000000Z07:00"
#define SHOWN_MAX 64

struct reading {
    const char *text, *at, *zone;
    bool micro;
    int32_t ns;
    struct err *e;
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static int misread(struct reading *r, const char *element)
{
    return err_set(r->e, -EINVAL,
                   "parsing time \"%.*s\" as \"%s\": cannot parse \"%.*s\" as \"%s\"", SHOWN_MAX,
                   r->text, r->micro ? LAYOUT_MICRO : LAYOUT, SHOWN_MAX, r->at, element);
}

static int out_of_range(struct reading *r, const char *what)
{
    return err_set(r->e, -EINVAL, "parsing time \"%.*s\": %s out of range", SHOWN_MAX, r->text,
                   what);
}

static int read_number(struct reading *r, const struct step *step)
{
    int v = 0;
    size_t n = strlen(step->text);
    for (size_t i = 0; i < n; i++) {
        if (!is_digit(r->at[i])) {
            return misread(r, step->text);
        }
        v = v * 10 + (r->at[i] - '0');
    }
    r->at += n;
    if (v < step->least || v > step->most) {
        return out_of_range(r, step->name);
    }
    return 0;
}

/* A fraction that follows the seconds: of exactly six digits in a MicroTime, and of any number of
 * digits, or absent, in a Time. */
static int read_fraction(struct reading *r, const struct step *step)
{
    bool point = *r->at == '.' || *r->at == ',';
    size_t n = 0;
    while (point && is_digit(r->at[1 + n]) && (!r->micro || n < 6)) {
        n++;
    }
    if (r->micro && n < 6) {
        return misread(r, step->text);
    }
    int32_t place = 100000000;
    for (size_t i = 1; i <= n; i++, place /= 10) {
        r->ns += (r->at[i] - '0') * place;
    }
    r->at += n ? 1 + n : 0;
    return 0;
}

static int read_zone(struct reading *r, const struct step *step)
{
    const char *s = r->at;
    r->zone = s;
    if (*s == 'Z') {
        r->at++;
        return 0;
    }
    if ((*s != '+' && *s != '-') || !is_digit(s[1]) || !is_digit(s[2]) || s[3] != ':' ||
        !is_digit(s[4]) || !is_digit(s[5])) {
        return misread(r, step->text);
    }
    if ((s[1] - '0') * 10 + s[2] - '0' > 23) {
        return out_of_range(r, "time zone offset hour");
    }
    if (s[4] > '5') {
        return out_of_range(r, "time zone offset minute");
    }
    r->at += 6;
    return 0;
}

static int read_step(struct reading *r, const struct step *step)
{
    switch (step->element) {
    case LITERAL:
        if (*r->at != *step->text) {
            return misread(r, step->text);
        }
        r->at++;
        return 0;
    case MICROS:
        return read_fraction(r, step);
    case ZONE:
        return read_zone(r, step);
    default:
        return read_number(r, step);
    }
}

int moment_parse(const char *text, bool micro, struct moment *ret, struct err *e)
{
    struct reading r = {.text = text, .at = text, .micro = micro, .e = e};
    for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
        int error = read_step(&r, &steps[i]);
        if (error < 0) {
            return error;
        }
    }
    if (*r.at) {
        return err_set(e, -EINVAL, "parsing time \"%.*s\": extra text: \"%.*s\"", SHOWN_MAX, text,
                       SHOWN_MAX, r.at);
    }
    /* The steps do not know how long a month is; time_parse does. */
    char plain[TIME_TEXT_SIZE];
    snprintf(plain, sizeof plain, "%.19s%.6s", text, r.zone);
    int64_t ms;
    if (time_parse(plain, &ms) < 0) {
        return out_of_range(&r, "day");
    }
    *ret = (struct moment){.s = ms / 1000, .ns = r.ns};
    return 0;
}

int moment_format(const struct moment *m, bool micro, char out[TIME_TEXT_SIZE])
{
    if (m->s < MOMENT_MIN_S || m->s > MOMENT_MAX_S) {
        return -ERANGE;
    }
    time_format_s(m->s * 1000, out);
    size_t n = strlen(out) - 1;
    if (micro) {
        snprintf(out + n, TIME_TEXT_SIZE - n, ".%06dZ", (int) (m->ns / 1000));
    }
    return 0;
}
