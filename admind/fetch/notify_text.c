#include <stdio.h>
#include <string.h>

#include "ids.h"
#include "jsonw.h"
#include "notify_text.h"

enum {
	US_PER_S = 1000 * 1000,
	TITLE_MAX = 96,
	/* Lines of NOTIFY_LINES_MAX requests: each has three names of at most
	 * 255 bytes and a principal of at most 254 characters. */
	TEXT_MAX = NOTIFY_LINES_MAX * 2048
};

/* Writes the requests' lines, and how many more there are. */
static void
put_lines(struct buf *text, const struct pg_result *rows, int64_t total)
{
	int n = db_nrows(rows);

	for (int i = 0; i < n; i++) {
		struct ipc_bytes line = db_bytes(rows, i, NOTIFY_C_LINE);

		buf_put(text, line.p, line.n);
		buf_puts(text, "\n");
	}
	if (total > n)
		buf_putf(text, "and %lld more\n", (long long)(total - n));
}

/* Writes the part for programs: counts, and the requests as REST has them,
 * without arguments of calls and without notes. */
static void
put_data(struct jsonw *w, const struct pg_result *rows, int64_t total)
{
	jsonw_name(w, "data");
	jsonw_obj(w);
	jsonw_kv_bool(w, "test", rows == NULL);
	jsonw_kv_int(w, "waiting", total);
	jsonw_name(w, "requests");
	jsonw_arr(w);
	for (int i = 0; rows != NULL && i < db_nrows(rows); i++) {
		struct ipc_bytes item = db_bytes(rows, i, NOTIFY_C_ITEM);

		jsonw_raw(w, item.p, item.n);
	}
	jsonw_arr_end(w);
	jsonw_obj_end(w);
}

/* Writes the address of the page of the one request, or of all. */
static void
put_link(struct buf *link, struct ipc_bytes panel, const struct pg_result *rows,
    int64_t total)
{
	char id[UUID_TEXT_LEN + 1];
	struct ipc_id one;

	if (panel.n == 0)
		return;
	buf_put(link, panel.p, panel.n);
	buf_puts(link, "/#/approvals");
	if (total == 1) {
		one = db_id(rows, 0, NOTIFY_C_ID);
		uuid_text(&one, id);
		buf_putf(link, "/%s", id);
	}
}

void
notify_text_put(const struct ipc_id *id, uint64_t at_us, struct ipc_bytes panel,
    const struct pg_result *rows, struct buf *out)
{
	int64_t total = rows != NULL ? db_int(rows, 0, NOTIFY_C_TOTAL) : 0;
	char uuid[UUID_TEXT_LEN + 1], title[TITLE_MAX];
	struct buf text, link;
	struct jsonw w;

	buf_init(&text, TEXT_MAX);
	buf_init(&link, 1024);
	if (rows != NULL)
		put_lines(&text, rows, total);
	else
		buf_puts(&text,
		    "This is a test. Requests that wait for a person are told "
		    "here.\n");
	put_link(&link, panel, rows, total);
	if (rows == NULL)
		snprintf(title, sizeof(title), "mcpbox: a test");
	else
		snprintf(title, sizeof(title), "mcpbox: %lld request%s for you",
		    (long long)total, total == 1 ? " waits" : "s wait");
	uuid_text(id, uuid);
	jsonw_open(&w, out);
	jsonw_obj(&w);
	jsonw_kv_str(&w, "id", uuid);
	jsonw_kv_int(&w, "at", (int64_t)(at_us / US_PER_S));
	jsonw_kv_str(&w, "title", title);
	jsonw_kv_strn(&w, "text", text.p, text.len);
	jsonw_kv_strn(&w, "link", link.p, link.len);
	put_data(&w, rows, total);
	jsonw_obj_end(&w);
	if (text.failed || link.failed)
		out->failed = true;
	buf_free(&text);
	buf_free(&link);
}
