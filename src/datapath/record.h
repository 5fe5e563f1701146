/* SPDX-License-Identifier: Apache-2.0 */
/* The pod records: one file per pod below the run directory, named after the host end of its
 * link.
 *
 * A restarted agent learns its pods from them. A file appears and changes as a whole. A reboot
 * empties the run directory and removes the links, so files are not synchronized to disk: should
 * the run directory be on a disk, a power failure may leave an empty file for a pod that is
 * gone. */
#pragma once

#include "datapath/datapath.h"

/* 'dir' is created when absent. */
int record_write(const char *dir, const struct dp_pod *p, struct err *e);
/* 0 when it is absent. */
int record_remove(const char *dir, const struct dp_pod *p, struct err *e);
/* Reads all; '*ret' is an owned array of owned pods. 'bad' is called for a file that is no
 * record, with the reason. */
int record_read_all(const char *dir, void (*bad)(void *ctx, const char *file, const char *why),
                    void *ctx, struct dp_pod ***ret, size_t *ret_n, struct err *e);

/* Formats and parses the text of a file; pure. */
char *record_format(const struct dp_pod *p);
int record_parse(const char *text, size_t size, struct dp_pod **ret, struct err *e);
