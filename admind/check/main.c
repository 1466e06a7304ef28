/* mcpbox-admind-check: checks hostile bytes for admind. See DESIGN.md. */
#include <seccomp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include "access.h"
#include "confine.h"
#include "forms.h"
#include "ipc_peer.h"
#include "jwt.h"
#include "jwt_key.h"
#include "keys.h"
#include "sent.h"
#include "log.h"
#include "proc.h"
#include "signin.h"
#include "service.h"
#include "specs.h"

/* Processor time in ms that one input may take. After that the process dies. */
enum { INPUT_MS = 50 };

/*
 * Sets a limit in case the validator fails: the validator counts its steps and
 * normally ends far earlier. If the limit is reached, SIGPROF's default action
 * ends this process, and the service manager starts a fresh one. The limit is
 * on processor time and not on the wall clock, because a busy machine must not
 * kill checks that did nothing wrong. A check never sleeps, so processor time
 * bounds the whole check. ms 0 stops the timer.
 */
static void
timer(long ms)
{
	struct itimerval t = {.it_value = {0, ms * 1000}};

	if (setitimer(ITIMER_PROF, &t, NULL) == -1)
		log_fatal("timer", "setitimer failed");
}

static int
answer(struct ipc_peer *peer, uint64_t request, const struct check *c)
{
	struct ipc_check_ok ok = {0};
	struct ipc_check_errors bad = {0};

	if (c->ok) {
		ok.kept = ipc_bytes(c->kept.p, c->kept.len);
		ok.fields = ipc_bytes(c->fields.p, c->fields.len);
		return ipc_answer(peer, request, IPC_CHECK_OK, &ok);
	}
	bad.failure = (uint16_t)c->failure;
	bad.summary = ipc_str(c->summary);
	/* The summary may quote input that was cut inside a character. */
	if (!utf8_valid(bad.summary.p, bad.summary.n))
		bad.summary = ipc_str("invalid; see the list of errors");
	bad.json = ipc_bytes(c->errors.p, c->errors.len);
	return ipc_answer(peer, request, IPC_CHECK_ERRORS, &bad);
}

static int
on_message(struct ipc_peer *peer, struct ipc_frame *f, void *arg)
{
	union {
		struct ipc_check_arguments arguments;
		struct ipc_check_management management;
		struct ipc_check_inspection inspection;
		struct ipc_check_command command;
		struct ipc_check_http http;
		struct ipc_check_openapi openapi;
		struct ipc_check_render render;
		struct ipc_check_access access;
		struct ipc_check_jwt jwt;
		struct ipc_check_keys keys;
		struct ipc_check_signin signin;
		struct ipc_check_sent sent;
	} m;
	struct signin_question question;
	struct jwt_question jwt;
	struct check c;
	struct err e;
	size_t n;
	int rc;

	if (ipc_decode(f, &m, &e) == -1) {
		log_event(LOG_LV_WARN, "peer_broke_rule", "%s", e.text);
		return -1;
	}
	timer(INPUT_MS);
	switch (f->type) {
	case IPC_CHECK_ARGUMENTS:
		n = m.arguments.schema_len;
		if (n > m.arguments.schema_arguments.n) {
			timer(0);
			log_event(LOG_LV_WARN, "peer_broke_rule",
			    "schema longer than its message");
			return -1;
		}
		check_arguments(&c,
		    ipc_bytes(m.arguments.schema_arguments.p, n),
		    ipc_bytes(m.arguments.schema_arguments.p + n,
			m.arguments.schema_arguments.n - n),
		    m.arguments.output != 0);
		break;
	case IPC_CHECK_MANAGEMENT:
		check_management(&c, m.management.tool, m.management.arguments);
		break;
	case IPC_CHECK_COMMAND:
		n = m.command.spec_len;
		if (n > m.command.spec_schema.n) {
			timer(0);
			log_event(LOG_LV_WARN, "peer_broke_rule",
			    "specification longer than its message");
			return -1;
		}
		check_command(&c, ipc_bytes(m.command.spec_schema.p, n),
		    ipc_bytes(m.command.spec_schema.p + n,
			m.command.spec_schema.n - n));
		break;
	case IPC_CHECK_HTTP:
		check_http(&c, m.http.confirm, m.http.spec);
		break;
	case IPC_CHECK_OPENAPI:
		check_openapi(&c, &m.openapi);
		break;
	case IPC_CHECK_RENDER:
		n = m.render.text_len;
		if (n > m.render.text_arguments.n) {
			timer(0);
			log_event(LOG_LV_WARN, "peer_broke_rule",
			    "template longer than its message");
			return -1;
		}
		check_render(&c, ipc_bytes(m.render.text_arguments.p, n),
		    ipc_bytes(m.render.text_arguments.p + n,
			m.render.text_arguments.n - n));
		break;
	case IPC_CHECK_INSPECTION:
		check_inspection(&c, m.inspection.json);
		break;
	case IPC_CHECK_ACCESS:
		check_access(&c, m.access.document);
		break;
	case IPC_CHECK_KEYS:
		check_keys(&c, m.keys.result);
		break;
	case IPC_CHECK_SIGNIN:
		n = m.signin.issuer_len;
		if (n > m.signin.issuer_result.n) {
			timer(0);
			log_event(LOG_LV_WARN, "peer_broke_rule",
			    "issuer longer than its message");
			return -1;
		}
		question = (struct signin_question){.now_us = m.signin.now_us,
		    .client = m.signin.client,
		    .nonce = m.signin.nonce,
		    .issuer = ipc_bytes(m.signin.issuer_result.p, n),
		    .result = ipc_bytes(m.signin.issuer_result.p + n,
			m.signin.issuer_result.n - n)};
		check_signin(&c, &question);
		break;
	case IPC_CHECK_SENT:
		check_sent(&c, m.sent.result);
		break;
	case IPC_CHECK_JWT:
		n = m.jwt.token_len;
		if (n > m.jwt.token_issuers.n) {
			timer(0);
			log_event(LOG_LV_WARN, "peer_broke_rule",
			    "token longer than its message");
			return -1;
		}
		jwt = (struct jwt_question){.listener = m.jwt.listener,
		    .via = m.jwt.via,
		    .now_us = m.jwt.now_us,
		    .token = ipc_bytes(m.jwt.token_issuers.p, n),
		    .issuers = ipc_bytes(
			m.jwt.token_issuers.p + n, m.jwt.token_issuers.n - n)};
		check_jwt(&c, &jwt);
		break;
	default:
		timer(0);
		return -1;
	}
	timer(0);
	rc = answer(peer, f->request, &c);
	check_free(&c);
	return rc;
}

static const struct ipc_handlers handlers = {NULL, on_message, NULL};

/* The base list, and setitimer for timer(). */
static const struct confine_rule rules[] = {
    {SCMP_SYS(setitimer), -1, 0, 0},
};

static void
confine(void)
{
	struct confine_spec spec = {.process = "admind-check",
	    .rules = rules,
	    .nrules = sizeof(rules) / sizeof(rules[0]),
	    .landlock = true,
	    .landlock_signal_scope = true,
	    .seccomp = true};
	struct buf layers;
	struct err e;

	buf_init(&layers, 4096);
	if (confine_self(&spec, &layers, &e) == -1)
		log_fatal("confine", "%s", e.text);
	buf_put_u8(&layers, 0);
	if (layers.failed)
		log_fatal("memory", "out of memory");
	ipc_hello_set("mcpbox-admind-check", (const char *)layers.p);
	/* The text must be one line in the log. */
	for (size_t i = 0; i < layers.len; i++)
		if (layers.p[i] == '\n')
			layers.p[i] = ' ';
	log_event(LOG_LV_INFO, "ready", "%s", (const char *)layers.p);
	buf_free(&layers);
}

int
main(int argc, char **argv)
{
	struct proc p;
	struct ipc_server *server;
	char path[128];
	struct err e;
	uid_t admind;
	int status;

	proc_start(&p, "admind-check", argc, argv);
	admind = conf_user(p.conf, "admind_user");
	if (proc_socket_path(
		&p, "admind-check", "admind", path, sizeof(path), &e) == -1 ||
	    (server = ipc_server_new(p.base, path, "admind", IPC_ROLE_CHECK,
		 IPC_ROLE_ADMIND, &admind, 1, &handlers, NULL, &e)) == NULL)
		log_fatal("listen", "%s", e.text);
	/* libcrypto loads now all that it loads, while files are in reach. */
	if (jwt_key_ready(&e) == -1)
		log_fatal("libcrypto", "%s", e.text);
	confine();
	service_ready(p.base, "serving");
	status = proc_run(&p);
	ipc_server_free(server);
	return status;
}
