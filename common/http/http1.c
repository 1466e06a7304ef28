/*
 * The state machine of http1.h: bytes in, events out, no I/O.
 *
 *	HEAD -> BODY (Content-Length) ------------------> DONE
 *	     -> SIZE -> SIZE_LF -> DATA -> DATA_CR -> DATA_LF -> SIZE ...
 *	        last chunk: SIZE_LF -> LAST_CR -> LAST_LF -> DONE
 *
 * Every byte is judged when it arrives and never again, so a request gives
 * the same events however it is cut into pieces (a test cuts it in all ways).
 * Memory is bounded by the head_max and body_max of http1_new.
 */
#include <stdlib.h>
#include <string.h>

#include "http1_head.h"
#include "ids.h"

enum {
	CHUNK_DIGITS_MAX = 6, /* 16 MiB is more than any body we take */
	BODY_KEEP = 64 * 1024 /* a larger body buffer is freed by http1_reset */
};

enum state {
	S_HEAD,
	S_BODY,
	S_SIZE,
	S_SIZE_LF,
	S_DATA,
	S_DATA_CR,
	S_DATA_LF,
	S_LAST_CR,
	S_LAST_LF,
	S_DONE,
	S_ERROR
};

struct http1 {
	enum state state;
	struct buf head; /* the head; strings of req point into it */
	struct buf body;
	size_t body_max;
	size_t large_max; /* longest Content-Length; >= body_max */
	size_t line;      /* bytes of the request line so far */
	bool in_line;     /* the end of the request line was not yet seen */
	size_t left;      /* bytes still to come of the body or chunk */
	unsigned digits;  /* digits of this chunk's size so far */
	struct http1_request req;
	int status; /* set in S_ERROR */
	const char *why;
};

struct http1 *
http1_new(size_t head_max, size_t body_max)
{
	struct http1 *h;

	h = calloc(1, sizeof(*h));
	if (h == NULL)
		return NULL;
	buf_init(&h->head, head_max);
	buf_init(&h->body, body_max);
	h->body_max = h->large_max = body_max;
	h->in_line = true;
	return h;
}

void
http1_free(struct http1 *h)
{
	if (h == NULL)
		return;
	buf_free(&h->head);
	buf_free(&h->body);
	free(h);
}

void
http1_set_large(struct http1 *h, size_t max)
{
	h->large_max = max;
}

bool
http1_is_large(const struct http1 *h)
{
	return h->state == S_BODY && h->left > h->body_max;
}

void
http1_take_large(struct http1 *h)
{
	h->body.max = h->large_max;
}

void
http1_reset(struct http1 *h)
{
	buf_clear(&h->head);
	if (h->body.cap > BODY_KEEP) {
		buf_free(&h->body);
		buf_init(&h->body, h->body_max);
	} else {
		buf_clear(&h->body);
		h->body.max = h->body_max;
	}
	http1_head_clear(&h->req);
	h->state = S_HEAD;
	h->in_line = true;
	h->line = h->left = 0;
	h->digits = 0;
	h->status = 0;
	h->why = NULL;
}

const struct http1_request *
http1_request(const struct http1 *h)
{
	return &h->req;
}

size_t
http1_held(const struct http1 *h)
{
	return h->body.len;
}

int
http1_error(const struct http1 *h, const char **why)
{
	if (why != NULL)
		*why = h->why != NULL ? h->why : "";
	return h->status;
}

static enum http1_event
refuse(struct http1 *h, int status, const char *why)
{
	h->state = S_ERROR;
	h->status = status;
	h->why = why;
	return HTTP1_ERROR;
}

static enum http1_event
done(struct http1 *h)
{
	static const uint8_t nothing[1];

	h->state = S_DONE;
	h->req.body = h->body.len > 0 ? h->body.p : nothing;
	h->req.body_len = h->body.len;
	return HTTP1_DONE;
}

/* Appends n bytes to the body; the length was checked before. 0, or -1 without
 * memory. */
static int
take(struct http1 *h, const uint8_t *p, size_t n)
{
	buf_put(&h->body, p, n);
	return h->body.failed ? -1 : 0;
}

/* Parses the whole head. Chooses the next state by the framing of the body. */
static enum http1_event
head_done(struct http1 *h)
{
	struct http1_framing f;
	const char *why = "";
	int status;

	status = http1_head_parse(
	    (char *)h->head.p, h->head.len, h->large_max, &h->req, &f, &why);
	if (status != 0) {
		http1_head_clear(&h->req);
		return refuse(h, status, why);
	}
	if (f.chunked) {
		h->state = S_SIZE;
	} else {
		h->state = S_BODY;
		h->left = f.length;
	}
	return HTTP1_HEAD_DONE;
}

/*
 * Takes one byte of the head. Refuses CR without LF, LF without CR, DEL, bytes
 * above ASCII and all other controls but tab, before anything is parsed.
 */
static enum http1_event
head_byte(struct http1 *h, uint8_t c)
{
	const uint8_t *p;
	size_t n;

	if (h->head.len > 0 && h->head.p[h->head.len - 1] == '\r') {
		if (c != '\n')
			return refuse(h, 400, "CR without LF");
	} else if (c == '\n') {
		return refuse(h, 400, "LF without CR");
	} else if (c != '\r' && c != '\t' && (c < 0x20 || c > 0x7e)) {
		return refuse(h, 400, "bad character in head");
	}
	if (h->in_line && c == '\n')
		h->in_line = false;
	if (h->in_line && ++h->line > HTTP1_LINE_MAX)
		return refuse(h, 414, "request line is too long");
	if (h->head.len >= h->head.max)
		return refuse(h, 431, "head is too large");
	buf_put_u8(&h->head, c);
	if (h->head.failed)
		return refuse(h, 503, "out of memory");
	if (c != '\n')
		return HTTP1_MORE;
	p = h->head.p;
	n = h->head.len;
	if (n == 2) /* a server may skip this line (RFC 9112); we refuse it */
		return refuse(h, 400, "empty request line");
	if (n >= 4 && p[n - 4] == '\r' && p[n - 3] == '\n')
		return head_done(h);
	return HTTP1_MORE;
}

/* Bytes that head_byte accepts in any place: printable ASCII and tab. */
static const bool ordinary[256] = {['\t'] = true, [0x20 ... 0x7e] = true};

/*
 * Takes a run of ordinary bytes of the head, as head_byte would take them one
 * by one, within the limits of the line and of the head. Takes none after a CR.
 * Returns the number of bytes taken. 0: head_byte must judge the next byte. -1:
 * out of memory.
 */
static long
head_run(struct http1 *h, const uint8_t *p, size_t n)
{
	size_t k, room = h->head.max - h->head.len;

	if (h->head.len > 0 && h->head.p[h->head.len - 1] == '\r')
		return 0;
	if (h->in_line && room > HTTP1_LINE_MAX - h->line)
		room = HTTP1_LINE_MAX - h->line;
	if (room > n)
		room = n;
	for (k = 0; k < room && ordinary[p[k]]; k++)
		;
	buf_put(&h->head, p, k);
	if (h->head.failed)
		return -1;
	if (h->in_line)
		h->line += k;
	return (long)k;
}

/* Takes one byte of chunked framing (RFC 9112 section 7.1), no extensions. */
static enum http1_event
chunk_byte(struct http1 *h, uint8_t c)
{
	int v;

	switch (h->state) {
	case S_SIZE:
		v = hex_digit(c);
		if (v >= 0) {
			if (h->digits == CHUNK_DIGITS_MAX)
				return refuse(h, 400, "chunk size is too long");
			h->digits++;
			h->left = h->left * 16 + (size_t)v;
			return HTTP1_MORE;
		}
		if (c != '\r' || h->digits == 0)
			return refuse(h, 400, "malformed chunk size");
		h->state = S_SIZE_LF;
		return HTTP1_MORE;
	case S_SIZE_LF:
		if (c != '\n')
			return refuse(h, 400, "malformed chunk size");
		if (h->left > h->body_max - h->body.len)
			return refuse(h, 413, "body is too large");
		h->digits = 0;
		h->state = h->left > 0 ? S_DATA : S_LAST_CR;
		return HTTP1_MORE;
	case S_DATA_CR:
		if (c != '\r')
			return refuse(h, 400, "chunk is longer than its size");
		h->state = S_DATA_LF;
		return HTTP1_MORE;
	case S_DATA_LF:
		if (c != '\n')
			return refuse(h, 400, "chunk is longer than its size");
		h->state = S_SIZE;
		return HTTP1_MORE;
	case S_LAST_CR:
		if (c != '\r')
			return refuse(h, 400, "trailers are not taken");
		h->state = S_LAST_LF;
		return HTTP1_MORE;
	default: /* S_LAST_LF */
		if (c != '\n')
			return refuse(h, 400, "malformed end of chunks");
		return done(h);
	}
}

enum http1_event
http1_feed(struct http1 *h, const uint8_t *p, size_t n, size_t *used)
{
	enum http1_event ev;
	size_t i = 0, k;
	long run;

	*used = 0;
	for (;;) {
		/* States that need no further byte. */
		if (h->state == S_ERROR)
			return HTTP1_ERROR;
		if (h->state == S_DONE)
			return HTTP1_DONE;
		if (h->state == S_BODY && h->left == 0) {
			*used = i;
			return done(h);
		}
		if (i == n) {
			*used = i;
			return HTTP1_MORE;
		}
		/* Bytes of the body and ordinary bytes of the head are taken in
		 * runs, all others one by one. */
		if (h->state == S_BODY || h->state == S_DATA) {
			if (h->left > h->body.max - h->body.len) {
				*used = i;
				return refuse(h, 413, "body is too large");
			}
			k = n - i < h->left ? n - i : h->left;
			if (take(h, p + i, k) < 0) {
				*used = i;
				return refuse(h, 503, "out of memory");
			}
			i += k;
			h->left -= k;
			if (h->state == S_DATA && h->left == 0)
				h->state = S_DATA_CR;
			continue;
		}
		if (h->state == S_HEAD) {
			run = head_run(h, p + i, n - i);
			if (run < 0) {
				*used = i;
				return refuse(h, 503, "out of memory");
			}
			if (run > 0) {
				i += (size_t)run;
				continue;
			}
		}
		ev = h->state == S_HEAD ? head_byte(h, p[i])
					: chunk_byte(h, p[i]);
		i++;
		if (ev != HTTP1_MORE) {
			*used = i;
			return ev;
		}
	}
}

/* Returns the reason phrase of RFC 9110 section 15, for the statuses that this
 * suite answers. */
const char *
http1_reason(int status)
{
	static const struct {
		int status;
		const char *text;
	} t[] = {{100, "Continue"}, {200, "OK"}, {201, "Created"},
	    {202, "Accepted"}, {204, "No Content"}, {304, "Not Modified"},
	    {307, "Temporary Redirect"}, {400, "Bad Request"},
	    {401, "Unauthorized"}, {403, "Forbidden"}, {404, "Not Found"},
	    {405, "Method Not Allowed"}, {406, "Not Acceptable"},
	    {408, "Request Timeout"}, {409, "Conflict"},
	    {411, "Length Required"}, {412, "Precondition Failed"},
	    {413, "Content Too Large"}, {414, "URI Too Long"},
	    {415, "Unsupported Media Type"}, {417, "Expectation Failed"},
	    {422, "Unprocessable Content"}, {428, "Precondition Required"},
	    {429, "Too Many Requests"},
	    {431, "Request Header Fields Too Large"},
	    {500, "Internal Server Error"}, {501, "Not Implemented"},
	    {503, "Service Unavailable"}, {504, "Gateway Timeout"},
	    {505, "HTTP Version Not Supported"}};
	size_t i;

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++)
		if (t[i].status == status)
			return t[i].text;
	return "Unknown";
}
