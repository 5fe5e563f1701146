/* SPDX-License-Identifier: Apache-2.0 */
/* Schemas of the core group's parts that several files use.  Internal to src/api. */
#pragma once

#include "api/schema.h"

/* schema_volume.c */
extern const struct api_schema api_schema_volume;
extern const struct api_schema api_schema_local_ref; /* Name of an object in the namespace. */
extern const struct api_schema api_schema_object_field, api_schema_resource_field;

/* schema_container.c */
extern const struct api_schema api_schema_container, api_schema_ephemeral_container;
extern const struct api_schema api_schema_resources, api_schema_pod_security;

/* schema_pod.c */
extern const struct api_schema api_schema_pod_spec, api_schema_pod_template;
extern const struct api_schema api_schema_pod; /* The root. */

/* kind_event.c */
extern const struct api_schema api_schema_event_source;

/* schema_core.c */
extern const struct api_schema api_schema_object_reference;
