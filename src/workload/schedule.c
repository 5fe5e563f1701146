/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/schedule.h"

#define MINUTE 60
#define HOUR 3600
#define DAY 86400
#define HORIZON (5 * 366 * (int64_t) DAY)

/* The date of a day since 1970, by the proleptic Gregorian calendar. */
static void date_of(int64_t day, unsigned *ret_month, unsigned *ret_day)
{
    int64_t z = day + 719468; /* Days since 0000-03-01. */
    int64_t era = (z >= 0 ? z : z - 146096) / 146097;
    int64_t in_era = z - era * 146097;
    int64_t year = (in_era - in_era / 1460 + in_era / 36524 - in_era / 146096) / 365;
    int64_t in_year = in_era - (365 * year + year / 4 - year / 100);
    int64_t month = (5 * in_year + 2) / 153; /* March has 0. */
    *ret_day = (unsigned) (in_year - (153 * month + 2) / 5 + 1);
    *ret_month = (unsigned) (month < 10 ? month + 3 : month - 9);
}

static bool has(uint64_t bits, unsigned i)
{
    return bits >> i & 1;
}

static bool is_day_due(const struct cron_schedule *c, int64_t day)
{
    unsigned month, of_month,
        weekday = (unsigned) ((day % 7 + 7 + 4) % 7); /* 1970-01-01: Thursday. */
    date_of(day, &month, &of_month);
    bool by_day = has(c->days, of_month), by_weekday = has(c->weekdays, weekday);
    return has(c->months, month) &&
           (c->any_day || c->any_weekday ? by_day && by_weekday : by_day || by_weekday);
}

static int64_t floor_div(int64_t a, int64_t b)
{
    return a >= 0 ? a / b : -((-a + b - 1) / b);
}

int64_t schedule_next(const struct cron_schedule *c, const struct tzif *zone, int64_t after_s)
{
    if (c->every_s) {
        return after_s + c->every_s;
    }
    int64_t t = (floor_div(after_s, MINUTE) + 1) * MINUTE, end = after_s + HORIZON;
    while (t < end) {
        int64_t local = t + tzif_offset(zone, t);
        int64_t day = floor_div(local, DAY), in_day = local - day * DAY;
        unsigned hour = (unsigned) (in_day / HOUR), minute = (unsigned) (in_day % HOUR / MINUTE);
        /* Hour by hour: whole days could jump over a change of the offset. */
        if (!has(c->hours, hour) || !is_day_due(c, day)) {
            t += HOUR - in_day % HOUR;
        } else if (!has(c->minutes, minute)) {
            t += MINUTE - in_day % MINUTE;
        } else {
            return t;
        }
    }
    return 0;
}

int64_t schedule_last(const struct cron_schedule *c, const struct tzif *zone, int64_t after_s,
                      int64_t now_s)
{
    static const int64_t spans[] = {HOUR, DAY, 32 * DAY, 367 * (int64_t) DAY, HORIZON};
    if (c->every_s) {
        int64_t n = now_s > after_s ? (now_s - after_s) / c->every_s : 0;
        return n ? after_s + n * c->every_s : 0;
    }
    for (size_t i = 0; i < ARRAY_SIZE(spans); i++) {
        int64_t from = MAX(after_s, now_s - spans[i]), last = 0;
        for (int64_t t = schedule_next(c, zone, from); t && t <= now_s;
             t = schedule_next(c, zone, t)) {
            last = t;
        }
        if (last || from == after_s) {
            return last;
        }
    }
    return 0;
}
