/* Messages that change administrators. */
#ifndef ADMINS_H
#define ADMINS_H

#include "vault.h"

/* Handles PASSWORD, SETUP, ADMIN_CHANGE and DEVICE_MAKE. -1 closes the peer. */
int admins_message(struct port *, struct ipc_peer *, struct ipc_frame *);

#endif
