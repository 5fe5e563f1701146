/* SPDX-License-Identifier: Apache-2.0 */
/* The subcommands of "tenet rollout", and what they share with rollback and deploy. */
#pragma once

#include "cli/kubectl/target.h"
#include "cli/workloads/history.h"

extern const struct command rollout_cancel, rollout_history, rollout_latest, rollout_pause,
    rollout_restart, rollout_resume, rollout_retry, rollout_status, rollout_undo;

/* All return the exit status after anything was printed. */

/* Starts a rollout of a DeploymentConfig (POST instantiate); 'again': without looking at its image
 * triggers.  '*ret' is its new state, owned. */
int dc_start(struct targets *t, const struct target *g, bool again, struct json **ret);
/* Cancels the rollouts that are under way: '*ret_n' is their number, '*ret_latest' the number of
 * the latest ReplicationController and '*ret_phase' (size 16) its phase. */
int dc_cancel(struct targets *t, const struct target *g, size_t *ret_n, int64_t *ret_latest,
              char ret_phase[16]);
/* Tries the latest rollout again, which must have failed. */
int dc_retry(struct targets *t, const struct target *g);
/* Asks for the DeploymentConfig as it was in 'revision' (0: the latest complete one before), and
 * stores it.  'parts': members of the request's spec that are true.  '*ret' is its new state,
 * owned, '*ret_from' the owned name of the ReplicationController. */
int dc_roll_back(struct targets *t, const struct target *g, int64_t revision,
                 const char *const *parts, struct json **ret, char **ret_from);
