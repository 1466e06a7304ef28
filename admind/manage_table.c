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
    {"mcpbox_list_tools", manage_list_tools},
    {"mcpbox_create_tool", manage_create_tool},
    {"mcpbox_update_tool", manage_update_tool},
    {"mcpbox_request_publish", manage_request_publish},
    {"mcpbox_request_module", manage_request_module},
    {"mcpbox_guide", manage_guide},
    {"mcpbox_get_tool_status", manage_get_tool_status},
    {"mcpbox_list_pending_requests", manage_list_pending_requests},
    {NULL, NULL},
};
