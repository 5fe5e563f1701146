/* SPDX-License-Identifier: Apache-2.0 */
/* What the configuration files of all daemons share: how a file is read, its log levels, and the
 * name of the host where the file names none.
 *
 * The keys are rows of each daemon (wire/options.h).  Any thread, while it starts. */
#pragma once

#include "wire/options.h"

/* Reads the document 'doc' into 'config'; 'dir' is the folder of the file, from which relative paths
 * are taken; NULL: unknown. */
typedef int config_file_fn(void *config, const struct json *doc, const char *dir, struct err *e);
/* Calls 'read' for the YAML or JSON file 'path', of at most 1 MiB.  Errors name the file.  -EPERM:
 * the file has a secret and every user of the host can read it (CVE-2016-2142). */
int config_file_load(const char *path, config_file_fn *read, void *config, struct err *e);

/* Sets the levels of the log by the value of logLevel, and how its lines are written by that of
 * logFormat; NULL: they stay.  -EINVAL names what is no level or format. */
int config_file_set_log(const char *levels, const char *format, struct err *e);

/* The first key of the document whose value is a secret, as a path ("oauthConfig.bindPassword");
 * owned; NULL: there is none.  A secret is a text, or an object with the text in "value", of a key
 * such as bindPassword or clientSecret; one that a file or the environment has is not in 'doc'. */
char *config_file_secret(const struct json *doc);

/* Logs a warning for each finding: a key of the file without effect, and the reason. */
void config_file_warn(const struct option_findings *f);

/* The name of this host in lower case: the default of nodeName. */
#define CONFIG_HOST_NAME_SIZE 256
void config_file_host_name(char out[CONFIG_HOST_NAME_SIZE]);
