/* SPDX-License-Identifier: Apache-2.0 */
/* Rewrites the texts in the tree that are made from rows; runs in the tree's root. Not installed:
 * "make generate" builds and runs it. */
#include "cli/texts.h"
#include "net/loop/process.h"

#include <stdio.h>

#define MAX_TEXT (1u << 20)

static int write_file(const char *path, const struct strbuf *text, struct err *e)
{
    FILE *f = fopen(path, "we");
    bool good = f && fwrite(strbuf_cstr(text), 1, text->size, f) == text->size;
    good = f && fclose(f) == 0 && good;
    return good ? 0 : err_sys(e, -errno, "%s", path);
}

static int make(const struct texts_file *f, struct err *e)
{
    CLEANUP_STRBUF struct strbuf now = STRBUF_INIT_MAX(MAX_TEXT), text = STRBUF_INIT;
    int r = file_read(f->path, MAX_TEXT, &now, e);
    if (r == -ENOENT && f->whole) {
        r = 0;
    }
    if (r < 0 || (r = texts_make(f, strbuf_cstr(&now), &text, e)) < 0) {
        return r;
    }
    return streq(strbuf_cstr(&now), strbuf_cstr(&text)) ? 0 : write_file(f->path, &text, e);
}

int main(void)
{
    for (const struct texts_file *f = texts_files; f->path; f++) {
        struct err e = {0};
        if (make(f, &e) < 0) {
            fprintf(stderr, "gen-texts: %s\n", e.text);
            return 1;
        }
    }
    return 0;
}
