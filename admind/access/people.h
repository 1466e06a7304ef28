/*
 * People with signed tokens, in memory. No I/O: identities.c decides whether
 * they are let in.
 *
 * A person is a principal, oidc:ISSUER:SUB. Tokens of the same person may have
 * different rights, if rules look at claims that differ. Each set of rights is
 * a `struct token` (token.h), and all of a person's count against one share.
 *
 * A token is remembered by its credential_hash(). A person has few remembered
 * tokens, and a new one takes the place of the oldest, so a client that makes
 * tokens without end pushes out its own tokens alone. A token that was pushed
 * out is checked again when it comes back; nothing ends by it.
 *
 * An issuer that was taken over can name people without end. So memory is
 * divided: each issuer of the document has an equal part of all bounds below,
 * which no other issuer can take. Within a part the person with most tokens
 * loses the oldest one. If several have the same number, the last use decides.
 */
#ifndef PEOPLE_H
#define PEOPLE_H

#include "table.h"
#include "token.h"

enum {
	/* Clients renew a token every few minutes to hours; a client that makes
	 * one for each request needs none of the older ones. */
	PERSON_CREDENTIALS_MAX = 16,
	/* The bound of all people together. So all ends that a new document can
	 * cause fit into the queue of one gateway (IPC_WAITERS_MAX). */
	PEOPLE_CREDENTIALS_MAX = 2048,
	/* Bytes of the claims of all remembered tokens. Most have some 100
	 * bytes; one with 64 long groups has 16 KiB. */
	PEOPLE_BYTES_MAX = 8 * 1024 * 1024,
	/* People: as many as there are remembered tokens, and as many again
	 * whose tokens were pushed out while their requests are in work
	 * (JOBS_MAX + OPS_MAX), or whose last use is not stored yet. Rights
	 * that are narrowed to an endpoint are no work (narrow_tidy()). A
	 * person takes 1 KiB. */
	PEOPLE_MAX = 2 * PEOPLE_CREDENTIALS_MAX
};

TAILQ_HEAD(person_list, person);

/* One issuer's people. */
struct part {
	LIST_ENTRY(part) entry;
	char issuer[64];
	unsigned npeople, ncredentials;
	size_t bytes;
	unsigned withdrawn; /* its withdrawn people (identities_change.c) */
	/* Its people by their number of tokens, each list in the order of last
	 * use. */
	struct person_list with[PERSON_CREDENTIALS_MAX + 1];
};

struct person;

/* One set of rights of a person. */
struct rights {
	LIST_ENTRY(rights) entry;
	struct token *token;
	unsigned credentials; /* remembered tokens that have these rights */
};

/* One remembered token. */
struct credential {
	struct table_node node;        /* by hash */
	TAILQ_ENTRY(credential) entry; /* of its person, oldest first */
	struct person *person;
	struct rights *rights;
	struct ipc_hash hash;
	uint64_t age;           /* counts up with each verdict */
	struct buf claims;      /* fields of CHECK_JWT */
	uint64_t until_us;      /* Unix time: its end by the wall clock */
	uint64_t until_boot_ms; /* the same moment since boot */
	uint64_t fresh_boot_ms; /* check it again after this time since boot */
};

struct person {
	struct table_node node; /* by principal */
	LIST_ENTRY(person) entry;
	TAILQ_ENTRY(person) turn; /* in part->with[ncredentials] */
	struct part *part;
	char principal[PRINCIPAL_MAX + 1];
	struct share *share;
	LIST_HEAD(, rights) rights;
	TAILQ_HEAD(, credential) credentials;
	unsigned ncredentials;
	/* The last use, if not yet in the database; else used_us is 0. */
	uint64_t used_us;
	unsigned used_by;
	char issuer[64], set[64];
	char email[PRINCIPAL_MAX + 1];
};

struct people {
	struct table by_principal, by_hash;
	LIST_HEAD(, person) all;
	LIST_HEAD(, part) parts;
	unsigned issuers; /* among which memory is divided; at least 1 */
	unsigned ncredentials;
	uint64_t age;
};

int people_init(struct people *); /* 0, or -1 without memory */

struct person *people_person(const struct people *, const char *principal);
struct credential *people_credential(
    const struct people *, const struct ipc_hash *);
/* Divides memory among so many issuers. Tokens that a part has too many are
 * pushed out. */
void people_divide(struct people *, unsigned issuers);
/* Finds or makes the part of a principal's issuer. Returns NULL without
 * memory. */
struct part *people_part(struct people *, const char *principal);
/* Returns whether the issuer of this principal has as many people in memory as
 * it may have. people_tidy() may make room. */
bool people_full(struct people *, const char *principal);
/* Finds or makes a person. Returns NULL without memory, or if people_full(). */
struct person *people_make(struct people *, const char *principal);
/* Notes that a person came now: he is the last of his list. */
void people_came(struct person *);
/* Finds or makes a set of rights of a person: equal scopes, patterns, listeners
 * and permission set. *made says which. Returns NULL without memory. */
struct rights *people_rights(struct person *, unsigned scopes,
    const char *allow, const char *deny, unsigned listeners,
    const struct token_of *, bool *made);
/* Gives a remembered token another set of rights of its person. */
void people_move(struct credential *, struct rights *);
/* Remembers a token, in the place of its former verdict if there is one. Pushes
 * out others where bounds demand it. Returns NULL without memory. */
struct credential *people_remember(struct people *, struct person *,
    struct rights *, const struct ipc_hash *, struct ipc_bytes claims);
/* Forgets a token, and its rights if no other token has them. */
void people_forget(struct people *, struct credential *);
void people_forget_all(struct people *, struct person *);
/* Frees the people without a remembered token, work, or unsaved use; rights
 * that no token has; and parts without people. */
void people_tidy(struct people *);

#endif
