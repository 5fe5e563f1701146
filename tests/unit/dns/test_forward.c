/* SPDX-License-Identifier: Apache-2.0 */
/* Which servers the forwarder asks: all but itself. */
#include "base/mem.h"
#include "dns/forward.h"
#include "net/process.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static struct dns_servers servers(const char *list)
{
    struct dns_servers s = {0};
    struct err e = {0};
    assert_int_equal(dns_servers_parse(list, &s, &e), 0);
    return s;
}

static void no_answer(void *ctx, const struct dns_cached *answer)
{
}

static size_t in_use(struct dns_forwarder *f)
{
    size_t up;
    return dns_forwarder_servers(f, &up);
}

/* Each question would become one more, until all waiters are used up. */
static void the_forwarder_does_not_ask_itself(void **state)
{
    (void) state;
    struct loop *loop = loop_new();
    struct dns_cache *cache = dns_cache_new(1000);
    struct dns_servers given = servers("10.128.0.1,10.128.0.1:5353,192.0.2.1");
    struct dns_servers own = servers("10.128.0.1,192.0.2.1");
    struct dns_key k = {.type = DNS_A};
    assert_int_equal(dns_name_parse("example.test", &k.name), 0);

    struct dns_forwarder *f = dns_forwarder_new(loop, cache, &given, NULL);
    assert_int_equal(in_use(f), 3);
    dns_forwarder_set_own(f, &own);
    assert_int_equal(in_use(f), 1); /* That at another port. */
    dns_forwarder_free(f);

    f = dns_forwarder_new(loop, cache, &own, NULL);
    dns_forwarder_set_own(f, &own);
    assert_int_equal(in_use(f), 0);
    assert_int_equal(dns_forwarder_ask(f, &k, 1, no_answer, NULL), -EHOSTUNREACH);
    dns_forwarder_free(f);

    char path[] = "/tmp/tenet-unit-resolv-XXXXXX";
    static const char text[] = "nameserver 10.128.0.1\nnameserver 192.0.2.2\n";
    close(mkstemp(path));
    assert_int_equal(file_write_atomic(path, text, strlen(text), 0600, NULL), 0);
    f = dns_forwarder_new(loop, cache, NULL, path);
    dns_forwarder_set_own(f, &own);
    assert_int_equal(in_use(f), 1);
    dns_forwarder_free(f);
    unlink(path);
    dns_cache_free(cache);
    loop_free(loop);
}

static void name_servers_are_read_from_a_file_only(void **state)
{
    (void) state;
    char dir[] = "/tmp/tenet-unit-resolv-XXXXXX";
    struct dns_servers s;
    struct err e = {0};
    assert_non_null(mkdtemp(dir));
    CLEANUP_FREE char *fifo = xasprintf("%s/resolv.conf", dir);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    alarm(10); /* Ends the test when it waits for the pipe's writer. */
    assert_int_equal(dns_servers_load(fifo, &s, &e), -EINVAL);
    alarm(0);
    assert_non_null(strstr(e.text, "is not a regular file"));
    assert_int_equal(dir_remove(dir, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_forwarder_does_not_ask_itself),
        cmocka_unit_test(name_servers_are_read_from_a_file_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
