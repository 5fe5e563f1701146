/* SPDX-License-Identifier: Apache-2.0 */
/* Reads entries of a directory for a command: connects, binds, and searches page by page.
 *
 * The calls wait on the loop; a server that sends no whole answer for a minute has failed.  The
 * connection is closed before requests are sent to the API server, because they run the same
 * loop. */
#pragma once

#include "cli/admin/ldap_sync.h"
#include "net/loop/loop.h"

/* Reads the entries of both queries; 's->groups' is not asked where the schema has none.  The
 * caller calls ldap_entries_done for both.  Errors say what the server answered; an answer that is
 * not complete is one, because groups that are missing could be pruned. */
int ldap_reader_read(struct loop *l, const struct ldap_sync *s, struct ldap_entries *groups,
                     struct ldap_entries *users, struct err *e);
