/*
 * Fields of an access document about administrators that sign in by an issuer
 * (docs/decisions/0105), beside those of access_fields.h. They are apart from
 * an issuer's record, so a change of the sign-in ends no client's token.
 */
#ifndef SIGNIN_FIELDS_H
#define SIGNIN_FIELDS_H

#include "access_fields.h"

enum {
	ACCESS_ADMINISTRATORS_MAX = 64, /* rules; some dozens of people */
	SIGN_IN_SCOPES_MAX = 8, /* of an issuer; two or three are usual */
	SIGN_IN_URL_MAX = 1024, /* bytes of an authorization endpoint */
	/* Bytes of `client_id`; as ACCESS_VALUE_MAX, since `azp` can be the
	 * value of a rule. */
	SIGN_IN_CLIENT_MAX = ACCESS_VALUE_MAX
};

/* CHECK_ACCESS, as enum access_field. */
enum access_signin_field {
	ACCESS_SIGN_IN = 10,      /* record of enum sign_in_field */
	ACCESS_ADMINISTRATOR = 11 /* record of enum rule_field, with RULE_ROLE
				   * in place of RULE_SET */
};

enum sign_in_field {
	SIGN_IN_ISSUER = 1,   /* an issuer's name */
	SIGN_IN_CLIENT = 2,   /* our client_id there */
	SIGN_IN_REDIRECT = 3, /* URL to which it sends browsers back */
	SIGN_IN_SCOPE = 4     /* asked for beside openid, one each */
};

/* As enum rule_field. */
enum rule_signin_field { RULE_ROLE = 5 /* u8 enum admin_role */ };

/* CHECK_KEYS, as enum keys_field, if the metadata were asked
 * (ISSUER_DISCOVERY): the first two, or the third. */
enum keys_signin_field {
	KEYS_SIGN_IN_URL = 2,  /* https URL of the authorization endpoint */
	KEYS_SIGN_IN_ISS = 3,  /* u8: 1 its answers have `iss` (RFC 9207) */
	KEYS_SIGN_IN_FAULT = 4 /* a sentence: the reason for no sign-in */
};

#endif
