#include "ctl.h"
#include "database.h"

/* Completes the connection strings of two roles. Their secrets are not wiped,
 * because the process ends soon. */
int
databases_read(struct ctl *c, struct err *err)
{
	static struct database owner, superuser;

	if (database_read(&owner, "owner_database", c->owner_database,
		c->owner_password_file, err) == -1 ||
	    database_read(&superuser, "superuser_database",
		c->superuser_database, c->superuser_password_file, err) == -1)
		return -1;
	c->owner_database = owner.conninfo[0];
	c->owner_open = owner.open;
	c->owner_password = owner.password;
	c->superuser_database = superuser.conninfo[0];
	return 0;
}
