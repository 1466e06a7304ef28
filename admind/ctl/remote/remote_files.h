/*
 * The files that `remote add` writes, and the steps that it leaves to a person.
 */
#ifndef REMOTE_FILES_H
#define REMOTE_FILES_H

#include "buf.h"
#include "ctl.h"
#include "err.h"
#include "remote_document.h"

struct json_object;

enum remote_proxy {
	REMOTE_NGINX,
	REMOTE_CADDY,
	REMOTE_CLOUDFLARED,
	REMOTE_PROXY_COUNT
};

/* Returns the proxy of this word, or -1. */
int remote_files_proxy(const char *word);

/*
 * Writes a remote's files into a directory. A file that is there with other
 * content stays, as NAME.old (instead of an older NAME.old). Appends the paths
 * to the list *paths, and a line for each file to *said. No file has a secret.
 * 0, or -1 with err; files before the bad one are written then.
 */
int remote_files_write(const struct ctl *, const struct remote_wish *,
    enum remote_proxy, const char *dir, struct json_object *paths,
    struct buf *said, struct err *);

/* Appends the steps that are left to do by hand, a numbered line each. dir:
 * NULL if no files were written. */
void remote_files_left(const struct remote_wish *, enum remote_proxy,
    const char *dir, struct buf *out);

#endif
