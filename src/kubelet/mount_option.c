/* SPDX-License-Identifier: Apache-2.0 */
#include "kubelet/mount_option.h"

#include <string.h>

#define OPTION_MAX 256

int mount_option_check(const char *option, struct err *e)
{
    size_t n = strlen(option);
    if (n == 0 || n > OPTION_MAX ||
        strspn(option, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                       "_-+=.:/@%[]") != n) {
        return err_set(e, -EINVAL, "invalid mount option \"%.80s\"", option);
    }
    return 0;
}
