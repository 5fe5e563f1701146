/* SPDX-License-Identifier: Apache-2.0 */
/* Mount options of PersistentVolumes, which become arguments of mount(8) and of CSI drivers.  Pure. */
#pragma once

#include "base/err.h"

/* Checks one mount option: letters, digits and "_-+=.:/@%[]", not empty, without a comma, at most 256
 * bytes. */
int mount_option_check(const char *option, struct err *e);
