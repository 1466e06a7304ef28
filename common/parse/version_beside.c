#include "version_beside.h"

#include <string.h>

#include <json-c/json.h>

#include "bounds.h"
#include "json.h"
#include "jsonw.h"
#include "version_marks.h"

static void
put_circumstances(struct buf *json, struct ipc_bytes circumstances)
{
	static const char *const names[] = {
	    "rejections", "rejected_before", "secrets_missing"};
	struct json_object *o = NULL, *v;
	struct buf members;
	const char *s;

	buf_init(&members, IPC_BLOB_MAX);
	buf_putc(&members, '{');
	buf_put(&members, circumstances.p, circumstances.n);
	buf_putc(&members, '}');
	if (!members.failed &&
	    json_parse(members.p, members.len, &o, NULL) == 0 &&
	    json_object_is_type(o, json_type_object))
		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
			if (!json_object_object_get_ex(o, names[i], &v))
				continue;
			s = json_object_to_json_string_ext(
			    v, JSON_C_TO_STRING_PLAIN);
			buf_putf(json, ",\"%s\":", names[i]);
			jsonw_ascii(json, (const uint8_t *)s, strlen(s));
		}
	json_object_put(o);
	json->failed |= members.failed;
	buf_free(&members);
}

void
version_beside(struct buf *json, const uint8_t *preimage, size_t n,
    struct ipc_bytes circumstances)
{
	struct jsonw w;

	if (json->len < 2 || json->p[json->len - 1] != '}') {
		json->failed = true;
		return;
	}
	json->len--;
	buf_puts(json, ",\"marks\":");
	jsonw_open(&w, json);
	version_marks_json(&w, preimage, n);
	put_circumstances(json, circumstances);
	buf_putc(json, '}');
}
