/*
 * The change of the access document, as `access set` and `remote` make it.
 */
#ifndef ACCESS_CHANGE_H
#define ACCESS_CHANGE_H

#include "ctl.h"

struct json_object;

/* Reads the document that holds, with its hash and state: {"document",
 * "sha256", "in_force", "why", ...}. The caller puts *answer. On failure it is
 * NULL, and stderr says why. */
enum ctl_status access_holding(const struct ctl *, struct json_object **answer);

/*
 * Gives the document that a change begins with, or NULL if none is stored. The
 * answer owns it. Refuses one that is not in force, and says so. Somebody
 * that writes the database may have made it, and a change would seal its
 * issuers, without a look at them if a script says --yes.
 */
enum ctl_status access_base(
    struct json_object *answer, struct json_object **document);

/* Tells whether `new` differs from the document of access_holding(), or that
 * document is not in force. */
bool access_changes(struct json_object *answer, struct json_object *new);

/* Shows the difference, asks, and has the vault set the document, whose bytes
 * are `document`. CTL_REFUSED if the person said no. */
enum ctl_status access_change(const struct ctl *, struct json_object *answer,
    struct json_object *new, const struct buf *document);

#endif
