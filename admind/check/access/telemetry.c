/*
 * Security argument.
 *
 * This member decides where records leave this machine to. The vault finds the
 * address in the sealed text again, as the member "endpoint" (fetch.c there),
 * so it must be written without escapes. Without TLS anybody on the way could
 * read the records, so http is for addresses of the local network and of this
 * machine: a name could lead elsewhere tomorrow.
 */
#include "telemetry.h"

#include "access_form.h"
#include "access_source.h"
#include "telemetry_fields.h"
#include "tlv.h"

enum { RECORD_MAX = 16 * 1024 }; /* 9 addresses of 512 bytes */

static void
hosts(struct access_doc *a, const struct access_at *at, struct buf *record)
{
	static const struct access_list list = {1, TELEMETRY_HOSTS_MAX,
	    access_form_key_host,
	    "must have an entry: leave it out for the endpoint's host alone"};

	if (at->v == NULL || !access_texts(a, at, &list))
		return;
	for (uint32_t i = 0; i < at->v->count; i++) {
		struct access_at one = access_entry(a, at, i);

		access_source_plain(a, &one);
	}
	access_put_texts(a, at, record, TELEMETRY_HOST);
}

/* Puts a member that is true unless the document says otherwise. */
static bool
usual(struct access_doc *a, const struct access_at *t, const char *name,
    uint8_t tag, struct buf *record)
{
	struct access_at at = access_get(a, t, name);
	bool yes = at.v == NULL || access_bool(a, &at);

	access_put_u8(record, tag, yes);
	return yes;
}

void
telemetry_read(struct access_doc *a, const struct access_at *t)
{
	static const struct access_member members[] = {{"endpoint", true},
	    {"hosts", false}, {"spans", false}, {"metrics", false},
	    {"principals", false}, {"every_seconds", false}, {NULL, false}};
	struct access_at at;
	struct buf record;
	bool spans, metrics;
	uint64_t every;

	if (t->v == NULL || !access_object(a, t, members))
		return;
	buf_init(&record, RECORD_MAX);
	at = access_get(a, t, "endpoint");
	access_source_plain(a, &at);
	if (access_text(a, &at, access_form_collector))
		tlv_put(&record, TELEMETRY_URL, at.v->str, at.v->len);
	at = access_get(a, t, "hosts");
	hosts(a, &at, &record);
	spans = usual(a, t, "spans", TELEMETRY_SPANS, &record);
	metrics = usual(a, t, "metrics", TELEMETRY_METRICS, &record);
	if (!spans && !metrics)
		access_fault(a, t,
		    "sends nothing: leave it out, or set \"spans\" or "
		    "\"metrics\" to true");
	at = access_get(a, t, "principals");
	access_put_u8(&record, TELEMETRY_PRINCIPALS, access_bool(a, &at));
	at = access_get(a, t, "every_seconds");
	every = access_number(
	    a, &at, TELEMETRY_EVERY_MAX_S, TELEMETRY_EVERY_USUAL_S);
	if (every < TELEMETRY_EVERY_MIN_S)
		access_fault(a, &at, "must be 10 or more");
	tlv_put_u64(&record, TELEMETRY_EVERY_S, every);
	access_put_record(a, ACCESS_TELEMETRY, &record);
}
