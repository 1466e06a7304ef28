/* admind without its main. */
#include <sys/stat.h>

#include <unistd.h>

#include <event2/event.h>

#include "fake_admind.h"
#include "log.h"
#include "unit.h"

enum {
	LIVES_MAX = 64,
	ENDS_MAX = 10000 /* more than a full table of jobs has open */
};

/* admind frees little at its end; the test keeps pointers to the rest. */
static struct admind lives[LIVES_MAX];
static unsigned nlives;

static struct link *
link_to(struct admind *a, struct ipc_peer *peer, enum ipc_role role,
    enum listener listener)
{
	struct link *l = calloc(1, sizeof(*l));

	assert_non_null(l);
	l->a = a;
	l->peer = peer;
	l->role = role;
	l->listener = listener;
	l->refs = 1;
	ipc_peer_set_data(peer, l);
	return l;
}

static void
make_run_dir(struct fake *f)
{
	char path[64];

	(void)snprintf(f->run_dir, sizeof(f->run_dir), "/tmp/admind-XXXXXX");
	assert_non_null(mkdtemp(f->run_dir));
	(void)snprintf(path, sizeof(path), "%s/admind", f->run_dir);
	assert_int_equal(mkdir(path, 0700), 0);
}

void
fake_admind(struct fake *f, const char *again)
{
	struct admind *a = &lives[nlives];
	char text[64], dir[sizeof(f->run_dir)];
	struct err err;

	assert_true(nlives++ < LIVES_MAX);
	if (again != NULL)
		(void)snprintf(dir, sizeof(dir), "%s", again);
	memset(f, 0, sizeof(*f));
	f->a = a;
	if (again != NULL)
		memcpy(f->run_dir, dir, sizeof(dir));
	else
		make_run_dir(f);
	log_init("unit", LOG_TEXT, LOG_LV_ERR);
	a->proc.name = "admind";
	a->proc.conf = conf_new("admind");
	assert_non_null(a->proc.conf);
	(void)snprintf(text, sizeof(text), "run_dir %s\n", f->run_dir);
	assert_int_equal(conf_parse(a->proc.conf, "unit", (uint8_t *)text,
			     strlen(text), &err),
	    0);
	a->proc.base = event_base_new();
	assert_non_null(a->proc.base);
	TAILQ_INIT(&a->jobs);
	TAILQ_INIT(&a->announces);
	TAILQ_INIT(&a->closes);
	TAILQ_INIT(&a->tasks);
	TAILQ_INIT(&a->serving.list);
	verdicts_init(&a->verdicts);
	a->node = "node";
	a->mcp_url = "http://127.0.0.1:8002/mcp";
	a->db = fake_db_new(a->proc.base);
	a->check = fake_client(IPC_ROLE_CHECK);
	a->vault = fake_client(IPC_ROLE_VAULT);
	a->sandboxd = fake_client(IPC_ROLE_SANDBOXD);
	f->check = ipc_client_peer(a->check);
	f->vault = ipc_client_peer(a->vault);
	f->sandboxd = ipc_client_peer(a->sandboxd);
	f->local = fake_peer(IPC_ROLE_GATEWAY);
	f->tunnel = fake_peer(IPC_ROLE_GATEWAY);
	a->gw_local = fake_server(&f->local, 1);
	a->gw_tunnel = fake_server(&f->tunnel, 1);
	f->gateway = link_to(a, f->local, IPC_ROLE_GATEWAY, LISTENER_LOCAL);
	f->tunnelled = link_to(a, f->tunnel, IPC_ROLE_GATEWAY, LISTENER_TUNNEL);
	f->sandbox = link_to(a, f->sandboxd, IPC_ROLE_SANDBOXD, LISTENER_NONE);
	memset(a->epoch.b, 0xad, sizeof(a->epoch.b));
	memset(a->sandbox_epoch.b, 0x5b, sizeof(a->sandbox_epoch.b));
	a->sandbox_ready = a->started = true;
}

void
fake_end_all(void)
{
	for (int n = 0; fake_db_goes() || fake_peers_go(); n++)
		assert_true(n < ENDS_MAX);
}

void
fake_admind_free(struct fake *f, bool keep)
{
	struct admind *a = f->a;
	char path[64];

	fake_end_all();
	link_unref(f->gateway);
	link_unref(f->tunnelled);
	link_unref(f->sandbox);
	serving_clear(&a->serving);
	verdicts_clear(&a->verdicts);
	idset_clear(&a->live);
	fake_db_free(a->db);
	a->db = NULL;
	fake_peers_free();
	event_base_free(a->proc.base);
	conf_free(a->proc.conf);
	ledger_close(a->ledger);
	a->ledger = NULL;
	if (keep)
		return;
	(void)snprintf(path, sizeof(path), "%s/admind/ledger", f->run_dir);
	(void)unlink(path);
	(void)snprintf(path, sizeof(path), "%s/admind", f->run_dir);
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(rmdir(f->run_dir), 0);
}
