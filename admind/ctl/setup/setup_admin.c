#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <json-c/json.h>

#include "calls.h"
#include "ids.h"
#include "ipc_io.h"
#include "json.h"
#include "prompt.h"
#include "setup.h"

/* Makes the first administrator. Only the vault can do this, over the socket
 * that admits root. The vault refuses if there is an administrator, whatever is
 * asked here. */

enum {
	GENERATED_BYTES = 18, /* 144 bits, 24 characters */
	MAKE_TRIES = 100      /* one per 100 ms */
};

/* Returns the number of administrators; -1 with err. *known: one of them has
 * this name. */
static long
count(const struct ctl *c, const char *name, bool *known, struct err *err)
{
	struct json_object *o = NULL, *items, *username;
	struct buf text;
	long n = -1;

	if (calls_query(c, "administrators", "", &text) != CTL_DONE)
		(void)err_set(err, FAILURE_BUSY,
		    "admind does not list the administrators");
	else if (json_parse(text.p, text.len, &o, err) == 0 &&
	    json_object_object_get_ex(o, "items", &items) &&
	    json_object_is_type(items, json_type_array))
		n = (long)json_object_array_length(items);
	else
		(void)err_set(err, FAILURE_INTERNAL,
		    "admind's list of administrators makes no sense");
	*known = false;
	for (long i = 0; i < n; i++)
		if (json_object_object_get_ex(
			json_object_array_get_idx(items, (size_t)i), "username",
			&username) &&
		    json_object_is_type(username, json_type_string) &&
		    strcmp(json_object_get_string(username), name) == 0)
			*known = true;
	json_object_put(o);
	buf_free(&text);
	return n;
}

/*
 * Asks the vault to make the administrator. The vault stores it through admind.
 * Processes that were started a moment ago may not have found each other yet.
 * So a refusal for that reason is followed by another try; every other refusal
 * is final. 0, or -1 with err. *lost: a request got no answer, so the
 * administrator may exist nevertheless.
 */
static int
make(const struct ctl *c, const char *name, const struct buf *password,
    bool *lost, struct err *err)
{
	struct ipc_setup m = {.username = ipc_str(name),
	    .password = ipc_bytes(password->p, password->len)};
	char path[SETUP_PATH_MAX];
	struct ipc_refused r;
	struct ipc_frame f;
	bool passes = true;
	int fd, rv = -1;

	snprintf(path, sizeof(path), "%s/admind-vault/ctl.sock", c->run_dir);
	for (int i = 0; rv == -1 && passes && i < MAKE_TRIES; i++) {
		if (i > 0)
			(void)nanosleep(
			    &(struct timespec){.tv_nsec = 100 * 1000 * 1000},
			    NULL);
		fd = ipc_client_open(
		    path, IPC_ROLE_CTL, IPC_ROLE_VAULT, "mcpboxctl", err);
		if (fd == -1)
			continue;
		if (ipc_client_call(
			fd, IPC_SETUP, &m, CTL_TIMEOUT_MS, &f, err) == -1) {
			*lost = true;
			close(fd);
			continue;
		}
		if (f.type == IPC_OK) {
			rv = 0;
		} else if (f.type == IPC_REFUSED &&
		    ipc_decode(&f, &r, err) == 0) {
			passes = r.failure == FAILURE_BUSY ||
			    r.failure == FAILURE_STORAGE_UNAVAILABLE;
			(void)err_set(err, FAILURE_INVALID_PARAMS, "%.*s",
			    (int)(r.message.n < 600 ? r.message.n : 600),
			    (const char *)r.message.p);
		} else {
			passes = false;
			*lost = true;
			(void)err_set(err, FAILURE_INTERNAL,
			    "the vault's answer makes no sense");
		}
		ipc_frame_free(&f);
		close(fd);
	}
	return rv;
}

enum setup_outcome
setup_admin_first(struct setup *s, struct err *err)
{
	const char *name = s->c->username != NULL ? s->c->username : "admin";
	enum setup_outcome outcome = SETUP_FAILED;
	uint8_t random[GENERATED_BYTES];
	bool lost = false, known = false;
	struct buf password;
	struct err why;
	long n;

	if ((n = count(s->c, name, &known, err)) == -1)
		return SETUP_FAILED;
	if (n > 0) {
		snprintf(s->detail, sizeof(s->detail),
		    "there is one (mcpboxctl administrators)");
		return SETUP_ALREADY;
	}
	buf_init(&password, 4096);
	if (s->c->password_file != NULL || isatty(STDIN_FILENO)) {
		if (prompt_password(s->c, &password) == -1) {
			err_set(err, FAILURE_INVALID_PARAMS,
			    "no password; run this again");
			goto out;
		}
	} else {
		random_bytes(random, sizeof(random));
		(void)b64url_encode(random, sizeof(random), s->password);
		buf_puts(&password, s->password);
		explicit_bzero(random, sizeof(random));
	}
	if (make(s->c, name, &password, &lost, err) == -1) {
		if (!lost) {
			explicit_bzero(s->password, sizeof(s->password));
			(void)err_wrap(
			    err, "%.64s was not made (run this again)", name);
			goto out;
		}
		/* The lost answer may have been a success. If we threw away the
		 * password that we made, nobody could log in. */
		if (count(s->c, name, &known, &why) == -1 || !known) {
			(void)err_wrap(err,
			    "whether %.64s was made is not known: run this "
			    "again; the password%s is that of this run if so",
			    name,
			    s->password[0] != '\0' ? " that is shown" : "");
			goto out;
		}
	}
	snprintf(s->detail, sizeof(s->detail), "%.64s was made%s", name,
	    s->password[0] != '\0' ? ", with a password that is shown only now"
				   : "");
	outcome = SETUP_DONE;
out:
	buf_free(&password);
	return outcome;
}
