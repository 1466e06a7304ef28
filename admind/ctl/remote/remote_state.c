#include <stdio.h>
#include <string.h>

#include <json-c/json.h>

#include "remote_state.h"

#include "access_change.h"
#include "admin_filter.h"
#include "calls.h"
#include "json.h"
#include "remote_document.h"
#include "remote_kept.h"
#include "tables.h"

enum ctl_status
remote_state_begin(const struct ctl *c, struct remote_state *s)
{
	enum ctl_status status;
	struct err err = {0};

	memset(s, 0, sizeof(*s));
	if (remote_kept_read(c, &s->rows, &err) == -1) {
		fprintf(stderr, "mcpboxctl: %s\n", err.text);
		return CTL_REFUSED;
	}
	status = access_holding(c, &s->answer);
	if (status == CTL_DONE)
		(void)json_object_object_get_ex(
		    s->answer, "document", &s->document);
	return status;
}

void
remote_state_end(struct remote_state *s)
{
	json_object_put(s->rows);
	json_object_put(s->answer);
}

enum ctl_status
remote_state_unknown(const char *name)
{
	struct buf b;

	buf_init(&b, 64 * 1024);
	show_text(&b, name, strlen(name), SHOW_LINE);
	fprintf(stderr,
	    "mcpboxctl: there is no remote %.*s; mcpboxctl remote list shows "
	    "those that are there\n",
	    (int)b.len, b.p != NULL ? (const char *)b.p : "");
	buf_free(&b);
	return CTL_REFUSED;
}

int
remote_state_kind(const struct remote_state *s, const char *name)
{
	struct json_object *row = remote_kept_find(s->rows, name),
			   *issuer = remote_document_issuer(s->document, name);
	int kind = row != NULL
	    ? remote_kind_of(remote_document_text(row, "kind"))
	    : -1;

	return kind != -1    ? kind
	    : issuer != NULL ? (int)remote_document_kind(issuer)
			     : -1;
}

const char *
remote_state_url(const struct remote_state *s, const char *name)
{
	struct json_object *row = remote_kept_find(s->rows, name);
	const char *url = remote_document_text(s->document, "resource");

	if (remote_document_issuer(s->document, name) != NULL && *url != '\0')
		return url;
	return row != NULL ? remote_document_text(row, "url") : "";
}

struct json_object *
remote_state_token(
    const struct ctl *c, const struct remote_state *s, const char *name)
{
	struct json_object *row = remote_kept_find(s->rows, name), *o = NULL;
	const char *id = row != NULL ? remote_document_text(row, "token") : "";
	struct buf text;

	if (*id == '\0')
		return NULL;
	if (calls_list(c, "token_named", id, ipc_bytes(NULL, 0), NULL, &text) ==
		CTL_DONE &&
	    json_parse(text.p, text.len, &o, NULL) == -1)
		o = NULL;
	buf_free(&text);
	return o;
}

static void
add(struct json_object *o, const char *name, struct json_object *v)
{
	if (json_object_object_add(o, name, v) != 0)
		json_object_put(v);
}

static void
add_text(struct json_object *o, const char *name, const char *s)
{
	add(o, name, *s != '\0' ? json_object_new_string(s) : NULL);
}

/* Counts the people that an issuer let in, and finds their last use. */
static void
people(const struct ctl *c, const char *issuer, struct json_object *o)
{
	struct json_object *page = NULL, *items = NULL, *next = NULL;
	struct ctl all = *c;
	struct buf filters, text;
	const char *last = "";
	size_t n = 0;

	all.limit = CTL_LIMIT_MAX;
	all.kind = all.state = NULL;
	buf_init(&filters, 4096);
	admin_filter_put(&filters, ADMIN_FILTER_ISSUER, issuer);
	if (calls_list(&all, "identities", NULL,
		ipc_bytes(filters.p, filters.len), NULL, &text) == CTL_DONE &&
	    json_parse(text.p, text.len, &page, NULL) == 0 &&
	    json_object_object_get_ex(page, "items", &items) &&
	    json_object_is_type(items, json_type_array))
		n = json_object_array_length(items);
	for (size_t i = 0; i < n; i++) {
		const char *at = remote_document_text(
		    json_object_array_get_idx(items, i), "last_used_at");

		/* RFC 3339 in UTC: the later text is the later time. */
		if (strcmp(at, last) > 0)
			last = at;
	}
	add(o, "people", json_object_new_int64((int64_t)n));
	if (page != NULL &&
	    json_object_object_get_ex(page, "next_cursor", &next) &&
	    next != NULL)
		add(o, "more_people", json_object_new_boolean(true));
	add_text(o, "last_used_at", last);
	json_object_put(page);
	buf_free(&filters);
	buf_free(&text);
}

static void
issuer_of(const struct ctl *c, const struct remote_state *s, const char *name,
    struct json_object *issuer, struct json_object *o)
{
	bool force = strcmp(tables_text(s->answer, "in_force"), "true") == 0;
	struct json_object *rules = NULL, *mine = json_object_new_array();

	add_text(o, "state", force ? "in force" : "not in force");
	if (!force)
		add_text(o, "why", tables_text(s->answer, "why"));
	people(c, name, o);
	add_text(o, "issuer", remote_document_text(issuer, "issuer"));
	if (json_object_object_get_ex(s->document, "rules", &rules) &&
	    json_object_is_type(rules, json_type_array))
		for (size_t i = 0; i < json_object_array_length(rules); i++) {
			struct json_object *r =
			    json_object_array_get_idx(rules, i);

			if (strcmp(remote_document_text(r, "issuer"), name) ==
			    0)
				json_object_array_add(mine, json_object_get(r));
		}
	add(o, "rules", mine);
}

struct json_object *
remote_state_of(
    const struct ctl *c, const struct remote_state *s, const char *name)
{
	struct json_object *row = remote_kept_find(s->rows, name),
			   *issuer = remote_document_issuer(s->document, name),
			   *o = json_object_new_object(), *token, *files;
	int kind = remote_state_kind(s, name);

	if (o == NULL)
		return NULL;
	add_text(o, "name", name);
	add_text(o, "kind",
	    kind != -1 ? remote_word((enum remote_kind)kind) : "unknown");
	add_text(o, "url", remote_state_url(s, name));
	if (issuer != NULL) {
		issuer_of(c, s, name, issuer, o);
	} else if ((token = remote_state_token(c, s, name)) != NULL) {
		add_text(o, "state", remote_document_text(token, "state"));
		add_text(o, "last_used_at",
		    remote_document_text(token, "last_used_at"));
		add(o, "token", token);
	} else {
		add_text(o, "state", "gone");
		add_text(o, "why",
		    "its issuer or token was removed by other means; remote "
		    "remove forgets it");
	}
	if (row != NULL && json_object_object_get_ex(row, "files", &files))
		add(o, "files", json_object_get(files));
	return o;
}
