#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "draft.h"
#include "management_tools.h"
#include "tlv.h"
#include "version.h"
#include "version_gate.h"

/* The largest pre-image that the message CONTENT can carry to the vault. */
enum { PREIMAGE_MAX = IPC_BLOB_MAX };

/* Maps tool arguments to version fields, in field order. */
static const struct {
	uint8_t version, argument;
} same[] = {
    {VERSION_TITLE, MF_TITLE},
    {VERSION_DESCRIPTION, MF_DESCRIPTION},
    {VERSION_ICONS, MF_ICONS},
    {VERSION_META, MF_META},
    {VERSION_INPUT_SCHEMA, MF_INPUT_SCHEMA},
    {VERSION_OUTPUT_SCHEMA, MF_OUTPUT_SCHEMA},
    {VERSION_ANNOTATIONS, MF_ANNOTATIONS},
    {VERSION_KIND, MF_KIND},
    {VERSION_CODE, MF_CODE},
    {VERSION_SPEC, MF_SPEC},
    {VERSION_MODULE, MF_MODULE},
    {VERSION_EXECUTABLE, MF_EXECUTABLE},
    {VERSION_EXECUTABLE_DIGEST, 0},
    {VERSION_SECRET, MF_SECRET},
    {VERSION_REQUIRE, MF_REQUIRE},
    {VERSION_TASK, MF_TASK},
    {VERSION_CONFIRM, MF_CONFIRM},
    {VERSION_TIMEOUT_MS, MF_TIMEOUT_MS},
    {VERSION_MEMORY_BYTES, MF_MEMORY_BYTES},
    {VERSION_PROCESSES, MF_PROCESSES},
    {VERSION_TMP_BYTES, MF_TMP_BYTES},
    {VERSION_RESULT_BYTES, MF_RESULT_BYTES},
    {VERSION_CPU_MS, MF_CPU_MS},
    {VERSION_FILES, MF_FILES},
    {VERSION_FILE_BYTES, MF_FILE_BYTES},
    {VERSION_STDOUT_BYTES, MF_STDOUT_BYTES},
    {VERSION_ARGUMENT_BYTES, MF_ARGUMENT_BYTES},
    {VERSION_LOG_RATE, MF_LOG_RATE},
    {VERSION_PROGRESS_RATE, MF_PROGRESS_RATE},
    {VERSION_OBJECT, 0},
    {VERSION_URI, MF_URI},
    {VERSION_MIME_TYPE, MF_MIME_TYPE},
    {VERSION_PROMPT_ARGUMENTS, MF_ARGUMENTS},
    {VERSION_TEXT, MF_TEXT},
    {VERSION_BLOB, MF_BLOB},
    {VERSION_TTL_MS, MF_TTL_MS},
    {VERSION_CLIENT_CAPABILITY, MF_CLIENT_CAPABILITY},
    {VERSION_CONNECTIONS, MF_CONNECTIONS},
    {VERSION_NETWORK_BYTES, MF_NETWORK_BYTES},
    {VERSION_NETWORK_RATE, MF_NETWORK_RATE},
};

struct draft *
draft_new(void)
{
	struct draft *d = calloc(1, sizeof(*d));

	if (d != NULL) {
		buf_init(&d->before, PREIMAGE_MAX);
		buf_init(&d->preimage, PREIMAGE_MAX);
		buf_init(&d->lock, IPC_FRAME_MAX);
		buf_init(&d->inspected, IPC_BLOB_MAX);
	}
	return d;
}

void
draft_free(void *p)
{
	struct draft *d = p;

	if (d == NULL)
		return;
	buf_free(&d->before);
	buf_free(&d->preimage);
	buf_free(&d->lock);
	buf_free(&d->inspected);
	free(d);
}

int
draft_names(
    struct draft *d, struct ipc_bytes server, struct ipc_bytes name, bool bare)
{
	if (server.n > NAME_SERVER_MAX || name.n > NAME_TOOL_MAX)
		return -1;
	snprintf(d->server, sizeof(d->server), "%.*s", (int)server.n,
	    (const char *)server.p);
	snprintf(d->name, sizeof(d->name), "%.*s", (int)name.n,
	    (const char *)name.p);
	if (bare)
		snprintf(d->exposed, sizeof(d->exposed), "%s", d->name);
	else
		snprintf(d->exposed, sizeof(d->exposed), "%s__%s", d->server,
		    d->name);
	return strlen(d->exposed) <= NAME_EXPOSED_MAX ? 0 : -1;
}

/*
 * Copies every field with tag `from` of a list as tag `to`. An empty array of
 * names, an empty title and an empty MIME type come as an empty text: then no
 * field is written, so the new version has none. Returns the number of fields
 * found.
 */
static int
copy(struct buf *out, uint8_t to, struct ipc_bytes list, uint8_t from)
{
	bool clears = to == VERSION_TITLE || to == VERSION_SECRET ||
	    to == VERSION_REQUIRE || to == VERSION_MIME_TYPE ||
	    to == VERSION_CLIENT_CAPABILITY;
	struct tlv_reader r;
	struct tlv t;
	int found = 0;

	tlv_open(&r, list.p, list.n);
	while (tlv_next(&r, &t) == 1) {
		if (t.tag != from)
			continue;
		found++;
		if (t.n > 0 || !clears)
			tlv_put(out, to, t.p, t.n);
	}
	return found;
}

int
draft_field(const struct draft *d, struct ipc_bytes fields, uint8_t argument,
    uint8_t version, struct ipc_bytes *out)
{
	const uint8_t *list;
	struct tlv t;
	size_t n;

	if (tlv_find(fields.p, fields.n, argument, &t) != 1 &&
	    (d->before.len == 0 ||
		version_check(d->before.p, d->before.len, &list, &n, NULL) ==
		    -1 ||
		tlv_find(list, n, version, &t) != 1))
		return 0;
	*out = ipc_bytes(t.p, t.n);
	return 1;
}

static bool
given(struct ipc_bytes fields, uint8_t argument)
{
	struct tlv t;

	return tlv_find(fields.p, fields.n, argument, &t) == 1;
}

static enum draft_kind
kind_of(struct ipc_bytes kind)
{
	return ipc_streq(kind, "command") ? DRAFT_COMMAND
	    : ipc_streq(kind, "http")     ? DRAFT_HTTP
	    : ipc_streq(kind, "static")   ? DRAFT_STATIC
					  : DRAFT_PYTHON;
}

enum draft_kind
draft_kind_before(const struct draft *d)
{
	struct ipc_bytes kind;

	return draft_field(
		   d, ipc_bytes(NULL, 0), MF_KIND, VERSION_KIND, &kind) == 0
	    ? DRAFT_PYTHON
	    : kind_of(kind);
}

enum draft_kind
draft_kind(const struct draft *d, struct ipc_bytes fields)
{
	struct ipc_bytes kind;

	if (d->object[0] != '\0') {
		if (given(fields, MF_TEXT) || given(fields, MF_BLOB))
			return DRAFT_STATIC;
		if (given(fields, MF_CODE))
			return DRAFT_PYTHON;
	}
	if (draft_field(d, fields, MF_KIND, VERSION_KIND, &kind) == 0)
		return DRAFT_PYTHON;
	return kind_of(kind);
}

bool
draft_is_command(const struct draft *d, struct ipc_bytes fields)
{
	return draft_kind(d, fields) == DRAFT_COMMAND;
}

struct ipc_bytes
draft_modules(const struct draft *d, struct ipc_bytes fields)
{
	const uint8_t *list;
	struct tlv t;
	size_t n;

	if (tlv_find(fields.p, fields.n, MF_MODULE, &t) == 1)
		return ipc_bytes(d->lock.p, d->lock.len);
	if (d->before.len == 0 ||
	    version_check(d->before.p, d->before.len, &list, &n, NULL) == -1)
		return ipc_bytes(NULL, 0);
	return ipc_bytes(list, n);
}

/* Returns whether a version of this kind lacks this field. A static version has
 * either a text or a blob. If the fields give one of the two, the version lacks
 * the other, even if the version before had it. */
static bool
foreign(enum draft_kind kind, struct ipc_bytes fields, uint8_t tag)
{
	switch (tag) {
	case VERSION_CODE:
	case VERSION_MODULE:
		return kind != DRAFT_PYTHON;
	case VERSION_SECRET:
		return kind != DRAFT_PYTHON && kind != DRAFT_HTTP;
	case VERSION_REQUIRE:
		return kind == DRAFT_STATIC;
	case VERSION_SPEC:
		return kind != DRAFT_COMMAND && kind != DRAFT_HTTP;
	case VERSION_EXECUTABLE:
	case VERSION_EXECUTABLE_DIGEST:
		return kind != DRAFT_COMMAND;
	case VERSION_TEXT:
		return kind != DRAFT_STATIC || given(fields, MF_BLOB);
	case VERSION_BLOB:
		return kind != DRAFT_STATIC || given(fields, MF_TEXT);
	default:
		return false;
	}
}

/* Writes a field of a prompt or resource that is not simply copied from an
 * argument. Returns whether tag is such a field. */
static bool
of_object(const struct draft *d, struct ipc_bytes fields,
    struct ipc_bytes before, enum draft_kind kind, uint8_t tag, struct buf *out)
{
	if (d->object[0] == '\0')
		return false;
	switch (tag) {
	case VERSION_OBJECT:
		tlv_puts(out, tag, d->object);
		return true;
	case VERSION_KIND:
		tlv_puts(out, tag, kind == DRAFT_STATIC ? "static" : "python");
		return true;
	case VERSION_INPUT_SCHEMA:
		if (copy(out, tag, fields, MF_OBJECT_SCHEMA) == 0)
			(void)copy(out, tag, before, tag);
		return true;
	case VERSION_URI:
		return copy(out, tag, fields, MF_URI_TEMPLATE) > 0;
	default:
		return false;
	}
}

/* Writes a field that the inspection of a declared REST call decides. Returns
 * whether the inspection decides this field. */
static bool
of_http(enum draft_kind kind, struct ipc_bytes inspected, uint8_t tag,
    struct buf *out)
{
	if (kind != DRAFT_HTTP)
		return false;
	switch (tag) {
	case VERSION_INPUT_SCHEMA:
		(void)copy(out, tag, inspected, INSPECT_INPUT_SCHEMA);
		return true;
	case VERSION_SECRET:
		(void)copy(out, tag, inspected, INSPECT_SECRET);
		return true;
	case VERSION_REQUIRE:
		(void)copy(out, tag, inspected, INSPECT_REQUIRE);
		return true;
	case VERSION_CONFIRM:
		/* If the specification demands no confirmation, the author's
		 * `confirm` counts. */
		return copy(out, tag, inspected, INSPECT_CONFIRM) > 0;
	default:
		return false;
	}
}

/* Copies a field that the inspection may fill. Returns the number of fields
 * found. */
static int
from_inspection(struct buf *out, uint8_t to, struct ipc_bytes inspected)
{
	if (to == VERSION_INPUT_SCHEMA)
		return copy(out, to, inspected, INSPECT_INPUT_SCHEMA);
	if (to == VERSION_DESCRIPTION)
		return copy(out, to, inspected, INSPECT_DOC);
	if (to == VERSION_EXECUTABLE_DIGEST)
		return copy(out, to, inspected, INSPECT_EXECUTABLE_DIGEST);
	return 0;
}

int
draft_make(struct draft *d, struct ipc_bytes fields, struct ipc_bytes inspected,
    struct err *e)
{
	struct ipc_bytes before = ipc_bytes(NULL, 0);
	enum draft_kind kind = draft_kind(d, fields);
	struct buf *out = &d->preimage;
	struct tlv t;
	const uint8_t *list;
	size_t n;

	if (d->before.len > 0) {
		if (version_check(d->before.p, d->before.len, &list, &n, e) ==
		    -1)
			return -1;
		before = ipc_bytes(list, n);
	}
	buf_clear(out);
	version_begin(out);
	tlv_put_u64(out, VERSION_FORMAT, 1);
	tlv_put(out, VERSION_SERVER_ID, d->server_id.b, sizeof(d->server_id.b));
	tlv_put(out, VERSION_TOOL_ID, d->tool_id.b, sizeof(d->tool_id.b));
	tlv_puts(out, VERSION_SERVER_NAME, d->server);
	tlv_puts(out, VERSION_NAME, d->name);
	tlv_puts(out, VERSION_EXPOSED_NAME, d->exposed);
	for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
		uint8_t tag = same[i].version;
		/* New code has a new signature, so the new schema replaces the
		 * old one. A command's new digest replaces the old one, too. A
		 * description that somebody wrote remains. */
		bool fresh = tag == VERSION_INPUT_SCHEMA ||
		    tag == VERSION_EXECUTABLE_DIGEST;

		if (foreign(kind, fields, tag) ||
		    of_object(d, fields, before, kind, tag, out) ||
		    of_http(kind, inspected, tag, out))
			continue;
		/* The argument has the names of modules. The version gets the
		 * modules' exact content instead (d->lock). */
		if (tag == VERSION_MODULE &&
		    tlv_find(fields.p, fields.n, MF_MODULE, &t) == 1) {
			buf_put(out, d->lock.p, d->lock.len);
			continue;
		}
		if (same[i].argument != 0 &&
		    copy(out, tag, fields, same[i].argument) > 0)
			continue;
		if (fresh && from_inspection(out, tag, inspected) > 0)
			continue;
		if (copy(out, tag, before, tag) > 0)
			continue;
		if (!fresh && from_inspection(out, tag, inspected) > 0)
			continue;
		if (tag == VERSION_KIND)
			tlv_puts(out, tag, "python");
		if (tag == VERSION_DESCRIPTION)
			tlv_puts(out, tag, "");
	}
	if (out->failed)
		return err_set(e, FAILURE_LIMIT,
		    "the version would be larger than %d bytes", PREIMAGE_MAX);
	if (version_check(out->p, out->len, &list, &n, e) == -1)
		return -1;
	return version_gate(list, n, e);
}

static bool
is_id(uint8_t tag)
{
	return tag == MF_TOOL_ID || tag == MF_PROMPT_ID ||
	    tag == MF_RESOURCE_ID;
}

bool
draft_asked(struct ipc_bytes fields)
{
	struct tlv_reader r;
	struct tlv t;

	tlv_open(&r, fields.p, fields.n);
	while (tlv_next(&r, &t) == 1)
		if (!is_id(t.tag) && t.tag != MF_ENABLED)
			return true;
	return false;
}

void
draft_note(struct ipc_bytes fields, char *buf, size_t len)
{
	enum management_kind kind;
	struct tlv_reader r;
	struct tlv t;
	uint8_t last = 0;
	size_t used = 0;

	buf[0] = '\0';
	tlv_open(&r, fields.p, fields.n);
	while (tlv_next(&r, &t) == 1) {
		const char *name = management_field(t.tag, &kind);
		int n;

		if (is_id(t.tag) || t.tag == MF_ENABLED || t.tag == last ||
		    name == NULL)
			continue;
		last = t.tag;
		n = snprintf(
		    buf + used, len - used, "%s%s", used > 0 ? ", " : "", name);
		if (n < 0 || (size_t)n >= len - used)
			return;
		used += (size_t)n;
	}
}
