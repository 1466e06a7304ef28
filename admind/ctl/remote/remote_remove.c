/*
 * remote remove NAME: takes away all that add made, and names the things that
 * stay. A remote is an issuer with its rules and its own permission set, or an
 * API token. The change of the document is shown and asked about as in `access
 * set`.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <json-c/json.h>

#include "remote.h"

#include "access_change.h"
#include "calls.h"
#include "json.h"
#include "remote_document.h"
#include "remote_kept.h"
#include "remote_state.h"
#include "tables.h"
#include "terminal.h"

enum {
	HOLDERS_MAX = 10, /* named: as in the database's own refusal */
	HOLDERS_TEXT_MAX = 4096
};

static enum ctl_status
complain(const char *why)
{
	fprintf(stderr, "mcpboxctl: %s\n", why);
	return CTL_REFUSED;
}

/*
 * Names the live API tokens of the set. *names gets a text with NUL. The set
 * must stay, since the database refuses a document without it
 * (docs/decisions/0100). The database also refuses if a token is made while
 * this command runs.
 */
static enum ctl_status
holders(const struct ctl *c, const char *set, struct buf *names)
{
	struct json_object *page = NULL, *next, *items = NULL;
	enum ctl_status status;
	struct ctl all = *c;
	size_t n = 0;

	all.limit = CTL_LIMIT_MAX;
	all.kind = NULL;
	all.state = "active";
	do {
		struct buf text;

		next = NULL;
		status = calls_list(&all, "tokens", NULL, ipc_bytes(NULL, 0),
		    page != NULL ? remote_document_text(page, "next_cursor")
				 : NULL,
		    &text);
		if (status == CTL_DONE &&
		    (json_parse(text.p, text.len, &next, NULL) == -1 ||
			!json_object_object_get_ex(next, "items", &items) ||
			!json_object_is_type(items, json_type_array)))
			status = complain("admind's answer is unreadable");
		buf_free(&text);
		json_object_put(page);
		page = next;
		for (size_t i = 0;
		    status == CTL_DONE && i < json_object_array_length(items);
		    i++) {
			struct json_object *t =
			    json_object_array_get_idx(items, i);
			const char *name = remote_document_text(t, "name");

			if (strcmp(remote_document_text(t, "set"), set) != 0 ||
			    n++ >= HOLDERS_MAX)
				continue;
			buf_puts(names, n > 1 ? ", " : "");
			show_text(names, name, strlen(name), SHOW_CODE);
		}
	} while (status == CTL_DONE &&
	    *remote_document_text(page, "next_cursor") != '\0');
	if (n > HOLDERS_MAX)
		buf_putf(names, " and %zu more", n - HOLDERS_MAX);
	buf_putc(names, '\0');
	json_object_put(page);
	return status;
}

static enum ctl_status
drop_issuer(const struct ctl *c, const struct remote_state *s, const char *name,
    struct buf *stays)
{
	struct json_object *document = NULL, *base;
	struct buf bytes, tokens;
	enum ctl_status status;
	struct err err = {0};

	if ((status = access_base(s->answer, &base)) != CTL_DONE)
		return status;
	buf_init(&tokens, HOLDERS_TEXT_MAX);
	status = holders(c, name, &tokens);
	if (status == CTL_DONE &&
	    remote_document_remove(base, name,
		tokens.failed ? "" : (const char *)tokens.p, &document, stays,
		&err) == -1)
		status = complain(err.text);
	buf_free(&tokens);
	if (status != CTL_DONE)
		return status;
	buf_init(&bytes, ACCESS_DOCUMENT_MAX);
	buf_puts(&bytes,
	    json_object_to_json_string_ext(document,
		JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED |
		    JSON_C_TO_STRING_NOSLASHESCAPE));
	status = bytes.failed ? complain("the access document is too large")
			      : access_change(c, s->answer, document, &bytes);
	buf_free(&bytes);
	json_object_put(document);
	return status;
}

static enum ctl_status
drop_token(const struct ctl *c, const char *id)
{
	enum ctl_status status;
	struct ipc_token_revoke m;
	struct ipc_frame f;

	if (!terminal_agreed(c->yes, "Revoke this token? Its work ends."))
		return complain("nothing was changed");
	memset(&m, 0, sizeof(m));
	m.which = ipc_str(id);
	m.reason = ipc_str("mcpboxctl remote remove");
	status = calls_ask(c, "admind", IPC_ROLE_ADMIND, IPC_TOKEN_REVOKE, &m,
	    IPC_ADMIN_JSON, &f);
	if (status == CTL_DONE)
		ipc_frame_free(&f);
	return status;
}

/* Names the things that this command leaves: files, and settings at the
 * provider. */
static void
stays_of(enum remote_kind kind, struct json_object *row, struct buf *stays)
{
	static const char *const elsewhere[REMOTE_KIND_COUNT] = {
	    "the API and the clients at the issuer",
	    "the Worker (npx wrangler delete)", "the application in Zero Trust",
	    NULL, "Funnel (tailscale funnel reset)"};
	struct json_object *files;
	const char *path;

	if (elsewhere[kind] != NULL)
		buf_putf(stays, "%s\n", elsewhere[kind]);
	if (row == NULL || !json_object_object_get_ex(row, "files", &files) ||
	    !json_object_is_type(files, json_type_array))
		return;
	for (size_t i = 0; i < json_object_array_length(files); i++) {
		path =
		    json_object_get_string(json_object_array_get_idx(files, i));
		buf_puts(stays, "file ");
		if (path != NULL)
			show_text(stays, path, strlen(path), SHOW_LINE);
		buf_putc(stays, '\n');
	}
}

static enum ctl_status
tell(const struct ctl *c, const char *name, const struct buf *stays)
{
	enum ctl_status status = CTL_DONE;
	struct json_object *o;
	const char *s;

	if (c->json) {
		o = json_object_new_object();
		json_object_object_add(
		    o, "removed", json_object_new_string(name));
		json_object_object_add(o, "stays",
		    json_object_new_string_len(
			stays->p != NULL ? (const char *)stays->p : "",
			(int)stays->len));
		s = json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN);
		status = tables_json((const uint8_t *)s, strlen(s));
		json_object_put(o);
		return status;
	}
	fprintf(stderr, "Remote %s is removed.\n", name);
	if (stays->len > 0)
		fprintf(stderr, "This stays:\n%.*s", (int)stays->len,
		    (const char *)stays->p);
	return status;
}

enum ctl_status
remote_remove(const struct ctl *c)
{
	const char *name = c->words[2], *token;
	struct json_object *row, *made;
	struct remote_state s;
	enum ctl_status status;
	struct err err = {0};
	struct buf stays;
	int kind;

	buf_init(&stays, 1024 * 1024);
	if ((status = remote_state_begin(c, &s)) != CTL_DONE)
		goto out;
	row = remote_kept_find(s.rows, name);
	if ((kind = remote_state_kind(&s, name)) == -1 && row == NULL) {
		status = remote_state_unknown(name);
		goto out;
	}
	if (remote_document_issuer(s.document, name) != NULL)
		status = drop_issuer(c, &s, name, &stays);
	made = remote_state_token(c, &s, name);
	token = remote_document_text(made, "state");
	/* One that ended already is not revoked again. */
	if (status == CTL_DONE && *token != '\0' &&
	    strcmp(token, "revoked") != 0)
		status = drop_token(c, remote_document_text(made, "id"));
	json_object_put(made);
	if (status != CTL_DONE)
		goto out;
	if (kind != -1)
		stays_of((enum remote_kind)kind, row, &stays);
	if (row != NULL && remote_kept_put(c, name, NULL, &err) == -1)
		status = complain(err.text);
	if (tell(c, name, &stays) != CTL_DONE)
		status = CTL_REFUSED;
out:
	remote_state_end(&s);
	buf_free(&stays);
	return status;
}
