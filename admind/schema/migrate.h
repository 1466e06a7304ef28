/*
 * The schema and its migrations, embedded in the program at build time. Number
 * 1 is sql/schema. The numbers from 2 on are the files of sql/migrations, which
 * only lead forward.
 */
#ifndef MIGRATE_H
#define MIGRATE_H

#include <stdbool.h>

#include "conf.h"
#include "err.h"
#include "ipc.h"

struct migration {
	int version; /* 1, 2, 3 ... without gaps */
	const char *name;
	struct ipc_hash sha256; /* of sql, or the one of sql/landed.txt */
	const char *sql;
};

extern const struct migration migrations[];
extern const int migrations_count; /* also the schema this program needs */

/*
 * `mcpbox-admind -m`: brings the database of `conninfo` to this program's
 * schema, as the owner role. Blocks, and opens one connection. Refuses, and
 * does not change, a database that is newer, that a build from before
 * sql/schema made, or in which an applied migration has another checksum. 0, or
 * -1 with err.
 *
 * With a backup directory (`-b DIR`, as the service manager runs it): waits for
 * a server that is still starting, and writes the database to DIR before the
 * first pending migration (migrate_backup.h).
 */
struct migrate {
	const char *conninfo;
	const char *backup_dir;   /* NULL: no backup */
	const char *postgres_bin; /* where pg_dump is */
};

int migrate_run(const struct migrate *, struct err *);

/*
 * Returns whether there is no server, or a server that admits no client yet. If
 * this is so after a failed run, nothing is wrong with the schema, and a later
 * run may succeed.
 */
bool migrate_away(const struct migrate *);

#endif
