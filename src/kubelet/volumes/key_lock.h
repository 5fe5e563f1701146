/* SPDX-License-Identifier: Apache-2.0 */
/* Locks with names: work on one volume that several pods of the node share is done one after the other.
 *
 * For worker threads, which may wait for each other for minutes; never on the loop's thread. */
#pragma once

struct key_lock;
/* Waits until no other thread holds the lock of this name, and takes it. */
struct key_lock *key_lock_take(const char *key);
/* NULL is fine; returns NULL. */
struct key_lock *key_lock_release(struct key_lock *l);
