-- Privileges of mcpbox_app: it may read, insert intents, and call the functions
-- that each file granted. It may do nothing else.
REVOKE ALL ON ALL TABLES IN SCHEMA mcpbox FROM PUBLIC;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA mcpbox FROM PUBLIC;
GRANT SELECT ON ALL TABLES IN SCHEMA mcpbox TO mcpbox_app;
GRANT INSERT ON intents TO mcpbox_app;
REVOKE ALL ON callable_now FROM mcpbox_app;
REVOKE ALL ON idempotency_keys FROM mcpbox_app;
REVOKE ALL ON import_parts FROM mcpbox_app;
REVOKE ALL ON imports FROM mcpbox_app;
