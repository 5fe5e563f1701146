/* SPDX-License-Identifier: Apache-2.0 */
/* The kubelet's root directory: locked, and moved from where a release before had it, with the mounts
 * below it. */
#include "kubelet/agent/root_dir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "own_mounts.h"

struct places {
    char *dir, *earlier;
    int lock;
    bool moved;
    struct err e;
};

static int set_up(void **state)
{
    struct places *p = NEW(struct places);
    p->dir = own_path("tenet-kubelet");
    p->earlier = own_path("tenet/kubelet");
    p->lock = -1;
    *state = p;
    if (geteuid() == 0) {
        mount("test", own_dir, "tmpfs", 0, "mode=0755");
        put_dir("tenet", 0755);
    }
    return 0;
}

static int tear_down(void **state)
{
    struct places *p = *state;
    fd_close(p->lock);
    free(p->dir);
    free(p->earlier);
    free(p);
    return geteuid() == 0 ? umount2(own_dir, MNT_DETACH) : 0;
}

static int take(struct places *p)
{
    return root_dir_take(p->dir, p->earlier, &p->lock, &p->moved, &p->e);
}

static int take_again(struct places *p, const char *dir)
{
    int lock = -1;
    bool moved = false;
    int r = root_dir_take(dir, NULL, &lock, &moved, &p->e);
    fd_close(lock);
    return r;
}

static void a_new_directory_has_one_kubelet(void **state)
{
    NEEDS_ROOT();
    struct places *p = *state;
    assert_int_equal(take(p), 0);
    assert_false(p->moved);
    assert_true(own_exists("tenet-kubelet/kubelet.lock"));
    assert_false(own_exists("tenet/kubelet"));
    assert_int_equal(take_again(p, p->dir), -EBUSY);
    assert_non_null(strstr(p->e.text, "in use by another kubelet"));
    p->lock = fd_close(p->lock);
    assert_int_equal(take_again(p, p->dir), 0);
}

static void an_earlier_directory_moves_with_its_mounts(void **state)
{
    NEEDS_ROOT();
    struct places *p = *state;
    put_dir("tenet/kubelet", 0750);
    put_dir("tenet/kubelet/pods", 0750);
    put_dir("tenet/kubelet/pods/secret", 0750);
    CLEANUP_FREE char *mounted = own_path("tenet/kubelet/pods/secret");
    assert_int_equal(mount("secret", mounted, "tmpfs", 0, "mode=0700"), 0);
    put_file("tenet/kubelet/pods/secret/token", "of a running pod", 0600);
    CLEANUP(fd_close) int held = open_own("tenet/kubelet/pods/secret");
    put_dir("tenet-kubelet", 0750); /* An empty one is in nobody's way. */

    assert_int_equal(take(p), 0);
    assert_true(p->moved);
    expect_text("tenet-kubelet/pods/secret/token", "of a running pod");
    assert_int_not_equal(own_stat("tenet-kubelet/pods/secret").st_dev,
                         own_stat("tenet-kubelet/pods").st_dev);
    CLEANUP_FREE char *same = read_at(held, "token");
    assert_string_equal(same, "of a running pod");
    /* The release before finds it by the link, and is kept out while this kubelet runs. */
    assert_true(S_ISLNK(own_stat("tenet/kubelet").st_mode));
    expect_text("tenet/kubelet/pods/secret/token", "of a running pod");
    assert_int_equal(take_again(p, p->earlier), -EBUSY);

    p->lock = fd_close(p->lock);
    assert_int_equal(take(p), 0);
    assert_false(p->moved);
    expect_text("tenet-kubelet/pods/secret/token", "of a running pod");
}

static void the_directory_of_a_running_kubelet_is_not_moved(void **state)
{
    NEEDS_ROOT();
    struct places *p = *state;
    int other = -1;
    bool moved;
    assert_int_equal(root_dir_take(p->earlier, NULL, &other, &moved, &p->e), 0);
    assert_int_equal(take(p), -EBUSY);
    assert_int_equal(p->lock, -1);
    assert_non_null(strstr(p->e.text, "tenet/kubelet is in use by another kubelet"));
    assert_false(own_exists("tenet-kubelet"));
    fd_close(other);
    assert_int_equal(take(p), 0);
    assert_true(p->moved);
}

static void a_directory_in_use_stays_when_both_are_there(void **state)
{
    NEEDS_ROOT();
    struct places *p = *state;
    put_dir("tenet/kubelet", 0750);
    put_file("tenet/kubelet/old", "1", 0600);
    put_dir("tenet-kubelet", 0750);
    put_file("tenet-kubelet/new", "2", 0600);
    assert_int_equal(take(p), 0);
    assert_false(p->moved);
    expect_text("tenet-kubelet/new", "2");
    expect_text("tenet/kubelet/old", "1");
}

static void a_mount_point_of_the_administrator_is_refused_with_the_way_out(void **state)
{
    NEEDS_ROOT();
    struct places *p = *state;
    put_dir("tenet/kubelet", 0750);
    assert_int_equal(mount("disk", p->earlier, "tmpfs", 0, "mode=0750"), 0);
    put_file("tenet/kubelet/old", "1", 0600);
    int r = take(p);
    assert_true(r == -EBUSY || r == -EXDEV);
    assert_non_null(strstr(p->e.text, "or set rootDir: "));
    assert_int_equal(p->lock, -1);
    expect_text("tenet/kubelet/old", "1");
    assert_false(own_exists("tenet-kubelet"));
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(a_new_directory_has_one_kubelet),
        T(an_earlier_directory_moves_with_its_mounts),
        T(the_directory_of_a_running_kubelet_is_not_moved),
        T(a_directory_in_use_stays_when_both_are_there),
        T(a_mount_point_of_the_administrator_is_refused_with_the_way_out),
    };
    return cmocka_run_group_tests(tests, own_mounts_open, own_mounts_close);
}
