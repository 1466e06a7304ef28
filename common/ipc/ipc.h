/*
 * IPC messages as C types, and their codec: bytes in, structs out, no I/O.
 * Everything here is derived from ipc_table.h.
 *
 * A frame is a 16-byte header {u16 type, u16 flags, u32 payload length, u64
 * request id} and the payload, all big endian, sent as one SOCK_SEQPACKET
 * packet. Strings, bytes and blobs of a decoded message point into the frame
 * and live until the frame is freed.
 */
#ifndef IPC_H
#define IPC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bounds.h"
#include "buf.h"
#include "bytes.h"
#include "err.h"
#include "ipc_info.h"
#include "ipc_table.h"
#include "ipc_values.h"
#include "utf8.h"

#define IPC_CTYPE_u8    uint8_t
#define IPC_CTYPE_u16   uint16_t
#define IPC_CTYPE_u32   uint32_t
#define IPC_CTYPE_u64   uint64_t
#define IPC_CTYPE_id    struct ipc_id
#define IPC_CTYPE_hash  struct ipc_hash
#define IPC_CTYPE_str   struct ipc_bytes
#define IPC_CTYPE_bytes struct ipc_bytes
#define IPC_CTYPE_blob  struct ipc_bytes
#define IPC_CTYPE_fd    int

/* One struct for each message: struct ipc_run { uint64_t request; struct ipc_id
 * execution; ... } and so on. `request` is the header's request id: the codec
 * sets it when decoding, the transport when sending. An fd field is -1 if there
 * is no descriptor. The receiver owns a decoded descriptor; the sender keeps a
 * sent one. */
#define F(S, type, name, doc) IPC_CTYPE_##type name;
#define M(number, UPPER, lower, kind, s, r, state, blob, doc) \
	struct ipc_##lower {                                  \
		uint64_t request;                             \
		IPC_FIELDS_##lower(F, ipc_##lower)            \
	};
IPC_MESSAGES(M)
#undef M
#undef F

enum { IPC_HEADER_LEN = 16 };
enum {
	IPC_FLAG_MEMFD = 1
}; /* the blob is in the sealed memfd of the same packet */

/* A frame as it arrived. The transport fills it, ipc_decode reads it. */
struct ipc_frame {
	enum ipc_type type;
	uint16_t flags;
	uint64_t request;
	uint8_t *payload; /* owned */
	size_t payload_len;
	uint8_t *blob; /* owned copy of the memfd's bytes, or NULL */
	size_t blob_len;
	int fd; /* passed descriptor or -1; ipc_decode moves it */
};

/*
 * Checks whether `type` may pass from a peer of role `sender` to one of role
 * `receiver` in this connection state. 0, or -1 with err, which names the
 * broken rule.
 */
int ipc_permit(unsigned type, enum ipc_role sender, enum ipc_role receiver,
    enum ipc_state, struct err *);

/*
 * Encodes header and payload of msg (a struct ipc_<lower>) into out, which is
 * cleared first. If the frame would exceed IPC_FRAME_MAX and the message has a
 * blob, *spill is set to that blob, which must travel in a memfd; otherwise
 * spill->p is NULL. *fd is the descriptor to pass, or -1. 0, or -1 when a limit
 * is exceeded or memory is out.
 */
int ipc_encode(enum ipc_type, uint64_t request, const void *msg,
    struct buf *out, struct ipc_bytes *spill, int *fd, struct err *);

/*
 * Parses the 16 header bytes into f. Returns 0, or -1 if the type or a flag is
 * unknown, or if the length is not the packet's.
 */
int ipc_decode_header(
    const uint8_t *packet, size_t n, struct ipc_frame *f, struct err *);

/*
 * Decodes f into msg, a struct of the right type for f->type. Every field must
 * be present, strings must be UTF-8 without NUL, a blob must be within its
 * limit, and no byte may be left over. A descriptor moves from f to msg. 0 or
 * -1.
 */
int ipc_decode(struct ipc_frame *f, void *msg, struct err *);

/* Frees the frame's memory and closes an untaken descriptor. */
void ipc_frame_free(struct ipc_frame *);

#endif
