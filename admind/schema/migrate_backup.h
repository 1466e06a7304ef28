/*
 * Backups of the database before a migration (decision 0057): files
 * before-NNNN-DATE.dump of one directory, in pg_dump's own form, which
 * `mcpboxctl restore` takes. NNNN is the first pending migration.
 */
#ifndef MIGRATE_BACKUP_H
#define MIGRATE_BACKUP_H

#include <limits.h>

#include "migrate.h"

enum {
	/* Number of kept backups: a few upgrades back. */
	MIGRATE_BACKUPS = 5,
	/* before-0023-20261122T160301Z.dump */
	MIGRATE_BACKUP_NAME = 34
};

/*
 * Writes a backup before migration `next`. After success the file is whole and
 * on the disk, and was read back. After a failure no file remains. The caller
 * holds the migrations' lock, so no other process works in the directory. name
 * receives the file's name. 0, or -1 with err.
 */
int migrate_backup(const struct migrate *, int next,
    char name[MIGRATE_BACKUP_NAME], struct err *);
/* Removes a backup that is not needed, because nothing was changed. */
void migrate_backup_drop(const struct migrate *, const char *name);
/* Removes the oldest backups; `keep` remain. */
void migrate_backup_prune(const struct migrate *, int keep);
/*
 * Finds the newest backup that a program with `count` migrations can use. 0, or
 * -1 if there is none.
 */
int migrate_backup_find(
    const struct migrate *, int count, char name[MIGRATE_BACKUP_NAME]);

#endif
