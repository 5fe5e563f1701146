/* SPDX-License-Identifier: Apache-2.0 */
/* The templates that every cluster has: those of packaging/templates, in the project "openshift",
 * where each authenticated user may read them (security/default_roles.c).
 *
 * At each start of the controllers a template that is missing is created, and one that differs is
 * brought up to date, unless its annotation template.openshift.io/autoupdate is "false".  A
 * controller without watches: its work ends when the templates are in place. */
#pragma once

#include "controller/controller.h"

#define CATALOG_AUTOUPDATE "template.openshift.io/autoupdate"

extern const struct controller catalog_controller;

/* Pure.  The templates as an owned array; the data are compiled in, so they are always valid. */
struct json *catalog_templates(void);
/* Pure.  The template 'have' changed to 'want', owned; annotations that 'want' does not have stay.
 * NULL: there is nothing to change, or an administrator keeps it. */
struct json *catalog_updated(const struct json *want, const struct json *have);
