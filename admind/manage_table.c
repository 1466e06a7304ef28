/*
 * The management tools by name. Their definitions for clients are in
 * management_tools.c; a unit test holds the two lists together.
 */
#include "admind.h"

const struct manage_tool manage_tools[] = {
    {"mcpbox_list_servers", manage_list_servers},
    {"mcpbox_create_server", manage_create_server},
    {"mcpbox_start_server", manage_start_server},
    {"mcpbox_stop_server", manage_stop_server},
    {"mcpbox_list_tools", manage_list_objects},
    {"mcpbox_create_tool", manage_create},
    {"mcpbox_update_tool", manage_update},
    {"mcpbox_request_publish", manage_request_publish},
    {"mcpbox_request_module", manage_request_module},
    {"mcpbox_guide", manage_guide},
    {"mcpbox_get_tool_status", manage_get_tool_status},
    {"mcpbox_list_pending_requests", manage_list_pending_requests},
    {"mcpbox_search_tools", manage_search_tools},
    {"mcpbox_delete_tool", manage_delete},
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
