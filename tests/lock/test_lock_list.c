/* The operator's view: what is held, and what is known of the dead. */
#include "tests/lib/play.h"

/* The listing, one line a lock. */
struct listing {
    size_t n;
    char text[4096];
};

static void note(const struct rlock_held *held, void *arg)
{
    struct listing *list = arg;
    size_t at = strlen(list->text);

    list->n++;
    if (at + 160 < sizeof list->text)
        (void)snprintf(list->text + at, sizeof list->text - at,
                       "%s=%s token=%s left=%s\n", held->name, held->holder,
                       held->token > 0 ? "yes" : "no",
                       held->left_ms < 0 ? "none" : "some");
}

static struct listing list_of(struct rlock_client *c)
{
    struct listing list = {0};

    assert_int_equal(rlock_list(c, note, &list), RLOCK_OK);
    return list;
}

LOCK_CASE(list_tells_holder_token_and_time_left)
{
    char nonce[RLOCK_NONCE_SIZE], line[160];

    rlock_set_nonce_copy(w->la, nonce);
    assert_int_equal(rlock_try(w->la, "user:1", 60000), RLOCK_OK);
    (void)snprintf(line, sizeof line, "user:1=%s token=yes left=some\n", nonce);
    assert_string_equal(list_of(w->b).text, line);
}

/* Guarantee: Locks of other clients are listed, too. */
LOCK_CASE(list_tells_foreign_locks_without_a_token)
{
    struct listing list;

    lock_raw_do(w, "SET lock:forever host-1:42");
    lock_raw_do(w, "SET lock:odd %b PX 60000", "a\0b\033[2J", (size_t)7);
    lock_raw_do(w, "SET lock:long %0100d PX 60000", 7);
    lock_raw_do(w, "HSET lock:hash owner somebody");
    lock_raw_do(w, "SET lock:near 0123456789abcdef0123456789abcdef|");
    list = list_of(w->a);
    assert_int_equal(list.n, 5);
    fixture_assert_contains(list.text, "forever=host-1:42 token=no left=none\n");
    fixture_assert_contains(list.text, "odd=a?b?[2J token=no left=some\n");
    fixture_assert_contains(list.text, "0... token=no left=some\n");
    fixture_assert_contains(list.text, "hash=(not a string) token=no left=none\n");
    fixture_assert_contains(list.text, "cdef| token=no left=none\n");
}

/* But for the key there are the token and the marks. */
PLAY_ONE(list_leaves_out_own_keys_and_other_prefixes,
         "redis SET other:1 x; redis SET {t x; a take k; b wait k 150: timeout; "
         "redis DBSIZE: 4; a list: 1");

LOCK_CASE(list_takes_a_prefix_literally)
{
    CLIENT *c = LOCK_OPEN(.url = lock_server.url, .prefix = "l*[o]c?k\\:");

    lock_raw_do(w, "SET %s x PX 60000", "l*[o]c?k\\:mine");
    lock_raw_do(w, "SET lXocYk:foreign x PX 60000");
    fixture_assert_contains(list_of(c).text, "mine=x");
    assert_int_equal(list_of(c).n, 1);
}

PLAY_ONE(list_of_thousands_is_complete,
         "a all k:0..999; a2 all l:0..999; a3 all m:0..999; b list: 3000-3100");

LOCK_CASE(list_of_a_server_that_is_not_there_is_unavailable)
{
    CLIENT *c = lock_client("unix:///nowhere/redis.sock", 0);
    struct listing list = {0};

    assert_int_equal(rlock_list(c, note, &list), RLOCK_E_UNAVAILABLE);
    assert_int_equal(lock_force_any(c, "x"), RLOCK_E_UNAVAILABLE);
}

/* ---- the dead ---- */

/* Guarantee: The nonce of a lock is left where others find it before anything is
 * sent. */
LOCK_CASE(nonce_is_there_before_anything_was_sent)
{
    LONE *l = rlock_new(lock_client("unix:///nowhere/redis.sock", 0));
    char first[RLOCK_NONCE_SIZE] = "", second[RLOCK_NONCE_SIZE] = "";

    rlock_set_nonce_copy(l, first);
    assert_int_equal(rlock_try(l, "a", 1000), RLOCK_E_UNAVAILABLE);
    rlock_set_nonce_copy(l, second);
    assert_int_equal(rlock_try(l, "a", 1000), RLOCK_E_UNAVAILABLE);
    assert_int_equal(strlen(first), RLOCK_NONCE_SIZE - 1);
    assert_string_not_equal(first, second);
}

static const struct {
    const char *name, *nonce;
} half_nonces[] = {{"nothing", ""},
                   {"four_digits", "0123"},
                   {"a_letter", "0123456789abcdef0123456789abcdeX"},
                   {"one_digit_too_many", "0123456789abcdef0123456789abcdef0"}};

CASE_ROWS_IN(lock_group, struct lock_world, half_a_nonce_frees_nothing, half_nonces)
{
    const struct rlock_key key = {"a", 1};
    size_t freed = 9;

    lock_raw_do(w, "SET lock:a |5");
    assert_int_equal(rlock_release_dead(w->a, row->nonce, &key, 1, &freed),
                     RLOCK_E_INVAL);
    assert_int_equal(freed, 0);
    assert_int_equal(lock_raw_integer(w, "EXISTS lock:a"), 1);
}
