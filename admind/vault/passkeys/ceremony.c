/*
 * Security argument. The web process brings every byte here, and may be
 * hostile; so may the page in the browser be.
 *
 * - A replayed answer: the challenge is 32 random bytes of ours, kept for one
 *   login, used once and for one purpose (challenges.h).
 * - An answer that another page got: its client data name that page, and the
 *   authenticator data have the hash of that page's RP id. Both are compared.
 * - An answer that a person gave without knowing: the authenticator must say
 *   that a person was there (UP) and proved to be its owner (UV). A passkey is
 *   then two factors in itself; without UV a thief of the device would pass.
 * - A copy of the device: if it counts its signatures, the counter must grow.
 *   Passkeys that move between devices keep it at zero, which says nothing.
 * - A passkey that says it may not be copied, and later says it may: it is not
 *   the one that was registered.
 *
 * The signature is checked last over the very bytes that were read.
 */
#include <string.h>

#include "ceremony.h"
#include "ids.h"

static int
refuse(struct err *err, const char *why)
{
	return err_set(err, FAILURE_PASSKEY_REFUSED, "%s", why);
}

static int
judge_data(const struct ceremony *c, const struct authdata *d, struct err *err)
{
	struct ipc_hash rp;

	sha256(c->rp_id, strlen(c->rp_id), &rp);
	if (!ct_equal(rp.b, d->rp_id.b, sizeof(rp.b)))
		return refuse(err,
		    "the passkey was used for another site (passkey_rp_id)");
	if (!d->user_present)
		return refuse(err, "nobody touched the authenticator");
	if (!d->user_verified)
		return refuse(err,
		    "the authenticator did not verify its owner: use a PIN, a "
		    "finger or a face");
	return 0;
}

int
ceremony_register(const struct ceremony *c, struct ipc_bytes client_data,
    struct ipc_bytes attestation, struct authdata *out, struct err *err)
{
	struct authdata d;

	if (clientdata_check(
		client_data, true, c->challenge, c->origins, err) == -1 ||
	    authdata_attested(attestation, &d, err) == -1 ||
	    judge_data(c, &d, err) == -1)
		return -1;
	*out = d;
	return 0;
}

int
ceremony_assert(const struct ceremony *c, const struct ceremony_answer *a,
    const struct passkey *k, const struct ipc_id *handle, uint32_t *count,
    bool *cloned, struct err *err)
{
	struct ipc_hash client;
	struct authdata d;

	*cloned = false;
	if (clientdata_check(
		a->client_data, false, c->challenge, c->origins, err) == -1 ||
	    authdata_read(a->auth_data, false, &d, err) == -1 ||
	    judge_data(c, &d, err) == -1)
		return -1;
	if (a->handle.n != 0 &&
	    (a->handle.n != sizeof(handle->b) ||
		!ct_equal(a->handle.p, handle->b, sizeof(handle->b))))
		return refuse(err, "the passkey is another person's");
	if (d.backup_eligible != k->backup_eligible)
		return refuse(
		    err, "the passkey is not the kind that was registered");
	sha256(a->client_data.p, a->client_data.n, &client);
	if (!authkey_verify(&k->key, a->auth_data, &client, a->signature))
		return refuse(err, "the passkey's signature does not verify");
	if ((d.sign_count != 0 || k->sign_count != 0) &&
	    d.sign_count <= k->sign_count) {
		*cloned = true;
		return refuse(err,
		    "the passkey's counter went back: there may be a copy of "
		    "it. Remove it and register another one");
	}
	*count = d.sign_count;
	return 0;
}
