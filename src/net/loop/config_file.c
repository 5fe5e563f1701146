/* SPDX-License-Identifier: Apache-2.0 */
#include "net/loop/config_file.h"

#include "base/log.h"
#include "base/mem.h"
#include "net/loop/process.h"
#include "wire/yaml.h"

#include <errno.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

LOG_MODULE("config");

#define MAX_FILE ((size_t) 1 << 20)

/* Keys of OpenShift's files whose values are secrets, in lower case. */
static const char *const secret_keys[] = {"bindpassword", "clientsecret", "password", "secret"};

static bool is_secret_key(const char *key)
{
    for (size_t i = 0; i < ARRAY_SIZE(secret_keys); i++) {
        if (strcasecmp(key, secret_keys[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* Whether the value of a secret's key has the secret itself. */
static bool has_text(const struct json *v)
{
    const char *s = json_get_string(json_is(v, JSON_OBJECT) ? json_get(v, "value") : v);
    return s && *s;
}

char *config_file_secret(const struct json *doc)
{
    bool list = json_is(doc, JSON_ARRAY);
    if (!list && !json_is(doc, JSON_OBJECT)) {
        return NULL;
    }
    for (size_t i = 0; i < json_count(doc); i++) {
        const struct json *v = json_at(doc, i);
        const char *key = list ? NULL : json_key_at(doc, i);
        if (key && is_secret_key(key) && has_text(v)) {
            return xstrdup(key);
        }
        CLEANUP_FREE char *below = config_file_secret(v);
        if (below) {
            return key ? xasprintf("%s%s%s", key, *below == '[' ? "" : ".", below)
                       : xasprintf("[%zu]%s%s", i, *below == '[' ? "" : ".", below);
        }
    }
    return NULL;
}

static int check_readers(const char *path, const struct json *doc, struct err *e)
{
    struct stat st;
    if (stat(path, &st) < 0) {
        return err_sys(e, -errno, "stat");
    }
    CLEANUP_FREE char *key = st.st_mode & S_IROTH ? config_file_secret(doc) : NULL;
    return key ? err_set(e, -EPERM,
                         "%s is a secret, and every user of this host can read the file: "
                         "chmod o= it, or keep the secret in a file of its own",
                         key)
               : 0;
}

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
    r = r < 0 ? r : check_readers(path, doc, e);
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

void config_file_warn(const struct option_findings *f)
{
    for (size_t i = 0; i < f->n; i++) {
        log_warn("key of the configuration has no effect", "key=%s reason=\"%s\"", f->list[i].path,
                 f->list[i].text);
    }
}

void config_file_host_name(char out[CONFIG_HOST_NAME_SIZE])
{
    memset(out, 0, CONFIG_HOST_NAME_SIZE);
    (void) gethostname(out, CONFIG_HOST_NAME_SIZE - 1);
    for (char *p = out; *p; p++) {
        *p = *p >= 'A' && *p <= 'Z' ? (char) (*p + 'a' - 'A') : *p;
    }
}
