/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks: the user IDs, groups and SELinux level that belong to one project alone.
 *
 * The range of all user IDs is divided into blocks of one size.  Block number N has N-th IDs, and
 * its level is the (N * labels of a project)-th set of categories, in the order of OpenShift's
 * allocator: sets are ordered by their largest category, then by the next one.  Block 0 of the
 * defaults is 1000000000/10000 with s0:c1,c0; block 1 is 1000010000/10000 with s0:c3,c2.
 *
 * Pure. */
#pragma once

#include "pod/scc.h"

#define SCC_MAX_CATEGORIES 5 /* Of a level. */

struct scc_blocks {
    int64_t first, size; /* The first user ID, and the number of IDs of a block. */
    uint32_t n;          /* Blocks. */
    char sensitivity[16];
    unsigned per_level; /* Categories of a level. */
    unsigned categories, per_project;
};

/* The range 1000000000-1999999999/10000, two of 1,024 categories of s0, five levels a project. */
void scc_blocks_defaults(struct scc_blocks *ret);
/* Reads "FIRST-LAST/SIZE", the form of projectConfig.securityAllocator.uidAllocatorRange.
 * -EINVAL. */
int scc_blocks_parse_uids(const char *text, struct scc_blocks *b, struct err *e);
/* Reads "SENSITIVITY:/COUNT[,CATEGORIES]", the form of mcsAllocatorRange: "s0:/2".  -EINVAL. */
int scc_blocks_parse_levels(const char *text, struct scc_blocks *b, struct err *e);
/* Whether there are as many levels as blocks need.  -EINVAL. */
int scc_blocks_check(const struct scc_blocks *b, struct err *e);

/* Sets the three annotations of block 'i' (pod/scc.h); those that are there stay. */
void scc_block_annotate(const struct scc_blocks *b, uint32_t i, struct json *annotations);
/* The number of the block that an annotation SCC_UIDS_ANNOTATION names (NULL: there is none).
 * -ENOENT: the IDs begin in no block. */
int scc_block_find(const struct scc_blocks *b, const char *text, uint32_t *ret);
