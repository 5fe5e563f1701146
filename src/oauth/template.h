/* SPDX-License-Identifier: Apache-2.0 */
/* Templates of pages: a subset of Go's html/template, so that the files of OpenShift's
 * oauthConfig.templates still work.
 *
 *     {{ .Name }}  {{ .A.B }}  {{ . }}  {{ $v.Name }}     a value, escaped
 *     {{ if .X }}  {{ if not .X }}  {{ if eq .X "text" }}  {{ if ne .X "text" }}
 *     {{ else }}  {{ else if .Y }}  {{ end }}
 *     {{ range .List }}  {{ range $v := .List }}  {{ end }}
 *     {{- and -}} take white space away;  {{/ * a comment * /}} (without the blanks)
 *
 * Values are texts, booleans, numbers, lists and objects of JSON; an absent one is "".  All values
 * are escaped for HTML.  A value may stand in text and in a quoted attribute only: in scripts,
 * styles, comments, names and unquoted attributes other rules of escaping would hold, and such a
 * template is refused.  Pure; a template is immutable. */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "wire/json.h"

#define TEMPLATE_SIZE_MAX ((size_t) 1 << 20)

struct template;
/* 'text' need not outlive the template.  -EINVAL: "line 3: ...". */
int template_parse(const char *text, size_t size, struct template **ret, struct err *e);
struct template *template_free(struct template *t);
DEFINE_CLEANUP(struct template *, template_free)
/* Appends the page with 'data' to 'out'. */
void template_write(const struct template *t, const struct json *data, struct strbuf *out);
/* Appends 's', escaped for text and for quoted attributes. */
void template_escape(const char *s, struct strbuf *out);
