/* tls_world: openssl by its program, so the tests need no header of it. */
#define _XOPEN_SOURCE 700
#include "tests/lib/tls_world.h"

struct fixture_redis tls_server;
int tls_port;
char tls_ca[64];

char tls_folder[48];

static bool shell(const char *format, ...) __attribute__((format(printf, 1, 2)));

static bool shell(const char *format, ...)
{
    char command[1024];
    va_list ap;

    va_start(ap, format);
    (void)vsnprintf(command, sizeof command, format, ap);
    va_end(ap);
    return system(command) == 0;
}

bool tls_is_possible(void)
{
    return shell("grep -qa tls-auth-clients \"$(command -v %s)\"",
                 fixture_redis_program()) &&
           shell("openssl version >/dev/null");
}

#define NEW_KEY                                                                        \
    "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 "

/* NAME.crt and NAME.key, made out to `to`, signed by our own authority. */
static void make_certificate(const char *name, const char *to)
{
    assert_true(
        shell("cd %s && " NEW_KEY "-CA ca.crt -CAkey ca.key -subj /CN=server "
              "-keyout %s.key -out %s.crt -addext subjectAltName=%s 2>>openssl.log",
              tls_folder, name, name, to));
}

static void start(struct fixture_redis *r,
                  int port,
                  const char *certificate,
                  const char *asks_clients)
{
    char text[8], crt[64], key[64];

    (void)snprintf(text, sizeof text, "%d", port);
    (void)snprintf(crt, sizeof crt, "%s/%s.crt", tls_folder, certificate);
    (void)snprintf(key, sizeof key, "%s/%s.key", tls_folder, certificate);
    fixture_redis_start(r, "--tls-port", text, "--tls-cert-file", crt, "--tls-key-file",
                        key, "--tls-ca-cert-file", tls_ca, "--tls-auth-clients",
                        asks_clients, NULL);
}

void tls_start(struct fixture_redis *r, int port, const char *certificate)
{
    start(r, port, certificate, "no");
}

void tls_start_asking(struct fixture_redis *r, int port)
{
    start(r, port, "good", "yes");
}

void tls_make_certificates(void)
{
    fixture_folder(tls_folder, sizeof tls_folder, "tls");
    (void)snprintf(tls_ca, sizeof tls_ca, "%s/ca.crt", tls_folder);
    assert_true(shell("cd %s && " NEW_KEY
                      "-subj /CN=ca -keyout ca.key -out ca.crt 2>openssl.log",
                      tls_folder));
    make_certificate("good", "DNS:localhost,IP:127.0.0.1");
    make_certificate("other", "DNS:other.example");
}

void tls_remove_certificates(void)
{
    fixture_remove(tls_folder, "openssl.log");
}

void tls_start_server(void)
{
    tls_make_certificates();
    tls_port = fixture_free_port();
    tls_start(&tls_server, tls_port, "good");
}

void tls_stop_server(void)
{
    fixture_redis_close(&tls_server);
    tls_remove_certificates();
}
