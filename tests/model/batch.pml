/* A batch on one server: an acquire takes those of two keys that are free, all with one token, in one script. Keys of
 * two batches cross, so one key of a batch may be given back and given away while the other is still held.
 *
 * Covered: every order of the steps, requests that run any number of times, lost answers, acquires that stop anywhere.
 * Bounds: two keys, three acquires, TOKENS different tokens. Proposals are last + 1: with one counter and one server
 * any others are in the same order.
 *
 * Checked when a client hears its grant, for each key of it: no other client counts on that key, and the token is
 * higher than that of every lock on that key before.
 *
 * A repeat answers with the keys that carry its nonce and takes no others. Wrong on purpose: TAKES_MORE (it takes what
 * became free meanwhile, with the token that it has). */
#define ACQUIRES 3
#define TOKENS 8
#define NOBODY 0

byte last;
byte key[2];     /* NOBODY, else 1 + acquire */
byte value[2];   /* the token in the key */
byte counts[2];  /* the client that counts on the key: NOBODY, else 1 + acquire */
byte highest[2]; /* token of all locks that counted on the key */
bool over[ACQUIRES];
bool is_told[ACQUIRES]; /* the client heard its grant */

#define MINE(k) (key[k] == p + 1)
#define FREE(k) (key[k] == NOBODY)

inline take(k, token) {
  if
  :: FREE(k) -> key[k] = p + 1; value[k] = token
  :: else
  fi
}

inline hear(k) {
  if
  :: MINE(k) ->
     assert(counts[k] == NOBODY && value[k] > highest[k]);
     counts[k] = p + 1;
     highest[k] = value[k]
  :: else
  fi
}

inline ask() {
  if
  :: MINE(0) || MINE(1) ->
#ifdef TAKES_MORE
     token = (MINE(0) -> value[0] : value[1]);
     take(0, token); take(1, token);
     token = 0
#endif
     skip
  :: !MINE(0) && !MINE(1) && (FREE(0) || FREE(1)) && last < TOKENS ->
     last++;
     take(0, last); take(1, last)
  :: else
  fi;
  if
  :: !over[p] && !is_told[p] && (MINE(0) || MINE(1)) -> is_told[p] = true; hear(0); hear(1)
  :: true /* the answer is lost or late */
  fi
}

inline stop_counting(k) {
  counts[k] = (counts[k] == p + 1 -> NOBODY : counts[k])
}

proctype acquire(byte p) {
  byte token;

end:
  do
  :: atomic { ask() }
  :: d_step { !over[p] -> over[p] = true; stop_counting(0); stop_counting(1) }
  od
}

/* Keys go once their client does not count on them: released one by one, or at their lease end. */
active proctype leases() {
end:
  do
  :: d_step { key[0] != NOBODY && over[key[0] - 1] -> key[0] = NOBODY; value[0] = 0 }
  :: d_step { key[1] != NOBODY && over[key[1] - 1] -> key[1] = NOBODY; value[1] = 0 }
  od
}

init {
  atomic { run acquire(0); run acquire(1); run acquire(2) }
}
