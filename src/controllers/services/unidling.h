/* SPDX-License-Identifier: Apache-2.0 */
/* Brings the pods of idled services back: an Event "NeedPods" about a service scales its targets to what they were, and
 * when there are endpoints again the annotations go.  On the loop's thread. */
#pragma once

#include "controller/controller.h"

extern const struct controller unidling_controller;
