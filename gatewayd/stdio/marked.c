#include <json-c/json_object.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "marked.h"
#include "mcp_era.h"

void
marked_free(struct marked *m)
{
	for (unsigned i = 0; i < m->n; i++) {
		free(m->tools[i].name);
		free(m->tools[i].tool);
	}
	m->n = 0;
}

/* Keeps a tool. Lists come in pages, and again after a change, so of two
 * objects with one name the newer counts. */
static void
keep(struct marked *m, const char *name, const char *tool)
{
	unsigned i;
	char *text;

	for (i = 0; i < m->n; i++)
		if (strcmp(m->tools[i].name, name) == 0)
			break;
	if (i == m->n && strstr(tool, "x-mcp-header") == NULL)
		return;
	if (i == MARKED_MAX || (text = strdup(tool)) == NULL)
		return;
	if (i == m->n) {
		m->tools[i].name = strdup(name);
		if (m->tools[i].name == NULL) {
			free(text);
			return;
		}
		m->n++;
	} else {
		free(m->tools[i].tool);
	}
	m->tools[i].tool = (uint8_t *)text;
	m->tools[i].n = strlen(text);
}

void
marked_learn(struct marked *m, struct ipc_bytes message)
{
	struct json_object *all = NULL, *result, *tools, *t;
	const char *name;
	size_t n;

	if (m->n == 0 &&
	    memmem(message.p, message.n, "x-mcp-header", 12) == NULL)
		return;
	if (json_parse(message.p, message.n, &all, NULL) < 0)
		return;
	if (json_get_obj(all, "result", &result, NULL) == 1 &&
	    json_get_arr(result, "tools", &tools, NULL) == 1)
		for (size_t i = 0; i < json_object_array_length(tools); i++) {
			t = json_object_array_get_idx(tools, i);
			if (json_object_is_type(t, json_type_object) &&
			    json_get_str(t, "name", &name, &n, NULL) == 1)
				keep(m, name,
				    json_object_to_json_string_ext(
					t, JSON_C_TO_STRING_PLAIN));
		}
	json_object_put(all);
}

int
marked_fields(const struct marked *m, struct ipc_bytes params,
    mcp_param_emit *emit, void *arg)
{
	char name[MCP_NAME_MAX + 1];
	struct ipc_bytes v, args;

	if (m->n == 0 || !mcp_json_given(params, "name", &v) ||
	    mcp_json_text(v, name, sizeof(name)) < 0 ||
	    !mcp_json_given(params, "arguments", &args))
		return 0;
	for (unsigned i = 0; i < m->n; i++)
		if (strcmp(m->tools[i].name, name) == 0)
			return mcp_param_each(
			    ipc_bytes(m->tools[i].tool, m->tools[i].n), args,
			    emit, arg);
	return 0;
}
