/* SPDX-License-Identifier: Apache-2.0 */
/* What is left on the node of pods that nobody has any more: neither the API nor the runtime tells of
 * them to an agent that was killed while it ended them. */
#include "base/log.h"
#include "base/mem.h"
#include "kubelet/pods/workers_priv.h"
#include "net/loop/process.h"

#include <dirent.h>

LOG_MODULE("pods");

/* The UID in "NAMESPACE_NAME_UID"; NULL: another name. */
static const char *uid_of(const char *name)
{
    const char *first = strchr(name, '_');
    const char *second = first ? strchr(first + 1, '_') : NULL;
    return second && second[1] && !strchr(second + 1, '_') ? second + 1 : NULL;
}

static void sweep_logs(const struct workers *p)
{
    const char *dir = p->c.node->log_dir;
    DIR *d = opendir(dir);
    for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
        const char *uid = e->d_type == DT_DIR ? uid_of(e->d_name) : NULL;
        if (!uid || smap_get(&p->workers, uid)) {
            continue;
        }
        CLEANUP_FREE char *path = xasprintf("%s/%s", dir, e->d_name);
        struct err error = {0};
        if (dir_remove(path, &error) < 0) {
            log_warn("a pod's logs were not removed", "path=%s error=\"%s\"", path, error.text);
        }
    }
    if (d) {
        closedir(d);
    }
}

void workers_sweep(const struct workers *p)
{
    sweep_logs(p);
    cgroups_sweep(p);
}
