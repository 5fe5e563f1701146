/* SPDX-License-Identifier: Apache-2.0 */
#include "ebpf_fixture.h"

#include "base/mem.h"
#include "net/kernel/netns.h"
#include "net/loop/process.h"

#include <bpf/bpf.h>
#include <stdio.h>
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
    struct err e = {0};
    int fd = -1;
    p->back = -1;
    snprintf(p->folder, sizeof p->folder, "/tmp/tenet-%s-%d", name, (int) getpid());
    snprintf(p->ns, sizeof p->ns, "tenet-%s-%d", name, (int) getpid());
    CLEANUP_FREE char *bpffs = xasprintf("%s/bpf", p->folder);
    bool ok = dir_make(p->folder, 0700, &e) == 0 && program_mount(bpffs, &e) == 0 &&
              netns_create(p->ns, &e) == 0 && netns_open(p->ns, &fd, &e) == 0 &&
              netns_enter(fd, &p->back, &e) == 0;
    fd_close(fd);
    if (!ok) {
        print_message("%s\n", e.text);
        ebpf_place_leave(p);
    }
    return ok ? 0 : -1;
}

int ebpf_place_leave(struct ebpf_place *p)
{
    CLEANUP_FREE char *bpffs = xasprintf("%s/bpf", p->folder);
    if (p->back >= 0) {
        netns_leave(p->back);
        p->back = -1;
    }
    netns_delete(p->ns, NULL);
    umount2(bpffs, MNT_DETACH);
    return dir_remove(p->folder, NULL) < 0 ? -1 : 0;
}
