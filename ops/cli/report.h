/* report: results of a verb as text for a person, at most 80 columns wide. */
#ifndef LEDGERLOCK_REPORT_H
#define LEDGERLOCK_REPORT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* Prints the document of audit_gather. */
void report_print(const json_t *audit);

/* A line, on a terminal in bold letters if it is a heading. */
void report_text(const char *text, bool is_heading);

/* A heading, and one line of a label, a count and a note (may be ""). */
void report_heading(const char *text);
void report_line(const char *label, int64_t n, const char *note);

/* One line of label and count for each member that is not 0. */
void report_members(const char *indent, json_t *of);

#endif
