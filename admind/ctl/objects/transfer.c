#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <json-c/json.h>

#include "call.h"
#include "calls.h"
#include "crypto.h"
#include "ids.h"
#include "json.h"
#include "jsonw.h"
#include "objects.h"
#include "tables.h"

/*
 * Commands export [SERVER ...] > FILE, import FILE, transfer-key FILE.
 *
 * The first line of a file is its head, a JSON object with the vault's seal
 * over the SHA-256 of the rest. Each further line is a JSON object. With
 * --transfer-key the head has an HMAC instead of the seal. Both instances'
 * administrators have the HMAC's key in a file. This process makes and checks
 * the HMAC. That needs no further trust, since uid 0 may read that file and
 * could ask the vault to seal anything.
 */

enum {
	TEXT_MAX = 128 * 1024 * 1024, /* as in the database */
	HEAD_MAX = 4096,
	/* JSON escaping makes at most six bytes of one byte, so an escaped
	 * piece fits ARGUMENTS_MAX. */
	PIECE_MAX = 128 * 1024,
	SEAL_MAX = 256,
	TRANSFER_KEY_HEX = 2 * KEY_LEN
};

static const char transfer_label[] = "mcpbox transfer 1";

static enum ctl_status
complain(const char *what, const char *why)
{
	fprintf(stderr, "mcpboxctl: %s: %s\n", what, why);
	return CTL_REFUSED;
}

/* ---- the transfer key ---- */

/* Reads a key from a file that others can't read: 64 hex digits, with or
 * without a newline. 0 or -1. */
static int
read_key(const char *path, uint8_t key[KEY_LEN])
{
	char hex[TRANSFER_KEY_HEX + 2];
	struct stat st;
	ssize_t n;
	int fd, rc = -1;

	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd == -1 || fstat(fd, &st) == -1) {
		(void)complain(path, strerror(errno));
		goto out;
	}
	n = read(fd, hex, sizeof(hex));
	if ((st.st_mode & (S_IRWXG | S_IRWXO)) != 0)
		(void)complain(path, "others may read it: chmod 600");
	else if (!S_ISREG(st.st_mode) ||
	    (n != TRANSFER_KEY_HEX && n != TRANSFER_KEY_HEX + 1) ||
	    (n > TRANSFER_KEY_HEX && hex[TRANSFER_KEY_HEX] != '\n') ||
	    hex_decode(hex, TRANSFER_KEY_HEX, key) == -1)
		(void)complain(path,
		    "not a transfer key (mcpboxctl "
		    "transfer-key makes one)");
	else
		rc = 0;
	explicit_bzero(hex, sizeof(hex));
out:
	if (fd != -1)
		close(fd);
	return rc;
}

enum ctl_status
transfer_key_command(const struct ctl *c)
{
	char hex[TRANSFER_KEY_HEX + 2];
	uint8_t key[KEY_LEN];
	enum ctl_status status = CTL_DONE;
	int fd;

	fd = open(c->words[1],
	    O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd == -1)
		return complain(c->words[1], strerror(errno));
	random_bytes(key, sizeof(key));
	hex_encode(key, sizeof(key), hex);
	hex[TRANSFER_KEY_HEX] = '\n';
	if (write(fd, hex, TRANSFER_KEY_HEX + 1) != TRANSFER_KEY_HEX + 1 ||
	    fsync(fd) == -1) {
		status = complain(c->words[1], strerror(errno));
		(void)unlink(c->words[1]);
	}
	close(fd);
	explicit_bzero(hex, sizeof(hex));
	explicit_bzero(key, sizeof(key));
	if (status == CTL_DONE && !c->json)
		puts("made; give it to the other instance's administrator by "
		     "a way that you trust, and delete it afterwards");
	return status;
}

/* Computes the HMAC of a text under the key in a file, in hex. 0 or -1. */
static int
transfer_mac(const char *path, const struct buf *text, char hex[HEX32_LEN + 1])
{
	uint8_t key[KEY_LEN], sub[KEY_LEN];
	struct ipc_hash hash, mac;

	if (read_key(path, key) == -1)
		return -1;
	hkdf_sha256(key, transfer_label, sub);
	sha256(text->p, text->len, &hash);
	hmac_sha256(sub, hash.b, sizeof(hash.b), &mac);
	hex_encode(mac.b, sizeof(mac.b), hex);
	explicit_bzero(key, sizeof(key));
	explicit_bzero(sub, sizeof(sub));
	return 0;
}

/* ---- export ---- */

static enum ctl_status
begin(const struct ctl *c, struct buf *head)
{
	struct ipc_export m = {0};
	enum ctl_status status;
	struct ipc_admin_json a;
	struct ipc_frame f;
	struct buf names;

	buf_init(&names, IPC_FRAME_MAX / 2);
	for (int i = 1; i < c->nwords; i++) {
		if (i > 1)
			buf_putc(&names, '\n');
		buf_puts(&names, c->words[i]);
	}
	m.servers = ipc_bytes(names.p, names.len);
	status = names.failed ? CTL_USAGE
			      : calls_ask(c, "admind", IPC_ROLE_ADMIND,
				    IPC_EXPORT, &m, IPC_ADMIN_JSON, &f);
	buf_free(&names);
	if (status != CTL_DONE)
		return status;
	if (ipc_decode(&f, &a, NULL) == -1)
		status = complain("admind", "the answer is unreadable");
	else
		buf_put(head, a.json.p, a.json.n);
	ipc_frame_free(&f);
	return status;
}

/* Appends the lines of one page to text; *more: the next page's cursor, which
 * the caller frees. */
static enum ctl_status
take_page(const struct buf *page, struct buf *text, char **more)
{
	struct json_object *o = NULL, *items, *v, *next;
	enum ctl_status status = CTL_REFUSED;
	struct err err;

	*more = NULL;
	if (json_parse(page->p, page->len, &o, &err) == -1 ||
	    json_get_arr(o, "items", &items, &err) != 1)
		goto out;
	for (size_t i = 0; i < json_object_array_length(items); i++) {
		v = json_object_array_get_idx(items, i);
		if (!json_object_is_type(v, json_type_string))
			goto out;
		buf_put(text, json_object_get_string(v),
		    (size_t)json_object_get_string_len(v));
		buf_putc(text, '\n');
	}
	if (json_object_object_get_ex(o, "next_cursor", &next) &&
	    json_object_is_type(next, json_type_string) &&
	    (*more = strdup(json_object_get_string(next))) == NULL)
		goto out;
	status = text->failed ? CTL_REFUSED : CTL_DONE;
out:
	if (status != CTL_DONE)
		(void)complain("admind", "the answer is unreadable");
	json_object_put(o);
	return status;
}

static enum ctl_status
fetch(const struct ctl *c, const char *id, struct buf *text)
{
	char *cursor = NULL, *next = NULL;
	struct buf page, filter;
	enum ctl_status status = CTL_REFUSED;

	buf_init(&filter, HEAD_MAX);
	admin_filter_put(&filter, ADMIN_FILTER_OBJECT, id);
	do {
		status = calls_list(c, "export_lines", NULL,
		    ipc_bytes(filter.p, filter.len), cursor, &page);
		if (status == CTL_DONE)
			status = take_page(&page, text, &next);
		buf_free(&page);
		free(cursor);
		cursor = next;
		next = NULL;
	} while (status == CTL_DONE && cursor != NULL);
	free(cursor);
	buf_free(&filter);
	return status;
}

/* Appends to *out the head that admind made. With a transfer key, an HMAC takes
 * the place of the seal. */
static enum ctl_status
write_head(const struct ctl *c, struct json_object *o, const struct buf *text,
    struct buf *out)
{
	char mac[HEX32_LEN + 1];

	if (c->transfer_key != NULL) {
		if (transfer_mac(c->transfer_key, text, mac) == -1)
			return CTL_REFUSED;
		json_object_object_del(o, "signature");
		json_object_object_add(
		    o, "transfer_signature", json_object_new_string(mac));
	}
	buf_puts(
	    out, json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN));
	buf_putc(out, '\n');
	return out->failed ? CTL_REFUSED : CTL_DONE;
}

/* Tells whether text has the SHA-256 that the head o names. */
static bool
is_whole(struct json_object *o, const struct buf *text)
{
	char hex[HEX32_LEN + 1];
	struct ipc_hash hash;
	const char *want;
	size_t n;

	sha256(text->p, text->len, &hash);
	hex_encode(hash.b, sizeof(hash.b), hex);
	return json_get_str(o, "sha256", &want, &n, NULL) == 1 &&
	    strcmp(want, hex) == 0;
}

enum ctl_status
export_command(const struct ctl *c)
{
	struct json_object *o = NULL;
	struct buf head, text, line;
	enum ctl_status status;
	const char *id;
	struct err err;
	size_t n;

	buf_init(&head, HEAD_MAX);
	buf_init(&line, HEAD_MAX);
	buf_init(&text, TEXT_MAX);
	if ((status = begin(c, &head)) != CTL_DONE)
		goto out;
	if (json_parse(head.p, head.len, &o, &err) == -1 ||
	    json_get_str(o, "id", &id, &n, &err) != 1) {
		status = complain("admind", "the answer is unreadable");
		goto out;
	}
	if ((status = fetch(c, id, &text)) != CTL_DONE)
		goto out;
	if (!is_whole(o, &text)) {
		status = complain("export",
		    "its lines are not what was "
		    "sealed");
		goto out;
	}
	if ((status = write_head(c, o, &text, &line)) != CTL_DONE)
		goto out;
	if (fwrite(line.p, 1, line.len, stdout) != line.len ||
	    fwrite(text.p, 1, text.len, stdout) != text.len)
		status = complain("standard output", strerror(errno));
out:
	json_object_put(o);
	buf_free(&head);
	buf_free(&line);
	buf_free(&text);
	return status;
}

/* ---- import ---- */

enum ctl_status
transfer_read(const char *path, struct buf *out)
{
	bool own = strcmp(path, "-") != 0;
	enum ctl_status status = CTL_DONE;
	char part[64 * 1024];
	ssize_t n;
	int fd = STDIN_FILENO;

	if (own && (fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY)) == -1)
		return complain(path, strerror(errno));
	while ((n = read(fd, part, sizeof(part))) > 0)
		buf_put(out, part, (size_t)n);
	if (n == -1)
		status = complain(path, strerror(errno));
	else if (out->failed)
		status = complain(path, "too long");
	if (own)
		close(fd);
	return status;
}

/* Lets the vault seal a text. uid 0 vouches for the text, because its HMAC was
 * checked here. */
static enum ctl_status
vouch(const struct ctl *c, const struct buf *text, uint8_t *seal, size_t *n)
{
	struct ipc_export_sign m = {0};
	enum ctl_status status;
	struct ipc_export_seal a;
	struct ipc_frame f;

	sha256(text->p, text->len, &m.sha256);
	status = calls_ask(c, "admind-vault", IPC_ROLE_VAULT, IPC_EXPORT_SIGN,
	    &m, IPC_EXPORT_SEAL, &f);
	if (status != CTL_DONE)
		return status;
	if (ipc_decode(&f, &a, NULL) == -1 || a.seal.n > SEAL_MAX) {
		status = complain("admind-vault", "the answer is unreadable");
	} else {
		memcpy(seal, a.seal.p, a.seal.n);
		*n = a.seal.n;
	}
	ipc_frame_free(&f);
	return status;
}

/* Checks the head, and its HMAC if there is a transfer key. Puts the seal for
 * admind into seal. A seal in the head is not checked here. */
static enum ctl_status
take_seal(const struct ctl *c, const struct buf *head, const struct buf *text,
    uint8_t *seal, size_t *nseal)
{
	struct json_object *o = NULL;
	enum ctl_status status = CTL_REFUSED;
	char mac[HEX32_LEN + 1];
	const char *s;
	int64_t version;
	struct err err;
	size_t n;

	if (json_parse(head->p, head->len, &o, &err) == -1 ||
	    !json_object_is_type(o, json_type_object) ||
	    json_get_int(o, "mcpbox_export", 1, 1, &version, &err) != 1 ||
	    !is_whole(o, text)) {
		(void)complain("import",
		    "not an export, or not all of one, "
		    "or changed");
	} else if (c->transfer_key != NULL) {
		if (transfer_mac(c->transfer_key, text, mac) == -1)
			goto out;
		if (json_get_str(o, "transfer_signature", &s, &n, &err) != 1 ||
		    n != HEX32_LEN || !ct_equal(s, mac, n))
			(void)complain("import",
			    "it was not signed with this "
			    "transfer key");
		else
			status = vouch(c, text, seal, nseal);
	} else if (json_get_str(o, "signature", &s, &n, &err) != 1 ||
	    n > 2 * SEAL_MAX || hex_decode(s, n, seal) == -1) {
		(void)complain("import",
		    "it has no signature of an instance; "
		    "was it made with --transfer-key?");
	} else {
		*nseal = n / 2;
		status = CTL_DONE;
	}
out:
	json_object_put(o);
	return status;
}

/* Sends the text to admind in pieces. Each piece ends between two
 * characters. */
static enum ctl_status
put(const struct ctl *c, const char *id, const struct buf *text)
{
	enum ctl_status status = CTL_DONE;
	struct buf body, answer;
	struct jsonw w;
	size_t n;

	for (size_t at = 0; at < text->len && status == CTL_DONE; at += n) {
		n = text->len - at < PIECE_MAX ? text->len - at : PIECE_MAX;
		while (at + n < text->len && n > 0 &&
		    (text->p[at + n] & 0xc0) == 0x80)
			n--;
		buf_init(&body, ARGUMENTS_MAX);
		jsonw_open(&w, &body);
		jsonw_obj(&w);
		jsonw_kv_int(&w, "from", (int64_t)at);
		jsonw_kv_strn(&w, "text", text->p + at, n);
		jsonw_obj_end(&w);
		buf_putc(&body, '\0');
		if (body.failed || n == 0) {
			status = complain("import", "out of memory");
		} else {
			status = call_action(c, "import_put", id, NULL,
			    (const char *)body.p, &answer);
			buf_free(&answer);
		}
		buf_free(&body);
	}
	return status;
}

static enum ctl_status
finish(const struct ctl *c, const struct ipc_id *id, const uint8_t *seal,
    size_t nseal)
{
	struct ipc_import m = {.import = *id, .seal = ipc_bytes(seal, nseal)};
	enum ctl_status status;
	struct ipc_admin_json a;
	struct ipc_frame f;
	struct buf text;

	status = calls_ask(
	    c, "admind", IPC_ROLE_ADMIND, IPC_IMPORT, &m, IPC_ADMIN_JSON, &f);
	if (status != CTL_DONE)
		return status;
	buf_init(&text, IPC_BLOB_MAX);
	if (ipc_decode(&f, &a, NULL) == 0)
		buf_put(&text, a.json.p, a.json.n);
	ipc_frame_free(&f);
	status = tables_show(c, "import", &text);
	buf_free(&text);
	return status;
}

enum ctl_status
import_command(const struct ctl *c)
{
	struct buf file, head, text, answer;
	struct json_object *o = NULL;
	uint8_t seal[SEAL_MAX];
	enum ctl_status status;
	const uint8_t *nl;
	struct ipc_id id;
	const char *s;
	struct err err;
	size_t n, nseal = 0;

	buf_init(&file, TEXT_MAX + HEAD_MAX);
	buf_init(&head, HEAD_MAX);
	buf_init(&text, TEXT_MAX);
	buf_init(&answer, HEAD_MAX);
	if ((status = transfer_read(c->words[1], &file)) != CTL_DONE)
		goto out;
	nl = file.len > 0 ? memchr(file.p, '\n', file.len) : NULL;
	n = nl != NULL ? (size_t)(nl - file.p) + 1 : file.len;
	buf_put(&head, file.p, n);
	buf_put(&text, file.p + n, file.len - n);
	if (head.failed || text.failed) {
		status = complain(c->words[1], "not an export");
		goto out;
	}
	status = take_seal(c, &head, &text, seal, &nseal);
	if (status != CTL_DONE)
		goto out;
	buf_free(&answer);
	status = call_action(c, "import_begin", "", NULL, "{}", &answer);
	if (status != CTL_DONE)
		goto out;
	if (json_parse(answer.p, answer.len, &o, &err) == -1 ||
	    json_get_str(o, "id", &s, &n, &err) != 1 ||
	    uuid_parse(s, n, &id) == -1) {
		status = complain("admind", "the answer is unreadable");
		goto out;
	}
	if ((status = put(c, s, &text)) == CTL_DONE)
		status = finish(c, &id, seal, nseal);
	/* A refused import is of no use any more, so it is dropped. */
	if (status == CTL_REFUSED) {
		buf_free(&answer);
		(void)call_action(c, "import_drop", s, NULL, "{}", &answer);
	}
out:
	json_object_put(o);
	buf_free(&file);
	buf_free(&head);
	buf_free(&text);
	buf_free(&answer);
	return status;
}
