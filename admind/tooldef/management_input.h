/*
 * Pieces of the management tools' input schemas; management_tools.c alone
 * includes it.
 */
#ifndef MANAGEMENT_INPUT_H
#define MANAGEMENT_INPUT_H

#include "limit.h"

/* clang-format off */
/* Pieces that several schemas share. */
#define OBJECT(properties, required)                       \
	"{\"type\":\"object\",\"properties\":{" properties \
	"},\"required\":[" required "],\"additionalProperties\":false}"
#define UUID_FORM "[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
#define UUID "^" UUID_FORM "$"
/* An id has hyphens and a name has none, so they can't be confused. */
#define ID_OR_NAME "^(" UUID_FORM "|[a-z][a-z0-9_]{0,63})$"
#define NAME_PATTERN "^[a-z][a-z0-9]*(_[a-z0-9]+)*$"
#define SECRET_PATTERN "^[A-Z][A-Z0-9_]*$"
#define ARGUMENT_PATTERN "^[A-Za-z_][A-Za-z0-9_]*$"
#define HEADER_PATTERN "^[A-Za-z][A-Za-z0-9-]*$"
#define URL_PATTERN "^https?://"
#define SERVER_ID                                                      \
	"\"server_id\":{\"type\":\"string\",\"pattern\":\"" ID_OR_NAME \
	"\",\"description\":\"Name or id of the server.\"}"
#define TOOL_ID                                                      \
	"\"tool_id\":{\"type\":\"string\",\"pattern\":\"" ID_OR_NAME \
	"\",\"description\":\"Name, such as server__tool, or id of the tool.\"}"
/* Review is the same for all. */
#define ANY_ID                                                       \
	"\"tool_id\":{\"type\":\"string\",\"pattern\":\"" ID_OR_NAME \
	"\",\"description\":\"Name, such as server__tool, or id of the tool," \
	" prompt or resource.\"}"
#define NAME(max, text)                                                  \
	"\"name\":{\"type\":\"string\",\"pattern\":\"" NAME_PATTERN \
	"\",\"maxLength\":" max ",\"description\":\"" text "\"}"
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
/* One limit of a version; bounds and reason are common/version/limit.h's. */
#define LIMIT_JSON(SYMBOL, name, unit, min, max, context, version, reason) \
	"\"" name "\":{\"type\":\"integer\",\"minimum\":" #min             \
	",\"maximum\":" #max ",\"description\":\"In " unit ". " reason "\"}"
#define LIMIT_JSON_MORE(                                    \
    SYMBOL, name, unit, min, max, context, version, reason) \
	"," LIMIT_JSON(SYMBOL, name, unit, min, max, context, version, reason)

#define MODULE_PATTERN                              \
	"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?" \
	"(==[0-9A-Za-z][0-9A-Za-z.!+_-]*)?$"

/* The fields of a tool's version beyond name, description and code. The
 * formatter would set this in columns of one word. */
#define KIND_JSON \
	"\"kind\":{\"enum\":[\"python\",\"command\",\"http\"]," \
	"\"description\":\"python (default): python_code. command: executable" \
	" and spec, no shell. http: spec alone, a REST call.\"}," \
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
	"\"description\":\"Environment, literal.\"}," \
	"\"ok_exit_codes\":{\"type\":\"array\",\"maxItems\":32," \
	"\"uniqueItems\":true,\"items\":{\"type\":\"integer\"," \
	"\"minimum\":1,\"maximum\":255},\"description\":\"Exit codes" \
	" beside 0 that are no errors, as grep's 1.\"}," \
	"\"method\":{\"enum\":[\"GET\",\"HEAD\",\"OPTIONS\",\"POST\"," \
	"\"PUT\",\"PATCH\",\"DELETE\"]}," \
	"\"url\":{\"type\":\"string\",\"description\":\"https://host/path" \
	" with {name} for path parameters.\"}," \
	"\"parameters\":{\"type\":\"object\",\"description\":\"By argument:" \
	" {in: path, query, header, cookie or body, schema, description," \
	" required, name on the wire}.\"}," \
	"\"query\":{\"type\":\"object\",\"description\":\"Fixed; may have" \
	" {secret:NAME}, as headers may.\"}," \
	"\"headers\":{\"type\":\"object\"}," \
	"\"body\":{\"enum\":[\"json\",\"form\",\"whole\",\"text\"]}," \
	"\"response\":{\"type\":\"object\",\"description\":\"{as: auto," \
	" json, text or status; pointer; success; headers}.\"}," \
	"\"redirects\":{\"type\":\"integer\"}," \
	"\"redirect_hosts\":{\"type\":\"array\"}," \
	"\"timeout_ms\":{\"type\":\"integer\"}," \
	"\"max_bytes\":{\"type\":\"integer\"}}," \
	"\"additionalProperties\":false," \
	"\"description\":\"Of a command: argv, stdin, env, ok_exit_codes; placeholders become" \
	" string arguments unless input_schema is given. Of http: method, url" \
	" and what follows them; arguments, requires and secrets follow from" \
	" it. mcpbox_guide shows both.\"},"
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
	NAMES("secrets", "64", SECRET_PATTERN, \
	    "Names of the server's secrets the code reads; nothing else is" \
	    " given to it.") "," \
	NAMES("modules", "32", MODULE_PATTERN, \
	    "Python packages beyond the standard library, as name or" \
	    " name==version. Only those granted to this tool: ask with" \
	    " mcpbox_request_module first.") "," \
	NAMES("requires", "64", "^[^ ]+$", \
	    "Network hosts the code needs: host, host:port, *.domain, * (any" \
	    " public host), udp:host:port, [IPv6]:port. A tool reaches only" \
	    " what stands here and is granted to its server: ask with" \
	    " mcpbox_request_network_access.") ","
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
	"\"" word "_id\":{\"type\":\"string\",\"pattern\":\"" ID_OR_NAME \
	"\",\"description\":\"Name, such as server__" word ", or id of the " word \
	".\"}"
#define OBJECT_CODE(what) \
	"\"python_code\":{\"type\":\"string\",\"minLength\":1," \
	"\"maxLength\":100000,\"description\":\"" what "\"}"
/* values: suggestions for completion. */
#define ARGUMENTS_JSON(text) \
	"\"arguments\":{\"type\":\"array\",\"maxItems\":32,\"items\":{" \
	"\"type\":\"object\",\"properties\":{" \
	"\"name\":{\"type\":\"string\",\"pattern\":\"" ARGUMENT_PATTERN "\"," \
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

/* ---- the rest ---- */

#define NUMBERED(name, text) \
	"\"" name "\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":" \
	"2147483647,\"description\":\"" text "\"}"
#define FOUND_MAX(max, dflt) \
	"\"limit\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":" max \
	",\"default\":" dflt ",\"description\":\"At most so many.\"}"
#define ANY_ARGUMENTS(text) \
	"\"arguments\":{\"type\":\"object\",\"description\":\"" text "\"}"
#define SECRET_KEY(name, text) \
	"\"" name "\":{\"type\":\"string\",\"pattern\":\"" SECRET_PATTERN "\"," \
	"\"maxLength\":255,\"description\":\"" text "\"}"
#define SOURCE_ID_JSON \
	"\"source_id\":{\"type\":\"string\",\"pattern\":\"" ID_OR_NAME \
	"\",\"description\":\"Name, such as server__source, or id of the source" \
	" (mcpbox_list_external_sources).\"}"
/* For MANAGEMENT_IMPORTED: the fields of a version that come from elsewhere. */
#define IMPORTED_SCHEMA \
	OBJECT(NAME("64", "") "," DESCRIPTION("") "," TITLE_JSON \
	    "\"input_schema\":{\"type\":\"object\"}," \
	    "\"output_schema\":{\"type\":\"object\"}," \
	    "\"annotations\":{\"type\":\"object\"}", \
	    "\"name\",\"input_schema\"")
#define SOURCE_JSON \
	"\"url\":{\"type\":\"string\",\"minLength\":8,\"maxLength\":2048," \
	"\"pattern\":\"" URL_PATTERN "\",\"description\":\"Its MCP endpoint, https" \
	" or http, without user, password and fragment.\"}," \
	"\"auth_type\":{\"enum\":[\"none\",\"bearer\",\"header\"]," \
	"\"default\":\"none\",\"description\":\"How it is told who we are.\"}," \
	SECRET_KEY("auth_secret_name", "For bearer and header: the server's" \
	    " secret that holds the token (mcpbox_create_server_secret); never" \
	    " the token itself.") "," \
	"\"auth_header_name\":{\"type\":\"string\",\"maxLength\":64," \
	"\"pattern\":\"" HEADER_PATTERN "\",\"description\":\"For header:" \
	" the HTTP header that carries it.\"}," \
	"\"transport_type\":{\"enum\":[\"streamable_http\",\"sse\"]," \
	"\"default\":\"streamable_http\",\"description\":\"MCP transport.\"}"
/* clang-format on */

#endif
