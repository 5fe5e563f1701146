/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/setup/setup_sample.h"

#include "base/mem.h"
#include "cli/texts.h"

#define FOLDER "packaging/config/"

/* Texts that were made, one a file. */
static char *samples[8];

const char *setup_sample(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    for (size_t i = 0; texts_files[i].path; i++) {
        const char *file = texts_files[i].path;
        if (!texts_files[i].whole || i >= ARRAY_SIZE(samples) || !str_has_prefix(file, FOLDER) ||
            !streq(file + strlen(FOLDER), name)) {
            continue;
        }
        if (!samples[i]) {
            struct strbuf text = STRBUF_INIT;
            texts_files[i].whole(&text);
            samples[i] = strbuf_steal(&text);
        }
        return samples[i];
    }
    return NULL;
}
