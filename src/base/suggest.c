/* SPDX-License-Identifier: Apache-2.0 */
#include "base/suggest.h"

#include <string.h>

#define MAX_LENGTH 64

/* The number of letters to insert, delete, replace or swap with the next to get from 'a' to 'b'. */
static unsigned distance(const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b);
    unsigned d[MAX_LENGTH + 1][MAX_LENGTH + 1];
    if (n > MAX_LENGTH || m > MAX_LENGTH) {
        return MAX_LENGTH;
    }
    for (size_t i = 0; i <= n; i++) {
        for (size_t j = 0; j <= m; j++) {
            if (i == 0 || j == 0) {
                d[i][j] = (unsigned) (i + j);
                continue;
            }
            unsigned best = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            best = MIN(best, d[i - 1][j] + 1);
            best = MIN(best, d[i][j - 1] + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                best = MIN(best, d[i - 2][j - 2] + 1);
            }
            d[i][j] = best;
        }
    }
    return d[n][m];
}

const char *suggest(const char *s, const char *const *words, size_t n)
{
    const char *found = NULL;
    unsigned best = (unsigned) strlen(s) / 3 + 1;
    for (size_t i = 0; i < n; i++) {
        unsigned d = distance(s, words[i]);
        if (d < best || (d == best && !found)) {
            best = d;
            found = words[i];
        }
    }
    return found;
}
