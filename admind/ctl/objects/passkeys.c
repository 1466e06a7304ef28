#include <stdio.h>
#include <string.h>

#include "calls.h"
#include "ids.h"
#include "objects.h"
#include "tables.h"

/* Command passkeys: root sees a person's passkeys, takes them away when a
 * device is lost, and makes the code for the first one of an issuer's person.
 * The vault does it; root needs no password. */

static enum ctl_status
list(const struct ctl *c)
{
	struct ipc_passkeys_get get = {.username = ipc_str(c->words[1])};
	enum ctl_status status;
	struct ipc_passkeys m;
	struct ipc_frame f;
	struct err err;
	struct buf b;

	status = calls_ask(c, "admind-vault", IPC_ROLE_VAULT, IPC_PASSKEYS_GET,
	    &get, IPC_PASSKEYS, &f);
	if (status != CTL_DONE)
		return status;
	buf_init(&b, IPC_BLOB_MAX);
	if (ipc_decode(&f, &m, &err) == -1) {
		fprintf(stderr, "mcpboxctl: %s\n", err.text);
		status = CTL_REFUSED;
	} else {
		buf_put(&b, m.json.p, m.json.n);
		status = tables_show(c, "passkeys", &b);
	}
	buf_free(&b);
	ipc_frame_free(&f);
	return status;
}

static enum ctl_status
take_away(const struct ctl *c)
{
	struct ipc_passkey_remove m = {.username = ipc_str(c->words[2])};
	enum ctl_status status;
	struct ipc_frame f;

	if ((c->nwords == 4) == c->all)
		return CTL_USAGE;
	if (c->nwords == 4)
		m.credential = ipc_str(c->words[3]);
	status = calls_ask(c, "admind-vault", IPC_ROLE_VAULT,
	    IPC_PASSKEY_REMOVE, &m, IPC_OK, &f);
	if (status != CTL_DONE)
		return status;
	ipc_frame_free(&f);
	puts(c->json ? "{\"ok\":true}" : "done");
	return CTL_DONE;
}

static enum ctl_status
code(const struct ctl *c)
{
	struct ipc_passkey_code_make m = {
	    .username = ipc_str(c->words[2]), .role = ipc_str(c->role)};
	char when[TIME_TEXT_LEN + 1];
	struct ipc_device_code got;
	enum ctl_status status;
	struct ipc_frame f;
	struct err err;

	if (c->role == NULL || c->nwords != 3)
		return CTL_USAGE;
	status = calls_ask(c, "admind-vault", IPC_ROLE_VAULT,
	    IPC_PASSKEY_CODE_MAKE, &m, IPC_DEVICE_CODE, &f);
	if (status != CTL_DONE)
		return status;
	if (ipc_decode(&f, &got, &err) == -1) {
		fprintf(stderr, "mcpboxctl: %s\n", err.text);
		status = CTL_REFUSED;
	} else {
		time_text(got.expires_ms * 1000, when);
		printf(c->json ? "{\"code\":\"%.*s\",\"expires_at\":\"%s\"}\n"
			       : "%.*s\nvalid until %s, once, for the first "
				 "passkey of this person\n",
		    (int)got.device.n, (const char *)got.device.p, when);
	}
	ipc_frame_free(&f);
	return status;
}

enum ctl_status
passkeys_command(const struct ctl *c)
{
	if (c->nwords == 2 && !c->all)
		return list(c);
	if (c->nwords >= 3 && strcmp(c->words[1], "remove") == 0)
		return take_away(c);
	if (c->nwords >= 3 && strcmp(c->words[1], "code") == 0)
		return code(c);
	return CTL_USAGE;
}
