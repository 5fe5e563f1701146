/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/explain/check.h"
#include "cli/kubectl/print.h"

#include <stdio.h>

static const char *const result_names[] = {"ok", "FAILED", "skipped"};

void check_judge(struct check_probe *p)
{
    if (!p->pod) {
        p->result = CHECK_SKIPPED;
        return;
    }
    p->result = p->tried && p->answered != p->forbidden ? CHECK_OK : CHECK_FAILED;
    if (p->result == CHECK_OK) {
        p->detail[0] = '\0';
    } else if (p->forbidden) {
        snprintf(p->detail, sizeof p->detail, "reached, and must not be");
    } else if (!p->detail[0]) {
        snprintf(p->detail, sizeof p->detail,
                 p->size ? "no answer to packets of %u bytes" : "no answer", p->size);
    }
}

int check_exit_status(const struct check_probe *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (p[i].result == CHECK_FAILED) {
            return 1;
        }
    }
    return 0;
}

/* One line for the successful probes of a check, and one for each other probe. */
void check_render(const struct check_probe *p, size_t n, struct strbuf *out)
{
    enum { COLUMNS = 5 };
    CLEANUP_FREE const char **cells = xcalloc((2 * n + 1) * COLUMNS, sizeof *cells);
    CLEANUP_FREE char **owned = xcalloc(n + 1, sizeof *owned);
    size_t rows = 1, n_owned = 0, failed = 0, skipped = 0;
    static const char *const head[] = {"CHECK", "RESULT", "FROM", "TO", "DETAIL"};
    memcpy(cells, head, sizeof head);
    for (size_t i = 0, next; i < n; i = next) {
        size_t ok = 0;
        for (next = i; next < n && streq(p[next].name, p[i].name); next++) {
            ok += p[next].result == CHECK_OK;
        }
        if (ok) {
            const char **row = cells + COLUMNS * rows++;
            owned[n_owned] = xasprintf("%zu of %zu tried", ok, next - i);
            row[0] = p[i].name;
            row[1] = result_names[CHECK_OK];
            row[2] = ok == 1 && next == i + 1 ? p[i].from : "";
            row[3] = ok == 1 && next == i + 1 ? p[i].to : "";
            row[4] = owned[n_owned++];
        }
        for (size_t k = i; k < next; k++) {
            if (p[k].result != CHECK_OK) {
                const char **row = cells + COLUMNS * rows++;
                row[0] = p[k].name;
                row[1] = result_names[p[k].result];
                row[2] = p[k].from;
                row[3] = p[k].to;
                row[4] = p[k].detail;
                failed += p[k].result == CHECK_FAILED;
                skipped += p[k].result == CHECK_SKIPPED;
            }
        }
    }
    print_columns(cells, COLUMNS, rows, "", out);
    strbuf_addf(out, "\n%zu passed, %zu failed, %zu skipped\n", n - failed - skipped, failed,
                skipped);
    for (size_t i = 0; i < n_owned; i++) {
        free(owned[i]);
    }
}

struct json *check_json(const struct check_probe *p, size_t n)
{
    struct json *o = json_object();
    json_set_bool(o, "ok", check_exit_status(p, n) == 0);
    struct json *list = json_ensure_array(o, "probes");
    for (size_t i = 0; i < n; i++) {
        struct json *item = json_append(list, json_object());
        json_set_string(item, "check", p[i].name);
        json_set_string(item, "from", p[i].from);
        json_set_string(item, "to", p[i].to);
        json_set_string(item, "result", result_names[p[i].result]);
        json_set_string(item, "detail", p[i].detail);
    }
    return o;
}
