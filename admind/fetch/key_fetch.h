/* Fetches the public keys of issuers (docs/decisions/0097). */
#ifndef KEY_FETCH_H
#define KEY_FETCH_H

#include "admind.h"

/* Called once a second. Begins each fetch that is due. */
void key_fetch_tick(struct admind *);

#endif
