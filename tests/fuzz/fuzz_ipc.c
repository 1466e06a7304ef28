/*
 * IPC frames: header and payload of any message from arbitrary bytes. What
 * decodes must encode to the very same bytes, so no two frames mean one
 * message and nothing of a frame is ignored.
 */
#include <stdlib.h>
#include <string.h>

#include "ipc.h"

int LLVMFuzzerTestOneInput(const uint8_t *, size_t);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	uint64_t msg[64]; /* room and alignment for any message struct */
	struct ipc_frame f;
	struct ipc_bytes spill;
	struct buf out;
	int fd;

	if (ipc_decode_header(data, n, &f, NULL) == -1)
		return 0;
	if (ipc_info(f.type)->size > sizeof(msg))
		abort();
	f.payload_len = n - IPC_HEADER_LEN;
	if ((f.payload = malloc(f.payload_len + (f.payload_len == 0))) == NULL)
		return 0;
	memcpy(f.payload, data + IPC_HEADER_LEN, f.payload_len);
	/* A frame that says memfd gets one whose bytes are the frame's own. */
	if ((f.flags & IPC_FLAG_MEMFD) != 0 && (f.blob = malloc(n)) != NULL) {
		memcpy(f.blob, data, n);
		f.blob_len = n;
	}
	/* The number stands for a descriptor and is never used as one. */
	f.fd = ipc_info(f.type)->nfds > 0 ? 1000 : -1;
	if (ipc_decode(&f, msg, NULL) == 0 && f.flags == 0) {
		buf_init(&out, IPC_FRAME_MAX);
		if (ipc_encode(f.type, f.request, msg, &out, &spill, &fd,
			NULL) == -1 ||
		    spill.p != NULL || out.len != n ||
		    memcmp(out.p, data, n) != 0)
			abort();
		buf_free(&out);
	}
	f.fd = -1;
	ipc_frame_free(&f);
	return 0;
}
