#include "kolo/tune/session.h"

#include "base/env.h"
#include "base/errors.h"
#include "base/log.h"
#include "tune/executor/executor.h"
#include "tune/protocol/trial_client.h"
#include "tune/protocol/value_text.h"

namespace kolo::tune {
namespace {

thread_local Session* current = nullptr;

/// That of a program which `kolo tune` started. Null elsewhere.
Session* session_of_program() {
  if (!environment(kTrialId)) return nullptr;
  return &client_session();
}

/// Steps of a class until it is told to stop or says that it is done.
void run_steps(Trainable& trial, SessionBase& session, const ClassPolicy& policy) {
  const auto save = [&trial](const std::filesystem::path& directory) { trial.save(directory); };
  for (;;) {
    const Value metrics = trial.step();
    const std::int64_t iteration = session.iteration() + 1;
    const bool due = policy.freq > 0 && iteration % policy.freq == 0;
    if (due) session.save_checkpoint(save);
    const bool go_on = session.try_report(metrics);
    const Value* done = metrics.find_path("done");
    const bool finished = done != nullptr && done->is_bool() && done->as_bool();
    const bool wanted =
        session.pausing() || session.should_save() || (policy.at_end && (finished || !go_on));
    if (wanted && !due) session.save_now(save);
    if (finished || !go_on) return;
  }
}

}  // namespace

void SessionBase::check_metrics(const Value& metrics) {
  if (!metrics.is_dict())
    throw_error(ErrorCode::invalid_argument, "a report is a dictionary of metrics, not {}",
                metrics.to_string());
  require_shallow(metrics, "a report");
}

CurrentSession::CurrentSession(Session& session) { current = &session; }
CurrentSession::~CurrentSession() { current = nullptr; }

Session& session() {
  if (current != nullptr) return *current;
  Session* const own = session_of_program();
  if (own == nullptr)
    throw_error(
        ErrorCode::failed_precondition,
        "this thread does not run a trial; call report from the thread of the trainable, or "
        "start the program with `kolo tune`");
  return *own;
}

void report(const Value& metrics) { session().report(metrics); }

void run_trainable(const Runnable& trainable, const Config& config, Session& session,
                   const ClassPolicy& policy) {
  const CurrentSession here(session);
  if (trainable.function()) {
    trainable.function()(config, session);
    return;
  }
  auto& base = dynamic_cast<SessionBase&>(session);
  base.offer_saves();
  auto trial = trainable.factory()();
  trial->setup(config);
  if (const auto checkpoint = session.checkpoint()) trial->load(*checkpoint);
  try {
    run_steps(*trial, base, policy);
  } catch (...) {
    try {
      trial->cleanup();
    } catch (const std::exception& error) {  // The trial's error is what went wrong first.
      log::warning("a trial has failed, and then its cleanup: {}", error.what());
    }
    throw;
  }
  trial->cleanup();
}

}  // namespace kolo::tune
