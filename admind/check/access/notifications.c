/*
 * Security argument.
 *
 * This member decides where names of tools, servers and askers go when
 * requests wait. The vault finds the text of a target again in the sealed
 * document, so it must be written without escapes. The secret of a target goes
 * to the target's host alone, since one text has both (target.h). Without TLS
 * anybody on the way could read it, so http is for addresses of the local
 * network and of this machine. Mail without TLS is refused by the
 * run itself, except to such an address and without a secret.
 */
#include "notifications.h"

#include "access_form.h"
#include "access_source.h"
#include "notify_fields.h"
#include "target.h"
#include "tlv.h"

enum { RECORD_MAX = 2 * 1024 }; /* a text of 512 bytes, and its parts */

/* Returns NULL for the text of a target whose host a run may reach. */
static const char *
form(const uint8_t *p, size_t n)
{
	const char *fault;
	struct target t;

	if ((fault = target_read(ipc_bytes(p, n), &t)) != NULL)
		return fault;
	return t.url.n > 0 ? access_form_push(t.url.p, t.url.n)
			   : access_form_key_host(t.host.p, t.host.n);
}

static void
target(struct access_doc *a, const struct access_at *entry)
{
	static const struct access_member members[] = {
	    {"name", true}, {"notify", true}, {NULL, false}};
	struct access_at at;
	struct buf record;
	struct target t;

	if (!access_object(a, entry, members))
		return;
	buf_init(&record, RECORD_MAX);
	at = access_get(a, entry, "name");
	if (access_text(a, &at, access_form_name))
		tlv_put(&record, NOTIFY_NAME, at.v->str, at.v->len);
	at = access_get(a, entry, "notify");
	access_source_plain(a, &at);
	if (access_text(a, &at, form)) {
		(void)target_read(ipc_bytes(at.v->str, at.v->len), &t);
		tlv_put(&record, NOTIFY_TEXT, at.v->str, at.v->len);
		if (t.secret.n > 0) {
			tlv_put(&record, NOTIFY_SERVER, t.server.p, t.server.n);
			tlv_put(&record, NOTIFY_KEY, t.secret.p, t.secret.n);
		}
	}
	access_put_record(a, ACCESS_NOTIFY, &record);
}

void
notifications_read(struct access_doc *a, const struct access_at *t)
{
	static const struct access_member members[] = {
	    {"panel", false}, {"targets", true}, {NULL, false}};
	struct access_at at, one;
	uint32_t n;

	if (t->v == NULL || !access_object(a, t, members))
		return;
	at = access_get(a, t, "panel");
	if (at.v != NULL && access_text(a, &at, access_form_panel))
		tlv_put(a->fields, ACCESS_PANEL, at.v->str, at.v->len);
	at = access_get(a, t, "targets");
	n = access_count(a, &at, NOTIFY_TARGETS_MAX);
	if (at.v != NULL && at.v->kind == DOC_ARRAY && at.v->count == 0)
		access_fault(a, &at,
		    "must have an entry: leave \"notifications\" out to tell "
		    "nobody");
	for (uint32_t i = 0; i < n; i++) {
		one = access_entry(a, &at, i);
		target(a, &one);
		access_unique(a, &at, i, "name");
	}
}
