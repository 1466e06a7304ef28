"""Ends a socket at which a thread waits in accept(2)."""
import contextlib
import socket

from harness.patience import patience


def end(listener, thread=None):
    """Wakes the thread, which finds an OSError, and closes the socket.

    close() alone leaves the thread in accept(2), by the number of a descriptor. A number
    is given out again, and the kernel starts the call again with it after any signal that
    restarts calls; glibc sends one to every thread when a user id changes (nptl(7)). The
    thread then takes a connection that belongs to the next socket of that number."""
    with contextlib.suppress(OSError):      # no stream, or closed already
        listener.shutdown(socket.SHUT_RDWR)
    if thread is not None:
        thread.join(patience(10))
        assert not thread.is_alive()
    listener.close()
