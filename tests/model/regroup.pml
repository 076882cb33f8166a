/* How groups of an elastic job follow each other (src/launch/elastic/roster.cc, the launcher, and
 * src/comm/elastic/member.h, run.cc, the workers) as a model for spin.
 *
 * Workers form groups, one after the other. In a group they meet: first to take the state of
 * whoever has most of it, then at the end of each step, which is a commit. Workers come at any time,
 * and may be killed at any moment, BAD_LUCK times in all. The launcher hears of deaths, and the
 * others do, both at any time after.
 *
 * Checked:
 *   - a group is formed only when nobody is at work in an older one;
 *   - the commits of those who enter a group differ by one at most, and at most one step is computed
 *     again;
 *   - nothing is stuck: a state in which nobody can go on although somebody lives is an invalid end
 *     state, which spin reports.
 */
#ifndef WORKERS
#define WORKERS 3
#endif
#ifndef BAD_LUCK
#define BAD_LUCK 2
#endif
#define STEPS 2
#define GENERATIONS (BAD_LUCK + 4)
#define MEETINGS (STEPS + 3)
#define NONE 255

mtype = { ready, finished, ended, group, change, over };
mtype = { absent, starting, waiting, member, going, gone };

chan to_launcher = [WORKERS * 3] of { byte, mtype, byte };
chan to_worker[WORKERS] = [3] of { mtype, byte };

/* The world. */
mtype place[WORKERS] = absent;  /* starting, waiting, member (at work) or gone */
byte in_group[WORKERS];         /* generation of the last group */
byte arrivals[WORKERS * GENERATIONS]; /* at meetings, by group */
bool wishes[MEETINGS * GENERATIONS];  /* somebody came to it with the wish to change */
byte commits[WORKERS];
bool has_state[WORKERS];
byte bad_luck = BAD_LUCK;
byte furthest = 0;              /* the most commits that anybody had */

/* The launcher. */
mtype phase[WORKERS] = starting;
byte generation = 0;
bool is_member[WORKERS * GENERATIONS];
byte change_requested = 0;
bool is_finishing = false;

#define AT(w, g) ((w) * GENERATIONS + (g))
/* At the meeting to which `me` has come last. */
#define WISH(g) wishes[arrivals[AT(me, g)] * GENERATIONS + (g)]
#define EACH(w) w = 0; do :: w < WORKERS ->
#define DONE(w) w++ :: else -> break od; w = 0

/* Everybody has come to the meeting at which `me` is. */
#define CAME(w, g) (!is_member[AT(w, g)] || arrivals[AT(w, g)] >= arrivals[AT(me, g)])
#define ALL_CAME(g) (CAME(0, g) && CAME(1, g) && CAME(2 % WORKERS, g))
/* Somebody who was expected is gone, or has left the group. */
#define LEFT(w, g) ((w) != me && is_member[AT(w, g)] && \
                    (place[w] == gone || in_group[w] > g || (in_group[w] == g && place[w] != member)))
#define ANY_LEFT(g) (LEFT(0, g) || LEFT(1, g) || LEFT(2 % WORKERS, g))

proctype worker(byte me) {
  byte g = 0, w = 0, most = 0;
  bool asked = false, changes = false;

  atomic { place[me] = waiting; to_launcher ! me, ready, 0 }
  do
  :: atomic { place[me] == gone -> break }
  :: atomic { place[me] == waiting && to_worker[me] ? [group, _] ->
       to_worker[me] ? group, g;
       place[me] = member; in_group[me] = g; asked = false;
       arrivals[AT(me, g)] = 1 }
  :: atomic { place[me] == waiting && to_worker[me] ? [over, _] ->
       to_worker[me] ? over, _;
       place[me] = gone; to_launcher ! me, ended, 0 }
  :: atomic { place[me] != gone && to_worker[me] ? [change, _] ->
       to_worker[me] ? change, w;
       if :: w == g && place[me] == member -> asked = true :: else fi;
       w = 0 }

  /* The meeting takes place. The first is State::sync(). */
  :: atomic { place[me] == member && ALL_CAME(g) ->
       if
       :: arrivals[AT(me, g)] == 1 ->
         most = 0;
         EACH(w)
           if :: is_member[AT(w, g)] && commits[w] > most -> most = commits[w] :: else fi;
         DONE(w);
         commits[me] = most; has_state[me] = true;
         arrivals[AT(me, g)]++;
         if :: asked -> WISH(g) = true :: else fi
       :: arrivals[AT(me, g)] > 1 && commits[me] < STEPS ->
         commits[me]++;
         if :: commits[me] > furthest -> furthest = commits[me] :: else fi;
         changes = WISH(g);
         if
         :: changes -> place[me] = waiting; to_launcher ! me, ready, g
         :: else ->
           arrivals[AT(me, g)]++;
           if :: asked -> WISH(g) = true
           :: else fi
         fi
       :: arrivals[AT(me, g)] > 1 && commits[me] >= STEPS ->
         to_launcher ! me, finished, g;
         place[me] = gone; to_launcher ! me, ended, 0
       fi }

  /* It does not: peer_lost. What was computed since the last commit is computed again. */
  :: atomic { place[me] == member && ANY_LEFT(g) -> place[me] = waiting; to_launcher ! me, ready, g }

  :: atomic { place[me] != gone && bad_luck > 0 ->
       bad_luck--; place[me] = gone; to_launcher ! me, ended, 0 }
  od
}

#define MEMBERS (phase[0] == member || phase[1] == member || phase[2 % WORKERS] == member)
#define WAITS(w) (phase[w] == waiting)
#define ANY_WAITS (WAITS(0) || WAITS(1) || WAITS(2 % WORKERS))
#define IS_NEW(w) (WAITS(w) && in_group[w] == 0)
#define ANY_NEW (IS_NEW(0) || IS_NEW(1) || IS_NEW(2 % WORKERS))
#define ALL_GONE (phase[0] == gone && phase[1] == gone && phase[2 % WORKERS] == gone)
#define AT_WORK(w) (place[w] == member)

/* Without the rule that all have left the last group (-DUNCHECKED) the protocol is wrong, which the
 * test expects spin to find. */
#ifdef UNCHECKED
#define MAY_FORM ANY_WAITS
#else
#define MAY_FORM (ANY_WAITS && !MEMBERS)
#endif

proctype launcher() {
  byte w = 0, g = 0, most = 0, least = NONE;
  do
  :: atomic { ALL_GONE && empty(to_launcher) -> break }
  :: atomic { to_launcher ? [_, ready, _] -> to_launcher ? w, ready, g;
       if
       :: phase[w] == member && g != generation    /* overtaken */
       :: phase[w] == member && g == generation && is_finishing ->
         phase[w] = going; to_worker[w] ! over, g
       :: phase[w] == starting || (phase[w] == member && g == generation && !is_finishing) ->
         phase[w] = waiting
       :: else
       fi; w = 0 }
  :: atomic { to_launcher ? [_, finished, _] -> to_launcher ? w, finished, g;
       if :: g == generation -> phase[w] = going; is_finishing = true :: else fi; w = 0 }
  :: atomic { to_launcher ? [_, ended, _] -> to_launcher ? w, ended, g; phase[w] = gone; w = 0 }

  :: atomic { !is_finishing && MAY_FORM && generation + 1 < GENERATIONS ->
       assert(!AT_WORK(0) && !AT_WORK(1) && !AT_WORK(2 % WORKERS));
       generation++;
       most = 0; least = NONE;
       EACH(w)
         if
         :: WAITS(w) ->
           phase[w] = member; is_member[AT(w, generation)] = true;
           to_worker[w] ! group, generation;
           if
           :: has_state[w] ->
             if :: commits[w] > most -> most = commits[w] :: else fi;
             if :: commits[w] < least -> least = commits[w] :: else fi
           :: else
           fi
         :: else
         fi;
       DONE(w);
       if :: least != NONE -> assert(most - least <= 1 && most + 1 >= furthest) :: else fi }

  /* Somebody has come: the group finishes its step. */
  :: atomic { !is_finishing && ANY_NEW && MEMBERS && change_requested != generation ->
       change_requested = generation;
       EACH(w)
         if :: phase[w] == member && nfull(to_worker[w]) -> to_worker[w] ! change, generation :: else fi;
       DONE(w) }

  /* The work is done: whoever is in no group has nothing left to do. */
  :: atomic { is_finishing && ANY_WAITS ->
       EACH(w)
         if :: WAITS(w) -> phase[w] = going; to_worker[w] ! over, generation :: else fi;
       DONE(w) }
  od
}

init {
  byte w = 0;
  atomic {
    run launcher();
    EACH(w) run worker(w); DONE(w)
  }
}
