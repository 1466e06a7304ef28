#include <stdio.h>
#include <string.h>

#include <json-c/json.h>

#include "admin_body.h"
#include "call.h"
#include "calls.h"
#include "ctl.h"
#include "ids.h"
#include "prefix.h"
#include "tables.h"

/* mcpboxctl call ACTION [ID] [name=value ...] does any action of
 * common/admin/admin_action.def. Other commands use call_action(), too. */

enum ctl_status
call_action(const struct ctl *c, const char *action, const char *id,
    const struct ipc_hash *seen, const char *body, struct buf *answer)
{
	struct ipc_admin_action m = {.action = ipc_str(action),
	    .id = ipc_str(id),
	    .key = ipc_str(c->key),
	    .body = ipc_str(body)};
	enum ctl_status status;
	struct ipc_admin_json a;
	struct ipc_frame f;

	buf_init(answer, IPC_BLOB_MAX);
	if (seen != NULL)
		m.seen = *seen;
	status = calls_ask(c, "admind", IPC_ROLE_ADMIND, IPC_ADMIN_ACTION, &m,
	    IPC_ADMIN_JSON, &f);
	if (status != CTL_DONE)
		return status;
	if (ipc_decode(&f, &a, NULL) == -1) {
		fputs("mcpboxctl: the answer is unreadable\n", stderr);
		status = CTL_REFUSED;
	} else {
		buf_put(answer, a.json.p, a.json.n);
	}
	ipc_frame_free(&f);
	return status;
}

enum ctl_status
call_words(const struct ctl *c, const char *action, const char *id,
    const struct ipc_hash *seen, char *const *words, int n, struct buf *answer)
{
	const struct admin_action *a = admin_action_find(ipc_str(action));
	struct json_object *o = json_object_new_object();
	enum ctl_status status = CTL_USAGE;
	struct err e;

	buf_init(answer, IPC_BLOB_MAX);
	if (a == NULL || o == NULL)
		goto out;
	for (int i = 0; i < n; i++)
		if (admin_body_word(a, o, words[i], &e) == -1)
			goto wrong;
	if (admin_body_check(a, o, &e) == -1)
		goto wrong;
	status = call_action(c, action, id, seen,
	    json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN), answer);
	goto out;
wrong:
	fprintf(stderr, "mcpboxctl: %s\n", e.text);
out:
	json_object_put(o);
	return status;
}

static enum ctl_status
list(void)
{
	for (const struct admin_action *a = admin_actions; a->name != NULL;
	    a++) {
		printf(
		    "%s%s", a->name, strchr(a->path, '{') != NULL ? " ID" : "");
		if (*a->members != '\0')
			printf(" %s", a->members);
		printf("\n    %s%s\n", a->doc,
		    a->seen == ADMIN_SEEN_REQUIRED ? " (needs --hash)" : "");
	}
	return CTL_DONE;
}

/* Copies the action's ID argument to `whole`. If the action's path begins with
 * a kind of object in `kinds`, the first digits of an id are enough, and
 * `whole` gets the complete id. */
static enum ctl_status
whole_id(const struct ctl *c, const struct admin_action *a,
    char whole[PREFIX_PATH_MAX])
{
	static const struct {
		const char *path, *kind;
	} kinds[] = {{"/api/servers/{id}", "server"},
	    {"/api/tools/{id}", "tool"}, {"/api/sources/{id}", "source"},
	    {"/api/approvals/{id}", "approval"}};
	const char *word = c->words[2];

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strncmp(a->path, kinds[i].path, strlen(kinds[i].path)) == 0)
			return prefix_path(
			    c, kinds[i].kind, word, whole, PREFIX_PATH_MAX);
	if (snprintf(whole, PREFIX_PATH_MAX, "%s", word) < PREFIX_PATH_MAX)
		return CTL_DONE;
	fputs("mcpboxctl: that is too long\n", stderr);
	return CTL_USAGE;
}

enum ctl_status
call_command(const struct ctl *c)
{
	char whole[PREFIX_PATH_MAX];
	const struct admin_action *a;
	struct ipc_hash seen;
	enum ctl_status status;
	struct buf answer;
	bool id;

	if (c->nwords == 1)
		return list();
	a = admin_action_find(ipc_str(c->words[1]));
	if (a == NULL) {
		fputs("mcpboxctl: no such action; `mcpboxctl call` lists "
		      "them\n",
		    stderr);
		return CTL_USAGE;
	}
	id = strchr(a->path, '{') != NULL;
	if (c->nwords < 2 + id ||
	    (c->key != NULL && !admin_action_key(ipc_str(c->key))))
		return CTL_USAGE;
	if (c->hash != NULL &&
	    (strlen(c->hash) != HEX32_LEN ||
		hex_decode(c->hash, HEX32_LEN, seen.b) == -1)) {
		fputs("mcpboxctl: --hash has 64 hex digits\n", stderr);
		return CTL_USAGE;
	}
	if (id && (status = whole_id(c, a, whole)) != CTL_DONE)
		return status;
	status = call_words(c, a->name, id ? whole : "",
	    c->hash != NULL ? &seen : NULL, c->words + 2 + id,
	    c->nwords - 2 - id, &answer);
	if (status == CTL_DONE && answer.len == 0)
		puts(c->json ? "{\"ok\":true}" : "done");
	else if (status == CTL_DONE)
		status = tables_show(c, a->name, &answer);
	buf_free(&answer);
	return status;
}
