/*
 * Commands about people with signed tokens (docs/decisions/0090):
 * access [show | set FILE | refresh [ISSUER]] for the access document, and
 * identities [list | withdraw PRINCIPAL | restore PRINCIPAL] for the people.
 *
 * The vault sets the document, and admind shows it. Before a change this
 * program shows the difference to the document that holds (access_diff.c). It
 * names the document that was read here, and the change is refused if another
 * one is stored by then.
 *
 * Somebody that writes the database may have made a stored document that is not
 * in force. A difference to this document would not show its parts, and a
 * person would set a stranger's issuer without seeing it. So such a document is
 * compared with none, and the screen shows each part of the new one.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <json-c/json.h>

#include "access_change.h"
#include "access_diff.h"
#include "call.h"
#include "calls.h"
#include "crypto.h"
#include "ids.h"
#include "json.h"
#include "objects.h"
#include "tables.h"
#include "terminal.h"

/* Reads the document that holds. *o: the whole answer; the caller frees it. */
static enum ctl_status
holding(const struct ctl *c, struct buf *text, struct json_object **o)
{
	/* Filters of the command line are those of other lists. */
	enum ctl_status status =
	    calls_list(c, "access", NULL, ipc_bytes(NULL, 0), NULL, text);
	struct err err;

	*o = NULL;
	if (status == CTL_DONE &&
	    json_parse(text->p, text->len, o, &err) == -1) {
		fprintf(stderr, "mcpboxctl: the answer is not JSON: %s\n",
		    err.text);
		status = CTL_REFUSED;
	}
	return status;
}

static bool
in_force(struct json_object *o)
{
	return strcmp(tables_text(o, "in_force"), "true") == 0;
}

/* Tells on standard error the state of the document and its author. The
 * document alone goes to standard output, so that it can be a file again. */
static void
say(struct json_object *o)
{
	const char *why = tables_text(o, "why");
	bool force = in_force(o);
	struct buf b;

	buf_init(&b, 64 * 1024);
	buf_puts(&b, "mcpboxctl: ");
	if (*tables_text(o, "sha256") == '\0') {
		buf_puts(&b,
		    "there is no access document: nobody comes in by a "
		    "signed token");
	} else {
		buf_puts(&b, "set ");
		show_text(&b, tables_text(o, "stored_at"),
		    strlen(tables_text(o, "stored_at")), SHOW_LINE);
		buf_puts(&b, " by ");
		show_text(&b, tables_text(o, "actor"),
		    strlen(tables_text(o, "actor")), SHOW_LINE);
		buf_puts(&b, force ? "; it is in force" : "; NOT in force: ");
		if (!force)
			show_text(&b, why, strlen(why), SHOW_LINE);
	}
	if (!b.failed)
		fprintf(stderr, "%.*s\n", (int)b.len, (const char *)b.p);
	buf_free(&b);
}

/* Tells on standard error the keys of each issuer that are fetched. */
static void
say_keys(struct json_object *o)
{
	struct json_object *list, *one;
	const char *text, *name;
	struct buf b;

	if (!json_object_object_get_ex(o, "keys", &list) ||
	    !json_object_is_type(list, json_type_array))
		return;
	for (size_t i = 0; i < json_object_array_length(list); i++) {
		one = json_object_array_get_idx(list, i);
		name = tables_text(one, "issuer");
		buf_init(&b, 64 * 1024);
		buf_puts(&b, "mcpboxctl: issuer ");
		show_text(&b, name, strlen(name), SHOW_LINE);
		buf_putf(&b, ": %s keys", tables_text(one, "count"));
		text = tables_text(one, "fetched_at");
		if (*text != '\0') {
			buf_puts(&b, ", fetched ");
			show_text(&b, text, strlen(text), SHOW_LINE);
		}
		text = tables_text(one, "next_at");
		buf_puts(&b, ", again ");
		show_text(&b, text, strlen(text), SHOW_LINE);
		text = tables_text(one, "error");
		if (*text != '\0') {
			buf_puts(&b, "; the last fetch failed: ");
			show_text(&b, text, strlen(text), SHOW_LINE);
		}
		if (!b.failed)
			fprintf(
			    stderr, "%.*s\n", (int)b.len, (const char *)b.p);
		buf_free(&b);
	}
}

/* Tells on standard error how the sending of telemetry goes. */
static void
say_telemetry(struct json_object *o)
{
	static const char *const counts[] = {"waiting", "dropped", "rejected"};
	struct json_object *t;
	const char *text;
	struct buf b;

	if (!json_object_object_get_ex(o, "telemetry", &t) ||
	    !json_object_is_type(t, json_type_object))
		return;
	buf_init(&b, 64 * 1024);
	buf_putf(
	    &b, "mcpboxctl: telemetry: %s spans sent", tables_text(t, "spans"));
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		buf_putf(&b, ", %s %s", tables_text(t, counts[i]), counts[i]);
	text = tables_text(t, "sent_at");
	if (*text != '\0') {
		buf_puts(&b, "; last ");
		show_text(&b, text, strlen(text), SHOW_LINE);
	}
	text = tables_text(t, "error");
	if (*text != '\0') {
		buf_puts(&b, "; the last try failed: ");
		show_text(&b, text, strlen(text), SHOW_LINE);
	}
	if (!b.failed)
		fprintf(stderr, "%.*s\n", (int)b.len, (const char *)b.p);
	buf_free(&b);
}

/* Prints a document as JSON in ASCII, with a row for each member. */
static void
print(struct json_object *document)
{
	const char *s = json_object_to_json_string_ext(document,
	    JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED |
		JSON_C_TO_STRING_NOSLASHESCAPE);
	struct buf b;

	buf_init(&b, 16 * IPC_BLOB_MAX);
	for (size_t n; *s != '\0'; s += n + (s[n] == '\n')) {
		/* Strings have no line ends here, so each row is shown alone.
		 */
		n = strcspn(s, "\n");
		access_diff_ascii(&b, s, n);
		buf_putc(&b, '\n');
	}
	terminal_out(&b);
	buf_free(&b);
}

static enum ctl_status
show(const struct ctl *c)
{
	struct json_object *o, *document;
	enum ctl_status status;
	struct buf text;

	status = holding(c, &text, &o);
	if (status == CTL_DONE && c->json) {
		status = tables_json(text.p, text.len);
	} else if (status == CTL_DONE) {
		say(o);
		say_keys(o);
		say_telemetry(o);
		if (json_object_object_get_ex(o, "document", &document) &&
		    document != NULL)
			print(document);
	}
	json_object_put(o);
	buf_free(&text);
	return status;
}

/* After a refusal, looks whether somebody else changed the document since `old`
 * was read. If so, tells the name, and the next step. */
static void
say_changed(
    const struct ctl *c, struct json_object *old, const struct buf *file)
{
	char mine[HEX32_LEN + 1];
	struct json_object *o;
	struct ipc_hash hash;
	const char *now;
	struct buf text;

	sha256(file->p, file->len, &hash);
	hex_encode(hash.b, sizeof(hash.b), mine);
	if (holding(c, &text, &o) == CTL_DONE) {
		now = tables_text(o, "sha256");
		if (strcmp(now, tables_text(old, "sha256")) != 0 &&
		    strcmp(now, mine) != 0) {
			say(o);
			fputs("mcpboxctl: your document was not stored. Read "
			      "the present one by mcpboxctl access show, put "
			      "your change into it, and set it\n",
			    stderr);
		}
	}
	json_object_put(o);
	buf_free(&text);
}

static enum ctl_status
store(const struct ctl *c, const struct buf *file, struct json_object *old)
{
	struct ipc_access_set m = {.document = ipc_bytes(file->p, file->len)};
	const char *seen = tables_text(old, "sha256");
	enum ctl_status status;
	struct ipc_frame f;

	if (strlen(seen) == HEX32_LEN &&
	    hex_decode(seen, HEX32_LEN, m.seen.b) == -1)
		memset(&m.seen, 0, sizeof(m.seen));
	status = calls_ask(c, "admind-vault", IPC_ROLE_VAULT, IPC_ACCESS_SET,
	    &m, IPC_ACCESS_STATE, &f);
	if (status == CTL_REFUSED)
		say_changed(c, old, file);
	if (status == CTL_DONE)
		ipc_frame_free(&f);
	return status;
}

/* Tells the state after a change. */
static enum ctl_status
say_now(const struct ctl *c)
{
	enum ctl_status status;
	struct json_object *o;
	struct buf text;

	status = holding(c, &text, &o);
	if (status == CTL_DONE && c->json)
		status = tables_json(text.p, text.len);
	else if (status == CTL_DONE)
		say(o);
	json_object_put(o);
	buf_free(&text);
	return status;
}

enum ctl_status
access_base(struct json_object *answer, struct json_object **document)
{
	*document = NULL;
	(void)json_object_object_get_ex(answer, "document", document);
	if (*document == NULL || in_force(answer))
		return CTL_DONE;
	say(answer);
	fputs("mcpboxctl: nothing is built on it. Set a document of your own "
	      "by mcpboxctl access set FILE, then come back\n",
	    stderr);
	return CTL_REFUSED;
}

bool
access_changes(struct json_object *old, struct json_object *new)
{
	struct json_object *was = NULL;

	(void)json_object_object_get_ex(old, "document", &was);
	return was == NULL || !in_force(old) || !json_object_equal(was, new);
}

enum ctl_status
access_change(const struct ctl *c, struct json_object *old,
    struct json_object *new, const struct buf *document)
{
	enum ctl_status status = CTL_REFUSED;
	struct json_object *was = NULL;
	struct buf rows;

	(void)json_object_object_get_ex(old, "document", &was);
	if (was != NULL && !in_force(old)) {
		say(old);
		fputs("mcpboxctl: so the new document is compared with none\n",
		    stderr);
		was = NULL;
	}
	buf_init(&rows, 16 * IPC_BLOB_MAX);
	if (access_diff(was, new, &rows) == 0)
		buf_puts(&rows, "~ nothing that changes who may come in\n");
	/* With --json standard output has one object, the result. */
	if (rows.len > 0 && !rows.failed)
		(void)fwrite(rows.p, 1, rows.len, c->json ? stderr : stdout);
	(void)fflush(stdout);
	if (terminal_agreed(c->yes, "Set this document?"))
		status = store(c, document, old);
	else
		fputs("mcpboxctl: nothing was changed\n", stderr);
	buf_free(&rows);
	return status;
}

enum ctl_status
access_holding(const struct ctl *c, struct json_object **answer)
{
	enum ctl_status status;
	struct buf text;

	status = holding(c, &text, answer);
	buf_free(&text);
	return status;
}

static enum ctl_status
set(const struct ctl *c)
{
	struct json_object *old = NULL, *new = NULL;
	struct buf file, text;
	enum ctl_status status;
	struct err err;

	buf_init(&file, ACCESS_DOCUMENT_MAX);
	buf_init(&text, 1);
	if ((status = transfer_read(c->words[2], &file)) != CTL_DONE)
		goto out;
	if (json_parse(file.p, file.len, &new, &err) == -1 ||
	    !json_object_is_type(new, json_type_object)) {
		fprintf(stderr, "mcpboxctl: the file is no JSON object%s%s\n",
		    new == NULL ? ": " : "", new == NULL ? err.text : "");
		status = CTL_USAGE;
		goto out;
	}
	if ((status = holding(c, &text, &old)) != CTL_DONE)
		goto out;
	if (!access_changes(old, new))
		fputs("mcpboxctl: nothing changes\n", stderr);
	else if ((status = access_change(c, old, new, &file)) == CTL_DONE)
		status = say_now(c);
out:
	json_object_put(old);
	json_object_put(new);
	buf_free(&file);
	buf_free(&text);
	return status;
}

/* Has keys fetched. Succeeds if each named issuer's are fetched now, or the
 * document has them. */
static enum ctl_status
refresh(const struct ctl *c)
{
	struct ipc_access_refresh m = {
	    .issuer = ipc_str(c->nwords > 2 ? c->words[2] : "")};
	struct json_object *o = NULL, *list = NULL;
	enum ctl_status status, shown;
	struct buf text;

	status = calls_json(c, IPC_ACCESS_REFRESH, &m, &text);
	if (status != CTL_DONE)
		goto out;
	shown = tables_show(c, "refreshed", &text);
	if (json_parse(text.p, text.len, &o, NULL) == -1 ||
	    !json_object_object_get_ex(o, "items", &list) ||
	    !json_object_is_type(list, json_type_array)) {
		status = CTL_REFUSED;
		goto out;
	}
	for (size_t i = 0; i < json_object_array_length(list); i++)
		if (strcmp(tables_text(
			       json_object_array_get_idx(list, i), "state"),
			"early") == 0)
			status = CTL_REFUSED;
	if (shown != CTL_DONE)
		status = shown;
out:
	json_object_put(o);
	buf_free(&text);
	return status;
}

enum ctl_status
access_command(const struct ctl *c)
{
	const char *verb = c->nwords > 1 ? c->words[1] : "show";

	if (strcmp(verb, "show") == 0 && c->nwords <= 2)
		return show(c);
	if (strcmp(verb, "set") == 0 && c->nwords == 3)
		return set(c);
	if (strcmp(verb, "refresh") == 0 && c->nwords <= 3)
		return refresh(c);
	return CTL_USAGE;
}

/* ---- people ---- */

static enum ctl_status
change(const struct ctl *c, const char *action, const char *reason)
{
	struct json_object *o = json_object_new_object();
	enum ctl_status status = CTL_REFUSED;
	struct buf answer;

	buf_init(&answer, 1);
	if (o == NULL ||
	    json_object_object_add(
		o, "principal", json_object_new_string(c->words[2])) != 0 ||
	    (reason != NULL &&
		json_object_object_add(
		    o, "reason", json_object_new_string(reason)) != 0)) {
		fputs("mcpboxctl: out of memory\n", stderr);
	} else {
		status = call_action(c, action, "", NULL,
		    json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN),
		    &answer);
		if (status == CTL_DONE)
			status = tables_show(c, "identity", &answer);
	}
	json_object_put(o);
	buf_free(&answer);
	return status;
}

enum ctl_status
identities_command(const struct ctl *c)
{
	const char *verb = c->nwords > 1 ? c->words[1] : "list";

	if (strcmp(verb, "list") == 0 && c->nwords <= 2)
		return tables_command(c);
	if (strcmp(verb, "withdraw") == 0 && c->nwords == 3)
		return change(c, "identity_withdraw", c->reason);
	if (strcmp(verb, "restore") == 0 && c->nwords == 3)
		return change(c, "identity_restore", NULL);
	return CTL_USAGE;
}
