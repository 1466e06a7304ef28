/*
 * Output schemas of the management tools: the form of structuredContent after a
 * successful call. They name the members that are always there as required and
 * leave room for more. So a later release can add members and a client that
 * validates goes on. tests/integration/tools/test_manage_life.py judges every
 * result by them.
 */
#ifndef MANAGEMENT_OUTPUT_H
#define MANAGEMENT_OUTPUT_H

/* clang-format off */
#define OUT(properties, required) \
	"{\"type\":\"object\",\"properties\":{" properties \
	"},\"required\":[" required "]}"
#define N_(name, schema) "\"" name "\":" schema
#define S_(name) N_(name, "{\"type\":\"string\"}")
#define I_(name) N_(name, "{\"type\":\"integer\"}")
#define B_(name) N_(name, "{\"type\":\"boolean\"}")
#define O_(name) N_(name, "{\"type\":\"object\"}")
#define T_(name) N_(name, "{\"type\":\"string\",\"pattern\":\"Z$\"}") /* a time */
/* or null */
#define SN_(name) N_(name, "{\"type\":[\"string\",\"null\"]}")
#define IN_(name) N_(name, "{\"type\":[\"integer\",\"null\"]}")
#define ON_(name) N_(name, "{\"type\":[\"object\",\"null\"]}")
#define L_(name, item) N_(name, "{\"type\":\"array\",\"items\":" item "}")
#define LS_(name) L_(name, "{\"type\":\"string\"}")
#define Q1(a) "\"" a "\""
#define Q2(a, b) Q1(a) "," Q1(b)
#define Q3(a, b, c) Q2(a, b) "," Q1(c)
#define Q4(a, b, c, d) Q3(a, b, c) "," Q1(d)
#define Q5(a, b, c, d, e) Q4(a, b, c, d) "," Q1(e)
#define Q6(a, b, c, d, e, f) Q5(a, b, c, d, e) "," Q1(f)

#define PAGED_ I_("total") "," I_("page") "," I_("page_size")
#define PAGED_Q Q3("total", "page", "page_size")
#define DONE_ B_("success") "," S_("message")
#define DONE_Q Q2("success", "message")
#define STATE_ N_("approval_status", "{\"enum\":[\"draft\"," \
	"\"pending_review\",\"approved\",\"rejected\",\"revoked\"]}")

/* ---- servers ---- */

#define OUT_LIST_SERVERS OUT(L_("servers", OUT(S_("id") "," S_("name") "," \
	S_("description") "," S_("status") "," I_("tool_count") "," \
	T_("created_at"), Q5("id", "name", "description", "status", \
	"tool_count"))) "," PAGED_, Q1("servers") "," PAGED_Q)
#define OUT_GET_SERVER OUT(S_("id") "," S_("name") "," S_("description") "," \
	S_("status") "," SN_("stopped") "," \
	LS_("allowed_hosts") "," I_("default_timeout_ms") \
	"," T_("created_at") "," T_("updated_at") "," \
	L_("tools", OUT(S_("id") "," S_("name") "," SN_("description") "," \
	    B_("enabled") "," STATE_, Q4("id", "name", "enabled", \
	    "approval_status"))) "," \
	I_("tool_count") "," N_("pending_requests", OUT(I_("modules") "," \
	    I_("network") "," I_("tools"), Q2("modules", "network"))), \
	Q6("id", "name", "description", "status", "allowed_hosts", "tools") \
	"," Q4("tool_count", "pending_requests", "created_at", "updated_at"))
#define OUT_CREATE_SERVER OUT(DONE_ "," S_("id") "," S_("name") "," \
	S_("status"), DONE_Q "," Q3("id", "name", "status"))
#define OUT_UPDATE_SERVER OUT(DONE_ "," S_("id") "," S_("name") "," \
	S_("description"), DONE_Q "," Q3("id", "name", "description"))
#define OUT_DELETE_SERVER OUT(DONE_ "," S_("server_id") "," S_("name") "," \
	I_("deleted_tools"), DONE_Q "," Q3("server_id", "name", \
	"deleted_tools"))
#define OUT_START_SERVER OUT(DONE_ "," S_("server_id") "," S_("name") "," \
	S_("status") "," B_("changed") "," I_("callable_tools"), \
	DONE_Q "," Q5("server_id", "name", "status", "changed", \
	"callable_tools"))
#define OUT_STOP_SERVER OUT_START_SERVER

/* ---- tools ---- */

#define OUT_LIST(what) OUT(S_("server_id") "," S_("server_name") "," \
	S_("server_status") "," L_(what, OUT(S_("id") "," S_("name") "," \
	S_("exposed_name") "," SN_("description") "," S_("title") "," \
	S_("uri") "," S_("uri_template") "," S_("mime_type") "," \
	B_("enabled") "," STATE_ "," I_("version") "," \
	IN_("serving_version") "," B_("callable"), \
	Q6("id", "name", "exposed_name", "enabled", "approval_status", \
	"version") "," Q2("serving_version", "callable"))) "," PAGED_, \
	Q4("server_id", "server_name", "server_status", what) "," PAGED_Q)
#define OUT_LIST_TOOLS OUT_LIST("tools")
#define OUT_LIST_PROMPTS OUT_LIST("prompts")
#define OUT_LIST_RESOURCES OUT_LIST("resources")
#define OUT_GET_TOOL OUT(S_("id") "," S_("server_id") "," \
	S_("server_name") "," S_("name") "," S_("exposed_name") "," \
	S_("object") "," SN_("title") "," SN_("description") "," \
	B_("enabled") "," S_("kind") "," SN_("python_code") "," \
	ON_("spec") "," SN_("executable") "," SN_("text") "," SN_("blob") \
	"," ON_("input_schema") "," ON_("output_schema") "," \
	ON_("annotations") "," LS_("secrets") "," LS_("modules") "," \
	LS_("requires") "," O_("limits") "," I_("timeout_ms") "," \
	I_("version") "," I_("current_version") "," \
	IN_("serving_version") "," STATE_ "," S_("version_hash") "," \
	S_("change_source") "," S_("change_summary") "," S_("created_by") \
	"," T_("created_at"), \
	Q6("id", "server_id", "name", "exposed_name", "object", "enabled") \
	"," Q6("kind", "python_code", "input_schema", "timeout_ms", \
	"version", "current_version") "," Q6("serving_version", \
	"approval_status", "version_hash", "secrets", "modules", "limits"))
#define DRAFT_ S_("id") "," S_("name") "," S_("exposed_name") "," \
	I_("version") "," STATE_ "," S_("version_hash") "," \
	O_("input_schema")
#define OUT_CREATE_TOOL OUT(DONE_ "," DRAFT_, DONE_Q "," Q6("id", "name", \
	"exposed_name", "version", "approval_status", "version_hash"))
#define OUT_CREATE_PROMPT OUT_CREATE_TOOL
#define OUT_CREATE_RESOURCE OUT_CREATE_TOOL
/* If no version was made, the result has no members of a version. */
#define OUT_UPDATE_TOOL OUT(DONE_ "," DRAFT_ "," B_("enabled"), \
	DONE_Q "," Q2("id", "name"))
#define OUT_UPDATE_PROMPT OUT_UPDATE_TOOL
#define OUT_UPDATE_RESOURCE OUT_UPDATE_TOOL
#define OUT_DELETE_TOOL OUT(DONE_ "," S_("id") "," S_("object") "," \
	S_("name"), DONE_Q "," Q3("id", "object", "name"))
#define OUT_DELETE_PROMPT OUT_DELETE_TOOL
#define OUT_DELETE_RESOURCE OUT_DELETE_TOOL
#define OUT_SEARCH_TOOLS OUT(L_("tools", OUT(S_("name") "," S_("title") "," \
	S_("description") "," S_("server_name"), Q3("name", "description", \
	"server_name"))) "," I_("total"), Q2("tools", "total"))

/* ---- code ---- */

#define OUT_VALIDATE_CODE OUT(B_("valid") "," B_("has_main") "," \
	SN_("error") "," L_("parameters", OUT(S_("name") "," S_("type") "," \
	B_("required"), Q3("name", "type", "required"))) "," \
	O_("input_schema"), Q4("valid", "has_main", "error", "parameters"))
#define OUT_TEST_CODE OUT(B_("success") "," ON_("result") "," \
	SN_("error") "," SN_("failure_mode") "," S_("stdout") "," \
	I_("duration_ms") "," I_("version") "," S_("execution_id") "," \
	S_("message"), Q6("success", "result", "error", "stdout", \
	"duration_ms", "version") "," Q1("execution_id"))

/* ---- versions ---- */

#define OUT_LIST_TOOL_VERSIONS OUT(S_("tool_id") "," S_("tool_name") "," \
	I_("current_version") "," IN_("serving_version") "," \
	I_("total_versions") "," L_("versions", OUT(I_("version") "," STATE_ \
	"," B_("serving") "," S_("change_summary") "," \
	N_("change_source", "{\"enum\":[\"manual\",\"llm\",\"import\"," \
	    "\"rollback\"]}") "," S_("created_by") "," T_("created_at") \
	"," S_("version_hash"), Q6("version", "approval_status", "serving", \
	"change_summary", "change_source", "created_at"))) "," \
	I_("page") "," I_("page_size"), Q6("tool_id", "tool_name", \
	"current_version", "serving_version", "total_versions", "versions") \
	"," Q2("page", "page_size"))
#define OUT_DIFF_TOOL_VERSIONS OUT(S_("tool_id") "," S_("tool_name") "," \
	I_("from_version") "," I_("to_version") "," B_("identical") "," \
	N_("changes", OUT(SN_("base") "," \
	    L_("fields", OUT(S_("field") "," N_("before", "{}") "," \
		N_("after", "{}"), Q3("field", "before", "after"))) "," \
	    L_("diff", OUT(S_("field") "," S_("unified"), \
		Q2("field", "unified"))) "," O_("gains"), \
	    Q4("base", "fields", "diff", "gains"))), \
	Q6("tool_id", "tool_name", "from_version", "to_version", \
	"identical", "changes"))
#define OUT_ROLLBACK_TOOL OUT(DONE_ "," S_("tool_id") "," S_("name") "," \
	I_("current_version") "," I_("from_version") "," STATE_ "," \
	S_("version_hash"), DONE_Q "," Q4("tool_id", "name", \
	"current_version", "approval_status"))
#define OUT_GET_TOOL_LOGS OUT(S_("tool_id") "," S_("tool_name") "," \
	L_("logs", OUT(S_("id") "," S_("kind") "," \
	N_("success", "{\"type\":[\"boolean\",\"null\"]}") "," \
	SN_("outcome") "," SN_("failure_mode") "," IN_("duration_ms") "," \
	IN_("version") "," SN_("error") "," N_("input_args", "{}") "," \
	N_("result", "{}") "," SN_("stdout") "," L_("network", "{}") "," \
	S_("executed_by") "," T_("created_at"), Q6("id", "kind", "success", "error", \
	"input_args", "executed_by") "," Q1("created_at"))) "," \
	I_("total"), Q4("tool_id", "tool_name", "logs", "total"))

/* ---- asking ---- */

#define OUT_REQUEST_PUBLISH OUT(DONE_ "," S_("tool_id") "," S_("name") "," \
	S_("request_id") "," I_("version") "," S_("status"), DONE_Q "," \
	Q5("tool_id", "name", "request_id", "version", "status"))
#define OUT_REQUEST_MODULE OUT(DONE_ "," S_("request_id") "," \
	S_("module_name") "," S_("status"), DONE_Q "," Q2("module_name", \
	"status"))
#define OUT_REQUEST_NETWORK_ACCESS OUT(DONE_ "," S_("request_id") "," \
	S_("host") "," IN_("port") "," S_("protocol") "," S_("requires") \
	"," B_("declared") "," S_("next_step") "," S_("status"), DONE_Q \
	"," Q4("request_id", "host", "port", "status"))
#define OUT_GET_TOOL_STATUS OUT(S_("tool_id") "," S_("name") "," \
	S_("exposed_name") "," S_("server_name") "," S_("server_status") \
	"," B_("enabled") "," STATE_ "," I_("version") "," \
	S_("version_hash") "," IN_("serving_version") "," B_("callable") \
	"," S_("created_by") "," SN_("request_id") "," \
	SN_("approval_requested_at") "," SN_("approved_at") "," \
	SN_("approved_by") "," SN_("rejection_reason") "," \
	SN_("publish_notes") "," SN_("stopped") "," SN_("quarantined") "," \
	L_("module_requests", OUT(S_("id") "," \
	S_("module_name") "," S_("status") "," SN_("rejection_reason") "," \
	ON_("fetching") "," S_("created_at"), Q3("id", "module_name", "status"))) "," \
	LS_("modules_granted") "," L_("network_access_requests", \
	OUT(S_("id") "," S_("host") "," IN_("port") "," S_("status") "," \
	SN_("rejection_reason") "," S_("created_at"), Q3("id", "host", \
	"status"))), \
	Q6("tool_id", "name", "approval_status", "version", \
	"serving_version", "callable") "," Q6("approval_requested_at", \
	"approved_at", "approved_by", "rejection_reason", \
	"module_requests", "network_access_requests"))
#define OUT_LIST_PENDING_REQUESTS OUT( \
	L_("pending_tools", OUT(S_("id") "," S_("request_id") "," \
	    S_("name") "," S_("server_name") "," S_("requested_at"), \
	    Q5("id", "request_id", "name", "server_name", \
	    "requested_at"))) "," \
	L_("pending_module_requests", OUT(S_("id") "," S_("module_name") \
	    "," SN_("module_version") "," S_("tool_name") "," \
	    S_("server_name"), Q3("id", "module_name", "server_name"))) "," \
	L_("pending_network_requests", OUT(S_("id") "," S_("host") "," \
	    IN_("port") "," S_("tool_name") "," S_("server_name"), \
	    Q2("id", "server_name"))) "," \
	N_("summary", OUT(I_("tools") "," I_("modules") "," I_("network") \
	    "," I_("total"), Q4("tools", "modules", "network", "total"))), \
	Q4("pending_tools", "pending_module_requests", \
	"pending_network_requests", "summary"))

/* ---- parts of a server ---- */

#define OUT_GET_SERVER_MODULES OUT(B_("is_custom_config") "," \
	LS_("allowed_modules") "," LS_("default_modules") "," \
	I_("total_allowed") "," S_("description") "," I_("page") "," \
	I_("page_size"), Q5("is_custom_config", "allowed_modules", \
	"default_modules", "total_allowed", "description"))
#define OUT_CREATE_SERVER_SECRET OUT(DONE_ "," S_("server_id") "," \
	S_("key") "," S_("description") "," B_("has_value"), DONE_Q "," \
	Q4("server_id", "key", "description", "has_value"))
#define OUT_LIST_SERVER_SECRETS OUT(S_("server_id") "," S_("server_name") \
	"," L_("secrets", OUT(S_("key") "," S_("description") "," \
	B_("has_value"), Q3("key", "description", "has_value"))) "," PAGED_, \
	Q3("server_id", "server_name", "secrets") "," PAGED_Q)
#define OUT_ADD_EXTERNAL_SOURCE OUT(DONE_ "," S_("source_id") "," \
	S_("name") "," S_("url") "," S_("auth_type") "," \
	S_("transport_type"), DONE_Q "," Q5("source_id", "name", "url", \
	"auth_type", "transport_type"))
#define OUT_LIST_EXTERNAL_SOURCES OUT(S_("server_id") "," \
	S_("server_name") "," L_("sources", OUT(S_("id") "," S_("name") "," \
	S_("url") "," S_("auth_type") "," S_("transport_type") "," \
	S_("status") "," I_("tool_count") "," SN_("last_discovered_at"), \
	Q6("id", "name", "url", "auth_type", "transport_type", "status") "," \
	Q2("tool_count", "last_discovered_at"))) "," PAGED_, \
	Q3("server_id", "server_name", "sources") "," PAGED_Q)
#define OUT_DISCOVER_EXTERNAL_TOOLS OUT(DONE_ "," S_("source_id") "," \
	S_("source_name") "," SN_("protocol") "," L_("tools", OUT(S_("name") "," \
	SN_("description") "," S_("sha256") "," ON_("imported"), \
	Q3("name", "sha256", "imported"))) "," I_("total") \
	"," LS_("quarantined"), \
	DONE_Q "," Q5("source_id", "source_name", "tools", "total", \
	"quarantined"))
#define OUT_IMPORT_EXTERNAL_TOOLS OUT(DONE_ "," L_("imported_tools", \
	OUT(S_("id") "," S_("name") "," S_("exposed_name") "," S_("upstream") "," \
	S_("description") "," S_("tool_type") "," STATE_, Q6("id", "name", \
	"exposed_name", "upstream", "tool_type", "approval_status"))) "," \
	I_("count") "," L_("skipped_tools", OUT(S_("name") "," S_("code"), \
	Q2("name", "code"))) "," I_("skipped_count"), DONE_Q "," \
	Q4("imported_tools", "count", "skipped_tools", "skipped_count"))
#define OUT_IMPORT_OPENAPI OUT(DONE_ "," L_("tools", OUT(S_("id") "," \
	S_("name") "," S_("exposed_name") "," S_("request_id") "," STATE_, \
	Q5("id", "name", "exposed_name", "request_id", "approval_status"))) "," \
	I_("count") "," LS_("skipped") "," LS_("missing_hosts") "," \
	LS_("missing_secrets"), DONE_Q "," \
	Q5("tools", "count", "skipped", "missing_hosts", "missing_secrets"))
#define OUT_GUIDE OUT(S_("guide"), Q1("guide"))
/* clang-format on */

#endif
