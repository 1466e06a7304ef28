/*
 * Checks that a text is one JSON value by RFC 8259's grammar. Nothing is built
 * and no value is read, so even a program that must not contain a parser may
 * use this check.
 */
#ifndef JSON_GRAMMAR_H
#define JSON_GRAMMAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Tells whether the text is one value with optional white space around it,
 * containers at most JSON_DEPTH_MAX deep. Bytes above 0x7f are accepted inside
 * strings: the caller checks UTF-8. */
bool json_grammar_valid(const uint8_t *, size_t);

#endif
