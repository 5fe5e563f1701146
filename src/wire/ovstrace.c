/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/ovstrace.h"

#include "base/mem.h"

#include <stdlib.h>

#define MAX_STEPS 1024

void ovstrace_done(struct ovstrace *t)
{
    for (size_t i = 0; i < t->n; i++) {
        free(t->steps[i].match);
        free(t->steps[i].actions);
    }
    free(t->steps);
    free(t->datapath_actions);
    free(t->remark);
    *t = (struct ovstrace){0};
}

/* Replaces the string at 'slot' by 'n' bytes of 's'. */
static void set_text(char **slot, const char *s, size_t n)
{
    free(*slot);
    *slot = xstrndup(s, n);
}

/* Number at '*p', which moves behind it; false: there is none that fits. */
static bool take_number(const char **p, const char *end, unsigned base, uint64_t max, uint64_t *ret)
{
    uint64_t v = 0;
    const char *from = *p;
    for (; *p < end; (*p)++) {
        char c = **p;
        unsigned digit = c >= '0' && c <= '9'                 ? (unsigned) (c - '0')
                         : base == 16 && c >= 'a' && c <= 'f' ? (unsigned) (c - 'a') + 10
                                                              : base;
        if (digit >= base) {
            break;
        }
        if (v > (max - digit) / base) {
            return false;
        }
        v = v * base + digit;
    }
    *ret = v;
    return *p > from;
}

/* The number after the last "key" in the line; NULL. */
static const char *find_last(const char *line, const char *end, const char *key)
{
    size_t n = strlen(key);
    for (const char *p = end - n; p >= line && end - line >= (ptrdiff_t) n; p--) {
        if (memcmp(p, key, n) == 0) {
            return p + n;
        }
    }
    return NULL;
}

/* "20. ip,in_port=3, priority 100, cookie 0x300000a800002": false: another kind of line. */
static bool parse_step(const char *line, const char *end, struct ovstrace_step *ret)
{
    static const char priority_key[] = "priority ", cookie_key[] = ", cookie 0x";
    const char *p = line;
    uint64_t table, priority, cookie = 0;
    while (p < end && *p == ' ') {
        p++;
    }
    if (p - line > 2 || !take_number(&p, end, 10, UINT8_MAX, &table) || end - p < 2 ||
        memcmp(p, ". ", 2) != 0) {
        return false;
    }
    const char *match = p + 2;
    const char *at = find_last(match, end, priority_key);
    if (!at || !take_number(&at, end, 10, UINT16_MAX, &priority)) {
        return false;
    }
    const char *match_end = find_last(match, end, priority_key) - strlen(priority_key);
    if ((at = find_last(match, end, cookie_key)) != NULL) {
        take_number(&at, end, 16, UINT64_MAX, &cookie);
    }
    if (match_end - match >= 2 && memcmp(match_end - 2, ", ", 2) == 0) {
        match_end -= 2;
    }
    *ret = (struct ovstrace_step){.table = (uint8_t) table,
                                  .priority = (uint16_t) priority,
                                  .cookie = cookie,
                                  .match = xstrndup(match, (size_t) (match_end - match)),
                                  .actions = xstrdup("")};
    return true;
}

static void add_action(struct ovstrace_step *s, const char *line, size_t n)
{
    char *joined = xasprintf("%s%s%.*s", s->actions, *s->actions ? ", " : "", (int) n, line);
    free(s->actions);
    s->actions = joined;
}

static bool line_is(const char *line, size_t n, const char *head)
{
    size_t k = strlen(head);
    return n >= k && memcmp(line, head, k) == 0;
}

int ovstrace_parse(const char *text, const char *bridge, struct ovstrace *ret, struct err *e)
{
    static const char actions_key[] = "Datapath actions: ", action_indent[] = "    ";
    CLEANUP(ovstrace_done) struct ovstrace t = {0};
    CLEANUP_FREE char *ours = xasprintf("bridge(\"%s\")", bridge);
    bool inside = false, steps_go_on = false;
    for (const char *line = text; *line;) {
        size_t n = strcspn(line, "\n");
        struct ovstrace_step step;
        if (line_is(line, n, "bridge(")) {
            inside = n == strlen(ours) && line_is(line, n, ours);
            steps_go_on = false;
        } else if (line_is(line, n, actions_key)) {
            set_text(&t.datapath_actions, line + strlen(actions_key), n - strlen(actions_key));
            inside = false;
        } else if (line_is(line + strspn(line, " "), n - MIN(n, strspn(line, " ")), ">> ")) {
            const char *p = line + strspn(line, " ") + 3;
            set_text(&t.remark, p, n - (size_t) (p - line));
        } else if (inside && t.n < MAX_STEPS && parse_step(line, line + n, &step)) {
            t.steps = grow(t.steps, &t.cap, t.n + 1, sizeof *t.steps);
            t.steps[t.n++] = step;
            steps_go_on = true;
        } else if (steps_go_on && line_is(line, n, action_indent) && n > 4 && line[4] != ' ') {
            add_action(&t.steps[t.n - 1], line + 4, n - 4);
        } else if (!line_is(line, n, action_indent)) {
            steps_go_on = false;
        }
        line += n + (line[n] == '\n');
    }
    if (!t.datapath_actions) {
        return err_set(e, -EBADMSG, "the switch's trace has no \"Datapath actions\": %.100s", text);
    }
    *ret = t;
    t = (struct ovstrace){0};
    return 0;
}
