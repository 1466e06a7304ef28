/*
 * The JSON pre-scan, and what relies on it. Properties, not only survival:
 * json-c must accept what the pre-scan accepted, and a slice found in accepted
 * text must itself be a JSON text.
 */
#include <json-c/json_object.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "json_alike.h"

int LLVMFuzzerTestOneInput(const uint8_t *, size_t);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static const char *const paths[][3] = {
	    {"a", NULL}, {"params", "arguments", NULL}, {NULL}};
	struct json_object *o = NULL;
	struct ipc_id id, trimmed;
	const uint8_t *p;
	size_t len;

	if (json_scan(data, n, NULL) == -1)
		return 0;
	if (json_parse(data, n, &o, NULL) == -1)
		abort();
	json_object_put(o);
	/* White space around a value says nothing. */
	json_alike(ipc_bytes(data, n), &id);
	while (n > 0 && (data[n - 1] == ' ' || data[n - 1] == '\n'))
		n--;
	json_alike(ipc_bytes(data, n), &trimmed);
	if (memcmp(&id, &trimmed, sizeof(id)) != 0)
		abort();
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		if (json_slice(data, n, paths[i], &p, &len) == 1 &&
		    (p < data || p + len > data + n ||
			json_scan(p, len, NULL) == -1))
			abort();
	return 0;
}
