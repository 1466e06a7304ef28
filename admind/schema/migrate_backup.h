/*
 * The database as it was before a migration (decision 0057): files
 * before-NNNN-DATE.dump of one directory, NNNN being the first migration that
 * was to come, in pg_dump's own form, which `mcpboxctl restore` takes.
 */
#ifndef MIGRATE_BACKUP_H
#define MIGRATE_BACKUP_H

#include <limits.h>

#include "migrate.h"

enum {
	/* Backups that are kept: a few upgrades back. */
	MIGRATE_BACKUPS = 5,
	/* before-0023-20261122T160301Z.dump */
	MIGRATE_BACKUP_NAME = 34
};

/*
 * Writes one before migration `next`: whole, on the disk and read back, or not
 * at all. The caller holds the migrations' lock, so nobody else works in the
 * directory. *name is the file's. 0 or -1 with err.
 */
int migrate_backup(const struct migrate *, int next,
    char name[MIGRATE_BACKUP_NAME], struct err *);
/* Takes back one that is worth nothing, since nothing was changed. */
void migrate_backup_drop(const struct migrate *, const char *name);
/* Removes the oldest, until `keep` are left. */
void migrate_backup_prune(const struct migrate *, int keep);
/*
 * The newest backup that a program which knows `count` migrations can use.
 * 0, or -1 if there is none.
 */
int migrate_backup_find(
    const struct migrate *, int count, char name[MIGRATE_BACKUP_NAME]);

#endif
