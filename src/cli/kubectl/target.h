/* SPDX-License-Identifier: Apache-2.0 */
/* The objects that a command line names, to read or to change them: KIND NAME..., KIND/NAME...,
 * -f FILE, -l SELECTOR and --all.
 *
 * A change is sent as a merge patch of the difference, with the resourceVersion that it is based
 * on: a change that another client made meanwhile is read, and ours is made anew on top of it. */
#pragma once

#include "cli/kubectl/manifest.h"
#include "cli/kubectl/resource.h"
#include "cli/session.h"

#define PATCH_MERGE "application/merge-patch+json"
#define PATCH_STRATEGIC "application/strategic-merge-patch+json"
#define PATCH_JSON "application/json-patch+json"

enum target_dry_run { DRY_RUN_NONE, DRY_RUN_CLIENT, DRY_RUN_SERVER };

struct target {
    const struct api_kind *kind;
    struct json *object; /* As the server has it; owned. */
};
/* Zero-initialize. */
struct targets {
    struct session s;
    struct manifests m;
    struct target *list;
    size_t n, cap;
    /* Options. */
    const char *labels, *output;
    enum target_dry_run dry_run;
    bool all, all_namespaces, local_all; /* local_all: a kind without names means all objects. */
};

/* --filename, --selector, --all, --dry-run, --output and those of the session: rows for
 * command.shared. */
extern const struct command_option target_options[];
/* The same without --all, --selector and --filename, for commands that make one object. */
extern const struct command_option target_new_options[];

/* Like session_getopt; handles the shared options too.  Returns '?' after a wrong value. */
int targets_getopt(struct targets *t, const struct command *c, int argc, char **argv);
/* Opens the session, and reads the objects from the server.  'kind' (may be NULL) is the kind of
 * arguments without "/".  Returns 0, or the exit status after the error was printed; the objects
 * that could be read are in the list then, too. */
int targets_load(struct targets *t, const char *kind, int n, char *const *args);
/* The same for one kind and no name: reads all its objects that have the labels. */
int targets_load_kind(struct targets *t, const struct api_kind *k, const char *labels);
void targets_done(struct targets *t);
#define CLEANUP_TARGETS __attribute__((cleanup(targets_done)))

/* Changes a copy of an object. Returns 0, or a negative errno with the reason. */
typedef int target_change_fn(void *ctx, const struct api_kind *k, struct json *object,
                             struct err *e);
/* Changes one object on the server.  '*ret' (may be NULL) is the new state, owned; '*ret_changed'
 * says whether anything differs.  Returns 0, or the exit status after the error was printed. */
int target_change(struct targets *t, const struct target *g, target_change_fn *fn, void *ctx,
                  struct json **ret, bool *ret_changed);
/* Changes all objects, and prints "KIND/NAME SAID" for those that changed.  Returns the exit
 * status. */
int targets_change(struct targets *t, target_change_fn *fn, void *ctx, const char *said);
/* Creates an object in the session's namespace and prints "KIND/NAME SAID".  Returns the exit
 * status. */
int targets_create(struct targets *t, const struct api_kind *k, const struct json *o,
                   const char *said);
/* Prints "KIND/NAME SAID", or the object in the form of --output.  Returns the exit status. */
int target_print(const struct targets *t, const struct api_kind *k, const struct json *o,
                 const char *said);
/* "?dryRun=All" where the server must not store anything, else "". */
const char *target_query(const struct targets *t);
/* Owned path of an object, or of its subresource. */
char *target_path(const struct target *g, const char *subresource);
const char *target_name(const struct target *g);
/* "deployments.apps "web"": how kubectl's errors name an object; owned. */
char *target_title(const struct target *g);

/* Finds the kind by a name of the command line, also among those of the server. NULL after the
 * error was printed. */
const struct api_kind *targets_kind(struct targets *t, const char *alias);

/* Pure: the merge patch (RFC 7386) that makes 'after' of 'before': lists are replaced as a whole.
 * Owned; an empty object when nothing differs. */
struct json *target_difference(const struct json *before, const struct json *after);
