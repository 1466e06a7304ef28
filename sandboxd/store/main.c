/*
 * mcpbox-sandboxd-store: the one process that writes to the module store.
 *
 * Its input is bytes that an installer in a runner made of a wheel. They come
 * through sandboxd, which does not look into them (docs/decisions/0052). This
 * process turns the bytes into files and directories below one directory,
 * nothing else. It parses no archive, follows no link, executes nothing, and
 * computes each entry's name itself from the bytes that it wrote.
 *
 * An attacker who takes this process over can make entries, and fill the disk
 * as far as this process' user may. The names of such entries are of no use to
 * him: he could compute them anywhere. He cannot change or remove an entry.
 * Landlock lets this process write files below .incoming alone and remove
 * nothing elsewhere, the store's directory is root's and sticky, and the
 * directories of entries cannot be made writable again (deposit.c). An entry is
 * mounted only if an approved version names it by its digest.
 */
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bounds.h"
#include "confine.h"
#include "crypto.h"
#include "deposit.h"
#include "fence.h"
#include "ipc_peer.h"
#include "log.h"
#include "proc.h"
#include "service.h"

enum { WALK_FDS = 32, PATH_BYTES = 4096 };

struct store {
	struct proc proc;
	struct deposits *deposits;
};

/* ---- requests ---- */

static int
on_put(struct store *s, struct ipc_peer *p, struct ipc_frame *f)
{
	struct ipc_store_put m;
	struct ipc_stored out;
	struct err e;

	if (ipc_decode(f, &m, &e) != 0)
		return -1;
	switch (deposit_put(
	    s->deposits, &m.execution, m.data, m.last != 0, &out, &e)) {
	case 0:
		(void)ipc_answer_ok(p, m.request);
		break;
	case 1:
		(void)ipc_answer(p, m.request, IPC_STORED, &out);
		break;
	default:
		log_event(LOG_LV_WARN, "module_refused", "%s", e.text);
		(void)ipc_refuse(p, m.request, e.failure, e.text, 0);
	}
	return 0;
}

static int
on_ask(struct store *s, struct ipc_peer *p, struct ipc_frame *f)
{
	uint8_t there[STORE_ASK_MAX];
	struct ipc_store_says says;
	struct ipc_store_ask m;
	struct err e;
	size_t n;

	if (ipc_decode(f, &m, &e) != 0)
		return -1;
	n = m.digests.n / 32;
	if (m.digests.n % 32 != 0 || n > STORE_ASK_MAX)
		return -1;
	for (size_t i = 0; i < n; i++)
		there[i] = deposit_has(s->deposits, m.digests.p + 32 * i);
	says = (struct ipc_store_says){.there = ipc_bytes(there, n)};
	(void)ipc_answer(p, m.request, IPC_STORE_SAYS, &says);
	return 0;
}

static int
on_message(struct ipc_peer *p, struct ipc_frame *f, void *arg)
{
	struct store *s = arg;
	struct ipc_store_drop m;
	struct err e;

	switch (f->type) {
	case IPC_STORE_PUT:
		return on_put(s, p, f);
	case IPC_STORE_ASK:
		return on_ask(s, p, f);
	case IPC_STORE_DROP:
		if (ipc_decode(f, &m, &e) != 0)
			return -1;
		deposit_drop(s->deposits, &m.execution);
		return 0;
	default:
		return -1;
	}
}

/* Drops all unfinished trees: sandboxd's only connection has ended. */
static void
on_down(struct ipc_peer *p, void *arg)
{
	struct store *s = arg;

	deposit_drop_all(s->deposits);
}

/* ---- start: before confinement, as the user that owns nothing else ---- */

static uint64_t found; /* bytes of all entries */

static int
count_one(const char *path, const struct stat *st, int type, struct FTW *w)
{
	if (type == FTW_F)
		found += (uint64_t)st->st_size;
	return 0;
}

static int
free_one(const char *path, const struct stat *st, int type, struct FTW *w)
{
	if (type == FTW_D)
		(void)chmod(path, 0755);
	return 0;
}

static int
remove_one(const char *path, const struct stat *st, int type, struct FTW *w)
{
	return w->level == 0 ? 0 : remove(path);
}

/*
 * Prepares the store. Removes the unfinished trees of an earlier process, and
 * counts the bytes of the entries once (entries that root adds later count from
 * the next start on). The store's directory is root's, so only .incoming is
 * made here. If the directory does not let us make .incoming, contrib/instance
 * has made it already.
 */
static int
prepare(const char *path, struct deposits_conf *conf)
{
	char incoming[PATH_BYTES];
	struct err e;

	if ((size_t)snprintf(incoming, sizeof(incoming), "%s/%s", path,
		DEPOSIT_INCOMING) >= sizeof(incoming))
		log_fatal("config", "module_dir is too long");
	if (mkdir(incoming, 0700) == -1 && errno != EEXIST)
		log_fatal("module_dir", "%s: %s", incoming, strerror(errno));
	(void)nftw(incoming, free_one, WALK_FDS, FTW_PHYS | FTW_MOUNT);
	if (nftw(incoming, remove_one, WALK_FDS,
		FTW_PHYS | FTW_MOUNT | FTW_DEPTH) != 0)
		log_event(LOG_LV_WARN, "module_store", "%s: %s", incoming,
		    strerror(errno));
	(void)nftw(path, count_one, WALK_FDS, FTW_PHYS | FTW_MOUNT);
	conf->used = found;
	conf->store = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (conf->store == -1) {
		(void)err_sys(&e, FAILURE_INTERNAL, "%s", path);
		log_fatal("module_dir", "%s", e.text);
	}
	return open(incoming, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static void
confine(const struct deposits_conf *conf, int incoming)
{
	/* The calls that make, write and remove files below open directories.
	 * fchmod can take write bits away, but give none. */
	static const struct confine_rule rules[] = {
	    {.syscall = SCMP_SYS(openat2), .arg = -1},
	    {.syscall = SCMP_SYS(mkdirat), .arg = -1},
	    {.syscall = SCMP_SYS(unlinkat), .arg = -1},
	    {.syscall = SCMP_SYS(renameat2), .arg = -1},
	    {.syscall = SCMP_SYS(getdents64), .arg = -1},
	    {.syscall = SCMP_SYS(syncfs), .arg = -1},
	    {.syscall = SCMP_SYS(fchmod),
		.arg = 1,
		.mask = UINT64_MAX,
		.equals = 0555},
	};
	struct confine_spec spec = {
	    .process = "sandboxd-store",
	    .rules = rules,
	    .nrules = sizeof(rules) / sizeof(rules[0]),
	    .seccomp = true,
	};
	struct buf layers;
	struct err e;

	buf_init(&layers, 4096);
#ifndef __SANITIZE_ADDRESS__
	buf_putf(&layers, "landlock_files=%s\n",
	    fence_enter(conf->store, incoming) ? "enforced" : "missing");
#endif
	close(incoming);
	if (confine_self(&spec, &layers, &e) != 0)
		log_fatal("confine", "%s", e.text);
	buf_putc(&layers, '\0');
	if (layers.failed)
		log_fatal("confine", "no memory");
	ipc_hello_set("mcpbox-sandboxd-store", (const char *)layers.p);
	buf_free(&layers);
}

int
main(int argc, char **argv)
{
	static const struct ipc_handlers handlers = {
	    .message = on_message, .down = on_down};
	static struct store s;
	struct deposits_conf conf = {.store = -1};
	struct ipc_server *server;
	struct ipc_hash warm;
	const char *dir;
	char path[128];
	struct err e;
	int incoming, status;
	uid_t user;

	proc_start(&s.proc, "sandboxd-store", argc, argv);
	/* Runners read our files under uids that are unknown here, so all users
	 * must be able to read them. */
	(void)umask(022);
	dir = conf_str(s.proc.conf, "module_dir");
	conf.most_files = (uint64_t)conf_int(s.proc.conf, "module_files");
	conf.most_bytes = (uint64_t)conf_int(s.proc.conf, "module_bytes");
	conf.most_store = (uint64_t)conf_int(s.proc.conf, "store_bytes");
	incoming = prepare(dir, &conf);
	if ((s.deposits = deposit_new(&conf, &e)) == NULL)
		log_fatal("module_dir", "%s", e.text);
	user = conf_user(s.proc.conf, "sandboxd_user");
	if (proc_socket_path(&s.proc, "sandboxd-store", "sandboxd", path,
		sizeof(path), &e) != 0 ||
	    (server = ipc_server_new(s.proc.base, path, "sandboxd",
		 IPC_ROLE_STORE, IPC_ROLE_SANDBOXD, &user, 1, &handlers, &s,
		 &e)) == NULL)
		log_fatal("listen", "%s", e.text);
	sha256("", 0, &warm); /* OpenSSL finds its algorithm while it may */
	confine(&conf, incoming);
	log_event(LOG_LV_INFO, "ready", "%s: %llu bytes", dir,
	    (unsigned long long)conf.used);
	service_ready(s.proc.base, dir);
	status = proc_run(&s.proc);
	ipc_server_free(server);
	deposit_free(s.deposits);
	close(conf.store);
	return status;
}
