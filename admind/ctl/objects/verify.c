/*
 * audit verify: checks that the audit log was not changed.
 *
 * Neither the database nor admind is trusted. Each row's hash is computed here
 * from the row's own bytes and the hash of the row before. The first row
 * follows 32 zero bytes, and the hash of the last row is the head. That alone
 * proves only that the hashes fit the rows. So the chain is compared with
 * things that the database and admind can't compute: signatures of heads, which
 * the vault made and checks; the newest head in the vault's memory, which no
 * old backup has; and, with --journal, the lines that the vault and admind
 * logged when they signed and stored each head (decision 0040).
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "audit_row.h"
#include "calls.h"
#include "ids.h"
#include "jsonw.h"
#include "objects.h"
#include "terminal.h"

enum {
	PROBLEMS_SHOWN = 20,
	/* Most heads from the journal: one per minute for eight years. */
	HEADS_MAX = 4 * 1024 * 1024,
	LINE_LEN_MAX = 16 * 1024
};

/* A head that is known from elsewhere than the database. */
struct known {
	uint64_t seq;
	struct ipc_hash head, signature;
	enum { VAULT_MEMORY, LINE_SIGNED, LINE_STORED } from;
};

struct verify {
	const struct ctl *c;
	int admind, vault;
	struct known *known; /* in order of seq */
	size_t nknown, room, next;
	/* The end of the chain that was read so far. */
	uint64_t seq, at_ms, anchored;
	struct ipc_hash hash;
	/* Anchors whose signatures the vault has yet to check. */
	uint8_t batch[AUDIT_CHECK_MAX * AUDIT_ANCHOR_LEN];
	bool of_journal[AUDIT_CHECK_MAX];
	size_t nbatch;
	uint64_t anchors, lines, foreign, problems;
	struct jsonw json;
	struct buf out;
};

static void problem(struct verify *, uint64_t seq, const char *kind,
    const char *fmt, ...) __attribute__((format(printf, 4, 5)));

static void
problem(struct verify *v, uint64_t seq, const char *kind, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (v->problems++ >= PROBLEMS_SHOWN)
		return;
	if (!v->c->json) {
		printf("row %llu: %s\n", (unsigned long long)seq, text);
		return;
	}
	jsonw_obj(&v->json);
	jsonw_name(&v->json, "seq");
	jsonw_u64(&v->json, seq);
	jsonw_kv_str(&v->json, "kind", kind);
	jsonw_kv_str(&v->json, "message", text);
	jsonw_obj_end(&v->json);
}

/* ---- heads known from elsewhere ---- */

static int
add_known(struct verify *v, const struct known *k)
{
	struct known *p;

	if (v->nknown == v->room) {
		if (v->room >= HEADS_MAX ||
		    (p = reallocarray(
			 v->known, v->room * 2 + 256, sizeof(*p))) == NULL) {
			fputs("mcpboxctl: the journal is too long\n", stderr);
			return -1;
		}
		v->known = p;
		v->room = v->room * 2 + 256;
	}
	v->known[v->nknown++] = *k;
	return 0;
}

/* Finds a word such as seq in "seq N" or, if *stored is set, in "seq=N".
 * Returns the text after it, or NULL. Before the word is a space, or the quote
 * that begins a JSON line's message. */
static const char *
member(const char *line, const char *word, bool *stored)
{
	size_t n = strlen(word);

	for (const char *p = strstr(line, word); p != NULL;
	    p = strstr(p + 1, word))
		if (p != line && (p[-1] == ' ' || p[-1] == '"') &&
		    (p[n] == ' ' || p[n] == '=')) {
			*stored = p[n] == '=';
			return p + n + 1;
		}
	return NULL;
}

/* Parses a log line of the vault ("audit_anchor: seq N head H signature S") or
 * of admind ("seq=N ..."), with any text around it. 1, or 0 for another
 * line. */
static int
parse_line(const char *line, struct known *k)
{
	const char *p = strstr(line, "audit_anchor"), *seq, *head, *sig;
	bool stored = false;
	char *end;

	if (p == NULL || (seq = member(p, "seq", &stored)) == NULL ||
	    (head = member(p, "head", &stored)) == NULL ||
	    (sig = member(p, "signature", &stored)) == NULL)
		return 0;
	errno = 0;
	k->seq = strtoull(seq, &end, 10);
	if (errno != 0 || *seq < '0' || *seq > '9' || *end != ' ' ||
	    strlen(head) < HEX32_LEN || strlen(sig) < HEX32_LEN ||
	    hex_decode(head, HEX32_LEN, k->head.b) == -1 ||
	    hex_decode(sig, HEX32_LEN, k->signature.b) == -1)
		return 0;
	k->from = stored ? LINE_STORED : LINE_SIGNED;
	return 1;
}

static int
read_journal(struct verify *v, const char *path)
{
	bool standard = strcmp(path, "-") == 0;
	FILE *f = standard ? stdin : fopen(path, "re");
	char *line = NULL;
	size_t room = 0;
	struct known k;
	int rc = 0;

	if (f == NULL) {
		fprintf(stderr, "mcpboxctl: %s: %s\n", path, strerror(errno));
		return -1;
	}
	while (rc == 0 && getline(&line, &room, f) != -1) {
		if (strlen(line) > LINE_LEN_MAX || parse_line(line, &k) == 0)
			continue;
		v->lines++;
		rc = add_known(v, &k);
	}
	if (ferror(f)) {
		fprintf(stderr, "mcpboxctl: %s: %s\n", path, strerror(errno));
		rc = -1;
	}
	free(line);
	if (!standard)
		fclose(f);
	if (rc == 0 && v->lines == 0) {
		fprintf(stderr,
		    "mcpboxctl: %s holds no line of the audit log's anchors\n",
		    path);
		rc = -1;
	}
	return rc;
}

static int
by_seq(const void *a, const void *b)
{
	uint64_t x = ((const struct known *)a)->seq,
		 y = ((const struct known *)b)->seq;

	return x < y ? -1 : x > y;
}

/* ---- the vault ---- */

/* Asks the vault whether it signed the anchors of the batch. If now is not
 * NULL, *now gets the newest head that the vault remembers. */
static enum ctl_status
flush(struct verify *v, struct known *now)
{
	struct ipc_audit_check m = {
	    .anchors = ipc_bytes(v->batch, v->nbatch * AUDIT_ANCHOR_LEN)};
	struct ipc_audit_checked a;
	enum ctl_status status;
	struct ipc_frame f;
	struct err err;

	status = calls_on(v->vault, "admind-vault", IPC_ROLE_VAULT,
	    IPC_AUDIT_CHECK, &m, IPC_AUDIT_CHECKED, &f);
	if (status != CTL_DONE)
		return status;
	if (ipc_decode(&f, &a, &err) == -1 || a.valid.n != v->nbatch) {
		fputs("mcpboxctl: the vault's answer makes no sense\n", stderr);
		ipc_frame_free(&f);
		return CTL_REFUSED;
	}
	for (size_t i = 0; i < v->nbatch; i++) {
		const uint8_t *p = v->batch + i * AUDIT_ANCHOR_LEN;
		uint64_t seq = 0;

		for (int k = 0; k < 8; k++)
			seq = seq << 8 | p[k];
		if (a.valid.p[i] == 1)
			continue;
		if (v->of_journal[i])
			v->foreign++; /* signed before the key was changed */
		else
			problem(v, seq, "anchor_forged",
			    "its anchor was not signed by this vault");
	}
	if (now != NULL) {
		now->seq = a.seq;
		now->head = a.head;
		now->from = VAULT_MEMORY;
	}
	v->nbatch = 0;
	ipc_frame_free(&f);
	return CTL_DONE;
}

static enum ctl_status
check_later(struct verify *v, uint64_t seq, const struct ipc_hash *head,
    const struct ipc_hash *signature, bool journal)
{
	uint8_t *p = v->batch + v->nbatch * AUDIT_ANCHOR_LEN;

	for (int i = 0; i < 8; i++)
		p[i] = (uint8_t)(seq >> (56 - 8 * i));
	memcpy(p + 8, head->b, 32);
	memcpy(p + 40, signature->b, 32);
	v->of_journal[v->nbatch] = journal;
	return ++v->nbatch < AUDIT_CHECK_MAX ? CTL_DONE : flush(v, NULL);
}

/* ---- the chain ---- */

/* Compares a row with its heads that are known from elsewhere than the
 * database. */
static enum ctl_status
compare(struct verify *v, const struct audit_row *r)
{
	enum ctl_status status = CTL_DONE;

	while (status == CTL_DONE && v->next < v->nknown &&
	    v->known[v->next].seq <= r->seq) {
		const struct known *k = &v->known[v->next++];
		bool memory = k->from == VAULT_MEMORY;

		if (k->seq != r->seq)
			continue; /* check_row() reported that its row is
				   * missing */
		if (memcmp(k->head.b, r->computed.b, 32) != 0)
			problem(v, r->seq, "rewritten",
			    "it, or a row before it, is not the one that %s",
			    memory ? "the vault signed"
				   : "the journal says was signed");
		if (!r->anchored && k->from == LINE_STORED)
			problem(v, r->seq, "anchor_missing",
			    "its anchor was stored, says the journal, and is "
			    "gone");
		if (!memory)
			status = check_later(
			    v, k->seq, &k->head, &k->signature, true);
	}
	return status;
}

static enum ctl_status
check_row(struct verify *v, const struct audit_row *r)
{
	if (r->seq != v->seq + 1)
		problem(v, v->seq + 1, "missing",
		    "missing: the row after %llu is %llu",
		    (unsigned long long)v->seq, (unsigned long long)r->seq);
	else if (memcmp(r->prev.b, v->hash.b, 32) != 0)
		problem(v, r->seq, "broken",
		    "it does not follow the row before it");
	if (memcmp(r->computed.b, r->hash.b, 32) != 0)
		problem(v, r->seq, "changed",
		    "its content is not what its hash says");
	v->seq = r->seq;
	v->at_ms = r->at_ms;
	v->hash = r->computed;
	if (r->anchored) {
		v->anchors++;
		v->anchored = r->seq;
		if (memcmp(r->anchor_head.b, r->computed.b, 32) != 0)
			problem(v, r->seq, "rewritten",
			    "it, or a row before it, is not the one whose "
			    "anchor is stored");
		if (check_later(v, r->seq, &r->anchor_head,
			&r->anchor_signature, false) != CTL_DONE)
			return CTL_REFUSED;
	}
	return compare(v, r);
}

/* Reads a page of rows. *more: further rows may follow. *anchored: the newest
 * row that has an anchor, as admind reports it. */
static enum ctl_status
read_page(struct verify *v, bool *more, uint64_t *anchored)
{
	struct ipc_audit_read m = {.after = v->seq, .limit = AUDIT_ROWS_MAX};
	enum ctl_status status;
	struct ipc_audit_rows a;
	struct audit_row r;
	struct ipc_frame f;
	struct err err;
	int rc = 0;

	status = calls_on(v->admind, "admind", IPC_ROLE_ADMIND, IPC_AUDIT_READ,
	    &m, IPC_AUDIT_ROWS, &f);
	if (status != CTL_DONE)
		return status;
	if (ipc_decode(&f, &a, &err) == -1) {
		fprintf(stderr, "mcpboxctl: %s\n", err.text);
		ipc_frame_free(&f);
		return CTL_REFUSED;
	}
	while (status == CTL_DONE && (rc = audit_row_next(&a.rows, &r)) == 1)
		status = check_row(v, &r);
	if (rc == -1)
		problem(v, v->seq + 1, "unreadable",
		    "cannot be read; nothing behind it was looked at");
	*more = rc != -1 && a.count > 0;
	*anchored = a.anchored;
	if (!*more && rc != -1) {
		if (a.seq != v->seq)
			problem(v, v->seq, "head",
			    "the last one there is, but the head says %llu",
			    (unsigned long long)a.seq);
		else if (memcmp(a.head.b, v->hash.b, 32) != 0)
			problem(v, v->seq, "head",
			    "the head has another hash than it");
	}
	ipc_frame_free(&f);
	return status;
}

/* ---- the verdict ---- */

/* Compares the end of the chain with known heads of later rows. */
static void
compare_end(struct verify *v, uint64_t anchored, const struct known *memory)
{
	const struct known *last =
	    v->nknown > 0 ? &v->known[v->nknown - 1] : NULL;

	if (last != NULL && last->seq > v->seq)
		problem(v, v->seq, "truncated",
		    "the chain ends here, but row %llu was signed, says %s: "
		    "rows were cut off, or an old copy was put back",
		    (unsigned long long)last->seq,
		    last->from == VAULT_MEMORY ? "the vault" : "the journal");
	if (anchored > v->seq)
		problem(v, v->seq, "truncated",
		    "the chain ends here, but row %llu has an anchor",
		    (unsigned long long)anchored);
	if (memory->seq > v->anchored && memory->seq <= v->seq)
		problem(v, memory->seq, "anchor_missing",
		    "the vault signed it, but no anchor from it on is stored");
}

static void
put_number(struct verify *v, const char *name, uint64_t n)
{
	jsonw_name(&v->json, name);
	jsonw_u64(&v->json, n);
}

static void
tell(struct verify *v)
{
	char when[TIME_TEXT_LEN + 1];
	uint64_t behind = v->seq - v->anchored;

	time_text(v->at_ms * 1000, when);
	if (v->c->json) {
		jsonw_arr_end(&v->json);
		jsonw_kv_bool(&v->json, "ok", v->problems == 0);
		put_number(v, "problem_count", v->problems);
		put_number(v, "rows", v->seq);
		put_number(v, "anchors", v->anchors);
		put_number(v, "anchored_seq", v->anchored);
		put_number(v, "journal_lines", v->lines);
		put_number(v, "journal_lines_of_older_keys", v->foreign);
		jsonw_obj_end(&v->json);
		buf_putc(&v->out, '\n');
		terminal_out(&v->out);
		return;
	}
	if (v->problems > PROBLEMS_SHOWN)
		printf("... and %llu more\n",
		    (unsigned long long)(v->problems - PROBLEMS_SHOWN));
	printf("%s: %llu rows, the last of %s; %llu anchors, the newest of row "
	       "%llu\n",
	    v->problems == 0 ? "the chain holds" : "THE CHAIN DOES NOT HOLD",
	    (unsigned long long)v->seq, v->seq > 0 ? when : "-",
	    (unsigned long long)v->anchors, (unsigned long long)v->anchored);
	if (behind > 0)
		printf("%llu rows behind it are not signed yet\n",
		    (unsigned long long)behind);
	if (v->c->journal == NULL)
		puts("not compared with the journal: see --journal");
	else
		printf(
		    "%llu lines of the journal agree or are told above; %llu "
		    "of them signed by a key that is no longer valid\n",
		    (unsigned long long)v->lines,
		    (unsigned long long)v->foreign);
}

/* Gives admind the result, for the panel and the status. The verdict was
 * printed and holds without that, so a failure is only told. */
static void
keep(struct verify *v)
{
	struct ipc_audit_verified m = {.rows = v->seq,
	    .anchors = v->anchors,
	    .anchored = v->anchored,
	    .problems = v->problems,
	    .lines = v->lines};
	struct ipc_frame f;

	if (calls_on(v->admind, "admind", IPC_ROLE_ADMIND, IPC_AUDIT_VERIFIED,
		&m, IPC_OK, &f) == CTL_DONE)
		ipc_frame_free(&f);
	else
		fputs("mcpboxctl: the panel and the status do not show this "
		      "result\n",
		    stderr);
}

static enum ctl_status
run(struct verify *v)
{
	struct known memory = {0};
	enum ctl_status status;
	uint64_t anchored = 0;
	bool more = true;

	/* Get the vault's newest head before the rows are read, so that its row
	 * must be among them. */
	if ((status = flush(v, &memory)) != CTL_DONE)
		return status;
	if (v->c->journal != NULL && read_journal(v, v->c->journal) == -1)
		return CTL_USAGE;
	if (memory.seq > 0 && add_known(v, &memory) == -1)
		return CTL_REFUSED;
	if (v->nknown > 0)
		qsort(v->known, v->nknown, sizeof(*v->known), by_seq);
	while (status == CTL_DONE && more)
		status = read_page(v, &more, &anchored);
	if (status == CTL_DONE && v->nbatch > 0)
		status = flush(v, NULL);
	if (status != CTL_DONE)
		return status;
	compare_end(v, anchored, &memory);
	tell(v);
	keep(v);
	return v->problems == 0 ? CTL_DONE : CTL_REFUSED;
}

enum ctl_status
verify_run(const struct ctl *c)
{
	enum ctl_status status = CTL_UNREACHABLE;
	struct verify *v = calloc(1, sizeof(*v));

	if (v == NULL) {
		fputs("mcpboxctl: out of memory\n", stderr);
		return CTL_REFUSED;
	}
	v->c = c;
	v->vault = -1;
	buf_init(&v->out, 64 * 1024);
	jsonw_open(&v->json, &v->out);
	jsonw_obj(&v->json);
	jsonw_name(&v->json, "problems");
	jsonw_arr(&v->json);
	v->admind = calls_open(c, "admind", IPC_ROLE_ADMIND);
	if (v->admind != -1)
		v->vault = calls_open(c, "admind-vault", IPC_ROLE_VAULT);
	if (v->vault != -1)
		status = run(v);
	if (v->admind != -1)
		close(v->admind);
	if (v->vault != -1)
		close(v->vault);
	buf_free(&v->out);
	free(v->known);
	free(v);
	return status;
}
