#include <arpa/inet.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "child.h"
#include "conf.h"
#include "doctor.h"
#include "setup.h"

/*
 * Checks what the service manager says of the units, whether listeners answer,
 * and whether programs and files fit each other. The checks change nothing, but
 * connecting to a listener may start a service that systemd starts at a
 * connection.
 */

enum {
	TEXT_MAX = 256 * 1024,
	RESTARTS_MANY = 3, /* restarts since the last start by hand */
	CONNECT_MS = 2000, /* connecting to this machine */
	FIELD_MAX = 256
};

static const char *const units[] = {"mcpbox.target",
    "mcpbox-gatewayd@local.socket", "mcpbox-gatewayd@tunnel.socket",
    "mcpbox-admind-http.socket", "mcpbox-gatewayd@local.service",
    "mcpbox-gatewayd@tunnel.service", "mcpbox-admind-http.service",
    "mcpbox-admind.service", "mcpbox-admind-check.service",
    "mcpbox-admind-vault.service", "mcpbox-migrate.service",
    "mcpbox-sandboxd.service", "mcpbox-sandboxd-spawn.service",
    "mcpbox-sandboxd-egress.service", "mcpbox-sandboxd-store.service",
    "mcpbox-resolv.path", "mcpbox-resolv-link.path", "mcpbox-resolv.service"};

/* An administrator switches an unwanted listener off through its socket unit
 * (OPERATIONS.md). */
static const struct listening {
	const char *row, *process, *file, *socket, *service;
} listeners[] = {
    {"listener_local", "gatewayd", "gatewayd-local",
	"mcpbox-gatewayd@local.socket", "mcpbox-gatewayd@local.service"},
    {"listener_tunnel", "gatewayd", "gatewayd-tunnel",
	"mcpbox-gatewayd@tunnel.socket", "mcpbox-gatewayd@tunnel.service"},
    {"listener_admin", "admind-http", "admind-http",
	"mcpbox-admind-http.socket", "mcpbox-admind-http.service"}};

enum {
	NUNITS = sizeof(units) / sizeof(units[0]),
	NLISTENERS = sizeof(listeners) / sizeof(listeners[0])
};

/* Runs a program and puts its standard output as text into *out. Returns its
 * exit status, or -1. */
static int
output_of(const char *program, const char *const *args, struct buf *out,
    struct buf *said)
{
	int fd = memfd_create("output", MFD_CLOEXEC), status;
	struct child child = {
	    .program = program, .args = args, .in = -1, .out = fd};
	char chunk[4096];
	ssize_t n;

	if (fd == -1)
		return -1;
	status = child_run(&child, said, NULL);
	if (lseek(fd, 0, SEEK_SET) == 0)
		while ((n = read(fd, chunk, sizeof(chunk))) > 0)
			buf_put(out, chunk, (size_t)n);
	buf_putc(out, '\0');
	close(fd);
	return out->failed ? -1 : status;
}

struct unit {
	char id[FIELD_MAX], load[FIELD_MAX], active[FIELD_MAX], file[FIELD_MAX],
	    result[FIELD_MAX], pid[FIELD_MAX], restarts[FIELD_MAX],
	    delegate[FIELD_MAX];
};

/* Reads one unit's lines NAME=VALUE. */
static void
read_unit(char *block, struct unit *u)
{
	const struct {
		const char *name;
		char *out;
	} fields[] = {{"Id", u->id}, {"LoadState", u->load},
	    {"ActiveState", u->active}, {"UnitFileState", u->file},
	    {"Result", u->result}, {"MainPID", u->pid},
	    {"NRestarts", u->restarts}, {"DelegateControllers", u->delegate}};
	char *line, *rest = block, *eq;

	memset(u, 0, sizeof(*u));
	while ((line = strsep(&rest, "\n")) != NULL) {
		if ((eq = strchr(line, '=')) == NULL)
			continue;
		*eq = '\0';
		for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
			if (strcmp(line, fields[i].name) == 0)
				snprintf(
				    fields[i].out, FIELD_MAX, "%s", eq + 1);
	}
}

/* True if the executable was replaced since the process began. */
static bool
is_older(const char *pid)
{
	static const char gone[] = " (deleted)";
	char path[64], target[SETUP_PATH_MAX];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%.16s/exe", pid);
	n = readlink(path, target, sizeof(target) - 1);
	return n > (ssize_t)sizeof(gone) &&
	    memcmp(target + n - (sizeof(gone) - 1), gone, sizeof(gone) - 1) ==
	    0;
}

/* Tells whether a unit is inactive, and disabled or masked. A unit that failed
 * is not inactive. */
static bool
is_off(const struct unit *u)
{
	return strcmp(u->active, "inactive") == 0 &&
	    (strcmp(u->file, "disabled") == 0 ||
		strncmp(u->file, "masked", strlen("masked")) == 0);
}

/* Finds the listeners whose socket units were switched off. belongs_off()
 * counts their services as off, too, enabled or not, unless a service
 * failed. */
static void
find_off(const struct unit *all, size_t n, bool off[NLISTENERS])
{
	for (size_t l = 0; l < NLISTENERS; l++)
		for (size_t i = 0; i < n; i++)
			if (strcmp(all[i].id, listeners[l].socket) == 0)
				off[l] = is_off(&all[i]);
}

static bool
belongs_off(const struct unit *u, const bool off[NLISTENERS])
{
	for (size_t l = 0; l < NLISTENERS; l++)
		if (off[l] && strcmp(u->active, "inactive") == 0 &&
		    (strcmp(u->id, listeners[l].socket) == 0 ||
			strcmp(u->id, listeners[l].service) == 0))
			return true;
	return false;
}

/* Reports a unit that is not well. Returns true if there is nothing to
 * report. */
static bool
judge_unit(struct doctor *d, const struct unit *u)
{
	/* A oneshot unit may be inactive if it ended with success. */
	bool once = (strcmp(u->id, "mcpbox-migrate.service") == 0 ||
			strcmp(u->id, "mcpbox-resolv.service") == 0) &&
	    strcmp(u->active, "inactive") == 0 &&
	    strcmp(u->result, "success") == 0;

	if (strcmp(u->load, "loaded") != 0)
		doctor_row(d, u->id, DOCTOR_MISSING,
		    strcmp(u->load, "masked") == 0
			? "systemctl unmask it, or leave it so if that is "
			  "meant."
			: "Install the package again.",
		    "%s", u->load);
	else if (strcmp(u->active, "active") != 0 && !once)
		doctor_row(d, u->id, DOCTOR_MISSING,
		    "journalctl -u UNIT -n 50 says why; then systemctl start "
		    "mcpbox.target.",
		    "%s, %s", u->active, u->result);
	else if (strcmp(u->file, "disabled") == 0 &&
	    strcmp(u->id, "mcpbox.target") == 0)
		doctor_row(d, u->id, DOCTOR_DEGRADED,
		    "systemctl enable mcpbox.target",
		    "not started when the machine starts");
	else if (strtol(u->restarts, NULL, 10) >= RESTARTS_MANY)
		doctor_row(d, u->id, DOCTOR_DEGRADED,
		    "journalctl -u UNIT says what ends it.",
		    "restarted %s times", u->restarts);
	else if (u->pid[0] != '\0' && strcmp(u->pid, "0") != 0 &&
	    is_older(u->pid))
		doctor_row(d, u->id, DOCTOR_DEGRADED,
		    "systemctl restart mcpbox.target; processes of two builds "
		    "do not talk to each other.",
		    "runs a program that was replaced since");
	else
		return true;
	return false;
}

/* Checks that memory, pids and cpu are delegated. Otherwise these controllers
 * can't bound a call. */
static void
judge_delegation(struct doctor *d, const struct unit *u)
{
	static const char *const needed[] = {"memory", "pids", "cpu"};

	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
		if (strstr(u->delegate, needed[i]) == NULL) {
			doctor_row(d, "cgroup_delegation", DOCTOR_DEGRADED,
			    "Delegate=memory pids cpu in a drop-in of "
			    "mcpbox-sandboxd-spawn.service, and a kernel with "
			    "cgroup v2 (cgroup_no_v1=all, "
			    "cgroup_enable=memory).",
			    "no %s: calls are bounded by rlimits only",
			    needed[i]);
			return;
		}
	doctor_row(d, "cgroup_delegation", DOCTOR_HOLDS, "", "%s", u->delegate);
}

static void
look_at_units(struct doctor *d, bool off[NLISTENERS])
{
	const char *args[NUNITS + 4] = {"show", "--no-pager",
	    "--property=Id,LoadState,ActiveState,UnitFileState,Result,MainPID,"
	    "NRestarts,DelegateControllers"};
	struct buf text, said;
	struct unit all[NUNITS];
	char *block, *next;
	size_t n = 0;
	int well = 0;

	if (!setup_machine_systemd()) {
		doctor_row(d, "units", DOCTOR_DEGRADED,
		    "See the units in /usr/lib/systemd/system.",
		    "systemd does not run here: who starts the processes is "
		    "unknown");
		return;
	}
	buf_init(&text, TEXT_MAX);
	buf_init(&said, CHILD_SAID_MAX);
	for (size_t i = 0; i < NUNITS; i++)
		args[i + 3] = units[i];
	if (output_of("/usr/bin/systemctl", args, &text, &said) != 0) {
		doctor_row(d, "units", DOCTOR_MISSING,
		    "systemctl status mcpbox.target", "systemctl failed");
		goto out;
	}
	for (block = (char *)text.p; block != NULL && n < NUNITS;
	    block = next) {
		if ((next = strstr(block, "\n\n")) != NULL) {
			*next = '\0';
			next += 2;
		}
		read_unit(block, &all[n]);
		n += all[n].id[0] != '\0';
	}
	find_off(all, n, off);
	for (size_t i = 0; i < n; i++) {
		well += belongs_off(&all[i], off) || judge_unit(d, &all[i]);
		if (strcmp(all[i].id, "mcpbox-sandboxd-spawn.service") == 0)
			judge_delegation(d, &all[i]);
	}
	if (well == NUNITS)
		doctor_row(d, "units", DOCTOR_HOLDS, "",
		    "%d are as they "
		    "should be",
		    well);
out:
	buf_free(&text);
	buf_free(&said);
}

/* ---- listeners ---- */

/*
 * Reads the first line of the file in which a daemon says where it listens. The
 * daemon owns that file's directory. So only a regular file is read, without
 * following a link. Otherwise a taken-over daemon could make root wait for ever
 * for a fifo, or open the target of a link. That may be a secret, whose first
 * line we would show, or a watchdog device, which starts when it is opened.
 */
static bool
read_address(const char *path, char *out, size_t len)
{
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;
	ssize_t n = 0;

	if (fd == -1)
		return false;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		n = read(fd, out, len - 1);
	close(fd);
	if (n <= 0)
		return false;
	out[n] = '\0';
	out[strcspn(out, "\n")] = '\0';
	return true;
}

/*
 * Opens the socket at path, which must be below the run directory. The daemons
 * own the directories there. A link among them could lead to any socket of the
 * machine, so none is followed. A socket that is replaced after this is not
 * used: try_connect() connects to the socket that was opened here. Returns a
 * descriptor (O_PATH), or -1 with errno.
 */
static int
open_ours(const struct ctl *c, const char *path)
{
	struct open_how how = {.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
	    .resolve =
		RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
	size_t n = strlen(c->run_dir);
	int dir, fd, saved;
	struct stat st;

	errno = EACCES;
	if (strncmp(path, c->run_dir, n) != 0 || path[n] != '/')
		return -1;
	dir = open(c->run_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir == -1)
		return -1;
	fd = (int)syscall(SYS_openat2, dir, path + n + 1, &how, sizeof(how));
	saved = errno;
	close(dir);
	errno = saved;
	if (fd == -1 || (fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode)))
		return fd;
	close(fd);
	errno = ENOTSOCK;
	return -1;
}

union address {
	struct sockaddr any;
	struct sockaddr_un un;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

/* Parses HOST:PORT, with an IPv6 host in brackets. Returns the length of the
 * address, or 0. */
static socklen_t
parse_host(const char *addr, union address *to)
{
	const char *colon = strrchr(addr, ':');
	bool six = addr[0] == '[';
	char host[INET6_ADDRSTRLEN];
	size_t n;
	in_port_t port;

	if (colon == NULL || (six && colon[-1] != ']'))
		return 0;
	n = (size_t)(colon - addr) - (six ? 2 : 0);
	if (n >= sizeof(host))
		return 0;
	memcpy(host, addr + six, n);
	host[n] = '\0';
	port = htons((uint16_t)strtoul(colon + 1, NULL, 10));
	memset(to, 0, sizeof(*to));
	if (six) {
		to->in6.sin6_family = AF_INET6;
		to->in6.sin6_port = port;
		return inet_pton(AF_INET6, host, &to->in6.sin6_addr) == 1
		    ? sizeof(to->in6)
		    : 0;
	}
	to->in.sin_family = AF_INET;
	to->in.sin_port = port;
	return inet_pton(AF_INET, host, &to->in.sin_addr) == 1 ? sizeof(to->in)
							       : 0;
}

/* Binds the socket to the host of *to, at any port. That works only for an
 * address of this machine. An IPv4 address written as IPv6 is refused. 0, or -1
 * with errno. */
static int
bind_here(int fd, const union address *to, socklen_t len)
{
	static const int yes = 1;
	union address from = *to;

	if (to->any.sa_family == AF_INET)
		from.in.sin_port = 0;
	else if (setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof(yes)) ==
	    -1)
		return -1;
	else
		from.in6.sin6_port = 0;
	return bind(fd, &from.any, len);
}

/* Waits until connect() has ended. 0, or -1 with errno. */
static int
answered(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLOUT};
	socklen_t len = sizeof(int);
	int e = ETIMEDOUT;

	if (poll(&p, 1, CONNECT_MS) == 1 &&
	    getsockopt(fd, SOL_SOCKET, SO_ERROR, &e, &len) == -1)
		e = errno;
	errno = e;
	return e == 0 ? 0 : -1;
}

/*
 * Connects to HOST:PORT or to a socket's path. The daemon that wrote the
 * address may have no network access, and must not get any through root. So
 * only two kinds are allowed: addresses of this machine (bind_here() succeeds
 * only for these), and sockets of the suite. 0, or -1 with errno.
 */
static int
try_connect(const struct ctl *c, const char *addr)
{
	union address to;
	socklen_t len;
	int fd = -1, ours = -1, rc = -1, saved;

	errno = EINVAL;
	if (addr[0] == '/') {
		if ((ours = open_ours(c, addr)) == -1)
			return -1;
		to.un.sun_family = AF_UNIX;
		(void)snprintf(to.un.sun_path, sizeof(to.un.sun_path),
		    "/proc/self/fd/%d", ours);
		len = sizeof(to.un);
	} else if ((len = parse_host(addr, &to)) == 0) {
		return -1;
	}
	fd = socket(
	    to.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd == -1)
		goto out;
	rc = addr[0] == '/' ? 0 : bind_here(fd, &to, len);
	if (rc == 0)
		rc = connect(fd, &to.any, len);
	if (rc == -1 && errno == EINPROGRESS)
		rc = answered(fd);
	else if (rc == -1 && errno == EAGAIN)
		rc = 0; /* the socket's queue is full, so a process listens */
out:
	saved = errno;
	if (fd != -1)
		close(fd);
	if (ours != -1)
		close(ours);
	errno = saved;
	return rc;
}

static void
look_at_listener(struct doctor *d, const struct listening *l, bool off)
{
	struct conf *conf = conf_new(l->process);
	char path[SETUP_PATH_MAX], addr[128] = "";

	if (off) {
		doctor_row(d, l->row, DOCTOR_OFF,
		    "If it is wanted: systemctl enable --now its .socket "
		    "(unmask it first).",
		    "%s is switched off", l->socket);
		goto out;
	}
	snprintf(path, sizeof(path), "%s/%s.conf", d->c->conf_dir, l->file);
	if (conf == NULL || conf_load(conf, path, NULL) == -1)
		goto out; /* look_at_programs() reports it */
	if (!read_address(conf_str(conf, "addr_file"), addr, sizeof(addr))) {
		doctor_row(d, l->row, DOCTOR_MISSING,
		    "systemctl status mcpbox.target", "%s: nobody listens yet",
		    conf_str(conf, "addr_file"));
		goto out;
	}
	if (try_connect(d->c, addr) == -1)
		doctor_row(d, l->row, DOCTOR_MISSING,
		    "systemctl status mcpbox.target", "%s: %s", addr,
		    strerror(errno));
	else
		doctor_row(d, l->row, DOCTOR_HOLDS, "", "%s", addr);
out:
	conf_free(conf);
}

/* ---- programs and configuration ---- */

static void
look_at_programs(struct doctor *d)
{
	static const struct {
		const char *program, *file;
	} all[] = {{"mcpbox-gatewayd", "gatewayd-local"},
	    {"mcpbox-gatewayd", "gatewayd-tunnel"}, {"mcpbox-admind", "admind"},
	    {"mcpbox-admind-http", "admind-http"},
	    {"mcpbox-admind-check", "admind-check"},
	    {"mcpbox-admind-vault", "admind-vault"},
	    {"mcpbox-sandboxd", "sandboxd"},
	    {"mcpbox-sandboxd-spawn", "sandboxd-spawn"},
	    {"mcpbox-sandboxd-egress", "egress"},
	    {"mcpbox-sandboxd-store", "sandboxd-store"}};
	enum { N = sizeof(all) / sizeof(all[0]) };
	char program[SETUP_PATH_MAX], file[SETUP_PATH_MAX];
	const char *const version[] = {"-V", NULL};
	const char *const check[] = {"-t", "-f", file, NULL};
	int well = 0, same = 0, status;
	struct buf text, said;

	for (size_t i = 0; i < N; i++) {
		buf_init(&text, TEXT_MAX);
		buf_init(&said, CHILD_SAID_MAX);
		snprintf(program, sizeof(program), "%s/%s", d->c->libexec_dir,
		    all[i].program);
		snprintf(file, sizeof(file), "%s/%s.conf", d->c->conf_dir,
		    all[i].file);
		status = output_of(program, version, &text, &said);
		if (status == 0)
			text.p[strcspn((char *)text.p, "\n")] = '\0';
		if (status != 0)
			doctor_row(d, "version", DOCTOR_MISSING,
			    "Install the package again.", "%s does not run",
			    program);
		else if (strcmp(strchr((char *)text.p, ' ') != NULL
				 ? strchr((char *)text.p, ' ') + 1
				 : "",
			     MCPBOX_VERSION) != 0)
			doctor_row(d, "version", DOCTOR_MISSING,
			    "Install the package again.",
			    "%s is another version than mcpboxctl %s",
			    (const char *)text.p, MCPBOX_VERSION);
		else
			same++;
		buf_clear(&text);
		buf_clear(&said);
		if (status == 0 &&
		    (status = output_of(program, check, &text, &said)) != 0)
			doctor_row(d, "configuration", DOCTOR_MISSING,
			    "Mend the line, then restart the unit "
			    "(mcpbox.conf(5)).",
			    "%.*s",
			    said.len > 0 ? (int)strcspn((char *)said.p, "\n")
					 : 0,
			    said.p != NULL ? (const char *)said.p : "");
		well += status == 0;
		buf_free(&text);
		buf_free(&said);
	}
	if (same == N)
		doctor_row(
		    d, "version", DOCTOR_HOLDS, "", "%s", MCPBOX_VERSION);
	if (well == N)
		doctor_row(d, "configuration", DOCTOR_HOLDS, "",
		    "%d files in %s", N, d->c->conf_dir);
}

void
doctor_units(struct doctor *d)
{
	bool off[NLISTENERS] = {false};

	look_at_units(d, off);
	for (size_t l = 0; l < NLISTENERS; l++)
		look_at_listener(d, &listeners[l], off[l]);
	look_at_programs(d);
}
