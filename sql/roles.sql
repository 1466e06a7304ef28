-- Roles and the database, made once by a PostgreSQL superuser:
--
--	psql -X -v ON_ERROR_STOP=1 -d postgres -f sql/roles.sql
--
-- Running it again is harmless. mcpbox_owner owns the schema and is used only
-- by `mcpbox-admind -m`, as a unix user of its own. admind works with mcpbox_app,
-- which can change data only through the functions that the migrations grant it.
-- Neither has a password: pg_hba.conf and pg_ident.conf decide by peer which unix
-- user may be which role. On a server elsewhere, `mcpboxctl setup --database`
-- gives them passwords.

-- Only one run at a time: a statement that a killed run left running ends first.
-- The lock is held as long as the session.
SELECT pg_advisory_lock(1835232098) \g /dev/null

SELECT 'CREATE ROLE mcpbox_owner LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE'
WHERE NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'mcpbox_owner') \gexec
SELECT 'CREATE ROLE mcpbox_app LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE'
WHERE NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'mcpbox_app') \gexec

-- A role that may make roles and databases but is no superuser (as on a rented
-- server) must be a member of mcpbox_owner to make a database that mcpbox_owner
-- owns. It is a member until the end of this file.
SELECT NOT rolsuper AS borrowed FROM pg_roles WHERE rolname = current_user \gset
\if :borrowed
GRANT mcpbox_owner TO CURRENT_USER;
\endif

-- C.UTF-8: names sort by code point on every machine, and an upgrade of the
-- C library can't change an index's order. Another encoding is refused.
SELECT 'CREATE DATABASE mcpbox OWNER mcpbox_owner ENCODING ''UTF8'''
    ' LOCALE ''C.UTF-8'' TEMPLATE template0'
WHERE NOT EXISTS (SELECT 1 FROM pg_database WHERE datname = 'mcpbox') \gexec

REVOKE ALL ON DATABASE mcpbox FROM PUBLIC;
GRANT CONNECT ON DATABASE mcpbox TO mcpbox_app;
\if :borrowed
REVOKE mcpbox_owner FROM CURRENT_USER;
\endif
