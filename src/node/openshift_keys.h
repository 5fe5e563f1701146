/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of OpenShift 3's node-config.yaml that node_options has no rows for: those that stand for a
 * row, and those that have no effect in the network's agent, with the reason.
 *
 * A file that OpenShift's installer wrote is read with warnings only; a key that is neither here
 * nor a row is an error.  The keys are those of openshift/origin 3.4 to 3.11,
 * pkg/cmd/server/apis/config/v1/types.go.  Constant data. */
#pragma once

#include "wire/options.h"

extern const struct option_alias node_alias[]; /* Ends with a NULL path. */
extern const struct option_idle node_idle[];   /* The same. */
