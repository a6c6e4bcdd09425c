/* play_cluster: the place "in a cluster", and what steps do to the slot of a case. */
#include "tests/lib/play_cluster.h"

struct play_cluster play_cluster;

/* Keys are asked for where they are now. */
static void follow(size_t owner)
{
    struct quorum_world *w = playing.w;

    if (w->raw[0] != NULL)
        redisFree(w->raw[0]);
    play_cluster.owner = owner;
    w->raw[0] = lock_raw_connection(play_cluster.w.servers[owner].redis.url);
}

size_t play_cluster_next(void)
{
    return (play_cluster.owner + 1) % CLUSTER_PRIMARIES;
}

struct play_answer play_slot(const struct play_step *s)
{
    struct cluster_world *w = &play_cluster.w;
    const char *what = play_word(s, 1);
    int slot = play_cluster.slot;
    size_t from = play_cluster.owner, to = play_cluster_next(),
           replica = from + CLUSTER_PRIMARIES;

    if (strcmp(what, "begin") == 0) {
        cluster_begin_move(w, slot, from, to);
    } else if (strcmp(what, "keys") == 0) {
        cluster_move_keys(w, slot, from, to, 1);
    } else if (strcmp(what, "some") == 0) {
        cluster_move_keys(w, slot, from, to, 2);
    } else if (strcmp(what, "end") == 0) {
        cluster_end_move(w, slot, from, to);
        follow(to);
    } else if (strcmp(what, "hand_over") == 0) {
        assert_true(cluster_ask(w, replica, "CLUSTER FAILOVER") != -2);
        assert_int_equal(cluster_wait_owner(w, slot, from), replica);
        follow(replica);
    } else if (strcmp(what, "kill") == 0) {
        cluster_kill(w, from);
    } else if (strcmp(what, "kill_replica") == 0) {
        cluster_kill(w, replica);
    } else if (strcmp(what, "follow") == 0) {
        follow(cluster_wait_owner(w, slot, from));
    } else {
        fail_msg("\"%s\": what is to happen to the slot?", s->text);
    }
    return play_nothing();
}

/* ---- the place ---- */

static void start_cluster(void)
{
    cluster_open(&play_cluster.w);
}

static void stop_cluster(void)
{
    cluster_close(&play_cluster.w);
}

static void open_case(void)
{
    static struct quorum_world w;

    memset(&w, 0, sizeof w);
    play_begin(&w);
    w.n = 1;
    (void)snprintf(w.plain_url, sizeof w.plain_url, "%s", play_cluster.w.url);
    play_cluster.slot = cluster_slot(&play_cluster.w, w.prefix);
    follow(cluster_owner(&play_cluster.w, play_cluster.slot));
}

static void close_case(void)
{
    play_end_calls();
    redisFree(playing.w->raw[0]);
}

static void open_fresh(void)
{
    memset(&play_cluster, 0, sizeof play_cluster);
    start_cluster();
    open_case();
}

static void close_fresh(void)
{
    close_case();
    stop_cluster();
}

const struct test_group play_in_cluster = {.start = start_cluster,
                                           .stop = stop_cluster,
                                           .open = open_case,
                                           .close = close_case};
const struct test_group play_in_fresh_cluster = {.open = open_fresh,
                                                 .close = close_fresh};
