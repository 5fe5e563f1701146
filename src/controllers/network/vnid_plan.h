/* SPDX-License-Identifier: Apache-2.0 */
/* Decides the next state of a project's NetNamespace: the rules of the VNID controller.  Pure. */
#pragma once

#include "wire/json.h"

enum vnid_step {
    VNID_KEEP, /* Nothing to do: it is in the desired state. */
    VNID_NONE, /* There is neither Namespace nor NetNamespace. */
    /* Create the NetNamespace, with the id 0 for 'default' and an allocated id for others. */
    VNID_CREATE,
    VNID_GLOBAL, /* Set the id of 'default' to 0. */
    VNID_DELETE, /* Delete it: its project is gone. */
};

/* 'ns' and 'nn' are the Namespace and the NetNamespace of 'name', NULL when absent. */
enum vnid_step vnid_plan_make(const char *name, const struct json *ns, const struct json *nn);
/* Whether the project has the id 0 from the start, and keeps it. */
bool vnid_plan_is_global(const char *name);
/* An owned NetNamespace. */
struct json *vnid_plan_create(const char *name, uint32_t vnid);
