/*
 * A version in the making: from typed fields, what the inspection found and
 * the version before it to the pre-image that will be hashed and reviewed.
 */
#ifndef DRAFT_H
#define DRAFT_H

#include <stdbool.h>

#include "buf.h"
#include "err.h"
#include "ipc.h"
#include "bounds.h"

struct job;

struct draft {
	struct ipc_id server_id, tool_id, version_id;
	char server[NAME_SERVER_MAX + 1];
	char name[NAME_TOOL_MAX + 1];
	char exposed[NAME_SERVER_MAX + 2 + NAME_TOOL_MAX + 1];
	char object[9];      /* prompt, resource, template; "": a tool */
	struct buf before;   /* pre-image of the version before, or empty */
	int32_t base;        /* that version's number */
	uint64_t code_bytes; /* the server's limit, or 0 */
	struct buf lock;     /* TLV: a VERSION_MODULE for each module asked for,
			      * sorted; used if the fields name modules */
	struct buf preimage; /* made by draft_make */
	/* manage_signature.c: what the inspection said meanwhile, and who goes
	 * on with it */
	struct buf inspected;
	void (*agreed)(struct job *, struct ipc_bytes);
};

struct draft *draft_new(void); /* NULL without memory */
void draft_free(void *);       /* a struct draft; NULL is fine */

/* Sets server, name and exposed: "server__name", or the bare name. -1 if one
 * is too long (names were checked before). */
int draft_names(
    struct draft *, struct ipc_bytes server, struct ipc_bytes name, bool bare);

enum draft_kind { DRAFT_PYTHON, DRAFT_COMMAND, DRAFT_STATIC, DRAFT_HTTP };
/* The kind the fields ask for (by name, or of a prompt or resource by what is
 * given), else the version before has, else Python. */
enum draft_kind draft_kind(const struct draft *, struct ipc_bytes fields);
/* That of the version before; Python's if there is none. */
enum draft_kind draft_kind_before(const struct draft *);
bool draft_is_command(const struct draft *, struct ipc_bytes fields);
/* One field of the version in the making or, without it, of the one before:
 * 1 found, 0 absent. argument: enum management_field. */
int draft_field(const struct draft *, struct ipc_bytes fields, uint8_t argument,
    uint8_t version, struct ipc_bytes *out);
/* A TLV list with the VERSION_MODULE fields that the version will have. */
struct ipc_bytes draft_modules(const struct draft *, struct ipc_bytes fields);
/*
 * Makes the pre-image (common/version/version.h). Each field comes from
 * `fields` (TLV of enum management_field) if given there, else from the version
 * before; a Python version has no command, a command no code, modules and
 * secrets, and static content neither. What follows from the specification of
 * kind http (schema, secrets, requires) comes from `inspected` alone. The input
 * schema of a prompt or resource follows from its arguments or URI
 * (MF_OBJECT_SCHEMA), never from its code. `inspected` (TLV of enum
 * inspection_field, or empty) gives input schema, a command's executable digest
 * and, if there is none yet, description. An empty title is no title. Checked
 * with version_check and version_gate before it is handed out. 0 or -1.
 */
int draft_make(struct draft *, struct ipc_bytes fields,
    struct ipc_bytes inspected, struct err *);

/* Do the fields ask for another content (not only for `enabled`)? */
bool draft_asked(struct ipc_bytes fields);
/* "name, python_code": what they ask for, into buf. */
void draft_note(struct ipc_bytes fields, char *buf, size_t len);

#endif
