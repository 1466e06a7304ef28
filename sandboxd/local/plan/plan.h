/*
 * The plan of a run: all that the program will get. options.c and profile.c
 * fill it in, judge.c refuses folders that can't be guarded, explain.c prints
 * it, and the room `inside` carries it out.
 */
#ifndef PLAN_H
#define PLAN_H

#include <sys/types.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "err.h"

enum {
	/* The exit statuses of mcpbox-run itself, as env(1) and timeout(1) have
	 * them. A program that a signal ended gives 128 + its number. */
	PLAN_FAILED = 125,    /* mcpbox-run refused, or could not confine */
	PLAN_NOT_RUN = 126,   /* the program is there and can't be executed */
	PLAN_NOT_FOUND = 127, /* the program is not there */
	PLAN_SIGNALLED = 128,
	/* A person writes the lists, or a profile; each folder is a mount. */
	PLAN_FOLDERS_MAX = 64,
	PLAN_FILES_MAX = 32,
	PLAN_KEPT_MAX = 16 * (PLAN_FOLDERS_MAX + 1),
	PLAN_ENV_MAX = 256,
	PLAN_HOSTS_MAX = 256, /* lines of --net */
	PLAN_PORTS_MAX = 16,  /* of --publish */
	PLAN_PATH_MAX = 4096, /* PATH_MAX of Linux */
};

/* One folder that the program sees at its own path. */
struct plan_folder {
	char *path; /* owned; without symbolic links */
	dev_t device;
	ino_t inode; /* as judged: the mounted folder must be the same */
	bool writable;
};

/* A single read-only file of the home folder. */
struct plan_file {
	char *path; /* owned; absolute */
	dev_t device;
	ino_t inode;
};

/* A path in a writable folder on which programs outside act (kept.c). */
struct plan_kept {
	char *path;    /* owned; absolute */
	bool there;    /* existed at the start */
	bool writable; /* only held in its place, as .git is */
};

struct plan {
	/* The caller. */
	uid_t uid;
	gid_t gid;
	char *user; /* owned; the name, or the number of a uid without a name */
	char *home; /* owned; where HOME is, without symbolic links */
	char *homes[2]; /* owned: `home`, and the home of the user database if
			 * another; the second may be NULL */
	/* The program. */
	char **argv; /* borrowed from main */
	struct plan_folder folder[PLAN_FOLDERS_MAX + 1]; /* [0]: the cwd */
	size_t nfolders;
	struct plan_file file[PLAN_FILES_MAX];
	size_t nfiles;
	struct plan_kept kept[PLAN_KEPT_MAX];
	size_t nkept;
	char *env[PLAN_ENV_MAX + 1]; /* owned; NAME=VALUE, ends with NULL */
	size_t nenv;
	/* Hosts that may be connected to, as lines of netgrant.h; all are tcp.
	 * Empty: no network. */
	struct buf net;
	unsigned nhosts;
	uint16_t port[PLAN_PORTS_MAX]; /* published */
	size_t nports;
	/* Limits; 0: none. Sizes are bytes. */
	uint64_t memory, tmp, file_size, processes;
	bool hooks;   /* --allow-hooks */
	bool explain; /* print, run nothing */
	bool json;
};

/* Sets the defaults and finds out about the caller. 0, or -1 with err. */
int plan_init(struct plan *, struct err *);
void plan_free(struct plan *);

/* options.c: reads the command line. 0; 1: --help or --version was printed; -1
 * with err. */
int options_read(struct plan *, int argc, char **argv, struct err *);
/* Sets one option by its name without dashes; value is NULL for an option
 * without a value. For the command line and profiles alike. */
int options_set(
    struct plan *, const char *name, const char *value, struct err *);

/* profile.c: reads a profile: a path with a slash, or the name of an installed
 * one. 0, or -1 with err. */
int profile_read(struct plan *, const char *name, struct err *);

/* folders.c: adds folders and files. An optional folder may be missing.
 * folders_cwd comes last. 0, or -1 with err. */
int folders_cwd(struct plan *, struct err *);
int folders_add(struct plan *, const char *path, bool writable, bool optional,
    struct err *);
int folders_file(struct plan *, const char *name, struct err *);
/* Tells whether the program sees this path (absolute, normal form). */
bool folders_show(const struct plan *, const char *path);

/* judge.c: refuses a folder (its path without symbolic links) that can't be
 * given to a program. 0, or -1 with a sentence that names the fix. */
int judge_folder(const struct plan *, const char *path, struct err *);
int judge_file(const struct plan *, const char *path, struct err *);
/* Tells whether `path` is `dir` or below it. */
bool judge_within(const char *path, const char *dir);

/* kept.c: the paths on which programs outside act. */
int kept_find(struct plan *, struct err *);
/* Sets aside the paths that were not there at the start. Returns their number;
 * calls `say` with the path of each and its new name, which is NULL if it could
 * not be renamed. */
typedef void kept_say(void *arg, const char *path, const char *aside);
size_t kept_settle(const struct plan *, kept_say *, void *arg);

/* environ.c: the environment. */
int environ_add(struct plan *, const char *word, struct err *);
/* Completes the environment: the allowed variables of the caller, HOME, PATH.
 * Called when all folders are known. */
int environ_close(struct plan *, struct err *);
const char *environ_get(const struct plan *, const char *name);

/* hosts.c: adds a host, a published port. 0, or -1 with err. */
int hosts_add(struct plan *, const char *text, struct err *);
int hosts_publish(struct plan *, const char *text, struct err *);

#endif
