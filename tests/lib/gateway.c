/* gateway: the stand-in payment gateway, started, and asked by curl. */
#define _POSIX_C_SOURCE 200809L /* popen, mkdtemp */
#include "tests/lib/gateway.h"

#include <inttypes.h>
#include <time.h>

#include "tests/lib/fixture.h"
#include "tests/testkit/clock_shim.h"

static char dir[128];
char gateway_said[GATEWAY_SAID];
int gateway_code;
static pid_t gateway;
static int port;

/* ---- commands ---- */

__attribute__((format(printf, 1, 2))) void gateway_run(const char *format, ...)
{
    char command[4096] = "set -o pipefail; cd $GATEWAY_DIR; ";
    size_t at = strlen(command), n;
    va_list ap;
    FILE *pipe;

    va_start(ap, format);
    assert_in_range(vsnprintf(command + at, sizeof command - at, format, ap), 0,
                    sizeof command - at - 1);
    va_end(ap);
    (void)setenv("COMMAND", command, 1);
    pipe = popen("exec bash -c \"$COMMAND\"", "r");
    assert_non_null(pipe);
    n = fread(gateway_said, 1, sizeof gateway_said - 1, pipe);
    gateway_said[n] = '\0';
    gateway_code = WEXITSTATUS(pclose(pipe));
}

void gateway_shows(const char *part)
{
    if (strstr(gateway_said, part) == NULL)
        fail_msg("%s is not in: %s", part, gateway_said);
}

void gateway_start(const char *options)
{
    bool is_limited = strncmp(options, "ulimit", 6) == 0;
    char command[512];

    (void)snprintf(
        command, sizeof command,
        "%s exec " GATEWAY_PROGRAM
        " --journal $GATEWAY_DIR/journal --listen 127.0.0.1:0 %s 2>$GATEWAY_DIR/errors",
        is_limited ? options : "", is_limited ? "" : options);
    gateway_start_as(command);
}

void gateway_start_as(const char *command)
{
    char line[128] = "", url[64];
    int fds[2];

    assert_int_equal(pipe(fds), 0);
    gateway = fork();
    if (gateway == 0) {
        (void)dup2(fds[1], 1);
        (void)close(fds[0]);
        (void)close(fds[1]);
        (void)execl("/bin/bash", "bash", "-c", command, (char *)NULL);
        _exit(127);
    }
    (void)close(fds[1]);
    for (size_t n = 0; n < sizeof line - 1 && strchr(line, '\n') == NULL; n++)
        assert_int_equal(read(fds[0], line + n, 1), 1);
    (void)close(fds[0]);
    assert_int_equal(sscanf(line, "listening on %63s", url), 1);
    assert_int_equal(sscanf(strrchr(url, ':'), ":%d", &port), 1);
    (void)setenv("U", url, 1);
}

void gateway_again(const char *options)
{
    char more[512];

    (void)snprintf(more, sizeof more, "--listen 127.0.0.1:%d %s", port, options);
    gateway_start(more);
}

void gateway_again_at(int64_t ms)
{
    char text[24];

    (void)snprintf(text, sizeof text, "%" PRId64, ms);
    (void)setenv(CLOCK_SHIM_WALL_MS, text, 1);
    (void)setenv("LD_PRELOAD", CLOCK_SHIM, 1);
    gateway_again("");
    (void)unsetenv("LD_PRELOAD");
    (void)unsetenv(CLOCK_SHIM_WALL_MS);
}

int gateway_stop(int signal_number)
{
    int status = 0;

    if (gateway <= 0)
        return -1;
    (void)kill(gateway, signal_number);
    assert_int_equal(waitpid(gateway, &status, 0), gateway);
    gateway = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void open_folder(void)
{
    const char *base = getenv("TMPDIR");

    (void)snprintf(dir, sizeof dir, "%s/gateway-XXXXXX", base != NULL ? base : "/tmp");
    assert_non_null(mkdtemp(dir));
    (void)setenv("GATEWAY_DIR", dir, 1);
    (void)setenv("AUTH", "Authorization: Bearer sk_test_1", 1);
}

void gateway_open(void)
{
    open_folder();
    (void)setenv("FORM", "currency=usd&customer=cus_1&payment_method=pm_1&confirm=true",
                 1);
    gateway_start("");
}

void gateway_open_as(const char *command)
{
    open_folder();
    gateway_start_as(command);
}

void gateway_close(void)
{
    (void)gateway_stop(SIGKILL);
    gateway_run("rm -rf $GATEWAY_DIR");
}

const char *gateway_use(void)
{
    static char key_file[256];

    fixture_file(key_file, sizeof key_file, "sk_test_1\n", 0600);
    fixture_env("LEDGERLOCK_GATEWAY_URL", getenv("U"));
    fixture_env("LEDGERLOCK_GATEWAY_KEY_FILE", key_file);
    return key_file;
}

void gateway_attempts(const char *url)
{
    fixture_exec(
        url,
        "INSERT INTO ledgerlock.payments (kind, source, leg, attempt_no, user_id, source_at,"
        " amount_minor, currency, customer, method, state, calls, first_sent_at,"
        " asked_at, due_at, planned_fence, fence, worker, at) SELECT 'charge', 1000 +"
        " row_number() OVER (), 0, 1, 1, now(), 100, 'USD', 'cus_1', 'pm_1', state,"
        " (state <> 'planned')::int, CASE WHEN state <> 'planned' THEN now() - interval"
        " '1 hour' END, now(), now() + interval '10 min', 1, 1, 'w', now() FROM (VALUES"
        " ('planned', 1), ('sent', 2), ('unknown', 3), ('parked', 4)) AS v (state, n),"
        " generate_series(1, n)");
}

/* ---- calls ---- */

void gateway_pay(const char *key)
{
    gateway_run(GATEWAY_PAY "| head -c 20000", key);
}

void gateway_get(const char *path)
{
    gateway_run("curl -sig -H \"$AUTH\" \"$U%s\"", path);
}

void gateway_post(const char *path, const char *form)
{
    gateway_run("curl -sig -H \"$AUTH\" \"$U%s\" -d \"%s\"", path, form);
}

void gateway_behaves(const char *form)
{
    gateway_post("/_/behaviour", form);
    gateway_shows("200 OK");
}

long gateway_number(const char *path, const char *name)
{
    char between[64];
    const char *at;

    gateway_get(path);
    (void)snprintf(between, sizeof between, "\"%s\":", name);
    at = strstr(gateway_said, between);
    if (at == NULL)
        fail_msg("%s is not in: %s", name, gateway_said);
    return strtol(at + strlen(between), NULL, 10);
}

long gateway_captures(void)
{
    return gateway_number("/_/witness", "captures");
}

void gateway_wait(const char *path, const char *name, long n)
{
    static const struct timespec pause = {0, 20000000};

    for (int i = 0; i < 3000 && gateway_number(path, name) != n; i++)
        (void)nanosleep(&pause, NULL);
    assert_int_equal(gateway_number(path, name), n);
}
