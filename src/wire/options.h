/* SPDX-License-Identifier: Apache-2.0 */
/* Configuration as rows: one row describes one option of a daemon.
 *
 * A row says where the option is in the configuration file, which flag of the command line sets it,
 * where its value is kept, what values it takes, and what a user must know of it.  Reading of files
 * and flags, defaults, "--help", the tables of the manual, the sample file and completion come from
 * the rows; an option is added by a row and the member of the struct that keeps it.  Checks that
 * join several options are C of the table's owner.
 *
 * The texts of a row are plain English without markup, but for `words` in backquotes, which the
 * manual sets in bold. 'help' is a phrase: lower case at its start, without a full stop; 'detail'
 * is whole sentences.
 *
 * Values belong to the caller's struct, which options_init fills and options_done empties.  Pure;
 * not thread-safe. */
#pragma once

#include "base/ip.h"
#include "wire/json.h"

/* What the file and the flag have, and in parentheses the member that keeps it. */
enum option_type {
    OPTION_TEXT,     /* A text that is not empty (char *). */
    OPTION_FILE,     /* A file or folder (char *). */
    OPTION_CHOICE,   /* One of 'choices' (char *). */
    OPTION_BOOL,     /* true or false (bool). */
    OPTION_NUMBER,   /* A whole number in min..max (an integer of 2, 4 or 8 bytes). */
    OPTION_ENDPOINT, /* "ADDRESS:PORT" or "localhost:PORT", ports from 'min' on (char *). */
    OPTION_CIDR,     /* An IPv4 network (struct ip4_prefix). */
    OPTION_LIST,     /* Texts; a flag has commas between (char *, with commas). */
    OPTION_TEXTS,    /* The same (char **, NULL: not given, else NULL ends it). */
};

struct option_row {
    const char *path; /* "networkConfig.mtu"; NULL: flag only. */
    const char *flag; /* "mtu"; NULL: file only. */
    const char *arg;  /* What "--help" calls the value: "BYTES". */
    enum option_type type;
    bool not_empty;      /* A list must have an item. */
    bool shown;          /* The sample file sets 'example', although it is not the default. */
    unsigned daemons;    /* Bits, which the table's owner defines; 0: every daemon of the table. */
    size_t offset, size; /* Of the member; size 0: only 'set' knows where the value goes. */
    int64_t min, max;
    const char *choices; /* "sqlite etcd memory": values to choose from, or to complete. */
    const char *items;   /* Of a list, for errors: "CIDRs"; NULL: strings. */
    bool files;          /* The items of a list are names of files. */
    const char *dflt;    /* As a flag would give it; NULL: none. */
    const char *unset;   /* In words, what is in effect if it is not given: "the host's name". */
    const char *example; /* For the sample file and errors, if there is no default. */
    const char *yaml;    /* What the sample file has after "key:"; NULL: default or example. */
    const char *help;
    const char *detail; /* NULL: nothing more to say. */
    /* The reason why a text, or an item of a list, is refused (-EINVAL). */
    int (*check)(const char *value, struct err *e);
    /* Stores a value, given as a flag would give it, in place of what 'type' does. */
    int (*set)(void *config, const char *value, struct err *e);
    /* The same, for a function that several rows share: it gets the row's path. */
    int (*set_path)(void *config, const char *path, const char *value, struct err *e);
    /* Reads a value of the file that is no text, number or list; its errors begin with a path below
     * the key, "[0].cidr: ..." or ".cidr: ...", or with the reason. */
    int (*read)(void *config, const struct json *v, struct err *e);
    /* Takes relative names of files in the value of 'read' from the folder 'dir'; NULL: it has no
     * names of files. */
    void (*resolve)(struct json *v, const char *dir);
    /* The reason why the entry 'key' of a mapping that 'read' accepts has no effect; NULL: it has
     * one.  NULL in place of the function: all have. */
    const char *(*idle_entry)(const char *key, const struct json *v);
};

/* .OPTION_MEMBER(struct master_config, tls) of a row. */
#define OPTION_MEMBER(type, member) \
    .offset = offsetof(type, member), .size = sizeof(((type *) NULL)->member)

/* A key that other programs' files have under this name, and the row that it sets. */
struct option_alias {
    const char *path; /* "kubernetesMasterConfig.apiServerArguments.audit-log-path" */
    const char *to;   /* "auditConfig.auditFilePath" */
    bool seconds;     /* The value is a duration such as "1m30s"; the row has seconds. */
};

/* A key that is read without effect, and everything below it that has no row. */
struct option_idle {
    const char *path;
    const char *why;   /* A sentence without a full stop: the reason, and what to do instead. */
    const char *quiet; /* The value with which nothing is lost ("false"); NULL: none. */
};

struct option_table {
    const char *kind; /* "MasterConfig": the value of "kind" in the file. */
    const struct option_row *rows;
    size_t n;
    /* The file may have a number or a text in place of each other, and a text with commas in place
     * of a list. */
    bool any_scalar;
    const char *other_kind;           /* A second value of "kind"; NULL: none. */
    const struct option_alias *alias; /* End with a NULL path; NULL: none. */
    const struct option_idle *idle;   /* The same. */
    /* The section whose keys are flags of the table, with lists of their values; NULL: none. */
    const char *arguments;
    /* Of the struct option_findings in the caller's struct; 0: warnings are not kept. */
    size_t findings;
};

/* One thing to say about a file. */
struct option_finding {
    bool is_error;
    char *path; /* "networkConfig.mtu"; "": the whole file. */
    char *text; /* The reason. */
};

/* Keys of a file that are wrong or have no effect, in the file's order.  Zero-initialize. */
struct option_findings {
    struct option_finding *list;
    size_t n, cap;
};
void option_findings_add(struct option_findings *f, bool is_error, const char *path,
                         const char *text);
void option_findings_done(struct option_findings *f);

/* Stores the defaults of all rows in '*config', whose other members stay as they are. */
void options_init(const struct option_table *t, void *config);
/* Frees what the rows own in '*config' and sets it to zero. */
void options_done(const struct option_table *t, void *config);

/* Stores what the document sets.  Relative names of files are taken from 'dir' (NULL: they stay as
 * they are). -EINVAL names the key and the reason: "networkConfig.mtu: 70000 is not in 576-65535";
 * what was read before the error stays.  Keys without effect are added to the table's findings. */
int options_read(const struct option_table *t, void *config, const struct json *doc,
                 const char *dir, struct err *e);
/* The same, but goes on after an error, and adds all errors and warnings to 'f'. */
void options_check(const struct option_table *t, void *config, const struct json *doc,
                   const char *dir, struct option_findings *f);

/* The table's answer about a key of a file. */
enum option_use {
    OPTION_USE_NONE,      /* Nothing: the key is unknown. */
    OPTION_USE_ROW,       /* It is the path of a row. */
    OPTION_USE_ALIAS,     /* It stands for the path of a row. */
    OPTION_USE_ARGUMENTS, /* Keys below it are flags. */
    OPTION_USE_SECTION,   /* There are known keys below it. */
    OPTION_USE_IDLE,      /* It is read without effect. */
};
struct option_place {
    enum option_use use;
    const struct option_row *row;     /* Of a row or alias. */
    const struct option_alias *alias; /* Of an alias. */
    const struct option_idle *idle;   /* Of a key without effect. */
};
struct option_place options_place(const struct option_table *t, const char *path);
/* Whether a value of a key without effect is worth no warning: null, empty, or the value that the
 * table calls quiet. */
bool option_idle_is_quiet(const struct option_idle *idle, const struct json *v);
/* Stores one value by its flag ("mtu") or path ("networkConfig.mtu").  -EINVAL: "--mtu: ..." or
 * "networkConfig.mtu: ...", also if there is no such row. */
int options_set_flag(const struct option_table *t, void *config, const char *flag,
                     const char *value, struct err *e);
int options_set_path(const struct option_table *t, void *config, const char *path,
                     const char *value, struct err *e);

/* Stores one value, as a flag would give it.  -EINVAL: the reason alone. */
int option_set(const struct option_row *row, void *config, const char *value, struct err *e);

/* The row with this path; NULL: there is none. */
const struct option_row *options_find(const struct option_table *t, const char *path);
/* Whether the row is for one of 'daemons' (0: any). */
bool option_is_for(const struct option_row *row, unsigned daemons);

/* "ADDRESS:PORT" taken apart; 'host' stays a text, which may be "localhost".  -EINVAL. */
#define OPTION_HOST_SIZE 64
int option_split_endpoint(const char *s, char host[OPTION_HOST_SIZE], uint64_t *ret_port);
