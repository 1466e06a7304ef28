/*
 * Checks the specification of a command {argv, stdin, env, ok_exit_codes}, and
 * that the input schema has a property for every placeholder. The runner
 * replaces placeholders by values. Because of this check, arguments that
 * satisfy the schema can have a value for each placeholder.
 */
#include <string.h>

#include "num.h"
#include "schema.h"
#include "specs.h"

enum {
	ITEMS_MAX = 256,   /* of argv */
	NAMES_MAX = 64,    /* of env */
	STRING_MAX = 4096, /* bytes of a string; far below MAX_ARG_STRLEN */
	CODES_MAX = 32,    /* exit codes that are no errors */
	LAST_CODE = 255,   /* wait(2): eight bits */
};

struct command {
	struct report *r;
	const struct doc *schema;
	const struct doc_node *properties; /* may be NULL */
};

static bool
name_start(uint8_t c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool
name_char(uint8_t c)
{
	return name_start(c) || (c >= '0' && c <= '9');
}

/* Returns the length of the name in "{name}" at s. Returns 0 if the brace is
 * literal. */
static size_t
placeholder(const uint8_t *s, size_t n)
{
	size_t i = 1;

	if (n < 3 || s[0] != '{' || !name_start(s[1]))
		return 0;
	while (i < n && name_char(s[i]))
		i++;
	return i < n && s[i] == '}' ? i - 1 : 0;
}

static void
want(const struct command *c, const struct path *at, const uint8_t *name,
    size_t n)
{
	if (c->properties != NULL &&
	    doc_member(c->schema, c->properties, name, n) != NULL)
		return;
	report_add(c->r, at, "{%.*s} is not a property of input_schema",
	    report_cut(name, n), (const char *)name);
}

/* Returns whether v is a valid string of the specification. If not, reports
 * it. */
static bool
is_text(struct report *r, const struct path *at, const struct doc_node *v)
{
	if (v->kind != DOC_STRING)
		report_add(r, at, "must be a string");
	else if (memchr(v->str, 0, v->len) != NULL)
		report_add(r, at, "must not contain U+0000");
	else if (v->len > STRING_MAX)
		report_add(r, at, "must have at most %d bytes", STRING_MAX);
	else
		return true;
	return false;
}

static void
check_argv(
    const struct command *c, const struct doc *d, const struct doc_node *argv)
{
	struct path top = {NULL, (const uint8_t *)"argv", 4, 0};

	if (argv == NULL || argv->kind != DOC_ARRAY ||
	    argv->count > ITEMS_MAX) {
		report_add(c->r, &top, "must be an array of at most %d strings",
		    ITEMS_MAX);
		return;
	}
	for (uint32_t i = 0; i < argv->count; i++) {
		const struct doc_node *v = doc_kid(d, argv, i);
		struct path at = {&top, NULL, 0, i};
		size_t len;

		if (!is_text(c->r, &at, v))
			continue;
		for (size_t k = 0; k < v->len; k++)
			if ((len = placeholder(v->str + k, v->len - k)) > 0) {
				want(c, &at, v->str + k + 1, len);
				k += len + 1;
			}
	}
}

static void
check_stdin(const struct command *c, const struct doc_node *v)
{
	struct path at = {NULL, (const uint8_t *)"stdin", 5, 0};
	size_t len;

	if (!is_text(c->r, &at, v))
		return;
	len = placeholder(v->str, v->len);
	if (len == 0 || len + 2 != v->len)
		report_add(c->r, &at, "must be one placeholder, \"{name}\"");
	else
		want(c, &at, v->str + 1, len);
}

static void
check_env(
    const struct command *c, const struct doc *d, const struct doc_node *env)
{
	struct path top = {NULL, (const uint8_t *)"env", 3, 0};

	if (env->kind != DOC_OBJECT || env->count > NAMES_MAX) {
		report_add(c->r, &top,
		    "must be an object of at most %d strings", NAMES_MAX);
		return;
	}
	for (uint32_t i = 0; i < env->count; i++) {
		const struct doc_node *v = doc_kid(d, env, i);
		struct path at = {&top, v->name, v->namelen, 0};
		bool ok = v->namelen > 0 && v->namelen <= 255 &&
		    name_start(v->name[0]);

		for (size_t k = 0; ok && k < v->namelen; k++)
			ok = name_char(v->name[k]);
		if (!ok)
			report_add(c->r, &top,
			    "names are letters, digits and underscores");
		else
			(void)is_text(c->r, &at, v);
	}
}

/* Checks the exit codes other than 0 that are no errors (grep's 1, for
 * example). Each may be listed once. The list is reviewed, because it decides
 * which exits are reported to a caller as errors. */
static void
check_codes(
    const struct command *c, const struct doc *d, const struct doc_node *list)
{
	struct path top = {NULL, (const uint8_t *)"ok_exit_codes", 13, 0};
	bool seen[LAST_CODE + 1] = {false};
	struct num num;
	uint64_t n = 0;

	if (list->kind != DOC_ARRAY || list->count > CODES_MAX) {
		report_add(c->r, &top,
		    "must be an array of at most %d exit codes", CODES_MAX);
		return;
	}
	for (uint32_t i = 0; i < list->count; i++) {
		const struct doc_node *v = doc_kid(d, list, i);
		struct path at = {&top, NULL, 0, i};

		num = num_read(v->raw, v->kind == DOC_NUMBER ? v->rawlen : 0);
		if (v->kind != DOC_NUMBER || !num_u64(&num, LAST_CODE, &n) ||
		    n == 0)
			report_add(c->r, &at,
			    "must be an integer from 1 to %d; 0 is no error "
			    "anyway",
			    LAST_CODE);
		else if (seen[n])
			report_add(c->r, &at, "is there twice");
		else
			seen[n] = true;
	}
}

static void
check_spec(struct command *c, const struct doc *d)
{
	const struct doc_node *top = &d->node[0], *v;

	if (top->kind != DOC_OBJECT) {
		report_add(c->r, NULL, "must be an object");
		return;
	}
	for (uint32_t i = 0; i < top->count; i++) {
		v = doc_kid(d, top, i);
		if (v != doc_get(d, top, "argv") &&
		    v != doc_get(d, top, "stdin") &&
		    v != doc_get(d, top, "env") &&
		    v != doc_get(d, top, "ok_exit_codes"))
			report_add(c->r, NULL,
			    "has members argv, stdin, env and ok_exit_codes "
			    "only");
	}
	check_argv(c, d, doc_get(d, top, "argv"));
	if ((v = doc_get(d, top, "stdin")) != NULL)
		check_stdin(c, v);
	if ((v = doc_get(d, top, "env")) != NULL)
		check_env(c, d, v);
	if ((v = doc_get(d, top, "ok_exit_codes")) != NULL)
		check_codes(c, d, v);
}

void
check_command(struct check *c, struct ipc_bytes spec, struct ipc_bytes text)
{
	struct command cmd = {0};
	struct report r, quiet;
	struct schema s;
	struct doc d = {0};
	struct err e;
	int rc;

	check_begin(c, &r);
	report_open(&quiet, NULL);
	rc = schema_compile(&s, SCHEMA_INPUT, text.p, text.n, &quiet, &e);
	if (rc == 0 && quiet.n > 0)
		rc = err_set(&e, FAILURE_INVALID_ARGUMENTS,
		    "input_schema cannot be used: %s", quiet.first);
	if (rc == 0)
		rc = doc_parse(&d, spec.p, spec.n, &e);
	if (rc == 0) {
		cmd.r = &r;
		cmd.schema = &s.doc;
		cmd.properties = s.rule[0].properties;
		r.prefix = "/spec";
		check_spec(&cmd, &d);
		r.prefix = NULL;
	}
	check_end(c, &r, rc, FAILURE_INVALID_ARGUMENTS,
	    "the command cannot be used", &e);
	doc_free(&d);
	schema_free(&s);
}
