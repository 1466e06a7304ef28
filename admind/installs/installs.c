/*
 * The installer's runs, one at a time:
 *
 *  module_install_next -> run (own_run.h), in which the store takes the entry
 *  -> module_installed -> dependencies, automatic approvals
 *
 * A hostile admind that starts a run gains only this: a wheel of the index that
 * sandboxd's own configuration names comes into the store. A module in the
 * store runs only if an approved version names it by its digest. The recorded
 * digest is the store's, as sandboxd reports it (MODULE_STORED). PostgreSQL
 * parses the runner's words about the wheel, and a person reads them.
 *
 * A second round looks for entries that are granted but missing in this node's
 * store: another node fetched them, or they were lost. They are fetched by the
 * wheel's SHA-256. Calls can use such an entry only if it has the recorded
 * digest.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "context.h"
#include "ids.h"
#include "installs.h"
#include "log.h"
#include "op.h"
#include "own_run.h"

enum {
	/* sandboxd ends a run after its own module_time, which is at most
	 * this. */
	TIMEOUT_MS = 600 * 1000,
	WAIT_MS = QUEUE_MS + TIMEOUT_MS + 30 * 1000,
	/* After this time another node may take over a run whose end this node
	 * has not recorded. */
	LEASE_MS = WAIT_MS + 60 * 1000,
	NEXT_TICKS = 3,   /* ticks between two looks at an empty queue */
	LOOK_TICKS = 300, /* ticks between two looks for missing entries */
	AGAIN_TICKS = 5,  /* ticks after a look that got no answer */
	NAME_MAX_ = 128,  /* as in the table module_installs */
	VERSION_MAX_ = 64,
	KEY_MAX = NAME_MAX_ + 1 + VERSION_MAX_
};

static const struct db_stmt next_due = {"installs_next",
    "SELECT name, version FROM mcpbox.module_install_next($1::text, $2::uuid,"
    " $3::int8)",
    DB_SURE};
static const struct db_stmt installed = {"installs_done",
    "SELECT version, wrong FROM mcpbox.module_installed($1::text, $2::text,"
    " $3::uuid, $4::bytea, $5::bytea, $6::int8, $7::int8)",
    DB_SURE};
static const struct db_stmt not_installed = {"installs_failed",
    "SELECT mcpbox.module_install_failed($1::text, $2::text, $3::uuid,"
    " mcpbox.module_error($4::bytea, $5::text), $6::bool)",
    DB_SURE};
static const struct db_stmt lacking = {"installs_granted",
    "SELECT key, name, version, digest, sha256"
    " FROM mcpbox.modules_granted($1::text)",
    DB_SURE};

static struct {
	struct admind *a;
	bool busy; /* a run, or a look, is under way */
	unsigned next_tick, look_tick;
	struct ipc_id looked; /* the sandbox whose store was looked at */

	/* the run */
	bool repair; /* the run is for this node's store alone */
	char name[NAME_MAX_ + 1], version[VERSION_MAX_ + 1];
	struct ipc_hash sha256, digest; /* of a repair: the wheel's and the
					 * entry's */
	struct ipc_id execution; /* chosen before the lease, which names it */

	/* the look: a page of granted modules after the key `after`; there[]:
	 * which of them the store has */
	struct pg_result *granted;
	int row;
	uint8_t there[STORE_ASK_MAX];
	char after[KEY_MAX + 1];
} in;

/* The steps, in order; each leads to the next. */
static void take_next(void);
static void due(void *arg, const struct pg_result *rows, const struct err *err);
static void begin(void);
static void ran(void *arg, const struct own_end *e);
static bool worth_another(enum failure f);
static void repaired(const struct ipc_hash *digest);
static void recorded(
    void *arg, const struct pg_result *rows, const struct err *err);
static void failed(struct ipc_bytes body, const char *text, bool again);
static void noted(
    void *arg, const struct pg_result *rows, const struct err *err);
static void look_over(unsigned ticks);
static void look(void);
static void granted(
    void *arg, const struct pg_result *rows, const struct err *err);
static void says(void *arg, struct ipc_frame *f, enum failure gone);
static void repair_next(void);
static bool take_hash(int row, int col, struct ipc_hash *out);

/* Begins the next step that is due. Requests come first, since a person waits
 * for them. */
void
installs_tick(struct admind *a)
{
	in.a = a;
	if (in.busy || !a->sandbox_ready)
		return;
	if (a->ticks >= in.next_tick) {
		take_next();
		return;
	}
	/* Another sandbox may have another store. */
	if (memcmp(&in.looked, &a->sandbox_epoch, sizeof(in.looked)) != 0) {
		look_over(0);
		in.looked = a->sandbox_epoch;
	}
	if (in.granted != NULL)
		repair_next();
	else if (a->ticks >= in.look_tick)
		look();
}

void
installs_soon(void)
{
	in.next_tick = 0;
}

/* ---- 1: the next due installation ---- */

static void
take_next(void)
{
	struct db_params p;

	in.busy = true;
	in.repair = false;
	in.next_tick = in.a->ticks + NEXT_TICKS;
	id_random(&in.execution);
	db_params_init(&p);
	db_p_str(&p, in.a->node);
	db_p_id(&p, &in.execution);
	db_p_i64(&p, LEASE_MS);
	db_query(in.a->db, &next_due, &p, due, NULL);
}

static void
due(void *arg, const struct pg_result *rows, const struct err *err)
{
	if (err != NULL || db_nrows(rows) == 0 ||
	    !db_text(rows, 0, 0, in.name, sizeof(in.name)) ||
	    !db_text(rows, 0, 1, in.version, sizeof(in.version))) {
		in.busy = false;
		return;
	}
	begin();
}

static void
end(void)
{
	in.busy = false;
	in.next_tick = 0;
}

/* ---- 2: the run ---- */

static void
begin(void)
{
	char pin[HEX32_LEN + 1] = "", tool[EXPOSED_NAME_MAX + 1];
	struct own_what own = {.kind = CONTEXT_MODULE,
	    .noun = "installation",
	    .execution = &in.execution,
	    .tool = tool,
	    .principal = "installer",
	    .client = "mcpbox",
	    .protocol = "",
	    .timeout_ms = TIMEOUT_MS,
	    .wait_ms = WAIT_MS};
	struct buf args;
	struct jsonw w;

	(void)snprintf(
	    tool, sizeof(tool), "module:%.*s", (int)sizeof(tool) - 8, in.name);
	if (in.repair)
		hex_encode(in.sha256.b, sizeof(in.sha256.b), pin);
	buf_init(&args, ARGUMENTS_KEPT);
	jsonw_open(&w, &args);
	jsonw_obj(&w);
	jsonw_kv_str(&w, "name", in.name);
	jsonw_kv_str(&w, "version", in.version);
	jsonw_kv_str(&w, "sha256", pin);
	jsonw_obj_end(&w);
	own.arguments = own.kept = ipc_bytes(args.p, args.len);
	if (args.failed)
		failed(ipc_bytes(NULL, 0), "out of memory", true);
	else
		own_run(in.a, &own, ran, NULL);
	buf_free(&args);
}

/* ---- 3: the end of a run ---- */

static void
ran(void *arg, const struct own_end *e)
{
	const struct ipc_bytes none = ipc_bytes(NULL, 0);
	struct db_params p;

	if (e->how != OWN_RAN) {
		failed(none, e->text,
		    e->how == OWN_REFUSED &&
			e->failure != FAILURE_MISSING_GRANT);
		return;
	}
	if (e->outcome != OUTCOME_DONE) {
		failed(
		    e->body, "the installer failed", worth_another(e->failure));
		return;
	}
	if (e->stored == NULL) {
		failed(none,
		    "the installer ended, and the store has nothing of it",
		    false);
		return;
	}
	if (in.repair) {
		repaired(&e->stored->digest);
		return;
	}
	db_params_init(&p);
	db_p_str(&p, in.name);
	db_p_str(&p, in.version);
	db_p_id(&p, &in.execution);
	db_p_bytes(&p, e->body.p, e->body.n);
	db_p_hash(&p, &e->stored->digest);
	db_p_i64(&p, (int64_t)e->stored->files);
	db_p_i64(&p, (int64_t)e->stored->size);
	db_query(in.a->db, &installed, &p, recorded, NULL);
}

static bool
worth_another(enum failure f)
{
	switch (f) {
	case FAILURE_UPSTREAM:
	case FAILURE_TIMEOUT:
	case FAILURE_BUSY:
	case FAILURE_KILLED:
	case FAILURE_LOST:
	case FAILURE_SANDBOX_UNAVAILABLE:
	case FAILURE_STORAGE_UNAVAILABLE:
		return true;
	default:
		return false;
	}
}

static void
repaired(const struct ipc_hash *digest)
{
	char want[HEX32_LEN + 1], got[HEX32_LEN + 1];

	if (memcmp(digest, &in.digest, sizeof(in.digest)) == 0) {
		log_event(LOG_LV_INFO, "module_installed",
		    "%s==%s, which this node lacked", in.name, in.version);
	} else {
		hex_encode(in.digest.b, sizeof(in.digest.b), want);
		hex_encode(digest->b, sizeof(digest->b), got);
		log_event(LOG_LV_ERR, "module_install",
		    "%s==%s unpacks to %s here, %s was recorded: calls with it "
		    "fail",
		    in.name, in.version, got, want);
	}
	end();
}

static void
recorded(void *arg, const struct pg_result *rows, const struct err *err)
{
	char version[VERSION_MAX_ + 1], wrong[ERR_TEXT_MAX];

	if (err != NULL) {
		failed(ipc_bytes(NULL, 0), err->text,
		    err->failure == FAILURE_STORAGE_UNAVAILABLE ||
			err->failure == FAILURE_BUSY);
		return;
	}
	if (!db_text(rows, 0, 0, version, sizeof(version)))
		version[0] = '\0';
	if (!db_null(rows, 0, 1)) {
		if (!db_text(rows, 0, 1, wrong, sizeof(wrong)))
			wrong[0] = '\0';
		log_event(
		    LOG_LV_WARN, "module_install", "%s: %s", in.name, wrong);
	} else {
		log_event(LOG_LV_INFO, "module_installed", "%s==%s", in.name,
		    version);
		installs_recorded(in.a, ipc_str(in.name), ipc_str(version));
	}
	end();
}

/* Notes that a run failed. body: the runner's error; if empty, text says why.
 * again: another attempt may succeed, because the cause lies with the index or
 * this node. */
static void
failed(struct ipc_bytes body, const char *text, bool again)
{
	struct db_params p;

	log_event(LOG_LV_WARN, "module_install", "%s%s%s: %s", in.name,
	    in.version[0] != '\0' ? "==" : "", in.version,
	    body.n > 0 ? "see its record" : text);
	if (in.repair) {
		end();
		return;
	}
	db_params_init(&p);
	db_p_str(&p, in.name);
	db_p_str(&p, in.version);
	db_p_id(&p, &in.execution);
	db_p_bytes(&p, body.p, body.n);
	db_p_str(&p, text);
	db_p_bool(&p, again);
	db_query(in.a->db, &not_installed, &p, noted, NULL);
}

static void
noted(void *arg, const struct pg_result *rows, const struct err *err)
{
	/* If the failure was not recorded, the lease ends, and another attempt
	 * begins. */
	if (err != NULL)
		log_event(LOG_LV_WARN, "module_install", "%s", err->text);
	end();
}

/* ---- entries that this node's store lacks ---- */

/* Ends the look at the store. ticks: time until the next look. */
static void
look_over(unsigned ticks)
{
	db_keep_free(in.granted);
	in.granted = NULL;
	in.after[0] = '\0';
	in.look_tick = in.a->ticks + ticks;
}

static void
look(void)
{
	struct db_params p;

	in.busy = true;
	db_params_init(&p);
	db_p_str(&p, in.after);
	db_query(in.a->db, &lacking, &p, granted, NULL);
}

static void
granted(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct ipc_store_ask m;
	struct buf digests;
	struct err e;
	int n = err == NULL ? db_nrows(rows) : 0;

	in.busy = false;
	if (n == 0 || n > STORE_ASK_MAX ||
	    (in.granted = db_keep(rows)) == NULL) {
		look_over(LOOK_TICKS);
		return;
	}
	buf_init(&digests, STORE_ASK_MAX * sizeof(struct ipc_hash));
	for (int i = 0; i < n; i++) {
		struct ipc_bytes d = db_bytes(rows, i, 3);

		buf_put(&digests, d.p, d.n);
	}
	m.digests = ipc_bytes(digests.p, digests.len);
	in.row = n;
	if (digests.failed ||
	    ask(in.a->sandboxd, IPC_STORE_ASK, &m, says, NULL, &e) == -1)
		look_over(AGAIN_TICKS);
	else
		in.busy = true;
	buf_free(&digests);
}

static void
says(void *arg, struct ipc_frame *f, enum failure gone)
{
	struct ipc_store_says m;
	struct err err;

	in.busy = false;
	if (f == NULL || f->type != IPC_STORE_SAYS ||
	    ipc_decode(f, &m, &err) == -1 ||
	    m.there.n != (size_t)db_nrows(in.granted)) {
		answer_err(f, gone, &err);
		log_event(LOG_LV_INFO, "module_store", "%s", err.text);
		look_over(AGAIN_TICKS);
		return;
	}
	memcpy(in.there, m.there.p, m.there.n);
	in.row = 0;
}

/* Fetches the next missing entry of the look. */
static void
repair_next(void)
{
	int n = db_nrows(in.granted);

	while (in.row < n && in.there[in.row])
		in.row++;
	if (in.row == n) {
		bool more = n == STORE_ASK_MAX &&
		    db_text(in.granted, n - 1, 0, in.after, sizeof(in.after));

		if (!more) {
			look_over(LOOK_TICKS);
			return;
		}
		db_keep_free(in.granted);
		in.granted = NULL;
		look();
		return;
	}
	in.repair = true;
	id_random(&in.execution);
	if (db_text(in.granted, in.row, 1, in.name, sizeof(in.name)) &&
	    db_text(in.granted, in.row, 2, in.version, sizeof(in.version)) &&
	    take_hash(in.row, 3, &in.digest) &&
	    take_hash(in.row, 4, &in.sha256)) {
		in.busy = true;
		begin();
	}
	in.row++;
}

static bool
take_hash(int row, int col, struct ipc_hash *out)
{
	struct ipc_bytes b = db_bytes(in.granted, row, col);

	if (b.n != sizeof(out->b))
		return false;
	memcpy(out->b, b.p, b.n);
	return true;
}
