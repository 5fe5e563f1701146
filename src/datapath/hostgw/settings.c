/* SPDX-License-Identifier: Apache-2.0 */
#include "datapath/hostgw/settings.h"

static int check_path(const char *v, struct err *e)
{
    return *v == '/' ? 0 : err_set(e, -EINVAL, "\"%s\" is not an absolute path", v);
}

const struct datapath_setting hostgw_settings[] = {
    {HOSTGW_SUBNET_FILE, HOSTGW_SUBNET_FILE_DEFAULT, check_path},
    {NULL, NULL, NULL},
};
