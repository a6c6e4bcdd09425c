/* report: the audit's document as text for a person, at most 80 columns wide. */
#ifndef LEDGERLOCK_REPORT_H
#define LEDGERLOCK_REPORT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Prints the document of audit_gather. */
void report_print(json_t *audit, bool has_colour, FILE *out);

/* 1234567 as "1,234,567"; returns buf. 32 bytes always suffice. */
const char *report_count(int64_t n, char *buf, size_t size);

/* A heading, and one line of a label, a count and a note (may be ""). For verbs that
 * print in the same hand. */
void report_heading(FILE *out, bool has_colour, const char *text);
void report_line(FILE *out, const char *label, int64_t n, const char *note);

/* Whether colour may be used on this stream: a terminal, and no NO_COLOR. */
bool report_has_colour(FILE *out);

#endif
