/*
 * The verdicts of `remote check` in words: whether a step is right, the
 * finding, and the remedy. No I/O. Texts of answers are in `found` as they
 * came: printable ASCII (remote_read.h).
 */
#ifndef REMOTE_JUDGE_H
#define REMOTE_JUDGE_H

#include "remote.h"
#include "remote_fetch.h"

enum remote_verdict { REMOTE_RIGHT, REMOTE_WRONG, REMOTE_UNSEEN };

enum {
	REMOTE_FOUND_MAX = 1500, /* two URLs and a sentence */
	REMOTE_FIX_MAX = 1000,
	REMOTE_ENDS_SOON_S = 14 * 24 * 3600, /* renewal is due long before */
	REMOTE_LEEWAY_S = 60                 /* as issuers have by default */
};

struct remote_row {
	const char *step;
	enum remote_verdict verdict;
	char found[REMOTE_FOUND_MAX], fix[REMOTE_FIX_MAX];
};

/* The facts that a right way in agrees with. */
struct remote_way {
	enum remote_kind kind;
	const char *url, *host, *issuer;   /* issuer: may be "" */
	const char *socket;                /* of the tunnel's listener */
	char metadata[REMOTE_URL_MAX + 1]; /* its URL, as challenges name it */
	bool serves; /* an issuer of the document serves the tunnel */
	int64_t now; /* Unix time */
	uint32_t leeway_s;
	/* keys of the document; none: they are fetched by admind */
	bool own_keys;
	uint32_t nkeys;
	struct remote_key keys[REMOTE_KEYS_MAX];
};

/* Writes a row. */
void remote_judge_row(struct remote_row *, enum remote_verdict, const char *fix,
    const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* Each of these judges one answer, and fills in all of the row but `step`. */
void remote_judge_name(const struct remote_way *, const struct remote_answer *,
    struct remote_row *);
void remote_judge_certificate(const struct remote_way *,
    const struct remote_answer *, struct remote_row *);
/* path: the one of the two well-known paths that was asked. */
void remote_judge_metadata(const struct remote_way *, const char *path,
    const struct remote_answer *, struct remote_row *);
/* A POST without a credential. */
void remote_judge_challenge(const struct remote_way *,
    const struct remote_answer *, struct remote_row *);
/* A POST with an invented token. */
void remote_judge_authorization(const struct remote_way *,
    const struct remote_answer *, struct remote_row *);
/* expected: the issuer that its metadata must name. */
void remote_judge_issuer(const struct remote_way *, const char *expected,
    const struct remote_answer *, struct remote_row *);
void remote_judge_keys(const struct remote_way *, const struct remote_answer *,
    struct remote_row *);
/* date: of an answer; 0: none had one. */
void remote_judge_clock(
    const struct remote_way *, int64_t date, struct remote_row *);
/* The metadata, asked at the tunnel's socket itself. */
void remote_judge_listener(const struct remote_way *,
    const struct remote_answer *, struct remote_row *);
/* initialize, and tools/list (NULL: it was not asked). */
void remote_judge_call(const struct remote_answer *initialize,
    const struct remote_answer *tools, struct remote_row *);

#endif
