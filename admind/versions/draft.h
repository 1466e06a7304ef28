/*
 * A version in the making: typed fields, the inspection's findings and the
 * version before become the pre-image that will be hashed and reviewed.
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
	int32_t base;        /* number of the version before */
	uint64_t code_bytes; /* the server's limit, or 0 */
	struct buf lock;     /* TLV: a VERSION_MODULE for each module asked for,
			      * sorted; used if the fields name modules */
	struct buf preimage; /* made by draft_make */
	/* manage_signature.c: the inspection's fields while the job waits, and
	 * the continuation that gets them */
	struct buf inspected;
	void (*agreed)(struct job *, struct ipc_bytes);
};

struct draft *draft_new(void); /* NULL without memory */
void draft_free(void *);       /* a struct draft; NULL is fine */

/* Sets server, name and exposed: "server__name", or the bare name. 0, or -1 if
 * one of them is too long (names were checked before). */
int draft_names(
    struct draft *, struct ipc_bytes server, struct ipc_bytes name, bool bare);

enum draft_kind { DRAFT_PYTHON, DRAFT_COMMAND, DRAFT_STATIC, DRAFT_HTTP };
/* Returns the kind of the new version. For a prompt or resource, the content in
 * the fields decides: text, blob or code. Else the field `kind` decides, else
 * the version before. Without any of these the kind is Python. */
enum draft_kind draft_kind(const struct draft *, struct ipc_bytes fields);
/* Returns the kind of the version before; Python if there is none. */
enum draft_kind draft_kind_before(const struct draft *);
bool draft_is_command(const struct draft *, struct ipc_bytes fields);
/* Finds one field in `fields` (tag `argument`, enum management_field) or, if
 * absent there, in the version before (tag `version`). 1 found, 0 absent. */
int draft_field(const struct draft *, struct ipc_bytes fields, uint8_t argument,
    uint8_t version, struct ipc_bytes *out);
/* Returns a TLV list with the VERSION_MODULE fields that the version will
 * have. */
struct ipc_bytes draft_modules(const struct draft *, struct ipc_bytes fields);
/*
 * Makes the pre-image (common/version/version.h). Each field comes from
 * `fields` (TLV of enum management_field) if given there, else from the version
 * before. A Python version has no command; a command has no code, modules or
 * secrets; static content has none of these. For kind http, schema, secrets and
 * requires follow from the specification and come from `inspected` alone. The
 * input schema of a prompt or resource follows from its arguments or URI
 * (MF_OBJECT_SCHEMA), never from its code. `inspected` (TLV of enum
 * inspection_field, or empty) gives input schema, a command's executable digest
 * and, if there is none yet, description. An empty title is no title. The
 * result passed version_check and version_gate. 0, or -1 with err.
 */
int draft_make(struct draft *, struct ipc_bytes fields,
    struct ipc_bytes inspected, struct err *);

/* Returns whether the fields change content, and not only `enabled`. */
bool draft_asked(struct ipc_bytes fields);
/* Writes the names of the given fields, "name, python_code", into buf. */
void draft_note(struct ipc_bytes fields, char *buf, size_t len);

#endif
