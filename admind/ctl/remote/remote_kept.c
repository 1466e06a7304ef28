#include <stdio.h>
#include <string.h>

#include <json-c/json.h>

#include "remote_kept.h"

#include "json.h"
#include "remote_document.h"
#include "setup_conf.h"

enum { KEPT_MAX = 1024 * 1024, KEPT_PATH_MAX = 4096, KEPT_MODE = 0644 };

static int
path_of(const struct ctl *c, char path[KEPT_PATH_MAX], struct err *err)
{
	return snprintf(path, KEPT_PATH_MAX, "%s/remotes.json", c->state_dir) <
		KEPT_PATH_MAX
	    ? 0
	    : err_set(err, FAILURE_INVALID_PARAMS, "state_dir is too long");
}

int
remote_kept_read(
    const struct ctl *c, struct json_object **rows, struct err *err)
{
	struct json_object *o = NULL, *list = NULL;
	char path[KEPT_PATH_MAX];
	struct buf b;
	int rc;

	buf_init(&b, KEPT_MAX);
	if ((rc = path_of(c, path, err)) == 0)
		rc = setup_conf_read(path, &b, err);
	if (rc == 0) {
		list = json_object_new_array();
		rc = list != NULL
		    ? 0
		    : err_set(err, FAILURE_INTERNAL, "out of memory");
	} else if (rc == 1) {
		rc = json_parse(b.p, b.len, &o, err);
		if (rc == -1)
			err_wrap(err, "%s", path);
		else if (json_get_arr(o, "remotes", &list, err) != 1)
			rc = err_set(err, FAILURE_PARSE,
			    "%s has no list `remotes`: mend or remove it; "
			    "issuers and tokens are not in it",
			    path);
		else
			(void)json_object_get(list);
	}
	json_object_put(o);
	buf_free(&b);
	if (rc == 0)
		*rows = list;
	return rc;
}

struct json_object *
remote_kept_find(struct json_object *rows, const char *name)
{
	for (size_t i = 0; i < json_object_array_length(rows); i++) {
		struct json_object *row = json_object_array_get_idx(rows, i);

		if (strcmp(remote_document_text(row, "name"), name) == 0)
			return row;
	}
	return NULL;
}

int
remote_kept_put(const struct ctl *c, const char *name, struct json_object *row,
    struct err *err)
{
	struct json_object *rows = NULL, *all = json_object_new_object();
	char path[KEPT_PATH_MAX];
	const char *text;
	int rc = -1;

	if (remote_kept_read(c, &rows, err) == -1 ||
	    path_of(c, path, err) == -1) {
		json_object_put(row);
		goto out;
	}
	for (size_t i = json_object_array_length(rows); i > 0; i--)
		if (strcmp(remote_document_text(
			       json_object_array_get_idx(rows, i - 1), "name"),
			name) == 0)
			json_object_array_del_idx(rows, i - 1, 1);
	if (row != NULL && json_object_array_add(rows, row) != 0) {
		json_object_put(row);
		err_set(err, FAILURE_INTERNAL, "out of memory");
		goto out;
	}
	if (all == NULL ||
	    json_object_object_add(all, "remotes", json_object_get(rows)) !=
		0) {
		err_set(err, FAILURE_INTERNAL, "out of memory");
		goto out;
	}
	text = json_object_to_json_string_ext(all,
	    JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED |
		JSON_C_TO_STRING_NOSLASHESCAPE);
	rc = setup_conf_write(path, text, strlen(text), KEPT_MODE, err) == -1
	    ? -1
	    : 0;
out:
	json_object_put(rows);
	json_object_put(all);
	return rc;
}
