/*
 * User-space random generators after the fork.
 *
 * OpenSSL notices a fork by a changed pid. Every runner is pid 1 of its own
 * namespace, as far as OpenSSL can see the same process again: without this
 * file three runners drew the same RAND_bytes. Python's own generators are
 * reseeded by PyOS_AfterFork_Child(); os.urandom, secrets and uuid4 ask the
 * kernel.
 */
#include <sys/random.h>

#include <errno.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <string.h>

#include "runner.h"

enum { SEED_LEN = 48 }; /* 384 bits: AES-256 CTR_DRBG's seed length */

/*
 * In the zygote: makes all three generators exist, so that a runner inherits
 * the worst case and the test of reseed_child means something.
 */
void
reseed_warm(void)
{
	unsigned char b[16];

	(void)RAND_bytes(b, sizeof(b));
	(void)RAND_priv_bytes(b, sizeof(b));
}

/*
 * Mixes fresh kernel randomness into the primary generator (RAND_seed) and
 * into both that callers draw from, as additional input, which takes effect
 * at once; the primary alone would be followed only at the next check.
 */
int
reseed_child(struct runner *r)
{
	unsigned char seed[3][SEED_LEN];
	EVP_RAND_CTX *drbg[2];
	unsigned i;

	(void)r;
	if (getrandom(seed, sizeof(seed), 0) != (ssize_t)sizeof(seed))
		return -1;
	RAND_seed(seed[0], SEED_LEN);
	drbg[0] = RAND_get0_public(NULL);
	drbg[1] = RAND_get0_private(NULL);
	for (i = 0; i < 2; i++) {
		if (drbg[i] == NULL ||
		    EVP_RAND_reseed(
			drbg[i], 0, NULL, 0, seed[i + 1], SEED_LEN) != 1) {
			errno = EIO;
			return -1;
		}
	}
	explicit_bzero(seed, sizeof(seed));
	return 0;
}
