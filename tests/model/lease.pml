/* The lease protocol of jobs (src/jobs/database/leases.cc) as a model for spin.
 *
 * Launchers take jobs, run them and write what became of them. Each step on the database is one
 * transaction, here one `atomic`. What may go wrong at any moment, BAD_LUCK times in all:
 *   - a launcher dies;
 *   - a launcher is not heard of for longer than its lease, and lives (it was stopped, or the
 *     network was);
 *   - the answer to a transaction is lost: it has taken place, and the launcher does not know.
 *
 * Checked:
 *   - a job is finished once, however often it ran, by the launcher that holds it then;
 *   - nothing is stuck: as long as one launcher lives every job is finished. A state in which nobody
 *     can go on although a job is open is an invalid end state, which spin reports.
 */
#ifndef LAUNCHERS
#define LAUNCHERS 3
#endif
#ifndef JOBS
#define JOBS 2
#endif
#ifndef BAD_LUCK
#define BAD_LUCK 3
#endif

#define NOBODY 255

mtype = { ready, running, done };

/* The database: jobs, and what it believes of launchers. A launcher that was declared lost comes
 * back under a new number, which the model keeps small by counting its lives. */
mtype state[JOBS] = ready;
byte lease[JOBS] = NOBODY;
byte attempt[JOBS];
byte finished[JOBS];
bool is_alive[LAUNCHERS] = true;

/* The world. */
bool is_up[LAUNCHERS] = true;
bool is_silent[LAUNCHERS];
byte bad_luck = BAD_LUCK;
byte open_jobs = JOBS;

/* Whether the answer of a transaction is lost. */
inline lose_answer(lost) {
  if
  :: lost = false
  :: bad_luck > 0 -> bad_luck--; lost = true
  fi
}

/* free_lost(): whoever was silent for too long is declared lost, and its jobs are free again. */
inline free_lost(who) {
  is_alive[who] = false;
  j = 0;
  do
  :: j < JOBS ->
    if
    :: lease[j] == who -> lease[j] = NOBODY; if :: state[j] == running -> state[j] = ready :: else fi
    :: else
    fi;
    j++
  :: else -> break
  od;
  j = 0
}

/* Whether a step would find anything: one that does not is no step. For up to two jobs and three
 * launchers. */
#define IS_FREE(j) (state[j] == ready && lease[j] == NOBODY)
#define ANY_FREE (IS_FREE(0) || IS_FREE(1 % JOBS))
#define ANY_MINE (lease[0] == me || lease[1 % JOBS] == me)
#define IS_LOST(o) ((o) != me && is_alive[o] && is_silent[o])
#define ANY_LOST (IS_LOST(0) || IS_LOST(1 % LAUNCHERS) || IS_LOST(2 % LAUNCHERS))

/* Every write is refused to a launcher that was declared lost, and names the launcher and the
 * attempt. Without that (-DUNCHECKED) the protocol is wrong, which the test expects spin to find. */
#ifdef UNCHECKED
#define MAY_WRITE true
#define HOLDS_JOB true
#else
#define MAY_WRITE is_alive[me]
#define HOLDS_JOB (lease[job] == me && attempt[job] == mine)
#endif

proctype launcher(byte me) {
  byte job = NOBODY, mine = 0, j = 0, other = 0;
  bool lost = false, is_running = false;

  do
  :: atomic { open_jobs == 0 || !is_up[me] -> break }

  /* keep(): a launcher that was declared lost gives everything up and comes back as a new one. */
  :: atomic { is_up[me] && !is_alive[me] ->
       job = NOBODY; is_running = false; is_silent[me] = false; is_alive[me] = true }
  :: atomic { is_up[me] && is_alive[me] && is_silent[me] -> is_silent[me] = false }

  /* take(): under the lease, with the next attempt. */
  :: atomic { is_up[me] && is_alive[me] && job == NOBODY && ANY_FREE ->
       is_silent[me] = false;
       do
       :: IS_FREE(j) -> break
       :: else -> j++
       od;
       lease[j] = me;
       attempt[j]++;
       lose_answer(lost);
       if :: !lost -> job = j; mine = attempt[j] :: else fi;
       j = 0; lost = false }

  /* taken(): after a lost answer the launcher asks what it has. */
  :: atomic { is_up[me] && is_alive[me] && job == NOBODY && ANY_MINE ->
       do
       :: lease[j] == me -> break
       :: else -> j++
       od;
       job = j; mine = attempt[j];
       j = 0 }

  /* write(): it runs. Repeated until it is answered; was_written() knows a repetition. */
  :: atomic { is_up[me] && is_alive[me] && job != NOBODY && !is_running ->
       is_silent[me] = false;
       if
       :: HOLDS_JOB && (state[job] == ready || state[job] == running) ->
         state[job] = running;
         lose_answer(lost);
         is_running = !lost
       :: else -> job = NOBODY
       fi;
       lost = false }

  /* write(): it has ended. */
  :: atomic { is_up[me] && MAY_WRITE && job != NOBODY && is_running ->
       is_silent[me] = false;
       if
       :: HOLDS_JOB && state[job] == running ->
         assert(lease[job] == me && attempt[job] == mine);
         state[job] = done;
         lease[job] = NOBODY;
         finished[job]++;
         assert(finished[job] == 1);
         open_jobs--;
         lose_answer(lost);
         if :: !lost -> job = NOBODY; is_running = false :: else fi
       :: else -> job = NOBODY; is_running = false  /* written before, or somebody else's by now */
       fi;
       lost = false }

  /* free_lost() */
  :: atomic { is_up[me] && is_alive[me] && ANY_LOST ->
       do
       :: IS_LOST(other) -> break
       :: else -> other++
       od;
       free_lost(other);
       other = 0 }

  /* Bad luck. The first launcher does not die, so that somebody is left. */
  :: atomic { bad_luck > 0 && is_up[me] && me != 0 -> bad_luck--; is_up[me] = false; is_silent[me] = true }
  :: atomic { bad_luck > 0 && is_up[me] && !is_silent[me] -> bad_luck--; is_silent[me] = true }
  od
}

init {
  byte i = 0;
  atomic {
    do
    :: i < LAUNCHERS -> run launcher(i); i++
    :: else -> break
    od
  }
}

/* Every job is finished, if no launcher is passed over for ever. */
ltl nothing_is_stuck { <> (open_jobs == 0) }
