/* SPDX-License-Identifier: Apache-2.0 */
/* The beginning of every kind's attempts, so that identity_attempt_cancel finds the kind. */
#pragma once

#include "identity/provider.h"

/* Kinds put their own state behind this struct. */
struct identity_attempt {
    /* Frees the attempt without a call of its function. */
    void (*cancel)(struct identity_attempt *a);
};
