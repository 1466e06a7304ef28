/*
 * mcpbox-admind-vault: keys, passwords, logins, approvals, sealed contexts.
 * See DESIGN.md in this folder.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <event2/event.h>

#include "admins.h"
#include "confine.h"
#include "log.h"
#include "logins.h"
#include "passkey.h"
#include "requests.h"
#include "service.h"

/* Hands a message to its handler. The IPC library has checked that this peer
 * may send it (the table of common/ipc/ipc_table.h). */
static int
dispatch(struct port *port, struct ipc_peer *peer, struct ipc_frame *f)
{
	switch (f->type) {
	case IPC_LOGOUT:
	case IPC_WHOAMI:
	case IPC_SESSION_LOOKUP:
		return tokens_message(port, peer, f);
	case IPC_LOGINS_GET:
	case IPC_LOGIN_END:
		return endings_message(port, peer, f);
	case IPC_LOGIN:
		return logins_message(port, peer, f);
	case IPC_PASSKEY_CHALLENGE:
	case IPC_PASSKEYS_GET:
	case IPC_PASSKEY_REMOVE:
	case IPC_PASSKEY_CODE_MAKE:
		return passkey_lists_message(port, peer, f);
	case IPC_PASSKEY_REGISTER:
	case IPC_PASSKEY_ASSERT:
		return passkey_use_message(port, peer, f);
	case IPC_SIGNIN_GRANT:
	case IPC_SIGNIN_REDEEM:
	case IPC_SIGNIN_HOLDS:
	case IPC_SIGNIN_DROP:
		return signin_message(port, peer, f);
	case IPC_PROVE:
		return prove_message(port, peer, f);
	case IPC_PASSWORD:
	case IPC_SETUP:
	case IPC_ADMIN_CHANGE:
	case IPC_DEVICE_MAKE:
		return admins_message(port, peer, f);
	case IPC_EXPORT_SIGN:
	case IPC_EXPORT_CHECK:
		return transfer_message(port, peer, f);
	case IPC_AUDIT_CHECK:
		return audit_message(port, peer, f);
	case IPC_APPROVE:
	case IPC_REJECT:
	case IPC_APPROVE_AUTO:
		return decide_message(port, peer, f);
	case IPC_POLICY_SET:
	case IPC_POLICY_GET:
	case IPC_SEAL_VERIFY:
		return policies_message(port, peer, f);
	case IPC_ACCESS_SET:
	case IPC_ACCESS_CHECK:
		return access_message(port, peer, f);
	case IPC_SECRET_SET:
		return secrets_message(port, peer, f);
	case IPC_CREDENTIAL_STORE:
		return credential_store_message(port, peer, f);
	case IPC_KEY_STATUS:
	case IPC_KEY_NEXT:
	case IPC_KEY_STEP:
	case IPC_KEY_END:
		return rotate_message(port, peer, f);
	default:
		return answers_message(port, peer, f);
	}
}

/* Wipes each frame after use. Passwords, secrets' values and tokens come in
 * frames, so no part of a frame may remain in freed memory. */
static int
on_message(struct ipc_peer *peer, struct ipc_frame *f, void *arg)
{
	int rc = dispatch(arg, peer, f);

	if (f->payload != NULL)
		explicit_bzero(f->payload, f->payload_len);
	if (f->blob != NULL)
		explicit_bzero(f->blob, f->blob_len);
	return rc;
}

static void
on_up(struct ipc_peer *peer, void *arg)
{
	struct port *port = arg;

	if (callers_add(port, peer) == -1)
		ipc_peer_close(peer);
	else if (port->role == IPC_ROLE_ADMIND)
		rotate_admind_up(port->v);
}

static void
on_down(struct ipc_peer *peer, void *arg)
{
	struct port *port = arg;

	callers_remove(port->v, peer);
}

static const struct ipc_handlers handlers = {on_up, on_message, on_down};

static void
listen_on(struct vault *v, struct port *port, const char *name,
    enum ipc_role role, uid_t uid)
{
	char path[128];
	struct err err;

	port->v = v;
	port->role = role;
	if (proc_socket_path(&v->proc, "admind-vault", name, path, sizeof(path),
		&err) == -1 ||
	    (port->server = ipc_server_new(v->proc.base, path, name,
		 IPC_ROLE_VAULT, role, &uid, 1, &handlers, port, &err)) == NULL)
		log_fatal("listen", "%s", err.text);
}

/*
 * System calls that the vault needs beyond the base list: those that make the
 * threads for password hashes, and those that a thread's start and end need.
 * seccomp is allowed because slots_start, after it made the threads, uses it to
 * forbid further threads.
 */
static const struct confine_rule rules[] = {
    {SYS_clone, -1, 0, 0},
    {SYS_clone3, -1, 0, 0},
    {SYS_rseq, -1, 0, 0},
    {SYS_set_robust_list, -1, 0, 0},
    {SYS_sched_getaffinity, -1, 0, 0},
    {SYS_seccomp, -1, 0, 0},
};

static void
confine(struct vault *v, bool locked)
{
	struct confine_spec spec = {.process = "admind-vault",
	    .rules = rules,
	    .nrules = sizeof(rules) / sizeof(rules[0]),
	    .landlock = true,
	    .landlock_signal_scope = true,
	    .seccomp = true};
	struct buf layers;
	struct err err;

	buf_init(&layers, 4096);
	if (confine_self(&spec, &layers, &err) == -1)
		log_fatal("confine", "%s", err.text);
	if (layers.len > 0 && layers.p[layers.len - 1] != '\n')
		buf_putc(&layers, '\n');
	buf_putf(&layers, "key_memory=%s\n", locked ? "enforced" : "degraded");
	buf_put_u8(&layers, 0);
	if (layers.failed || (v->layers = strdup((char *)layers.p)) == NULL)
		log_fatal("memory", "out of memory");
	buf_free(&layers);
	ipc_hello_set("mcpbox-admind-vault", v->layers);
}

/* Logs the layers in one line, with spaces between them. */
static void
log_ready(const char *layers)
{
	char *line = strdup(layers);

	if (line == NULL)
		log_fatal("memory", "out of memory");
	for (char *p = line; *p != '\0'; p++)
		if (*p == '\n')
			*p = ' ';
	log_event(LOG_LV_INFO, "ready", "%s", line);
	free(line);
}

/* Checks the settings of passkeys: both empty, or a name and origins. */
static int
check_passkeys(const struct conf *c, struct err *err)
{
	const char *origins = conf_str(c, "passkey_origins");
	bool named = conf_str(c, "passkey_rp_id")[0] != '\0';

	if (origins[0] == '\0' && !named)
		return 0;
	if (origins[0] == '\0' || !named)
		return err_set(err, FAILURE_INVALID_PARAMS,
		    "passkey_rp_id and passkey_origins need each other: set "
		    "both, or neither");
	if (clientdata_origins_ok(origins, conf_bool(c, "passkey_localhost")))
		return 0;
	return err_set(err, FAILURE_INVALID_PARAMS,
	    "passkey_origins is a list such as https://mcpbox.example; "
	    "http://localhost:8000 needs passkey_localhost yes, which is only "
	    "for a machine that no other person has an account on");
}

/*
 * The order matters. First the sockets are made and the key file is read, while
 * the file system can still be reached. Each OpenSSL primitive is used once
 * (the key derivation, an empty AEAD), so that OpenSSL loads nothing later.
 * Then the process confines itself. The threads come last and inherit the
 * confinement.
 */
int
main(int argc, char **argv)
{
	static struct vault v;
	struct proc *p = &v.proc;
	uint8_t warm_key[KEY_LEN] = {0}, nonce[GCM_NONCE_LEN] = {0};
	uint8_t tag[GCM_TAG_LEN];
	bool locked = false;
	struct err err;
	int status;

	proc_check_with(check_passkeys);
	proc_start(p, "admind-vault", argc, argv);
	if (check_passkeys(p->conf, &err) == -1)
		log_fatal("configuration", "%s", err.text);
	(void)prctl(PR_SET_DUMPABLE, 0); /* before the key is read */
	listen_on(&v, &v.admind, "admind", IPC_ROLE_ADMIND,
	    conf_user(p->conf, "admind_user"));
	listen_on(
	    &v, &v.web, "http", IPC_ROLE_WEB, conf_user(p->conf, "web_user"));
	listen_on(&v, &v.sandboxd, "sandboxd", IPC_ROLE_SANDBOXD,
	    conf_user(p->conf, "sandboxd_user"));
	listen_on(&v, &v.ctl, "ctl", IPC_ROLE_CTL, 0);

	v.keys = keys_load(
	    conf_str(p->conf, "key_file"), &locked, &v.key_credential, &err);
	if (v.keys == NULL)
		log_fatal("key", "%s", err.text);
	if (gcm_seal(warm_key, nonce, NULL, 0, NULL, 0, tag, &err) == -1)
		log_fatal("crypto", "%s", err.text);
	if (authkey_ready(&err) == -1)
		log_fatal("crypto", "%s", err.text);
	v.rp_id = conf_str(p->conf, "passkey_rp_id");
	v.origins = conf_str(p->conf, "passkey_origins");
	policy_default(&v.policy);
	v.contexts = contexts_new();
	if (v.contexts != NULL)
		contexts_access(v.contexts, &v.access);
	v.sessions = sessions_new((uint64_t)conf_int(p->conf, "login_ttl"),
	    (uint64_t)conf_int(p->conf, "login_idle"));
	v.throttle = throttle_new((unsigned)conf_int(p->conf, "login_burst"));
	v.verifiers = verifiers_new();
	v.passkey_times = verifiers_new();
	v.challenges = challenges_new();
	if (v.contexts == NULL || v.sessions == NULL || v.throttle == NULL ||
	    v.verifiers == NULL || v.passkey_times == NULL ||
	    v.challenges == NULL)
		log_fatal("memory", "out of memory");
	v.slots = slots_new(p->base,
	    (uint32_t)(conf_int(p->conf, "argon2_memory") / 1024),
	    (uint32_t)conf_int(p->conf, "argon2_passes"), &err);
	if (v.slots == NULL)
		log_fatal("argon2", "%s", err.text);

	if (rotate_init(&v) == -1)
		log_fatal("memory", "out of memory");
	confine(&v, locked);
	if (slots_start(v.slots, &err) == -1)
		log_fatal("threads", "%s", err.text);
	log_ready(v.layers);
	service_ready(p->base, "key read, serving");

	status = proc_run(p);
	slots_free(v.slots);
	ipc_server_free(v.admind.server);
	ipc_server_free(v.web.server);
	ipc_server_free(v.sandboxd.server);
	ipc_server_free(v.ctl.server);
	callers_free(&v);
	rotate_free(&v);
	sessions_free(v.sessions);
	throttle_free(v.throttle);
	verifiers_free(v.verifiers);
	verifiers_free(v.passkey_times);
	challenges_free(v.challenges);
	free(v.layers);
	return status;
}
