/* The connections of db.c, played by the test. */
#include <event2/event.h>
#include <libpq-fe.h>

#include "bytes.h"
#include "database.h"
#include "db_internal.h"
#include "fake_db.h"
#include "unit.h"

enum { ROWS_MAX = 128, COLUMNS_MAX = 48, NAMES_MAX = 64 };

struct db_conn {
	struct db *db;
	unsigned index;
};

struct cell {
	char *p; /* NULL: null */
	int n;
};

struct statement {
	TAILQ_ENTRY(statement) entry;
	const struct db_stmt *stmt;
	int n;
	struct cell p[DB_PARAMS_MAX];
	db_cb *cb;
	void *arg;
};

static TAILQ_HEAD(, statement) waiting = TAILQ_HEAD_INITIALIZER(waiting);
static bool up = true;
static struct cell rows[ROWS_MAX][COLUMNS_MAX];
static int nrows, ncolumns;
static struct {
	const char *name;
	unsigned n;
} sent[NAMES_MAX];

/* ---- called by db.c ---- */

struct db_conn *
db_conn_new(struct db *db, struct event_base *base, unsigned index,
    const struct database *where, bool synchronous, int schema,
    const char *const *listen)
{
	struct db_conn *c = calloc(1, sizeof(*c));

	assert_non_null(c);
	c->db = db;
	c->index = index;
	return c;
}

void
db_conn_free(struct db_conn *c)
{
	free(c);
}

bool
db_conn_ready(const struct db_conn *c)
{
	return c != NULL && up;
}

unsigned
db_conn_pending(const struct db_conn *c)
{
	return 0;
}

static struct cell
copy(const char *p, int n)
{
	struct cell c = {NULL, n};

	if (p != NULL) {
		c.p = malloc((size_t)n + 1);
		assert_non_null(c.p);
		memcpy(c.p, p, (size_t)n);
		c.p[n] = '\0';
	}
	return c;
}

static void
count(const char *name)
{
	int i = 0;

	while (sent[i].name != NULL && strcmp(sent[i].name, name) != 0)
		assert_true(++i < NAMES_MAX);
	sent[i].name = name;
	sent[i].n++;
}

int
db_conn_send(struct db_conn *c, const struct db_step *steps, size_t n,
    db_cb *cb, void *arg, struct err *err)
{
	const struct db_params *p = steps[0].params;
	struct statement *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	assert_int_equal(n, 1);
	/* the lane that the statement names */
	assert_int_equal(c->index == 0, steps[0].stmt->lane == DB_FAST);
	s->stmt = steps[0].stmt;
	s->n = p != NULL ? p->n : 0;
	for (int i = 0; i < s->n; i++)
		s->p[i] = copy(p->value[i], p->length[i]);
	s->cb = cb;
	s->arg = arg;
	count(s->stmt->name);
	TAILQ_INSERT_TAIL(&waiting, s, entry);
	return 0;
}

/* ---- called by the test ---- */

struct db *
fake_db_new(struct event_base *base)
{
	static const struct database nowhere;
	static const struct db_events none;
	struct err err;
	struct db *db;

	up = true;
	memset(sent, 0, sizeof(sent));
	db = db_new(base, &nowhere, 1, NULL, &none, NULL, &err);
	assert_non_null(db);
	return db;
}

static void
statement_free(struct statement *s)
{
	for (int i = 0; i < s->n; i++)
		free(s->p[i].p);
	free(s);
}

static void
forget_rows(void)
{
	for (int i = 0; i < nrows; i++)
		for (int k = 0; k < ncolumns; k++)
			free(rows[i][k].p);
	memset(rows, 0, sizeof(rows));
	nrows = 0;
}

void
fake_db_free(struct db *db)
{
	struct statement *s;
	int unused = nrows;

	forget_rows();
	while ((s = TAILQ_FIRST(&waiting)) != NULL) {
		TAILQ_REMOVE(&waiting, s, entry);
		statement_free(s);
	}
	db_free(db);
	assert_int_equal(unused, 0);
}

void
fake_db_up(bool now)
{
	up = now;
}

unsigned
fake_db_waits(const char *name)
{
	struct statement *s;
	unsigned n = 0;

	TAILQ_FOREACH(s, &waiting, entry)
		n += name == NULL || strcmp(s->stmt->name, name) == 0;
	return n;
}

unsigned
fake_db_sent(const char *name)
{
	for (int i = 0; i < NAMES_MAX && sent[i].name != NULL; i++)
		if (strcmp(sent[i].name, name) == 0)
			return sent[i].n;
	return 0;
}

static struct statement *
oldest(const char *name)
{
	struct statement *s;

	TAILQ_FOREACH(s, &waiting, entry)
		if (strcmp(s->stmt->name, name) == 0)
			return s;
	fail_msg("no statement %s waits", name);
	return NULL;
}

static const struct cell *
parameter(const char *name, int i)
{
	struct statement *s = oldest(name);

	assert_in_range(i, 0, s->n - 1);
	return &s->p[i];
}

bool
fake_db_null(const char *name, int i)
{
	return parameter(name, i)->p == NULL;
}

struct ipc_bytes
fake_db_bytes(const char *name, int i)
{
	const struct cell *c = parameter(name, i);

	return ipc_bytes(c->p, c->p != NULL ? (size_t)c->n : 0);
}

int64_t
fake_db_int(const char *name, int i)
{
	struct ipc_bytes b = fake_db_bytes(name, i);

	if (b.n == 1)
		return b.p[0];
	assert_int_equal(b.n, 8);
	return (int64_t)get_be64(b.p);
}

void
fake_db_is(const char *name, int i, const char *text)
{
	struct ipc_bytes b = fake_db_bytes(name, i);

	assert_int_equal(b.n, strlen(text));
	assert_memory_equal(b.p, text, b.n);
}

uint32_t
fake_db_elements(const char *name, int i)
{
	struct ipc_bytes b = fake_db_bytes(name, i);

	assert_true(b.n >= 20); /* dimensions, nulls, type, length, first */
	return get_be32(b.p + 12);
}

static struct cell
number(uint64_t v)
{
	uint8_t b[8];

	for (int i = 0; i < 8; i++)
		b[i] = (uint8_t)(v >> (56 - 8 * i));
	return copy((const char *)b, sizeof(b));
}

/* timestamptz counts from 2000-01-01. */
static struct cell
moment(uint64_t unix_us)
{
	return number(unix_us - UINT64_C(946684800000000));
}

void
fake_db_row(const char *columns, ...)
{
	const char *s, truth[] = {0, 1};
	struct cell *c = rows[nrows];
	va_list ap;

	assert_true(nrows < ROWS_MAX && strlen(columns) <= COLUMNS_MAX);
	assert_true(nrows == 0 || ncolumns == (int)strlen(columns));
	ncolumns = (int)strlen(columns);
	nrows++;
	va_start(ap, columns);
	for (; *columns != '\0'; columns++, c++)
		switch (*columns) {
		case 'i':
			*c = number((uint64_t)va_arg(ap, int64_t));
			break;
		case 's':
			s = va_arg(ap, const char *);
			*c = copy(s, s != NULL ? (int)strlen(s) : 0);
			break;
		case 'u':
			*c = copy(
			    (const char *)va_arg(ap, const struct ipc_id *)->b,
			    16);
			break;
		case 'h':
			*c = copy(
			    (const char *)va_arg(ap, const struct ipc_hash *)
				->b,
			    32);
			break;
		case 'b':
			*c = copy(&truth[va_arg(ap, int) != 0], 1);
			break;
		case 't':
			*c = moment(va_arg(ap, uint64_t));
			break;
		case '0':
			*c = number(0);
			break;
		case 'n':
			break;
		default:
			fail_msg("column %c", *columns);
		}
	va_end(ap);
}

/* The rows as libpq hands them over, in binary. */
static struct pg_result *
result(void)
{
	PGresAttDesc column[COLUMNS_MAX] = {{0}};
	PGresult *r = PQmakeEmptyPGresult(NULL, PGRES_TUPLES_OK);

	assert_non_null(r);
	for (int k = 0; k < COLUMNS_MAX; k++) {
		column[k].name = (char *)(uintptr_t)"";
		column[k].format = 1;
	}
	assert_int_equal(PQsetResultAttrs(r, ncolumns, column), 1);
	for (int i = 0; i < nrows; i++)
		for (int k = 0; k < ncolumns; k++)
			assert_int_equal(
			    PQsetvalue(r, i, k, rows[i][k].p,
				rows[i][k].p != NULL ? rows[i][k].n : -1),
			    1);
	return (struct pg_result *)r;
}

static struct statement
taken(const char *name)
{
	struct statement *s = oldest(name), t = *s;

	TAILQ_REMOVE(&waiting, s, entry);
	statement_free(s);
	return t;
}

void
fake_db_answer(const char *name)
{
	struct statement s = taken(name);
	struct pg_result *r = result();

	forget_rows();
	s.cb(s.arg, r, NULL);
	db_keep_free(r);
}

void
fake_db_fail(const char *name, enum failure f, const char *text)
{
	struct statement s = taken(name);
	struct err err;

	(void)err_set(&err, f, "%s", text);
	s.cb(s.arg, NULL, &err);
}

bool
fake_db_goes(void)
{
	struct statement *s = TAILQ_FIRST(&waiting);

	if (s == NULL)
		return false;
	fake_db_fail(s->stmt->name, FAILURE_STORAGE_UNAVAILABLE, "gone");
	return true;
}
