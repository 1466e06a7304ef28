/*
 * Keys of scripts for REST: their text and their scopes (docs/decisions/0106).
 *
 * A key is judged by admind alone. It goes there as SHA-256, in the member of a
 * message in which a login goes, after SCRIPT_KEY_MARK, which no login's digest
 * holds.
 */
#ifndef SCRIPT_KEY_H
#define SCRIPT_KEY_H

#include <stdbool.h>
#include <stddef.h>

#include "bounds.h"
#include "bytes.h"

/* A search for leaked secrets finds the prefix. */
#define SCRIPT_KEY_PREFIX "mbk_"
#define SCRIPT_KEY_MARK   "key:"

enum {
	SCRIPT_KEY_BYTES = 32,     /* random bytes */
	SCRIPT_KEY_TEXT = 4 + 43,  /* the prefix, and they in base64url */
	SCRIPT_KEY_NAME_MAX = 64,  /* so that key:NAME is a principal */
	SCRIPT_KEY_DAYS = 90,      /* unless asked otherwise */
	SCRIPT_KEY_DAYS_MAX = 365, /* a forgotten key ends within a year */
	/* the mark, and a digest in base64url */
	SCRIPT_KEY_DIGEST_TEXT = 4 + LOGIN_HASH_TEXT
};

/* The uses of a key. A key has one scope or more. Each route names the scope
 * that opens it (admind/http/routes.def, admin_action.def). */
enum script_scope {
	/* by no key: a person does it, with a login. The vault decides it, or
	 * it gives others rights, or it brings in foreign content. */
	SCRIPT_NEVER,
	SCRIPT_READ,    /* all that a viewer may read from admind */
	SCRIPT_METRICS, /* /metrics, and nothing else */
	/* keep approved tools running, within limits: start and stop,
	 * enable and disable, roll back, prune, limits, rates, breakers */
	SCRIPT_OPERATE,
	SCRIPT_EXPORT, /* records, the audit log and servers, as files */
	SCRIPT_SCOPES
};

/* Returns a scope's name, such as "read"; "never" for SCRIPT_NEVER. */
const char *script_scope_name(enum script_scope);
/* Finds a scope by its name. 0, or -1: keys have no such scope. */
int script_scope_find(struct ipc_bytes name, enum script_scope *);
/* True if this is the form of a key: prefix and 43 characters of base64url. */
bool script_key_form(const char *text, size_t n);
/* True if a text has that form anywhere in it. */
bool script_key_inside(const char *text);

#endif
