/* Writes ids, times and bytes as members of JSON objects. */
#include "ids.h"
#include "json_kv.h"

void
json_kv_id(struct jsonw *w, const char *name, const struct ipc_id *id)
{
	char text[UUID_TEXT_LEN + 1];

	uuid_text(id, text);
	jsonw_kv_str(w, name, text);
}

void
json_kv_time(struct jsonw *w, const char *name, uint64_t unix_us)
{
	char text[TIME_TEXT_LEN + 1];

	jsonw_name(w, name);
	if (unix_us == 0) {
		jsonw_null(w);
		return;
	}
	time_text(unix_us, text);
	jsonw_str(w, text);
}

void
json_kv_bytes(struct jsonw *w, const char *name, struct ipc_bytes b)
{
	jsonw_kv_strn(w, name, b.p, b.n);
}

void
json_kv_hex(struct jsonw *w, const char *name, struct ipc_bytes b)
{
	char hex[2 * 64 + 1];

	hex_encode(b.p, b.n <= 64 ? b.n : 64, hex);
	jsonw_kv_str(w, name, hex);
}
