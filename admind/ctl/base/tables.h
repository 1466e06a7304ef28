/*
 * JSON as rows and columns.
 */
#ifndef TABLES_H
#define TABLES_H

#include "ctl.h"

struct json_object;

/* Prints the JSON of a list or an object. With --json the output is JSON, too.
 * Otherwise a list is a table, whose columns `what` picks, and an object has
 * one line for each member. */
enum ctl_status tables_show(
    const struct ctl *, const char *what, const struct buf *text);
/* Returns a member's text, its JSON if the member is no string, or "" if the
 * member is absent or null. The result lives as long as the object. */
const char *tables_text(struct json_object *, const char *name);
/* Prints a list's items in columns; `what` picks the columns. */
void tables_print(const char *what, struct json_object *list);
/* Appends an object's members, one per line, with nested members indented. No
 * two different objects look alike. */
void tables_object(struct buf *, struct json_object *);
/* Prints some items of a longer list as rows, after the names of the columns if
 * `head`. With --json each item is one line of JSON. */
enum ctl_status tables_items(
    const struct ctl *, const char *what, struct json_object *items, bool head);
/* Checks JSON text and prints it, escaped to ASCII, as one line. */
enum ctl_status tables_json(const uint8_t *, size_t);
/* The commands that only list or show. */
enum ctl_status tables_command(const struct ctl *);
enum ctl_status query_command(const struct ctl *);

#endif
