/*
 * Prints the IPC table as canonical text (which HELLO's hash covers), or with
 * -m as the Markdown tables of docs/PROTOCOL.md.
 */
#include <stdio.h>
#include <string.h>

#include "ipc.h"

static const char *const type_names[] = {
    "u8", "u16", "u32", "u64", "id", "hash", "str", "bytes", "blob", "fd"};
static const char *const kind_names[] = {"request", "answer", "part", "event"};
static const char *const role_names[] = {"gatewayd", "admind", "admind-http",
    "mcpboxctl", "admind-check", "admind-vault", "sandboxd", "sandboxd-spawn",
    "pool-init", "zygote", "runner", "sandboxd-egress", "peek",
    "sandboxd-store"};
enum { ROLES = sizeof(role_names) / sizeof(role_names[0]) };
static const char *const state_names[] = {"NEW", "OPEN", "WAITING", "RUNNING"};

static void
print_mask(unsigned mask, const char *const *names, unsigned n)
{
	const char *sep = "";

	if (n > 4 && mask == IPC_ROLE_ANY) {
		printf("any");
		return;
	}
	for (unsigned i = 0; i < n; i++)
		if (mask & (1U << i)) {
			printf("%s%s", sep, names[i]);
			sep = ", ";
		}
}

int
main(int argc, char **argv)
{
	bool markdown = argc > 1 && strcmp(argv[1], "-m") == 0;
	const struct ipc_info *t;
	size_t n;

	t = ipc_table(&n);
	for (size_t i = 0; i < n; i++) {
		if (markdown)
			printf("### %d %s\n\n%s. %s; from ", (int)t[i].type,
			    t[i].name, t[i].doc, kind_names[t[i].kind]);
		else
			printf("message %d %s %s from ", (int)t[i].type,
			    t[i].name, kind_names[t[i].kind]);
		print_mask(t[i].senders, role_names, ROLES);
		printf(" to ");
		print_mask(t[i].receivers, role_names, ROLES);
		printf(markdown ? "; state " : " state ");
		print_mask(t[i].states, state_names, 4);
		if (markdown && t[i].max_blob != 0)
			printf("; blob at most %zu bytes", t[i].max_blob);
		if (!markdown)
			printf(" blob %zu", t[i].max_blob);
		printf(markdown ? ".\n\n" : "\n");
		if (markdown && t[i].nfields > 0)
			printf("| field | type | meaning |\n|---|---|---|\n");
		for (size_t j = 0; j < t[i].nfields; j++) {
			const struct ipc_field *f = &t[i].fields[j];

			if (markdown)
				printf("| %s | %s | %s |\n", f->name,
				    type_names[f->type], f->doc);
			else
				printf(
				    "\t%s %s\n", type_names[f->type], f->name);
		}
		if (markdown && t[i].nfields > 0)
			printf("\n");
	}
	return 0;
}
