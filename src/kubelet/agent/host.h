/* SPDX-License-Identifier: Apache-2.0 */
/* What this host has: processors, memory, disk, its name servers, its description. */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "pod/evict.h"
#include "runtime/runtime_spec.h"
#include "wire/json.h"

struct host_facts {
    int64_t milli_cpu, memory_bytes;
    int64_t disk_bytes; /* Of the file system that has the root directory. */
    int64_t disk_free, inodes, inodes_free, memory_available;
    int64_t pids_max, pids;
};
/* What cannot be read is 0. */
void host_read(const char *root_dir, struct host_facts *ret);
/* What is left on the host, for eviction.  'image_dir': where the runtime has its images; NULL: not
 * known. */
void host_signals(const char *root_dir, const char *image_dir,
                  struct evict_value ret[EVICT_SIGNALS]);
/* The hugepage sizes of the host as an object "hugepages-2Mi": "0" (owned). */
struct json *host_hugepages(void);
/* status.nodeInfo (owned); 'runtime': "containerd://1.6.20". */
struct json *host_info(const char *runtime);
const char *host_arch(void); /* "amd64" */
/* The settings of a resolv.conf(5); texts are in 'a'. */
void host_resolver(const char *path, struct arena *a, struct runtime_texts *servers,
                   struct runtime_texts *searches, struct runtime_texts *options);
