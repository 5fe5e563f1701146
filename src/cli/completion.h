/* SPDX-License-Identifier: Apache-2.0 */
/* Completion scripts of bash, zsh and fish, made from the rows of commands.  Pure. */
#pragma once

#include "base/str.h"

void completion_bash(struct strbuf *out);
void completion_zsh(struct strbuf *out);
void completion_fish(struct strbuf *out);
