/* role_prefix: several shops in one PostgreSQL server, each with roles of its own, as
 * docs/operate.md has it, on a server that nobody has touched before. */
#include "tests/lib/private_pg.h"
#include "tests/lib/runs.h"
#include "tests/lib/typed.h"

#define USUAL "ledgerlock"

static struct private_pg postgres;
static struct fixture f;
static const char *const shops[] = {"shop_a", "shop_b", USUAL};

/* A role of one shop at the database of another. */
static void become(const char *prefix, const char *duty, const char *database)
{
    (void)snprintf(f.url, sizeof f.url, "postgresql:///%s?host=%s&user=%s_%s", database,
                   postgres.dir, prefix, duty);
}

/* The runs that follow have the setting; the usual one is no setting. */
static void set_prefix(const char *prefix)
{
    fixture_env("LEDGERLOCK_POSTGRES_ROLE_PREFIX",
                strcmp(prefix, USUAL) != 0 ? prefix : NULL);
}

static void as(const char *shop, const char *duty)
{
    set_prefix(shop);
    become(shop, duty, shop);
}

/* Statements of the superuser. */
static void superuser_does(const char *database, const char *sql)
{
    char url[FIXTURE_URL];

    (void)snprintf(url, sizeof url, "postgresql:///%s?host=%s&user=postgres", database,
                   postgres.dir);
    fixture_exec(url, sql);
}

/* The commands of a person who is superuser. */
static void superuser_types(const char *commands)
{
    typed("cd %s; export PGHOST=%s PGUSER=postgres; PATH=%.*s:$PATH; %s",
          getenv("LL_TEST_SOURCE"), postgres.dir,
          (int)(strrchr(fixture_program(), '/') - fixture_program()), fixture_program(),
          commands);
}

static void make_database(const char *shop, const char *prefix)
{
    char commands[400], option[80] = "";

    if (strcmp(prefix, USUAL) != 0)
        (void)snprintf(option, sizeof option, "-v prefix=%s", prefix);
    (void)snprintf(commands, sizeof commands,
                   "createdb -T template0 -E UTF8 %s; for time in first again; do psql "
                   "-X %s -d %s -f config/postgres/10-roles.sql; done",
                   shop, option, shop);
    superuser_types(commands);
}

/* A user whose month is due. */
static void fill(const char *shop)
{
    as(shop, "migrate");
    runs(&f, 0, "migrate");
    fixture_exec(f.url,
                 "SET search_path = ledgerlock; SELECT create_user('ann', 'USD');"
                 "SELECT subscribe(1, 'basic', 900, 'USD', 'month', 1, now(), 0, 's')");
}

static void open_all(void)
{
    fixture_need_servers();
    (void)snprintf(f.redis_url, sizeof f.redis_url, "%s", getenv("LL_TEST_REDIS"));
    (void)snprintf(f.prefix, sizeof f.prefix, "role_prefix_%ld:", (long)getpid());
    private_pg_fill(&postgres, PRIVATE_PG_INIT);
    for (size_t i = 0; i < sizeof shops / sizeof shops[0]; i++) {
        make_database(shops[i], shops[i]);
        fill(shops[i]);
    }
}

static void close_all(void)
{
    fixture_env("LEDGERLOCK_POSTGRES_ROLE_PREFIX", NULL);
    private_pg_close(&postgres);
}

GROUP(.start = open_all, .stop = close_all);

/* ---- each works ---- */

static const struct {
    const char *name;
} each[] = {{"shop_a"}, {"shop_b"}, {USUAL}};

static void assert_works(const char *shop)
{
    as(shop, "migrate");
    says(&f, 0, "schema is up to date", "migrate");
    as(shop, "worker");
    runs(&f, 0, "run --once");
    says(&f, 0, " invariants hold", "audit --sealed");
    says(&f, 0, " invariants hold", "audit --pooling transaction");
    says(&f, 0, " 0 failed", "doctor");
    as(shop, "reader");
    says(&f, 0, " invariants hold", "audit");
}

/* Guarantee: Several shops in one server, each with a `postgres.role_prefix` of its
 * own, are migrated, worked, audited and found sound, beside one with the usual roles.
 */
CASE_ROWS(shop_with_its_own_roles_works, each)
{
    char url[FIXTURE_URL];

    as(row->name, "cashier");
    fixture_exec(f.url, "SELECT ledgerlock.deposit(1, 'USD', 10000, 'first')");
    assert_works(row->name);
    (void)snprintf(url, sizeof url, "%s", f.url);
    assert_int_equal(fixture_query_int8(url, "SELECT count(*) FROM ledgerlock.charges"),
                     1);
    says(&f, 4, "`ledgerlock pause` is for members of ", "pause billing");
    fixture_assert_contains(strstr(said.err, "members of "), row->name);
}

/* ---- and is another ---- */

static const struct {
    const char *name;
} duties[] = {{"worker"},  {"shop"},   {"cashier"}, {"warehouse"},
              {"support"}, {"reader"}, {"migrate"}};

/* Guarantee: A role of one shop cannot connect to the database of another shop with a
 * `postgres.role_prefix` of its own. */
CASE_ROWS(role_of_one_shop_is_kept_out_of_another, duties)
{
    become("shop_a", row->name, "shop_b");
    set_prefix("shop_b");
    says(&f, 4, "permission denied for database", "status");
    become(USUAL, row->name, "shop_b");
    says(&f, 4, "permission denied for database", "status");
}

/* Guarantee: A cashier of one shop cannot deposit in another shop of the server,
 * even if let into its database. */
CASE(cashier_of_one_shop_cannot_deposit_in_another)
{
    char state[6];

    superuser_does("shop_b", "CREATE ROLE till LOGIN IN ROLE shop_a_cashier;"
                             "GRANT CONNECT ON DATABASE shop_b TO till");
    (void)snprintf(f.url, sizeof f.url, "postgresql:///shop_b?host=%s&user=till",
                   postgres.dir);
    assert_string_equal(
        fixture_sqlstate(f.url, "SELECT ledgerlock.deposit(1, 'USD', 1000000, 'k')",
                         state),
        "42501");
    superuser_does("shop_b", "REVOKE CONNECT ON DATABASE shop_b FROM till");
    (void)snprintf(f.url, sizeof f.url, "postgresql:///shop_a?host=%s&user=till",
                   postgres.dir);
    fixture_exec(f.url, "SELECT ledgerlock.deposit(1, 'USD', 1, 'k')");
}

/* ---- the wrong setting ---- */

static const struct {
    const char *name, *prefix;
} wrong[] = {{"forgotten", USUAL}, {"of_another_shop", "shop_b"}};

/* Guarantee: With the `postgres.role_prefix` of other roles `migrate` and `run` refuse
 * and give them no right, and an audit finds rights missing. */
CASE_ROWS(prefix_of_other_roles_is_refused_when_it_is, wrong)
{
    as("shop_a", "migrate");
    set_prefix(row->prefix);
    says(&f, 6, "LL-3114 the rights on schema ledgerlock are those of shop_a_worker",
         "migrate");
    become("shop_a", "worker", "shop_a");
    says(&f, 1, "schema_as_built", "audit");
    says(&f, 1, "schema_drift", "doctor");
    says(&f, 6, "set postgres.role_prefix to shop_a", "run --once");
    superuser_does("shop_a", "GRANT CONNECT ON DATABASE shop_a TO shop_b_worker");
    become("shop_b", "worker", "shop_a");
    says(&f, 6, "LL-3114 the rights on schema ledgerlock are those of shop_a_worker",
         "run --once");
    superuser_does("shop_a", "REVOKE CONNECT ON DATABASE shop_a FROM shop_b_worker");
    assert_works("shop_a");
}

static const struct {
    const char *name, *prefix;
} bad[] = {{"capitals", "Shop"}, {"a_digit_first", "1a"},
           {"a_quote", "a\\'b"}, {"postgres", "pg_shop"},
           {"nothing", ""},      {"too_long", "abcdefghijklmnopqrstuvwxyz12345"}};

CASE_ROWS(recipe_makes_no_roles_for_a_prefix_with, bad)
{
    char commands[300];

    (void)snprintf(commands, sizeof commands,
                   "psql -X -v prefix=%s -d postgres -f config/postgres/10-roles.sql "
                   "2>&1 | grep 'ERROR:  the prefix'",
                   row->prefix);
    superuser_types(commands);
}

/* ---- a shop that has the usual roles already ---- */

/* Guarantee: A shop with the usual roles moves to roles of its own by the recipe of
 * docs/operate.md; the usual ones have no right on it then, and the other shops of the
 * server go on. */
CASE(shop_moves_to_roles_of_its_own)
{
    make_database("moved", USUAL);
    set_prefix(USUAL);
    become(USUAL, "migrate", "moved");
    runs(&f, 0, "migrate");
    superuser_types(typed_block("docs/operate.md", "REASSIGN OWNED"));
    as("moved", "migrate");
    says(&f, 0, "gave the roles their rights", "migrate");
    assert_works("moved");
    become(USUAL, "reader", "moved");
    says(&f, 4, "permission denied for database", "status");
    assert_works(USUAL);
    assert_works("shop_a");
}
