/* SPDX-License-Identifier: Apache-2.0 */
/* Objects with a value in every field that has a protobuf number, made from the schemas. */
#pragma once

#include "api/schema.h"

/* An object of the schema; owned.  Its values differ from field to field, are canonical, and none
 * is empty; a type that contains itself does so once.  '*seed' is counted on. */
struct json *filled_object(const struct api_schema *s, unsigned *seed);
