/* SPDX-License-Identifier: Apache-2.0 */
/* The owner of files beside a database.
 *
 * "tenet store" is run by root, and the master that opens the files afterwards may have a user of
 * its own. Blocking; any thread. */
#pragma once

#include "base/err.h"

/* Gives the regular file 'fd' to the owner and group of the database 'path', or of its folder while
 * there is no database.  Does nothing unless the caller is root.  -EMLINK: the file has a second
 * name, which may be in a folder that the database's owner cannot write. */
int sqlite_owner_give(int fd, const char *path, struct err *e);
