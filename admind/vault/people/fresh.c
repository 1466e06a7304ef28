#include "fresh.h"

/*
 * The exceptions, each with its reason. tests/unit/admind/vault/
 * test_vault_fresh.c walks all messages of the web process and fails for one
 * that nobody decided about.
 */
static const struct {
	enum ipc_type type;
	enum fresh_need need;
} needs[] = {
    {IPC_APPROVE, FRESH_ALWAYS},
    {IPC_POLICY_SET, FRESH_ALWAYS},
    {IPC_ACCESS_SET, FRESH_ALWAYS},
    {IPC_ADMIN_CHANGE, FRESH_ALWAYS},
    /* A value that a person sets is of use to nobody before a tool that names
     * the secret is approved, which needs a proof. */
    {IPC_SECRET_SET, FRESH_BY_ISSUER},
    /* A rejection takes a right away: it must be possible at any time. */
    {IPC_REJECT, FRESH_NEVER},
};

enum fresh_need
fresh_need(enum ipc_type type)
{
	for (size_t i = 0; i < sizeof(needs) / sizeof(needs[0]); i++)
		if (needs[i].type == type)
			return needs[i].need;
	return FRESH_ALWAYS;
}

int
fresh_check(const struct session *s, enum ipc_type type, uint64_t boot_ms,
    struct err *err)
{
	enum fresh_need need = fresh_need(type);

	if (need == FRESH_NEVER ||
	    (need == FRESH_BY_ISSUER && s->by == SESSION_BY_PASSWORD) ||
	    sessions_proven(s, boot_ms))
		return 0;
	return err_set(err, FAILURE_PROOF_REQUIRED,
	    "this needs a proof at most five minutes old that you are there");
}
