/* The rows of ipc_table.h as data. Needs nothing but the table. */
#include <stdio.h>

#include "ipc.h"

/* The table's short words, as the enumerators they stand for. */
#define GATEWAY  IPC_ROLE_GATEWAY
#define ADMIND   IPC_ROLE_ADMIND
#define WEB      IPC_ROLE_WEB
#define CTL      IPC_ROLE_CTL
#define CHECK    IPC_ROLE_CHECK
#define VAULT    IPC_ROLE_VAULT
#define SANDBOXD IPC_ROLE_SANDBOXD
#define SPAWN    IPC_ROLE_SPAWN
#define POOL     IPC_ROLE_POOL
#define ZYGOTE   IPC_ROLE_ZYGOTE
#define RUNNER   IPC_ROLE_RUNNER
#define EGRESS   IPC_ROLE_EGRESS
#define PEEK     IPC_ROLE_PEEK
#define STORE    IPC_ROLE_STORE
#define ANY      IPC_ROLE_ANY
#define NEW      IPC_STATE_NEW
#define OPEN     IPC_STATE_OPEN
#define WAITING  IPC_STATE_WAITING
#define RUNNING  IPC_STATE_RUNNING

/* One list of fields for each message. A row without a name ends the list. */
#define F(S, type, name, doc) \
	{IPC_F_##type, #name, offsetof(struct S, name), doc},
#define M(number, UPPER, lower, kind, s, r, state, blob, doc) \
	static const struct ipc_field fields_##lower[] = {    \
	    IPC_FIELDS_##lower(F, ipc_##lower){0, NULL, 0, NULL}};
IPC_MESSAGES(M)
#undef M
#undef F

/* A message has at most one descriptor, so the number of its fd fields is 0 or
 * 1. */
#define F(S, type, name, doc) +(IPC_F_##type == IPC_F_fd)
#define M(number, UPPER, lower, kind_, s, r, state, blob, doc_)               \
	{IPC_##UPPER, #UPPER, IPC_KIND_##kind_, s, r, state, blob,            \
	    fields_##lower,                                                   \
	    sizeof(fields_##lower) / sizeof(fields_##lower[0]) - 1,           \
	    0 IPC_FIELDS_##lower(F, ipc_##lower), sizeof(struct ipc_##lower), \
	    doc_},
static const struct ipc_info rows[] = {IPC_MESSAGES(M)};
#undef M
#undef F

const struct ipc_info *
ipc_table(size_t *n)
{
	*n = sizeof(rows) / sizeof(rows[0]);
	return rows;
}

const struct ipc_info *
ipc_info(unsigned type)
{
#define M(number, UPPER, lower, kind, s, r, state, blob, doc) \
	_Static_assert(number <= IPC_TYPE_MAX, "room for " #UPPER " below");
	IPC_MESSAGES(M)
#undef M
	static const struct ipc_info *by_number[IPC_TYPE_MAX + 1];
	static bool ready;

	if (!ready) {
		for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
			by_number[rows[i].type] = &rows[i];
		ready = true;
	}
	return type <= IPC_TYPE_MAX ? by_number[type] : NULL;
}

const char *
ipc_name(unsigned type)
{
	static char text[32];
	const struct ipc_info *info = ipc_info(type);

	if (info != NULL)
		return info->name;
	snprintf(text, sizeof(text), "message %u", type);
	return text;
}
