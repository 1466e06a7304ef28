/*
 * mcpboxctl key status | rotate | verify | export | import (decisions 0039,
 * 0058).
 *
 * This program handles the keys' files, with keyfile.c, since the vault opens
 * such files only when it starts. The files' place comes from our own
 * configuration, never from the vault: the vault must not choose the files that
 * root renames.
 *
 * rotate takes these steps. On the right is the state if everything is killed
 * after the step:
 *
 *	key_file.next made, on the disk     the vault reads both when it starts
 *	KEY_NEXT                            new values are under the new key
 *	KEY_STEP ...                        more and more stored values are, too
 *	KEY_END                             the database refuses the older key
 *	key_file kept as key_file.ID, key_file.next's key in key_file's place
 *
 * A second run begins at the top and finds the steps that are done.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "calls.h"
#include "crypto.h"
#include "ids.h"
#include "keyfile.h"
#include "renew.h"
#include "restore.h"
#include "terminal.h"

static enum ctl_status
complain(const struct err *err)
{
	fprintf(stderr, "mcpboxctl: %s\n", err->text);
	return CTL_REFUSED;
}

int
keys_on_disk(const char *path, char key[2 * KEY_ID_LEN + 1],
    char next[2 * KEY_ID_LEN + 1], struct err *err)
{
	struct keyfile k = {.dir = -1};
	uint8_t id[KEY_ID_LEN];
	int rc = keyfile_open(path, &k, err);

	key[0] = next[0] = '\0';
	for (int w = KEYFILE_KEY; rc != -1 && w <= KEYFILE_NEXT; w++)
		if ((rc = keyfile_which_id(
			 &k, (enum keyfile_which)w, id, err)) == 1)
			hex_encode(
			    id, sizeof(id), w == KEYFILE_KEY ? key : next);
	keyfile_close(&k);
	return rc == -1 ? -1 : 0;
}

/* ---- the vault ---- */

/* Sends the vault a request that is answered by KEY_STATE. The texts of *state
 * borrow from *f, which the caller frees after CTL_DONE. */
static enum ctl_status
tell(const struct ctl *c, enum ipc_type type, const void *msg,
    struct ipc_frame *f, struct ipc_key_state *state)
{
	enum ctl_status status;
	struct err err;

	status = calls_ask(
	    c, "admind-vault", IPC_ROLE_VAULT, type, msg, IPC_KEY_STATE, f);
	if (status == CTL_DONE && ipc_decode(f, state, &err) == -1) {
		fprintf(stderr, "mcpboxctl: %s\n", err.text);
		ipc_frame_free(f);
		status = CTL_REFUSED;
	}
	return status;
}

struct totals {
	uint64_t seen, renewed, unreadable;
};

/* Prints the names of values that no key opens, as the vault and admind wrote
 * them. */
static void
show_names(const struct ipc_key_state *m)
{
	struct buf b;

	if (m->names.n == 0)
		return;
	buf_init(&b, IPC_BLOB_MAX);
	show_block(&b, m->names.p, m->names.n, terminal_width());
	fwrite(b.p, 1, b.len, stderr);
	buf_free(&b);
}

/* Goes through all stored values once. */
static enum ctl_status
pass(const struct ctl *c, bool renew, struct totals *t)
{
	struct ipc_key_step step = {
	    .renew = renew, .limit = c->batch != 0 ? c->batch : RENEW_MAX};
	char *after = NULL;
	enum ctl_status status;
	struct ipc_key_state m;
	struct ipc_frame f;

	memset(t, 0, sizeof(*t));
	do {
		step.after = ipc_str(after);
		status = tell(c, IPC_KEY_STEP, &step, &f, &m);
		if (status != CTL_DONE)
			break;
		t->seen += m.seen;
		t->renewed += m.renewed;
		t->unreadable += m.unreadable;
		show_names(&m);
		free(after);
		after = ipc_strdup(m.after);
		ipc_frame_free(&f);
		if (after == NULL) {
			fputs("mcpboxctl: out of memory\n", stderr);
			status = CTL_REFUSED;
		}
	} while (status == CTL_DONE && after[0] != '\0');
	free(after);
	return status;
}

static void
hex_bytes(struct ipc_bytes b, char out[2 * KEY_ID_LEN + 1])
{
	out[0] = '\0';
	if (b.n == KEY_ID_LEN)
		hex_encode(b.p, b.n, out);
}

static enum ctl_status
show_status(const struct ctl *c)
{
	char key[2 * KEY_ID_LEN + 1], older[2 * KEY_ID_LEN + 1];
	struct ipc_key_status ask = {0};
	enum ctl_status status;
	struct ipc_key_state m;
	struct ipc_frame f;

	if ((status = tell(c, IPC_KEY_STATUS, &ask, &f, &m)) != CTL_DONE)
		return status;
	hex_bytes(m.key, key);
	hex_bytes(m.older, older);
	if (c->json)
		printf("{\"key\":\"%s\",\"older\":%s%s%s,\"credential\":%s}\n",
		    key, older[0] != '\0' ? "\"" : "",
		    older[0] != '\0' ? older : "null",
		    older[0] != '\0' ? "\"" : "",
		    m.credential ? "true" : "false");
	else if (older[0] == '\0')
		printf("master key %s\n", key);
	else
		printf("master key %s; %s still opens what is older\n", key,
		    older);
	ipc_frame_free(&f);
	return CTL_DONE;
}

static void
report(const struct ctl *c, const char *what, const struct totals *t)
{
	if (c->json)
		printf("{\"seen\":%llu,\"renewed\":%llu,\"unreadable\":%llu}\n",
		    (unsigned long long)t->seen, (unsigned long long)t->renewed,
		    (unsigned long long)t->unreadable);
	else
		printf("%s: %llu values, %llu renewed, %llu unreadable\n", what,
		    (unsigned long long)t->seen, (unsigned long long)t->renewed,
		    (unsigned long long)t->unreadable);
}

/* Says what a restart of the vault would change. When the vault starts, it
 * reads the keys' files, and forgets keys that are in no file. */
static enum ctl_status
compare_files(const struct ctl *c)
{
	char has[2][2 * KEY_ID_LEN + 1], file[2][2 * KEY_ID_LEN + 1];
	bool over;
	struct ipc_key_status ask = {0};
	enum ctl_status status;
	struct ipc_key_state m;
	struct ipc_frame f;
	struct err err;

	if (keys_on_disk(c->key_file, file[0], file[1], &err) == -1)
		return complain(&err);
	if ((status = tell(c, IPC_KEY_STATUS, &ask, &f, &m)) != CTL_DONE)
		return status;
	hex_bytes(m.key, has[0]);
	hex_bytes(m.older, has[1]);
	over = m.over != 0;
	ipc_frame_free(&f);
	for (int i = 0; i < (over ? 1 : 2); i++)
		if (has[i][0] != '\0' && strcmp(has[i], file[0]) != 0 &&
		    strcmp(has[i], file[1]) != 0) {
			fprintf(stderr,
			    "mcpboxctl: the vault's key %s is not in %s: after "
			    "a restart what is under it does not open. Name "
			    "its file (--key-file), or import a copy\n",
			    has[i], c->key_file);
			status = CTL_REFUSED;
		}
	if (file[0][0] != '\0' && strcmp(file[0], has[0]) != 0 &&
	    strcmp(file[0], has[1]) != 0) {
		fprintf(stderr,
		    "mcpboxctl: the vault has not read the key %s in %s yet: "
		    "restart it, then verify again\n",
		    file[0], c->key_file);
		status = CTL_REFUSED;
	}
	return status;
}

/* Checks that all stored values open now, and will open after a restart of the
 * vault. */
static enum ctl_status
verify(const struct ctl *c)
{
	enum ctl_status status, files;
	struct totals t;

	if ((status = pass(c, false, &t)) != CTL_DONE)
		return status;
	report(c, "opened", &t);
	if ((files = compare_files(c)) != CTL_DONE)
		return files;
	return t.unreadable == 0 ? CTL_DONE : CTL_REFUSED;
}

/* Sets *same if the vault's newest key is the one in the key's file. Sets *two
 * if a rotation to the vault's newest key is under way. */
static enum ctl_status
is_vaults(const struct ctl *c, const struct keyfile *k, bool *same, bool *two)
{
	struct ipc_key_status ask = {0};
	uint8_t id[KEY_ID_LEN];
	enum ctl_status status;
	struct ipc_key_state m;
	struct ipc_frame f;
	struct err err;
	int rc = keyfile_which_id(k, KEYFILE_KEY, id, &err);

	if (rc == 0)
		(void)err_set(&err, FAILURE_NOT_FOUND,
		    "%s: there is no key; name its file (--key-file)", k->name);
	if (rc != 1)
		return complain(&err);
	if ((status = tell(c, IPC_KEY_STATUS, &ask, &f, &m)) != CTL_DONE)
		return status;
	*same = m.key.n == sizeof(id) && memcmp(m.key.p, id, m.key.n) == 0;
	*two = m.older.n != 0 && m.over == 0;
	ipc_frame_free(&f);
	return CTL_DONE;
}

/* Gives the vault a new key, or the new key of a run that was stopped.
 * *in_place is set if the newest key is in the key's file already. */
static enum ctl_status
begin(const struct ctl *c, const struct keyfile *k, bool *in_place)
{
	struct ipc_key_next next = {0};
	enum ctl_status status;
	struct ipc_key_state m;
	bool same, two;
	struct ipc_frame f;
	struct err err;
	int fd, found;

	*in_place = false;
	if ((found = keyfile_find(k, KEYFILE_NEXT, NULL, &err)) == -1)
		return complain(&err);
	if (found == 0) {
		status = is_vaults(c, k, &same, &two);
		if (status != CTL_DONE)
			return status;
		if (!same) {
			fprintf(stderr,
			    "mcpboxctl: the vault's key is not the one in %s: "
			    "name its file (--key-file)\n",
			    k->name);
			return CTL_REFUSED;
		}
		/* If a rotation is under way (two), the files are as they must
		 * be, so only the values and KEY_END are missing. */
		if ((*in_place = two))
			return CTL_DONE;
		if (keyfile_next(k, &err) == -1)
			return complain(&err);
	}
	if ((fd = keyfile_next_fd(k, &err)) == -1)
		return complain(&err);
	next.file = fd;
	status = tell(c, IPC_KEY_NEXT, &next, &f, &m);
	close(fd);
	if (status == CTL_DONE)
		ipc_frame_free(&f);
	return status;
}

static enum ctl_status
rotate(const struct ctl *c)
{
	struct ipc_key_end end = {0};
	char kept[NAME_MAX + 1];
	enum ctl_status status;
	struct ipc_key_state m;
	struct totals t;
	struct ipc_frame f;
	struct keyfile k = {.dir = -1};
	struct err err;
	bool in_place;

	if (keyfile_open(c->key_file, &k, &err) == -1)
		return complain(&err);
	if ((status = begin(c, &k, &in_place)) != CTL_DONE)
		goto out;
	if ((status = pass(c, true, &t)) != CTL_DONE)
		goto out;
	if (t.unreadable != 0 && !c->leave_unreadable) {
		report(c, "renewed", &t);
		fputs("mcpboxctl: what no key opens was left as it is; both "
		      "keys stay valid. Set or delete those secrets, or give "
		      "--leave-unreadable, and run this again.\n",
		    stderr);
		status = CTL_REFUSED;
		goto out;
	}
	end.leave = (uint32_t)t.unreadable;
	if ((status = tell(c, IPC_KEY_END, &end, &f, &m)) != CTL_DONE)
		goto out;
	ipc_frame_free(&f);
	kept[0] = '\0';
	if (!in_place && keyfile_change(&k, kept, &err) == -1) {
		status = complain(&err);
		goto out;
	}
	report(c, "renewed", &t);
	if (!c->json && kept[0] != '\0')
		printf("the older key is kept as %s: backups from before need "
		       "it\n",
		    kept);
out:
	keyfile_close(&k);
	return status;
}

/* ---- copies ---- */

/* Exports the key, and during a rotation the next key, too, because a backup
 * may need either. */
static enum ctl_status
export_key(const struct ctl *c, const char *path)
{
	char next[PATH_MAX];
	struct keyfile k = {.dir = -1};
	struct err err;
	int rc = -1, n;

	n = snprintf(next, sizeof(next), "%s%s", path,
	    strcmp(path, "-") == 0 ? "" : ".next");
	if (n < 0 || (size_t)n >= sizeof(next))
		(void)err_set(&err, FAILURE_INVALID_PARAMS, "name too long");
	else if (keyfile_open(c->key_file, &k, &err) == 0 &&
	    (rc = keyfile_export(&k, KEYFILE_KEY, path, &err)) == 0)
		rc = err_set(
		    &err, FAILURE_NOT_FOUND, "%s: there is no key", k.name);
	if (rc == 1)
		rc = keyfile_export(&k, KEYFILE_NEXT, next, &err);
	keyfile_close(&k);
	if (rc == -1)
		return complain(&err);
	if (rc == 1)
		fputs("mcpboxctl: a rotation is under way: both keys were "
		      "written, the next one last\n",
		    stderr);
	return CTL_DONE;
}

static enum ctl_status
import_key(const struct ctl *c, const char *path)
{
	struct keyfile k = {.dir = -1};
	struct err err;
	int rc = -1;

	if (keyfile_open(c->key_file, &k, &err) == 0)
		rc = keyfile_import(&k, path, &err);
	keyfile_close(&k);
	if (rc == -1)
		return complain(&err);
	if (!c->json)
		puts(rc == 0
			? "it is the master key already"
			: "imported. Restart mcpbox-admind-vault; then "
			  "`mcpboxctl key status` names its id and, if it "
			  "names two, `mcpboxctl key rotate` ends with one");
	return CTL_DONE;
}

enum ctl_status
keys_command(const struct ctl *c)
{
	if (c->nwords == 3) {
		if (strcmp(c->words[1], "export") == 0)
			return export_key(c, c->words[2]);
		if (strcmp(c->words[1], "import") == 0)
			return import_key(c, c->words[2]);
		return CTL_USAGE;
	}
	if (strcmp(c->words[1], "status") == 0)
		return show_status(c);
	if (strcmp(c->words[1], "verify") == 0)
		return verify(c);
	if (strcmp(c->words[1], "rotate") == 0)
		return rotate(c);
	return CTL_USAGE;
}
