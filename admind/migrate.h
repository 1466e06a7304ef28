/*
 * The schema's migrations: forward-only files of sql/migrations, embedded in
 * the program at build time.
 */
#ifndef MIGRATE_H
#define MIGRATE_H

#include "conf.h"
#include "err.h"
#include "ipc.h"

struct migration {
	int version; /* 1, 2, 3 ... without gaps */
	const char *name;
	struct ipc_hash sha256; /* of sql */
	const char *sql;
};

extern const struct migration migrations[];
extern const int migrations_count; /* also the schema this program needs */

/*
 * `mcpbox-admind -m`: brings the database of `owner_database` to this
 * program's schema, as the owner role. Blocking; opens one connection. A
 * database that is newer, or where an applied migration has another checksum,
 * is refused and left alone. Returns 0 or -1 with err.
 */
int migrate_run(const char *conninfo, struct err *);

#endif
