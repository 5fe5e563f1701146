/* SPDX-License-Identifier: Apache-2.0 */
/* sd_notify(3): tells the service manager how far a daemon is. */
#pragma once

/* Sends 'state' ("READY=1", "STOPPING=1", "STATUS=...") to $NOTIFY_SOCKET; nothing when there is none. */
void notify_manager(const char *state);
