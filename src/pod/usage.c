/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/usage.h"

#include "base/str.h"

#include <string.h>

#define UNKNOWN                \
    {                          \
        -1, -1, -1, -1, -1, -1 \
    }
#define SECOND_NS INT64_C(1000000000)

const struct pod_usage pod_usage_unknown = UNKNOWN;

/* Reads a number and moves '*at' behind it; -1: there is none of at most 'max'. */
static int64_t take_number(const char **at, int64_t max)
{
    const char *p = *at + strspn(*at, " \t");
    int64_t n = 0;
    if (*p < '0' || *p > '9') {
        return -1;
    }
    for (; *p >= '0' && *p <= '9'; p++) {
        if (n > (max - (*p - '0')) / 10) {
            return -1;
        }
        n = n * 10 + (*p - '0');
    }
    *at = p;
    return n;
}

static int64_t number_of(const char *text)
{
    return text ? take_number(&text, INT64_MAX) : -1;
}

/* The number in the line that begins with 'key' and a blank. */
static int64_t line_of(const char *text, const char *key, int64_t max)
{
    size_t n = strlen(key);
    while (text && *text) {
        if (strncmp(text, key, n) == 0 && (text[n] == ' ' || text[n] == '\t')) {
            text += n;
            return take_number(&text, max);
        }
        const char *end = strchr(text, '\n');
        text = end ? end + 1 : NULL;
    }
    return -1;
}

static int64_t without(int64_t all, int64_t part)
{
    return all < 0 ? -1 : part < 0 ? all : part > all ? 0 : all - part;
}

void pod_usage_read(const struct pod_usage_files *f, bool v2, struct pod_usage *ret)
{
    const char *s = f->memory_stat;
    int64_t cpu = v2 ? line_of(f->cpu, "usage_usec", INT64_MAX / 1000) : number_of(f->cpu);
    int64_t memory = number_of(f->memory);
    *ret = (struct pod_usage){
        .cpu_ns = v2 && cpu >= 0 ? cpu * 1000 : cpu,
        .memory_bytes = memory,
        .working_set_bytes =
            without(memory, line_of(s, v2 ? "inactive_file" : "total_inactive_file", INT64_MAX)),
        .rss_bytes = line_of(s, v2 ? "anon" : "total_rss", INT64_MAX),
        .page_faults = line_of(s, v2 ? "pgfault" : "total_pgfault", INT64_MAX),
        .major_page_faults = line_of(s, v2 ? "pgmajfault" : "total_pgmajfault", INT64_MAX),
    };
}

/* Bytes of a line of /proc/meminfo. */
static int64_t kilobytes(const char *meminfo, const char *key)
{
    int64_t n = line_of(meminfo, key, INT64_MAX / 1024);
    return n < 0 ? -1 : n * 1024;
}

/* The sum of user, nice, system, irq, softirq and steal; guests are in user. */
static int64_t busy_ns(const char *stat, int64_t ticks)
{
    int64_t sum = 0;
    if (!stat || !str_has_prefix(stat, "cpu ") || ticks <= 0 || ticks > SECOND_NS) {
        return -1;
    }
    int64_t tick_ns = SECOND_NS / ticks;
    stat += strlen("cpu");
    for (int i = 0; i < 8; i++) {
        bool idle = i == 3 || i == 4;
        int64_t n = take_number(&stat, idle ? INT64_MAX : INT64_MAX / tick_ns / 8);
        if (n < 0) {
            return -1;
        }
        sum += idle ? 0 : n;
    }
    return sum * tick_ns;
}

void pod_usage_read_host(const char *stat, const char *meminfo, int64_t ticks,
                         struct pod_usage *ret)
{
    int64_t total = kilobytes(meminfo, "MemTotal:"), free = kilobytes(meminfo, "MemFree:");
    int64_t used = free < 0 ? -1 : without(total, free);
    *ret = (struct pod_usage){
        .cpu_ns = busy_ns(stat, ticks),
        .memory_bytes = used,
        .working_set_bytes = without(used, kilobytes(meminfo, "Inactive(file):")),
        .rss_bytes = kilobytes(meminfo, "AnonPages:"),
        .page_faults = -1,
        .major_page_faults = -1,
    };
}

size_t pod_usage_links(const char *net_dev, struct pod_link *ret, size_t max)
{
    size_t n = 0;
    for (const char *line = net_dev; line && *line && n < max;) {
        const char *end = line + strcspn(line, "\n"), *p = line + strspn(line, " ");
        size_t size = strcspn(p, ":\n");
        struct pod_link l = {0};
        int64_t v[12];
        size_t i = 0;
        const char *at = p[size] == ':' ? p + size + 1 : "";
        while (i < 12 && (v[i] = take_number(&at, INT64_MAX)) >= 0) {
            i++;
        }
        if (i == 12 && size && size < sizeof l.name && strncmp(p, "lo:", 3) != 0) {
            memcpy(l.name, p, size);
            ret[n] = (struct pod_link){.rx_bytes = v[0],
                                       .rx_packets = v[1],
                                       .rx_errors = v[2],
                                       .rx_dropped = v[3],
                                       .tx_bytes = v[8],
                                       .tx_packets = v[9],
                                       .tx_errors = v[10],
                                       .tx_dropped = v[11]};
            memcpy(ret[n++].name, l.name, sizeof l.name);
        }
        line = end + (*end == '\n');
    }
    return n;
}

int64_t pod_usage_rate(int64_t cpu_ns, int64_t time_ns, int64_t cpu_before_ns,
                       int64_t time_before_ns)
{
    if (cpu_before_ns < 0 || time_before_ns < 0 || cpu_ns < cpu_before_ns ||
        time_ns <= time_before_ns) {
        return -1;
    }
    double rate = (double) (cpu_ns - cpu_before_ns) * (double) SECOND_NS /
                  (double) (time_ns - time_before_ns);
    return rate >= (double) INT64_MAX ? -1 : (int64_t) rate;
}

const char *pod_slice_path(const char *slice, struct arena *a)
{
    const char *path = "", *end = slice + strcspn(slice, ".");
    for (const char *p = slice; p < end; p++) {
        if (*p == '-') {
            path = arena_printf(a, "%s/%.*s.slice", path, (int) (p - slice), slice);
        }
    }
    return arena_printf(a, "%s/%s", path, slice);
}
