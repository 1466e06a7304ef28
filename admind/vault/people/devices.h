/*
 * Recognises browsers that logged in here before, so that guesses of others
 * don't count against them (decision 0040). A device is text that a cookie
 * carries: base64url of {u8 kind, u64 Unix time in s, 16 random bytes} under a
 * MAC that also covers the administrator's name (macs.h). All that a device
 * gives is a bucket of its own for wrong passwords, so it need not be revoked.
 */
#ifndef DEVICES_H
#define DEVICES_H

#include "keys.h"

enum devices_kind {
	DEVICES_BROWSER = 1, /* made after a login */
	DEVICES_CODE         /* made by root, for the first login from a
			      * browser */
};

enum {
	DEVICES_TEXT_MAX = 160,          /* characters; ours have some 130 */
	DEVICES_BROWSER_S = 400 * 86400, /* as long as browsers keep a cookie */
	DEVICES_CODE_S = 900             /* time to type it */
};

struct devices_text {
	char s[DEVICES_TEXT_MAX + 1];
};

/* Makes a device's text. 0, or -1 without memory. */
int devices_make(const struct keys *, enum devices_kind, const char *username,
    uint64_t now_s, struct devices_text *out);
/* Returns whether the text was made here for this person, and is not too old.
 * *number receives the text's random part. */
bool devices_check(const struct keys *, const char *username,
    struct ipc_bytes text, uint64_t now_s, struct ipc_id *number);

#endif
