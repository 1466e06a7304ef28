#include <string.h>

#include <json-c/json.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "remote_key.h"

#include "ids.h"
#include "remote_read.h"

enum { ED25519_LEN = 32, ED25519_TEXT = 43 };

/* Makes the set {"keys": [jwk]} of the public key, and the key's name. */
static struct json_object *
public_set(const char *x, char kid[REMOTE_THUMB_LEN + 1])
{
	struct json_object *set = json_object_new_object(),
			   *keys = json_object_new_array(),
			   *jwk = json_object_new_object();
	bool ok = set != NULL && keys != NULL && jwk != NULL &&
	    json_object_object_add(jwk, "kty", json_object_new_string("OKP")) ==
		0 &&
	    json_object_object_add(
		jwk, "crv", json_object_new_string("Ed25519")) == 0 &&
	    json_object_object_add(jwk, "x", json_object_new_string(x)) == 0 &&
	    remote_read_thumb(jwk, kid) == 0 &&
	    json_object_object_add(jwk, "kid", json_object_new_string(kid)) ==
		0 &&
	    json_object_object_add(
		jwk, "alg", json_object_new_string("EdDSA")) == 0 &&
	    json_object_object_add(jwk, "use", json_object_new_string("sig")) ==
		0 &&
	    json_object_object_add(set, "keys", json_object_get(keys)) == 0 &&
	    json_object_array_add(keys, json_object_get(jwk)) == 0;

	json_object_put(keys);
	json_object_put(jwk);
	if (ok)
		return set;
	json_object_put(set);
	return NULL;
}

/*
 * The private key is in this process' memory alone until it is printed. The
 * text is made here and not by json-c, which keeps copies that are not wiped.
 */
int
remote_key_make(struct json_object **set, struct buf *private, struct err *err)
{
	EVP_PKEY *pair = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
	uint8_t d[ED25519_LEN], x[ED25519_LEN];
	char dt[ED25519_TEXT + 2] = "", xt[ED25519_TEXT + 2] = "";
	char kid[REMOTE_THUMB_LEN + 1] = "";
	size_t nd = sizeof(d), nx = sizeof(x);
	struct json_object *made = NULL;

	if (pair != NULL && EVP_PKEY_get_raw_private_key(pair, d, &nd) == 1 &&
	    EVP_PKEY_get_raw_public_key(pair, x, &nx) == 1 && nd == sizeof(d) &&
	    nx == sizeof(x)) {
		(void)b64url_encode(d, sizeof(d), dt);
		(void)b64url_encode(x, sizeof(x), xt);
		made = public_set(xt, kid);
		buf_putf(private,
		    "{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"%s\","
		    "\"d\":\"%s\",\"kid\":\"%s\",\"alg\":\"EdDSA\"}",
		    xt, dt, kid);
	}
	EVP_PKEY_free(pair);
	OPENSSL_cleanse(d, sizeof(d));
	OPENSSL_cleanse(dt, sizeof(dt));
	if (made == NULL || private->failed) {
		json_object_put(made);
		return err_set(
		    err, FAILURE_INTERNAL, "libcrypto makes no Ed25519 key");
	}
	*set = made;
	return 0;
}
