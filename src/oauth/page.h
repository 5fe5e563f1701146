/* SPDX-License-Identifier: Apache-2.0 */
/* The pages of the OAuth server: plain HTML without scripts, whose style is one file of this server.
 *
 * Each page is a template (template.h) over an object; templates of the configuration may replace
 * those of login, provider selection and errors, and get the values that OpenShift's get.  Texts of
 * errors are fixed, one for each code: nothing of a request's URL is shown (CVE-2020-10715).  Pure. */
#pragma once

#include "oauth/template.h"

enum page {
    PAGE_LOGIN,     /* .ProviderName .Action .Error .ErrorCode .Names .Values */
    PAGE_PROVIDERS, /* .Providers[] {Name, URL} .Error .ErrorCode */
    PAGE_ERROR,     /* .Error .ErrorCode */
    PAGE_APPROVE, /* .Client .Account .Namespace .User .Redirect .Action .Names .Values .Scopes[] */
    PAGE_DISPLAY, /* .Action .Names .Values: a button that shows the token */
    PAGE_TOKEN,   /* .Token .Server .RequestURL .LogoutURL .Names .Values */
    PAGE_MAX,
};
/* The built-in template. */
const char *page_source(enum page p);
/* The style of all pages, served at PAGE_STYLE_PATH. */
#define PAGE_STYLE_PATH "/oauth/style.css"
extern const char page_style[];
/* The icon of all pages (SVG), served at PAGE_ICON_PATH: browsers ask for /favicon.ico where a page
 * names none. */
#define PAGE_ICON_PATH "/oauth/icon.svg"
extern const char page_icon[];

/* The sentence for a code of an error, such as "access_denied"; a general one for an unknown code. */
const char *page_error_text(const char *code);
/* The rights of a scope, as a sentence for the person who is asked; owned. */
char *page_scope_text(const char *scope);
