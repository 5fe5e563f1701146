/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of pods share: objects as the API server completes and stores them, and their causes.
 *
 * In all texts ' stands for ", and @ for '. The caller owns the objects that are returned. A failure
 * ends the test. */
#pragma once

#include "api/kind.h"
#include "api/patch/patch.h"
#include "api/schema.h"
#include "api/typed.h"
#include "base/mem.h"

#define CONTAINER "'containers':[{'name':'c','image':'i'}]"
#define SAMPLE "{'metadata':{'name':'p','namespace':'red'},'spec':{" CONTAINER "}}"

const struct api_kind *rig_kind(const char *plural);
struct json *rig_parse(const char *text);
/* What the server does with the body of a write before it is checked. */
void rig_complete(const struct api_kind *k, struct json *obj, const struct json *old);
/* An object as the server stores it: 'text' with a merge patch (NULL: none). */
struct json *rig_stored(const char *plural, const char *text, const char *patch);
/* 'c' has the cause 'says' of 'field'. 'field' NULL: there is no cause. */
void rig_expect(const struct api_causes *c, const char *what, const char *field, const char *says);
