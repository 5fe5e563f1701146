/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/standard.h"

#include "base/mem.h"

#include <inttypes.h>

static const char *const levels[] = {
    [POD_PRIVILEGED] = "privileged", [POD_BASELINE] = "baseline", [POD_RESTRICTED] = "restricted"};

/* ---- labels ---- */

int pod_level_parse(const char *text, enum pod_level *ret)
{
    for (size_t i = 0; i < ARRAY_SIZE(levels); i++) {
        if (streq(text, levels[i])) {
            *ret = (enum pod_level) i;
            return 0;
        }
    }
    *ret = POD_RESTRICTED;
    return -EINVAL;
}

int pod_version_parse(const char *text, uint64_t *ret)
{
    static const char major[] = "v1.";
    const char *minor = text + strlen(major);
    *ret = POD_STANDARD_LATEST;
    if (streq(text, "latest")) {
        return 0;
    }
    /* A number has no leading zero: v1.01 is no version. */
    if (!str_has_prefix(text, major) || (minor[0] == '0' && minor[1])) {
        return -EINVAL;
    }
    return str_to_u64(minor, INT64_MAX, ret) < 0 ? -EINVAL : 0;
}

/* Reads the level, or with 'minor' the version, of a mode.  Returns whether there is the label.  A
 * wrong value adds a cause, and 'level' or 'minor' is what the parser makes of it. */
static bool read_label(const struct json *labels, const char *mode, enum pod_level *level,
                       uint64_t *minor, bool *ret_valid, struct api_causes *c)
{
    CLEANUP_FREE char *name = xasprintf(POD_STANDARD_PREFIX "%s%s", mode, minor ? "-version" : "");
    const struct json *v = json_get(labels, name);
    const char *text = json_get_string(v);
    if (!v) {
        return false;
    }
    text = text ? text : ""; /* A label that is no text is no level and no version. */
    *ret_valid = (minor ? pod_version_parse(text, minor) : pod_level_parse(text, level)) == 0;
    if (!*ret_valid) {
        api_invalid(c, API_FIELD("metadata.labels[%s]", name), v, "%s",
                    minor ? "must be \"latest\" or \"v1.x\""
                          : "must be one of privileged, baseline, restricted");
    }
    return true;
}

/* Reads the labels of one mode, and says which of the two there are.  Returns false if the level is
 * wrong. */
static bool read_mode(const struct json *labels, const char *mode, struct pod_standard *s,
                      bool *ret_level, bool *ret_version, struct api_causes *c)
{
    bool level_valid = true, version_valid = true;
    *ret_level = read_label(labels, mode, &s->level, NULL, &level_valid, c);
    *ret_version = read_label(labels, mode, NULL, &s->minor, &version_valid, c);
    return level_valid;
}

void pod_policy_read(const struct json *labels, struct pod_policy *ret, struct api_causes *c)
{
    static const struct pod_standard none = {POD_PRIVILEGED, POD_STANDARD_LATEST};
    bool level, version, enforces;
    struct pod_policy p = {none, none, none};
    bool valid = read_mode(labels, "enforce", &p.enforce, &enforces, &version, c);
    enforces = enforces && valid;
    if (!read_mode(labels, "audit", &p.audit, &level, &version, c)) {
        p.audit.level = POD_PRIVILEGED;
    }
    if (!read_mode(labels, "warn", &p.warn, &level, &version, c)) {
        p.warn.level = POD_PRIVILEGED;
    }
    /* The author of a template hears from 'enforce' that its pods will be refused. */
    if (!level && enforces && p.enforce.level > p.warn.level) {
        p.warn.level = p.enforce.level;
        p.warn.minor = version ? p.warn.minor : p.enforce.minor;
    }
    *ret = p;
}

bool pod_standard_same(const struct pod_standard *a, const struct pod_standard *b)
{
    return a->level == b->level && a->minor == b->minor;
}

bool pod_policy_is_privileged(const struct pod_policy *p)
{
    return p->enforce.level == POD_PRIVILEGED && p->audit.level == POD_PRIVILEGED &&
           p->warn.level == POD_PRIVILEGED;
}

char *pod_standard_text(const struct pod_standard *s)
{
    return s->minor == POD_STANDARD_LATEST
               ? xasprintf("%s:latest", levels[s->level])
               : xasprintf("%s:v1.%" PRIu64, levels[s->level], s->minor);
}

/* ---- evaluation ---- */

/* Whether the row is the one of its id that counts in the version. */
static bool is_current(size_t i, uint64_t minor)
{
    const struct pod_check *k = pod_check_at(i), *next = pod_check_at(i + 1);
    return k->since <= minor && !(next && streq(next->id, k->id) && next->since <= minor);
}

/* Whether a check of restricted replaces the one of baseline. */
static bool is_overridden(const char *id, const struct pod_standard *s)
{
    const struct pod_check *k;
    bool found = false;
    for (size_t i = 0; s->level == POD_RESTRICTED && (k = pod_check_at(i)); i++) {
        found |= streq_null(k->overrides, id) && is_current(i, s->minor);
    }
    return found;
}

size_t pod_standard_check(const struct pod_standard *s, const struct json *pod,
                          struct strbuf *reasons, struct strbuf *details)
{
    const struct pod_check *k;
    size_t n = 0;
    for (size_t i = 0; (k = pod_check_at(i)); i++) {
        CLEANUP_STRBUF struct strbuf detail = STRBUF_INIT;
        const char *reason =
            k->level <= s->level && is_current(i, s->minor) && !is_overridden(k->id, s)
                ? k->run(pod, &detail)
                : NULL;
        if (reason && reasons) {
            strbuf_addf(reasons, "%s%s", n ? ", " : "", reason);
        }
        if (reason && details) {
            strbuf_addf(details, "%s%s (%s)", n ? ", " : "", reason, strbuf_cstr(&detail));
        }
        n += reason != NULL;
    }
    return n;
}
