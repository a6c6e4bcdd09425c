/* The token protocol of a quorum: one key, three nodes, ACQUIRES acquires, each with a nonce of its own.
 *
 * Acquire, on each node: a free key takes the nonce and a proposal above every token that the node gave or was told; a
 * key that carries this nonce answers its token again; any other is busy. The token is the highest proposal that the
 * client heard from a majority. Write-back, on each node: a key that carries this nonce and no higher token takes the
 * token, and the node remembers it. The lock counts once a majority proposed the token or took it.
 *
 * Covered: every order of the steps; requests and answers that are lost, late, or run any number of times, also after
 * the client gave up; acquires that stop anywhere; every order of the proposals, hence all clocks, floors and counters
 * to start from. Bounds: one key, three nodes, ACQUIRES acquires, TOKENS different tokens in a run (a node that gave
 * the last one grants nothing more), one restart of each node, FLUSH flushes.
 *
 * FAR: a proposal from FAR on has a vote only if a majority proposes so high. BAD_NODE: node 2 may propose so high, the
 * others only above a token that they were told; then no lock that counts has a token from FAR on.
 *
 * A client stops counting on its lock before a key of it goes, by release or by lease end. With EARLY_END keys go at
 * any moment, as when the clock of a node jumps ahead.
 *
 * Checked when a lock counts: no other lock counts (not with ONLY_TOKENS), and its token is higher than that of every
 * lock before (not with ONLY_HOLDERS). With ONLY_TOKENS, where two may count at once: the token is higher than that of
 * every lock that had counted when this acquire began, and, but for a flush, no token is given twice.
 *
 * Faults: EARLY_END; RESTARTS (a node forgets all and grants nothing until every acquire that heard its grant is over);
 * FLUSH=n (n times a node forgets all and goes on; 2: also a majority). CLOCKS_AGREE: no clock is behind the token of a lock that counted.
 * Wrong on purpose: NO_WRITE_BACK; LOWEST (the lowest proposal is the token); COUNTS_TOO_EARLY (before a majority took
 * the token); ANY_HOLDER (the write-back reads no nonce), NONCE_ALONE (it reads no token); VOTES_AT_ONCE (a node that
 * restarted does not wait); FAR_COUNTS (a proposal from FAR on has a vote); DELETES_ANY (a release reads no nonce);
 * SAME_NONCE (the next attempt has no new nonce). */
#ifndef ACQUIRES
#define ACQUIRES 2
#endif
#ifndef TOKENS
#define TOKENS 5
#endif
#define N 3
#define Q 2
#define AT(p, i) ((p) * N + (i))

#define ASKING 0
#define WRITING_BACK 1
#define HOLDING 2
#define OVER 3

byte last[N];  /* the highest token that the node gave or was told */
byte key[N];   /* 0: free, else 1 + acquire */
byte value[N]; /* the token in the key */
byte phase[ACQUIRES];
byte heard[ACQUIRES * N]; /* the proposal that the client heard; 0: none */
bool has[ACQUIRES * N];   /* the client knows that this node has its token */
byte highest;             /* token of all locks that counted */
#ifdef ONLY_TOKENS
byte given[ACQUIRES]; /* the tokens of the locks that counted */
#endif
#ifdef SAME_NONCE
bool is_second[ACQUIRES]; /* the second attempt */
#endif
#ifdef RESTARTS
bool restarted[N];
bool waits[N];
#define VOTES(i) (!waits[i])
#else
#define VOTES(i) true
#endif
#ifdef CLOCKS_AGREE
#define LEAST(i) ((last[i] > highest -> last[i] : highest) + 1)
#else
#define LEAST(i) (last[i] + 1)
#endif

#ifdef BAD_NODE
#define MOST(i) ((i) == 2 -> TOKENS : FAR - 1)
#else
#define MOST(i) TOKENS
#endif

/* The acquire runs on node i. The client hears the answer, or it is lost or too late. */
inline ask(i) {
  if
  :: key[i] == 0 && LEAST(i) <= MOST(i) ->
     last[i] = LEAST(i);
     do
     :: last[i] < MOST(i) -> last[i]++
     :: break
     od;
     key[i] = p + 1;
     value[i] = last[i]
  :: else
  fi;
  if
  :: key[i] == p + 1 && phase[p] == ASKING && heard[AT(p, i)] == 0 -> heard[AT(p, i)] = value[i]
  :: true
  fi
}

#if defined(ANY_HOLDER)
#define MAY_WRITE(i) (key[i] != 0)
#elif defined(NONCE_ALONE)
#define MAY_WRITE(i) (key[i] == p + 1)
#else
#define MAY_WRITE(i) (key[i] == p + 1 && value[i] <= t)
#endif

/* The write-back runs on node i. */
inline write_back(i) {
  if
  :: MAY_WRITE(i) ->
     value[i] = (key[i] == p + 1 -> t : value[i]);
     last[i] = (last[i] > t -> last[i] : t);
     if
     :: phase[p] == WRITING_BACK -> has[AT(p, i)] = true
     :: true
     fi
  :: else
  fi
}

#define IS_HEARD(i) (heard[AT(p, i)] > 0)
#ifdef FAR
#define IS_FAR(i) (heard[AT(p, i)] >= FAR)
#endif
#if defined(FAR) && !defined(FAR_COUNTS)
#define HAS_VOTE(i) (IS_HEARD(i) && (!IS_FAR(i) || IS_FAR(0) + IS_FAR(1) + IS_FAR(2) >= Q))
#else
#define HAS_VOTE(i) IS_HEARD(i)
#endif

inline choose(i) {
#ifdef LOWEST
  t = (HAS_VOTE(i) && (t == 0 || heard[AT(p, i)] < t) -> heard[AT(p, i)] : t)
#else
  t = (HAS_VOTE(i) && heard[AT(p, i)] > t -> heard[AT(p, i)] : t)
#endif
}

inline compare(i) {
#if defined(NO_WRITE_BACK) || defined(LOWEST) || defined(COUNTS_TOO_EARLY)
  has[AT(p, i)] = HAS_VOTE(i)
#else
  has[AT(p, i)] = HAS_VOTE(i) && heard[AT(p, i)] == t
#endif
}

inline clear(i) {
  heard[AT(p, i)] = 0; has[AT(p, i)] = false
}

#if ACQUIRES > 2
#define EACH(x) (x(0) && x(1) && x(2))
#else
#define EACH(x) (x(0) && x(1))
#endif
#define IS_NOT_HOLDING(q) (phase[q] != HOLDING)
#define IS_ANOTHER(q) (given[q] != t)

inline check() {
#ifdef BAD_NODE
  assert(t < FAR);
#endif
#ifdef COUNTS_NEVER
  assert(false);
#endif
#ifdef ONLY_TOKENS
  assert(t > began);
#ifndef FLUSH
  assert(EACH(IS_ANOTHER));
#endif
  given[p] = t;
#else
  assert(EACH(IS_NOT_HOLDING));
#ifndef ONLY_HOLDERS
  assert(t > highest);
#endif
#endif
  highest = (highest > t -> highest : t)
}

#define HEARD (HAS_VOTE(0) + HAS_VOTE(1) + HAS_VOTE(2))
#define HAS (has[AT(p, 0)] + has[AT(p, 1)] + has[AT(p, 2)])

proctype acquire(byte p) {
  byte t, began;

#ifdef ONLY_TOKENS
  began = highest;
#endif
end:
  do
  :: atomic { VOTES(0) -> ask(0) }
  :: atomic { VOTES(1) -> ask(1) }
  :: atomic { VOTES(2) -> ask(2) }
  :: d_step {
       phase[p] == ASKING && HEARD >= Q ->
       choose(0); choose(1); choose(2);
       compare(0); compare(1); compare(2);
       phase[p] = WRITING_BACK
     }
#ifndef NO_WRITE_BACK
  :: atomic { t > 0 -> write_back(0) }
  :: atomic { t > 0 -> write_back(1) }
  :: atomic { t > 0 -> write_back(2) }
#endif
  :: d_step { phase[p] == WRITING_BACK && HAS >= Q -> check(); phase[p] = HOLDING; began = 0 }
  :: d_step { phase[p] != OVER -> clear(0); clear(1); clear(2); phase[p] = OVER; began = 0 }
#ifdef SAME_NONCE
  :: d_step { phase[p] == OVER && !is_second[p] -> is_second[p] = true; phase[p] = ASKING; t = 0 }
#endif
  od
}

#define IS_NOT_OVER(q) (phase[q] != OVER)
#if defined(EARLY_END)
#define MAY_GO(i) (key[i] != 0)
#elif defined(DELETES_ANY)
#define MAY_GO(i) (key[i] != 0 && !(EACH(IS_NOT_OVER)))
#elif defined(SAME_NONCE)
#define MAY_GO(i) (key[i] != 0 && (phase[key[i] - 1] == OVER || is_second[key[i] - 1]))
#else
#define MAY_GO(i) (key[i] != 0 && phase[key[i] - 1] == OVER)
#endif

/* Keys go: released, given back, or at their lease end. */
active proctype leases() {
end:
  do
  :: d_step { MAY_GO(0) -> key[0] = 0; value[0] = 0 }
  :: d_step { MAY_GO(1) -> key[1] = 0; value[1] = 0 }
  :: d_step { MAY_GO(2) -> key[2] = 0; value[2] = 0 }
  od
}

#if defined(RESTARTS) || defined(FLUSH)
inline forget(i) {
  last[i] = 0; key[i] = 0; value[i] = 0
}
#endif

#ifdef FLUSH
active [FLUSH] proctype flush() {
end:
  if
  :: d_step { forget(0) }
  :: d_step { forget(1) }
  :: d_step { forget(2) }
  fi
}
#endif

#ifdef RESTARTS
#define IS_OVER_0(p) (heard[AT(p, 0)] == 0)
#define IS_OVER_1(p) (heard[AT(p, 1)] == 0)
#define IS_OVER_2(p) (heard[AT(p, 2)] == 0)

inline restart(i) {
  forget(i);
  restarted[i] = true;
#ifndef VOTES_AT_ONCE
  waits[i] = true
#endif
}

active proctype restarts() {
end:
  do
  :: d_step { !restarted[0] -> restart(0) }
  :: d_step { !restarted[1] -> restart(1) }
  :: d_step { !restarted[2] -> restart(2) }
  :: d_step { waits[0] && EACH(IS_OVER_0) -> waits[0] = false }
  :: d_step { waits[1] && EACH(IS_OVER_1) -> waits[1] = false }
  :: d_step { waits[2] && EACH(IS_OVER_2) -> waits[2] = false }
  od
}
#endif

init {
  atomic {
    run acquire(0);
    run acquire(1);
#if ACQUIRES > 2
    run acquire(2)
#endif
  }
}
