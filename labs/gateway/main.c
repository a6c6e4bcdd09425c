/* main: the program ledgerlock_gateway, a stand-in payment gateway for tests. */
#define _GNU_SOURCE
#include "labs/gateway/gateway.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { EXIT_USAGE = 2 };

static char address[64] = "127.0.0.1";
static unsigned port = 12111;
static const char *tls; /* NULL: none */
static volatile sig_atomic_t is_stopped;

static const char help[] =
    "Usage: ledgerlock_gateway --journal FILE [--listen ADDRESS:PORT] [--api-key KEY] [--seed N]\n"
    "                          [--tls PATH] [--fault NAME=VALUE]...\n"
    "\n"
    "A stand-in payment gateway in the form of Stripe v1, for tests. No card is charged.\n"
    "\n"
    "  --journal   what was charged is kept in this file; a restart reads it\n"
    "  --listen    where it listens (127.0.0.1:12111); port 0: a free one, which is printed\n"
    "  --api-key   the only key that is let in; else any that begins with sk_test_\n"
    "  --tls       speaks TLS, by the certificate PATH.crt and its key PATH.key\n"
    "  --seed      from which all faults and latencies are drawn (1)\n"
    "  --fault     a fault with a rate from 0 to 1, or next:N for the next N calls; or a number\n"
    "\n"
    "Customers that are declined, by the begin of their id: cus_declines_soft (insufficient_funds),\n"
    "cus_declines_hard (stolen_card), cus_declines_as_CODE (this decline_code), and\n"
    "cus_declines_twice_then_pays (twice for each metadata[charge_id]).\n"
    "\n"
    "Control: POST /_/behaviour (NAME=VALUE&..., reset=1), /_/clock (seconds=N: moves the simulated\n"
    "time); GET /_/witness (brief=1), /_/journal, /_/calls.\n"
    "\n"
    "Faults:\n";

static void stop(int signal_number)
{
    (void)signal_number;
    is_stopped = 1;
}

static void usage(const char *option, const char *why)
{
    (void)fprintf(stderr, "ledgerlock_gateway: %s: %s; see --help\n", option, why);
    exit(EXIT_USAGE);
}

static bool
read_number(const char *text, unsigned long long most, unsigned long long *n)
{
    char *end;

    *n = strtoull(text, &end, 10);
    return *text >= '0' && *text <= '9' && *end == '\0' && *n <= most;
}

static void set_address(const char *text)
{
    const char *colon = strrchr(text, ':');
    unsigned long long n;

    if (colon == NULL || !read_number(colon + 1, 65535, &n))
        usage("--listen", "ADDRESS:PORT is expected");
    (void)snprintf(address, sizeof address, "%.*s", (int)(colon - text), text);
    port = (unsigned)n;
}

static void set_fault(char *text)
{
    char *value = strchr(text, '='), why[WHY_SIZE];

    if (value == NULL)
        usage("--fault", "NAME=VALUE is expected");
    *value++ = '\0';
    if (!fault_set(&behaviour, text, value, why))
        usage("--fault", why);
}

static void set(const char *option, char *value, const char **journal)
{
    unsigned long long seed;

    if (value == NULL) {
        usage(option, "there is no such option, or its value is missing");
    } else if (strcmp(option, "--journal") == 0) {
        *journal = value;
    } else if (strcmp(option, "--listen") == 0) {
        set_address(value);
    } else if (strcmp(option, "--fault") == 0) {
        set_fault(value);
    } else if (strcmp(option, "--api-key") == 0) {
        if (strncmp(value, "sk_test_", 8) != 0)
            usage(option, "a key begins with sk_test_");
        api_key = value;
    } else if (strcmp(option, "--tls") == 0) {
        tls = value;
    } else if (strcmp(option, "--seed") == 0) {
        if (!read_number(value, UINT64_MAX, &seed))
            usage(option, "a whole number is expected");
        fault_seed(seed);
    } else {
        usage(option, "there is no such option");
    }
}

int main(int argc, char **argv)
{
    const struct sigaction action = {.sa_handler = stop};
    const char *journal = NULL;
    struct rlimit files;
    char why[WHY_SIZE];

    fault_seed(1);
    fault_reset(&behaviour);
    if (argc > 1 && strcmp(argv[1], "--help") == 0) {
        (void)fputs(help, stdout);
        fault_print_help();
        return 0;
    }
    for (int i = 1; i < argc; i += 2)
        set(argv[i], argv[i + 1], &journal);
    if (journal == NULL)
        usage("--journal", "a file is needed");
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGXFSZ, SIG_IGN); /* a file that may not grow is a full disk */
    (void)sigaction(SIGTERM, &action, NULL);
    (void)sigaction(SIGINT, &action, NULL);
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &files);
    }
    if (!journal_open(journal, why) || !http_start(address, &port, tls, why)) {
        (void)fprintf(stderr, "ledgerlock_gateway: %s\n", why);
        return 1;
    }
    (void)printf("listening on http%s://%s:%u\n", tls != NULL ? "s" : "", address,
                 port);
    (void)fflush(stdout);
    loop_run(&is_stopped);
    return 0;
}
