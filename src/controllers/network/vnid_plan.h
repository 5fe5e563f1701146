/* SPDX-License-Identifier: Apache-2.0 */
/* What a project's NetNamespace should become: the rules of the VNID controller.  Pure. */
#pragma once

#include "wire/json.h"

enum vnid_step {
    VNID_KEEP, /* As it should be. */
    VNID_NONE, /* There is neither Namespace nor NetNamespace. */
    VNID_CREATE, /* Create the NetNamespace: with the id 0 for 'default', else one that is allocated. */
    VNID_GLOBAL, /* 'default' must have the id 0, and has another. */
    VNID_DELETE, /* Its project is gone. */
};

/* 'ns' and 'nn' are the Namespace and the NetNamespace of 'name', NULL when absent. */
enum vnid_step vnid_plan_make(const char *name, const struct json *ns, const struct json *nn);
/* Whether the project has the id 0 from the start and keeps it. */
bool vnid_plan_is_global(const char *name);
/* Owned NetNamespace. */
struct json *vnid_plan_create(const char *name, uint32_t vnid);
