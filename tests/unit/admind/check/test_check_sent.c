/* The member "telemetry" of an access document as fields, and the answers of
 * runs that sent telemetry. */
#include "access.h"
#include "access_fields.h"
#include "sent.h"
#include "signer.h"
#include "telemetry_fields.h"
#include "tlv.h"
#include "unit.h"

/* Writes the fields of a record as TAG=VALUE. */
static void
fields_text(struct ipc_bytes fields, char out[1024])
{
	struct tlv_reader r;
	struct tlv f;
	uint64_t u;

	out[0] = '\0';
	tlv_open(&r, fields.p, fields.n);
	while (tlv_next(&r, &f) == 1)
		if (f.n == 8 && tlv_u64(&f, &u) == 0)
			snprintf(out + strlen(out), 1024 - strlen(out),
			    "%u=%llu;", f.tag, (unsigned long long)u);
		else if (f.n == 1)
			snprintf(out + strlen(out), 1024 - strlen(out),
			    "%u=%u;", f.tag, f.p[0]);
		else
			snprintf(out + strlen(out), 1024 - strlen(out),
			    "%u=%.*s;", f.tag, (int)f.n, (const char *)f.p);
}

static void
document(const char *text, const char *want)
{
	char quoted[2048], have[1024] = "";
	struct check c;
	struct tlv f;

	signer_quote(text, quoted, sizeof(quoted));
	check_access(&c, ipc_str(quoted));
	if (!c.ok)
		fail_msg("%s: %.*s", text, (int)c.errors.len,
		    (const char *)c.errors.p);
	if (tlv_find(c.fields.p, c.fields.len, ACCESS_TELEMETRY, &f) == 1)
		fields_text(ipc_bytes(f.p, f.n), have);
	assert_string_equal(have, want);
	check_free(&c);
}

static void
documents(void **state)
{
	document("{}", "");
	document("{'telemetry':{'endpoint':'https://otel.example:4318'}}",
	    "1=https://otel.example:4318;3=1;4=1;5=0;6=30;");
	document("{'telemetry':{'endpoint':'http://127.0.0.1:4318',"
		 "'metrics':false,'principals':true,'every_seconds':10}}",
	    "1=http://127.0.0.1:4318;3=1;4=0;5=1;6=10;");
	document("{'telemetry':{'endpoint':'https://otel.lan/in',"
		 "'hosts':['192.168.1.5:443','[fd12::1]:443']}}",
	    "1=https://otel.lan/in;2=192.168.1.5:443;2=[fd12::1]:443;3=1;4=1;"
	    "5=0;6=30;");
	document("{'telemetry':{'endpoint':'http://[::1]:4318'}}",
	    "1=http://[::1]:4318;3=1;4=1;5=0;6=30;");
	document("{'telemetry':{'endpoint':'http://172.31.255.255'}}",
	    "1=http://172.31.255.255;3=1;4=1;5=0;6=30;");
}

/* said: the structured content. want: fields, or the summary of a fault. */
static void
answer(const char *text, bool ok, const char *want)
{
	char quoted[4096], have[1024];
	struct check c;

	signer_quote(text, quoted, sizeof(quoted));
	check_sent(&c, ipc_str(quoted));
	if (c.ok != ok)
		fail_msg("%s", text);
	if (ok) {
		fields_text(ipc_bytes(c.fields.p, c.fields.len), have);
		assert_string_equal(have, want);
	} else if (strstr(c.summary, want) == NULL)
		fail_msg("%s: %s", text, c.summary);
	check_free(&c);
}

#define SAID(members) \
	"{'content':[],'structuredContent':{" members "},'isError':false}"

static void
answers(void **state)
{
	char text[2048];

	answer(SAID("'sent':2,'status':200,'retry_after':0,'rejected':0,"
		    "'why':''"),
	    true, "1=2;2=200;3=0;4=0;");
	answer(SAID("'sent':1,'status':503,'retry_after':7,'rejected':3,"
		    "'why':'it says 503'"),
	    true, "1=1;2=503;3=7;4=3;5=it says 503;");
	answer(SAID(""), true, "1=0;2=0;3=0;4=0;");
	answer(SAID("'sent':3"), false, "the run's answer");
	answer(SAID("'status':1000"), false, "the run's answer");
	answer(SAID("'retry_after':-1"), false, "the run's answer");
	answer(SAID("'rejected':1e99"), false, "the run's answer");
	answer("{}", false, "said no status");
	answer("[]", false, "said no object");
	answer("", false, "");
	answer("{'isError':true,'content':[{'type':'text','text':'no "
	       "grant'}]}",
	    false, "no grant");
	/* A character of two bytes at the end of what is kept goes whole. */
	for (unsigned before = 299; before <= 300; before++) {
		char want[1024], said[1024];

		snprintf(said, sizeof(said), SAID("'why':'%0*u\xc3\xa9%050u'"),
		    (int)before, 1, 2);
		snprintf(want, sizeof(want), "1=0;2=0;3=0;4=0;5=%0*u;",
		    (int)before, 1);
		answer(said, true, want);
	}
	memset(text, 'x', sizeof(text));
	memcpy(text, SAID("'why':'"),
	    strlen("{'content':[],'structuredContent':{'why':'"));
	memcpy(text + sizeof(text) - 20, "'},'isError':false}", 20);
	{
		char quoted[4096];
		struct check c;
		struct tlv f;

		signer_quote(text, quoted, sizeof(quoted));
		check_sent(&c, ipc_str(quoted));
		assert_true(c.ok);
		assert_int_equal(
		    tlv_find(c.fields.p, c.fields.len, SENT_WHY, &f), 1);
		assert_int_equal(f.n, 300);
		check_free(&c);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(documents),
	    cmocka_unit_test(answers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
