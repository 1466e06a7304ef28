/*
 * Ends logins BY_ISSUER that no rule of the document conveys any more.
 *
 * The vault keeps a hash with each login: of all that the document said about
 * that issuer's administrators (offers.h, `basis`). This process tells the
 * vault which hashes hold. A login with another one ends, so a change that
 * takes a rule, a role or the issuer away ends the logins, and so does one that
 * only adds a rule. The people sign in once more.
 *
 * A withdrawn identity loses its logins at once. A notification may be missed
 * while the database is away or while this process is not there. So all these
 * logins end when the database comes back.
 *
 * A hostile admind can leave all this undone. It could grant the login again in
 * any case, and no such login can make a seal of the vault.
 */
#include <string.h>

#include "access.h"
#include "log.h"
#include "signin.h"

static void
heard(void *arg, struct ipc_frame *f, enum failure gone)
{
	struct admind *a = arg;
	struct err err;

	if (f != NULL && f->type == IPC_OK)
		return;
	answer_err(f, gone, &err);
	log_event(
	    LOG_LV_WARN, "signin", "the vault did not take it: %s", err.text);
	a->signin->told = false;
}

/* Sends the hashes that hold. Returns false if the vault is away. */
static bool
send_holds(struct admind *a, const struct ipc_hash *holds, unsigned n)
{
	struct ipc_signin_holds m = {
	    .issuers = ipc_bytes(holds, n * sizeof(*holds))};
	struct err err;

	return ask(a->vault, IPC_SIGNIN_HOLDS, &m, heard, a, &err) == 0;
}

void
ends_tell(struct admind *a)
{
	struct ipc_hash holds[ACCESS_ISSUERS_MAX] = {0};
	struct signin *s = a->signin;
	struct offers offers;

	if (s == NULL || ipc_client_peer(a->vault) == NULL)
		return;
	if (s->clear) {
		if (!send_holds(a, holds, 0))
			return;
		s->clear = false;
		s->told = true;
		s->ntold = 0;
	}
	if (a->access == NULL || !a->access->ready)
		return;
	offers_read(&offers, a->access->now);
	for (unsigned i = 0; i < offers.n; i++)
		holds[i] = offers.offer[i].basis;
	if (s->told && s->ntold == offers.n &&
	    memcmp(s->holds, holds, offers.n * sizeof(holds[0])) == 0)
		return;
	s->told = send_holds(a, holds, offers.n);
	s->ntold = offers.n;
	memcpy(s->holds, holds, sizeof(holds));
}

void
ends_vault_up(struct admind *a)
{
	if (a->signin == NULL)
		return;
	a->signin->told = false;
	ends_tell(a);
}

void
ends_db_up(struct admind *a)
{
	if (a->signin == NULL)
		return;
	a->signin->clear = true;
	ends_tell(a);
}

static void
dropped(void *arg, struct ipc_frame *f, enum failure gone)
{
	(void)gone;
	/* A login that could not be ended by name ends with all others. */
	if (f == NULL || f->type != IPC_OK)
		ends_db_up(arg);
}

void
ends_notified(struct admind *a, const char *payload)
{
	static const char prefix[] = "withdrawn oidc:";
	struct ipc_signin_drop m = {0};
	char name[OFFERS_NAME_MAX + 1];
	const char *issuer, *colon;
	struct err err;

	if (a->signin == NULL ||
	    strncmp(payload, prefix, sizeof(prefix) - 1) != 0)
		return;
	issuer = payload + sizeof(prefix) - 1;
	colon = strchr(issuer, ':');
	if (colon == NULL || colon == issuer || colon[1] == '\0' ||
	    (size_t)(colon - issuer) > ACCESS_NAME_MAX)
		return;
	offers_name(ipc_bytes(issuer, (size_t)(colon - issuer)),
	    ipc_str(colon + 1), name);
	m.username = ipc_str(name);
	if (ask(a->vault, IPC_SIGNIN_DROP, &m, dropped, a, &err) == -1)
		a->signin->clear = true;
}
