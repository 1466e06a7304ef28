/*
 * Fields that admind-check makes of an access document and of a signed token
 * (docs/ACCESS.md, docs/decisions/0090). TLV; a record is a field that holds
 * fields. Order is the document's. Only check/ writes them. signin_fields.h has
 * more.
 */
#ifndef ACCESS_FIELDS_H
#define ACCESS_FIELDS_H

enum {
	/* Bounds of the document. An administrator writes it by hand; every
	   admind has the whole document in memory. */
	ACCESS_ISSUERS_MAX = 16,
	ACCESS_KEYS_MAX = 16, /* of an issuer; providers show 2 to 4 */
	/* Fetched ones: those of every algorithm and use are in one set. */
	ACCESS_KEYS_FETCHED_MAX = 32,
	ACCESS_KEYS_BYTES_MAX = 64 * 1024, /* of a fetched set, as JSON */
	ACCESS_KEY_HOSTS_MAX = 8,          /* of an issuer, beside its own */
	ACCESS_AUDIENCES_MAX = 8,          /* of an issuer */
	ACCESS_CLIENTS_MAX = 64,           /* of an issuer */
	ACCESS_RULES_MAX = 256,
	ACCESS_VALUES_MAX = 64, /* of a rule */
	ACCESS_SETS_MAX = 64,
	ACCESS_PATTERNS_MAX = 256, /* allow or deny of a set, as a token's */
	ACCESS_URL_MAX = 512,
	ACCESS_NAME_MAX = 32,      /* an issuer's or a set's name */
	ACCESS_VALUE_MAX = 254,    /* an e-mail address, RFC 5321 */
	ACCESS_RATE_MAX = 6000000, /* calls a minute, as rate_limits has them */
	/* Bounds of a token. */
	JWT_MAX = 8 * 1024,  /* bytes; proxies allow about as much */
	JWT_SUB_MAX = 200,   /* "oidc:" NAME ":" SUB fits a principal */
	JWT_METHOD_MAX = 16, /* of `htm`; no method of HTTP has more */
	JWT_URL_MAX = ACCESS_URL_MAX + 2048, /* of `htu`: http1 reads targets
					      * of 2 KiB */
	JWT_ID_MAX = 256,                    /* of `jti`; UUIDs have 36 */
	/* The longest life of a bound token, in s. The Worker gives 60. A
	 * longer one is remembered for longer, for each request. */
	JWT_BOUND_LIFE_MAX_S = 120,
	JWT_GROUPS_MAX = 64
};

/* CHECK_ACCESS. */
enum access_field {
	ACCESS_RESOURCE = 1, /* our https URL, path /mcp; absent: no issuers */
	ACCESS_ISSUER = 2,   /* record of enum issuer_field */
	ACCESS_RULE = 3,     /* record of enum rule_field */
	ACCESS_SET = 4,      /* record of enum set_field */
	ACCESS_ENDPOINT = 5, /* record: endpoint_fields.h */
	ACCESS_TELEMETRY = 20, /* record of telemetry_fields.h; or absent */
	ACCESS_PANEL = 21,     /* text: the panel's URL; or absent */
	ACCESS_NOTIFY = 22     /* record of notify_fields.h */
};

enum issuer_field {
	ISSUER_NAME = 1,
	ISSUER_URL = 2,        /* compared byte by byte with `iss` */
	ISSUER_AUDIENCE = 3,   /* one each; at least one */
	ISSUER_ALGORITHM = 4,  /* u8 enum jwt_algorithm, one each */
	ISSUER_VIA = 5,        /* u8 enum credential_via */
	ISSUER_LISTENERS = 6,  /* u8, 1 << enum listener */
	ISSUER_LEEWAY_S = 7,   /* u64, 0 to 300 */
	ISSUER_MAX_AGE_S = 8,  /* u64, 60 to 86400: since iat; 0: not asked */
	ISSUER_TYPE = 9,       /* accepted `typ`, lower case, one each */
	ISSUER_EMAIL = 10,     /* u8: 1 every `email` counts, the issuer
				* vouches for it; 0 only with email_verified */
	ISSUER_CLIENT = 11,    /* accepted azp or client_id; none: any */
	ISSUER_SCOPES = 12,    /* u8: 1 the token's scopes narrow the set */
	ISSUER_ID_TOKENS = 13, /* u8: 1 ID tokens are accepted, too */
	ISSUER_KEY = 14,       /* record of enum key_field */
	ISSUER_BOUND = 15,     /* u8: 1 each token is bound to one request */
	/* A further audience, which is the name of an endpoint after the
	 * resource's URL and a slash: JWT_ENDPOINT says if it is the one.
	 * admind adds these. */
	ISSUER_ENDPOINT = 16,
	/* Only if the keys are fetched. Such a record has no ISSUER_KEY in the
	 * document; admind adds those that were fetched. */
	ISSUER_KEYS_URL = 20,  /* https URL of the keys, or the issuer */
	ISSUER_DISCOVERY = 21, /* u8: 1 the URL is the issuer's */
	ISSUER_KEYS_HOST = 22  /* a further host, as the document has it */
};

/* CHECK_KEYS: these, and ISSUER_KEY for each usable key. */
enum keys_field {
	KEYS_MAX_AGE_S = 1 /* u64: as its server says, without bounds */
};

enum key_field {
	KEY_ID = 1,        /* `kid`; absent: none */
	KEY_ALGORITHM = 2, /* u8 enum jwt_algorithm, if the key names one */
	KEY_SPKI = 3       /* DER SubjectPublicKeyInfo (RFC 5280 4.1.2.7) */
};

enum jwt_algorithm { JWT_RS256 = 1, JWT_PS256, JWT_ES256, JWT_EDDSA };

enum rule_field {
	RULE_ISSUER = 1, /* an issuer's name */
	RULE_CLAIM = 2,  /* u8 enum rule_claim */
	RULE_VALUE = 3,  /* one each; none of RULE_ANY */
	RULE_SET = 4     /* a set's name */
};

enum rule_claim {
	RULE_SUB = 1,
	RULE_EMAIL,        /* without regard to ASCII case */
	RULE_EMAIL_DOMAIN, /* all after the last @, likewise */
	RULE_GROUP,
	RULE_CLIENT,
	RULE_ANY /* everyone that the issuer signs a token for */
};

enum set_field {
	SET_NAME = 1,
	SET_SCOPE = 2, /* one each, as API tokens have them */
	SET_ALLOW = 3, /* patterns, one each, as API tokens have them */
	SET_DENY = 4,
	SET_RATE = 5 /* u64, 1 to ACCESS_RATE_MAX calls a minute of each
		      * principal; absent: the usual limit */
};

/* CHECK_JWT. */
enum jwt_field {
	JWT_ISSUER = 1, /* the issuer's name in the document */
	JWT_SUB = 2,    /* 1 to JWT_SUB_MAX of the characters ! to ~ */
	JWT_EMAIL = 3,  /* if it counts by ISSUER_EMAIL */
	JWT_CLIENT = 4, /* azp, else client_id */
	JWT_GROUP = 5,  /* one each */
	JWT_SCOPES = 6, /* u8 mask of enum permit_scope; only if the issuer's
			 * ISSUER_SCOPES is 1 */
	JWT_EXP_US = 7, /* u64, Unix time in us, without leeway */
	JWT_IAT_US = 8, /* u64; absent if the token has no iat */
	JWT_BOUND = 9,  /* record of enum bound_field, if ISSUER_BOUND is 1 */
	/* The only field: the name of the issuer whose fetched keys have no
	 * such key as the token asks for. Nothing of the token was judged. */
	JWT_NO_KEY = 10,
	/* The token is for these endpoints alone; absent: for the whole. */
	JWT_ENDPOINT = 11
};

/* The request that a token is bound to (docs/decisions/0098). */
enum bound_field {
	BOUND_METHOD = 1,        /* htm, 1 to JWT_METHOD_MAX bytes */
	BOUND_URL = 2,           /* htu, 1 to JWT_URL_MAX bytes */
	BOUND_BODY = 3,          /* bsha256, 32 bytes */
	BOUND_ID = 4,            /* jti, 1 to JWT_ID_MAX bytes */
	BOUND_SESSION_EXP_US = 5 /* u64, Unix time in us; absent as the claim */
};

#endif
