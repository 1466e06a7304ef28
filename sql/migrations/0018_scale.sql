-- 0018: indexes for a million records and ten thousand tools, where those of the
-- tables' own migrations do not do (tests/database/test_scale.py).
SET LOCAL search_path = mcpbox, pg_temp;

-- From a version found by its words to the tool that it serves.
CREATE INDEX tools_serving ON tools (serving_version) WHERE serving_version IS NOT NULL;

-- Prompts, resources and templates for the catalogue, without walking past the
-- tools.
CREATE INDEX tools_other ON tools (object, serving_version)
    WHERE object <> 'tool' AND serving_version IS NOT NULL;

-- What waits for a person, of each kind in the order it came.
CREATE INDEX approval_requests_waiting ON approval_requests (kind, requested_at, id)
    WHERE state = 'pending';
