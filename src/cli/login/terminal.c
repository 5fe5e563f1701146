/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/login/terminal.h"

#include "base/mem.h"
#include "base/str.h"

#include <stdio.h>
#include <termios.h>
#include <unistd.h>

#define MAX_LINE 4096
#define MAX_QUESTIONS 10
#define CTRL_C '\x03' /* As a byte, while the terminal makes no signal of it. */

bool terminal_can_ask(void)
{
    return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
}

/* Reads byte by byte: what comes after the line belongs to the next question. */
static char *read_line(void)
{
    struct strbuf b = STRBUF_INIT_MAX(MAX_LINE);
    char c = 0;
    ssize_t n;
    while ((n = read(STDIN_FILENO, &c, 1)) == 1 && c != '\n' && c != CTRL_C) {
        strbuf_addc(&b, c);
    }
    if (c == CTRL_C || (n <= 0 && !b.size)) {
        strbuf_done(&b);
        return NULL;
    }
    if (b.size && b.data[b.size - 1] == '\r') {
        b.data[--b.size] = '\0';
    }
    return strbuf_steal(&b);
}

char *terminal_ask(const char *prompt)
{
    fputs(prompt, stdout);
    fflush(stdout);
    return read_line();
}

char *terminal_ask_secret(const char *prompt)
{
    struct termios before, silent;
    bool is_terminal = tcgetattr(STDIN_FILENO, &before) == 0;
    /* Before the prompt: what is typed right after it must not show. */
    if (is_terminal) {
        silent = before;
        /* Without signals: one would end the program while the terminal is silent. */
        silent.c_lflag &= ~(tcflag_t) (ECHO | ISIG);
        silent.c_cc[VEOL] = CTRL_C; /* It ends the line, so that it is read at once. */
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &silent);
    }
    char *answer = terminal_ask(prompt);
    if (is_terminal) {
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &before);
    }
    putchar('\n');
    return answer;
}

bool terminal_confirm(const char *prompt)
{
    for (int i = 0; i < MAX_QUESTIONS; i++) {
        CLEANUP_FREE char *answer = terminal_ask(prompt);
        if (!answer || streq(answer, "n") || streq(answer, "N") || streq(answer, "no")) {
            return false;
        }
        if (streq(answer, "y") || streq(answer, "Y") || streq(answer, "yes")) {
            return true;
        }
    }
    return false;
}
