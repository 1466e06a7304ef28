/*
 * The table of the management tools: rows of management_tool.def, with their
 * texts from schemas/, which schemas.py turns into C strings.
 */
#include <string.h>

#include "jsonw.h"
#include "management_text.h"
#include "management_tools.h"

/* The flags of a row. */
enum {
	READ_ONLY = 1,
	DESTRUCTIVE = 2,
	IDEMPOTENT = 4,
	CREATES = 8,
	CHANGES = 16,
	DELETES = 32
};

/* clang-format off */
static const struct management_tool tools[] = {
#define M(name, run, scope, reach, object, flags)                            \
	{#name, TEXT_##name, ((flags) & READ_ONLY) != 0,                     \
	    ((flags) & DESTRUCTIVE) != 0, ((flags) & IDEMPOTENT) != 0,       \
	    ((flags) & CREATES) != 0, ((flags) & CHANGES) != 0,              \
	    ((flags) & DELETES) != 0, MANAGEMENT_##object},
#include "management_tool.def"
#undef M
};

/* Not in tools/list (management_tools.h). */
static const struct management_tool imported = {
    MANAGEMENT_IMPORTED, TEXT_imported};
/* clang-format on */

const struct management_tool *
management_tools(size_t *n)
{
	*n = sizeof(tools) / sizeof(tools[0]);
	return tools;
}

const struct management_tool *
management_tool(struct ipc_bytes name)
{
	for (size_t i = 0; i < sizeof(tools) / sizeof(tools[0]); i++)
		if (ipc_streq(name, tools[i].name))
			return &tools[i];
	return ipc_streq(name, imported.name) ? &imported : NULL;
}

void
management_tool_json(const struct management_tool *t, struct buf *out)
{
	struct jsonw w;

	jsonw_open(&w, out);
	jsonw_obj(&w);
	jsonw_kv_str(&w, "name", t->name);
	jsonw_kv_str(&w, "title", t->title);
	jsonw_kv_str(&w, "description", t->description);
	jsonw_kv_raw(
	    &w, "inputSchema", t->input_schema, strlen(t->input_schema));
	if (t->output_schema != NULL)
		jsonw_kv_raw(&w, "outputSchema", t->output_schema,
		    strlen(t->output_schema));
	jsonw_name(&w, "annotations");
	jsonw_obj(&w);
	jsonw_kv_bool(&w, "readOnlyHint", t->read_only);
	jsonw_kv_bool(&w, "destructiveHint", t->destructive);
	jsonw_kv_bool(&w, "idempotentHint", t->idempotent);
	jsonw_kv_bool(&w, "openWorldHint", false);
	jsonw_obj_end(&w);
	jsonw_obj_end(&w);
}

const char *
management_word(enum management_object object)
{
	static const char *const words[] = {[MANAGEMENT_NONE] = "",
	    [MANAGEMENT_TOOL] = "tool",
	    [MANAGEMENT_PROMPT] = "prompt",
	    [MANAGEMENT_RESOURCE] = "resource"};

	return words[object];
}

const char *
management_rule(const uint8_t *pattern, size_t n)
{
	static const struct {
		const char *pattern, *words;
	} rules[] = {MANAGEMENT_RULES};

	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		if (strlen(rules[i].pattern) == n &&
		    memcmp(rules[i].pattern, pattern, n) == 0)
			return rules[i].words;
	return NULL;
}

const char *
management_field(unsigned number, enum management_kind *kind)
{
	static const struct {
		const char *name;
		enum management_kind kind;
	} rows[] = {
#define MF(number, SYMBOL, name, kind) [number] = {name, MANAGEMENT_##kind},
#include "management_field.def"
#undef MF
	};

	if (number == 0 || number > MF_MAX)
		return NULL;
	*kind = rows[number].kind;
	return rows[number].name;
}
