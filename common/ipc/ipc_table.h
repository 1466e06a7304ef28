/*
 * The table of all messages between the suite's processes.
 *
 * M(number, UPPER, lower, kind, senders, receivers, state, max_blob, doc)
 *   kind      REQ: wants an answer with the same request id; ANS: the final
 *             answer; PART: an answer, with more to follow; EVT: sent unasked
 *   senders   roles that may send it, receivers: roles that may get it; the
 *             role of a peer follows from the socket that it uses, never from
 *             a field
 *   state     of the connection: NEW (nothing but HELLO), OPEN (after HELLO);
 *             on a runner's channel WAITING (before READY), RUNNING (after it)
 *   max_blob  bytes that its one blob field may hold (0: no such field)
 * F(S, type, name, doc) lists the fields in wire order (S is the struct's tag):
 *   u8 u16 u32 u64 (big endian), id (16 bytes), hash (32 bytes), str (UTF-8
 *   without NUL, u32 length), bytes (u32 length), blob (like bytes, or a
 *   sealed memfd when the frame would grow past IPC_FRAME_MAX; at most one per
 *   message), fd (a descriptor; nothing in the payload)
 *
 * The rows and fields are in messages/, one file for each pair of processes or
 * each subject. IPC_MESSAGES below has all rows, in the order of the hash. The
 * enum, the structs, the codec, the permission check, the limits and
 * docs/PROTOCOL.md come from this table. Its SHA-256 is in every HELLO.
 */
#ifndef IPC_TABLE_H
#define IPC_TABLE_H

#include "messages/any.h"
#include "messages/gateway.h"
#include "messages/task.h"
#include "messages/run.h"
#include "messages/held.h"
#include "messages/vault.h"
#include "messages/login.h"
#include "messages/query.h"
#include "messages/check.h"
#include "messages/pool.h"
#include "messages/runner.h"
#include "messages/policy.h"
#include "messages/admins.h"
#include "messages/activity.h"
#include "messages/tokens.h"
#include "messages/keys.h"
#include "messages/actions.h"
#include "messages/net.h"
#include "messages/source.h"
#include "messages/access.h"
#include "messages/passkeys.h"
#include "messages/script_keys.h"
#include "messages/signin.h"
#include "messages/telemetry.h"
#include "messages/endpoints.h"

#define IPC_MESSAGES(M)             \
	IPC_MESSAGES_ANY(M)         \
	IPC_MESSAGES_GATEWAY(M)     \
	IPC_MESSAGES_TASK(M)        \
	IPC_MESSAGES_RUN(M)         \
	IPC_MESSAGES_HELD(M)        \
	IPC_MESSAGES_VAULT(M)       \
	IPC_MESSAGES_LOGIN(M)       \
	IPC_MESSAGES_QUERY(M)       \
	IPC_MESSAGES_CHECK(M)       \
	IPC_MESSAGES_POOL(M)        \
	IPC_MESSAGES_RUNNER(M)      \
	IPC_MESSAGES_POLICY(M)      \
	IPC_MESSAGES_ADMINS(M)      \
	IPC_MESSAGES_ACTIVITY(M)    \
	IPC_MESSAGES_TOKENS(M)      \
	IPC_MESSAGES_KEYS(M)        \
	IPC_MESSAGES_ACTIONS(M)     \
	IPC_MESSAGES_NET(M)         \
	IPC_MESSAGES_SOURCE(M)      \
	IPC_MESSAGES_ACCESS(M)      \
	IPC_MESSAGES_PASSKEYS(M)    \
	IPC_MESSAGES_SCRIPT_KEYS(M) \
	IPC_MESSAGES_SIGNIN(M)      \
	IPC_MESSAGES_TELEMETRY(M)   \
	IPC_MESSAGES_ENDPOINTS(M)

#endif
