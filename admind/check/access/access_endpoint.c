/*
 * An endpoint is a part of the catalogue with an address of its own
 * (docs/decisions/0102). A document must not say more by it than it shows: its
 * members are closed, an empty list allows nothing, and a name at an endpoint
 * means one tool. A renamed tool need not be there. Its new name is kept for it
 * all the same, so no tool that comes later takes the name over.
 */
#include <string.h>

#include "access_endpoint.h"
#include "access_form.h"
#include "bounds.h"
#include "bytes.h"
#include "endpoint_fields.h"
#include "ipc_values.h"
#include "name.h"
#include "tlv.h"

enum {
	LISTENERS_MAX = 2,
	/* Bytes of a record: 256 patterns of 64 bytes twice, 64 renames of
	 * 1200, and the instructions. */
	RECORD_MAX = 128 * 1024
};

static const char *
form_listener(const uint8_t *p, size_t n)
{
	struct ipc_bytes s = ipc_bytes(p, n);

	return ipc_streq(s, "local") || ipc_streq(s, "tunnel")
	    ? NULL
	    : "must be \"local\" or \"tunnel\"";
}

/* Tells whether this is text for models: 1 to max bytes, no control character
 * but tab and newline. */
static bool
is_text(const uint8_t *p, size_t n, size_t max)
{
	if (n == 0 || n > max)
		return false;
	for (size_t i = 0; i < n; i++)
		if ((p[i] < ' ' && p[i] != '\n' && p[i] != '\t') ||
		    p[i] == 0x7f)
			return false;
	return true;
}

static const char *
form_instructions(const uint8_t *p, size_t n)
{
	return is_text(p, n, ENDPOINT_INSTRUCTIONS_MAX)
	    ? NULL
	    : "must have 1 to 2048 bytes without control characters: leave it "
	      "out for the usual instructions";
}

static const char *
form_description(const uint8_t *p, size_t n)
{
	return is_text(p, n, ENDPOINT_DESCRIPTION_MAX)
	    ? NULL
	    : "must have 1 to 1024 bytes without control characters: leave it "
	      "out for the tool's own";
}

static const char *
form_tool(const uint8_t *p, size_t n)
{
	const size_t prefix = strlen(NAME_MANAGEMENT);

	if (access_form_pattern(p, n) != NULL || memchr(p, '*', n) != NULL)
		return "must be the name of a tool, as clients know it: tool "
		       "or server__tool";
	if (n >= prefix && memcmp(p, NAME_MANAGEMENT, prefix) == 0)
		return "must not begin with mcpbox_: management tools keep "
		       "their names";
	return NULL;
}

/* Reports a member that an entry before the i-th has with the same text. */
static void
unique(struct access_doc *a, const struct access_at *list, uint32_t i,
    const char *member, const char *sentence)
{
	struct access_at entry = access_entry(a, list, i);
	struct access_at at = access_get(a, &entry, member);
	const struct doc_node *other;

	if (at.v == NULL || at.v->kind != DOC_STRING)
		return;
	for (uint32_t k = 0; k < i; k++) {
		other = doc_get(a->d, doc_kid(a->d, list->v, k), member);
		if (other != NULL && other->kind == DOC_STRING &&
		    other->len == at.v->len &&
		    memcmp(other->str, at.v->str, other->len) == 0) {
			access_fault(a, &at, sentence);
			return;
		}
	}
}

static void
rename_read(struct access_doc *a, const struct access_at *r, struct buf *out)
{
	static const struct access_member members[] = {{"tool", true},
	    {"as", true}, {"description", false}, {NULL, false}};
	struct access_at at;
	struct buf record;

	if (!access_object(a, r, members))
		return;
	buf_init(&record, RECORD_MAX);
	at = access_get(a, r, "tool");
	if (access_text(a, &at, form_tool))
		tlv_put(&record, RENAME_TOOL, at.v->str, at.v->len);
	at = access_get(a, r, "as");
	if (access_text(a, &at, form_tool))
		tlv_put(&record, RENAME_AS, at.v->str, at.v->len);
	at = access_get(a, r, "description");
	if (access_text(a, &at, form_description))
		tlv_put(&record, RENAME_DESCRIPTION, at.v->str, at.v->len);
	if (record.failed)
		out->failed = true;
	tlv_put(out, ENDPOINT_RENAME, record.p, record.len);
	buf_free(&record);
}

static void
renames(struct access_doc *a, const struct access_at *at, struct buf *record)
{
	uint32_t n = access_count(a, at, ENDPOINT_RENAMES_MAX);

	for (uint32_t i = 0; i < n; i++) {
		struct access_at one = access_entry(a, at, i);

		rename_read(a, &one, record);
		unique(a, at, i, "tool", "was renamed by an entry before it");
		unique(a, at, i, "as",
		    "is another tool's name by an entry before it");
	}
}

static void
listeners(struct access_doc *a, const struct access_at *at, struct buf *record)
{
	static const struct access_list list = {1, LISTENERS_MAX, form_listener,
	    "must have an entry: leave it out for both listeners"};
	unsigned mask = 0;

	if (at->v == NULL)
		mask = 1u << LISTENER_LOCAL | 1u << LISTENER_TUNNEL;
	else if (access_texts(a, at, &list))
		for (uint32_t i = 0; i < at->v->count; i++)
			mask |= 1u << (doc_is(doc_kid(a->d, at->v, i), "local")
					? LISTENER_LOCAL
					: LISTENER_TUNNEL);
	access_put_u8(record, ENDPOINT_LISTENERS, mask);
}

static void
set(struct access_doc *a, const struct access_at *at,
    const struct access_at *sets, struct buf *record)
{
	const struct doc_node *name;
	uint32_t n =
	    sets->v != NULL && sets->v->kind == DOC_ARRAY ? sets->v->count : 0;

	if (at->v == NULL)
		return;
	for (uint32_t i = 0; at->v->kind == DOC_STRING && i < n; i++) {
		name = doc_get(a->d, doc_kid(a->d, sets->v, i), "name");
		if (name != NULL && name->kind == DOC_STRING &&
		    name->len == at->v->len &&
		    memcmp(name->str, at->v->str, name->len) == 0) {
			tlv_put(record, ENDPOINT_SET, at->v->str, at->v->len);
			return;
		}
	}
	access_fault(
	    a, at, "must be the name of a permission set of this document");
}

static void
endpoint(struct access_doc *a, const struct access_at *e,
    const struct access_at *sets)
{
	static const struct access_member members[] = {{"name", true},
	    {"allow", true}, {"deny", false}, {"rename", false},
	    {"instructions", false}, {"mode", false}, {"set", false},
	    {"listeners", false}, {NULL, false}};
	static const char *const modes[] = {"all", "search", NULL};
	static const struct access_list patterns = {
	    0, ACCESS_PATTERNS_MAX, access_form_pattern, ""};
	struct access_at at;
	struct buf record;

	if (!access_object(a, e, members))
		return;
	buf_init(&record, RECORD_MAX);
	at = access_get(a, e, "name");
	if (access_text(a, &at, access_form_name))
		tlv_put(&record, ENDPOINT_NAME, at.v->str, at.v->len);
	at = access_get(a, e, "allow");
	if (access_texts(a, &at, &patterns))
		access_put_texts(a, &at, &record, ENDPOINT_ALLOW);
	at = access_get(a, e, "deny");
	if (access_texts(a, &at, &patterns))
		access_put_texts(a, &at, &record, ENDPOINT_DENY);
	at = access_get(a, e, "rename");
	renames(a, &at, &record);
	at = access_get(a, e, "instructions");
	if (access_text(a, &at, form_instructions))
		tlv_put(&record, ENDPOINT_INSTRUCTIONS, at.v->str, at.v->len);
	at = access_get(a, e, "mode");
	access_put_u8(&record, ENDPOINT_SEARCH, access_word(a, &at, modes, 0));
	at = access_get(a, e, "set");
	set(a, &at, sets, &record);
	at = access_get(a, e, "listeners");
	listeners(a, &at, &record);
	access_put_record(a, ACCESS_ENDPOINT, &record);
}

void
access_endpoints_read(struct access_doc *a, const struct access_at *list,
    const struct access_at *sets)
{
	uint32_t n = access_count(a, list, ENDPOINTS_MAX);

	for (uint32_t i = 0; i < n; i++) {
		struct access_at one = access_entry(a, list, i);

		endpoint(a, &one, sets);
		unique(a, list, i, "name",
		    "is the \"name\" of an entry before it");
	}
}
