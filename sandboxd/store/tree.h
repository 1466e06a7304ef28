/*
 * A tree of files as a stream of bytes, and the tree's digest. There is no I/O
 * here: bytes come in, and a tree_sink makes the files. Fuzzed.
 *
 * The stream: "mcpbox tree 1" and a NUL, then for each entry, in the bytewise
 * order of paths:
 *
 *	u8	1 a directory, 2 a file
 *	u32be	length of the path, then the path's bytes
 *	u64be	(files) length of the content, then the content
 *
 * A path is relative. Its parts are joined by "/", and no part is empty, "." or
 * "..". The directories above a path come before it. The order lets no path
 * come twice, and the form lets no path lead out of the tree. The digest is the
 * one that contrib/module-add computes: the SHA-256 of "mcpbox module 1", a NUL
 * and the entries of the stream, in which each content is replaced by its
 * SHA-256.
 */
#ifndef TREE_H
#define TREE_H

#include "crypto.h"
#include "err.h"

enum {
	TREE_PATH_MAX =
	    1024, /* bytes of a path; the longest in wheels have some 200 */
	TREE_NAME_MAX = 255, /* bytes of one part: NAME_MAX */
	TREE_DEPTH_MAX = 32, /* parts of a path */
	TREE_DIRECTORY = 1,
	TREE_FILE = 2
};

/* Functions that make the tree, called in the stream's order. Each returns 0,
 * or -1 with err, which ends the tree. path is a string. The pieces of a file's
 * content come after `file`, then comes `file_end`. */
struct tree_sink {
	int (*directory)(void *, const char *path, struct err *);
	int (*file)(void *, const char *path, struct err *);
	int (*data)(void *, const void *, size_t, struct err *);
	int (*file_end)(void *, struct err *);
};

struct tree;

/* Makes a reader. most_files: files and directories together; most_bytes: of
 * all contents. NULL: no memory. */
struct tree *tree_new(uint64_t most_files, uint64_t most_bytes,
    const struct tree_sink *, void *arg);
void tree_free(struct tree *);
/* Takes the next bytes, cut anywhere. -1 with INVALID_PARAMS, LIMIT, or the
 * sink's error; nothing may be fed after that. */
int tree_feed(struct tree *, const void *, size_t, struct err *);
/* Ends the stream. 0, or -1: the tree is not whole. */
int tree_end(struct tree *, struct ipc_hash *digest, uint64_t *files,
    uint64_t *bytes, struct err *);

#endif
