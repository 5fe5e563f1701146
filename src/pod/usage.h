/* SPDX-License-Identifier: Apache-2.0 */
/* Use of processor, memory and network, as the kernel tells it in files: those of control groups (v1
 * and v2), /proc/stat, /proc/meminfo and /proc/net/dev.
 *
 * The texts are those of the files; what a text lacks is -1.  The working set is the memory without
 * inactive pages of files, which the kernel can drop at once; the kubelet evicts by it.  Pure. */
#pragma once

#include "base/arena.h"

struct pod_usage {
    int64_t cpu_ns; /* Since the group, or the host, began. */
    int64_t memory_bytes, working_set_bytes, rss_bytes;
    int64_t page_faults, major_page_faults;
};
extern const struct pod_usage pod_usage_unknown;

/* The files of one control group; NULL: there is none. */
struct pod_usage_files {
    const char *cpu;         /* cpuacct.usage of v1, cpu.stat of v2 */
    const char *memory;      /* memory.usage_in_bytes, memory.current */
    const char *memory_stat; /* memory.stat */
};
void pod_usage_read(const struct pod_usage_files *f, bool v2, struct pod_usage *ret);
/* The host by /proc/stat and /proc/meminfo; 'ticks': those of a second (sysconf _SC_CLK_TCK). */
void pod_usage_read_host(const char *stat, const char *meminfo, int64_t ticks,
                         struct pod_usage *ret);

/* Counters of a network interface. */
struct pod_link {
    char name[16];
    int64_t rx_bytes, rx_packets, rx_errors, rx_dropped;
    int64_t tx_bytes, tx_packets, tx_errors, tx_dropped;
};
/* The interfaces of a /proc/net/dev but for the loopback, at most 'max' of them. */
size_t pod_usage_links(const char *net_dev, struct pod_link *ret, size_t max);

/* Nanoseconds of CPU a second between two readings; -1: they do not follow each other. */
int64_t pod_usage_rate(int64_t cpu_ns, int64_t time_ns, int64_t cpu_before_ns,
                       int64_t time_before_ns);

/* The path of the slice "a-b-c.slice": "/a.slice/a-b.slice/a-b-c.slice" (systemd.slice(5)). */
const char *pod_slice_path(const char *slice, struct arena *a);
