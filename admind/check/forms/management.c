/*
 * Checks the arguments of a management tool by the tool's own published schema,
 * then takes them apart into the typed fields that admind works with. Limits
 * that a schema can't express are judged here (bytes instead of characters,
 * U+0000, schemas inside the arguments), so admind never sees a value that it
 * can't store.
 */
#include <stdlib.h>
#include <string.h>

#include "forms.h"
#include "ids.h"
#include "kept.h"
#include "management_tools.h"
#include "num.h"
#include "object.h"
#include "schema.h"
#include "tlv.h"
#include "version_gate.h"

/* _meta, icons and annotations go into every tools/list, so each must be
 * small. */
enum { JSON_FIELD_MAX = 16 * 1024 };

static bool
has_nul(const struct doc_node *v)
{
	return memchr(v->str, 0, v->len) != NULL;
}

/* Reports code that the vault would refuse to approve (version_gate.h). */
static bool
unlike_its_lines(struct report *r, const struct doc_node *v)
{
	struct err e;

	if (version_gate_code(v->str, v->len, &e) == 0)
		return false;
	report_add(r, NULL, "%s", e.text);
	return true;
}

static void
text(struct check *c, struct report *r, unsigned tag, const struct doc_node *v)
{
	if (has_nul(v))
		report_add(r, NULL, "must not contain U+0000");
	else if ((tag == MF_CODE || tag == MF_CANDIDATE) && v->len > CODE_MAX)
		report_add(r, NULL,
		    "must have at most %d bytes of UTF-8, "
		    "has %zu",
		    CODE_MAX, v->len);
	else if ((tag == MF_CODE || tag == MF_CANDIDATE) &&
	    unlike_its_lines(r, v))
		return;
	else if ((tag == MF_TEXT || tag == MF_BLOB) && v->len > STATIC_MAX)
		report_add(r, NULL, "must have at most %d bytes, has %zu",
		    STATIC_MAX, v->len);
	else
		tlv_put(&c->fields, (uint8_t)tag, v->str, v->len);
}

static int
json(struct check *c, struct report *r, unsigned tag, const struct doc_node *v,
    struct err *e)
{
	struct schema s;
	int rc;

	if (tag == MF_INPUT_SCHEMA || tag == MF_OUTPUT_SCHEMA) {
		rc = schema_compile(&s,
		    tag == MF_INPUT_SCHEMA ? SCHEMA_INPUT : SCHEMA_ANY, v->raw,
		    v->rawlen, r, e);
		schema_free(&s);
		if (rc == -1)
			return -1;
	} else if (tag == MF_SPEC) {
		/* The specification of a REST call has schemas inside, so it
		 * may be longer than JSON_FIELD_MAX. */
		if (v->rawlen > CODE_MAX)
			report_add(r, NULL,
			    "must have at most %d bytes, has %zu", CODE_MAX,
			    v->rawlen);
	} else if (v->rawlen > JSON_FIELD_MAX && tag != MF_DOCUMENT &&
	    /* the frame bounds the arguments of a tool's call */
	    (tag != MF_ARGUMENTS || v->kind != DOC_OBJECT)) {
		report_add(r, NULL, "must have at most %d bytes, has %zu",
		    JSON_FIELD_MAX, v->rawlen);
	}
	tlv_put(&c->fields, (uint8_t)tag, v->raw, v->rawlen);
	return 0;
}

/* Refuses names in _meta that only mcpbox itself may use. */
static void
reserved(struct report *r, const struct doc *d, const struct doc_node *v)
{
	for (uint32_t i = 0; i < v->count; i++) {
		const struct doc_node *kid = doc_kid(d, v, i);
		struct path at = {NULL, kid->name, kid->namelen, 0};

		if (kid->namelen >= 7 && memcmp(kid->name, "mcpbox/", 7) == 0)
			report_add(r, &at, "is a reserved name");
	}
}

static int
by_bytes(const void *va, const void *vb)
{
	const struct doc_node *a = *(const struct doc_node *const *)va;
	const struct doc_node *b = *(const struct doc_node *const *)vb;
	size_t n = a->len < b->len ? a->len : b->len;
	int cmp = memcmp(a->str, b->str, n);

	return cmp != 0 ? cmp : (a->len > b->len) - (a->len < b->len);
}

/* Puts a sorted list. The schema made sure that its elements are strings, few,
 * and all different. */
static int
many(struct check *c, struct report *r, unsigned tag, const struct doc *d,
    const struct doc_node *v, struct err *e)
{
	const struct doc_node **list;

	if (v->count == 0) {
		tlv_put(&c->fields, (uint8_t)tag, "", 0);
		return 0;
	}
	list = reallocarray(NULL, v->count, sizeof(struct doc_node *));
	if (list == NULL)
		return err_set(e, FAILURE_INTERNAL, "out of memory");
	for (uint32_t i = 0; i < v->count; i++)
		list[i] = doc_kid(d, v, i);
	qsort(list, v->count, sizeof(struct doc_node *), by_bytes);
	for (uint32_t i = 0; i < v->count; i++)
		text(c, r, tag, list[i]);
	free(list);
	return 0;
}

static int
put_field(struct check *c, struct report *r, unsigned tag,
    enum management_kind kind, const struct doc *d, const struct doc_node *v,
    struct err *e)
{
	struct ipc_id id;
	struct num num;
	uint64_t u = 0;

	switch (kind) {
	case MANAGEMENT_S:
		text(c, r, tag, v);
		return 0;
	case MANAGEMENT_N:
		num = num_read(v->raw, v->rawlen);
		if (!num_u64(&num, UINT64_MAX, &u))
			report_add(r, NULL, "is out of range");
		tlv_put_u64(&c->fields, (uint8_t)tag, u);
		return 0;
	case MANAGEMENT_B:
		tlv_put_u64(&c->fields, (uint8_t)tag, v->kind == DOC_TRUE);
		return 0;
	case MANAGEMENT_I:
		/* The schema made sure that the value is an id or a name. So a
		 * value that is not an id is a name. */
		if (uuid_parse((const char *)v->str, v->len, &id) == 0)
			tlv_put(&c->fields, (uint8_t)tag, id.b, sizeof(id.b));
		else
			tlv_put(&c->fields, (uint8_t)(tag + MF_NAMED), v->str,
			    v->len);
		return 0;
	case MANAGEMENT_J:
		if (tag == MF_META)
			reserved(r, d, v);
		return json(c, r, tag, v, e);
	case MANAGEMENT_M:
		return many(c, r, tag, d, v, e);
	}
	return 0;
}

/* Returns the argument called `name`, which may be "object.member". */
static const struct doc_node *
find(const struct doc *d, const char *name)
{
	const struct doc_node *v = &d->node[0];
	const char *dot;

	while (v != NULL && (dot = strchr(name, '.')) != NULL) {
		v = doc_member(d, v, name, (size_t)(dot - name));
		name = dot + 1;
	}
	return v != NULL ? doc_get(d, v, name) : NULL;
}

static int
put_fields(
    struct check *c, struct report *r, const struct doc *d, struct err *e)
{
	char prefix[64];

	for (unsigned tag = 1; tag <= MF_MAX; tag++) {
		enum management_kind kind;
		const char *name = management_field(tag, &kind);
		const struct doc_node *v;
		size_t n;
		int rc;

		if (name == NULL || (v = find(d, name)) == NULL)
			continue;
		/* "limits.timeout_ms" is at /limits/timeout_ms. */
		n = strlen(name);
		if (n + 2 > sizeof(prefix))
			return err_set(e, FAILURE_INTERNAL, "name too long");
		prefix[0] = '/';
		for (size_t i = 0; i <= n; i++)
			prefix[i + 1] = name[i] == '.' ? '/' : name[i];
		r->prefix = prefix;
		rc = put_field(c, r, tag, kind, d, v, e);
		r->prefix = NULL;
		if (rc == -1)
			return -1;
	}
	return 0;
}

/* Checks that the members that a tool's kind needs are there (kinds: code, a
 * command, a declared REST call). The schema can't demand them, because clients
 * pass the schema on to interfaces that refuse anyOf and the like at a schema's
 * top. */
static void
check_kind(struct report *r, const struct doc *d)
{
	static const struct {
		const char *kind, *need[3];
	} kinds[] = {{"python", {"python_code", NULL}},
	    {"command", {"spec", "executable", NULL}},
	    {"http", {"spec", NULL}}};
	const struct doc_node *kind = doc_get(d, &d->node[0], "kind");
	size_t k = 0;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (kind != NULL && doc_is(kind, kinds[i].kind))
			k = i;
	for (const char *const *want = kinds[k].need; *want != NULL; want++) {
		struct path at = {
		    NULL, (const uint8_t *)*want, strlen(*want), 0};

		if (doc_get(d, &d->node[0], *want) == NULL)
			report_add(r, &at, "is missing: kind %s needs it",
			    kinds[k].kind);
	}
}

/* Checks the members that every specification has. So the author gets the error
 * now, and not later from a runner that could not use the specification. */
static void
check_spec(struct report *r, const struct doc *d)
{
	const struct doc_node *spec = doc_get(d, &d->node[0], "spec");
	struct path at = {NULL, (const uint8_t *)"spec", 4, 0};

	if (spec != NULL && spec->kind == DOC_OBJECT &&
	    doc_get(d, spec, "argv") == NULL && doc_get(d, spec, "url") == NULL)
		report_add(r, &at,
		    "needs argv (kind command), or method and url (kind http)");
}

/* Checks those rules for arguments of prompts and resources that a schema can't
 * express. */
static int
check_object(struct check *c, struct report *r,
    const struct management_tool *tool, const struct doc *d, struct err *e)
{
	if (!tool->creates && !tool->changes)
		return 0;
	if (tool->object == MANAGEMENT_PROMPT)
		return object_prompt(c, r, d, tool->creates, e);
	if (tool->object == MANAGEMENT_RESOURCE)
		return object_resource(c, r, d, tool->creates, e);
	return 0;
}

void
check_management(
    struct check *c, struct ipc_bytes name, struct ipc_bytes arguments)
{
	const struct management_tool *tool = management_tool(name);
	struct doc d = {0};
	struct report r;
	struct err e;
	int rc;

	check_begin(c, &r);
	r.rule = management_rule;
	if (tool == NULL)
		rc = err_set(&e, FAILURE_UNKNOWN_TOOL,
		    "there is no such management tool");
	else
		rc = doc_parse(&d, arguments.p, arguments.n, &e);
	if (rc == 0 && tool != NULL)
		rc = check_against(ipc_str(tool->input_schema), &d, &r, &e);
	if (rc == 0 && tool != NULL && d.node[0].kind == DOC_OBJECT &&
	    tool->creates && tool->object == MANAGEMENT_TOOL)
		check_kind(&r, &d);
	if (rc == 0 && d.node != NULL && d.node[0].kind == DOC_OBJECT)
		check_spec(&r, &d);
	/* put_field() expects values of the kinds that the schema demands, so
	 * no field is put after an error. */
	if (rc == 0 && r.n == 0)
		rc = put_fields(c, &r, &d, &e);
	if (rc == 0 && r.n == 0 && tool != NULL)
		rc = check_object(c, &r, tool, &d, &e);
	if (rc == 0 && r.n == 0)
		(void)kept_form(
		    arguments.p, arguments.n, ARGUMENTS_KEPT, &c->kept);
	check_end(c, &r, rc, FAILURE_INVALID_ARGUMENTS,
	    "the arguments are invalid", &e);
	doc_free(&d);
}
