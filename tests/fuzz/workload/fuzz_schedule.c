/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz: schedules of CronJobs. What parses is due in ascending order, and the last time before now
 * is one of these. */
#include "base/mem.h"
#include "workload/schedule.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP_FREE char *text = xstrndup((const char *) data, size);
    struct cron_schedule c;
    struct err e = {0};
    int64_t start = 1767225600, t = start, last = 0; /* 2026-01-01T00:00:00Z */
    if (cron_parse(text, &c, &e) < 0) {
        return 0;
    }
    for (int i = 0; i < 3; i++) {
        int64_t next = schedule_next(&c, NULL, t);
        if (!next) {
            break;
        }
        if (next <= t) {
            __builtin_trap();
        }
        t = last = next;
    }
    if (last && schedule_last(&c, NULL, start, last) != last) {
        __builtin_trap();
    }
    return 0;
}
