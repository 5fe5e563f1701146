/* SPDX-License-Identifier: Apache-2.0 */
/* The atomic writer, walks and subPaths on real files and mounts, against containers that exchange
 * what is in their volumes. */
#include "kubelet/volumes/atomic_writer.h"
#include "kubelet/volumes/local_dirs.h"
#include "kubelet/volumes/mountinfo.h"
#include "kubelet/volumes/subpath.h"
#include "kubelet/volumes/tree.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "own_mounts.h"

/* Each test has an empty volume "vol" and a directory "victim" outside of it. */
static int vol = -1;

static int set_up(void **state)
{
    if (geteuid() == 0) {
        put_dir("vol", 0777);
        put_dir("victim", 0755);
        put_file("victim/secret", "outside", 0600);
        put_dir("victim/dir", 0700);
        vol = open_own("vol");
    }
    return 0;
}

static int tear_down(void **state)
{
    if (geteuid() == 0) {
        CLEANUP_FREE char *top = own_path("vol");
        CLEANUP_FREE char *binds = own_path("binds");
        int fd = open(own_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        close(vol);
        mount_remove_below(top, NULL);
        mount_remove_below(binds, NULL);
        assert_int_equal(tree_remove(fd, "vol", NULL), 0);
        assert_int_equal(tree_remove(fd, "victim", NULL), 0);
        assert_int_equal(tree_remove(fd, "binds", NULL), 0);
        close(fd);
    }
    return 0;
}

static void expect_victim_whole(void)
{
    struct stat dir = own_stat("victim"), file = own_stat("victim/secret");
    expect_text("victim/secret", "outside");
    assert_int_equal(dir.st_mode & 07777, 0755);
    assert_int_equal(dir.st_gid, 0);
    assert_int_equal(file.st_mode & 07777, 0600);
    assert_int_equal(file.st_gid, 0);
    assert_true(own_exists("victim/dir"));
}

/* ---- the atomic writer ---- */

/* Files of "PATH=TEXT PATH=TEXT" with the mode 0644. */
static struct pod_files files_of(const char *spec)
{
    struct pod_files f = {0};
    while (*spec) {
        size_t path = strcspn(spec, "="), size = strcspn(spec, " ");
        f.v = grow(f.v, &f.cap, f.n + 1, sizeof *f.v);
        f.v[f.n++] = (struct pod_file){.path = xstrndup(spec, path),
                                       .mode = 0644,
                                       .data = blob_new(spec + path + 1, size - path - 1)};
        spec += size + (spec[size] == ' ');
    }
    return f;
}

static bool write_files(const char *spec)
{
    CLEANUP(pod_files_done) struct pod_files f = files_of(spec);
    struct err e = {0};
    bool changed = false;
    if (atomic_write(vol, &f, (struct atomic_owner){0}, &changed, &e) < 0) {
        fail_msg("%s", e.text);
    }
    return changed;
}

static char *data_link(void)
{
    char text[256];
    ssize_t n = readlinkat(vol, "..data", text, sizeof text);
    return xstrndup(text, n < 0 ? 0 : (size_t) n);
}

static size_t members(const char *name)
{
    CLEANUP_FREE char *path = own_path(name);
    struct stat st;
    size_t n = 0;
    for (int i = 0; i < 100; i++) {
        CLEANUP_FREE char *member = xasprintf("%s/%d", path, i);
        n += lstat(member, &st) == 0;
    }
    return n;
}

static void an_update_replaces_all_files_and_an_equal_one_none(void **state)
{
    NEEDS_ROOT();
    assert_true(write_files("a=1 d/e=2 d/f=3"));
    expect_text("vol/a", "1");
    expect_text("vol/d/f", "3");
    CLEANUP_FREE char *first = data_link();
    assert_false(write_files("a=1 d/e=2 d/f=3"));
    CLEANUP_FREE char *same = data_link();
    assert_string_equal(first, same);
    assert_true(write_files("a=1 d/e=2"));
    assert_false(own_exists("vol/d/f"));
    assert_true(write_files("b=9"));
    assert_false(own_exists("vol/a"));
    assert_false(own_exists("vol/d"));
    expect_text("vol/b", "9");
    CLEANUP_FREE char *old = xasprintf("vol/%s", first);
    assert_false(own_exists(old));
    assert_true(write_files(""));
    assert_false(own_exists("vol/b"));
    assert_false(write_files(""));
    assert_true(write_files("a=1"));
}

static void modes_owners_and_groups_are_those_of_the_files(void **state)
{
    NEEDS_ROOT();
    CLEANUP(pod_files_done) struct pod_files f = files_of("d/a=1 b=2");
    const struct atomic_owner group = {.has_group = true, .group = 4242};
    bool changed;
    f.v[0].mode = 0400;
    f.v[1].mode = 0600;
    f.v[1].has_owner = true;
    f.v[1].owner = 77;
    assert_int_equal(atomic_write(vol, &f, (struct atomic_owner){0}, &changed, NULL), 0);
    assert_int_equal(own_stat("vol/..data/d/a").st_mode & 07777, 0400);
    assert_int_equal(own_stat("vol/..data/b").st_uid, 77);
    assert_int_equal(atomic_write(vol, &f, group, &changed, NULL), 0);
    assert_true(changed);
    assert_int_equal(own_stat("vol/..data/d/a").st_mode & 07777, 0440);
    assert_int_equal(own_stat("vol/..data/b").st_mode & 07777, 0640);
    assert_int_equal(own_stat("vol/..data/b").st_gid, 4242);
    assert_int_equal(own_stat("vol/..data/d").st_mode & 07777, 02755);
    assert_int_equal(atomic_write(vol, &f, group, &changed, NULL), 0);
    assert_false(changed);
}

static atomic_bool stop;

/* Reads two files of one directory "..data" for as long as the test runs; counts what it read. */
static void *read_pairs(void *arg)
{
    size_t *n = arg;
    while (!atomic_load(&stop)) {
        int fd = openat(vol, "..data", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0) {
            /* What the link led to when it was read may be gone when it is opened; a link is there
             * at all times. */
            struct stat st;
            if (errno != ENOENT || fstatat(vol, "..data", &st, AT_SYMLINK_NOFOLLOW) < 0) {
                return (char *) "there was no ..data";
            }
            continue;
        }
        CLEANUP_FREE char *a = read_at(fd, "a");
        CLEANUP_FREE char *b = read_at(fd, "b");
        close(fd);
        if (a && b) {
            ++*n;
            if (!streq(a, b)) {
                return (char *) "old and new files were mixed";
            }
        }
    }
    return NULL;
}

static void a_reader_never_sees_old_and_new_files_together(void **state)
{
    NEEDS_ROOT();
    pthread_t thread;
    size_t n = 0;
    void *fault;
    write_files("a=0 b=0");
    atomic_store(&stop, false);
    pthread_create(&thread, NULL, read_pairs, &n);
    for (int i = 1; i < 500; i++) {
        CLEANUP_FREE char *spec = xasprintf("a=%d b=%d", i, i);
        write_files(spec);
    }
    atomic_store(&stop, true);
    pthread_join(thread, &fault);
    if (fault) {
        fail_msg("%s", (const char *) fault);
    }
    assert_true(n > 0);
}

static void a_writer_whose_links_were_replaced_touches_nothing_outside(void **state)
{
    NEEDS_ROOT();
    CLEANUP_FREE char *victim = own_path("victim");
    write_files("secret=1 dir/x=2");
    unlinkat(vol, "..data", 0);
    put_link("vol/..data", victim);
    put_link("vol/..2020_01_01", victim);
    put_link("vol/..data_tmp", victim);
    put_link("vol/stale", victim);
    unlinkat(vol, "dir", 0);
    put_link("vol/dir", victim);
    assert_true(write_files("secret=1 dir/x=2"));
    expect_victim_whole();
    expect_text("vol/secret", "1");
    expect_text("vol/dir/x", "2");
    assert_false(own_exists("vol/stale"));
    assert_false(own_exists("vol/..2020_01_01"));
    /* A relative link out, and directories in the links' places. */
    unlinkat(vol, "..data", 0);
    put_link("vol/..data", "../victim");
    assert_true(write_files("secret=1 dir/x=2"));
    expect_victim_whole();
    unlinkat(vol, "..data", 0);
    put_dir("vol/..data", 0755);
    put_link("vol/..data/x", victim);
    put_dir("vol/..data_tmp", 0755);
    assert_true(write_files("secret=1 dir/x=2"));
    expect_victim_whole();
    expect_text("vol/dir/x", "2");
    /* A directory of the data is exchanged for a link to an equal one outside. */
    CLEANUP_FREE char *data = data_link();
    CLEANUP_FREE char *inside = xasprintf("vol/%s/dir", data);
    CLEANUP_FREE char *file = xasprintf("vol/%s/dir/x", data);
    CLEANUP_FREE char *file_path = own_path(file);
    CLEANUP_FREE char *dir_path = own_path(inside);
    put_file("victim/dir/x", "2", 0644);
    unlink(file_path);
    rmdir(dir_path);
    put_link(inside, "../../victim/dir");
    assert_true(write_files("secret=1 dir/x=2"));
    expect_text("victim/dir/x", "2");
    expect_victim_whole();
}

/* ---- walks ---- */

static void removal_follows_no_link_and_stops_at_a_mount(void **state)
{
    NEEDS_ROOT();
    CLEANUP_FREE char *victim = own_path("victim");
    CLEANUP_FREE char *at = own_path("vol/t/m");
    struct err e;
    put_dir("vol/t", 0700);
    put_dir("vol/t/a", 0);
    put_file("vol/t/a/f", "x", 0);
    put_link("vol/t/l", victim);
    put_link("vol/t/a/l", "../../../victim");
    put_dir("vol/t/m", 0755);
    assert_int_equal(mount(victim, at, NULL, MS_BIND, NULL), 0);
    assert_int_equal(tree_remove(vol, "t", &e), -EBUSY);
    assert_string_equal(e.text, "m is a mount");
    expect_victim_whole();
    assert_true(tree_is_mount_point(vol, "t/m"));
    assert_int_equal(umount(at), 0);
    assert_int_equal(tree_remove(vol, "t", &e), 0);
    assert_false(own_exists("vol/t"));
    expect_victim_whole();
    put_link("vol/l", victim);
    assert_int_equal(tree_remove(vol, "l", &e), 0);
    assert_int_equal(tree_remove(vol, "l", &e), 0);
    expect_victim_whole();
}

static void an_emptied_directory_stays_and_links_and_mounts_are_not_crossed(void **state)
{
    NEEDS_ROOT();
    static const char *const keep[] = {"lost+found", NULL};
    CLEANUP_FREE char *victim = own_path("victim");
    CLEANUP_FREE char *at = own_path("vol/m");
    struct err e;
    put_dir("vol/a", 0);
    put_file("vol/a/f", "x", 0);
    put_file("vol/.dot", "x", 0);
    put_dir("vol/lost+found", 0700);
    put_link("vol/l", victim);
    put_link("vol/a/l", "../../victim");
    put_dir("vol/m", 0755);
    assert_int_equal(mount(victim, at, NULL, MS_BIND, NULL), 0);
    assert_int_equal(tree_empty(vol, keep, &e), -EBUSY);
    expect_victim_whole();
    assert_int_equal(umount(at), 0);
    assert_int_equal(tree_empty(vol, keep, &e), 0);
    assert_false(own_exists("vol/a") || own_exists("vol/.dot") || own_exists("vol/l"));
    assert_true(own_exists("vol/lost+found"));
    assert_int_equal(tree_empty(vol, NULL, &e), 0);
    assert_false(own_exists("vol/lost+found"));
    assert_true(own_exists("vol"));
    expect_victim_whole();
}

static void the_directory_of_a_local_volume_is_made_found_and_removed(void **state)
{
    NEEDS_ROOT();
    CLEANUP_FREE char *folder = own_path("vol/local");
    CLEANUP_FREE char *victim = own_path("victim");
    struct err e;
    int64_t bytes;
    int fd;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(local_dir_make(folder, "pvc-1", 0, &e), 0);
    }
    assert_int_equal(own_stat("vol/local").st_mode & 07777, 0700);
    assert_int_equal(own_stat("vol/local/pvc-1").st_mode & 07777, 0777);
    put_file("vol/local/pvc-1/f", "x", 0600);
    assert_int_equal(local_dir_make(folder, "pvc-1", 0, &e), 0);
    expect_text("vol/local/pvc-1/f", "x");
    assert_int_equal(local_dir_measure(folder, "pvc-1", &bytes, &e), 0);
    assert_true(bytes > 0);
    assert_int_equal(local_dir_remove_empty(folder, "pvc-1", &e), 0);
    assert_true(own_exists("vol/local/pvc-1/f"));
    put_link("vol/local/pvc-2", victim);
    assert_true(local_dir_open(folder, "pvc-2", &fd, &e) < 0);
    assert_true(local_dir_make(folder, "pvc-2", 0, &e) < 0);
    assert_int_equal(local_dir_remove(folder, "pvc-2", &e), 0);
    assert_int_equal(local_dir_open(folder, "../victim", &fd, &e), -EINVAL);
    assert_int_equal(local_dir_remove(folder, "../victim", &e), -EINVAL);
    put_link("vol/local/pvc-1/l", victim);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(local_dir_remove(folder, "pvc-1", &e), 0);
        assert_false(own_exists("vol/local/pvc-1"));
    }
    assert_int_equal(local_dir_make(folder, "pvc-3", 0, &e), 0);
    assert_int_equal(local_dir_remove_empty(folder, "pvc-3", &e), 0);
    assert_false(own_exists("vol/local/pvc-3"));
    expect_victim_whole();
}

static void a_tree_of_any_depth_is_removed(void **state)
{
    NEEDS_ROOT();
    struct err e = {0};
    int at = dup(vol);
    for (int i = 0; i < 5000; i++) {
        int next;
        assert_int_equal(mkdirat(at, "d", 0700), 0);
        assert_int_equal(tree_open_dir(at, "d", &next, NULL), 0);
        close(openat(next, "f", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
        close(at);
        at = next;
    }
    close(at);
    if (tree_remove(vol, "d", &e) < 0) {
        fail_msg("%s", e.text);
    }
    assert_false(own_exists("vol/d"));
}

static void a_group_gets_the_volume_and_nothing_that_it_points_to(void **state)
{
    NEEDS_ROOT();
    CLEANUP_FREE char *victim = own_path("victim");
    CLEANUP_FREE char *at = own_path("vol/m");
    put_dir("vol/d", 0700);
    put_file("vol/d/f", "x", 0400);
    put_file("vol/d/exec", "x", 0711);
    put_link("vol/d/l", victim);
    put_link("vol/d/s", "../../victim/secret");
    put_dir("vol/m", 0755);
    assert_int_equal(mount(victim, at, NULL, MS_BIND, NULL), 0);
    assert_int_equal(tree_set_group(vol, 4242, false, NULL), 0);
    expect_victim_whole();
    assert_int_equal(own_stat("vol").st_gid, 4242);
    assert_int_equal(own_stat("vol").st_mode & 07777, 02777);
    assert_int_equal(own_stat("vol/d").st_mode & 07777, 02770);
    assert_int_equal(own_stat("vol/d/f").st_mode & 07777, 0660);
    assert_int_equal(own_stat("vol/d/exec").st_mode & 07777, 0771);
    assert_int_equal(own_stat("vol/d/f").st_gid, 4242);
    /* OnRootMismatch looks at the root only. */
    put_file("vol/d/new", "x", 0600);
    assert_int_equal(tree_set_group(vol, 4242, true, NULL), 0);
    assert_int_equal(own_stat("vol/d/new").st_mode & 07777, 0600);
    assert_int_equal(tree_set_group(vol, 4343, true, NULL), 0);
    assert_int_equal(own_stat("vol/d/new").st_gid, 4343);
    assert_int_equal(umount(at), 0);
}

static void a_volume_is_measured_without_what_it_points_to(void **state)
{
    NEEDS_ROOT();
    CLEANUP_FREE char *victim = own_path("victim");
    CLEANUP_FREE char *at = own_path("vol/m");
    CLEANUP_FREE char *one = own_path("vol/d/one");
    CLEANUP_FREE char *two = own_path("vol/two");
    CLEANUP_FREE char *big = own_path("victim/big");
    int64_t before, bytes, inodes;
    put_dir("vol/d", 0700);
    put_dir("vol/m", 0755);
    put_link("vol/l", victim);
    assert_int_equal(tree_measure(vol, &before, &inodes, NULL), 0);
    assert_int_equal(inodes, 3);
    int fd = open(one, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(posix_fallocate(fd, 0, 1 << 20), 0);
    close(fd);
    fd = open(big, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(posix_fallocate(fd, 0, 4 << 20), 0);
    close(fd);
    assert_int_equal(link(one, two), 0);
    assert_int_equal(mount(victim, at, NULL, MS_BIND, NULL), 0);
    assert_int_equal(tree_measure(vol, &bytes, &inodes, NULL), 0);
    assert_in_range(bytes - before, 1 << 20, (1 << 20) + 65536); /* Both names are one file. */
    assert_int_equal(inodes, 4);                                 /* "d", "l" and the two names. */
    assert_int_equal(umount(at), 0);
    /* What is too deep to be walked counts as very much. */
    int dir = dup(vol);
    for (int i = 0; i < 600; i++) {
        assert_int_equal(mkdirat(dir, "x", 0700), 0);
        int below = openat(dir, "x", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        close(dir);
        dir = below;
    }
    close(dir);
    assert_int_equal(tree_measure(vol, &bytes, &inodes, NULL), 0);
    assert_true(bytes == INT64_MAX);
}

/* A container that exchanges "d", a directory, and "l", a link out of the volume. */
static void *exchange(void *arg)
{
    size_t *n = arg;
    while (!atomic_load(&stop)) {
        renameat2(vol, "d", vol, "l", RENAME_EXCHANGE);
        ++*n;
    }
    return NULL;
}

static void a_group_never_reaches_a_directory_that_is_exchanged_for_a_link(void **state)
{
    NEEDS_ROOT();
    CLEANUP_FREE char *victim = own_path("victim");
    pthread_t thread;
    size_t n = 0;
    put_dir("vol/d", 0700);
    put_file("vol/d/secret", "inside", 0600);
    put_link("vol/l", victim);
    atomic_store(&stop, false);
    pthread_create(&thread, NULL, exchange, &n);
    for (int i = 0; i < 3000; i++) {
        struct err e = {0};
        if (tree_set_group(vol, 1000 + (gid_t) i, false, &e) < 0) {
            fail_msg("%s", e.text);
        }
    }
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
    assert_true(n > 0);
    expect_victim_whole();
}

/* ---- subPaths ---- */

static void subpaths_stay_in_the_volume(void **state)
{
    NEEDS_ROOT();
    CLEANUP_FREE char *victim = own_path("victim");
    CLEANUP_FREE char *fifo = own_path("vol/fifo");
    put_dir("vol/a", 0755);
    put_file("vol/a/f", "x", 0644);
    put_link("vol/in", "a");
    put_link("vol/a/up", "../a/f");
    put_link("vol/out", "../victim");
    put_link("vol/abs", victim);
    put_link("vol/etc", "/etc");
    put_link("vol/a/out", "../../victim/secret");
    put_link("vol/void", "nothing");
    put_link("vol/proc", "/proc/self/root");
    put_link("vol/loop", "loop");
    assert_int_equal(mkfifo(fifo, 0600), 0);
    static const struct {
        const char *path;
        bool make;
        int want;
    } cases[] = {
        {"a", true, 0},
        {"a/f", true, 0},
        {"in/f", true, 0},
        {"a/up", true, 0},
        {"a//f", false, 0},
        {"./a/./f", false, 0},
        {"a/", false, 0},
        {"x/y/z", false, -ENOENT},
        {"x/y/z", true, 0},
        {"in/new/er", true, 0},
        {"out", true, -EXDEV},
        {"out/secret", true, -EXDEV},
        {"out/new/dir", true, -EXDEV},
        {"abs/secret", true, -EXDEV},
        {"etc/passwd", true, -EXDEV},
        {"a/out", true, -EXDEV},
        {"proc/etc/passwd", true, -EXDEV},
        {"void", true, -EEXIST},
        {"void/x", true, -EEXIST},
        {"loop", true, -ELOOP},
        {"a/f/x", true, -ENOTDIR},
        {"fifo", true, -EINVAL},
        {"../victim", true, -EINVAL},
        {"a/../../victim", true, -EINVAL},
        {"a/..", true, -EINVAL},
        {"/etc", true, -EINVAL},
        {"", true, -EINVAL},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        int fd = -1, r = subpath_open(vol, cases[i].path, cases[i].make, &fd, NULL);
        if (r != cases[i].want) {
            fail_msg("%s: %d, not %d", cases[i].path, r, cases[i].want);
        }
        assert_int_equal(fd >= 0, r == 0);
        if (fd >= 0) {
            close(fd);
        }
    }
    assert_int_equal(own_stat("vol/x/y/z").st_mode & 07777, 0777);
    assert_true(own_exists("vol/a/new/er"));
    assert_false(own_exists("victim/new"));
    expect_victim_whole();
    struct err e;
    int fd;
    assert_int_equal(subpath_open(vol, "out/secret", true, &fd, &e), -EXDEV);
    assert_string_equal(e.text, "subPath out/secret leads out of the volume");
}

static void a_subpath_is_bound_and_bound_anew(void **state)
{
    NEEDS_ROOT();
    int fd, dir;
    struct err e = {0};
    put_dir("binds", 0750);
    put_dir("vol/a", 0755);
    put_file("vol/a/f", "one", 0644);
    put_file("vol/g", "two", 0644);
    dir = open_own("binds");
    assert_int_equal(subpath_open(vol, "a", false, &fd, NULL), 0);
    for (int i = 0; i < 2; i++) {
        if (subpath_bind(fd, dir, "0", &e) < 0) {
            fail_msg("%s", e.text);
        }
        expect_text("binds/0/f", "one");
    }
    close(fd);
    assert_int_equal(subpath_open(vol, "g", false, &fd, NULL), 0);
    assert_int_equal(subpath_bind(fd, dir, "0", &e), 0);
    expect_text("binds/0", "two");
    close(fd);
    close(dir);
    CLEANUP(mount_table_done) struct mount_table t = {0};
    CLEANUP_FREE char *top = own_path("binds");
    assert_int_equal(mount_table_read(&t, NULL), 0);
    size_t n = 0;
    for (size_t i = 0; i < t.n; i++) {
        n += mount_path_is_below(t.v[i].path, top);
    }
    assert_int_equal(n, 1);
}

static void a_swap_race_is_lost_ten_thousand_times(void **state)
{
    NEEDS_ROOT();
    CLEANUP_FREE char *victim = own_path("victim");
    pthread_t thread;
    size_t swaps = 0, inside = 0, refused = 0;
    put_dir("binds", 0750);
    put_dir("vol/d", 0755);
    put_file("vol/d/secret", "inside", 0644);
    put_link("vol/l", victim);
    int dir = open_own("binds");
    atomic_store(&stop, false);
    pthread_create(&thread, NULL, exchange, &swaps);
    for (int i = 0; i < 10000; i++) {
        int fd, r = subpath_open(vol, "d/secret", i % 2, &fd, NULL);
        if (r < 0) {
            refused++;
            continue;
        }
        struct err e = {0};
        if (subpath_bind(fd, dir, "0", &e) < 0) {
            fail_msg("%s", e.text);
        }
        close(fd);
        CLEANUP_FREE char *text = read_at(dir, "0");
        assert_string_equal(text, "inside");
        inside++;
    }
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
    close(dir);
    print_message("%zu exchanges, %zu times inside, %zu times refused\n", swaps, inside, refused);
    assert_true(swaps > 0 && inside > 0);
    expect_victim_whole();
}

/* Directories are made inside only, too. */
static void a_swap_race_makes_no_directory_outside(void **state)
{
    NEEDS_ROOT();
    CLEANUP_FREE char *victim = own_path("victim");
    pthread_t thread;
    size_t swaps = 0;
    put_dir("vol/d", 0755);
    put_link("vol/l", victim);
    atomic_store(&stop, false);
    pthread_create(&thread, NULL, exchange, &swaps);
    for (int i = 0; i < 3000; i++) {
        CLEANUP_FREE char *path = xasprintf("d/%d/x", i % 100);
        int fd;
        if (subpath_open(vol, path, true, &fd, NULL) == 0) {
            close(fd);
        }
        unlinkat(vol, path, AT_REMOVEDIR);
    }
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
    assert_true(swaps > 0);
    assert_int_equal(members("victim"), 0);
    expect_victim_whole();
}

/* ---- mounts ---- */

static void mount_tables_are_read_with_their_escapes(void **state)
{
    static const char text[] =
        "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 propagate_from:2 - ext3 /dev/root rw\n"
        "37 36 0:5 / /a\\040b\\134c\\011\\012\\000 rw - tmpfs  rw\n"
        "38 36 0:6 / /x rw shared:1 - nfs4 s:/p rw";
    static const char *const bad[] = {"x",
                                      "1 2 3:4 / /a rw",
                                      "1 2 3:4 / /a rw -",
                                      "a 2 3:4 / /a rw - t s o",
                                      "1 b 3:4 / /a rw - t s o",
                                      "\n"};
    CLEANUP(mount_table_done) struct mount_table t = {0};
    assert_int_equal(mount_table_parse(text, sizeof text - 1, &t, NULL), 0);
    assert_int_equal(t.n, 3);
    assert_int_equal(t.v[0].id, 36);
    assert_int_equal(t.v[0].parent, 35);
    assert_string_equal(t.v[0].path, "/mnt2");
    assert_string_equal(t.v[1].path, "/a b\\c\t\n\\000");
    assert_string_equal(t.v[2].fs_type, "nfs4");
    assert_string_equal(t.v[2].source, "s:/p");
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct mount_table none = {0};
        assert_int_equal(mount_table_parse(bad[i], strlen(bad[i]), &none, NULL), -EINVAL);
        assert_null(none.v);
    }
    assert_true(mount_path_is_below("/a/b", "/a"));
    assert_true(mount_path_is_below("/a", "/a"));
    assert_true(mount_path_is_below("/a", "/"));
    assert_false(mount_path_is_below("/ab", "/a"));
    assert_false(mount_path_is_below("/", "/a"));
}

static void mounts_below_are_removed_deepest_first(void **state)
{
    NEEDS_ROOT();
    CLEANUP_FREE char *top = own_path("vol/p");
    CLEANUP_FREE char *a = own_path("vol/p/a b\n");
    CLEANUP_FREE char *c = own_path("vol/p/a b\n/c");
    CLEANUP_FREE char *beside = own_path("vol/pp");
    CLEANUP_FREE char *victim = own_path("victim");
    put_dir("vol/p", 0755);
    put_dir("vol/pp", 0755);
    put_dir("vol/p/a b\n", 0755);
    assert_int_equal(mount("t", a, "tmpfs", 0, NULL), 0);
    assert_int_equal(mkdir(c, 0755), 0);
    assert_int_equal(mount(victim, c, NULL, MS_BIND, NULL), 0);
    assert_int_equal(mount("t", c, "tmpfs", 0, NULL), 0);
    assert_int_equal(mount(victim, beside, NULL, MS_BIND, NULL), 0);
    int busy = open(c, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct err e = {0};
    if (mount_remove_below(top, &e) < 0) {
        fail_msg("%s", e.text);
    }
    close(busy);
    assert_false(tree_is_mount_point(vol, "p/a b\n"));
    assert_true(tree_is_mount_point(vol, "pp"));
    assert_int_equal(tree_remove(vol, "p", &e), 0);
    expect_victim_whole();
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(an_update_replaces_all_files_and_an_equal_one_none),
        TEST(modes_owners_and_groups_are_those_of_the_files),
        TEST(a_reader_never_sees_old_and_new_files_together),
        TEST(a_writer_whose_links_were_replaced_touches_nothing_outside),
        TEST(removal_follows_no_link_and_stops_at_a_mount),
        TEST(an_emptied_directory_stays_and_links_and_mounts_are_not_crossed),
        TEST(the_directory_of_a_local_volume_is_made_found_and_removed),
        TEST(a_tree_of_any_depth_is_removed),
        TEST(a_volume_is_measured_without_what_it_points_to),
        TEST(a_group_gets_the_volume_and_nothing_that_it_points_to),
        TEST(a_group_never_reaches_a_directory_that_is_exchanged_for_a_link),
        TEST(subpaths_stay_in_the_volume),
        TEST(a_subpath_is_bound_and_bound_anew),
        TEST(a_swap_race_is_lost_ten_thousand_times),
        TEST(a_swap_race_makes_no_directory_outside),
        cmocka_unit_test(mount_tables_are_read_with_their_escapes),
        TEST(mounts_below_are_removed_deepest_first),
    };
    return cmocka_run_group_tests(tests, own_mounts_open, own_mounts_close);
}
