#include <stdio.h>
#include <string.h>

#include "calls.h"
#include "prompt.h"
#include "setup.h"

/* Asks the vault to make the first administrator. Returns as calls_ask does. */
static enum ctl_status
make(const struct ctl *c, const char *username, const struct buf *password)
{
	struct ipc_setup m = {.username = ipc_str(username),
	    .password = ipc_bytes(password->p, password->len)};
	enum ctl_status status;
	struct ipc_frame f;

	status = calls_ask(
	    c, "admind-vault", IPC_ROLE_VAULT, IPC_SETUP, &m, IPC_OK, &f);
	if (status == CTL_DONE)
		ipc_frame_free(&f);
	return status;
}

/* On an installed system, which uses CTL_RUN_DIR, setup makes all first steps
 * (setup_system.c). Any other instance was set up by the program that made it
 * (quickstart), so only its first administrator is missing. */
enum ctl_status
setup_command(const struct ctl *c)
{
	enum ctl_status status;
	struct buf password;

	if (strcmp(c->run_dir, CTL_RUN_DIR) == 0)
		return setup_system_run(c);
	if (c->username == NULL || c->database != NULL)
		return CTL_USAGE;
	buf_init(&password, 4096);
	if (prompt_password(c, &password) == -1) {
		buf_free(&password);
		return CTL_USAGE;
	}
	status = make(c, c->username, &password);
	buf_free(&password);
	if (status != CTL_DONE)
		return status;
	if (c->json)
		puts("{\"ok\":true}");
	else
		printf("administrator %s was made\n", c->username);
	return CTL_DONE;
}
