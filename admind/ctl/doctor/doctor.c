#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <json-c/json.h>

#include "calls.h"
#include "doctor.h"
#include "json.h"
#include "tables.h"

/* Tells whether the list has a row with the process and layer of `row`. */
static bool
known(struct json_object *all, struct json_object *row)
{
	static const char *const keys[] = {"process", "layer"};
	struct json_object *a, *b;
	size_t same;

	for (size_t i = 0; i < json_object_array_length(all); i++) {
		same = 0;
		for (size_t k = 0; k < 2; k++)
			if (json_object_object_get_ex(
				json_object_array_get_idx(all, i), keys[k],
				&a) &&
			    json_object_object_get_ex(row, keys[k], &b) &&
			    json_object_equal(a, b))
				same++;
		if (same == 2)
			return true;
	}
	return false;
}

/*
 * Asks a daemon which layers hold. The daemon also answers for other processes.
 * A process whose mandatory layer is missing does not start. So a layer that a
 * report calls missing is optional, and does not change doctor's exit status. A
 * daemon that can't be reached makes doctor fail.
 */
static enum ctl_status
ask(const struct ctl *c, const char *process, enum ipc_role role,
    struct json_object *all)
{
	struct json_object *o = NULL;
	struct ipc_doctor_report r;
	enum ctl_status status;
	struct ipc_doctor m;
	struct ipc_frame f;
	struct err err;

	memset(&m, 0, sizeof(m));
	status =
	    calls_ask(c, process, role, IPC_DOCTOR, &m, IPC_DOCTOR_REPORT, &f);
	if (status != CTL_DONE) {
		o = json_object_new_object();
		json_object_object_add(
		    o, "process", json_object_new_string(process));
		json_object_object_add(
		    o, "layer", json_object_new_string("process"));
		json_object_object_add(
		    o, "state", json_object_new_string("missing"));
		json_object_object_add(
		    o, "detail", json_object_new_string("gives no answer"));
		json_object_object_add(o, "fix",
		    json_object_new_string(
			"Read its log: a missing mandatory layer keeps it "
			"from starting."));
		json_object_array_add(all, o);
		return status;
	}
	if (ipc_decode(&f, &r, &err) == -1 ||
	    json_parse(r.json.p, r.json.n, &o, &err) == -1 ||
	    !json_object_is_type(o, json_type_array)) {
		fprintf(stderr, "mcpboxctl: %s: its report makes no sense\n",
		    process);
		status = CTL_REFUSED;
	} else {
		for (size_t i = 0; i < json_object_array_length(o); i++) {
			struct json_object *row =
			    json_object_array_get_idx(o, i);

			if (json_object_is_type(row, json_type_object) &&
			    !known(all, row))
				json_object_array_add(
				    all, json_object_get(row));
		}
	}
	json_object_put(o);
	ipc_frame_free(&f);
	return status;
}

enum ctl_status
doctor_command(const struct ctl *c)
{
	static const struct {
		const char *process;
		enum ipc_role role;
	} ask_of[] = {{"admind-vault", IPC_ROLE_VAULT},
	    {"sandboxd", IPC_ROLE_SANDBOXD}, {"admind", IPC_ROLE_ADMIND}};
	struct json_object *all = json_object_new_array();
	struct doctor d = {.c = c, .rows = all};
	enum ctl_status worst = CTL_DONE, status;
	const char *s;

	/* Daemons that answer for themselves come first. admind, the last,
	 * passes on reports of other processes, and a row that is known already
	 * is not printed twice. */
	for (size_t i = 0; i < sizeof(ask_of) / sizeof(ask_of[0]); i++) {
		status = ask(c, ask_of[i].process, ask_of[i].role, all);
		if (status > worst)
			worst = status;
	}
	/* Another run directory is that of another instance, and has nothing to
	 * do with this machine's installation. Only root may read the files
	 * that these checks need. */
	if (strcmp(c->run_dir, CTL_RUN_DIR) == 0 && geteuid() == 0) {
		doctor_units(&d);
		doctor_data(&d);
		doctor_machine(&d);
		if (d.missing && worst == CTL_DONE)
			worst = CTL_REFUSED;
	}
	if (c->json) {
		s = json_object_to_json_string_ext(all, JSON_C_TO_STRING_PLAIN);
		status = tables_json((const uint8_t *)s, strlen(s));
		if (status > worst)
			worst = status;
	} else {
		tables_print("doctor", all);
	}
	json_object_put(all);
	return worst;
}
