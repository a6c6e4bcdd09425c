/* A Redis under CLIENT PAUSE answers nobody for longer than a client waits: that is a
 * fault, never busy, and nothing is granted when the pause is over. */
#include "tests/lib/play.h"

/* Guarantee: A server under CLIENT PAUSE leaves an acquire uncertain and nothing
 * behind. */
PLAY_ONE(client_pause_is_uncertain_and_leaves_nothing,
         "a limits 500; a take first; a release; redis CLIENT PAUSE 60000 WRITE; "
         "a try k: uncertain; a try k: fault; redis CLIENT UNPAUSE; rest 1000; "
         "copies k: 0; await a try k; a release");

/* The server is not even asked where it was not looked at for a second. */
PLAY_ONE(client_pause_of_all_leaves_nothing,
         "a limits 500; a take first; a release; redis CLIENT PAUSE 4000 ALL; "
         "a try k: uncertain|unavailable; redis SET @!probe 1; rest 1000; copies k: 0; "
         "await a try k");

/* A proxy keeps the connection that the client gave up, so the server, which has the
 * command already, runs it when the pause is over. */
PLAY_ONE(client_pause_command_that_runs_late_grants_nothing,
         "p limits 500; p take first; p release; redis CONFIG RESETSTAT; "
         "redis CLIENT PAUSE 60000 WRITE; p begin k 1500; await blocked: 1; "
         "proxy swallow; p end: fault; redis CLIENT UNPAUSE; await calls evalsha: 1-9; "
         "copies k: 0; b take k");

PLAY_ONE(client_pause_shorter_than_the_answer_time_is_not_seen,
         "a connect; redis CLIENT PAUSE 300 ALL; a try k; redis CLIENT PAUSE 300 ALL; "
         "a release");

/* Guarantee: A pause beyond the lease ends it, and the holder learns. */
PLAY_ONE(client_pause_beyond_the_lease_ends_the_hold,
         "a take k 1000; redis CLIENT PAUSE 2000 ALL; redis SET @!probe 1; a invalid; "
         "b take k; a release: not_owner");
