/* SPDX-License-Identifier: Apache-2.0 */
/* The archives of images, as tar(1) reads them, and what counts as a static program. */
#include "base/mem.h"
#include "base/str.h"
#include "lab/images.h"
#include "net/loop/process.h"
#include "wire/tar.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

static void test_tar_reads_the_archive(void **state)
{
    CLEANUP_STRBUF struct strbuf b = STRBUF_INIT;
    CLEANUP_STRBUF struct strbuf out = STRBUF_INIT;
    static char data[700];
    memset(data, 'x', sizeof data);
    tar_add(&b, &(struct tar_entry){"bin/", 0755, NULL, 0, NULL});
    tar_add(&b, &(struct tar_entry){"bin/program", 0755, data, sizeof data, NULL});
    tar_add(&b, &(struct tar_entry){"bin/[", 0777, NULL, 0, "program"});
    tar_add(&b, &(struct tar_entry){"empty", 0644, "", 0, NULL});
    tar_end(&b);
    assert_int_equal(b.size % 512, 0);
    char path[] = "/tmp/tenet-tar-XXXXXX";
    CLEANUP(fd_close) int fd = mkstemp(path);
    assert_true(write(fd, b.data, b.size) == (ssize_t) b.size);
    const char *argv[] = {"tar", "--numeric-owner", "--utc", "-tvf", path, NULL};
    struct process_spec s = PROCESS_SPEC_INIT;
    s.argv = argv;
    int status = -1;
    assert_int_equal(process_run(&s, 10000, &out, NULL, &status, NULL), 0);
    unlink(path);
    assert_int_equal(status, 0);
    assert_string_equal(strbuf_cstr(&out),
                        "drwxr-xr-x 0/0               0 1970-01-01 00:00 bin/\n"
                        "-rwxr-xr-x 0/0             700 1970-01-01 00:00 bin/program\n"
                        "lrwxrwxrwx 0/0               0 1970-01-01 00:00 bin/[ -> program\n"
                        "-rw-r--r-- 0/0               0 1970-01-01 00:00 empty\n");
}

static void test_programs_that_need_others_are_refused(void **state)
{
    CLEANUP_STRBUF struct strbuf self = STRBUF_INIT;
    assert_int_equal(file_read("/proc/self/exe", (size_t) 256 << 20, &self, NULL), 0);
    assert_int_equal(lab_check_static(self.data, self.size), -ENOEXEC);
    /* Without its program headers it needs nothing; cut off it is none. */
    memset(self.data + 56, 0, 2);
    assert_int_equal(lab_check_static(self.data, self.size), 0);
    assert_int_equal(lab_check_static(self.data, 63), -ENOEXEC);
    memset(self.data + 56, 0xff, 2);
    assert_int_equal(lab_check_static(self.data, 4096), -ENOEXEC);
    assert_int_equal(lab_check_static("#!/bin/sh\n", 10), -ENOEXEC);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tar_reads_the_archive),
        cmocka_unit_test(test_programs_that_need_others_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
