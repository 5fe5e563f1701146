/* SPDX-License-Identifier: Apache-2.0 */
#include "net/kernel/cgroup.h"

#include "base/mem.h"
#include "base/str.h"
#include "net/loop/process.h"

#include <linux/magic.h>
#include <signal.h>
#include <string.h>
#include <sys/vfs.h>

#define PROCS_MAX (1 << 20) /* Bytes of the list. */

static bool is_cgroup(const char *path)
{
    struct statfs fs;
    return statfs(path, &fs) == 0 &&
           (fs.f_type == CGROUP_SUPER_MAGIC || fs.f_type == CGROUP2_SUPER_MAGIC);
}

size_t cgroup_kill(const char *path)
{
    CLEANUP_FREE char *file = xasprintf("%s/cgroup.procs", path);
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT;
    size_t n = 0;
    if (!is_cgroup(path) || file_read(file, PROCS_MAX, &text, NULL) < 0) {
        return 0;
    }
    for (char *at = text.data, *end; at && (end = strchr(at, '\n')); at = end + 1) {
        uint64_t pid;
        *end = '\0';
        if (str_to_u64(at, INT32_MAX, &pid) == 0 && pid > 1) {
            n += kill((pid_t) pid, SIGKILL) == 0;
        }
    }
    return n;
}
