/* SPDX-License-Identifier: Apache-2.0 */
#include "ebpf_fixture.h"

#include "base/mem.h"
#include "net/loop/process.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

bool ebpf_fixture_probe(struct program_features *ret)
{
    struct err e = {0};
    int r = program_probe(NULL, ret, &e);
    if (r < 0) {
        print_message("skipped: %s\n", e.text);
    }
    return r == 0;
}

void ebpf_put(int map, const void *key, const void *value)
{
    assert_int_equal(bpf_map_update_elem(map, key, value, BPF_ANY), 0);
}

int ebpf_place_enter(struct ebpf_place *p, const char *name)
{
    static bool has_own_mounts;
    struct err e = {0};
    snprintf(p->folder, sizeof p->folder, "/tmp/tenet-%s-%d", name, (int) getpid());
    CLEANUP_FREE char *bpffs = xasprintf("%s/bpf", p->folder);
    /* Threads of the pool stay in the mount namespace of their beginning: it is made once. */
    int mounts = has_own_mounts ? 0 : CLONE_NEWNS;
    if (unshare(CLONE_NEWNET | mounts) < 0 ||
        (mounts && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)) {
        print_message("no namespaces: %s\n", strerrordesc_np(errno));
        return -1;
    }
    has_own_mounts = true;
    if (dir_make(p->folder, 0700, &e) < 0 || program_mount(bpffs, &e) < 0) {
        print_message("%s\n", e.text);
        ebpf_place_leave(p);
        return -1;
    }
    return 0;
}

int ebpf_place_leave(struct ebpf_place *p)
{
    CLEANUP_FREE char *bpffs = xasprintf("%s/bpf", p->folder);
    umount2(bpffs, MNT_DETACH);
    return dir_remove(p->folder, NULL) < 0 ? -1 : 0;
}
