/* SPDX-License-Identifier: Apache-2.0 */
#include "node/registry/identity.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void nodes_renew_between_70_and_90_percent(void **state)
{
    for (uint32_t seed = 0; seed < 5000; seed += 7) {
        int64_t at = identity_renew_at(1000000, 2000000, seed);
        assert_true(at >= 1700000 && at <= 1900000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_renew_between_70_and_90_percent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
