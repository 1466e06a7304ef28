/*
 * OpenSSL's random generators and the fork.
 *
 * OpenSSL notices a fork by a changed pid. Every runner is pid 1 of its own
 * namespace. If the zygote were pid 1 too, or if a tool's child had the
 * zygote's pid, OpenSSL would take the child for the same process: three
 * runners once drew the same RAND_bytes. So no generator crosses the fork at
 * all. The zygote takes all three generators down when it is warm. The first
 * draw in a child makes them again, seeded by the kernel (EVP_RAND(3): a
 * generator that is not instantiated seeds itself when it is asked).
 *
 * A tool that never draws pays nothing, and the zygote's memory holds no
 * generator's state.
 *
 * Python's random module has a generator of its own, which pyfork.c reseeds.
 * os.urandom, secrets and uuid4 ask the kernel.
 */
#include <openssl/evp.h>
#include <openssl/rand.h>

#include "confinement.h"
#include "runner.h"

int
reseed_none(struct err *err)
{
	/* These calls make the generators that do not exist yet, so that no
	 * generator made later is overlooked. The children are taken down
	 * first, because a generator locks and asks its parent. */
	EVP_RAND_CTX *drbg[] = {RAND_get0_private(NULL), RAND_get0_public(NULL),
	    RAND_get0_primary(NULL)};
	unsigned i;

	for (i = 0; i < sizeof(drbg) / sizeof(drbg[0]); i++)
		if (drbg[i] == NULL || EVP_RAND_uninstantiate(drbg[i]) != 1 ||
		    EVP_RAND_get_state(drbg[i]) != EVP_RAND_STATE_UNINITIALISED)
			return err_set(err, FAILURE_INTERNAL,
			    "OpenSSL's generators cannot be taken down");
	return 0;
}
