/* target.h: the texts of targets of notifications, and their parts. */
#include "unit.h"

#include "target.h"

static struct target
good(const char *text)
{
	const char *fault;
	struct target t;

	if ((fault = target_read(ipc_str(text), &t)) != NULL)
		fail_msg("%s: %s", text, fault);
	return t;
}

static void
is(struct ipc_bytes have, const char *want)
{
	char text[TARGET_TEXT_MAX + 1];

	snprintf(text, sizeof(text), "%.*s", (int)have.n, (const char *)have.p);
	assert_string_equal(text, want);
}

static void
parts(void **state)
{
	struct target t;

	t = good("webhook https://a.example/in/x?y=1 secret=alerts/HOOK");
	assert_int_equal(t.kind, TARGET_WEBHOOK);
	is(t.words, "webhook https://a.example/in/x?y=1");
	is(t.url, "https://a.example/in/x?y=1");
	is(t.host, "a.example");
	assert_string_equal(t.port, "443");
	is(t.server, "alerts");
	is(t.secret, "HOOK");
	t = good("ntfy http://192.168.1.5:8080/topic");
	assert_int_equal(t.kind, TARGET_NTFY);
	is(t.words, "ntfy http://192.168.1.5:8080/topic");
	is(t.host, "192.168.1.5:8080");
	assert_string_equal(t.port, "80");
	is(t.server, "");
	is(t.secret, "");
	good("ntfy http://127.0.0.1:1/t");
	good("ntfy http://172.31.255.255");
	good("ntfy http://[::1]:80/t");
	good("ntfy http://[fd12::1]");
	t = good("matrix https://[fd12::1] !a:b.example secret=s/T");
	assert_int_equal(t.kind, TARGET_MATRIX);
	is(t.host, "[fd12::1]");
	t = good("smtp mail.example box@a.example ann@b.example");
	assert_int_equal(t.kind, TARGET_SMTP);
	is(t.url, "");
	is(t.host, "mail.example");
	assert_string_equal(t.port, "587");
	t = good("smtps mail.example:4465 box@a.example ann@b.example "
		 "secret=a/B");
	assert_int_equal(t.kind, TARGET_SMTPS);
	is(t.words, "smtps mail.example:4465 box@a.example ann@b.example");
	is(t.host, "mail.example:4465");
	assert_string_equal(t.port, "465");
}

static void
refused(void **state)
{
	static const char *const bad[] = {"", " ", "secret=a/B", "webhook",
	    "webhook https://a.example/in", "Webhook https://a/ secret=a/B",
	    "webhook  https://a.example secret=a/B",
	    " webhook https://a.example secret=a/B",
	    "webhook https://a.example secret=a/B ",
	    "webhook https://a.example secret=a/B more",
	    "webhook secret=a/B https://a.example",
	    "smtps a.example a@b.example secret=b@b.example secret=a/B",
	    "smtps a.example a@b.example secret=b@b.example",
	    "webhook https://a.example secret=a",
	    "webhook https://a.example secret=/B",
	    "webhook https://a.example secret=a/",
	    "webhook https://a.example secret=a/B/C",
	    "webhook https://a.example secret=",
	    "webhook ftp://a.example secret=a/B",
	    "webhook http://a.example secret=a/B",
	    "ntfy http://93.184.216.34/t", "ntfy http://192.168.1.5.a/t",
	    "ntfy http://172.32.0.1", "ntfy http://[2001:db8::1]/t",
	    "ntfy http://[fd12::1", "ntfy http://localhost/t",
	    "webhook https:// secret=a/B", "webhook https:///x secret=a/B",
	    "webhook https://u@a.example secret=a/B",
	    "webhook https://a.example/#x secret=a/B",
	    "webhook https://a.example/\" secret=a/B",
	    "webhook https://a.example/\\ secret=a/B",
	    "webhook https://a.example/\t secret=a/B",
	    "webhook https://a.example/\xc3\xbc secret=a/B",
	    "ntfy https://a.example b", "telegram https://a.example",
	    "matrix https://a.example secret=a/B",
	    "matrix https://a.example !a:b",
	    "matrix https://a.example #a:b secret=a/B",
	    "smtp mail.example a@b.example", "smtp mail.example a b@b.example",
	    "smtp mail.example a@b.example b@b@c",
	    "smtp mail.example a@b.example @b.example",
	    "smtp mail.example a@b.example b@",
	    "smtp mail.example a@b.example b@c.example,d@e.example",
	    "smtp mail.example <a@b.example> b@c.example",
	    "smtp mail.example a@b.example b@c.example d@e.example"};
	char text[TARGET_TEXT_MAX + 2];
	struct target t;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (target_read(ipc_str(bad[i]), &t) == NULL)
			fail_msg("%s", bad[i]);
	memset(text, 'x', sizeof(text));
	memcpy(text, "ntfy https://a.example/", 23);
	assert_null(target_read(ipc_bytes(text, TARGET_TEXT_MAX), &t));
	assert_non_null(target_read(ipc_bytes(text, TARGET_TEXT_MAX + 1), &t));
	assert_non_null(target_read(ipc_bytes("ntfy https://a\0b", 16), &t));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(parts),
	    cmocka_unit_test(refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
