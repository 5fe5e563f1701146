/* SPDX-License-Identifier: Apache-2.0 */
#include "workload/template_generate.h"

#include "base/mem.h"

#include <errno.h>

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"
#define SYMBOLS "~!@#$%^&*()-_+={}[]\\|<,>.?/\"';:`"
#define WORD LETTERS DIGITS

/* The characters of a class, each once. */
struct alphabet {
    bool has[128];
    char list[128];
    size_t n;
};

static void add_all(struct alphabet *a, const char *from, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!a->has[(unsigned char) from[i]]) {
            a->has[(unsigned char) from[i]] = true;
            a->list[a->n++] = from[i];
        }
    }
}

static bool is_word(char c)
{
    return c && strchr(WORD, c);
}

static int add_named(struct alphabet *a, char name, struct err *e)
{
    const char *set = name == 'w'   ? WORD "_"
                      : name == 'd' ? DIGITS
                      : name == 'a' ? WORD
                      : name == 'A' ? SYMBOLS
                                    : NULL;
    if (!set) {
        return err_set(e, -EINVAL, "unknown class \\%c: there are \\w, \\d, \\a and \\A", name);
    }
    add_all(a, set, strlen(set));
    return 0;
}

/* Reads the inside of "[...]", whose characters are letters, digits, '-' and '\'. */
static int read_class(const char *s, size_t n, struct alphabet *a, struct err *e)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < n; i++) {
        if (s[i] == '\\') {
            r = add_named(a, ++i < n ? s[i] : ']', e);
        } else if (i + 2 < n && s[i] != '-' && s[i + 1] == '-' && is_word(s[i + 2])) {
            const char *first = strchr(WORD, s[i]), *last = strchr(WORD, s[i + 2]);
            if (first > last) {
                return err_set(e, -EINVAL, "invalid range specified: %c-%c", s[i], s[i + 2]);
            }
            add_all(a, first, (size_t) (last - first) + 1);
            i += 2;
        } else if (s[i] != '-') {
            add_all(a, s + i, 1);
        }
    }
    return r == 0 && !a->n ? err_set(e, -EINVAL, "the class [%.*s] is empty", (int) n, s) : r;
}

/* Appends 'count' characters of the alphabet.  Random bytes beyond the largest multiple of its size
 * are dropped, so that no character is more likely than another. */
static void add_random(const struct alphabet *a, uint64_t count, template_random_fn *random,
                       struct strbuf *out)
{
    unsigned char bytes[64];
    size_t limit = 256 - 256 % a->n;
    while (count) {
        random(bytes, sizeof bytes);
        for (size_t i = 0; count && i < sizeof bytes; i++) {
            if (bytes[i] < limit) {
                strbuf_addc(out, a->list[bytes[i] % a->n]);
                count--;
            }
        }
    }
}

/* The length of "[...]{n}" at 's', with the parts of it; 0: there is none, so that '[' is text. */
static size_t match(const char *s, size_t *ret_class, uint64_t *ret_count, struct err *e, int *r)
{
    static const char allowed[] = WORD "-\\";
    size_t n = strspn(s + 1, allowed), digits;
    if (!n || s[n + 1] != ']' || s[n + 2] != '{' || !(digits = strspn(s + n + 3, DIGITS)) ||
        s[n + 3 + digits] != '}') {
        return 0;
    }
    CLEANUP_FREE char *number = xstrndup(s + n + 3, digits);
    if (str_to_u64(number, TEMPLATE_MAX_REPEAT, ret_count) < 0 || *ret_count == 0) {
        *r = err_set(e, -EINVAL, "range must be within [1-%d] characters (%.20s)",
                     TEMPLATE_MAX_REPEAT, number);
    }
    *ret_class = n;
    return n + 4 + digits;
}

int template_generate(const char *pattern, template_random_fn *random, struct strbuf *out,
                      struct err *e)
{
    CLEANUP_STRBUF struct strbuf value = STRBUF_INIT_MAX(TEMPLATE_MAX_GENERATED);
    while (*pattern && !value.failed) {
        size_t class, used = 0;
        uint64_t count;
        int r = 0;
        if (*pattern == '[') {
            used = match(pattern, &class, &count, e, &r);
        }
        if (!used) {
            strbuf_addc(&value, *pattern++);
            continue;
        }
        struct alphabet a = {0};
        if (r == 0) {
            r = read_class(pattern + 1, class, &a, e);
        }
        if (r < 0) {
            return r;
        }
        add_random(&a, count, random, &value);
        pattern += used;
    }
    if (value.failed) {
        return err_set(e, -E2BIG, "the generated value is longer than %u bytes",
                       TEMPLATE_MAX_GENERATED);
    }
    strbuf_add(out, value.data, value.size);
    return 0;
}
