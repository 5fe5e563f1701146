/* SPDX-License-Identifier: Apache-2.0 */
#include "api/pattern.h"

#include "base/mem.h"

#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#define PATTERN_MAX 4096    /* Bytes of the text; the library limits the compiled size. */
#define PARENTHESES_MAX 50  /* Nested. */
#define MATCH_STEPS 200000u /* Some milliseconds. */
#define MATCH_HEAP_KB 1024u

struct pattern {
    pcre2_code *code;
    pcre2_match_context *limits;
};

/* Constructs beyond regular languages: back-references, recursion, conditions, look-around,
 * verbs. */
static const char *forbidden(const char *s)
{
    bool in_class = false;
    for (; *s; s++) {
        if (*s == '\\' && s[1]) {
            s++;
            if (!in_class && ((*s >= '1' && *s <= '9') || *s == 'g' || *s == 'k')) {
                return "back-references are not allowed";
            }
            if (*s == 'C' || *s == 'K') {
                return "\\C and \\K are not allowed";
            }
        } else if (in_class) {
            in_class = *s != ']';
        } else if (*s == '[') {
            in_class = true;
            s += s[1] == '^';
            s += s[1] == ']';
        } else if (s[0] == '(' && s[1] == '*') {
            return "verbs such as (*NAME) are not allowed";
        } else if (s[0] == '(' && s[1] == '?') {
            const char *p = s + 2;
            bool named = (*p == 'P' && p[1] == '<') || (*p == '<' && p[1] != '=' && p[1] != '!');
            size_t flags = strspn(p, "imsU-");
            if (*p != ':' && !named && !(flags && (p[flags] == ')' || p[flags] == ':'))) {
                return "only (?:...), (?P<name>...) and flags may follow \"(?\"";
            }
        }
    }
    return NULL;
}

int pattern_new(const char *text, struct pattern **ret, struct err *e)
{
    size_t size = strlen(text);
    if (size > PATTERN_MAX) {
        return err_set(e, -EINVAL, "is longer than %d bytes", PATTERN_MAX);
    }
    const char *wrong = forbidden(text);
    if (wrong) {
        return err_set(e, -EINVAL, "%s", wrong);
    }
    pcre2_compile_context *cc = pcre2_compile_context_create(NULL);
    CLEANUP(pattern_free) struct pattern *p = NEW(struct pattern);
    p->limits = pcre2_match_context_create(NULL);
    if (!cc || !p->limits) {
        abort();
    }
    pcre2_set_parens_nest_limit(cc, PARENTHESES_MAX);
    pcre2_set_match_limit(p->limits, MATCH_STEPS);
    pcre2_set_heap_limit(p->limits, MATCH_HEAP_KB);
    int code = 0;
    PCRE2_SIZE at = 0;
    p->code = pcre2_compile((PCRE2_SPTR) text, size,
                            PCRE2_UTF | PCRE2_NO_AUTO_CAPTURE | PCRE2_NEVER_BACKSLASH_C |
                                PCRE2_DOLLAR_ENDONLY,
                            &code, &at, cc);
    pcre2_compile_context_free(cc);
    if (!p->code) {
        PCRE2_UCHAR message[128] = "";
        pcre2_get_error_message(code, message, sizeof(message));
        return err_set(e, -EINVAL, "%s at offset %zu", (const char *) message, (size_t) at);
    }
    *ret = TAKE(p);
    return 0;
}

struct pattern *pattern_free(struct pattern *p)
{
    if (p) {
        pcre2_code_free(p->code);
        pcre2_match_context_free(p->limits);
        free(p);
    }
    return NULL;
}

int pattern_match(const struct pattern *p, const char *s, size_t size)
{
    pcre2_match_data *found = pcre2_match_data_create(1, NULL);
    if (!found) {
        abort();
    }
    int r = pcre2_match(p->code, (PCRE2_SPTR) s, size, 0, 0, found, p->limits);
    pcre2_match_data_free(found);
    return r >= 0 ? 1 : r == PCRE2_ERROR_NOMATCH ? 0 : -ETIMEDOUT;
}
