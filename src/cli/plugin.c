/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/plugin.h"

#include "base/mem.h"
#include "base/str.h"
#include "net/loop/process.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#define MAX_WORDS 16 /* Words of a plug-in's name. */

/* The name of the plug-in for the first 'n' words; owned. */
static char *file_name(const char *prefix, int n, char *const *words)
{
    struct strbuf b = STRBUF_INIT;
    strbuf_adds(&b, prefix);
    for (int i = 0; i < n; i++) {
        strbuf_addc(&b, '-');
        for (const char *p = words[i]; *p; p++) {
            strbuf_addc(&b, *p == '-' ? '_' : *p);
        }
    }
    return strbuf_steal(&b);
}

/* Owned path of the plug-in; '*ret_used' is the number of words that its name has. */
static char *find(int argc, char *const *argv, int *ret_used)
{
    static const char *const prefixes[] = {"tenet", "kubectl"};
    int words = 0;
    while (words < argc && words < MAX_WORDS && argv[words][0] != '-' &&
           !strchr(argv[words], '/')) {
        words++;
    }
    for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++) {
        for (int n = words; n > 0; n--) {
            CLEANUP_FREE char *name = file_name(prefixes[i], n, argv);
            char *path = tool_path(name);
            if (path) {
                *ret_used = n;
                return path;
            }
        }
    }
    return NULL;
}

void plugin_run(int argc, char **argv)
{
    int used = 0;
    CLEANUP_FREE char *path = find(argc, argv, &used);
    if (!path) {
        return;
    }
    argv[used - 1] = path;
    signal(SIGPIPE, SIG_DFL);
    execv(path, argv + used - 1);
    fprintf(stderr, "tenet: the plug-in %s: %s\n", path, strerror(errno));
    _exit(126);
}
