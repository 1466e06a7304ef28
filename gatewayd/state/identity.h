/*
 * Finds the principal of a credential: asks admind, and remembers the answer
 * for a short time.
 */
#ifndef IDENTITY_H
#define IDENTITY_H

struct gateway;
struct refusal;

enum {
	PRINCIPAL_MAX = 320,  /* enough for an e-mail address (254) */
	CREDENTIAL_MAX = 4096 /* a JWT of an identity provider fits */
};

struct identity {
	char principal[PRINCIPAL_MAX + 1];
	char permission_set[PRINCIPAL_MAX + 1];
};

/* Gets the identity, or NULL and the reason. Called from the loop, or before
 * identity_ask returns. */
typedef void identity_cb(
    void *arg, const struct identity *, const struct refusal *);
struct identity_cache *identity_cache_new(void);
void identity_cache_free(struct identity_cache *);
void identity_cache_drop(struct identity_cache *);
void identity_ask(
    struct gateway *, const char *credential, identity_cb *, void *arg);

#endif
