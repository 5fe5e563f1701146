/* SPDX-License-Identifier: Apache-2.0 */
/* A systemd-logind that knows of delay locks and of shutdowns alone, on the bus of
 * $DBUS_SYSTEM_BUS_ADDRESS; the host never shuts down.
 *
 * Everything is on the caller's thread, who calls fake_logind_process often.  Mistakes of the test
 * abort. */
#pragma once

#include "base/macro.h"

struct fake_logind;

/* 'max_us': the longest that it waits, InhibitDelayMaxUSec. */
struct fake_logind *fake_logind_new(uint64_t max_us);
struct fake_logind *fake_logind_free(struct fake_logind *g);
/* Answers what was asked meanwhile. */
void fake_logind_process(struct fake_logind *g);
/* The host begins to shut down; false: it does not after all. */
void fake_logind_announce(struct fake_logind *g, bool begins);
/* Whether the lock that was asked for last is held. */
bool fake_logind_is_held(const struct fake_logind *g);
/* "WHAT MODE WHO" of that lock; "": none was asked for. */
const char *fake_logind_lock(const struct fake_logind *g);
