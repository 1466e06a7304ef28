/*
 * The management tools by name. Their definitions for clients are in
 * management_tools.c; a test compares the two lists.
 */
#include "manage.h"
#include "step.h"
#include "versions.h"

const struct manage_tool manage_tools[] = {
    {"mcpbox_list_servers", manage_list_servers},
    {"mcpbox_get_server", manage_made},
    {"mcpbox_create_server", manage_create_server},
    {"mcpbox_update_server", manage_made},
    {"mcpbox_delete_server", manage_made},
    {"mcpbox_start_server", manage_start_server},
    {"mcpbox_stop_server", manage_stop_server},
    {"mcpbox_list_tools", manage_list_objects},
    {"mcpbox_get_tool", manage_made},
    {"mcpbox_create_tool", manage_create},
    {"mcpbox_update_tool", manage_update},
    {"mcpbox_delete_tool", manage_delete},
    {"mcpbox_validate_code", manage_validate_code},
    {"mcpbox_test_code", manage_test_code},
    {"mcpbox_call_tool", manage_call_tool},
    {"mcpbox_search_tools", manage_search_tools},
    {"mcpbox_list_tool_versions", manage_made},
    {"mcpbox_diff_tool_versions", manage_diff},
    {"mcpbox_rollback_tool", manage_made},
    {"mcpbox_get_tool_logs", manage_made},
    {"mcpbox_request_publish", manage_request_publish},
    {"mcpbox_request_module", manage_request_module},
    {"mcpbox_request_network_access", manage_request_network},
    {"mcpbox_get_server_modules", manage_made},
    {"mcpbox_get_tool_status", manage_get_tool_status},
    {"mcpbox_list_pending_requests", manage_list_pending_requests},
    {"mcpbox_create_server_secret", manage_made},
    {"mcpbox_list_server_secrets", manage_made},
    {"mcpbox_add_external_source", manage_made},
    {"mcpbox_list_external_sources", manage_made},
    {"mcpbox_discover_external_tools", manage_discover},
    {"mcpbox_import_external_tools", manage_import_tools},
    {"mcpbox_import_openapi", manage_import_openapi},
    {"mcpbox_guide", manage_guide},
    {"mcpbox_list_prompts", manage_list_objects},
    {"mcpbox_create_prompt", manage_create},
    {"mcpbox_update_prompt", manage_update},
    {"mcpbox_delete_prompt", manage_delete},
    {"mcpbox_list_resources", manage_list_objects},
    {"mcpbox_create_resource", manage_create},
    {"mcpbox_update_resource", manage_update},
    {"mcpbox_delete_resource", manage_delete},
    {NULL, NULL},
};
