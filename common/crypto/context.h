/*
 * Execution contexts: the things that one call needs, sealed by the vault for
 * one epoch (one process of sandboxd) and used once.
 *
 * Sealed form: {u8 format 1, 12-byte nonce, ciphertext, 16-byte tag},
 * AES-256-GCM under the epoch's context key, nonce = u32 0 || u64 counter. AAD:
 * "mcpbox context 1" NUL, epoch (16), execution id (16), u8 listener, u8 kind.
 * Plaintext: a TLV list of enum context_tag.
 */
#ifndef CONTEXT_H
#define CONTEXT_H

#include "buf.h"
#include "bytes.h"
#include "crypto.h"
#include "err.h"

/* Tags of SEAL_CONTEXT's material (admind to vault) and of the plaintext (vault
 * to sandboxd). TOOL, TEST, INSPECT, GRANTS, KEYS and TELEMETRY are kinds of
 * context. */
enum context_tag {
	CTX_PREIMAGE = 1,     /* material only: version pre-image (TOOL) */
	CTX_APPROVAL = 2,     /* material only: the vault's seal (TOOL) */
	CTX_SECRET_NAME = 3,  /* material and plaintext: before each value */
	CTX_SECRET_VALUE = 4, /* material: stored form; plaintext: the value */
	CTX_CODE = 5,         /* Python source. In the material only for INSPECT
			       * and TEST; for TOOL the vault takes it from the
			       * pre-image */
	CTX_NAME = 6,         /* exposed name; comes from where CTX_CODE does */
	CTX_ARGS_SHA256 = 7,  /* 32 bytes: digest of the arguments' bytes */
	CTX_TIMEOUT_MS = 8,   /* u64: wall-clock limit of the run */
	CTX_MEMORY = 9,       /* u64 bytes; absent: the sandbox's default */
	CTX_PROCESSES = 10,   /* u64; absent: the sandbox's default */
	CTX_TMP = 11,         /* u64 bytes; absent: the sandbox's default */
	CTX_RESULT = 12,      /* u64 bytes; absent: the sandbox's default */
	CTX_HOLD_UNTIL_MS = 13, /* u64: sandboxd drops an unused context after
				 * holding it for this many ms */
	CTX_INTENT = 14,       /* bytes: admind's TLV list of enum intent_tag */
	CTX_VERSION_HASH = 15, /* plaintext only: 32 bytes, from the vault */
	CTX_CPU_MS = 16,       /* u64: CPU time in ms. If this tag or one of the
				* next five is absent, the sandbox's default
				* holds */
	CTX_FILES = 17,        /* u64: open descriptors of a process */
	CTX_FILE_BYTES = 18,   /* u64 bytes: the longest file that the call may
				* write */
	CTX_STDOUT = 19,       /* u64 bytes: standard output kept */
	CTX_LOG_RATE = 20,     /* u64: log messages a second */
	CTX_PROGRESS_RATE = 21, /* u64: progress messages a second */
	CTX_MODULE = 22,        /* 32 bytes: digest of an entry of the module
				 * store; any number of them, ascending, no
				 * duplicates. For TOOL this tag and the next
				 * four come from the approved pre-image only */
	CTX_KIND = 23,          /* text: "command"; absent: "python" */
	CTX_SPEC = 24,          /* the command's JSON: argv, stdin, env */
	CTX_EXECUTABLE = 25,    /* text: absolute path in the toolbox */
	CTX_EXECUTABLE_DIGEST = 26, /* 32 bytes: SHA-256 of the executable's
				     * bytes; absent for INSPECT, which finds
				     * it */
	CTX_METHOD = 27,            /* plaintext only, by the vault from the
				     * pre-image's object: u64 enum call_method;
				     * absent: CALL_TOOL */
	CTX_OUTPUT_SCHEMA = 28, /* plaintext, made by the vault: the version's
				 * outputSchema, if it has one; for TEST in the
				 * material, too */
	CTX_CALL_APPROVAL = 29, /* material only: the vault's seal of a person's
				 * yes to this one call (versions with CONFIRM)
				 */
	CTX_TASK = 30, /* u64 1: the call is a task: it outlives its sender's
			* connection, and its result is recorded whole */
	CTX_GRANT_SEAL = 31,     /* material only, for TOOL and GRANTS: seal
				  * of a network grant (0037). The grant's
				  * pre-image follows. Any number of pairs */
	CTX_GRANT_PREIMAGE = 32, /* material only */
	CTX_REQUIRE = 33, /* plaintext only: a host that the version declares,
			   * from the pre-image; text as in
			   * common/request/netgrant.h; any number of them */
	CTX_GRANT = 34,   /* plaintext only: a host that the version's server is
			   * granted, from sealed grants of that server; text
			   * as for CTX_REQUIRE; any number of them */
	CTX_SERVER_ID = 35,     /* plaintext only, from the pre-image: uuid; for
				 * GRANTS in the material, too */
	CTX_CONNECTIONS = 36,   /* u64: connections of the call. If this tag or
				 * one of the next two is absent, the sandbox's
				 * default holds */
	CTX_NETWORK_BYTES = 37, /* u64 bytes, both directions together */
	CTX_NETWORK_RATE = 38,  /* u64 bytes a minute */
	/* The next four are material only, for KEYS, TELEMETRY and, but for the
	 * last, NOTIFY. From these the vault makes CTX_SPEC and the hosts. */
	CTX_ACCESS_SEAL = 39,     /* seal of the access document */
	CTX_ACCESS_DOCUMENT = 40, /* it, as JSON */
	CTX_KEYS_URL = 41,        /* the issuer, the address of its keys, the
				   * collector, or the target of notifications:
				   * text of the document */
	CTX_KEYS_HOST =
	    42, /* a further host: text of the document; any number */
	/* The number of the next tag. A new tag is written above this line. */
	CTX_TAG_NEXT,
	CTX_TAG_MAX = CTX_TAG_NEXT - 1
};

/* Tags of the intent's TLV list. sandboxd gives the list back with the call's
 * record, and the list is enough for the whole intent row. */
enum intent_tag {
	INTENT_VERSION_ID = 1, /* uuid, 16 bytes; absent for inspections */
	INTENT_VERSION_HASH = 2,
	INTENT_TOOL = 3, /* exposed name */
	INTENT_PRINCIPAL = 4,
	INTENT_LISTENER = 5, /* u64 */
	INTENT_ARGS_SHA256 = 6,
	INTENT_CREATED_US = 7,  /* u64 Unix time in us */
	INTENT_DEADLINE_US = 8, /* u64 Unix time in us */
	INTENT_KIND = 9,        /* u64 enum context_kind */
	INTENT_ARGUMENTS = 10,  /* the first 4 KiB of the arguments, as text */
	INTENT_TASK = 11,       /* u64 1: a task depends on this call; absent:
				 * no task */
	/* The number of the next tag. A new tag is written above this line. */
	INTENT_TAG_NEXT,
	INTENT_TAG_MAX = INTENT_TAG_NEXT - 1
};

struct context_binding {
	struct ipc_id epoch, execution;
	uint8_t listener, kind;
};

/* Parses the sealed form: no key needed, no I/O. 0 or -1. Fuzzed. */
int context_split(const uint8_t *, size_t, const uint8_t **nonce,
    const uint8_t **ct, size_t *ctlen, struct err *);
/* Seals a context. Replaces the content of out (initialised, its max kept); on
 * failure out is untouched. counter must never repeat under one key. 0 or
 * -1. */
int context_seal(const uint8_t key[KEY_LEN], uint64_t counter,
    const struct context_binding *, const void *plain, size_t n,
    struct buf *out, struct err *);
/* Opens a context; out (initialised) receives the plaintext TLV (secrets:
 * buf_free wipes). The binding comes from the opener's own knowledge, never
 * from the sender's words about the context. 0; -1 with FAILURE_FORBIDDEN if it
 * does not verify. */
int context_open(const uint8_t key[KEY_LEN], const struct context_binding *,
    const uint8_t *sealed, size_t n, struct buf *out, struct err *);

#endif
