/*
 * The access document with a remote, and without it. JSON in, JSON out, no I/O.
 * docs/ACCESS.md describes the document; admind-check judges it when it is set.
 */
#ifndef REMOTE_DOCUMENT_H
#define REMOTE_DOCUMENT_H

#include <stdbool.h>

#include "buf.h"
#include "err.h"
#include "remote.h"

struct json_object;

/* The parts of a new remote. Texts are NULL if not given; lists have commas. */
struct remote_wish {
	const char *name;
	enum remote_kind kind;
	const char *resource, *issuer, *audience;
	const char *upstream; /* a Worker's: where people sign in */
	const char *emails, *subs;
	const char *set; /* a permission set that is there; NULL: a new one */
	const char *scopes, *allow; /* of the new one */
	struct json_object *jwks; /* borrowed; NULL: no keys in the document */
	const char *jwks_url;     /* keys are fetched from there, or */
	bool discovery;           /* from where the issuer's metadata says */
	const char *key_hosts;    /* further hosts that a fetch may reach */
};

/* Makes a document with the remote, from the one that holds (NULL: none). 0
 * with *out, which the caller puts; -1 with err: the name is taken, the
 * resource is another, the set is not there. */
int remote_document_add(struct json_object *now, const struct remote_wish *,
    struct json_object **out, struct err *);

/*
 * Makes a document without the remote: without its issuer, the rules that name
 * the issuer, and the permission set of the remote's name if nothing else names
 * it. A set that is left alone, though a rule of the remote named it, has a
 * line in *stays. So has the remote's own set if API tokens have it: `tokens`
 * are their names, or "". A document in which nothing is left that lets anybody
 * in becomes {}. 0 with *out, or -1 with err.
 */
int remote_document_remove(struct json_object *now, const char *name,
    const char *tokens, struct json_object **out, struct buf *stays,
    struct err *);

/* Returns the issuer of this name (borrowed), or NULL. */
struct json_object *remote_document_issuer(
    struct json_object *document, const char *name);

/* Returns the kind that an issuer's members show, for one that this wizard has
 * no row of. */
enum remote_kind remote_document_kind(struct json_object *issuer);

/* Returns a member that is a text, or "". */
const char *remote_document_text(struct json_object *, const char *name);

/* Appends the words of a list with commas to a JSON list. Blanks around a word
 * are dropped. 0, or -1 without memory. */
int remote_document_words(struct json_object *list, const char *words);

#endif
