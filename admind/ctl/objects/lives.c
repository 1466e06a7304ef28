/*
 * Commands servers, tools and sources with their verbs, for servers, tools,
 * versions and sources. A verb that changes something does one action
 * (common/admin/admin_action.def). The table says how the words after the verb
 * become the members of the action's body.
 */
#include <stdio.h>
#include <string.h>

#include <json-c/json.h>

#include "approvals.h"
#include "call.h"
#include "calls.h"
#include "ids.h"
#include "json.h"
#include "objects.h"
#include "prefix.h"
#include "tables.h"

enum { WORDS_MAX = 12, WORD_MAX = 4096, ID_MAX = 600 };

static const struct {
	const char *command, *verb, *action;
	bool id;                /* the first word after the verb is the id */
	int least;              /* least number of words after verb and id */
	const char *members[3]; /* names of these words; others: name=value */
	const char *said;       /* without --json: "NAME is SAID" */
} verbs[] = {
    {"servers", "create", "server_create", false, 1, {"name", "description"},
	"there and runs"},
    {"servers", "describe", "server_update", true, 1, {"description"},
	"described"},
    {"servers", "start", "server_start", true, 0, {NULL}, "running"},
    {"servers", "stop", "server_stop", true, 0, {"reason"}, "stopped"},
    {"servers", "delete", "server_delete", true, 0, {NULL}, "deleted"},
    {"tools", "describe", "tool_update", true, 1, {NULL}, "a new draft"},
    {"tools", "enable", "tool_enable", true, 0, {NULL}, "enabled"},
    {"tools", "disable", "tool_disable", true, 0, {"reason"}, "disabled"},
    {"tools", "delete", "tool_delete", true, 0, {NULL}, "deleted"},
    {"tools", "rollback", "version_rollback", true, 1, {"version"},
	"a draft with that version's content"},
    {"tools", "prune", "versions_prune", true, 0, {"keep"}, NULL},
    {"sources", "add", "source_add", true, 2, {"name", "url"}, NULL},
    {"sources", "delete", "source_delete", true, 0, {NULL}, "forgotten"},
};

enum { NVERBS = sizeof(verbs) / sizeof(verbs[0]) };

static int
hash_of(const struct ctl *c, struct ipc_hash *seen)
{
	if (c->hash == NULL)
		return 0;
	if (strlen(c->hash) == HEX32_LEN &&
	    hex_decode(c->hash, HEX32_LEN, seen->b) == 0)
		return 1;
	fputs("mcpboxctl: --hash has 64 hex digits\n", stderr);
	return -1;
}

/* Writes "member=word", or only word if member is NULL. 0, or -1 if that is too
 * long. */
static int
name_word(const char *member, const char *word, char *out)
{
	int n = member != NULL ? snprintf(out, WORD_MAX, "%s=%s", member, word)
			       : snprintf(out, WORD_MAX, "%s", word);

	if (n >= 0 && n < WORD_MAX)
		return 0;
	fputs("mcpboxctl: that is too long\n", stderr);
	return -1;
}

static enum ctl_status
act(const struct ctl *c, int v)
{
	static char word[WORDS_MAX][WORD_MAX];
	int first = 2 + verbs[v].id, n = c->nwords - first, known, given = 0;
	char *words[WORDS_MAX];
	struct ipc_hash seen;
	enum ctl_status status;
	struct buf answer;
	int hashed;

	/* --reason TEXT takes the place of the word for the reason. */
	if (c->reason != NULL) {
		if (n != 0 || verbs[v].members[0] == NULL ||
		    strcmp(verbs[v].members[0], "reason") != 0)
			return CTL_USAGE;
		if (name_word("reason", c->reason, word[n]) == -1)
			return CTL_USAGE;
		words[n] = word[n];
		given = 1;
	}
	if (n < verbs[v].least || n > WORDS_MAX ||
	    (hashed = hash_of(c, &seen)) == -1)
		return CTL_USAGE;
	for (int i = 0; i < n; i++) {
		known = i < 3 && verbs[v].members[i] != NULL;
		if (name_word(known ? verbs[v].members[i] : NULL,
			c->words[first + i], word[i]) == -1)
			return CTL_USAGE;
		words[i] = word[i];
	}
	status = call_words(c, verbs[v].action, verbs[v].id ? c->words[2] : "",
	    hashed ? &seen : NULL, words, n + given, &answer);
	if (status == CTL_DONE && c->json)
		status = tables_json(answer.p, answer.len);
	else if (status == CTL_DONE && verbs[v].said == NULL)
		status = tables_show(c, verbs[v].command, &answer);
	else if (status == CTL_DONE)
		printf("%s is %s\n", c->words[2], verbs[v].said);
	buf_free(&answer);
	return status;
}

/* Prints a list with one filter, or without. */
static enum ctl_status
list(const struct ctl *c, const char *what, enum admin_filter filter,
    const char *value)
{
	enum ctl_status status;
	struct buf filters, text;

	buf_init(&filters, IPC_FRAME_MAX);
	if (value != NULL)
		admin_filter_put(&filters, filter, value);
	status = calls_list(
	    c, what, NULL, ipc_bytes(filters.p, filters.len), c->cursor, &text);
	if (status == CTL_DONE)
		status = tables_show(c, what, &text);
	buf_free(&text);
	buf_free(&filters);
	return status;
}

/* Runs tools version TOOL N, or (diff) tools diff TOOL FROM TO. */
static enum ctl_status
version(const struct ctl *c, bool diff)
{
	struct json_object *o = NULL, *changes;
	enum ctl_status status;
	char id[600];
	struct buf text;
	const char *s;
	struct err e;
	int n;

	n = diff ? snprintf(id, sizeof(id), "%s/%s-%s", c->words[2],
		       c->words[3], c->words[4])
		 : snprintf(id, sizeof(id), "%s/%s", c->words[2], c->words[3]);
	if (n < 0 || (size_t)n >= sizeof(id))
		return CTL_USAGE;
	status = calls_query(c, diff ? "version_diff" : "version", id, &text);
	if (status == CTL_DONE && (!diff || c->json)) {
		status = tables_show(c, "version", &text);
	} else if (status == CTL_DONE) {
		if (json_parse(text.p, text.len, &o, &e) == -1 ||
		    !json_object_object_get_ex(o, "changes", &changes)) {
			fputs("mcpboxctl: the answer is unreadable\n", stderr);
			status = CTL_REFUSED;
		} else {
			s = json_object_to_json_string_ext(
			    changes, JSON_C_TO_STRING_PLAIN);
			buf_clear(&text);
			buf_puts(&text, s);
			status = review_print(c, &text);
		}
		json_object_put(o);
	}
	buf_free(&text);
	return status;
}

/* Runs sources [SERVER]. People know a server's name, but the filter takes an
 * id, so admind is asked for the id first. */
static enum ctl_status
sources(const struct ctl *c, const char *server)
{
	struct json_object *o = NULL;
	enum ctl_status status;
	const char *id = NULL;
	struct buf text;
	struct err e;
	size_t n;

	if (server == NULL)
		return list(c, "sources", ADMIN_FILTER_SERVER, NULL);
	status = calls_query(c, "server", server, &text);
	if (status == CTL_DONE) {
		if (json_parse(text.p, text.len, &o, &e) == -1 ||
		    json_get_str(o, "id", &id, &n, &e) != 1) {
			fputs("mcpboxctl: the answer is unreadable\n", stderr);
			status = CTL_REFUSED;
		} else {
			status = list(c, "sources", ADMIN_FILTER_SERVER, id);
		}
		json_object_put(o);
	}
	buf_free(&text);
	return status;
}

/*
 * Runs sources discover ID, import ID NAME ..., or authorise ID REDIRECT_URI.
 * Their work is done in the sandbox and waits for another machine.
 */
static enum ctl_status
source_run(const struct ctl *c, enum source_op op)
{
	struct ipc_source_run m = {.op = (uint8_t)op};
	struct buf text, answer;
	enum ctl_status status;

	if ((status = prefix_whole(c, "source", c->words[2], &m.source)) !=
	    CTL_DONE)
		return status;
	buf_init(&text, IPC_FRAME_MAX);
	for (int i = 3; i < c->nwords; i++)
		buf_putf(&text, "%s%s", i > 3 ? "\n" : "", c->words[i]);
	if (text.failed) {
		buf_free(&text);
		return CTL_USAGE;
	}
	m.text = ipc_bytes(text.p, text.len);
	status = calls_json(c, IPC_SOURCE_RUN, &m, &answer);
	buf_free(&text);
	if (status == CTL_DONE)
		status = tables_show(c, "source", &answer);
	buf_free(&answer);
	return status;
}

static enum ctl_status
sources_command(const struct ctl *c, const char *verb)
{
	if (strcmp(verb, "discover") == 0 && c->nwords == 3)
		return source_run(c, SOURCE_DISCOVER);
	if (strcmp(verb, "import") == 0 && c->nwords >= 4)
		return source_run(c, SOURCE_IMPORT);
	if (strcmp(verb, "authorise") == 0 && c->nwords == 4)
		return source_run(c, SOURCE_AUTHORISE);
	if (strcmp(verb, "show") == 0 && c->nwords == 3) {
		char text_id[UUID_TEXT_LEN + 1];
		enum ctl_status status;
		struct ipc_id id;
		struct buf text;

		if ((status = prefix_whole(c, "source", c->words[2], &id)) !=
		    CTL_DONE)
			return status;
		uuid_text(&id, text_id);
		status = calls_query(c, "source", text_id, &text);
		if (status == CTL_DONE)
			status = tables_show(c, "source", &text);
		buf_free(&text);
		return status;
	}
	return c->nwords <= 2 ? sources(c, c->nwords == 2 ? verb : NULL)
			      : CTL_USAGE;
}

/* Returns the index of the word that names the object: the word after a verb
 * that wants one, or the only word after the command. 0: no word names an
 * object. */
static int
object_word(const struct ctl *c)
{
	static const char *const reads[] = {"versions", "version", "diff"};
	const char *command = c->words[0];

	if (c->nwords == 2 && strcmp(command, "sources") != 0)
		return 1;
	if (c->nwords < 3)
		return 0;
	for (int v = 0; v < NVERBS; v++)
		if (strcmp(command, verbs[v].command) == 0 &&
		    strcmp(c->words[1], verbs[v].verb) == 0)
			return verbs[v].id ? 2 : 0;
	for (size_t i = 0; i < sizeof(reads) / sizeof(reads[0]); i++)
		if (strcmp(command, "tools") == 0 &&
		    strcmp(c->words[1], reads[i]) == 0)
			return 2;
	return 0;
}

static enum ctl_status run(const struct ctl *);

/* Completes an id of which the first digits are given, and runs the command. */
enum ctl_status
lives_command(const struct ctl *c)
{
	char kind[16], whole[ID_MAX];
	struct ctl named = *c;
	enum ctl_status status;
	char *words[WORDS_MAX + 3];
	int at = object_word(c);

	if (at == 0 || c->nwords > WORDS_MAX + 3)
		return run(c);
	snprintf(kind, sizeof(kind), "%.*s", (int)strlen(c->words[0]) - 1,
	    c->words[0]);
	status = prefix_named(c, kind, c->words[at], whole, sizeof(whole));
	if (status != CTL_DONE)
		return status;
	memcpy(words, c->words, (size_t)c->nwords * sizeof(words[0]));
	words[at] = whole;
	named.words = words;
	return run(&named);
}

static enum ctl_status
run(const struct ctl *c)
{
	const char *command = c->words[0];
	const char *verb = c->nwords > 1 ? c->words[1] : "";
	bool tools = strcmp(command, "tools") == 0;

	for (int v = 0; v < NVERBS; v++)
		if (strcmp(command, verbs[v].command) == 0 &&
		    strcmp(verb, verbs[v].verb) == 0 &&
		    c->nwords >= 2 + verbs[v].id)
			return act(c, v);
	if (tools && strcmp(verb, "versions") == 0 && c->nwords == 3)
		return list(c, "versions", ADMIN_FILTER_TOOL, c->words[2]);
	if (tools && strcmp(verb, "version") == 0 && c->nwords == 4)
		return version(c, false);
	if (tools && strcmp(verb, "diff") == 0 && c->nwords == 5)
		return version(c, true);
	if (strcmp(command, "sources") == 0)
		return sources_command(c, verb);
	if (strcmp(command, "servers") == 0)
		return limits_command(c);
	return c->nwords <= 2 ? tables_command(c) : CTL_USAGE;
}
