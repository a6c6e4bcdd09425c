/* gateway_tls: a gateway that speaks TLS, by certificates made on the spot. */
#include "tests/lib/cards.h"
#include "tests/lib/tls_world.h"

static const char *lacks(void)
{
    return tls_is_possible() ? NULL : "openssl is not installed";
}

static void open(void)
{
    tls_make_certificates();
    (void)setenv("CURL_CA_BUNDLE", tls_ca,
                 1); /* the curl of this test alone reads it */
    cards_open();
}

static void close_all(void)
{
    cards_close();
    tls_remove_certificates();
}

static const struct world_plan world_plan = {.lease_ms = 3000, .points = true};
GROUP(.missing = lacks,
      .plan = &world_plan,
      .open = open,
      .end = world_end,
      .close = close_all);

static void speaks_tls(const char *certificate)
{
    char option[96];

    (void)gateway_stop(SIGKILL);
    (void)snprintf(option, sizeof option, "--tls %s/%s", tls_folder, certificate);
    gateway_again(option);
    (void)gateway_use();
}

static const struct {
    const char *name, *certificate;
    bool is_known; /* the authority */
} certificates[] = {
    {"is_of_another_host", "other", true},
    {"is_signed_by_nobody_known", "good", false},
};

/* Guarantee: A gateway whose certificate is not its own is told no key and no payment;
 * with the right one the payment is made once. */
CASE_ROWS(nothing_is_sent_where_the_certificate, certificates)
{
    cards_users(1, 1);
    cards_periods(1);
    speaks_tls(row->certificate);
    fixture_env("LEDGERLOCK_GATEWAY_TLS_CA", row->is_known ? tls_ca : "");
    pool_start("run");
    world_wait("SELECT count(*) = 1 FROM ledgerlock.payments WHERE state = 'planned'"
               " AND calls = 0 AND reason LIKE '%%SSL%%certificate%%'");
    pool_stop();
    speaks_tls("good");
    fixture_env("LEDGERLOCK_GATEWAY_TLS_CA", tls_ca);
    promise_int_equal(gateway_captures(), 0);
    world_says(0, "1 captured", "run --once");
    cards_agree(1, 0);
}
