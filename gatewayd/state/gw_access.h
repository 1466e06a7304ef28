/*
 * The message GW_ACCESS: signed tokens at this listener, as admind tells them
 * (docs/decisions/0090). It is public: any client without a valid credential is
 * told the same.
 */
#ifndef GW_ACCESS_H
#define GW_ACCESS_H

#include "ipc.h"

struct gateway;

enum {
	/* Bytes of the texts of a challenge. Together they must leave most of
	 * an answer's head to other fields: clients and proxies take 8 KiB. */
	GW_ACCESS_URL_MAX = 1024,
	GW_ACCESS_SCOPE_MAX = 512,
	/* Bytes of the scopes that one request needs: all that there are. */
	GW_SCOPES_MAX = 63
};

struct gw_access {
	bool told;      /* admind told, and its link has not ended since */
	bool assertion; /* Cf-Access-Jwt-Assertion is read here */
	bool bound;     /* a token may be bound to one request here */
	char *resource_metadata; /* URL; "": no issuer serves this listener */
	char *scope;             /* words, or "" */
	uint8_t *metadata;       /* JSON of RFC 9728 */
	size_t metadata_len;     /* 0: its paths do not exist here */
};

/* Copies words of scopes that admind sent, if a challenge may have them, else
 * "". out has GW_SCOPES_MAX + 1 bytes. */
void gw_access_scopes(struct ipc_bytes, char *out);
/* Takes GW_ACCESS. 0, or -1: malformed; then nothing changes. */
int gw_access_take(struct gateway *, struct ipc_frame *);
/* Forgets everything, because admind's link ended: it may hold no longer. */
void gw_access_forget(struct gateway *);

#endif
