/* SPDX-License-Identifier: Apache-2.0 */
/* What a pod is, on file: one file a pod below the run directory, named after the host end of its link.
 *
 * They are what makes a restarted agent know its pods.  A file appears and changes as a whole; the run directory is
 * emptied by a reboot, and with it go the links.  So nothing is waited for that only a later boot would read: should the
 * run directory be on a disk, a power failure may leave a file empty, of a pod that is gone. */
#pragma once

#include "datapath/datapath.h"

/* 'dir' is made when absent. */
int record_write(const char *dir, const struct dp_pod *p, struct err *e);
/* 0 when it is absent. */
int record_remove(const char *dir, const struct dp_pod *p, struct err *e);
/* Reads all; '*ret' is an owned array of owned pods.  'bad' hears of a file that is no record, and why. */
int record_read_all(const char *dir, void (*bad)(void *ctx, const char *file, const char *why),
                    void *ctx, struct dp_pod ***ret, size_t *ret_n, struct err *e);

/* The text of a file, and back; pure. */
char *record_format(const struct dp_pod *p);
int record_parse(const char *text, size_t size, struct dp_pod **ret, struct err *e);
