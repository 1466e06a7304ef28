#include "recipe.h"

#include <string.h>

#include "context.h"
#include "ids.h"
#include "ipc.h"
#include "tlv.h"
#include "version.h"

/*
 * Adds the digests of the approved version's modules, ascending. A digest is
 * the last word of a lock line ("name version digest"). The digests are taken
 * from the version alone, so a call gets the modules that the reviewer was
 * shown, even if the database changed since.
 */
static int
put_modules(struct buf *out, const uint8_t *fields, size_t n, struct err *err)
{
	uint8_t digest[MODULES_PER_CALL_MAX][32];
	size_t count, i;

	if (version_modules(fields, n, digest, &count, err) == -1)
		return -1;
	for (i = 0; i < count; i++)
		tlv_put(out, CTX_MODULE, digest[i], 32);
	return 0;
}

int
recipe_kind(struct buf *out, const uint8_t *fields, size_t n, struct err *err)
{
	struct tlv kind, code, spec, path, hex;
	uint8_t digest[32];

	if (tlv_find(fields, n, VERSION_KIND, &kind) != 1)
		return err_set(
		    err, FAILURE_INVALID_REQUEST, "the version has no kind");
	if (ipc_streq(ipc_bytes(kind.p, kind.n), "python")) {
		if (tlv_find(fields, n, VERSION_CODE, &code) != 1)
			return err_set(err, FAILURE_INVALID_REQUEST,
			    "the version has no code");
		tlv_put(out, CTX_CODE, code.p, code.n);
		return put_modules(out, fields, n, err);
	}
	/* A declared REST call or a tool of another MCP server has a
	 * specification, which code of ours reads in the runner. The version's
	 * `requires` names the hosts that the call reaches, as in any
	 * version. */
	if (ipc_streq(ipc_bytes(kind.p, kind.n), "http") ||
	    ipc_streq(ipc_bytes(kind.p, kind.n), "mcp")) {
		if (tlv_find(fields, n, VERSION_SPEC, &spec) != 1 ||
		    tlv_find(fields, n, VERSION_CODE, &code) != 0 ||
		    tlv_find(fields, n, VERSION_EXECUTABLE, &path) != 0)
			return err_set(err, FAILURE_INVALID_REQUEST,
			    "the version has no specification, or something "
			    "beside it");
		tlv_put(out, CTX_KIND, kind.p, kind.n);
		tlv_put(out, CTX_SPEC, spec.p, spec.n);
		return 0;
	}
	if (!ipc_streq(ipc_bytes(kind.p, kind.n), "command"))
		return err_set(err, FAILURE_INVALID_REQUEST,
		    "the version is of a kind that cannot run yet");
	if (tlv_find(fields, n, VERSION_SPEC, &spec) != 1 ||
	    tlv_find(fields, n, VERSION_EXECUTABLE, &path) != 1 ||
	    tlv_find(fields, n, VERSION_EXECUTABLE_DIGEST, &hex) != 1 ||
	    hex.n != HEX32_LEN ||
	    hex_decode((const char *)hex.p, hex.n, digest) == -1)
		return err_set(err, FAILURE_INVALID_REQUEST,
		    "the version has no command, executable or digest of it");
	tlv_put(out, CTX_KIND, kind.p, kind.n);
	tlv_put(out, CTX_SPEC, spec.p, spec.n);
	tlv_put(out, CTX_EXECUTABLE, path.p, path.n);
	tlv_put(out, CTX_EXECUTABLE_DIGEST, digest, sizeof(digest));
	return 0;
}

/*
 * Adds the required form of the result (of a tool, a prompt or a resource) and
 * the schema of its structured content. Both are taken from the approved
 * version, so admind can't make a result pass that the approved version
 * forbids.
 */
int
recipe_result(struct buf *out, const uint8_t *fields, size_t n, struct err *err)
{
	static const struct {
		const char *object;
		enum call_method method;
	} methods[] = {{"tool", CALL_TOOL}, {"prompt", CALL_PROMPT},
	    {"resource", CALL_RESOURCE}, {"template", CALL_RESOURCE},
	    {"source", CALL_TOOL}};
	struct tlv f;
	size_t i;

	if (tlv_find(fields, n, VERSION_OUTPUT_SCHEMA, &f) == 1)
		tlv_put(out, CTX_OUTPUT_SCHEMA, f.p, f.n);
	if (tlv_find(fields, n, VERSION_OBJECT, &f) != 1)
		return 0;
	for (i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
		if (ipc_streq(ipc_bytes(f.p, f.n), methods[i].object))
			break;
	if (i == sizeof(methods) / sizeof(methods[0]))
		return err_set(err, FAILURE_INVALID_REQUEST,
		    "the version is of no known object");
	tlv_put_u64(out, CTX_METHOD, methods[i].method);
	return 0;
}
