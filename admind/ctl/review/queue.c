#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include <json-c/json.h>

#include "approvals.h"
#include "calls.h"
#include "json.h"
#include "tables.h"

/*
 * Commands approvals list and approvals review. The review shows one waiting
 * request after the other, as `approvals show` does. The hash that was computed
 * over the shown content goes into the approval, and the vault approves that
 * content or none. So no person approves unseen content, even if it is changed
 * during the review.
 *
 * A yes is the line "y", typed after the question. Earlier input is thrown
 * away, and after a line that is no answer we ask again. The end of the input
 * ends the review.
 */

enum { ANSWER_MAX = 1024 };

struct queue {
	const struct ctl *c;
	unsigned approved, rejected, left, failed;
	bool quit;
};

/* Reads one line from the terminal, without its newline. -1: the input ended,
 * or the line is too long or not text; *ended says which. */
static int
read_answer(char line[ANSWER_MAX], bool *ended)
{
	size_t n = 0;
	bool bad = false;
	ssize_t r;
	char c;

	*ended = false;
	for (;;) {
		if ((r = read(STDIN_FILENO, &c, 1)) == -1 && errno == EINTR)
			continue;
		if (r != 1) {
			*ended = true;
			return -1;
		}
		if (c == '\n')
			break;
		if (n + 1 == ANSWER_MAX || (unsigned char)c < ' ' || c == 0x7f)
			bad = true;
		else
			line[n++] = c;
	}
	line[n] = '\0';
	return bad || !utf8_valid((const uint8_t *)line, n) ? -1 : 0;
}

/* Asks a question and reads the answer; earlier input is thrown away. Returns
 * as read_answer does. */
static int
question(const char *text, char line[ANSWER_MAX], bool *ended)
{
	(void)tcflush(STDIN_FILENO, TCIFLUSH);
	fputs(text, stdout);
	fflush(stdout);
	return read_answer(line, ended);
}

/* Reads y, n, s or q. */
static char
decision(bool readable)
{
	char line[ANSWER_MAX];
	bool ended;

	for (;;) {
		if (question(readable ? "approve? y(es) n(o) s(kip) q(uit): "
				      : "reject? n(o) s(kip) q(uit): ",
			line, &ended) == -1) {
			if (ended)
				return 'q';
		} else if (strlen(line) == 1 &&
		    strchr(readable ? "ynsq" : "nsq", line[0]) != NULL) {
			return line[0];
		}
		puts(readable ? "Please answer y, n, s or q."
			      : "Please answer n, s or q.");
	}
}

/* Reads the reason of a rejection, which the request's author reads. false: the
 * input ended. */
static bool
reason(char line[ANSWER_MAX])
{
	bool ended;

	for (;;) {
		if (question("reason (its author reads it): ", line, &ended) ==
			0 &&
		    line[strspn(line, " ")] != '\0')
			return true;
		if (ended)
			return false;
		puts("A rejection needs a reason, in one line.");
	}
}

static enum ctl_status
decide(struct queue *q, const struct ipc_id *id, const struct content *shown,
    bool approve, const char *why)
{
	enum ctl_status status;
	const char *state;
	int fd;

	if ((fd = calls_open(q->c, "admind-vault", IPC_ROLE_VAULT)) == -1)
		return CTL_UNREACHABLE;
	status =
	    review_decide(q->c, fd, approve, id, &shown->hash, why, &state);
	close(fd);
	if (status == CTL_REFUSED) {
		q->failed++;
		return CTL_DONE; /* stderr says why; go on with the next
				  * request */
	}
	if (status != CTL_DONE)
		return status;
	if (strcmp(state, "pending") == 0)
		puts("approved; another person must, too");
	else
		puts(state);
	if (approve)
		q->approved++;
	else
		q->rejected++;
	return CTL_DONE;
}

/* Reviews one request: shows it, asks, decides. */
static enum ctl_status
one(struct queue *q, const struct ipc_id *id)
{
	char text[UUID_TEXT_LEN + 1], why[ANSWER_MAX] = "";
	struct content shown;
	enum ctl_status status;
	bool readable;
	char answer;

	if ((status = approvals_fetch(q->c, id, false, &shown)) != CTL_DONE) {
		q->failed += status == CTL_REFUSED;
		return status == CTL_REFUSED ? CTL_DONE : status;
	}
	if (!ipc_streq(shown.m.state, "pending"))
		goto out; /* the request was decided since the list was read */
	uuid_text(id, text);
	putchar('\n');
	readable = approvals_print(q->c, &shown, text) == CTL_DONE;
	/* If the difference can't be shown, the review goes on, because the
	 * whole content was shown. */
	if (readable)
		(void)review_diff(q->c, id, &shown, true);
	putchar('\n');
	answer = decision(readable);
	if (answer == 'n' && !reason(why))
		answer = 'q';
	if (answer == 'y' || answer == 'n')
		status = decide(q, id, &shown, answer == 'y', why);
	else
		q->left++;
	q->quit = answer == 'q';
out:
	approvals_free(&shown);
	return status;
}

/* Reviews one page of the list. *cursor is replaced by the cursor of the next
 * page, or NULL. */
static enum ctl_status
page(struct queue *q, char **cursor)
{
	struct json_object *o = NULL, *items, *v;
	struct ctl c = *q->c;
	enum ctl_status status;
	struct ipc_id id;
	struct buf text;
	struct err err;
	const char *s;

	c.state = "pending";
	c.cursor = *cursor;
	status = calls_query(&c, "approvals", NULL, &text);
	free(*cursor);
	*cursor = NULL;
	if (status != CTL_DONE)
		goto out;
	if (json_parse(text.p, text.len, &o, &err) == -1 ||
	    !json_object_object_get_ex(o, "items", &items) ||
	    !json_object_is_type(items, json_type_array)) {
		fputs("mcpboxctl: the answer is unreadable\n", stderr);
		status = CTL_REFUSED;
		goto out;
	}
	for (size_t i = 0; status == CTL_DONE && !q->quit &&
	    i < json_object_array_length(items);
	    i++) {
		s = json_object_object_get_ex(
			json_object_array_get_idx(items, i), "id", &v)
		    ? json_object_get_string(v)
		    : "";
		if (s == NULL || uuid_parse(s, strlen(s), &id) == -1) {
			fputs("mcpboxctl: the answer is unreadable\n", stderr);
			status = CTL_REFUSED;
		} else {
			status = one(q, &id);
		}
	}
	if (json_object_object_get_ex(o, "next_cursor", &v) &&
	    json_object_is_type(v, json_type_string))
		*cursor = strdup(json_object_get_string(v));
out:
	json_object_put(o);
	buf_free(&text);
	return status;
}

enum ctl_status
queue_command(const struct ctl *c)
{
	struct queue q = {.c = c};
	enum ctl_status status;
	char *cursor = NULL;

	if (c->nwords != 2 || c->json || c->all || c->state != NULL ||
	    c->hash != NULL || c->reason != NULL)
		return CTL_USAGE;
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
		fputs("mcpboxctl: approvals review asks a person, and needs a "
		      "terminal: use approvals show and approve\n",
		    stderr);
		return CTL_USAGE;
	}
	do {
		status = page(&q, &cursor);
	} while (status == CTL_DONE && !q.quit && cursor != NULL);
	free(cursor);
	if (status == CTL_DONE)
		printf("\n%u approved, %u rejected, %u left\n", q.approved,
		    q.rejected, q.left + q.failed);
	return status == CTL_DONE && q.failed > 0 ? CTL_REFUSED : status;
}

/* Tells whether a filter's word is allowed, or not given (NULL). With a
 * misspelt word the queue would look empty. */
static bool
one_of(const char *word, const char *const *words)
{
	while (word != NULL && *words != NULL && strcmp(*words, word) != 0)
		words++;
	return word == NULL || *words != NULL;
}

/* Lists the requests that wait for a decision, or those that --all or --state
 * asks for. */
enum ctl_status
queue_list(const struct ctl *c)
{
	static const char *const states[] = {
	    "pending", "approved", "rejected", "superseded", "expired", NULL};
	static const char *const kinds[] = {
	    "tool", "module", "network", "call", NULL};
	struct ctl pending = *c;

	if (c->nwords != 2 || (c->all && c->state != NULL) ||
	    !one_of(c->state, states) || !one_of(c->kind, kinds))
		return CTL_USAGE;
	if (!c->all && c->state == NULL)
		pending.state = "pending";
	return tables_command(&pending);
}
