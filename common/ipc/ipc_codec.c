/*
 * The codec of the IPC table: walks a message's field list over its struct. It
 * uses no socket and allocates only the output buffer.
 *
 * Bytes come from another process of the suite, which may have been taken over.
 * An attacker gains nothing from a bad frame: every length is checked against
 * the rest of the payload, every string is UTF-8 without NUL, a blob is within
 * the message's own limit, and a trailing byte is an error.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ipc.h"

int
ipc_permit(unsigned type, enum ipc_role sender, enum ipc_role receiver,
    enum ipc_state state, struct err *e)
{
	const struct ipc_info *info = ipc_info(type);

	if (info == NULL)
		return err_set(e, FAILURE_INVALID_REQUEST,
		    "message %u does not exist", type);
	if ((info->senders & sender) == 0)
		return err_set(e, FAILURE_FORBIDDEN,
		    "%s may not come from this peer", info->name);
	if ((info->receivers & receiver) == 0)
		return err_set(e, FAILURE_FORBIDDEN,
		    "%s may not go to this process", info->name);
	if ((info->states & state) == 0)
		return err_set(e, FAILURE_FORBIDDEN,
		    "%s may not come in this state", info->name);
	return 0;
}

/* Appends one field. A blob that goes into a memfd adds only its length. */
static void
put_field(
    struct buf *out, const struct ipc_field *f, const void *p, bool blob_apart)
{
	const struct ipc_bytes *s = p;

	switch (f->type) {
	case IPC_F_u8:
		buf_put_u8(out, *(const uint8_t *)p);
		break;
	case IPC_F_u16:
		buf_put_u16(out, *(const uint16_t *)p);
		break;
	case IPC_F_u32:
		buf_put_u32(out, *(const uint32_t *)p);
		break;
	case IPC_F_u64:
		buf_put_u64(out, *(const uint64_t *)p);
		break;
	case IPC_F_id:
		buf_put(out, p, sizeof(struct ipc_id));
		break;
	case IPC_F_hash:
		buf_put(out, p, sizeof(struct ipc_hash));
		break;
	case IPC_F_str:
	case IPC_F_bytes:
	case IPC_F_blob:
		buf_put_u32(out, (uint32_t)s->n);
		if (f->type != IPC_F_blob || !blob_apart)
			buf_put(out, s->p, s->n);
		break;
	case IPC_F_fd:
		break;
	}
}

/* Returns the bytes that a message takes on the wire with its blob inline. */
static size_t
encoded_size(const struct ipc_info *info, const uint8_t *base)
{
	static const size_t fixed[] = {[IPC_F_u8] = 1,
	    [IPC_F_u16] = 2,
	    [IPC_F_u32] = 4,
	    [IPC_F_u64] = 8,
	    [IPC_F_id] = 16,
	    [IPC_F_hash] = 32,
	    [IPC_F_str] = 4,
	    [IPC_F_bytes] = 4,
	    [IPC_F_blob] = 4,
	    [IPC_F_fd] = 0};
	size_t n = IPC_HEADER_LEN;

	for (size_t i = 0; i < info->nfields; i++) {
		const struct ipc_field *f = &info->fields[i];

		n += fixed[f->type];
		if (f->type >= IPC_F_str && f->type <= IPC_F_blob)
			n += ((const struct ipc_bytes *)(const void *)(base +
				  f->offset))
				 ->n;
	}
	return n;
}

int
ipc_encode(enum ipc_type type, uint64_t request, const void *msg,
    struct buf *out, struct ipc_bytes *spill, int *fd, struct err *e)
{
	const struct ipc_info *info = ipc_info(type);
	const uint8_t *base = msg;
	bool apart;

	if (info == NULL)
		return err_set(
		    e, FAILURE_INTERNAL, "message %u does not exist", type);
	spill->p = NULL;
	spill->n = 0;
	*fd = -1;
	apart = encoded_size(info, base) > IPC_FRAME_MAX;

	buf_clear(out);
	buf_put_u16(out, (uint16_t)type);
	buf_put_u16(out, 0);
	buf_put_u32(out, 0);
	buf_put_u64(out, request);
	for (size_t i = 0; i < info->nfields; i++) {
		const struct ipc_field *f = &info->fields[i];
		const void *p = base + f->offset;
		const struct ipc_bytes *s = p;

		if (f->type == IPC_F_blob && s->n > info->max_blob)
			return err_set(e, FAILURE_TOO_LARGE,
			    "%s: %s of %zu bytes exceeds %zu", info->name,
			    f->name, s->n, info->max_blob);
		if (f->type == IPC_F_fd)
			*fd = *(const int *)p;
		if (f->type == IPC_F_blob && apart) {
			spill->p = s->p;
			spill->n = s->n;
		}
		put_field(out, f, p, apart);
	}
	if (out->failed || out->len > IPC_FRAME_MAX)
		return err_set(e, FAILURE_TOO_LARGE,
		    "%s does not fit a frame of %d bytes", info->name,
		    IPC_FRAME_MAX);
	if (info->nfds == 1 && *fd < 0)
		return err_set(
		    e, FAILURE_INTERNAL, "%s needs a descriptor", info->name);
	/* Flags and length are known now: write them into the header. */
	if (spill->p != NULL)
		out->p[3] = IPC_FLAG_MEMFD;
	for (int i = 0; i < 4; i++)
		out->p[4 + i] =
		    (uint8_t)((out->len - IPC_HEADER_LEN) >> (24 - 8 * i));
	return 0;
}

int
ipc_decode_header(
    const uint8_t *p, size_t n, struct ipc_frame *f, struct err *e)
{
	const struct ipc_info *info;
	uint16_t flags;

	if (n < IPC_HEADER_LEN || n > IPC_FRAME_MAX)
		return err_set(
		    e, FAILURE_INVALID_REQUEST, "frame of %zu bytes", n);
	info = ipc_info(get_be16(p));
	if (info == NULL)
		return err_set(e, FAILURE_INVALID_REQUEST,
		    "message %u does not exist", get_be16(p));
	flags = get_be16(p + 2);
	if ((flags & ~IPC_FLAG_MEMFD) != 0 ||
	    (flags != 0 && info->max_blob == 0))
		return err_set(e, FAILURE_INVALID_REQUEST, "%s with flags %u",
		    info->name, flags);
	if (get_be32(p + 4) != n - IPC_HEADER_LEN)
		return err_set(e, FAILURE_INVALID_REQUEST,
		    "%s says %u payload bytes and has %zu", info->name,
		    get_be32(p + 4), n - IPC_HEADER_LEN);
	memset(f, 0, sizeof(*f));
	f->type = (enum ipc_type)get_be16(p);
	f->flags = flags;
	f->request = get_be64(p + 8);
	f->fd = -1;
	return 0;
}

/* Takes one field off the payload. The cursor never passes `end`. */
static int
get_field(const struct ipc_info *info, const struct ipc_field *field,
    struct ipc_frame *f, const uint8_t **cursor, const uint8_t *end,
    uint8_t *base, struct err *e)
{
	const uint8_t *p = *cursor;
	size_t left = (size_t)(end - p), n;
	void *dst = base + field->offset;
	struct ipc_bytes *s = dst;

	switch (field->type) {
	case IPC_F_u8:
		if (left < 1)
			goto truncated;
		*(uint8_t *)dst = p[0];
		p += 1;
		break;
	case IPC_F_u16:
		if (left < 2)
			goto truncated;
		*(uint16_t *)dst = get_be16(p);
		p += 2;
		break;
	case IPC_F_u32:
		if (left < 4)
			goto truncated;
		*(uint32_t *)dst = get_be32(p);
		p += 4;
		break;
	case IPC_F_u64:
		if (left < 8)
			goto truncated;
		*(uint64_t *)dst = get_be64(p);
		p += 8;
		break;
	case IPC_F_id:
	case IPC_F_hash:
		n = field->type == IPC_F_id ? sizeof(struct ipc_id)
					    : sizeof(struct ipc_hash);
		if (left < n)
			goto truncated;
		memcpy(dst, p, n);
		p += n;
		break;
	case IPC_F_str:
	case IPC_F_bytes:
	case IPC_F_blob:
		if (left < 4)
			goto truncated;
		n = get_be32(p);
		p += 4;
		left -= 4;
		if (field->type == IPC_F_blob && n > info->max_blob)
			return err_set(e, FAILURE_TOO_LARGE,
			    "%s: %s of %zu bytes exceeds %zu", info->name,
			    field->name, n, info->max_blob);
		if (field->type == IPC_F_blob &&
		    (f->flags & IPC_FLAG_MEMFD) != 0) {
			if (n != f->blob_len)
				return err_set(e, FAILURE_INVALID_REQUEST,
				    "%s: memfd of %zu bytes, %zu announced",
				    info->name, f->blob_len, n);
			s->p = f->blob;
			s->n = n;
			break;
		}
		if (left < n)
			goto truncated;
		if (field->type == IPC_F_str &&
		    (memchr(p, 0, n) != NULL || !utf8_valid(p, n)))
			return err_set(e, FAILURE_INVALID_REQUEST,
			    "%s: %s is not UTF-8 text", info->name,
			    field->name);
		s->p = p;
		s->n = n;
		p += n;
		break;
	case IPC_F_fd:
		*(int *)dst = f->fd;
		break;
	}
	*cursor = p;
	return 0;

truncated:
	return err_set(e, FAILURE_INVALID_REQUEST, "%s ends inside %s",
	    info->name, field->name);
}

int
ipc_decode(struct ipc_frame *f, void *msg, struct err *e)
{
	const struct ipc_info *info = ipc_info(f->type);
	const uint8_t *p = f->payload, *end = p + f->payload_len;
	uint8_t *base = msg;

	if (info == NULL)
		return err_set(e, FAILURE_INVALID_REQUEST,
		    "message %u does not exist", f->type);
	memset(msg, 0, info->size);
	memcpy(base, &f->request, sizeof(f->request));
	for (size_t i = 0; i < info->nfields; i++)
		if (get_field(info, &info->fields[i], f, &p, end, base, e) ==
		    -1)
			return -1;
	if (p != end)
		return err_set(e, FAILURE_INVALID_REQUEST,
		    "%s has %zu bytes too many", info->name, (size_t)(end - p));
	if (info->nfds == 1) {
		if (f->fd < 0)
			return err_set(e, FAILURE_INVALID_REQUEST,
			    "%s without its descriptor", info->name);
		f->fd = -1; /* msg owns it now */
	}
	return 0;
}

void
ipc_frame_free(struct ipc_frame *f)
{
	/* Frames carry secrets and contexts: wipe their memory before it is
	 * freed. */
	if (f->payload != NULL) {
		explicit_bzero(f->payload, f->payload_len);
		free(f->payload);
	}
	if (f->blob != NULL) {
		explicit_bzero(f->blob, f->blob_len);
		free(f->blob);
	}
	if (f->fd >= 0)
		close(f->fd);
	memset(f, 0, sizeof(*f));
	f->fd = -1;
}
