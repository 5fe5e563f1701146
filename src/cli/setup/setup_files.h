/* SPDX-License-Identifier: Apache-2.0 */
/* The files that setup makes, and the list of them by which "tenet setup remove" takes away just
 * these.
 *
 * The list (setup.json in the folder of the configuration) gets a file before the file is written,
 * with the hash of its contents.  A file that an administrator has edited since is never changed,
 * and not removed.  A sample of the package counts as not being there; it comes back when the file
 * is removed.  Any number of readers, one setup at a time (the list is locked while it is open). */
#pragma once

#include "base/err.h"
#include "base/str.h"

struct setup_files;
/* Opens the list of 'dir', which is made if it is missing, and removes temporary files of setups
 * that were killed.  -EBUSY: another setup runs.  -EINVAL: the list is malformed. */
int setup_files_open(const char *dir, struct setup_files **ret, struct err *e);
struct setup_files *setup_files_free(struct setup_files *f);
DEFINE_CLEANUP(struct setup_files *, setup_files_free)

/* What is at 'path' now; 'sample': the text of the package's sample, or NULL. */
enum setup_state {
    SETUP_ABSENT,
    SETUP_SAMPLE, /* The package's sample, unedited. */
    SETUP_OWN,    /* Setup's own, unedited. */
    SETUP_FOREIGN /* An administrator wrote or edited it. */
};
int setup_files_look(const struct setup_files *f, const char *path, const char *sample,
                     enum setup_state *ret, struct err *e);

enum setup_written {
    SETUP_SAME,    /* It was there with these contents. */
    SETUP_MADE,    /* It was not there. */
    SETUP_CHANGED, /* It was setup's own, unedited, or a sample. */
    SETUP_KEPT,    /* An administrator wrote it: unchanged. */
};
/* Writes a file whole.  'sample': the text of the package's sample; NULL: there is none. */
int setup_files_write(struct setup_files *f, const char *role, const char *path, const char *text,
                      unsigned mode, const char *sample, enum setup_written *ret, struct err *e);
/* Makes the symbolic link 'path'; one that is there, or a file, is kept. */
int setup_files_link(struct setup_files *f, const char *role, const char *path, const char *target,
                     enum setup_written *ret, struct err *e);
/* Adds a file that another step makes, and whose contents change: it is removed as it is. */
int setup_files_note(struct setup_files *f, const char *role, const char *path, struct err *e);
/* Removes such a file, which was needed for a while; one that is not in the list stays. */
int setup_files_drop(struct setup_files *f, const char *path, struct err *e);
/* Whether setup made something for this role ("master", "node"). */
bool setup_files_has(const struct setup_files *f, const char *role);
/* Makes the folder 'path' with those above it; the ones that were missing are removed with the role
 * when they are empty. */
int setup_files_dir(struct setup_files *f, const char *role, const char *path, unsigned mode,
                    struct err *e);
/* Removes what the list has for the role, in the reverse order, and calls 'said' for each file
 * with what was done: "removed", "kept: it was edited", "is the sample again".  'edited': edited
 * files are removed as well. */
int setup_files_remove(struct setup_files *f, const char *role, bool edited,
                       const char *sample_of(const char *path),
                       void (*said)(const char *path, const char *what), struct err *e);
