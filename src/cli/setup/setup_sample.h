/* SPDX-License-Identifier: Apache-2.0 */
/* The sample configurations that come with this program, by which setup knows a file that was
 * installed and never edited. */
#pragma once

/* The sample of the file with this base name ("master-config.yaml"); NULL: there is none.  It stays
 * valid until the program ends. */
const char *setup_sample(const char *path);
