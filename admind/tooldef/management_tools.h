/*
 * The management tools as clients see them, and the typed form of their
 * arguments. Pure data, linked into admind (catalogue, dispatch) and into
 * admind-check, which validates arguments against these schemas and sends
 * admind the fields as a TLV list: admind parses no JSON.
 *
 * Also the fields of an inspection (CHECK_INSPECTION).
 */
#ifndef MANAGEMENT_TOOLS_H
#define MANAGEMENT_TOOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ipc.h"

/* management_field.def says what the kinds are. */
enum management_field {
#define MF(number, SYMBOL, name, kind) MF_##SYMBOL = number,
#include "management_field.def"
#undef MF
	MF_AFTER_ALL,
	MF_MAX = MF_AFTER_ALL - 1,
	/* Added to the number of a field of kind I if a name was given instead
	 * of an id. manage_named.c replaces the name by the id. */
	MF_NAMED = 128,
	/* Not an argument: the JSON Schema of a call's arguments, which follows
	 * from a prompt's arguments or from a URI (template). It is the last
	 * field. */
	MF_OBJECT_SCHEMA = 255
};

enum management_kind {
	MANAGEMENT_S,
	MANAGEMENT_N,
	MANAGEMENT_B,
	MANAGEMENT_I,
	MANAGEMENT_J,
	MANAGEMENT_M
};

/* The object that a tool lists, makes, changes or deletes. */
enum management_object {
	MANAGEMENT_NONE,
	MANAGEMENT_TOOL,
	MANAGEMENT_PROMPT,
	MANAGEMENT_RESOURCE
};

/* A row of management_tool.def, with the texts of schemas/NAME.json. */
struct management_tool {
	const char *name;
	const char *title;
	const char *description;  /* for the model that chooses a tool */
	const char *input_schema; /* JSON of the closed subset */
	/* Schema of structuredContent; NULL: another tool's result is passed
	 * on. */
	const char *output_schema;
	bool read_only;
	bool destructive; /* may undo something that somebody relies on */
	bool idempotent;  /* calling twice has the effect of once */
	bool creates;     /* makes an object and its first version */
	bool changes;     /* adds a version to an object */
	bool deletes;     /* refused if local_destructive is off */
	enum management_object object;
};

/* Returns all management tools, in the order of tools/list. */
const struct management_tool *management_tools(size_t *n);
/* Not a tool, but a name for admind-check alone: under this name it checks the
 * definition of another MCP server's tool like the arguments of
 * mcpbox_create_tool. No client can call it, because the name has a blank. */
#define MANAGEMENT_IMPORTED "imported tool"
/* Finds a tool by name; NULL if there is none. */
const struct management_tool *management_tool(struct ipc_bytes name);
/* Writes the MCP Tool object (name, title, description, inputSchema,
 * annotations). */
void management_tool_json(const struct management_tool *, struct buf *out);
/* Returns the database's word for an object, such as "tool", or "" for
 * MANAGEMENT_NONE. */
const char *management_word(enum management_object);
/* Returns the meaning of a pattern in the schemas, in words ("must have ...");
 * NULL for a pattern that is in none of them. */
const char *management_rule(const uint8_t *pattern, size_t n);
/* Returns name and kind of a field; NULL for a number that the table lacks. */
const char *management_field(unsigned number, enum management_kind *);

/* Fields of the answer to CHECK_OPENAPI: a group for each operation, which
 * begins with NAME, and SKIPPED for each operation that was left out. */
enum openapi_field {
	OPENAPI_NAME = 1,  /* of the tool */
	OPENAPI_TITLE = 2, /* title and description may be absent */
	OPENAPI_DESCRIPTION = 3,
	OPENAPI_ANNOTATIONS = 4, /* JSON */
	OPENAPI_SPEC = 5,        /* JSON */
	OPENAPI_FOLLOWS = 6,     /* TLV: as CHECK_HTTP answers to SPEC */
	OPENAPI_SKIPPED = 7      /* text: which operation, and why */
};

/* Fields of the answer to CHECK_INSPECTION. With OK 0 only the ERROR fields may
 * follow. */
enum inspection_field {
	INSPECT_OK = 1,           /* u64: 1 inspected, 0 the code is broken */
	INSPECT_INPUT_SCHEMA = 2, /* JSON bytes, of the closed subset */
	INSPECT_DOC = 3,          /* docstring of main; absent if it has none */
	INSPECT_IS_ASYNC = 4,     /* u64 */
	INSPECT_ERROR_TYPE = 5,   /* "SyntaxError" */
	INSPECT_ERROR_MESSAGE = 6,
	INSPECT_ERROR_LINE = 7,    /* u64, from 1; absent if unknown */
	INSPECT_ERROR_COLUMN = 8,  /* u64, from 1; absent if unknown */
	INSPECT_ERROR_CONTEXT = 9, /* one line of code each, in order */
	/* 64 hex digits, of a command's executable; absent for Python */
	INSPECT_EXECUTABLE_DIGEST = 10,
	/* For kind http only: these follow from the specification
	 * (CHECK_HTTP). */
	INSPECT_SECRET = 11,  /* any number, sorted */
	INSPECT_REQUIRE = 12, /* any number, sorted */
	INSPECT_CONFIRM = 13  /* u64 1: each call is confirmed */
};

#endif
