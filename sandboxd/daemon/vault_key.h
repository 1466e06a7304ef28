/*
 * sandboxd's connection to the vault. sandboxd asks for this epoch's context
 * key, which opens held contexts (held.h), each time the vault comes up. The
 * vault only answers; a message that it sends unasked closes the connection.
 */
#ifndef VAULT_KEY_H
#define VAULT_KEY_H

#include "held.h"
#include "proc.h"

enum {
	VAULT_KEY_ANSWER_MS = 5000, /* a vault that just started derives keys */
	VAULT_KEY_RETRY_MS = 500 /* between two questions of one connection */
};

struct event;
struct ipc_client;

struct vault_key {
	struct held_set *held; /* borrowed; gets the key */
	struct ipc_client *vault;
	struct event *retry;
};

/* Connects, and goes on trying, in the process's loop. 0, or -1 with the error:
 * a path that is too long, or no memory. */
int vault_key_connect(
    struct vault_key *, const struct proc *, struct held_set *, struct err *);

#endif
