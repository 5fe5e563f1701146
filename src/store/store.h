/* SPDX-License-Identifier: Apache-2.0 */
/* The registry's storage: keys, values, one revision counter, and an ordered stream of changes.
 *
 * The model is etcd's: a store-wide revision that grows by one with each change; each
 * key has the revision of its last change (mod revision); writes are conditional on it.
 * Keys are "/registry/KIND/[NAMESPACE/]NAME".  Backends: "memory" (tests), "sqlite"
 * (embedded, one master), "etcd".
 *
 * All calls and callbacks are on the loop's thread; a backend may use threads inside.  Changes
 * are reported to the watcher in revision order, each exactly once, and only when durable.  The
 * result of a write is reported after its change was given to the watcher, so a reader of the
 * watch cache sees the write after its result.
 *
 * With an EncryptionConfiguration values are encrypted on their way to every backend, and decrypted
 * before they are reported.  A value that cannot be decrypted is reported as it is stored, so that
 * its object counts as unreadable; the log says which key is missing or wrong. */
#pragma once

#include "base/mem.h"
#include "net/loop/loop.h"

struct store;

struct store_event {
    const char *key;
    struct blob *value; /* NULL: deleted. */
    struct blob *prev;  /* The replaced value; NULL: created, or unknown. */
    uint64_t revision;  /* Revision of this change. */
};
struct store_item {
    const char *key;
    struct blob *value;
    uint64_t revision; /* mod revision */
};

struct store_watcher {
    /* Every key below /registry/ at revision 'revision', in key order, after store_start (and again
     * after 'lost' was reported and the store came back: then it replaces the known state). The
     * watcher may take values while it makes its copies, so that a large registry is not in
     * memory twice: it leaves NULL in their place. */
    void (*snapshot)(void *ctx, struct store_item *items, size_t n, uint64_t revision);
    /* Older events that are still stored, oldest first, before 'snapshot' is called: lets
     * watches resume over a restart. NULL: not needed. */
    void (*history)(void *ctx, const struct store_event *ev);
    void (*event)(void *ctx, const struct store_event *ev);
    /* Connection or disk trouble: writes fail with -EAGAIN until the next snapshot, or
     * 'resumed'. */
    void (*lost)(void *ctx, const char *reason);
    /* The store came back with all changes since: they continue where they stopped. NULL: the
     * watcher needs a snapshot instead. */
    void (*resumed)(void *ctx);
};

struct store_config {
    const char *backend;   /* "sqlite", "etcd", "memory" */
    const char *path;      /* sqlite: the database file; created with mode 0600. */
    const char *endpoints; /* etcd: "https://host:port[,...]"; https for all or for none */
    /* etcd: PEM files of the CA (NULL: the system's), and of a client certificate and
     * its key (NULL: none). */
    const char *ca_file, *cert_file, *key_file;
    /* sqlite: revisions begin after this one, unless the file has a higher one. */
    uint64_t min_revision;
    bool importing;   /* Open it even when an import into it was interrupted. */
    unsigned history; /* Events to keep for resumed watches; 0: 10,000. */
    /* An EncryptionConfiguration (encryption.h), by which values are encrypted and decrypted; NULL:
     * values are passed on as they are. */
    const char *encryption_file;
    /* sqlite: bytes of the disk reserved for deletions when it is full; 0: none. */
    uint64_t reserve;
};
/* Keys of the store itself.  A change of one of them in the history means that earlier changes
 * belong to another registry: it was imported, or restored from a backup. */
#define STORE_OWN_PREFIX "/registry/tenet.io/"
/* While this key exists, an import is in progress or was interrupted: the watcher gets 'lost'. */
/* While one of these exists, numbers of its kind may be in use that the registry no longer has,
 * as damaged changes were removed: the API server refuses to allocate any.  "tenet store
 * release" removes it. */
#define STORE_IMPORT_KEY STORE_OWN_PREFIX "import"
#define STORE_HOLD_SUBNETS STORE_OWN_PREFIX "hold/hostsubnets"
#define STORE_HOLD_VNIDS STORE_OWN_PREFIX "hold/netnamespaces"
/* Created and removed by a repair. */
#define STORE_REPAIR_KEY STORE_OWN_PREFIX "repaired"

int store_open(struct loop *l, const struct store_config *cfg, struct store **ret, struct err *e);
/* Begins to report to 'w' (which must outlive the store); once.  Before the first
 * snapshot, writes fail with -EAGAIN. */
void store_start(struct store *s, const struct store_watcher *w, void *ctx);
/* Finishes what it can (memory, sqlite: every queued write) and closes.  Events and
 * results of all writes that are still open are reported before it returns: -EAGAIN where
 * the outcome is unknown, -ECANCELED for a write that is begun meanwhile.  Not to be
 * called from a callback of the store. */
struct store *store_close(struct store *s);
DEFINE_CLEANUP(struct store *, store_close)

#define STORE_ABSENT 0u /* expect: the key must not exist. */
/* error: 0, -EEXIST (expected absent, exists), -ENOENT (does not exist), -ESTALE (exists at
 * another revision), -EAGAIN (store not available now, or the connection broke before the
 * answer: the change may have been made), -EPERM (the guard is not at its revision), -EINVAL
 * (key not below /registry/), -E2BIG, or another errno.  'revision': of the change on success.
 * Called exactly once, never from within the call that began the write. */
#define STORE_ANY UINT64_MAX /* expect: any state. */
typedef void store_done_fn(void *ctx, int error, uint64_t revision);
/* Creates or replaces ('value': a reference is taken) if the key's mod revision is 'expect'. */
void store_put(struct store *s, const char *key, struct blob *value, uint64_t expect,
               store_done_fn *done, void *ctx);
void store_delete(struct store *s, const char *key, uint64_t expect, store_done_fn *done,
                  void *ctx);

/* Another key that changes atomically with the written one: a value that is unique across
 * objects (an address, a port) is a key of its own, so that it cannot be allocated twice and
 * none is left over, whichever process fails.  Objects that refer to each other are written
 * together in the same way. */
struct store_claim {
    const char *key;
    /* The key is created or replaced; NULL: it is deleted, if it exists. */
    struct blob *value;
    /* With a value: STORE_ABSENT, the key must not exist; else it is replaced, and must be at this
     * mod revision. */
    uint64_t expect;
};
#define STORE_MAX_CLAIMS 120 /* etcd accepts 128 operations per transaction by default. */

#define STORE_ENDING_GROWTH 2048

struct store_terms {
    /* Done only if the key 'guard' (NULL: none) is at mod revision 'guard_at' in the same
     * transaction; else -EPERM, before other errors. So a leader writes under its lease: after
     * another leader has taken it, no write of the former succeeds, however late it arrives. */
    const char *guard;
    uint64_t guard_at;
    /* For a put: seconds after which the key is no longer needed, and the store may delete it
     * (etcd does, by a lease); 0: it stays. */
    unsigned ttl_s;
    /* For a put: a step of the object's deletion (the mark, a condition, finalizers).  It may
     * make the value larger by up to STORE_ENDING_GROWTH bytes while the disk is full, so that
     * deletions in several steps can be completed. */
    bool ending;
    /* Applied all together or not at all; -EADDRINUSE: a key to be created exists; -ESTALE: a key
     * to be replaced is absent or at another revision (a write with claims of both sorts may fail
     * with either). Their changes are reported after that of the key itself. Copied; at most
     * STORE_MAX_CLAIMS, else -E2BIG. */
    const struct store_claim *claims;
    size_t n_claims;
};
/* A put, or a deletion ('value' NULL), under these conditions. */
void store_write(struct store *s, const char *key, struct blob *value, uint64_t expect,
                 const struct store_terms *terms, store_done_fn *done, void *ctx);

/* Whether the value of the key is stored in another form than a write would store it now: it is
 * encrypted with an older key, or not at all.  Such a value is to be written again even when it
 * does not change. */
bool store_is_stale(const struct store *s, const char *key);

/* Does the work of a write, to the disk or to etcd's majority, and changes nothing: error 0 when
 * a write would have succeeded now. May take as long as a write. */
void store_probe(struct store *s, store_done_fn *done, void *ctx);

/* Whether other processes write to the same registry, so that their newest changes may not have
 * been reported yet. */
bool store_is_shared(const struct store *s);
/* Calls back when every change that any client could know before this call has been given to the
 * watcher: the watcher's state is then the newest. -EAGAIN: this cannot be determined now. */
void store_sync(struct store *s, store_done_fn *done, void *ctx);
