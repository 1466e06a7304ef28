/*
 * JSON as rows and columns.
 */
#ifndef TABLES_H
#define TABLES_H

#include "ctl.h"

struct json_object;

/* Prints a list's or an object's JSON: as it is with --json, else in
 * columns. */
enum ctl_status tables_show(
    const struct ctl *, const char *what, const struct buf *text);
/* Returns a member's text, or JSON if it is no string; "" if it is absent or
 * null. It lives as long as the object. */
const char *tables_text(struct json_object *, const char *name);
/* Prints a list's items in columns; `what` picks them. */
void tables_print(const char *what, struct json_object *list);
/* Appends an object's members, one a line, nested ones indented. No two
 * different objects look alike. */
void tables_object(struct buf *, struct json_object *);
/* Prints some items of a longer list: rows, with the columns' names first if
 * `head`; with --json one object a line. */
enum ctl_status tables_items(
    const struct ctl *, const char *what, struct json_object *items, bool head);
/* Prints JSON text to standard output: checked, escaped to ASCII, one line. */
enum ctl_status tables_json(const uint8_t *, size_t);
/* The commands that only list or show. */
enum ctl_status tables_command(const struct ctl *);
enum ctl_status query_command(const struct ctl *);

#endif
