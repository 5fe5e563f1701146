/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/tar.h"

#include <assert.h>
#include <stdio.h>

#define BLOCK 512

struct tar_header {
    char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type;
    char link[100], magic[6], version[2], owner[32], group[32], major[8], minor[8], prefix[155];
    char pad[12];
};
_Static_assert(sizeof(struct tar_header) == BLOCK, "a header is one block");

void tar_add(struct strbuf *b, const struct tar_entry *t)
{
    static const char zeros[BLOCK];
    struct tar_header h = {.magic = "ustar", .version = "00", .owner = "root", .group = "root"};
    assert(strlen(t->name) <= sizeof h.name && (!t->link || strlen(t->link) <= sizeof h.link));
    memcpy(h.name, t->name, strlen(t->name));
    h.type = t->data ? '0' : t->link ? '2' : '5';
    if (t->link) {
        memcpy(h.link, t->link, strlen(t->link));
    }
    snprintf(h.mode, sizeof h.mode, "%07o", t->mode);
    snprintf(h.uid, sizeof h.uid, "%07o", 0);
    snprintf(h.gid, sizeof h.gid, "%07o", 0);
    snprintf(h.size, sizeof h.size, "%011zo", t->data ? t->size : 0);
    snprintf(h.mtime, sizeof h.mtime, "%011o", 0);
    memset(h.checksum, ' ', sizeof h.checksum);
    unsigned sum = 0;
    for (size_t i = 0; i < BLOCK; i++) {
        sum += ((const unsigned char *) &h)[i];
    }
    snprintf(h.checksum, sizeof h.checksum, "%06o", sum);
    strbuf_add(b, &h, sizeof h);
    if (t->data) {
        strbuf_add(b, t->data, t->size);
        strbuf_add(b, zeros, (BLOCK - t->size % BLOCK) % BLOCK);
    }
}

void tar_end(struct strbuf *b)
{
    static const char zeros[2 * BLOCK];
    strbuf_add(b, zeros, sizeof zeros);
}
