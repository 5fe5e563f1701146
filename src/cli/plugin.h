/* SPDX-License-Identifier: Apache-2.0 */
/* Plug-ins: programs on the PATH whose names begin with "tenet-" or "kubectl-", as kubectl finds
 * its own.  "tenet a b-c x" runs tenet-a-b_c, else tenet-a with the arguments "b-c x": the longest
 * name that is there, and tenet- before kubectl-.  A plug-in never takes the place of a command. */
#pragma once

/* Replaces this process by the plug-in for the words.  Returns when there is none; a failure to
 * execute it is printed, and ends the process with status 126. */
void plugin_run(int argc, char **argv);
