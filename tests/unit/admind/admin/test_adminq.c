/*
 * The tables of questions that ADMIN_QUERY is answered by: each table, question
 * and statement is there once.
 */
#include "unit.h"

#include "adminq.h"

enum { STATEMENTS_MAX = 256 };

static void
each_table_is_listed_once(void **state)
{
	const struct question *t;

	(void)state;
	assert_non_null(adminq_table(0));
	for (size_t i = 0; (t = adminq_table(i)) != NULL; i++)
		for (size_t j = 0; j < i; j++)
			if (adminq_table(j) == t)
				fail_msg("the table of \"%s\" is listed twice",
				    t->what);
}

/* A file's table that is not listed would answer nothing. */
static void
every_table_is_listed(void **state)
{
	static const struct question *const all[] = {adminq_servers_questions,
	    adminq_approvals_questions, adminq_records_questions,
	    adminq_audit_questions, adminq_admin_questions,
	    adminq_tokens_questions, adminq_secrets_questions,
	    adminq_limits_questions, adminq_access_questions};
	const size_t n = sizeof(all) / sizeof(all[0]);

	(void)state;
	for (size_t i = 0; i < n; i++) {
		size_t at = 0;

		while (adminq_table(at) != NULL && adminq_table(at) != all[i])
			at++;
		assert_ptr_equal(adminq_table(at), all[i]);
	}
	assert_null(adminq_table(n));
}

static void
each_question_is_asked_once(void **state)
{
	const struct question *q, *p;

	(void)state;
	for (size_t i = 0; adminq_table(i) != NULL; i++)
		for (q = adminq_table(i); q->what != NULL; q++)
			for (size_t j = 0; j <= i; j++)
				for (p = adminq_table(j);
				    p->what != NULL && p != q; p++)
					if (strcmp(p->what, q->what) == 0)
						fail_msg("\"%s\" stands twice",
						    q->what);
}

/* A statement is prepared by its name (db.h). */
static void
each_statement_has_a_name_of_its_own(void **state)
{
	const char *names[STATEMENTS_MAX];
	const struct question_form *f;
	const struct question *q;
	size_t n = 0;

	(void)state;
	for (size_t i = 0; adminq_table(i) != NULL; i++)
		for (q = adminq_table(i); q->what != NULL; q++)
			for (f = q->forms; f->stmt.name != NULL; f++) {
				for (size_t j = 0; j < n; j++)
					if (strcmp(names[j], f->stmt.name) == 0)
						fail_msg("statement %s twice",
						    f->stmt.name);
				assert_true(n < STATEMENTS_MAX);
				names[n++] = f->stmt.name;
			}
	assert_true(n > 20);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(each_table_is_listed_once),
	    cmocka_unit_test(every_table_is_listed),
	    cmocka_unit_test(each_question_is_asked_once),
	    cmocka_unit_test(each_statement_has_a_name_of_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
