/* See ask.h. */
#include <string.h>

#include "ask.h"
#include "json_scan.h"
#include "jsonw.h"
#include "walk.h"

/* A member that a question's params may have, and the bytes its value may
 * begin with. */
struct member {
	const char *name, *first;
	bool required;
};

static const struct member form_members[] = {{"message", "\"", true},
    {"requestedSchema", "{", true}, {"mode", "\"", false}, {0}};
static const struct member url_members[] = {
    {"mode", "\"", true}, {"message", "\"", true}, {"url", "\"", true}, {0}};
#define NUMBER "-0123456789"
static const struct member sample_members[] = {{"messages", "[", true},
    {"maxTokens", NUMBER, true}, {"modelPreferences", "{", false},
    {"systemPrompt", "\"", false}, {"includeContext", "\"", false},
    {"temperature", NUMBER, false}, {"stopSequences", "[", false},
    {"metadata", "{", false}, {"tools", "[", false}, {"toolChoice", "{", false},
    {0}};
static const struct member no_members[] = {{0}};

#define ELICIT "elicitation/create"
#define SAMPLE "sampling/createMessage"
#define ROOTS  "roots/list"

static bool
get(struct ipc_bytes object, const char *name, struct ipc_bytes *v)
{
	const char *const path[] = {name, NULL};

	return json_slice(object.p, object.n, path, &v->p, &v->n) == 1;
}

static bool
is_text(struct ipc_bytes v, const char *s)
{
	return v.n == strlen(s) + 2 && v.p[0] == '"' &&
	    memcmp(v.p + 1, s, v.n - 2) == 0;
}

/* Tells whether the question's mode is `form` or `url`, written without
 * escapes. The mode decides which members are allowed. If a question with a
 * page's URL passed as a form, it would reach a client that declared forms
 * only. A word without escapes is the same for a reader that undoes escapes and
 * for a reader that compares bytes. */
static bool
mode_known(struct ipc_bytes method, struct ipc_bytes params)
{
	struct ipc_bytes mode;

	return !is_text(method, ELICIT) || !get(params, "mode", &mode) ||
	    is_text(mode, "form") || is_text(mode, "url");
}

static const struct member *
members_of(struct ipc_bytes method, struct ipc_bytes params)
{
	struct ipc_bytes mode;

	if (is_text(method, SAMPLE))
		return sample_members;
	if (is_text(method, ROOTS))
		return no_members;
	return get(params, "mode", &mode) && is_text(mode, "url")
	    ? url_members
	    : form_members;
}

static bool
is_key(struct ipc_bytes key)
{
	static const char set[] = "abcdefghijklmnopqrstuvwxyz"
				  "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";

	if (key.n == 0 || key.n > ASK_KEY_MAX)
		return false;
	for (size_t i = 0; i < key.n; i++)
		if (key.p[i] == 0 || strchr(set, key.p[i]) == NULL)
			return false;
	return true;
}

/* Writes the params with known members only, secrets replaced. 0, or 1 with
 * err: a member is missing or of a wrong type. */
static int
put_params(struct jsonw *w, const struct member *m, struct ipc_bytes params,
    struct redact *r, bool *replaced, struct err *e)
{
	struct ipc_bytes v;

	jsonw_name(w, "params");
	jsonw_obj(w);
	for (; m->name != NULL; m++) {
		if (!get(params, m->name, &v)) {
			if (!m->required)
				continue;
			(void)err_set(e, FAILURE_NO_ANSWER,
			    "The question lacks %s.", m->name);
			return 1;
		}
		if (v.n == 0 || v.p[0] == 0 ||
		    strchr(m->first, v.p[0]) == NULL) {
			(void)err_set(e, FAILURE_NO_ANSWER,
			    "The question's %s is of a wrong type.", m->name);
			return 1;
		}
		jsonw_kv_raw(w, m->name, "", 0);
		if (redact_json(r, v, w->out) != 0)
			*replaced = true;
	}
	jsonw_obj_end(w);
	return 0;
}

/* Tells whether the key holds a secret. A key is a name in the client's JSON
 * and can't be replaced, since the answer comes back under the same key. */
static bool
key_tells(struct redact *r, struct ipc_bytes key)
{
	struct buf b;
	bool tells;

	buf_init(&b, ASK_KEY_MAX + 1);
	tells = redact_bytes(r, key, &b) != 0 || b.failed;
	buf_free(&b);
	return tells;
}

int
ask_take(
    struct ipc_bytes text, struct redact *r, struct buf *out, struct err *e)
{
	struct ipc_bytes key, v, method, params;
	char name[ASK_KEY_MAX + 1];
	bool replaced = false;
	struct jsonw w;
	struct walk q;
	unsigned n = 0;

	if (walk_open(&q, text, '{') != 0)
		return err_set(e, FAILURE_KILLED, "questions are an object");
	jsonw_open(&w, out);
	jsonw_obj(&w);
	while (walk_next(&q, &key, &v)) {
		if (++n > ASK_QUESTIONS_MAX || !is_key(key) || v.p[0] != '{' ||
		    !get(v, "method", &method) || !get(v, "params", &params) ||
		    params.p[0] != '{' ||
		    (!is_text(method, ELICIT) && !is_text(method, SAMPLE) &&
			!is_text(method, ROOTS)))
			return err_set(
			    e, FAILURE_KILLED, "a malformed question");
		if (key_tells(r, key)) {
			(void)err_set(e, FAILURE_NO_ANSWER,
			    "A question's key holds a secret of the call.");
			return 1;
		}
		if (!mode_known(method, params)) {
			(void)err_set(e, FAILURE_NO_ANSWER,
			    "A question's mode is neither form nor url.");
			return 1;
		}
		memcpy(name, key.p, key.n);
		name[key.n] = '\0';
		jsonw_name(&w, name);
		jsonw_obj(&w);
		jsonw_kv_raw(&w, "method", method.p, method.n);
		if (put_params(&w, members_of(method, params), params, r,
			&replaced, e) != 0)
			return 1;
		jsonw_obj_end(&w);
	}
	jsonw_obj_end(&w);
	if (n == 0)
		return err_set(e, FAILURE_KILLED, "no question");
	if (out->failed) {
		(void)err_set(
		    e, FAILURE_NO_ANSWER, "The questions are too long.");
		return 1;
	}
	if (replaced && json_scan(out->p, out->len, NULL) != 0) {
		(void)err_set(e, FAILURE_NO_ANSWER,
		    "Names in the question hold secrets of the call; with "
		    "those replaced two of them are equal.");
		return 1;
	}
	return 0;
}

static void
put_error(struct jsonw *w, int code, const char *message)
{
	jsonw_name(w, "error");
	jsonw_obj(w);
	jsonw_kv_int(w, "code", code);
	jsonw_kv_str(w, "message", message);
	jsonw_obj_end(w);
}

/* Writes one answer for each key of the questions: the answer that `answers`
 * has for the key, or an error. */
static void
put_all(struct ipc_bytes questions, struct ipc_bytes answers, int code,
    const char *message, struct buf *out)
{
	struct ipc_bytes key, v, answer, part;
	char name[ASK_KEY_MAX + 1];
	struct jsonw w;
	struct walk q;

	jsonw_open(&w, out);
	jsonw_obj(&w);
	if (walk_open(&q, questions, '{') != 0)
		goto end;
	while (walk_next(&q, &key, &v)) {
		/* A malformed key gets no answer. ask_take ended the call
		 * because of such a key, or refused the questions before it
		 * read the key. */
		if (!is_key(key))
			continue;
		memcpy(name, key.p, key.n);
		name[key.n] = '\0';
		jsonw_name(&w, name);
		jsonw_obj(&w);
		if (answers.n == 0 || !get(answers, name, &answer) ||
		    answer.p[0] != '{')
			put_error(&w, code, message);
		else if (get(answer, "result", &part) && part.p[0] == '{')
			jsonw_kv_raw(&w, "result", part.p, part.n);
		else if (get(answer, "error", &part) && part.p[0] == '{')
			jsonw_kv_raw(&w, "error", part.p, part.n);
		else
			put_error(&w, code, message);
		jsonw_obj_end(&w);
	}
end:
	jsonw_obj_end(&w);
}

void
ask_answers(
    struct ipc_bytes questions, struct ipc_bytes answers, struct buf *out)
{
	put_all(questions, answers, ASK_CODE_NO_ANSWER,
	    "The client did not answer this question.", out);
}

void
ask_refuse(
    struct ipc_bytes questions, int code, const char *message, struct buf *out)
{
	put_all(questions, ipc_bytes(NULL, 0), code, message, out);
}
