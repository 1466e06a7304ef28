/* See doctor.h. */
#include <string.h>

#include "doctor.h"
#include "jsonw.h"
#include "layer.h"

static void
row(struct jsonw *w, const char *process, const char *layer, size_t nlayer,
    const char *state, size_t nstate, const char *detail, size_t ndetail,
    const char *fix)
{
	jsonw_obj(w);
	jsonw_kv_str(w, "process", process);
	jsonw_kv_strn(w, "layer", layer, nlayer);
	jsonw_kv_strn(w, "state", state, nstate);
	jsonw_kv_strn(w, "detail", detail, ndetail);
	jsonw_kv_str(w, "fix", fix);
	jsonw_obj_end(w);
}

/* Returns the text that tells the reader how to mend a layer that does not hold
 * in full. */
static const char *
fix_of(const char *layer, size_t n, const char *state, size_t nstate)
{
	if (nstate == 8 && memcmp(state, "enforced", 8) == 0)
		return "";
	return layer_fix(layer, n);
}

/* Writes the lines of one process. */
static void
rows(struct jsonw *w, const char *process, const char *lines)
{
	const char *end, *eq, *sp;

	if (*lines == '\0') {
		row(w, process, "process", 7, "missing", 7, "it is not there",
		    15, "Look at its log; it is restarted by itself.");
		return;
	}
	for (; *lines != '\0'; lines = *end == '\0' ? end : end + 1) {
		end = strchrnul(lines, '\n');
		eq = memchr(lines, '=', (size_t)(end - lines));
		if (eq == NULL)
			continue;
		sp = memchr(eq, ' ', (size_t)(end - eq));
		if (sp == NULL)
			sp = end;
		row(w, process, lines, (size_t)(eq - lines), eq + 1,
		    (size_t)(sp - eq - 1), sp == end ? "" : sp + 1,
		    sp == end ? 0 : (size_t)(end - sp - 1),
		    fix_of(lines, (size_t)(eq - lines), eq + 1,
			(size_t)(sp - eq - 1)));
	}
}

void
doctor_report(struct buf *out, const char *own, const char *memory,
    const char *work, const char *spawn, const char *pool, const char *egress,
    const char *store, bool have_key)
{
	struct jsonw w;

	jsonw_open(&w, out);
	jsonw_arr(&w);
	rows(&w, "sandboxd", own);
	rows(&w, "sandboxd", memory);
	rows(&w, "sandboxd", work);
	rows(&w, "sandboxd",
	    have_key ? "context_key=enforced"
		     : "context_key=missing the vault has not given one");
	rows(&w, "sandboxd-spawn", spawn);
	rows(&w, "pool", pool);
	rows(&w, "sandboxd-egress", egress);
	rows(&w, "sandboxd-store", store);
	jsonw_arr_end(&w);
}
