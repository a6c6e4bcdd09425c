/* The token protocol of common/lock/quorum.c: one key, three nodes, TENURES acquires at once, each with a nonce of its
 * own. Leases may end at any moment, requests and answers get lost, an acquire may stop anywhere, its request
 * to one node may run twice (RETRY: which), proposals differ (PROPOSALS), one node may forget everything (LOSS).
 *
 * Checked: of two tenures that completed, on every node that both count, the later grant belongs to the higher token.
 * As any two majorities share a node, no two tokens are equal.
 *
 * Switches that break it: NO_WRITEBACK (the highest grant is the token, nobody is told), NO_OWNER (told whoever holds
 * the key), NONCE_ONLY (told if the nonce holds it, perhaps by another grant), VOTE_AMNESIC (votes at once),
 * NO_WAIT (comes back as soon as the others were read), ONE_READ (one other node is read). */
#ifndef TENURES
#define TENURES 2
#endif
#define N 3
#define Q 2
#define AT(p, i) ((p) * N + (i))

byte c[N];    /* counter */
byte held[N]; /* 0: free, else 1 + tenure */
byte g[N];    /* the grant in the value */
byte got[TENURES * N];   /* what the client was told; 0: nothing */
byte rank[TENURES * N]; /* order of the grants on a node, 1 the earliest */
bool asked[TENURES * N]; /* once */
bool again[TENURES];     /* one node was asked twice */
bool acked[TENURES * N];
byte token[TENURES]; /* of a completed tenure */
bool over[TENURES];
#ifdef LOSS
bool amnesic[N];
bool counted[TENURES]; /* holds a grant of the node that forgot, from before */
byte forgetful = N;    /* which one */
#define IS_AMNESIC(i) amnesic[i]
#else
#define IS_AMNESIC(i) false
#endif

inline put_last(p, i) {
  q = 0;
  do
  :: q < TENURES ->
     if
     :: rank[AT(p, i)] > 0 && rank[AT(q, i)] > rank[AT(p, i)] -> rank[AT(q, i)]--
     :: else
     fi;
     q++
  :: else -> break
  od;
  rank[AT(p, i)] = 0;
  q = 0; top = 0;
  do
  :: q < TENURES -> top = (rank[AT(q, i)] > top -> rank[AT(q, i)] : top); q++
  :: else -> break
  od;
  rank[AT(p, i)] = top + 1; top = 0; q = 0
}

/* The grant script on node i. Only an answer that is waited for is used. */
inline ask(p, i, waiting) {
#ifdef RETRY
  again[p] = again[p] || (i == RETRY && asked[AT(p, i)]);
#endif
  asked[AT(p, i)] = true;
  if
  :: IS_AMNESIC(i)
  :: else ->
     if
     :: held[i] == 0 ->
        c[i] = (c[i] + 1 > proposal -> c[i] + 1 : proposal);
        g[i] = c[i];
        held[i] = p + 1
     :: else
     fi;
     if
     :: held[i] == p + 1 && waiting && got[AT(p, i)] == 0 -> got[AT(p, i)] = g[i]; put_last(p, i)
     :: true /* the answer is lost, or it is: busy */
     fi
  fi
}

inline write_back(p, i) {
  if
#ifdef NO_OWNER
  :: !IS_AMNESIC(i) ->
#else
#ifdef NONCE_ONLY
  :: !IS_AMNESIC(i) && held[i] == p + 1 ->
#else
  :: !IS_AMNESIC(i) && held[i] == p + 1 && g[i] == got[AT(p, i)] ->
#endif
#endif
     c[i] = (c[i] > t -> c[i] : t);
     if
     :: acked[AT(p, i)] = true
     :: true /* the answer is lost */
     fi
  :: else
  fi
}

inline check(p, q, i) {
  assert(!(acked[AT(p, i)] && acked[AT(q, i)] && over[q] && token[q] != 0) ||
         ((rank[AT(q, i)] < rank[AT(p, i)]) == (token[q] < t) && token[q] != t))
}

/* What does not count any more is forgotten, so that fewer states differ. */
inline finish(p) {
  i = 0;
  do
  :: i < N ->
     got[AT(p, i)] = 0; asked[AT(p, i)] = false;
     if
     :: token[p] == 0 || !acked[AT(p, i)] ->
        acked[AT(p, i)] = false;
        q = 0;
        do
        :: q < TENURES ->
           if
           :: rank[AT(p, i)] > 0 && rank[AT(q, i)] > rank[AT(p, i)] -> rank[AT(q, i)]--
           :: else
           fi;
           q++
        :: else -> break
        od;
        rank[AT(p, i)] = 0
     :: else
     fi;
     i++
  :: else -> break
  od;
  over[p] = true;
  again[p] = false;
#ifdef LOSS
  counted[p] = false;
#endif
  i = 0; q = 0; t = 0; proposal = 0
}

#define GOT(p) ((got[AT(p, 0)] > 0) + (got[AT(p, 1)] > 0) + (got[AT(p, 2)] > 0))
#define ACKED(p) (acked[AT(p, 0)] + acked[AT(p, 1)] + acked[AT(p, 2)])

#ifdef RETRY
#define MAY_ASK(p, i) (!asked[AT(p, i)] || (i == RETRY && !again[p]))
#else
#define MAY_ASK(p, i) (!asked[AT(p, i)])
#endif

proctype tenure(byte p) {
  byte i, q, top, t, proposal;

  if
  :: proposal = 0
#ifdef PROPOSALS
  :: proposal = 3
#endif
  fi;
  do
  :: atomic { MAY_ASK(p, 0) -> ask(p, 0, true) }
  :: atomic { MAY_ASK(p, 1) -> ask(p, 1, true) }
  :: atomic { MAY_ASK(p, 2) -> ask(p, 2, true) }
  :: GOT(p) >= Q -> break
#ifdef LOSS
  :: atomic { counted[p] -> finish(p); goto end }
#endif
  od;
  atomic {
    t = got[AT(p, 0)];
    t = (got[AT(p, 1)] > t -> got[AT(p, 1)] : t);
    t = (got[AT(p, 2)] > t -> got[AT(p, 2)] : t);
    do
    :: i < N ->
#ifdef NO_WRITEBACK
       acked[AT(p, i)] = got[AT(p, i)] > 0;
#else
       acked[AT(p, i)] = got[AT(p, i)] == t;
#endif
       i++
    :: else -> i = 0; break
    od
  }
  do
  :: atomic { got[AT(p, 0)] > 0 && !acked[AT(p, 0)] -> write_back(p, 0) }
  :: atomic { got[AT(p, 1)] > 0 && !acked[AT(p, 1)] -> write_back(p, 1) }
  :: atomic { got[AT(p, 2)] > 0 && !acked[AT(p, 2)] -> write_back(p, 2) }
#ifdef RETRY
  :: atomic { asked[AT(p, RETRY)] && !again[p] -> ask(p, RETRY, false) } /* it was on its way */
#endif
  :: atomic {
       ACKED(p) >= Q ->
       do
       :: q < TENURES && q != p -> check(p, q, 0); check(p, q, 1); check(p, q, 2); q++
       :: q < TENURES && q == p -> q++
       :: else -> q = 0; break
       od;
       token[p] = t;
       finish(p)
     }
     break
#ifdef LOSS
  :: atomic { counted[p] -> finish(p); break }
#endif
  od;
end:
  skip
}

/* Leases end whenever they like. */
active proctype leases() {
end:
  do
  :: d_step { held[0] != 0 -> held[0] = 0; g[0] = 0 }
  :: d_step { held[1] != 0 -> held[1] = 0; g[1] = 0 }
  :: d_step { held[2] != 0 -> held[2] = 0; g[2] = 0 }
  od
}

#ifdef LOSS
inline forget(i) {
  c[i] = 0; held[i] = 0; g[i] = 0;
#ifndef VOTE_AMNESIC
  amnesic[i] = true;
#endif
  forgetful = i;
  p = 0;
  do
  :: p < TENURES -> counted[p] = !over[p] && got[AT(p, i)] > 0; p++
  :: else -> p = 0; break
  od
}

/* Waits until no acquire counts on a grant from before, reads the others one after the other, and lets it vote. */
proctype loss() {
  byte p, read;

end:
  if
  :: atomic { forgetful == N -> forget(0) }
  :: atomic { forgetful == N -> forget(1) }
  :: atomic { forgetful == N -> forget(2) }
  fi;
#ifndef VOTE_AMNESIC
#ifndef NO_WAIT
end_wait:
  !counted[0] && !counted[1]
#if TENURES > 2
    && !counted[2]
#endif
  ;
#endif
  read = c[(forgetful + 1) % N];
#ifndef ONE_READ
  read = (c[(forgetful + 2) % N] > read -> c[(forgetful + 2) % N] : read);
#endif
  atomic { c[forgetful] = read; amnesic[forgetful] = false; read = 0 }
#endif
}
#endif

init {
  byte p;

  atomic {
    if /* counters as they may stand after years */
    :: true
    :: c[0] = 4; c[2] = 1
#ifndef FEW_STARTS
    :: c[0] = 1
    :: c[0] = 1; c[1] = 1
    :: c[0] = 2; c[2] = 1
#endif
    fi;
#ifdef LOSS
    run loss();
#endif
    do
    :: p < TENURES -> run tenure(p); p++
    :: else -> break
    od;
    p = 0
  }
}
