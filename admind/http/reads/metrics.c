/*
 * GET /metrics, for Prometheus: with a login; or, since a scraper can't log in,
 * as bearer a script's key with the scope metrics, or the token of
 * metrics_token_file.
 *
 * Digests are compared, not tokens, so the time of a wrong guess says nothing
 * about the right token.
 */
#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "ask.h"
#include "crypto.h"
#include "problem.h"
#include "reads.h"
#include "token.h"
#include "web.h"

#define KEY_BEGINS "Bearer " SCRIPT_KEY_PREFIX

enum { METRICS_TOKEN_MAX = 1024, METRICS_TOKEN_MIN = 16 };

/* Loads the token, which is one line. Call it before the process confines
 * itself, since it opens a file. */
int
metrics_load(struct web *web, const char *path, struct err *e)
{
	char token[METRICS_TOKEN_MAX + 1];
	ssize_t n;
	int fd;

	if (*path == '\0')
		return 0;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd == -1)
		return err_sys(e, FAILURE_INTERNAL, "%s", path);
	n = read(fd, token, METRICS_TOKEN_MAX);
	close(fd);
	if (n < 0)
		return err_sys(e, FAILURE_INTERNAL, "%s", path);
	while (n > 0 && (token[n - 1] == '\n' || token[n - 1] == '\r'))
		n--;
	if (n < METRICS_TOKEN_MIN)
		return err_set(e, FAILURE_INTERNAL,
		    "%s: a token has at least %d characters", path,
		    METRICS_TOKEN_MIN);
	sha256(token, (size_t)n, &web->metrics_token);
	explicit_bzero(token, sizeof(token));
	web->have_metrics_token = true;
	return 0;
}

static void
show(struct call *c, struct ipc_frame *f)
{
	struct ipc_metrics m;

	if (f->type != IPC_METRICS || ipc_decode(f, &m, NULL) == -1 ||
	    !utf8_valid(m.text.p, m.text.n)) {
		problem_send(c, FAILURE_INTERNAL,
		    "admind's answer was unreadable", NULL);
		return;
	}
	httpd_reply(c->req, 200, "text/plain; version=0.0.4; charset=utf-8",
	    m.text.p, m.text.n);
	call_free(c);
}

static void
ask_metrics(struct call *c)
{
	struct ipc_metrics_get m = {0};

	ask_admind(c, IPC_METRICS_GET, &m, show);
}

static void
logged_in(struct call *c, struct ipc_frame *f)
{
	if (f->type != IPC_SESSION_INFO)
		problem_send(c, FAILURE_INTERNAL,
		    "the vault's answer was unreadable", NULL);
	else
		ask_metrics(c);
}

static void
key_known(struct call *c, struct ipc_frame *f)
{
	if (f->type != IPC_OK)
		problem_send(c, FAILURE_INTERNAL,
		    "admind's answer was unreadable", NULL);
	else
		ask_metrics(c);
}

void
metrics_get(struct call *c)
{
	struct ipc_whoami who = {0};
	struct ipc_hash given;
	const char *text;
	unsigned count;

	text = http1_field(httpd_request(c->req), "authorization", &count);
	if (text != NULL &&
	    strncasecmp(text, KEY_BEGINS, strlen(KEY_BEGINS)) != 0) {
		if (count == 1 && c->web->have_metrics_token &&
		    strncasecmp(text, "Bearer ", 7) == 0) {
			sha256(text + 7, strlen(text + 7), &given);
			if (ct_equal(&given, &c->web->metrics_token,
				sizeof(given))) {
				ask_metrics(c);
				return;
			}
		}
		problem_send(c, FAILURE_UNAUTHENTICATED,
		    "this is not the token of metrics_token_file", NULL);
		return;
	}
	if (token_read(c) == -1)
		return;
	if (c->by_key) {
		token_key_check(c, key_known);
		return;
	}
	who.token = ipc_str(c->token);
	ask_vault(c, IPC_WHOAMI, &who, logged_in);
}
