#include "fresh.h"

/*
 * The requests of the web process to the vault. Each request without a proof
 * has its reason. tests/unit/admind/vault/test_vault_fresh.c walks the table of
 * messages, and fails for a request that is not here.
 */
static const struct {
	enum ipc_type type;
	enum fresh_need need;
} needs[] = {
    {IPC_APPROVE, FRESH_ALWAYS},
    {IPC_POLICY_SET, FRESH_ALWAYS},
    {IPC_ACCESS_SET, FRESH_ALWAYS},
    {IPC_ADMIN_CHANGE, FRESH_ALWAYS},
    {IPC_PASSKEY_REGISTER, FRESH_ALWAYS}, /* or root's code (passkey_use.c) */
    {IPC_PASSKEY_REMOVE, FRESH_ALWAYS},
    /* A value reaches only the runs that an approval names, and approvals
     * need a proof. */
    {IPC_SECRET_SET, FRESH_BY_ISSUER},
    /* These take something away, which must be possible at any time. */
    {IPC_REJECT, FRESH_NEVER},
    {IPC_LOGOUT, FRESH_NEVER},
    {IPC_LOGIN_END, FRESH_NEVER},
    /* These bring the password themselves. */
    {IPC_LOGIN, FRESH_NEVER},
    {IPC_PASSWORD, FRESH_NEVER},
    {IPC_PROVE, FRESH_NEVER},
    /* This brings the passkey itself. */
    {IPC_PASSKEY_ASSERT, FRESH_NEVER},
    /* This makes a login, which begins unproven. */
    {IPC_SIGNIN_REDEEM, FRESH_NEVER},
    /* These only read. */
    {IPC_WHOAMI, FRESH_NEVER},
    {IPC_LOGINS_GET, FRESH_NEVER},
    {IPC_PASSKEYS_GET, FRESH_NEVER},
    {IPC_PASSKEY_CHALLENGE, FRESH_NEVER},
    {IPC_POLICY_GET, FRESH_NEVER},
    {IPC_SEAL_VERIFY, FRESH_NEVER},
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
