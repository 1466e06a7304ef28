/*
 * Shared by mcpboxctl's files. One command a run: connect, ask, print, exit.
 *
 * The daemons' answers are printed to an administrator's terminal. Much of
 * their text was written by strangers (LLM clients) or could come from a
 * taken-over admind: all of it goes through common/show.h.
 */
#ifndef CTL_H
#define CTL_H

#include <stdbool.h>
#include <stdint.h>

#include "admin_filter.h"
#include "buf.h"
#include "err.h"
#include "ipc.h"
#include "show.h"

struct json_object;

/* The paths of an installed package: setup and doctor look at the machine only
 * there. */
#define CTL_RUN_DIR   "/run/mcpbox"
#define CTL_CONF_FILE "/etc/mcpbox/mcpboxctl.conf"

enum ctl_status { /* exit status */
	CTL_DONE = 0,
	CTL_REFUSED = 1,
	CTL_USAGE = 2,
	CTL_UNREACHABLE = 3
};

enum {
	/* A daemon itself waits for others for up to 15 s, on a slow machine
	 * longer (wait_factor). The person at the terminal can end the
	 * command. */
	CTL_TIMEOUT_MS = 60000,
	/* a run in the sandbox that talks to another machine */
	CTL_SLOW_MS = 100000,
	CTL_LIMIT_MAX = 200
};

struct ctl {
	const char *run_dir;
	bool json;
	bool all; /* approvals list: also decided ones */
	/* Options of single commands; NULL or 0 if not given. */
	const char *hash, *reason, *username, *password_file, *state, *kind,
	    *cursor, *role, *journal, *key;
	const char *key_file; /* key: the master key's */
	bool leave_unreadable;
	uint32_t batch; /* key: values of one step, 0: the most allowed */
	const char *transfer_key; /* export, import: a file */
	/* backup, restore: as configured (conf_keys.def) */
	const char *owner_database, *superuser_database, *postgres_bin;
	const char *owner_password_file, *superuser_password_file;
	/* databases.c: the owner's connection for arguments of other programs,
	 * and its secret part for their environment, or NULL */
	const char *owner_open, *owner_password;
	/* setup, doctor: an installation's places, as configured */
	const char *roles_file, *libexec_dir, *conf_dir, *state_dir;
	const char *database; /* setup: a server elsewhere */
	/* --NAME of common/admin_filter.def, but state and kind */
	const char *filter[ADMIN_FILTER_COUNT];
	uint32_t limit;
	char **words; /* command and its arguments */
	int nwords;
};

/* databases.c: makes owner_database and superuser_database complete, with the
 * settings that a server elsewhere needs (database.h). Called once, by commands
 * that connect. Its texts live as long as the process. 0, or -1 with err. */
int databases_read(struct ctl *, struct err *);

/* calls.c: the daemons. */
/* Connects to RUN_DIR/process/ctl.sock. fd, or -1 (stderr says why). */
int calls_open(const struct ctl *, const char *process, enum ipc_role);
/* Sends one request to one daemon. CTL_DONE: *answer is filled, of type `want`
 * (free it). Otherwise a sentence was printed on stderr and nothing is to be
 * freed. */
enum ctl_status calls_ask(const struct ctl *, const char *process,
    enum ipc_role, enum ipc_type, const void *msg, enum ipc_type want,
    struct ipc_frame *answer);
/* Does the same over calls_open's descriptor: for several requests. */
enum ctl_status calls_on(int fd, const char *process, enum ipc_role,
    enum ipc_type, const void *msg, enum ipc_type want,
    struct ipc_frame *answer);
/* Sends admind a request that is answered by ADMIN_JSON. *text gets the JSON
 * (initialised by this; free it in any case). */
enum ctl_status calls_json(
    const struct ctl *, enum ipc_type, const void *msg, struct buf *text);
/* Sends ADMIN_QUERY. *text gets the JSON (initialised by this; free it). */
enum ctl_status calls_query(
    const struct ctl *, const char *what, const char *id, struct buf *text);

/* Does the same with filters (TLV, admin_filter.h) and a cursor, or NULL. */
enum ctl_status calls_list(const struct ctl *, const char *what, const char *id,
    struct ipc_bytes filters, const char *cursor, struct buf *text);
/* Reads words of the form name=value as filters. 0, or -1 with a word on
 * stderr. */
int calls_filters(char **words, int n, struct buf *out);

/* prefix.c: an id as a person gives it, whole or its first digits. */
enum {
	PREFIX_DIGITS_MIN = 4, /* hexadecimal digits */
	/* a name that clients see, a slash, two versions: twice their
	 * lengths */
	PREFIX_PATH_MAX = 600
};
/* Finds the whole id. `kind` is a kind that the question `ids` knows (approval,
 * execution, source). CTL_DONE; otherwise stderr says why and what to do. */
enum ctl_status prefix_whole(
    const struct ctl *, const char *kind, const char *word, struct ipc_id *);
enum ctl_status prefix_request(
    const struct ctl *, const char *word, struct ipc_id *);
/* Does the same for a server or tool, which may also be named by its name. A
 * word that is the name of one, or could be no id, stays as it is. out holds n
 * bytes. */
enum ctl_status prefix_named(const struct ctl *, const char *kind,
    const char *word, char *out, size_t n);

/* Does the same for the part of a word before its first slash: TOOL, TOOL/3. */
enum ctl_status prefix_path(const struct ctl *, const char *kind,
    const char *word, char *out, size_t n);
/* Finds the one of ids (n of them, as text) that begins with word, in *id.
 * `what`, `list`: the kind's name and the command that lists it, for the
 * message if there is not just one. */
enum ctl_status prefix_among(const char *word, const char *const *ids, size_t n,
    const char *what, const char *list, struct ipc_id *id);

/* call.c: ADMIN_ACTION */
/* Does an action; id: "" for none, seen: NULL for none, body: JSON text. The
 * JSON answer is in *answer (initialised by this; free it). */
enum ctl_status call_action(const struct ctl *, const char *action,
    const char *id, const struct ipc_hash *seen, const char *body,
    struct buf *answer);
/* Does the same with the body's members as n words name=value. */
enum ctl_status call_words(const struct ctl *, const char *action,
    const char *id, const struct ipc_hash *seen, char *const *words, int n,
    struct buf *answer);

/* Each runs one command and returns the exit status. */
enum ctl_status approvals_command(const struct ctl *);
enum ctl_status policies_command(const struct ctl *);
enum ctl_status setup_command(const struct ctl *);
enum ctl_status secret_command(const struct ctl *);
enum ctl_status keys_command(const struct ctl *);
enum ctl_status doctor_command(const struct ctl *);
enum ctl_status tables_command(const struct ctl *);
enum ctl_status limits_command(const struct ctl *); /* and servers */
enum ctl_status openapi_command(const struct ctl *);
enum ctl_status lives_command(const struct ctl *); /* servers tools sources */
enum ctl_status modules_command(const struct ctl *);
enum ctl_status settings_command(const struct ctl *);
enum ctl_status rates_command(const struct ctl *);
enum ctl_status breakers_command(const struct ctl *);
enum ctl_status audit_command(const struct ctl *);
enum ctl_status administrators_command(const struct ctl *); /* and logins */

enum ctl_status executions_command(const struct ctl *);
enum ctl_status activity_command(const struct ctl *);

/* audit.c: prints all of the list `what` that the filters let through, as rows
 * of the list `layout`; with --json whole, one object a line. */
enum ctl_status audit_export(const struct ctl *, const char *what,
    const char *layout, struct ipc_bytes filters);

/* verify.c: mcpboxctl audit verify */
enum ctl_status verify_run(const struct ctl *);

/* setup.c */
/* Reads a password: from --password-file, a prompt (twice), or standard input.
 * 0, or -1 with a word on stderr. */
int setup_password(const struct ctl *, struct buf *out);
enum ctl_status tokens_command(const struct ctl *);
enum ctl_status call_command(const struct ctl *);
enum ctl_status backup_command(const struct ctl *);
enum ctl_status restore_command(const struct ctl *);
enum ctl_status export_command(const struct ctl *);
enum ctl_status import_command(const struct ctl *);
enum ctl_status transfer_key_command(const struct ctl *);
enum ctl_status query_command(const struct ctl *);

/* setup.c: reads a secret's value, from a terminal (asked for as `what`, not
 * shown) or standard input, without its last newline. 0, or -1 and stderr says
 * why. */
int setup_read(const char *what, struct buf *out);

/* transfer.c: appends a whole file (`-`: standard input) to *out. CTL_DONE;
 * otherwise stderr says why: not readable, or longer than *out takes. */
enum ctl_status transfer_read(const char *path, struct buf *out);

/* tables.c */
/* Prints a list's or an object's JSON: as it is with --json, else in
 * columns. */
enum ctl_status tables_show(
    const struct ctl *, const char *what, const struct buf *text);
/* Returns a member's text, or JSON if it is no string; "" if it is absent or
 * null. It lives as long as the object. */
const char *tables_text(struct json_object *, const char *name);
/* Prints a list's items in columns; `what` picks them. */
void tables_print(const char *what, struct json_object *list);
/* Appends an object's members, one a line, nested ones indented. No two
 * different objects look alike. */
void tables_object(struct buf *, struct json_object *);
/* Prints some items of a longer list: rows, with the columns' names first if
 * `head`; with --json one object a line. */
enum ctl_status tables_items(
    const struct ctl *, const char *what, struct json_object *items, bool head);
/* Prints JSON text to standard output: checked, escaped to ASCII, one line. */
enum ctl_status tables_json(const uint8_t *, size_t);

/* terminal.c */
/* Prints a buffer to standard output. */
void show_out(const struct buf *);
/* Returns the columns of the terminal at standard output, error or input, else
 * SHOW_WIDTH. */
unsigned show_width(void);

#endif
