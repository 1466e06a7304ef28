"""A key rotation that is stopped half way, whatever the machine's speed: the database
holds back the renewal that comes after so many."""
import os
import signal

import psycopg

from harness.patience import until

LOCK = 20_260_000
HOLD = """
CREATE SEQUENCE public.renewals;
CREATE FUNCTION public.hold_renewal() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    IF nextval('public.renewals') > {after} THEN
        PERFORM pg_advisory_xact_lock_shared({lock});
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER hold_renewal BEFORE UPDATE ON mcpbox.server_secrets
    FOR EACH ROW EXECUTE FUNCTION public.hold_renewal();
"""
RELEASE = """
SELECT pg_advisory_unlock({lock});
DROP TRIGGER hold_renewal ON mcpbox.server_secrets;
DROP FUNCTION public.hold_renewal();
DROP SEQUENCE public.renewals;
"""
WAITS = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objid = %s AND NOT granted"


def stopped_after(instance, renewed, start):
    """The process that start() made, which renews values, under SIGSTOP: so many secrets
    and the one that was held back are renewed, and all others are not."""
    with psycopg.connect(host=instance.run("postgresql"), user="postgres", dbname="mcpbox", autocommit=True) as c:
        c.execute(HOLD.format(after=renewed, lock=LOCK))
        c.execute("SELECT pg_advisory_lock(%s)", [LOCK])
        try:
            proc = start()
            until(lambda: proc.poll() is not None or c.execute(WAITS, [LOCK]).fetchone())
            assert proc.poll() is None, proc.communicate()
            os.kill(proc.pid, signal.SIGSTOP)
        finally:
            # Dropping the trigger waits for the transaction of the held one.
            c.execute(RELEASE.format(lock=LOCK))
    return proc
