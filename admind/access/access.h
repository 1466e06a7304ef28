/*
 * Signed tokens (docs/decisions/0090): the access document that holds, and the
 * way of a frame that brings a token.
 *
 *  rules.h           the document and its rules, without I/O
 *  document.c        the stored document that holds
 *  access_store.c    storing one for the vault, and giving its seal back
 *  metadata.c        the texts for clients without a valid credential
 *  judging.c         frames that wait while their token is checked
 *  identities.h      people with remembered tokens
 */
#ifndef ACCESS_H
#define ACCESS_H

#include "keysets.h"
#include "op.h"
#include "rules.h"

enum { ACCESS_WHY_MAX = 400 };

struct access_waiter;
struct otlp_state;
struct narrowed; /* narrow.h */

struct access_row {
	uint64_t serial;
	struct ipc_hash sha256, seal; /* of the document; of its seal */
};

struct access {
	struct compiled *now; /* the document that holds; NULL: no signed token
				 is accepted */
	/* Whether `now` is certain: since the database came, the newest row was
	 * read, and the vault and admind-check said their word on it. If not,
	 * no signed token is accepted, and `failure` is the reason. */
	bool ready;
	bool settled; /* a first reading came to its end */
	enum failure failure;
	unsigned generation; /* number of changes of `now`, and of fetched
			      * keys */

	struct narrowed *narrowed; /* rights at endpoints of `now` */

	struct access_row held; /* the row of `now` */
	/* Its document and seal, for runs that fetch keys. */
	struct buf document, seal;
	struct keysets keysets;       /* of `now` */
	struct otlp_state *telemetry; /* otlp_state.h */
	/* notify_send.c: a run or a statement is under way; the database has
	 * the targets of `now`, as of this generation. */
	unsigned notify_running; /* notifications under way */
	bool notify_following, notify_follows;
	unsigned notify_generation;

	/* The newest row, as last read. */
	bool stored; /* there is one */
	struct access_row newest;
	char why[ACCESS_WHY_MAX]; /* a sentence if the row does not hold */

	struct access_load *load; /* the reading under way */
	bool again;               /* read once more after it */
	STAILQ_HEAD(, access_waiter) waiters;
};

/* ---- document.c ---- */
int document_start(struct admind *, struct err *);
/* Reads the newest document and puts it into force. then (may be NULL) runs
 * when a reading that began after this call came to its end, a good or a bad
 * one. */
void document_load(struct admind *, void (*then)(void *), void *arg);
/* Runs then(arg) when a reading came to its end since the start, which may be
 * at once. */
void document_settled(struct admind *, void (*then)(void *), void *arg);
/* Called when the database is back: no signed token is accepted until the
 * newest document was read again. */
void document_db_up(struct admind *);
/* Reads again if the last reading had trouble. voided: also if the newest
 * document can't hold; the vault or admind-check may be another process now. */
void document_retry(struct admind *, bool voided);
/* Handles NOTIFY mcpbox_access. */
void document_notified(struct admind *, const char *payload);
/* Returns whether signed tokens can be judged now: 0, or -1 with err. */
int document_ready(struct admind *, struct err *);
/* Writes in_force, why, keys and telemetry into an open object. sha256: of the
 * document that the object shows; NULL: it shows none. */
void document_json(
    struct admind *, const struct ipc_hash *sha256, struct jsonw *);

/* ---- access_store.c: ACCESS_LOAD, ACCESS_STORE ---- */
int access_store_message(struct link *, struct ipc_frame *);

/* ---- metadata.c ---- */
/* Sends GW_ACCESS to one gateway, or to all. */
void metadata_send(struct link *);
void metadata_tell(struct admind *);

/* ---- judging.c ---- */
enum {
	/* Bounds of one listener, so that neither keeps the other waiting.
	 * admind-check judges one token at a time, in some 100 us; a few on
	 * their way keep it busy, and an argument's check waits for few. */
	JUDGING_CHECKS_MAX = 4,
	JUDGING_FRAMES_MAX = 128,
	JUDGING_BYTES_MAX = 8 * 1024 * 1024
};
/* Takes a gateway's frame if its token must be checked first; later the frame
 * goes to a->dispatch, or is refused. False: the frame is the caller's. */
bool judging_takes(struct link *, struct ipc_frame *);
/* Frees the frames of a link that ended. */
void judging_link_gone(struct link *);
unsigned judging_count(const struct admind *); /* frames that wait */

#endif
