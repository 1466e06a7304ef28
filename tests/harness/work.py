"""How much a process or a statement works: counted, so that neither the speed of
the machine nor what runs beside it decides. Compare it with a control."""
import os


def cpu(pid):
    """Seconds that this process's first thread has been on a processor."""
    with open(f"/proc/{pid}/schedstat", encoding="ascii") as f:
        return int(f.read().split()[0]) / 1e9


def cpu_of_threads(pid):
    """The same of all its threads, of which none may end meanwhile."""
    return sum(cpu(f"{pid}/task/{t}") for t in os.listdir(f"/proc/{pid}/task"))


def least(pid, *jobs, tries=3, cpu=cpu):
    """The least of a process's CPU seconds that each job takes, in several turns."""
    took = [[] for _ in jobs]
    for _ in range(tries):
        for job, mine in zip(jobs, took):
            before = cpu(pid)
            job()
            mine.append(cpu(pid) - before)
    return [min(x) for x in took]


def pages(c, query, *args):
    """Pages that a statement looks at, those of functions in it included. Its
    result is lost, its effect is not."""
    plan = c.execute("EXPLAIN (ANALYZE, BUFFERS, TIMING off, FORMAT JSON) " + query, args).fetchone()[0][0]["Plan"]
    return plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]
