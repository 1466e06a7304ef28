/*
 * Commands about remotes: remote [list | show | add | check | remove]
 * (docs/decisions/0101).
 */
#include <stdio.h>
#include <string.h>

#include <json-c/json.h>

#include "remote.h"

#include "remote_document.h"
#include "remote_state.h"
#include "tables.h"

static const char *const words[REMOTE_KIND_COUNT] = {
    "oidc", "worker", "access", "token", "tailscale"};

const char *
remote_word(enum remote_kind kind)
{
	return words[kind];
}

int
remote_kind_of(const char *word)
{
	for (int i = 0; i < REMOTE_KIND_COUNT; i++)
		if (strcmp(word, words[i]) == 0)
			return i;
	return -1;
}

bool
remote_name_ok(const char *name)
{
	size_t n = strlen(name);

	return n > 0 && n <= REMOTE_NAME_MAX && *name >= 'a' && *name <= 'z' &&
	    strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == n;
}

int
remote_host(const char *url, char host[REMOTE_HOST_MAX + 1],
    char authority[REMOTE_HOST_MAX + 7])
{
	static const char scheme[] = "https://", path[] = "/mcp";
	const char *p = url + sizeof(scheme) - 1;
	size_t n, port = 0;

	if (strncmp(url, scheme, sizeof(scheme) - 1) != 0)
		return -1;
	n = strspn(p,
	    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	    "0123456789.-");
	if (n == 0 || n > REMOTE_HOST_MAX)
		return -1;
	if (p[n] == ':') {
		port = strspn(p + n + 1, "0123456789");
		if (port == 0 || port > 5)
			return -1;
		port++;
	}
	if (strcmp(p + n + port, path) != 0)
		return -1;
	if (authority != NULL) {
		memcpy(authority, p, n + port);
		authority[n + port] = '\0';
	}
	if (host != NULL && host != authority) {
		memcpy(host, p, n);
		host[n] = '\0';
	}
	return 0;
}

static enum ctl_status
print(const struct ctl *c, struct json_object *o)
{
	const char *s = json_object_to_json_string_ext(
	    o, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE);
	enum ctl_status status;
	struct buf b;

	buf_init(&b, 16 * IPC_BLOB_MAX);
	buf_puts(&b, s);
	status = b.failed ? CTL_REFUSED : tables_show(c, "remotes", &b);
	buf_free(&b);
	return status;
}

/* Puts a remote into the list, unless it is there. */
static void
list_one(const struct ctl *c, const struct remote_state *s, const char *name,
    struct json_object *items)
{
	struct json_object *o;

	for (size_t i = 0; i < json_object_array_length(items); i++)
		if (strcmp(remote_document_text(
			       json_object_array_get_idx(items, i), "name"),
			name) == 0)
			return;
	if ((o = remote_state_of(c, s, name)) != NULL &&
	    json_object_array_add(items, o) != 0)
		json_object_put(o);
}

/* Lists the remotes that were added here, then the document's other issuers:
 * they are ways in, too. */
static enum ctl_status
list(const struct ctl *c)
{
	struct json_object *items = json_object_new_array(), *issuers = NULL,
			   *o = json_object_new_object();
	struct remote_state s;
	enum ctl_status status = remote_state_begin(c, &s);

	if (status != CTL_DONE || items == NULL || o == NULL)
		goto out;
	for (size_t i = 0; i < json_object_array_length(s.rows); i++)
		list_one(c, &s,
		    remote_document_text(
			json_object_array_get_idx(s.rows, i), "name"),
		    items);
	if (s.document != NULL &&
	    json_object_object_get_ex(s.document, "issuers", &issuers) &&
	    json_object_is_type(issuers, json_type_array))
		for (size_t i = 0; i < json_object_array_length(issuers); i++)
			list_one(c, &s,
			    remote_document_text(
				json_object_array_get_idx(issuers, i), "name"),
			    items);
	json_object_object_add(o, "items", json_object_get(items));
	status = print(c, o);
out:
	json_object_put(items);
	json_object_put(o);
	remote_state_end(&s);
	return status;
}

static enum ctl_status
show(const struct ctl *c)
{
	struct json_object *o = NULL;
	struct remote_state s;
	enum ctl_status status = remote_state_begin(c, &s);

	if (status == CTL_DONE && remote_state_kind(&s, c->words[2]) == -1)
		status = remote_state_unknown(c->words[2]);
	else if (status == CTL_DONE &&
	    (o = remote_state_of(c, &s, c->words[2])) != NULL)
		status = print(c, o);
	json_object_put(o);
	remote_state_end(&s);
	return status;
}

enum ctl_status
remote_command(const struct ctl *c)
{
	const char *verb = c->nwords > 1 ? c->words[1] : "list";

	if (strcmp(verb, "list") == 0 && c->nwords <= 2)
		return list(c);
	if (strcmp(verb, "add") == 0 && c->nwords == 4)
		return remote_add(c);
	if (c->nwords != 3)
		return CTL_USAGE;
	if (strcmp(verb, "show") == 0)
		return show(c);
	if (strcmp(verb, "check") == 0)
		return remote_check(c);
	if (strcmp(verb, "remove") == 0)
		return remote_remove(c);
	return CTL_USAGE;
}
