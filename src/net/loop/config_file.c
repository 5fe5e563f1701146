/* SPDX-License-Identifier: Apache-2.0 */
#include "net/loop/config_file.h"

#include "base/log.h"
#include "base/mem.h"
#include "net/loop/process.h"
#include "wire/yaml.h"

#include <unistd.h>

#define MAX_FILE ((size_t) 1 << 20)

int config_file_load(const char *path, config_file_fn *read, void *config, struct err *e)
{
    CLEANUP_STRBUF struct strbuf text = STRBUF_INIT_MAX(MAX_FILE);
    CLEANUP(json_free) struct json *doc = NULL;
    int r = file_read(path, MAX_FILE, &text, e);
    if (r < 0) {
        return r;
    }
    CLEANUP_FREE char *dir = realpath(path, NULL);
    char *slash = dir ? strrchr(dir, '/') : NULL;
    if (slash) {
        slash[slash == dir] = '\0';
    }
    r = yaml_parse(strbuf_cstr(&text), text.size, &doc, e);
    r = r < 0 ? r : read(config, doc, dir, e);
    return r < 0 ? err_prefix(e, "%s", path), r : 0;
}

int config_file_set_log(const char *levels, const char *format, struct err *e)
{
    char bad[64];
    if (levels && log_set_levels(levels, bad) < 0) {
        return err_set(e, -EINVAL,
                       "logLevel: \"%s\" is not error, warn, info, debug or MODULE=LEVEL", bad);
    }
    return format && log_set_format(format) < 0
               ? err_set(e, -EINVAL, "logFormat: \"%s\" is not text or json", format)
               : 0;
}

void config_file_host_name(char out[CONFIG_HOST_NAME_SIZE])
{
    memset(out, 0, CONFIG_HOST_NAME_SIZE);
    (void) gethostname(out, CONFIG_HOST_NAME_SIZE - 1);
    for (char *p = out; *p; p++) {
        *p = *p >= 'A' && *p <= 'Z' ? (char) (*p + 'a' - 'A') : *p;
    }
}
