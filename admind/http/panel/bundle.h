/*
 * The files of the panel, in memory (docs/decisions/0109).
 */
#ifndef BUNDLE_H
#define BUNDLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"
#include "ids.h"

enum {
	/* A bundler's names have under 40 bytes. */
	BUNDLE_NAME_MAX = 64,
	/* The panel has a file for each of its pages, and about ten more. */
	BUNDLE_FILES_MAX = 128,
	/* The largest script has under 200 kB; a source map has more, and is
	 * not for users. */
	BUNDLE_FILE_MAX = 1024 * 1024,
	/* The memory that a wrong directory can take of this process. */
	BUNDLE_BYTES_MAX = 8 * 1024 * 1024,
	/* Letters and digits that a file has of its content's hash, at least:
	 * esbuild's 8 are 40 bits. */
	BUNDLE_HASH_MIN = 8
};

/* One form of a file's bytes. */
struct bundle_form {
	uint8_t *p; /* NULL: the form is absent */
	size_t n;
	char tag[HEX32_LEN + 3]; /* SHA-256 of the bytes, in quotes: an ETag */
};

struct bundle_file {
	char name[BUNDLE_NAME_MAX + 1]; /* without .gz */
	const char *type;               /* its Content-Type */
	struct bundle_form plain, gzip;
};

struct bundle {
	size_t n;
	struct bundle_file file[BUNDLE_FILES_MAX];
};

/* Returns the Content-Type of a file that may be in the directory, by its name
 * without .gz: index.html, or NAME-HASH.js, .css or .svg. NULL: any other
 * name. */
const char *bundle_type(const char *name);
/* Reads all files of a directory. Call it before the process confines itself.
 * 0 with
 * *out, 1 if the directory is absent; -1 with err, which names the wrong
 * file. */
int bundle_load(const char *directory, struct bundle **out, struct err *);
/* Returns the file of this name, or NULL. b may be NULL. */
const struct bundle_file *bundle_find(const struct bundle *, const char *name);
void bundle_free(struct bundle *);

#endif
