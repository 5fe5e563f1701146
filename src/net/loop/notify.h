/* SPDX-License-Identifier: Apache-2.0 */
/* sd_notify(3): reports the state of a daemon to the service manager. */
#pragma once

/* Sends 'state' ("READY=1", "STOPPING=1", "STATUS=...") to $NOTIFY_SOCKET; does nothing when it
 * is not set. */
void notify_manager(const char *state);
