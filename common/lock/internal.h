/* internal: what the files of the lock library share. Not installed. */
#ifndef LEDGERLOCK_LOCK_INTERNAL_H
#define LEDGERLOCK_LOCK_INTERNAL_H

#include <sys/types.h>

#include "common/lock/lock.h"
#include "lua_gen.h"

struct redisContext;
struct redisReply;

enum { LL_IDENT_MAX = 96, LL_ERROR_MAX = 256, LL_NONCE_HEX = 32 };

struct ll_client {
    char *host; /* host name, or path when is_unix */
    char *user;
    char *password;
    char prefix[LL_PREFIX_MAX + 1];
    size_t prefix_len;
    int port;
    int db;
    bool is_unix;
    int64_t connect_ms;
    int64_t reply_ms;
    pid_t owner;
    struct redisContext *conn;
    char ident[LL_IDENT_MAX]; /* run id and replication id of the server */
    int64_t server_ahead_ms;  /* server wall clock minus local boot clock */
    char sha[LUA_COUNT][41];  /* as answered by SCRIPT LOAD on this connection */
    char error[LL_ERROR_MAX];
};

struct ll_slot {
    int code;
    int64_t busy_ms;
};

struct ll_lock {
    struct ll_client *client;
    char nonce[LL_NONCE_HEX + 1];
    char mark[LL_NONCE_HEX + 2]; /* "nonce|": a value that begins with it is ours */
    int64_t token;
    int64_t deadline_ms; /* local boot clock, drift taken off */
    size_t n;
    size_t granted;
    bool released;
    bool uncertain; /* asked for, no answer: may be held */
    int release_code;
    char *names; /* prefixed names, one after the other */
    size_t names_size;
    size_t slot_size;
    size_t *offsets; /* slot_size + 1 */
    struct ll_slot *slots;
    const char **argv; /* slot_size + 10: a command over all keys */
    size_t *lens;
};

/* Milliseconds since boot. */
int64_t ll_now_ms(void);

/* Sets the client's error text and returns code. */
int ll_fail(struct ll_client *c, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Code of an error reply, with its text kept. */
int ll_reply_code(struct ll_client *c, const struct redisReply *reply);

/* One command and its reply before the deadline. On any I/O error or late answer the
 * connection is thrown away (its next bytes would answer the wrong question) and the
 * code is LL_E_UNCERTAIN if anything may have reached the server, else
 * LL_E_UNAVAILABLE. Error replies are handed over like any other. Caller frees *reply.
 */
int ll_command(struct ll_client *c,
               int argc,
               const char **argv,
               const size_t *lens,
               int64_t deadline_ms,
               struct redisReply **reply);

/* Runs a script by its hash, loading it once if the server forgot it. The caller fills
 * argv and lens from index 3 on: keys, then arguments; argc counts the first three too.
 */
int ll_script(struct ll_client *c,
              enum lua_id id,
              int keys,
              int argc,
              const char **argv,
              size_t *lens,
              struct redisReply **reply);

/* Makes room for n keys in the lock. LL_OK or LL_E_NOMEM. */
int ll_lock_reserve(struct ll_lock *l, size_t n, size_t name_bytes);

#endif
