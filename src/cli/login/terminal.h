/* SPDX-License-Identifier: Apache-2.0 */
/* Questions to the user at the terminal.  Prompts go to standard output as oc's do; answers come
 * from standard input. */
#pragma once

#include "base/macro.h"

/* Standard input and output are a terminal, so that the user can be asked. */
bool terminal_can_ask(void);
/* Prints 'prompt' and reads a line; owned; NULL: the input has ended. */
char *terminal_ask(const char *prompt);
/* The same without echo.  The caller erases it. */
char *terminal_ask_secret(const char *prompt);
/* Asks until the answer is y or n; false at the end of the input. */
bool terminal_confirm(const char *prompt);
