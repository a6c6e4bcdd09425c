/* http: the page, metrics and health of a pool, served by a process beside its workers
 * (worker/pool/companion.h). For each database a thread reads the tables once a second,
 * and another makes a whole audit now and then; the document is made of what they found
 * and of the memory of the pool; the threads of libmicrohttpd answer from what is
 * there, so no client waits for a server, and no server for a client.
 *
 *   http.c     the threads, the end
 *   reading.c  what is read of a database, and its audits
 *   answers.c  one request: who may ask, and which answer it gets
 *   respond.c  an answer with the headers of every answer
 *   events.c   server-sent events: the document, each time it is new
 *   document.c the document: that, and what the memory of the pool says
 *   metrics.c  the same figures for Prometheus, and metrics_databases.c those of tables
 *   address.c  the socket at http.listen
 *   health.c   /livez and /readyz; asks Redis now and then
 */
#ifndef LEDGERLOCK_HTTP_H
#define LEDGERLOCK_HTTP_H

#include <jansson.h>
#include <microhttpd.h>
#include <pthread.h>
#include <stdbool.h>

#include "common/pg/pg.h"
#include "ops/http/companion_http.h"

enum { LISTENERS_MAX = 64 };

struct listener;

/* A database as it was read: of a cell, or the only one. */
struct reading {
    struct http *http;
    struct config config;    /* of the database; of a cell: config.cell */
    json_t *tables;          /* the part of the document that was read from tables */
    json_t *audit;           /* the last whole audit, as it was read with them */
    int64_t tables_ms;       /* when that was (clk_ms); 0: never */
    int64_t stale_ms;        /* they are read again before they are so old */
    char trouble[300];       /* why the tables could not be read; "" */
    bool is_cut;             /* from PostgreSQL: that is why */
    char audit_trouble[300]; /* why the last whole audit failed; "" */
};

struct http {
    const struct companion_order *order;
    struct MHD_Daemon *daemon;
    pthread_mutex_t mutex; /* of all below */
    char *document;        /* owned; NULL: none is there yet */
    size_t length;
    unsigned version;         /* rises with each document */
    struct reading *readings; /* one a cell, in the order of shared->cells; or one */
    size_t reading_ct;
    int64_t begun_ms;        /* the process (clk_ms) */
    int64_t redis_ms;        /* when Redis was asked last; 0: never */
    char redis_trouble[300]; /* why Redis grants no lock; "" */
    struct listener *listeners;
    size_t listener_ct;
    bool is_ending;
};

/* ---- the document ---- */

/* Puts the parts together into a new document; the mutex is held. */
char *document_compose(const struct http *h, size_t *length);

/* Takes the new one in the place of the one before, and tells who listens; the mutex is
 * held. */
void document_publish(struct http *h);

/* The last whole audit as of now: a new object, or null. The caller owns it; the mutex
 * is held. */
json_t *document_audit(const struct reading *r);

/* How a worker is: an enum slot_state, or one of these. A worker is silent that has not
 * come round for ten seconds and a lease longer than it meant to pause. */
enum { HEALTH_GONE = SLOT_STATES, HEALTH_SILENT, HEALTH_STATES };

unsigned health_of(const struct http *h, size_t slot);

/* Its name: "works". And if a worker that is so can work; and why it cannot, if that is
 * known; "". */
const char *health_name(unsigned health);
bool health_is_well(unsigned health);
const char *health_trouble(const struct http *h, size_t slot);

/* True while the tables were read in time, or may still be; while Redis answers this
 * process. */
bool health_is_read(const struct reading *r);
bool health_has_redis(const struct http *h);

/* How long after an audit the next one begins: its interval, and 200 times what the
 * last one took if that is longer, so audits take at most a 200th of the time. */
int64_t http_audit_pause_ms(int64_t every_ms, int64_t took_ms);

/* ---- threads, for the life of the process ---- */

/* Starts those that keep the readings, two for each: its tables, and its audits. False:
 * there is no memory. */
bool readings_start(struct http *h);

/* Keeps redis_trouble. */
void *ping_redis(void *arg);

/* ping_redis has asked for a lock: the nth failure in a row; 0: it got one. A
 * first failure may be a server that was slow once: the second one counts. */
void health_note_redis(struct http *h, int failures, const struct err *e);

/* ---- answers ---- */

/* Each writes one of the texts that can be asked for; the mutex is held. /metrics, in
 * the exposition format of Prometheus 0.0.4;
 * "ok", or the reasons against it, one a line: false, there are some. */
bool metrics_write(const struct http *h, FILE *out);
bool health_is_alive(const struct http *h, FILE *out);
bool health_is_ready(const struct http *h, FILE *out);

/* The head of a metric, and the gauges of all databases. */
void metrics_head(FILE *f, const char *name, const char *type, const char *help);
void metrics_databases(const struct http *h, FILE *f);

/* A response that sends each document as it comes; NULL: too many listen. */
struct MHD_Response *events_response(struct http *h, struct MHD_Connection *connection);

/* A new document is there, or the end has come; the mutex is held. */
void events_wake(struct http *h);

/* An answer of that type. Takes the response; NULL: out of memory. */
enum MHD_Result answer_with(struct MHD_Connection *connection,
                            unsigned status,
                            const char *type,
                            struct MHD_Response *response);

/* The type of plain text. */
extern const char answer_text[];

/* Words alone. */
enum MHD_Result
answer_words(struct MHD_Connection *connection, unsigned status, const char *words);

/* No words, but the methods that the path takes: of a button POST, of all else GET. */
enum MHD_Result
answer_methods(struct MHD_Connection *connection, unsigned status, bool may_post);

/* ---- answers.c ---- */

/* Why a request is refused: by its Host, unless that may be any, or since it is of a
 * page of strangers; NULL: it is not. hosts: names that are ours (http.hosts). */
const char *answer_refusal(struct MHD_Connection *connection,
                           const char *hosts,
                           bool is_for_any_host,
                           bool is_post);

/* Answers one request (MHD_AccessHandlerCallback). */
enum MHD_Result answer(void *cls,
                       struct MHD_Connection *connection,
                       const char *url,
                       const char *method,
                       const char *version,
                       const char *upload_data,
                       size_t *upload_data_size,
                       void **con_cls);

#endif
