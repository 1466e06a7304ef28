#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "approvals.h"
#include "callreq.h"
#include "calls.h"
#include "content_show.h"
#include "crypto.h"
#include "grantreq.h"
#include "ids.h"
#include "json.h"
#include "jsonw.h"
#include "prefix.h"
#include "tables.h"
#include "terminal.h"
#include "tlv.h"
#include "version.h"
#include "version_marks.h"

/*
 * The commands of the approval queue. The shown content is taken from the
 * pre-image, the very bytes whose hash is approved, and that hash is computed
 * here. admind's own words about a request (the circumstances) are shown apart
 * and decide nothing.
 */

void
approvals_free(struct content *c)
{
	json_object_put(c->circumstances);
	ipc_frame_free(&c->frame);
}

enum ctl_status
approvals_fetch(const struct ctl *c, const struct ipc_id *id, bool base,
    struct content *out)
{
	struct ipc_approval_get get;
	enum ctl_status status;
	struct err err;
	struct buf b;

	memset(out, 0, sizeof(*out));
	memset(&get, 0, sizeof(get));
	get.approval = *id;
	get.base = base;
	status = calls_ask(c, "admind", IPC_ROLE_ADMIND, IPC_APPROVAL_GET, &get,
	    IPC_APPROVAL_CONTENT, &out->frame);
	if (status != CTL_DONE)
		return status;
	if (ipc_decode(&out->frame, &out->m, &err) == -1) {
		fprintf(stderr, "mcpboxctl: %s\n", err.text);
		ipc_frame_free(&out->frame);
		return CTL_REFUSED;
	}
	sha256(out->m.preimage.p, out->m.preimage.n, &out->hash);
	hex_encode(out->hash.b, sizeof(out->hash.b), out->hex);
	buf_init(&b, IPC_BLOB_MAX);
	buf_putc(&b, '{');
	buf_put(&b, out->m.circumstances.p, out->m.circumstances.n);
	buf_putc(&b, '}');
	if (b.failed ||
	    json_parse(b.p, b.len, &out->circumstances, NULL) == -1 ||
	    !json_object_is_type(out->circumstances, json_type_object)) {
		json_object_put(out->circumstances);
		out->circumstances = NULL;
	}
	buf_free(&b);
	return CTL_DONE;
}

/* Members of the circumstances that may be shown. A member of another name
 * could pass for a value that we computed ourselves (hash, content). */
static const struct {
	const char *name;
	bool line; /* also a line in the view for people, since the content
		    * lacks it */
} members[] = {
    {"server", false},
    {"server_id", false},
    {"tool", false},
    {"tool_id", false},
    {"exposed_name", false},
    {"version", true},
    {"version_id", false},
    {"requested_at", true},
    {"requested_by", true},
    {"notes", true},
    {"decided_at", true},
    {"decided_by", true},
    {"reason", true},
    {"used_at", true},
    {"execution", true},
    {"review", true},
    {"rejections", false},
    {"rejected_before", false},
    {"secrets_missing", false},
    {"affected_tools", false},
    {"wheel", false},
    {"install", false},
};

/* Prints the REST object of one request. */
static enum ctl_status
print_json(const struct content *c, const char *id)
{
	enum ctl_status status = CTL_REFUSED;
	struct buf content, out;
	struct jsonw w;
	struct err err;

	buf_init(&content, 8 * IPC_BLOB_MAX);
	buf_init(&out, 16 * IPC_BLOB_MAX);
	if (content_show_json(
		c->m.preimage.p, c->m.preimage.n, &content, &err) == -1) {
		fprintf(stderr, "mcpboxctl: the content cannot be shown: %s\n",
		    err.text);
		goto out;
	}
	jsonw_open(&w, &out);
	jsonw_obj(&w);
	jsonw_kv_str(&w, "id", id);
	jsonw_kv_strn(&w, "kind", c->m.kind.p, c->m.kind.n);
	jsonw_kv_strn(&w, "state", c->m.state.p, c->m.state.n);
	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		struct json_object *v;
		const char *s;

		if (!json_object_object_get_ex(
			c->circumstances, members[i].name, &v))
			continue;
		s = json_object_to_json_string_ext(v, JSON_C_TO_STRING_PLAIN);
		jsonw_kv_raw(&w, members[i].name, s, strlen(s));
	}
	jsonw_name(&w, "marks");
	version_marks_json(&w, c->m.preimage.p, c->m.preimage.n);
	jsonw_kv_str(&w, "hash", c->hex);
	jsonw_kv_raw(&w, "content", content.p, content.len);
	jsonw_obj_end(&w);
	if (out.failed) {
		fputs("mcpboxctl: out of memory\n", stderr);
		goto out;
	}
	status = tables_json(out.p, out.len);
out:
	buf_free(&content);
	buf_free(&out);
	return status;
}

enum { BLOB_SHOWN = 48 }; /* characters, enough to show a file's magic */

/* Decodes base64 with padding (RFC 4648 section 4) in place. Returns the number
 * of bytes; -1: it is not base64, and text has changed. */
static long
decode(char *text, size_t n)
{
	if (n % 4 != 0)
		return -1;
	for (int pad = 0; pad < 2 && n > 0 && text[n - 1] == '='; pad++)
		n--;
	for (size_t i = 0; i < n; i++) {
		if (text[i] == '-' || text[i] == '_')
			return -1;
		text[i] = text[i] == '+' ? '-' : text[i] == '/' ? '_' : text[i];
	}
	return b64url_decode(text, n, text);
}

/*
 * Prints the beginning of a blob, and the SHA-256 of its bytes, which sha256sum
 * prints for the file. The rest is left out, since base64 is not for reading;
 * --json has the whole blob. A text that is no base64, which admind-check would
 * have refused, is shown as it is.
 */
static void
print_blob(struct buf *b, const char *name, const struct tlv *f)
{
	char hex[HEX32_LEN + 1], *raw = malloc(f->n + 1);
	struct ipc_hash h;
	long n = -1;

	if (raw != NULL) {
		memcpy(raw, f->p, f->n);
		n = decode(raw, f->n);
	}
	if (n == -1) {
		buf_putf(b, "%s (%zu bytes, not base64):\n", name, f->n);
		show_block(b, f->p, f->n, terminal_width());
	} else {
		sha256(raw, (size_t)n, &h);
		hex_encode(h.b, sizeof(h.b), hex);
		buf_putf(b, "%-18s %ld bytes, SHA-256\n", name, n);
		buf_putf(b, "%-18s %s\n", "", hex);
		show_value(b, f->n > BLOB_SHOWN ? "  begins" : "  base64", f->p,
		    f->n < BLOB_SHOWN ? f->n : BLOB_SHOWN, terminal_width());
	}
	free(raw);
}

/* Prints a field. Code, JSON and every value of several lines are printed with
 * line numbers that we add. Otherwise the second line of a value could pass for
 * another field. */
static void
print_field(struct buf *b, const struct tlv *f)
{
	char uuid[UUID_TEXT_LEN + 1];
	enum version_kind kind;
	const char *name = version_field(f->tag, &kind);
	struct ipc_id id;

	if (f->tag == VERSION_BLOB) {
		print_blob(b, name, f);
	} else if (kind == VERSION_B || f->tag == VERSION_TEXT) {
		buf_putf(b, "%s (%zu bytes):\n", name, f->n);
		show_block(b, f->p, f->n, terminal_width());
	} else if (kind == VERSION_N) {
		buf_putf(b, "%-18s %llu\n", name,
		    (unsigned long long)get_be64(f->p));
	} else if (kind == VERSION_I) {
		memcpy(id.b, f->p, sizeof(id.b));
		uuid_text(&id, uuid);
		buf_putf(b, "%-18s %s\n", name, uuid);
	} else {
		show_value(b, name, f->p, f->n, terminal_width());
	}
}

static int
version_text(const struct content *c, struct buf *b, struct err *err)
{
	const uint8_t *fields;
	struct tlv_reader r;
	struct tlv f;
	size_t n;

	if (version_check(c->m.preimage.p, c->m.preimage.n, &fields, &n, err) ==
	    -1)
		return -1;
	tlv_open(&r, fields, n);
	while (tlv_next(&r, &f) == 1)
		print_field(b, &f);
	return 0;
}

static void
put_text(struct buf *b, const char *name, struct ipc_bytes text)
{
	show_value(b, name, text.p, text.n, terminal_width());
}

/* Prints one call: the tool, its caller, and its arguments. */
static int
call_text(const struct content *c, struct buf *b, struct err *err)
{
	char hex[HEX32_LEN + 1], uuid[UUID_TEXT_LEN + 1];
	char when[TIME_TEXT_LEN + 1];
	struct callreq r;

	if (callreq_read(c->m.preimage.p, c->m.preimage.n, &r, err) == -1)
		return -1;
	hex_encode(r.version.b, sizeof(r.version.b), hex);
	uuid_text(&r.request, uuid);
	time_text(r.expires_ms * 1000, when);
	put_text(b, "tool", r.tool);
	put_text(b, "principal", r.principal);
	buf_putf(
	    b, "listener           %s\n", listener_name((unsigned)r.listener));
	buf_putf(b, "version_hash       %s\n", hex);
	buf_putf(b, "request            %s\n", uuid);
	buf_putf(b, "expires_at         %s\n", when);
	buf_putf(b, "arguments (%zu bytes):\n", r.arguments.n);
	show_block(b, r.arguments.p, r.arguments.n, terminal_width());
	return 0;
}

/* Prints one grant: the module for a tool, or the host for a server, and the
 * serving versions that the grant affects. */
static int
grant_text(const struct content *c, struct buf *b, struct err *err)
{
	char hex[HEX32_LEN + 1], uuid[UUID_TEXT_LEN + 1];
	struct grantreq g;

	if (grantreq_read(c->m.preimage.p, c->m.preimage.n, &g, err) == -1)
		return -1;
	uuid_text(&g.request, uuid);
	buf_putf(b, "%-18s %s\n", "request", uuid);
	put_text(b, "server", g.server_name);
	/* The seal names the server by this id. The name in the bytes may be
	 * that of another server. */
	uuid_text(&g.server, uuid);
	buf_putf(b, "%-18s %s\n", "server_id", uuid);
	if (g.kind == GRANT_NETWORK) {
		put_text(b, "proto", g.proto);
		put_text(b, "host", g.host);
		if (grantreq_host(g.host) == GRANT_HOST_ANY)
			buf_puts(b,
			    "                   every host whose address is "
			    "public\n");
		if (g.port == 0)
			buf_puts(b, "port               80 and 443\n");
		else
			buf_putf(
			    b, "port               %u\n", (unsigned)g.port);
	} else {
		put_text(b, "tool", g.tool_name);
		uuid_text(&g.tool, uuid);
		buf_putf(b, "%-18s %s\n", "tool_id", uuid);
		put_text(b, "module", g.name);
		if (g.recorded) {
			hex_encode(g.digest.b, sizeof(g.digest.b), hex);
			put_text(b, "version", g.version);
			buf_putf(b, "%-18s %s\n", "digest", hex);
			buf_putf(b, "%-18s %llu in %llu files\n", "bytes",
			    (unsigned long long)g.size,
			    (unsigned long long)g.files);
		} else {
			buf_puts(b,
			    "version            not recorded in the module "
			    "store: it cannot be approved yet\n");
		}
	}
	buf_putf(
	    b, "affected           %zu versions that serve\n", g.naffected);
	for (size_t i = 0; i < g.naffected; i++) {
		hex_encode(grantreq_affected(&g, i), 32, hex);
		buf_putf(b, "                   %s\n", hex);
	}
	return 0;
}

/* Prints who approved the content, by the vault's word, not by admind's. A
 * call's seal is valid only as long as the vault runs, so nothing is printed
 * for a call. */
static void
seal_text(const struct ctl *ctl, const struct content *c, struct buf *b)
{
	char when[TIME_TEXT_LEN + 1];
	struct ipc_seal_says s;
	struct ipc_frame f;

	if (c->m.seal.n == 0 || callreq_is(c->m.preimage.p, c->m.preimage.n))
		return;
	buf_puts(b, "seal               ");
	if (review_verify(ctl, c, &f) != CTL_DONE) {
		buf_puts(b, "DOES NOT VERIFY\n");
		return;
	}
	if (ipc_decode(&f, &s, NULL) == 0) {
		time_text(s.time_us, when);
		buf_puts(b, "the vault's: approved by ");
		show_text(b, s.approver.p, s.approver.n, SHOW_CODE);
		if (s.first.n > 0) {
			buf_puts(b, ", before by ");
			show_text(b, s.first.p, s.first.n, SHOW_CODE);
		}
		buf_putf(b, ", %s\n", when);
	}
	ipc_frame_free(&f);
}

static void
mark_text(void *arg, const struct version_mark *m)
{
	struct buf *b = arg;
	struct buf line;

	buf_init(&line, 4096);
	if (m->refused)
		buf_putf(&line, "%s", m->why);
	else if (m->words[0] == '\0')
		buf_putf(&line, "%s %s", m->field, m->why);
	else
		buf_putf(&line, "%s says \"%s\", which %s", m->field, m->words,
		    m->why);
	b->failed |= line.failed;
	show_value(b, m->refused ? "cannot be approved" : "look twice", line.p,
	    line.len, terminal_width());
	buf_free(&line);
}

void
approvals_beside(const struct content *c, struct buf *b)
{
	rejected_text(c->circumstances, b);
	lacking_text(c->circumstances, b);
	version_marks(c->m.preimage.p, c->m.preimage.n, mark_text, b);
}

static int
refuse_large(void)
{
	fputs("mcpboxctl: too large to show\n", stderr);
	return -1;
}

enum ctl_status
approvals_print(const struct ctl *ctl, const struct content *c, const char *id)
{
	struct err err;
	struct buf b;
	int rc;

	buf_init(&b, 8 * IPC_BLOB_MAX);
	buf_putf(&b, "request            %s\n", id);
	put_text(&b, "kind", c->m.kind);
	put_text(&b, "state", c->m.state);
	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		struct json_object *v;
		const char *s;

		if (!members[i].line ||
		    !json_object_object_get_ex(
			c->circumstances, members[i].name, &v) ||
		    v == NULL)
			continue;
		s = json_object_get_string(v);
		if (s[0] == '\0')
			continue;
		show_value(&b, members[i].name, s, strlen(s), terminal_width());
	}
	approvals_beside(c, &b);
	wheels_text(c->circumstances, &b);
	seal_text(ctl, c, &b);
	buf_puts(&b, "\nThe content that the hash below names, whole:\n\n");
	rc = callreq_is(c->m.preimage.p, c->m.preimage.n)
	    ? call_text(c, &b, &err)
	    : grantreq_is(c->m.preimage.p, c->m.preimage.n)
	    ? grant_text(c, &b, &err)
	    : version_text(c, &b, &err);
	buf_putf(&b, "\nhash               %s\n", c->hex);
	if (rc == -1)
		fprintf(stderr, "mcpboxctl: the content cannot be shown: %s\n",
		    err.text);
	else if (b.failed)
		rc = refuse_large();
	else
		terminal_out(&b);
	buf_free(&b);
	return rc == -1 ? CTL_REFUSED : CTL_DONE;
}

/*
 * Approves. --hash names the content that the administrator has read. It is
 * compared here with the content that admind gives now, and by the vault with
 * the content that the vault fetches. The vault's check is the one that counts.
 */
static enum ctl_status
approve(const struct ctl *c, const struct ipc_id *id)
{
	struct ipc_hash given;
	enum ctl_status status;
	struct content content;
	struct ipc_approve m;
	struct ipc_frame f;

	if (c->hash == NULL)
		return CTL_USAGE;
	if (strlen(c->hash) != HEX32_LEN ||
	    hex_decode(c->hash, HEX32_LEN, given.b) == -1) {
		fputs("mcpboxctl: --hash is 64 lower-case hexadecimal digits, "
		      "as `approvals show` prints them\n",
		    stderr);
		return CTL_USAGE;
	}
	if ((status = approvals_fetch(c, id, false, &content)) != CTL_DONE)
		return status;
	if (!ct_equal(given.b, content.hash.b, sizeof(given.b))) {
		fprintf(stderr,
		    "mcpboxctl: refused: the content's hash is %s, not the "
		    "one given; read it again\n",
		    content.hex);
		approvals_free(&content);
		return CTL_REFUSED;
	}
	approvals_free(&content);
	memset(&m, 0, sizeof(m));
	m.approval = *id;
	m.reviewed = given;
	status = calls_ask(
	    c, "admind-vault", IPC_ROLE_VAULT, IPC_APPROVE, &m, IPC_OK, &f);
	if (status != CTL_DONE)
		return status;
	if (f.type == IPC_HALF_APPROVED)
		puts(c->json ? "{\"state\":\"pending\"}"
			     : "approved; another person must, too");
	else
		puts(c->json ? "{\"state\":\"approved\"}" : "approved");
	ipc_frame_free(&f);
	return status;
}

static enum ctl_status
reject(const struct ctl *c, const struct ipc_id *id)
{
	enum ctl_status status;
	struct ipc_reject m;
	struct ipc_frame f;

	if (c->reason == NULL)
		return CTL_USAGE;
	memset(&m, 0, sizeof(m));
	m.approval = *id;
	m.reason = ipc_str(c->reason);
	status = calls_ask(
	    c, "admind-vault", IPC_ROLE_VAULT, IPC_REJECT, &m, IPC_OK, &f);
	if (status == CTL_DONE) {
		ipc_frame_free(&f);
		puts(c->json ? "{\"state\":\"rejected\"}" : "rejected");
	}
	return status;
}

enum ctl_status
approvals_command(const struct ctl *c)
{
	char id_text[UUID_TEXT_LEN + 1];
	const char *verb = c->words[1];
	struct content content;
	enum ctl_status status;
	struct ipc_id id;

	if (strcmp(verb, "list") == 0)
		return queue_list(c);
	if (strcmp(verb, "review") == 0)
		return queue_command(c);
	if (review_has(verb))
		return review_command(c);
	if (c->nwords != 3)
		return CTL_USAGE;
	if ((status = prefix_request(c, c->words[2], &id)) != CTL_DONE)
		return status;
	if (strcmp(verb, "approve") == 0)
		return approve(c, &id);
	if (strcmp(verb, "reject") == 0)
		return reject(c, &id);
	if (strcmp(verb, "show") != 0)
		return CTL_USAGE;
	if ((status = approvals_fetch(c, &id, false, &content)) != CTL_DONE)
		return status;
	uuid_text(&id, id_text);
	status = c->json ? print_json(&content, id_text)
			 : approvals_print(c, &content, id_text);
	approvals_free(&content);
	return status;
}
