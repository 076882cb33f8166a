/* How controllers hold a study (src/store/study_store.cc, src/tune/study/study_claim.cc) as a model
 * for spin.
 *
 * A controller claims the study, writes its journal step by step, and gives it back at the end.
 * Each step on the database is one transaction, here one `atomic`. What may go wrong at any moment,
 * BAD_LUCK times in all:
 *   - a controller dies;
 *   - it stalls for longer than the lease, and lives (it was stopped, or the network was);
 *   - the answer to a write is lost: it has taken place, and the controller does not know;
 *   - a clock is set, so that by the dates the lease of a controller that writes is over.
 *
 * Checked:
 *   - a step of the journal is written once, by the controller that holds the study then, and acted
 *     on only when it is written;
 *   - a controller that writes every second is not robbed, whatever the dates say;
 *   - nothing is stuck: as long as one controller lives the journal gets to its end.
 */
#ifndef CONTROLLERS
#define CONTROLLERS 3
#endif
#ifndef STEPS
#define STEPS 3
#endif
#ifndef BAD_LUCK
#define BAD_LUCK 3
#endif

#define NOBODY 255

/* The row of the study. */
byte owner = NOBODY;
byte seq;
bool has_written;      /* since whoever watches began to */
bool lease_is_over;    /* by the dates */

/* The world. */
bool is_up[CONTROLLERS] = true;
bool is_stalled[CONTROLLERS];
bool was_awake;        /* the owner, all the time since somebody began to watch */
byte watcher = NOBODY; /* one at a time is watched: the row is locked by a claim */
byte written[STEPS];
byte bad_luck = BAD_LUCK;

#define IS_OVER (seq == STEPS)
#define OWNER_SLEEPS (owner != NOBODY && (!is_up[owner] || is_stalled[owner]))

/* The fence: a write names the owner and the step it follows. Without it (-DUNFENCED), and without
 * the watch (-DUNWATCHED), the protocol is wrong, which the test expects spin to find. */
#ifdef UNFENCED
#define MAY_WRITE true
#else
#define MAY_WRITE (owner == me && seq == mine)
#endif
#ifdef UNWATCHED
#define WATCH_IS_OVER true
#else
/* The watch takes longer than the second in which one who is awake writes. */
#define WATCH_IS_OVER (has_written || OWNER_SLEEPS || owner == NOBODY)
#endif

proctype controller(byte me) {
  byte mine = 0;
  bool holds = false, lost = false;

  do
  :: atomic { IS_OVER || !is_up[me] -> break }

  /* claim(): nobody has it. The journal is read with the claim. */
  :: atomic { is_up[me] && !is_stalled[me] && !holds && owner == NOBODY && watcher == NOBODY ->
       owner = me; mine = seq; holds = true; lease_is_over = false }

  /* watch_for_a_sign(): by the dates its owner is gone. */
  :: atomic { is_up[me] && !is_stalled[me] && !holds && owner != NOBODY && owner != me &&
              watcher == NOBODY && (lease_is_over || OWNER_SLEEPS) ->
       watcher = me; has_written = false; was_awake = !OWNER_SLEEPS }
  :: atomic { watcher == me && WATCH_IS_OVER ->
       watcher = NOBODY;
       if
       :: is_up[me] && !has_written ->
         assert(owner == NOBODY || !was_awake);
         owner = me; mine = seq; holds = true; lease_is_over = false
       :: else  /* it lives, and the claim is refused; or the watcher has died */
       fi }

  /* write(): a step of the journal, or only a sign of life. Repeated until it is answered. */
  :: atomic { is_up[me] && !is_stalled[me] && holds && !IS_OVER ->
       if
       :: MAY_WRITE ->
         has_written = true; lease_is_over = false;
         written[seq]++;
         assert(written[seq] == 1 && owner == me);
         seq++;
         if :: lost = false :: bad_luck > 0 -> bad_luck--; lost = true fi;
         if :: !lost -> mine = seq :: else fi
       :: !MAY_WRITE && owner == me && seq == mine + 1 -> mine = seq  /* only the answer was lost */
       :: else -> holds = false                                      /* somebody else's by now */
       fi;
       lost = false }
  :: atomic { is_up[me] && !is_stalled[me] && owner == me && watcher != NOBODY ->
       has_written = true; lease_is_over = false }

  /* One who was stalled comes back, and learns with its next write what it has lost. */
  :: atomic { is_up[me] && is_stalled[me] -> is_stalled[me] = false }

  /* Bad luck. The first controller does not die, so that somebody is left. */
  :: atomic { bad_luck > 0 && is_up[me] && me != 0 ->
       bad_luck--; is_up[me] = false; if :: owner == me -> was_awake = false :: else fi }
  :: atomic { bad_luck > 0 && is_up[me] && !is_stalled[me] ->
       bad_luck--; is_stalled[me] = true; if :: owner == me -> was_awake = false :: else fi }
  :: atomic { bad_luck > 0 && owner != NOBODY && !lease_is_over -> bad_luck--; lease_is_over = true }
  od;
  /* A watch ends with the process that watched. */
  atomic { if :: watcher == me -> watcher = NOBODY :: else fi }
}

init {
  byte i = 0;
  atomic {
    do
    :: i < CONTROLLERS -> run controller(i); i++
    :: else -> break
    od
  }
}

/* The study gets to its end, if no controller is passed over for ever. */
ltl nothing_is_stuck { <> IS_OVER }
