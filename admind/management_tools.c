/*
 * Definitions of the management tools. Descriptions speak to a language model
 * that has never seen this system: what the tool does, what comes next, and
 * what it must not expect.
 */
#include <string.h>

#include "jsonw.h"
#include "limit.h"
#include "management_tools.h"

/* Pieces that several schemas share. */
#define OBJECT(properties, required)                       \
	"{\"type\":\"object\",\"properties\":{" properties \
	"},\"required\":[" required "],\"additionalProperties\":false}"
#define UUID "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"
#define SERVER_ID                                                \
	"\"server_id\":{\"type\":\"string\",\"pattern\":\"" UUID \
	"\",\"description\":\"Id of the server, from mcpbox_list_servers.\"}"
#define TOOL_ID                                                \
	"\"tool_id\":{\"type\":\"string\",\"pattern\":\"" UUID \
	"\",\"description\":\"Id of the tool, from mcpbox_list_tools.\"}"
/* Review is the same for all. */
#define ANY_ID                                                 \
	"\"tool_id\":{\"type\":\"string\",\"pattern\":\"" UUID \
	"\",\"description\":\"Id of the tool, prompt or resource.\"}"
#define NAME(max, text)                                                       \
	"\"name\":{\"type\":\"string\",\"pattern\":\"^[a-z][a-z0-9]*(_[a-z0-" \
	"9]+)*$\",\"maxLength\":" max ",\"description\":\"" text "\"}"
#define DESCRIPTION(text)                                          \
	"\"description\":{\"type\":\"string\",\"maxLength\":2000," \
	"\"description\":\"" text "\"}"
#define CODE                                                                  \
	"\"python_code\":{\"type\":\"string\",\"minLength\":1,"               \
	"\"maxLength\":100000,\"description\":\"Python 3 source that defines" \
	" main(...) or async main(...). Its parameters become the tool's"     \
	" arguments: annotate them, give defaults to optional ones, and"      \
	" describe them in the docstring or with Annotated.\"}"
#define PAGING                                                               \
	"\"page\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":1000000,"  \
	"\"default\":1,\"description\":\"Page number.\"},"                   \
	"\"page_size\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":100," \
	"\"default\":50,\"description\":\"Items on a page.\"}"
/* Names of secrets, modules and requirements. */
#define NAMES(name, max, pattern, text)                                     \
	"\"" name "\":{\"type\":\"array\",\"maxItems\":" max                \
	",\"uniqueItems\":true,\"items\":{\"type\":\"string\",\"pattern\":" \
	"\"" pattern "\",\"maxLength\":255},\"description\":\"" text "\"}"
/* One limit of a version; bounds and reason are common/limit.h's. */
#define LIMIT_JSON(SYMBOL, name, unit, min, max, context, version, reason) \
	"\"" name "\":{\"type\":\"integer\",\"minimum\":" #min             \
	",\"maximum\":" #max ",\"description\":\"In " unit ". " reason "\"}"
#define LIMIT_JSON_MORE(                                    \
    SYMBOL, name, unit, min, max, context, version, reason) \
	"," LIMIT_JSON(SYMBOL, name, unit, min, max, context, version, reason)

#define MODULE_PATTERN                              \
	"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?" \
	"(==[0-9A-Za-z][0-9A-Za-z.!+_-]*)?$"

/* What a tool's version may have beyond name, description and code. The
 * formatter would set this in columns of one word. */
/* clang-format off */
#define KIND_JSON \
	"\"kind\":{\"enum\":[\"python\",\"command\"],\"description\":\"python" \
	" (default): python_code. command: executable and spec, no shell.\"}," \
	"\"executable\":{\"type\":\"string\",\"maxLength\":4096,\"pattern\":" \
	"\"^/\",\"description\":\"Of a command: absolute path of a program" \
	" on the administrator's allow-list.\"}," \
	"\"spec\":{\"type\":\"object\",\"properties\":{" \
	"\"argv\":{\"type\":\"array\",\"maxItems\":256,\"items\":{\"type\":" \
	"\"string\",\"maxLength\":4096},\"description\":\"Arguments behind the" \
	" program's name; {name} anywhere in one stands for the tool's" \
	" argument of that name. An item whose argument is not given is left" \
	" out.\"}," \
	"\"stdin\":{\"type\":\"string\",\"pattern\":" \
	"\"^[{][A-Za-z_][A-Za-z0-9_]*[}]$\",\"description\":\"{name}: that" \
	" argument is the standard input.\"}," \
	"\"env\":{\"type\":\"object\",\"maxProperties\":64," \
	"\"additionalProperties\":{\"type\":\"string\",\"maxLength\":4096}," \
	"\"description\":\"Environment, literal.\"}}," \
	"\"required\":[\"argv\"],\"additionalProperties\":false," \
	"\"description\":\"Of a command: what it is given. Placeholders" \
	" become string arguments unless input_schema is given.\"},"
#define TITLE_JSON \
	"\"title\":{\"type\":\"string\",\"maxLength\":200,\"description\":" \
	"\"Name shown to people.\"},"
#define ICONS_JSON \
	"\"icons\":{\"type\":\"array\",\"maxItems\":8,\"items\":{\"type\":" \
	"\"object\",\"properties\":{\"src\":{\"type\":\"string\"," \
	"\"maxLength\":8192},\"mimeType\":{\"type\":\"string\"," \
	"\"maxLength\":100},\"sizes\":{\"type\":\"array\",\"maxItems\":8," \
	"\"items\":{\"type\":\"string\",\"maxLength\":20}},\"theme\":" \
	"{\"enum\":[\"light\",\"dark\"]}},\"required\":[\"src\"]," \
	"\"additionalProperties\":false},\"description\":\"MCP icons.\"}," \
	"\"meta\":{\"type\":\"object\",\"description\":\"_meta in lists;" \
	" names that begin with mcpbox/ are reserved.\"},"
#define GRANTS_JSON \
	NAMES("secrets", "64", "^[A-Z][A-Z0-9_]*$", \
	    "Names of the server's secrets the code reads; nothing else is" \
	    " given to it.") "," \
	NAMES("modules", "32", MODULE_PATTERN, \
	    "Python packages beyond the standard library, as name or" \
	    " name==version. Only those granted to this tool: ask with" \
	    " mcpbox_request_module first.") "," \
	NAMES("requires", "64", "^[A-Za-z0-9*][A-Za-z0-9._:*/-]*$", \
	    "Network hosts the code needs, as host, host:port or *.domain.") ","
#define RUN_JSON \
	GRANTS_JSON \
	"\"client_capabilities\":{\"type\":\"array\",\"maxItems\":6," \
	"\"uniqueItems\":true,\"items\":{\"enum\":[\"elicitation\"," \
	"\"elicitation.url\",\"sampling\",\"sampling.tools\",\"roots\"," \
	"\"tasks\"]},\"description\":\"What a client must be able to do:" \
	" one that did not declare it is refused before anything runs.\"}," \
	"\"limits\":{\"type\":\"object\",\"properties\":{" \
	LIMITS(LIMIT_JSON, LIMIT_JSON_MORE) \
	"},\"additionalProperties\":false,\"description\":\"Limits of one" \
	" call, where the defaults do not fit.\"}"
#define VERSION_FIELDS_JSON \
	KIND_JSON \
	TITLE_JSON \
	"\"input_schema\":{\"type\":\"object\",\"description\":\"JSON Schema" \
	" of the arguments; without it, it is read from main's signature.\"}," \
	"\"output_schema\":{\"type\":\"object\",\"description\":\"JSON Schema" \
	" of the structured result.\"}," \
	"\"annotations\":{\"type\":\"object\",\"properties\":{" \
	"\"title\":{\"type\":\"string\",\"maxLength\":200}," \
	"\"readOnlyHint\":{\"type\":\"boolean\"}," \
	"\"destructiveHint\":{\"type\":\"boolean\"}," \
	"\"idempotentHint\":{\"type\":\"boolean\"}," \
	"\"openWorldHint\":{\"type\":\"boolean\"}}," \
	"\"additionalProperties\":false,\"description\":\"MCP tool" \
	" annotations.\"}," \
	ICONS_JSON \
	"\"task\":{\"enum\":[\"forbidden\",\"optional\",\"required\"," \
	"\"after_questions\"],\"description\":\"May or must a call run as an MCP" \
	" task? after_questions: it must, once what it asks first was" \
	" answered.\"}," \
	"\"confirm\":{\"type\":\"boolean\",\"description\":\"true: a person" \
	" must agree to each call.\"}," \
	RUN_JSON

/* ---- prompts and resources ---- */

#define ENABLED(word) \
	"\"enabled\":{\"type\":\"boolean\",\"description\":\"false takes" \
	" the " word " away, true brings it back if it is approved.\"},"
#define OBJECT_ID(word) \
	"\"" word "_id\":{\"type\":\"string\",\"pattern\":\"" UUID \
	"\",\"description\":\"Id of the " word ", from mcpbox_list_" word \
	"s.\"}"
#define OBJECT_CODE(what) \
	"\"python_code\":{\"type\":\"string\",\"minLength\":1," \
	"\"maxLength\":100000,\"description\":\"" what "\"}"
/* values: what completion offers. */
#define ARGUMENTS_JSON(text) \
	"\"arguments\":{\"type\":\"array\",\"maxItems\":32,\"items\":{" \
	"\"type\":\"object\",\"properties\":{" \
	"\"name\":{\"type\":\"string\",\"pattern\":\"^[A-Za-z_][A-Za-z0-9_]*$\"," \
	"\"maxLength\":38}," \
	"\"title\":{\"type\":\"string\",\"maxLength\":200}," \
	"\"description\":{\"type\":\"string\",\"maxLength\":500}," \
	"\"required\":{\"type\":\"boolean\"}," \
	"\"values\":{\"type\":\"array\",\"maxItems\":200,\"uniqueItems\":true," \
	"\"items\":{\"type\":\"string\",\"maxLength\":200}," \
	"\"description\":\"Suggested values, for completion; others are taken," \
	" too.\"}}," \
	"\"required\":[\"name\"],\"additionalProperties\":false}," \
	"\"description\":\"" text "\"}"
#define PROMPT_JSON \
	TITLE_JSON \
	ARGUMENTS_JSON("What the prompt is filled with; all are strings.") "," \
	"\"text\":{\"type\":\"string\",\"minLength\":1,\"description\":\"The" \
	" prompt itself; {name} stands for an argument, {{name}} for that" \
	" text. Or a JSON array of {role, content}: several messages.\"}," \
	OBJECT_CODE("Instead of text: Python 3 source that defines main(...)," \
	    " its parameters being the arguments' names, all str. It returns a" \
	    " string, mcpbox.Message(role, content), or a list of them.") "," \
	ICONS_JSON RUN_JSON
#define RESOURCE_JSON \
	TITLE_JSON \
	"\"uri\":{\"type\":\"string\",\"maxLength\":1024,\"description\":" \
	"\"URI of the resource, with a scheme of your choice, such as" \
	" notes://today. Unique.\"}," \
	"\"uri_template\":{\"type\":\"string\",\"maxLength\":1024," \
	"\"description\":\"Instead of uri, a family of resources: {name}" \
	" stands for characters other than /, {+name} for any" \
	" (notes://{day}/{item}). Needs python_code.\"}," \
	"\"mime_type\":{\"type\":\"string\",\"maxLength\":255,\"pattern\":" \
	"\"^([A-Za-z0-9!#$&^_.+-]+/[A-Za-z0-9!#$&^_.+-]+" \
	"(; ?[A-Za-z0-9!#$&^_.+-]+=[A-Za-z0-9!#$&^_.+-]+)*)?$\"," \
	"\"description\":\"Of the content, such as text/markdown.\"}," \
	"\"text\":{\"type\":\"string\",\"description\":\"The content, if it is" \
	" text that does not change.\"}," \
	"\"blob\":{\"type\":\"string\",\"description\":\"The content in base64," \
	" if it is binary and does not change.\"}," \
	OBJECT_CODE("Instead of content: Python 3 source that defines" \
	    " main(...), its parameters being the template's variables, all" \
	    " str. It returns text, bytes, a dict (as JSON) or" \
	    " mcpbox.Resource.") "," \
	ARGUMENTS_JSON("Of a template: its variables, with values for" \
	    " completion.") "," \
	"\"ttl_ms\":{\"type\":\"integer\",\"minimum\":0,\"maximum\":" \
	"31536000000,\"description\":\"How long a client may keep what it" \
	" read, in ms.\"}," \
	"\"annotations\":{\"type\":\"object\",\"properties\":{" \
	"\"audience\":{\"type\":\"array\",\"maxItems\":2,\"uniqueItems\":true," \
	"\"items\":{\"enum\":[\"user\",\"assistant\"]}}," \
	"\"priority\":{\"type\":\"number\",\"minimum\":0,\"maximum\":1}," \
	"\"lastModified\":{\"type\":\"string\",\"maxLength\":40}}," \
	"\"additionalProperties\":false,\"description\":\"MCP resource" \
	" annotations.\"}," \
	ICONS_JSON RUN_JSON
#define OBJECT_NAME(text) \
	NAME("64", text "lower-case letters, digits and single underscores," \
	    " at most 64 with the server's name and __ before it. No tool," \
	    " prompt or resource of the server has it.")

static const struct management_tool tools[] = {
	{"mcpbox_list_servers", "List servers",
	    "Lists the servers that tools are grouped in, with their id,"
	    " status and number of tools. Call it first to find a server_id.",
	    OBJECT(PAGING, ""), true, false, true},
	{"mcpbox_create_server", "Create a server",
	    "Creates a server: a named group of tools. Its tools are listed as"
	    " server__tool. A server cannot be renamed. It runs at once; next,"
	    " add tools with mcpbox_create_tool.",
	    OBJECT(NAME("24", "Lower-case letters, digits and single"
		    " underscores, at most 24.") ","
		DESCRIPTION("What the server's tools are for."),
		"\"name\""),
	    false, false, false},
	{"mcpbox_start_server", "Start a server",
	    "Makes a stopped server's approved tools callable again. Does"
	    " nothing if it is running.",
	    OBJECT(SERVER_ID, "\"server_id\""), false, false, true},
	{"mcpbox_stop_server", "Stop a server",
	    "Makes all tools of a server uncallable until it is started again."
	    " Nothing is deleted. Does nothing if it is stopped.",
	    OBJECT(SERVER_ID, "\"server_id\""), false, true, true},
	{"mcpbox_list_tools", "List a server's tools",
	    "Lists the tools of one server with their id, approval status and"
	    " whether they can be called now.",
	    OBJECT(SERVER_ID "," PAGING, "\"server_id\""), true, false, true},
    {"mcpbox_create_tool", "Create a tool",
	"Creates a tool from Python code (or, with kind command, from a"
	" program and its arguments), as a draft. The code is checked"
	" and its argument schema read from main's signature, but it is not"
	" callable yet: call mcpbox_request_publish next, then a person"
	" reviews and approves it. Code runs in a sandbox without network"
	" or files; main returns str, dict, list, numbers or None. Errors"
	" show the line to mend. mcpbox_guide tells how to write one.",
	OBJECT(SERVER_ID ","
	    NAME("64", "Lower-case letters, digits and single underscores,"
		" at most 64 with the server's name and __ before it.") ","
	    DESCRIPTION("What the tool does and when to use it, for the model"
		" that chooses it. Without it, main's docstring is taken.") ","
	    CODE "," VERSION_FIELDS_JSON,
	    "\"server_id\",\"name\""),
	false, false, false},
    {"mcpbox_update_tool", "Change a tool",
	"Changes a tool by making a new draft version from the fields"
	" given; fields left out stay as they are. The approved version"
	" serves on until the new one is approved: call"
	" mcpbox_request_publish next. `enabled` alone takes effect at"
	" once and makes no version.",
	OBJECT(TOOL_ID ","
	    NAME("64", "New name: lower-case letters, digits and single"
		" underscores, at most 64 with the server's name and __ before"
		" it.") ","
	    DESCRIPTION("New description.") ","
	    CODE ","
	    ENABLED("tool") VERSION_FIELDS_JSON,
	    "\"tool_id\""),
	false, true, false},
	{"mcpbox_request_publish", "Ask for review",
	    "Asks an administrator to approve the tool's newest draft. The tool"
	    " can be called once approved; mcpbox_get_tool_status tells. A"
	    " rejected version can be asked for again, but read the reason"
	    " first.",
	    OBJECT(ANY_ID
		",\"notes\":{\"type\":\"string\",\"maxLength\":2000,"
		"\"description\":\"For the reviewer: what it does and why.\"}",
		"\"tool_id\""),
	    false, false, false},
    {"mcpbox_request_module", "Ask for a module",
	"Asks an administrator to let one tool import a Python package that"
	" is not in the standard library. Once granted, name it in `modules`"
	" of mcpbox_update_tool. mcpbox_get_tool_status tells how the request"
	" stands.",
	OBJECT(TOOL_ID ","
	    "\"module_name\":{\"type\":\"string\",\"pattern\":\"" MODULE_PATTERN
	    "\",\"maxLength\":128,\"description\":\"Package as PyPI names it,"
	    " or name==version.\"},"
	    "\"justification\":{\"type\":\"string\",\"minLength\":1,"
	    "\"maxLength\":2000,\"description\":\"For the administrator: what"
	    " it is needed for.\"}",
	    "\"tool_id\",\"module_name\",\"justification\""),
	false, false, false},
    {"mcpbox_guide", "How to write a tool",
	"Returns one page on how to write a tool here: main's signature,"
	" results and errors, the mcpbox module, what can be imported, limits,"
	" commands, modules. Read it once before the first"
	" mcpbox_create_tool.",
	OBJECT("", ""), true, false, true},
	{"mcpbox_get_tool_status", "Status of a tool",
	    "Shows where a tool stands: approval status of its newest version,"
	    " the version that serves, who decided, the reason of a rejection,"
	    " and whether it can be called now.",
	    OBJECT(ANY_ID, "\"tool_id\""), true, false, true},
	{"mcpbox_list_pending_requests", "List what waits for review",
	    "Lists the requests that wait for an administrator: tools, modules"
	    " and network access.",
	    OBJECT("", ""), true, false, true},
    {"mcpbox_search_tools", "Search tools",
	"Finds tools that can be called, by words in their names, titles and"
	" descriptions; best first. For servers with more tools than one wants"
	" to list.",
	OBJECT("\"query\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":"
	    "200,\"description\":\"Words, in any order.\"},"
	    "\"limit\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":50,"
	    "\"default\":10,\"description\":\"At most so many.\"}",
	    "\"query\""),
	true, false, true},
    {"mcpbox_delete_tool", "Delete a tool",
	"Deletes a tool for good: it cannot be called or listed any more and"
	" its name is free. Its versions and records are kept for the"
	" administrator. To stop it for a while, use mcpbox_update_tool with"
	" enabled false.",
	OBJECT(TOOL_ID, "\"tool_id\""), false, true, false},
    {"mcpbox_list_prompts", "List a server's prompts",
	"Lists the prompts of one server with their id, approval status and"
	" whether they can be used now.",
	OBJECT(SERVER_ID "," PAGING, "\"server_id\""), true, false, true},
    {"mcpbox_create_prompt", "Create a prompt",
	"Creates a prompt, a text with arguments that people choose from a"
	" menu, as a draft: from text, or from Python code that makes its"
	" messages. It is not listed yet: call mcpbox_request_publish with its"
	" id as tool_id, then a person reviews and approves it.",
	OBJECT(SERVER_ID "," OBJECT_NAME("") ","
	    DESCRIPTION("What the prompt is for.") "," PROMPT_JSON,
	    "\"server_id\",\"name\""),
	false, false, false},
    {"mcpbox_update_prompt", "Change a prompt",
	"Changes a prompt by making a new draft version from the fields given;"
	" fields left out stay as they are, text and python_code replace each"
	" other. The approved version serves on until the new one is"
	" approved: call mcpbox_request_publish next. `enabled` alone takes"
	" effect at once and makes no version.",
	OBJECT(OBJECT_ID("prompt") "," OBJECT_NAME("New name: ") ","
	    DESCRIPTION("New description.") "," ENABLED("prompt") PROMPT_JSON,
	    "\"prompt_id\""),
	false, true, false},
    {"mcpbox_delete_prompt", "Delete a prompt",
	"Deletes a prompt for good: it cannot be used or listed any more and"
	" its name is free. Its versions and records are kept for the"
	" administrator.",
	OBJECT(OBJECT_ID("prompt"), "\"prompt_id\""), false, true, false},
    {"mcpbox_list_resources", "List a server's resources",
	"Lists the resources and resource templates of one server with their"
	" id, URI, approval status and whether they can be read now.",
	OBJECT(SERVER_ID "," PAGING, "\"server_id\""), true, false, true},
    {"mcpbox_create_resource", "Create a resource",
	"Creates a resource, data that clients read by its URI, as a draft:"
	" from text or base64, or from Python code that reads it anew each"
	" time. With uri_template instead of uri it is a family of resources."
	" It cannot be read yet: call mcpbox_request_publish with its id as"
	" tool_id, then a person reviews and approves it.",
	OBJECT(SERVER_ID "," OBJECT_NAME("") ","
	    DESCRIPTION("What the resource holds.") "," RESOURCE_JSON,
	    "\"server_id\",\"name\""),
	false, false, false},
    {"mcpbox_update_resource", "Change a resource",
	"Changes a resource or template by making a new draft version from"
	" the fields given; fields left out stay as they are, text, blob and"
	" python_code replace each other. The approved version serves on"
	" until the new one is approved: call mcpbox_request_publish next."
	" `enabled` alone takes effect at once and makes no version.",
	OBJECT(OBJECT_ID("resource") "," OBJECT_NAME("New name: ") ","
	    DESCRIPTION("New description.") "," ENABLED("resource")
	    RESOURCE_JSON,
	    "\"resource_id\""),
	false, true, false},
    {"mcpbox_delete_resource", "Delete a resource",
	"Deletes a resource or template for good: it cannot be read or listed"
	" any more, its name and URI are free. Its versions and records are"
	" kept for the administrator.",
	OBJECT(OBJECT_ID("resource"), "\"resource_id\""), false, true, false},
};
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
	return NULL;
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
management_field(unsigned number, enum management_kind *kind)
{
	static const struct {
		const char *name;
		enum management_kind kind;
	} rows[] = {
#define MF(number, SYMBOL, name, kind) [number] = {name, MANAGEMENT_##kind},
	    MANAGEMENT_FIELDS(MF)
#undef MF
	};

	if (number == 0 || number > MF_MAX)
		return NULL;
	*kind = rows[number].kind;
	return rows[number].name;
}
