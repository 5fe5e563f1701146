/* SPDX-License-Identifier: Apache-2.0 */
/* The admission plug-ins of OpenShift 3 and Kubernetes that are no plug-ins here: what another part
 * does, and what Tenet has nothing for.  The plug-ins themselves are the rows of admission.c.
 *
 * Immutable. */
#pragma once

#include <stdbool.h>

enum admission_elsewhere {
    ADMISSION_PART, /* Another part does it, always: it can be neither configured nor disabled. */
    ADMISSION_IDLE, /* There is nothing for it to do: turning it on gives a warning. */
    ADMISSION_LACKING, /* It bounds users, and Tenet does not have it: turning it on is refused. */
};

struct admission_name {
    const char *name;
    enum admission_elsewhere where;
    const char *why; /* A phrase without a full stop. */
};

/* NULL: there is no such name. */
const struct admission_name *admission_name_find(const char *name);
/* The i-th name; NULL: there are no more. */
const struct admission_name *admission_name_at(unsigned i);
