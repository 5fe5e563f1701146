/* SPDX-License-Identifier: Apache-2.0 */
/* The binder: gives each claim its volume, follows both through their phases, and frees what is no
 * longer used.  Decisions are those of storage/plan.h; this carries them out.
 *
 * Keys with a slash are claims, "NAMESPACE/NAME"; the others are volumes.  After a write the key
 * waits until the copies have what was written; a volume that was just given away is not offered to
 * another claim before its event. */
#pragma once

#include "controller/controller.h"

extern const struct controller binder_controller;
