/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/schedule.h"

#define MINUTE 60
#define HOUR 3600
#define DAY 86400
#define LATE_DAY 27
#define LATE_HOUR (20 * HOUR)
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

/* How long nothing can be due from the local time on that day: up to the last days of a month, up
 * to the evening of a day, so that no change of the offset is jumped over.  0: the day is due. */
static int64_t skip(const struct cron_schedule *c, int64_t day, int64_t in_day)
{
    unsigned month, of_month;
    unsigned weekday = (unsigned) ((day % 7 + 7 + 4) % 7); /* 1970-01-01 was a Thursday. */
    date_of(day, &month, &of_month);
    bool by_day = has(c->days, of_month), by_weekday = has(c->weekdays, weekday);
    bool due = c->any_day || c->any_weekday ? by_day && by_weekday : by_day || by_weekday;
    if (!has(c->months, month) && of_month < LATE_DAY) {
        return (LATE_DAY - of_month) * (int64_t) DAY;
    }
    if (has(c->months, month) && due) {
        return 0;
    }
    return in_day < LATE_HOUR ? LATE_HOUR - in_day : HOUR - in_day % HOUR;
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
        int64_t nothing = skip(c, day, in_day);
        if (nothing) {
            t += nothing;
        } else if (!has(c->hours, hour)) {
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
