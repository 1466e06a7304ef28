#include <stdio.h>
#include <string.h>

#include <json-c/json.h>

#include "call.h"
#include "calls.h"
#include "crypto.h"
#include "ids.h"
#include "json.h"
#include "jsonw.h"
#include "limit.h"
#include "objects.h"
#include "tables.h"

/*
 * servers limits NAME [LIMIT=VALUE ...] shows or changes the limits of a
 * server's tools. A tool's version may set other limits. A change starts from
 * the limits that were read, and carries their hash. If another person has
 * changed the limits since, the hash is wrong, and the change is refused.
 */

/* Reads a number such as 4096, 64K, 256M or 2G; K is 1024, as in the
 * configuration. 0 or -1. */
static int
number(const char *s, uint64_t *out)
{
	uint64_t v = 0;
	size_t n = 0;

	for (; s[n] >= '0' && s[n] <= '9' && n < 15; n++)
		v = v * 10 + (uint64_t)(s[n] - '0');
	if (n == 0 || (s[n] != '\0' && s[n + 1] != '\0'))
		return -1;
	switch (s[n]) {
	case '\0':
		break;
	case 'K':
		v <<= 10;
		break;
	case 'M':
		v <<= 20;
		break;
	case 'G':
		v <<= 30;
		break;
	default:
		return -1;
	}
	*out = v;
	return 0;
}

/* Applies one LIMIT=VALUE; without a value, or with `default`, the limit is
 * unset (0). */
static int
assign(const char *word, uint64_t limits[LIMIT_COUNT])
{
	const char *eq = strchr(word, '=');
	struct err e;
	uint64_t v = 0;
	int l;

	if (eq == NULL || (l = limit_find(word, (size_t)(eq - word))) == -1) {
		fputs("mcpboxctl: not LIMIT=VALUE; limits are", stderr);
		for (int i = 0; i < LIMIT_COUNT; i++)
			fprintf(stderr, " %s", limit_info((enum limit)i)->name);
		fputc('\n', stderr);
		return -1;
	}
	if (eq[1] != '\0' && strcmp(eq + 1, "default") != 0 &&
	    (number(eq + 1, &v) == -1 ||
		limit_check((enum limit)l, v, &e) == -1)) {
		fprintf(stderr,
		    "mcpboxctl: %s must be from %llu to %llu (%s), or "
		    "default\n",
		    limit_info((enum limit)l)->name,
		    (unsigned long long)limit_info((enum limit)l)->min,
		    (unsigned long long)limit_info((enum limit)l)->max,
		    limit_info((enum limit)l)->unit);
		return -1;
	}
	limits[l] = v;
	return 0;
}

/* Reads the id and present limits from admind's answer. */
static int
read_present(
    const struct buf *text, struct ipc_id *server, uint64_t limits[LIMIT_COUNT])
{
	struct json_object *o = NULL, *all;
	const char *id;
	int64_t v;
	size_t n;
	int rc = -1;

	memset(limits, 0, LIMIT_COUNT * sizeof(limits[0]));
	if (json_parse(text->p, text->len, &o, NULL) == -1 || o == NULL ||
	    json_get_str(o, "server_id", &id, &n, NULL) != 1 ||
	    uuid_parse(id, n, server) == -1 ||
	    json_get_obj(o, "limits", &all, NULL) != 1)
		goto out;
	for (int i = 0; i < LIMIT_COUNT; i++)
		if (json_get_int(all, limit_info((enum limit)i)->name, 1,
			INT64_MAX, &v, NULL) == 1)
			limits[i] = (uint64_t)v;
	rc = 0;
out:
	json_object_put(o);
	return rc;
}

static enum ctl_status
print(const struct ctl *c, const uint8_t *p, size_t n)
{
	uint64_t limits[LIMIT_COUNT];
	struct ipc_id server;
	struct buf text;

	if (c->json)
		return tables_json(p, n);
	buf_init(&text, IPC_BLOB_MAX);
	buf_put(&text, p, n);
	if (text.failed || read_present(&text, &server, limits) == -1) {
		fputs("mcpboxctl: the answer is unreadable\n", stderr);
		buf_free(&text);
		return CTL_REFUSED;
	}
	buf_free(&text);
	for (int i = 0; i < LIMIT_COUNT; i++) {
		const struct limit_info *t = limit_info((enum limit)i);

		if (limits[i] == 0)
			printf("%-16s default\n", t->name);
		else
			printf("%-16s %llu %s\n", t->name,
			    (unsigned long long)limits[i], t->unit);
	}
	return CTL_DONE;
}

static enum ctl_status
set(const struct ctl *c, const struct buf *present)
{
	uint64_t limits[LIMIT_COUNT];
	char text[UUID_TEXT_LEN + 1];
	enum ctl_status status;
	struct ipc_id server;
	struct ipc_hash seen;
	struct buf body, answer;
	struct jsonw w;

	if (read_present(present, &server, limits) == -1) {
		fputs("mcpboxctl: the answer is unreadable\n", stderr);
		return CTL_REFUSED;
	}
	sha256(present->p, present->len, &seen);
	for (int i = 3; i < c->nwords; i++)
		if (assign(c->words[i], limits) == -1)
			return CTL_USAGE;
	uuid_text(&server, text);
	buf_init(&body, 4096);
	jsonw_open(&w, &body);
	jsonw_obj(&w);
	jsonw_name(&w, "limits");
	jsonw_obj(&w);
	for (int i = 0; i < LIMIT_COUNT; i++)
		if (limits[i] != 0)
			jsonw_kv_int(&w, limit_info((enum limit)i)->name,
			    (int64_t)limits[i]);
	jsonw_obj_end(&w);
	jsonw_obj_end(&w);
	buf_putc(&body, '\0');
	status = call_action(
	    c, "server_limits_set", text, &seen, (const char *)body.p, &answer);
	if (status == CTL_DONE)
		status = print(c, answer.p, answer.len);
	buf_free(&answer);
	buf_free(&body);
	return status;
}

static enum ctl_status
set_expose(const struct ctl *c)
{
	enum ctl_status status;
	char word[64], *words[] = {word};
	struct buf answer;

	snprintf(word, sizeof(word), "expose=%s", c->words[3]);
	status = call_words(
	    c, "server_expose_set", c->words[2], NULL, words, 1, &answer);
	buf_free(&answer);
	if (status != CTL_DONE)
		return status;
	puts(c->json ? "{\"ok\":true}"
		     : "done: versions that are made from now on are named so. "
		       "Those that exist keep the name that was reviewed; a "
		       "tool gets the new one with its next approved version.");
	return CTL_DONE;
}

enum ctl_status
limits_command(const struct ctl *c)
{
	enum ctl_status status;
	struct buf text;

	if (c->nwords == 4 && strcmp(c->words[1], "expose") == 0)
		return set_expose(c);
	if (c->nwords < 2 || strcmp(c->words[1], "limits") != 0)
		return c->nwords <= 2 ? tables_command(c) : CTL_USAGE;
	if (c->nwords < 3)
		return CTL_USAGE;
	status = calls_query(c, "limits", c->words[2], &text);
	if (status == CTL_DONE)
		status =
		    c->nwords == 3 ? print(c, text.p, text.len) : set(c, &text);
	buf_free(&text);
	return status;
}
