#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <json-c/json.h>

#include "approvals.h"
#include "call.h"
#include "callreq.h"
#include "calls.h"
#include "grantreq.h"
#include "json.h"
#include "jsonw.h"
#include "prefix.h"
#include "tables.h"
#include "terminal.h"
#include "version_beside.h"
#include "version_diff.h"

/*
 * approvals diff | revoke | bulk | comments | comment.
 */

enum { DIFF_MAX = 8 * IPC_BLOB_MAX, LINE_MAX_BYTES = 512 };

enum ctl_status
review_verify(
    const struct ctl *c, const struct content *base, struct ipc_frame *says)
{
	struct ipc_seal_verify m = {0};
	enum ctl_status status;
	struct buf b;

	buf_init(&b, IPC_BLOB_MAX);
	buf_put(&b, base->m.seal.p, base->m.seal.n);
	buf_put(&b, base->m.preimage.p, base->m.preimage.n);
	m.seal_len = (uint32_t)base->m.seal.n;
	m.seal_preimage = ipc_bytes(b.p, b.len);
	if (b.failed) {
		fputs("mcpboxctl: out of memory\n", stderr);
		buf_free(&b);
		return CTL_REFUSED;
	}
	status = calls_ask(c, "admind-vault", IPC_ROLE_VAULT, IPC_SEAL_VERIFY,
	    &m, IPC_SEAL_SAYS, says);
	buf_free(&b);
	return status;
}

/* Asks the vault to verify the base of a comparison. admind sent the base, and
 * could have made up an "approved version" that hides a change. */
static enum ctl_status
verified(const struct ctl *c, const struct content *base)
{
	struct ipc_frame f;
	enum ctl_status status = review_verify(c, base, &f);

	if (status == CTL_DONE)
		ipc_frame_free(&f);
	else if (status == CTL_REFUSED)
		fputs("mcpboxctl: what is said to be the approved version "
		      "bears no seal of the vault: read the whole content\n",
		    stderr);
	return status;
}

static const char *
json_text(struct json_object *v)
{
	return json_object_is_type(v, json_type_string)
	    ? json_object_get_string(v)
	    : json_object_to_json_string_ext(v, JSON_C_TO_STRING_PLAIN);
}

/* Returns a member's text; "" if there is none. */
static const char *
text_of(struct json_object *o, const char *name)
{
	struct json_object *v;

	return json_object_object_get_ex(o, name, &v) && v != NULL
	    ? json_text(v)
	    : "";
}

static void
put_name(struct buf *b, struct json_object *o)
{
	const char *s = text_of(o, "field");

	show_text(b, s, strlen(s), SHOW_CODE);
}

/* Appends the value of a field before or after the change. If the value is
 * missing, the row with the field's name says "absent". No value can imitate
 * that, because the rows of a value begin with line numbers. */
static void
put_side(struct buf *b, struct json_object *o, const char *side)
{
	struct json_object *v;

	put_name(b, o);
	buf_putf(b, ", %s", side);
	if (!json_object_object_get_ex(o, side, &v) || v == NULL) {
		buf_puts(b, ": absent\n");
		return;
	}
	buf_putf(b, " (%zu bytes):\n", strlen(json_text(v)));
	show_block(b, json_text(v), strlen(json_text(v)), terminal_width());
}

/*
 * Appends one gain (a right that the new version has and the old one lacks), as
 * "  hosts api.example.org" or "  limits cpu_ms: 1000, then 2000". Only kinds
 * in our own list are shown by their names. admind makes the difference of
 * versions that are not in review, and could give a kind the name of another
 * row.
 */
static void
put_gain(struct buf *b, const char *kind, struct json_object *v)
{
	static const char *const kinds[] = {
	    "secrets", "modules", "hosts", "client_capabilities", "limits"};
	const char *name = "  other", *limit = text_of(v, "limit");
	const char *before = text_of(v, "before"), *after = text_of(v, "after");
	char own[32];
	struct buf line;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strcmp(kind, kinds[i]) == 0) {
			snprintf(own, sizeof(own), "  %s", kinds[i]);
			name = own;
		}
	buf_init(&line, IPC_BLOB_MAX);
	if (*limit != '\0' && json_object_object_length(v) == 3)
		buf_putf(&line, "%s: %s, then %s", limit,
		    *before != '\0' ? before : "the default",
		    *after != '\0' ? after : "the default");
	else
		buf_puts(&line, json_text(v));
	b->failed |= line.failed;
	show_value(b, name, line.p, line.len, terminal_width());
	buf_free(&line);
}

/* Returns the member of this name, or NULL if it is absent or not of `type`. */
static struct json_object *
member(struct json_object *o, const char *name, enum json_type type)
{
	struct json_object *v;

	return json_object_object_get_ex(o, name, &v) &&
		json_object_is_type(v, type)
	    ? v
	    : NULL;
}

/* Appends a difference for people: gains first, then fields, then code. admind
 * makes the object for versions that are not in review, so every part of it is
 * checked or escaped. */
static void
put_diff(struct buf *b, struct json_object *o)
{
	struct json_object *list, *v, *gains;
	uint8_t hash[32];
	const char *s;

	s = text_of(o, "base");
	if (s[0] == '\0')
		s = "nothing: no version was approved before";
	if (strlen(s) == HEX32_LEN && hex_decode(s, HEX32_LEN, hash) == 0)
		/* the hash in one row, as in `show` and `approve --hash` */
		buf_putf(b, "%-18s %s\n", "compared with", s);
	else
		show_value(b, "compared with", s, strlen(s), terminal_width());
	buf_puts(b, "gains\n");
	if ((gains = member(o, "gains", json_type_object)) != NULL) {
		json_object_object_foreach(gains, name, what)
		{
			if (!json_object_is_type(what, json_type_array) ||
			    json_object_array_length(what) == 0)
				continue;
			for (size_t i = 0; i < json_object_array_length(what);
			    i++)
				put_gain(b, name,
				    json_object_array_get_idx(what, i));
		}
	}
	if ((list = member(o, "fields", json_type_array)) != NULL)
		for (size_t i = 0; i < json_object_array_length(list); i++) {
			v = json_object_array_get_idx(list, i);
			put_side(b, v, "before");
			put_side(b, v, "after");
		}
	if ((list = member(o, "diff", json_type_array)) != NULL)
		for (size_t i = 0; i < json_object_array_length(list); i++) {
			v = json_object_array_get_idx(list, i);
			s = text_of(v, "unified");
			put_name(b, v);
			buf_puts(b, ":\n");
			show_diff(b, s, strlen(s), terminal_width());
		}
}

enum ctl_status
review_print(const struct ctl *c, const struct buf *json)
{
	enum ctl_status status = CTL_DONE;
	struct json_object *o;
	struct buf b;

	if (c->json)
		return tables_json(json->p, json->len);
	if (json_parse(json->p, json->len, &o, NULL) == -1)
		return CTL_REFUSED;
	buf_init(&b, DIFF_MAX);
	put_diff(&b, o);
	if (b.failed) {
		fputs("mcpboxctl: too large to show\n", stderr);
		status = CTL_REFUSED;
	} else {
		terminal_out(&b);
	}
	buf_free(&b);
	json_object_put(o);
	return status;
}

static bool
is_version(const struct content *c)
{
	return !grantreq_is(c->m.preimage.p, c->m.preimage.n) &&
	    !callreq_is(c->m.preimage.p, c->m.preimage.n);
}

/* Prints the notes that `approvals show` prints beside the content. */
static void
put_beside(const struct content *now)
{
	struct buf b;

	buf_init(&b, IPC_BLOB_MAX);
	approvals_beside(now, &b);
	if (!b.failed)
		terminal_out(&b);
	buf_free(&b);
}

enum ctl_status
review_diff(const struct ctl *c, const struct ipc_id *id,
    const struct content *now, bool quiet)
{
	enum ctl_status status;
	struct content base;
	struct buf json;
	struct err err;

	if (!is_version(now))
		return CTL_DONE;
	if ((status = approvals_fetch(c, id, true, &base)) != CTL_DONE)
		return status;
	buf_init(&json, DIFF_MAX);
	if (base.m.preimage.n > 0)
		status = verified(c, &base);
	else if (quiet)
		goto out;
	if (status == CTL_DONE &&
	    version_diff_json(base.m.preimage.n > 0 ? base.m.preimage.p : NULL,
		base.m.preimage.n, now->m.preimage.p, now->m.preimage.n, &json,
		&err) == -1) {
		fprintf(stderr, "mcpboxctl: %s\n", err.text);
		status = CTL_REFUSED;
	}
	if (status == CTL_DONE && c->json)
		version_beside(&json, now->m.preimage.p, now->m.preimage.n,
		    now->m.circumstances);
	if (status == CTL_DONE && !c->json && !quiet)
		put_beside(now);
	if (status == CTL_DONE)
		status = review_print(c, &json);
out:
	buf_free(&json);
	approvals_free(&base);
	return status;
}

static enum ctl_status
diff(const struct ctl *c, const struct ipc_id *id)
{
	enum ctl_status status;
	struct content now;

	if ((status = approvals_fetch(c, id, false, &now)) != CTL_DONE)
		return status;
	if (is_version(&now)) {
		status = review_diff(c, id, &now, false);
	} else {
		fputs("mcpboxctl: only versions are compared: see approvals "
		      "show\n",
		    stderr);
		status = CTL_REFUSED;
	}
	approvals_free(&now);
	return status;
}

/* ---- bulk ---- */

/* Splits "ID HASH" (in place; the id may be its first digits). A rejection may
 * leave the hash out. */
static int
read_line(char *line, bool approve, struct ipc_hash *hash)
{
	size_t n = strcspn(line, " \t");
	const char *p = line + n + strspn(line + n, " \t");

	if (*p == '\0' ? approve
		       : strlen(p) != HEX32_LEN ||
		    hex_decode(p, HEX32_LEN, hash->b) == -1)
		return -1;
	line[n] = '\0';
	return 0;
}

enum ctl_status
review_decide(const struct ctl *c, int fd, bool approve,
    const struct ipc_id *id, const struct ipc_hash *hash, const char *reason,
    const char **state)
{
	struct ipc_approve yes = {.approval = *id, .reviewed = *hash};
	struct ipc_reject no = {.approval = *id, .reason = ipc_str(reason)};
	enum ctl_status status;
	struct ipc_frame f;

	status = approve ? calls_on(fd, "admind-vault", IPC_ROLE_VAULT,
			       IPC_APPROVE, &yes, IPC_OK, &f)
			 : calls_on(fd, "admind-vault", IPC_ROLE_VAULT,
			       IPC_REJECT, &no, IPC_OK, &f);
	if (status == CTL_DONE) {
		*state = f.type == IPC_HALF_APPROVED ? "pending"
		    : approve                        ? "approved"
						     : "rejected";
		ipc_frame_free(&f);
	}
	return status;
}

/* One line of bulk's input. */
struct line {
	struct ipc_id id;
	struct ipc_hash hash;
	bool grant;                      /* the request is of kind module or
					  * network */
	char unknown[UUID_TEXT_LEN + 1]; /* the word that is no request's id;
					  * "": none */
};

enum { LINES_MAX = 4096 }; /* more than one reviewer's queue: 344 KiB */

/* Reads the whole input and finds its ids, before any decision. */
static enum ctl_status
read_lines(const struct ctl *c, bool approve, struct line *lines, size_t *n)
{
	char text[LINE_MAX_BYTES];
	enum ctl_status status;

	for (*n = 0; fgets(text, sizeof(text), stdin) != NULL;) {
		text[strcspn(text, "\n")] = '\0';
		if (text[0] == '\0' || text[0] == '#')
			continue;
		if (*n == LINES_MAX) {
			fprintf(stderr, "mcpboxctl: at most %d lines at once\n",
			    LINES_MAX);
			return CTL_USAGE;
		}
		if (read_line(text, approve, &lines[*n].hash) == -1) {
			fputs("mcpboxctl: a line is ID HASH\n", stderr);
			return CTL_USAGE;
		}
		status = prefix_request(c, text, &lines[*n].id);
		if (status == CTL_UNREACHABLE || status == CTL_USAGE)
			return status;
		if (status != CTL_DONE)
			(void)snprintf(lines[*n].unknown,
			    sizeof(lines[*n].unknown), "%.*s", UUID_TEXT_LEN,
			    text);
		++*n;
	}
	return CTL_DONE;
}

/* Marks the lines whose requests are grants, as admind reports it. The line of
 * a request that no longer exists is not marked. The vault refuses it later. */
static enum ctl_status
find_grants(const struct ctl *c, struct line *lines, size_t n)
{
	enum ctl_status status;
	struct content content;

	for (size_t i = 0; i < n; i++) {
		if (lines[i].unknown[0] != '\0')
			continue;
		status = approvals_fetch(c, &lines[i].id, false, &content);
		if (status == CTL_UNREACHABLE)
			return status;
		if (status != CTL_DONE)
			continue;
		lines[i].grant = ipc_streq(content.m.kind, "network") ||
		    ipc_streq(content.m.kind, "module");
		approvals_free(&content);
	}
	return CTL_DONE;
}

static enum ctl_status
decide_line(const struct ctl *c, int fd, bool approve, const struct line *line,
    enum ctl_status before)
{
	char id[UUID_TEXT_LEN + 1];
	const char *state;
	enum ctl_status status;

	if (line->unknown[0] != '\0') {
		printf("%s refused\n", line->unknown);
		return CTL_REFUSED;
	}
	status = review_decide(
	    c, fd, approve, &line->id, &line->hash, c->reason, &state);
	if (status == CTL_UNREACHABLE)
		return status;
	uuid_text(&line->id, id);
	printf("%s %s\n", id, status == CTL_DONE ? state : "refused");
	(void)fflush(stdout); /* printed before the next decision */
	return status == CTL_DONE ? before : CTL_REFUSED;
}

/*
 * Decides each line by itself. A line that fails stops no other. After an
 * interruption the same lines may be given again: requests that were decided
 * before are refused and count as failed.
 *
 * Grants are approved before versions. The request for a host's grant names the
 * serving versions that the grant affects. If a version that uses the host
 * began to serve first (a source's, for example), the reviewed request would be
 * replaced by another that names this version, too.
 */
static enum ctl_status
bulk(const struct ctl *c)
{
	bool approve = c->nwords == 3 && strcmp(c->words[2], "approve") == 0;
	enum ctl_status status;
	struct line *lines;
	size_t n;
	int fd = -1;

	if (c->nwords != 3 ||
	    (!approve && strcmp(c->words[2], "reject") != 0) ||
	    approve == (c->reason != NULL))
		return CTL_USAGE;
	if ((lines = calloc(LINES_MAX, sizeof(*lines))) == NULL) {
		fputs("mcpboxctl: out of memory\n", stderr);
		return CTL_REFUSED;
	}
	status = read_lines(c, approve, lines, &n);
	if (status == CTL_DONE && approve)
		status = find_grants(c, lines, n);
	if (status == CTL_DONE &&
	    (fd = calls_open(c, "admind-vault", IPC_ROLE_VAULT)) == -1)
		status = CTL_UNREACHABLE;
	for (int grants = 1; fd != -1 && grants >= 0; grants--)
		for (size_t i = 0; i < n && status != CTL_UNREACHABLE; i++)
			if (lines[i].grant == (grants == 1))
				status = decide_line(
				    c, fd, approve, &lines[i], status);
	if (fd != -1)
		(void)close(fd);
	free(lines);
	return status;
}

/* ---- actions ---- */

static enum ctl_status
act(const struct ctl *c, const char *action, const char *id, const char *name,
    const char *value)
{
	enum ctl_status status;
	struct buf body, answer;
	struct jsonw w;

	buf_init(&body, IPC_FRAME_MAX);
	jsonw_open(&w, &body);
	jsonw_obj(&w);
	jsonw_kv_str(&w, name, value);
	jsonw_obj_end(&w);
	buf_putc(&body, '\0');
	status =
	    call_action(c, action, id, NULL, (const char *)body.p, &answer);
	if (status == CTL_DONE && c->json)
		status = tables_json(answer.p, answer.len);
	else if (status == CTL_DONE)
		puts("done");
	buf_free(&body);
	buf_free(&answer);
	return status;
}

static const char *const verbs[] = {
    "diff", "revoke", "bulk", "comments", "comment"};

bool
review_has(const char *verb)
{
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
		if (strcmp(verbs[i], verb) == 0)
			return true;
	return false;
}

enum ctl_status
review_command(const struct ctl *c)
{
	char id_text[UUID_TEXT_LEN + 1];
	const char *verb = c->words[1];
	enum ctl_status status;
	struct ipc_id id;
	struct buf text;

	if (strcmp(verb, "bulk") == 0)
		return bulk(c);
	if (c->nwords != (strcmp(verb, "comment") == 0 ? 4 : 3))
		return CTL_USAGE;
	if ((status = prefix_request(c, c->words[2], &id)) != CTL_DONE)
		return status;
	uuid_text(&id, id_text);
	if (strcmp(verb, "diff") == 0)
		return diff(c, &id);
	if (strcmp(verb, "comment") == 0)
		return act(c, "approval_comment", id_text, "text", c->words[3]);
	if (strcmp(verb, "revoke") == 0)
		return c->reason == NULL
		    ? CTL_USAGE
		    : act(c, "approval_revoke", id_text, "reason", c->reason);
	status = calls_query(c, "comments", id_text, &text);
	if (status == CTL_DONE)
		status = tables_show(c, "comments", &text);
	buf_free(&text);
	return status;
}
