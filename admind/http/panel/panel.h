/*
 * The panel in a browser: the page at / and the files that it names.
 */
#ifndef PANEL_H
#define PANEL_H

#include "web.h"

/* panel.c. Loads the panel from a directory; "" and "-" mean no panel. Call it
 * before the process confines itself. 0 with or without a panel, and logs
 * which; -1 with err if a file of the directory is wrong. */
int panel_load(struct web *, const char *directory, struct err *);
void panel_free(struct web *);
/* Answers with the panel's index.html, which must be there. */
void panel_index(struct call *);
void panel_file_get(struct call *);
/* Answers with the https origins at which the panel is served, too. */
void panel_places_get(struct call *);

/* page.c */
void page_get(struct call *);

#endif
