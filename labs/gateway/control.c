/* control: paths under /_/ by which a test sets behaviours, and asks the witness. */
#define _GNU_SOURCE /* open_memstream */
#include "labs/gateway/gateway.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void add(json_t *sums, const char *name, int64_t n)
{
    int64_t before = json_integer_value(json_object_get(sums, name));

    if (n > 0)
        (void)json_object_set_new(sums, name, json_integer(before + n));
}

/* Captures of a charge, whatever their keys were. */
static json_t *captures_of(const struct entry *e)
{
    json_t *captures = json_array();
    char id[ID_SIZE];

    for (; e != NULL; e = e->before_of_charge) {
        store_id(id, INTENT, e->n);
        if (e->decline == NULL)
            (void)json_array_append_new(captures, json_string(id));
    }
    return captures;
}

/* brief=1: what was charged once is neither listed nor counted by its id. */
static void run_witness(struct call *c)
{
    json_t *captured = json_object(), *refunded = json_object(), *latest;
    json_t *by_charge = json_object(), *duplicates = json_object();
    bool is_brief = call_text(c, "brief") != NULL;
    int64_t ct[KIND_CT] = {0};
    const char *name;

    for (int64_t n = 1; n <= store.ct; n++) {
        const struct entry *e = store.entries[n];

        ct[e->kind] += e->decline == NULL;
        add(captured, e->currency,
            e->kind == INTENT && e->decline == NULL ? e->amount : 0);
        add(refunded, e->currency, e->refunded);
    }
    json_object_foreach(store.charges, name, latest)
    {
        json_t *captures = captures_of(store.entries[json_integer_value(latest)]);

        if (!is_brief)
            add(by_charge, name, (int64_t)json_array_size(captures));
        if (json_array_size(captures) > 1)
            (void)json_object_set(duplicates, name, captures);
        json_decref(captures);
    }
    call_answer(c, 200,
                json_pack("{s:I, s:o, s:I, s:o, s:I, s:o, s:o}", "captures",
                          (json_int_t)ct[INTENT], "captured", captured, "refunds",
                          (json_int_t)ct[REFUND], "refunded", refunded, "charges",
                          (json_int_t)json_object_size(by_charge), "by_charge_id",
                          by_charge, "duplicates", duplicates));
}

/* A line for each capture and each refund. */
static void run_journal(struct call *c)
{
    size_t size;
    FILE *lines = open_memstream(&c->text, &size);

    for (int64_t n = 1; lines != NULL && n <= store.ct; n++) {
        const struct entry *e = store.entries[n];
        json_t *document;

        if (e->kind != REFUND && (e->kind != INTENT || e->decline != NULL))
            continue;
        document = store_document(e);
        (void)json_dumpf(document, lines, JSON_COMPACT);
        (void)fputc('\n', lines);
        json_decref(document);
    }
    if (lines == NULL || fclose(lines) != 0)
        abort();
    c->status = 200;
}

static void run_calls(struct call *c)
{
    call_answer(c, 200,
                json_pack("{s:I, s:I, s:I, s:o}", "received",
                          (json_int_t)calls_received, "replayed",
                          (json_int_t)calls_replayed, "in_flight",
                          (json_int_t)calls_in_flight, "faults", fault_counts()));
}

/* All of it is set, or nothing; reset=1 first sets what holds without any option. */
static void run_behaviour(struct call *c)
{
    struct behaviour next = behaviour;
    char why[WHY_SIZE];
    const char *name;
    json_t *value;

    if (call_text(c, "reset") != NULL)
        fault_reset(&next);
    (void)json_object_del(c->form, "reset");
    json_object_foreach(c->form, name, value)
    {
        if (!fault_set(&next, name, json_string_value(value), why)) {
            call_refuse(c, 400, "invalid_request_error", NULL, why);
            return;
        }
    }
    behaviour = next;
    call_answer(c, 200, json_object());
}

static void run_clock(struct call *c)
{
    c->record = store_record(CLOCK, 200, c);
    (void)json_object_set_new(c->record, "amount",
                              json_integer(call_number(c, "seconds")));
}

void control_arrive(struct call *c)
{
    static const struct {
        bool is_post;
        const char *url;
        void (*run)(struct call *c);
    } paths[] = {
        {false, "/_/witness", run_witness}, {false, "/_/journal", run_journal},
        {false, "/_/calls", run_calls},     {true, "/_/behaviour", run_behaviour},
        {true, "/_/clock", run_clock},
    };

    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        if (paths[i].is_post == c->is_post && strcmp(paths[i].url, c->url) == 0)
            c->run = paths[i].run;
    }
    if (c->run == NULL)
        call_refuse(c, 404, "invalid_request_error", NULL, "There is no such path.");
    else if (c->is_bad_body || (c->run == run_clock && call_number(c, "seconds") == 0))
        call_refuse(c, 400, "invalid_request_error", NULL, "A form is expected.");
}
