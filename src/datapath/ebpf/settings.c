/* SPDX-License-Identifier: Apache-2.0 */
#include "datapath/ebpf/settings.h"

#include "base/str.h"
#include "datapath/ebpf/program.h"

static bool is_optional(const char *name, size_t size)
{
    const char *known;
    for (size_t i = 0; (known = program_feature_name(i)); i++) {
        if (strlen(known) == size && strncmp(known, name, size) == 0) {
            return true;
        }
    }
    return false;
}

static int check_without(const char *list, struct err *e)
{
    CLEANUP_STRBUF struct strbuf known = STRBUF_INIT;
    for (size_t i = 0; program_feature_name(i); i++) {
        strbuf_addf(&known, "%s%s", i ? ", " : "", program_feature_name(i));
    }
    for (const char *p = list; p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL) {
        size_t n = strcspn(p, ",");
        if (!is_optional(p, n)) {
            return err_set(e, -EINVAL, "\"%.*s\" is none of %s", (int) MIN(n, 100), p,
                           strbuf_cstr(&known));
        }
    }
    return 0;
}

static int check_max_entries(const char *v, struct err *e)
{
    uint64_t n;
    return str_to_u64(v, UINT32_MAX, &n) == 0 && n > 0
               ? 0
               : err_set(e, -EINVAL, "%s is not in 1-%u", v, UINT32_MAX);
}

const struct datapath_setting ebpf_settings[] = {
    {EBPF_WITHOUT, NULL, check_without},
    {EBPF_MAX_ENTRIES, NULL, check_max_entries},
    {NULL, NULL, NULL},
};

uint32_t ebpf_max_entries(const struct datapath_config *cfg)
{
    const char *text = datapath_get_setting(cfg, EBPF_MAX_ENTRIES);
    uint64_t n = 0;
    return text && str_to_u64(text, UINT32_MAX, &n) == 0 ? (uint32_t) n : 0;
}
