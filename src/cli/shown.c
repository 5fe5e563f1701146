/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/shown.h"

/* The bytes of a character at 'p' that no terminal may get; 0: it is harmless. */
static size_t harmful(const unsigned char *p)
{
    if ((p[0] < ' ' && p[0] != '\n' && p[0] != '\t') || p[0] == 0x7f) {
        return 1;
    }
    if (p[0] == 0xc2 && p[1] >= 0x80 && p[1] <= 0x9f) {
        return 2; /* C1 */
    }
    /* U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069: the direction of text. */
    if (p[0] == 0xe2 && p[1] == 0x80 &&
        (p[2] == 0x8e || p[2] == 0x8f || (p[2] >= 0xaa && p[2] <= 0xae))) {
        return 3;
    }
    return p[0] == 0xe2 && p[1] == 0x81 && p[2] >= 0xa6 && p[2] <= 0xa9 ? 3 : 0;
}

void shown_add(struct strbuf *out, const char *s, size_t max)
{
    const unsigned char *p = (const unsigned char *) s;
    while (*p && (!max || (size_t) (p - (const unsigned char *) s) < max)) {
        size_t n = harmful(p);
        strbuf_addc(out, n ? '?' : (char) *p);
        p += n ? n : 1;
    }
}

char *shown(const char *s)
{
    struct strbuf b = STRBUF_INIT;
    shown_add(&b, s, 0);
    return strbuf_steal(&b);
}
