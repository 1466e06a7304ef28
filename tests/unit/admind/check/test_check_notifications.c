/* The member "notifications" of an access document as fields, and its faults.
 */
#include "access.h"
#include "access_fields.h"
#include "notify_fields.h"
#include "signer.h"
#include "tlv.h"
#include "unit.h"

/* Writes the targets and the panel as TAG=VALUE. */
static void
fields_text(struct ipc_bytes fields, char out[2048])
{
	struct tlv_reader r, in;
	struct tlv f, g;

	out[0] = '\0';
	tlv_open(&r, fields.p, fields.n);
	while (tlv_next(&r, &f) == 1) {
		if (f.tag == ACCESS_PANEL)
			snprintf(out + strlen(out), 2048 - strlen(out),
			    "panel=%.*s;", (int)f.n, (const char *)f.p);
		if (f.tag != ACCESS_NOTIFY)
			continue;
		tlv_open(&in, f.p, f.n);
		while (tlv_next(&in, &g) == 1)
			snprintf(out + strlen(out), 2048 - strlen(out),
			    "%u=%.*s;", g.tag, (int)g.n, (const char *)g.p);
	}
}

/* ok: want are the fields; else it is a part of the report. */
static void
document(const char *text, bool ok, const char *want)
{
	char quoted[4096], have[4096];
	struct check c;

	signer_quote(text, quoted, sizeof(quoted));
	check_access(&c, ipc_str(quoted));
	if (c.ok)
		fields_text(ipc_bytes(c.fields.p, c.fields.len), have);
	else
		snprintf(have, sizeof(have), "%.*s", (int)c.errors.len,
		    (const char *)c.errors.p);
	if (c.ok != ok || (ok && strcmp(have, want) != 0) ||
	    (!ok && strstr(have, want) == NULL))
		fail_msg("%s: %s", text, have);
	check_free(&c);
}

#define TARGET(text)  "{'name':'a','notify':'" text "'}"
#define TARGETS(list) "{'notifications':{'targets':[" list "]}}"
#define ONE(text)     TARGETS(TARGET(text))

static void
good(void **state)
{
	document("{}", true, "");
	document(ONE("ntfy https://ntfy.example/t"), true,
	    "1=a;2=ntfy https://ntfy.example/t;");
	document("{'notifications':{'panel':'http://127.0.0.1:8000','targets':["
		 "{'name':'a','notify':'webhook http://192.168.1.5/ "
		 "secret=s/K'},{'name':'b','notify':'smtp mail.lan x@a.example "
		 "y@b.example'}]}}",
	    true,
	    "panel=http://127.0.0.1:8000;1=a;2=webhook http://192.168.1.5/ "
	    "secret=s/K;3=s;4=K;1=b;2=smtp mail.lan x@a.example y@b.example;");
	document(ONE("matrix https://m.example !r:m.example secret=s/K"), true,
	    "1=a;2=matrix https://m.example !r:m.example secret=s/K;3=s;4=K;");
}

static void
bad(void **state)
{
	document("{'notifications':{}}", false, "targets");
	document(TARGETS(""), false, "leave");
	document("{'notifications':{'targets':{}}}", false, "targets");
	document(TARGETS("{'name':'a'}"), false, "notify");
	document(TARGETS("{'notify':'ntfy https://a.example'}"), false, "name");
	document(TARGETS("{'name':'A','notify':'ntfy https://a.example'}"),
	    false, "a to z");
	document(TARGETS(TARGET("ntfy https://a.example") "," TARGET(
		     "ntfy https://b.example")),
	    false, "of an entry before it");
	document(ONE("pigeon https://a.example"), false, "must begin with");
	document(ONE("webhook https://a.example"), false, "secret=SERVER/NAME");
	/* A secret's server and its host can't be parted. */
	document(ONE("ntfy https:\\/\\/a.example"), false, "");
	document(ONE("ntfy http://a.example/t"), false, "https://");
	document(ONE("ntfy http://93.184.216.34/t"), false, "https://");
	document(ONE("ntfy https://*.example/t"), false, "");
	document(ONE("ntfy https://localhost/t"), false, "no run may reach");
	document(ONE("smtp localhost a@b.example c@d.example"), false,
	    "a run may reach");
	document(ONE("smtp * a@b.example c@d.example"), false, "a run may");
	document("{'notifications':{'panel':'ftp://a','targets':["
		 "{'name':'a','notify':'ntfy https://a.example'}]}}",
	    false, "panel");
	document("{'notifications':{'panel':'https://a.example/','targets':["
		 "{'name':'a','notify':'ntfy https://a.example'}]}}",
	    false, "no slash");
	document(TARGETS("{'name':'a','notify':'ntfy https://a.example',"
			 "'more':1}"),
	    false, "more");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(good),
	    cmocka_unit_test(bad),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
