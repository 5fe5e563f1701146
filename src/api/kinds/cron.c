/* SPDX-License-Identifier: Apache-2.0 */
#include "api/kinds/cron.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/timeutil.h"

#include <errno.h>
#include <strings.h>

#define N_FIELDS 5
#define BLANKS " \t\n\v\f\r"

/* One of the five fields: its range, and names for its first numbers. */
struct field {
    unsigned min, max;
    const char *const *names; /* For 'min' and what follows; NULL: numbers only. */
    size_t n_names;
};

static const char *const months[] = {"jan", "feb", "mar", "apr", "may", "jun",
                                     "jul", "aug", "sep", "oct", "nov", "dec"};
static const char *const days[] = {"sun", "mon", "tue", "wed", "thu", "fri", "sat"};
static const struct field fields[N_FIELDS] = {
    {0, 59, NULL, 0},
    {0, 23, NULL, 0},
    {1, 31, NULL, 0},
    {1, 12, months, ARRAY_SIZE(months)},
    {0, 6, days, ARRAY_SIZE(days)},
};

/* A number, or the name of one. */
static int parse_number(const char *s, const struct field *f, unsigned *ret, struct err *e)
{
    uint64_t n;
    for (size_t i = 0; f && i < f->n_names; i++) {
        if (strcasecmp(s, f->names[i]) == 0) {
            *ret = f->min + (unsigned) i;
            return 0;
        }
    }
    if (str_to_u64(s, UINT32_MAX, &n) < 0) {
        return s[0] == '-' && s[1]
                   ? err_set(e, -EINVAL, "negative number (%.32s) not allowed: %.32s", s, s)
                   : err_set(e, -EINVAL, "failed to parse int from %.64s", s);
    }
    *ret = (unsigned) n;
    return 0;
}

/* "*", "?", "NUMBER" or "NUMBER-NUMBER". */
static int parse_bounds(char *s, const struct field *f, bool stepped, unsigned *ret_first,
                        unsigned *ret_last, bool *ret_any, struct err *e)
{
    char *dash = strchr(s, '-');
    int r;
    *ret_any = streq(s, "*") || streq(s, "?");
    if (*ret_any) {
        *ret_first = f->min;
        *ret_last = f->max;
        return 0;
    }
    if (dash && strchr(dash + 1, '-')) {
        return err_set(e, -EINVAL, "too many hyphens: %.64s", s);
    }
    if (dash) {
        *dash++ = '\0';
    }
    r = parse_number(s, f, ret_first, e);
    if (r < 0) {
        return r;
    }
    /* "N/STEP" means from N to the end. */
    *ret_last = stepped ? f->max : *ret_first;
    return dash ? parse_number(dash, f, ret_last, e) : 0;
}

/* "BOUNDS[/STEP]": adds its numbers to 'bits'; 'any' becomes true for all of them. */
static int parse_range(const char *text, const struct field *f, uint64_t *bits, bool *any,
                       struct err *e)
{
    CLEANUP_FREE char *s = xstrdup(text);
    char *slash = strchr(s, '/');
    unsigned first, last, step = 1;
    bool all;
    if (slash && strchr(slash + 1, '/')) {
        return err_set(e, -EINVAL, "too many slashes: %.64s", text);
    }
    if (slash) {
        *slash++ = '\0';
    }
    int r = parse_bounds(s, f, slash != NULL, &first, &last, &all, e);
    if (r == 0 && slash) {
        r = parse_number(slash, NULL, &step, e);
    }
    if (r < 0) {
        return r;
    }
    if (first < f->min) {
        return err_set(e, -EINVAL, "beginning of range (%u) below minimum (%u): %.64s", first,
                       f->min, text);
    }
    if (last > f->max) {
        return err_set(e, -EINVAL, "end of range (%u) above maximum (%u): %.64s", last, f->max,
                       text);
    }
    if (first > last) {
        return err_set(e, -EINVAL, "beginning of range (%u) beyond end of range (%u): %.64s", first,
                       last, text);
    }
    if (step == 0) {
        return err_set(e, -EINVAL, "step of range should be a positive number: %.64s", text);
    }
    for (unsigned i = first; i <= last; i += MIN(step, f->max + 1)) {
        *bits |= UINT64_C(1) << i;
    }
    *any |= all && step == 1;
    return 0;
}

/* Ranges, joined by ",". */
static int parse_field(char *s, const struct field *f, uint64_t *bits, bool *any, struct err *e)
{
    char *save = NULL;
    int r = 0;
    for (char *range = strtok_r(s, ",", &save); range && r == 0;
         range = strtok_r(NULL, ",", &save)) {
        r = parse_range(range, f, bits, any, e);
    }
    return r;
}

static int parse_descriptor(const char *s, struct cron_schedule *ret, struct err *e)
{
    static const struct {
        const char *name, *fields;
    } known[] = {{"@yearly", "0 0 1 1 *"}, {"@annually", "0 0 1 1 *"}, {"@monthly", "0 0 1 * *"},
                 {"@weekly", "0 0 * * 0"}, {"@daily", "0 0 * * *"},    {"@midnight", "0 0 * * *"},
                 {"@hourly", "0 * * * *"}};
    static const char every[] = "@every ";
    int64_t ns;
    for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
        if (streq(s, known[i].name)) {
            return cron_parse(known[i].fields, ret, e);
        }
    }
    if (!str_has_prefix(s, every)) {
        return err_set(e, -EINVAL, "unrecognized descriptor: %.64s", s);
    }
    /* A duration such as "1h30m" or "1.5s"; positive, and of whole seconds. */
    if (time_parse_duration(s + strlen(every), &ns) < 0 || ns <= 0) {
        return err_set(e, -EINVAL, "failed to parse duration %.64s", s);
    }
    *ret = (struct cron_schedule){.every_s = MAX(ns / NS_PER_S, 1)};
    return 0;
}

int cron_parse(const char *s, struct cron_schedule *ret, struct err *e)
{
    CLEANUP_FREE char *copy = xstrdup(s);
    char *save = NULL, *list[N_FIELDS];
    struct cron_schedule c = {0};
    uint64_t *bits[N_FIELDS] = {&c.minutes, &c.hours, &c.days, &c.months, &c.weekdays};
    bool any[N_FIELDS] = {false};
    size_t n = 0;
    int r = 0;
    if (!*s) {
        return err_set(e, -EINVAL, "empty spec string");
    }
    if (*s == '@') {
        return parse_descriptor(s, ret, e);
    }
    for (char *word = strtok_r(copy, BLANKS, &save); word; word = strtok_r(NULL, BLANKS, &save)) {
        if (n < N_FIELDS) {
            list[n] = word;
        }
        n++;
    }
    if (n != N_FIELDS) {
        return err_set(e, -EINVAL, "expected exactly %d fields, found %zu: [%.128s]", N_FIELDS, n,
                       s);
    }
    for (size_t i = 0; i < N_FIELDS && r == 0; i++) {
        r = parse_field(list[i], &fields[i], bits[i], &any[i], e);
    }
    if (r == 0) {
        c.any_day = any[2];
        c.any_weekday = any[4];
        *ret = c;
    }
    return r;
}

int cron_check_schedule(const char *s, struct err *e)
{
    struct cron_schedule schedule;
    return cron_parse(s, &schedule, e);
}
