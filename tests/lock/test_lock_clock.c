/* A server's clock jumps, or the client's, or the client's machine sleeps: what the
 * lock then still promises, on one server and where it is one node of three. */
#include "tests/lib/play_inside.h"

/* ---- the server's clock jumps ahead ---- */

/* The holder cannot know by itself; the server tells it at the next question. */
/* Guarantee: A server's clock that jumps ahead ends leases early; the holder finds
 * out when it asks, and tokens rise. */
PLAY_ONE(clock_jump_server_forward,
         "b connect; a take k; clock 3600000; copies k: 0; a valid 20000; b take k; "
         "a verify: lost; a invalid; a release: not_owner; b verify left: 1-60000");

/* Guarantee: An extend after the server's clock jumped ahead is told that the lock
 * is lost. */
PLAY_ONE(clock_jump_server_forward_extend_says_lost,
         "a take k; clock 3600000; a extend: lost; a invalid; copies k: 0");

/* Guarantee: A release after the server's clock jumped ahead is told that the lock
 * is gone. */
PLAY_NODES(clock_jump_server_forward_release_says_gone,
           "a take k; clock 3600000; a release: gone");

/* A jump between two commands of a renewal's script lengthens the key past the jump, so
 * the clock jumps twice. */
/* Guarantee: The renewer tells of a lock that the server's clock ended early. */
PLAY_NODES(clock_jump_server_forward_renewer_tells_the_loss,
           "a take k; a renew 50; clock 3600000; rest 20; clock 3600000; a loss: lost; "
           "a losses: 1");

/* Every command carries a time after which the server refuses it, so each connection
 * has to notice that the clock moved, and must not say "busy" or "lost" for it. */
/* Guarantee: A jump of the server's clock that is shorter than the lease keeps the
 * lock. */
PLAY_ONE(clock_jump_server_forward_within_the_lease_keeps_the_lock,
         "b connect; a take k; a renew 50; a renewed 1; clock 30000; b try k: busy; "
         "b try other; a renewed 2; ttl k: 40000-60000; a losses: 0; a release");

/* ---- the server's clock jumps back ---- */

/* Our end of the lease does not move; the server's does. */
/* Guarantee: A server's clock that jumps back gives no token twice. */
PLAY_NODES(clock_jump_server_back,
           "b connect; a take k 2000; clock -3600000; await a invalid; b try k: busy; "
           "b busy 0: 3000000-3700000; a release; await b try k 2000");

/* The limit of the promise: nothing is left that knows the old tokens but the rows. */
/* Guarantee: After its clock was set back and its data were lost a server gives lower
 * tokens, until the floor is raised to a token that was refused. */
PLAY_CASE(play_on_one, clock_set_back_and_data_lost_give_lower_tokens_up_to_the_floor)
{
    int64_t before;

    play("b connect; a take k; redis FLUSHALL; clock -3600000; a release: gone");
    before = rlock_token(play_lock("a"));
    playing.last_token = 0;
    play("b take k; b release");
    assert_true(rlock_token(play_lock("b")) < before);
    assert_int_equal(rlock_raise_floor(play_client("b"), before), RLOCK_OK);
    playing.last_token = before;
    play("b take k; b release");
}

/* Its holder died: nobody releases it for an hour, but an operator can. */
/* Guarantee: A key that nobody releases stays for as long as the server's clock
 * jumped back; it can be listed and freed by hand. */
PLAY_NODES(clock_jump_server_back_leftover_can_be_forced,
           "a take k 2000; a abandon; clock -3600000; rest 2000; b try k: busy; "
           "b list: 1-3; b force k; await b try k");

/* A connection compares the clocks when it is made. A clock that went back since would
 * let a command run an hour after its time. */
/* Guarantee: An acquire that runs late after the server's clock jumped back grants
 * nothing. */
PLAY_ONE(clock_jump_server_back_late_command_grants_nothing,
         "a limits 1000; a take first; a release; redis CONFIG RESETSTAT; "
         "clock -3600000; a stopped_try k: uncertain; rest 2000; server cont; "
         "await calls evalsha: 1-9; copies k: 0");

/* The connection of the renewer knows the clock of before. */
/* Guarantee: A renewal that runs late after the server's clock jumped back lengthens
 * nothing. */
PLAY_ONE(clock_jump_server_back_late_renewal_lengthens_nothing,
         "a take old; a renew 50; a renewed 1; clock -3600000; a release; "
         "a2 take k 4000; a2 renew; server stop; a2 loss: fault|gone; server cont; "
         "redis PTTL @k: -2-2000");

/* The clock goes back while the server keeps the waiter in a blocked pop, which then
 * lasts an hour longer by that clock. */
#define UNDER_A_WAITER "await blocked: 1; clock -3600000; rest 600; blocked: 1"

/* Guarantee: A waiter ends in time though the server's clock jumped back. */
PLAY_ONE(clock_jump_server_back_waiter_ends_in_time,
         "a take k; b begin k 4000; " UNDER_A_WAITER "; b end: timeout|uncertain");

PLAY_ONE(clock_jump_server_back_release_wakes_the_waiter,
         "a take k; b begin k 60000; " UNDER_A_WAITER "; a release; b end");

/* A waiter that nobody wakes, as where another client deletes the key, gives the pop up
 * when its answer is overdue, and asks. */
PLAY_ONE(clock_jump_server_back_waiter_sees_a_key_that_is_free,
         "a take k; b limits 3000; b begin k 60000; " UNDER_A_WAITER "; del k; b end");

/* ---- one node of three ---- */

/* The node forgets the key early; the two others have it, and what it grants is given
 * back. Afterwards it votes, by its new clock. */
PLAY_QUORUM(clock_jump_quorum_node_forward,
            "a take k; clock1 3600000; copies k: 2; b try k: busy; copies k: 2; "
            "a extend; a release; b take other; b release; c take other; c release; "
            "b take k");

/* The node keeps the key too long: it costs its vote, not the lock. */
PLAY_QUORUM(clock_jump_quorum_node_back,
            "a take k; clock1 -3600000; boot 61000; clock0 61000; clock2 61000; "
            "a invalid; copies k: 1; "
            "redis1 PTTL @k: 3000000-3700000; await b try k; a release: not_owner; "
            "copies k: 2; b release; c take k; c release; b take k");

/* A clock that went back does not make a late command look timely. */
PLAY_QUORUM(clock_jump_quorum_node_back_late_command_grants_nothing,
            "b take first; b release; redis0 CONFIG RESETSTAT; clock0 -3600000; "
            "server0 stop; b try k; rest 500; server0 cont; await calls evalsha: 1-9; "
            "redis0 EXISTS @k: 0; copies k: 2");

/* Two locks that share only the node that jumped: both are granted, and the last token
 * of that node puts the later one above the earlier one, whatever the clocks say. So
 * the fence decides between the two holders. */
PLAY_QUORUM(clock_jump_quorum_shared_node_forward,
            "redis0 SET @!last 4000000000000000; redis1 SET @!last 4000000000000003; "
            "redis2 SET @!last 4000000000000002; proxy2 refuse; await p try k; "
            "copies k: 2; clock1 3600000; await b try k; copies k: 3; p valid; "
            "proxy2 welcome; await p extend: lost; p invalid; b extend");

/* A node that restarted grants nothing until the leases of before are over, by its own
 * clock: where that jumps as well, the wait is cut short, and tokens rise all the same.
 */
PLAY_FRESH_QUORUM(clock_jump_quorum_wait_is_cut_short,
                  "proxy2 refuse; await p try k; server1 kill; server1 start; "
                  "b try k: busy|no_quorum; clock1 3600000; await b try k");

/* ---- the client's clocks ---- */

/* Connections are made by the wrong clock, too. */
/* Guarantee: The caller's wall clock may jump: leases follow the boot clock. */
PLAY_NODES(clock_jump_client_wall,
           "a take k; b take short 2000; wall 3600000; a valid 20000; a invalid 60000; "
           "await b invalid; a verify; a extend; b wait k 400: timeout; a release; "
           "a disconnect; a take k; a valid 20000; wall -7200000; a valid 20000; "
           "a invalid 60000; a verify; a extend; b wait k 400: timeout; a release; "
           "a disconnect; a take k; b take short 2000; await b invalid; a release; "
           "wall 3600000; a take k");

/* Guarantee: Renewal goes on though the caller's wall clock jumps. */
PLAY_NODES(clock_jump_client_wall_renewal_goes_on,
           "a take k; a renew 300; wall 3600000; a renewed 3; wall -7200000; "
           "a renewed 3; a losses: 0; a valid; a release");

/* The machine of the client sleeps: its clock since boot goes on and the one that only
 * counts waking time does not; everybody else's time passes. */
#define SLEEP "boot 61000; clock 61000"

/* The client finds out at once, without asking anybody. */
/* Guarantee: A machine that slept finds its leases over. */
PLAY_NODES(clock_jump_suspend,
           "a take k; a valid 20000; " SLEEP "; a invalid; b take k; "
           "a release: not_owner");

/* Not renewed behind the caller's back: where a renewal is on its way meanwhile, the
 * server tells it of the loss, or its answer counts as one that never came. */
/* Guarantee: The renewer tells of leases that ran out while the machine slept. */
PLAY_NODES(clock_jump_suspend_renewer_tells_the_loss,
           "a take k; a renew 100 0 120000; " SLEEP "; a invalid; "
           "a loss: gone|lost|fault; copies k: 0");

/* The clock that ends a call is asked in the middle of it, too: poll itself counts only
 * waking time. */
/* Guarantee: A call ends by its limits though the machine slept in the middle of it. */
PLAY_CASE(play_on_one, clock_jump_suspend_during_a_call_ends_it)
{
    int64_t began_ms;

    (void)w;
    play("a limits 120000; a connect; server stop; a begin k 600000; rest 500");
    began_ms = quorum_now_ms();
    play("boot 900000; a end: fault|timeout; server cont");
    promise_true(quorum_now_ms() - began_ms < 30000);
}
