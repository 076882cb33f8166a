// elastic::run(): one turn of the loop in Session::run() for each group that this worker is in.
//
// How no step is lost: a commit is made by every rank before any rank begins the step after the
// next one, because commit() is a meeting. So when a rank dies, the commits of the survivors differ
// by one at most, and those behind take the state of those ahead (State::sync). A step that nobody
// has committed is computed again.
#include <algorithm>
#include <numeric>
#include <optional>

#include "base/env.h"
#include "base/errors.h"
#include "base/log.h"
#include "comm/elastic/commit_files.h"
#include "comm/elastic/membership.h"
#include "comm/elastic/state.h"
#include "comm/elastic/told.h"

namespace kolo::comm::elastic {

std::int64_t& told_count() noexcept {
  static std::int64_t count = 0;
  return count;
}

}  // namespace kolo::comm::elastic

namespace kolo::elastic {

using comm::elastic::CommitFiles;
using comm::elastic::Membership;
using comm::elastic::Next;
using comm::elastic::Wish;

namespace {

/// Between commits that go to disk, unless KOLO_COMMIT_EVERY says it.
constexpr std::int64_t kCommitEvery = 100;

/// Leaves the user's function at the end of a step. Not a std::exception, so that programs which
/// catch those do not stop it.
struct EndOfGroup {};

}  // namespace

class Session {
 public:
  Session(State& state, const ContextOptions& options)
      : state_(state), options_(options), membership_(Membership::of_this_process()) {
    if (membership_ == nullptr) return;
    membership_->heed_notice();
    if (!std::exchange(state_.contents_->counts_told, true))
      state_.add(comm::elastic::told_count());
    state_.contents_->before_commit = [this] { hand_over(); };
    state_.contents_->at_end_of_step = [this] { end_step(); };
    state_.contents_->ask_again = [this] {
      state_.contents_->is_synced = false;
      throw EndOfGroup{};
    };
    if (const auto directory = setting("COMMIT_DIR"); directory && !directory->empty()) {
      files_.emplace(*directory);
      state_.contents_->at_beginning = [this] { return read_commit(); };
    }
    state_.save();  // something to go back to before the first commit
  }
  ~Session() {
    state_.contents_->before_commit = nullptr;
    state_.contents_->at_end_of_step = nullptr;
    state_.contents_->at_beginning = nullptr;
    state_.contents_->ask_again = nullptr;
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  Ending run(const std::function<void(State&)>& function);

 private:
  bool work(const std::function<void(State&)>& function);
  void join_group();
  void enter_group();
  /// Back to the last commit, or without a state if there is no copy of it.
  void restore() {
    if (state_.contents_->has_copy) return state_.restore();
    state_.contents_->is_synced = false;
  }
  void hand_over();
  void gather();
  void end_step();
  bool read_commit();
  [[nodiscard]] comm::elastic::StoredCommit stored_commit();
  void leave_group(int blamed);
  void give_up_group();

  State& state_;
  const ContextOptions& options_;
  Membership* membership_;                 // null: nobody forms other groups
  std::unique_ptr<Communicator> meeting_;  // of the group, for the ends of steps
  std::optional<CommitFiles> files_;
  std::uint64_t every_ = static_cast<std::uint64_t>(
      std::max<std::int64_t>(1, setting_count("COMMIT_EVERY").value_or(kCommitEvery)));
  bool is_writer_ = false;        // of files: rank 0 of the last group
  bool has_returned_ = false;     // the user's function, in this group
  bool has_handed_over_ = false;  // in the last commit: ranks have something of their own
  bool is_first_ = true;
};

Ending Session::run(const std::function<void(State&)>& function) {
  if (membership_ == nullptr) {
    init(options_);
    state_.sync();
    function(state_);
    return Ending::finished;
  }
  while (!work(function)) {
    const Next next = membership_->await_next();
    if (next == Next::finish) return Ending::finished;
    give_up_group();
    if (next == Next::leave) {
      // Without a launcher no group follows, and this is the last that is known of the job.
      if (!membership_->has_launcher() && files_ && is_writer_ && state_.commits() > 0)
        files_->write(stored_commit());
      return Ending::left;
    }
  }
  return Ending::finished;
}

/// One group. False if it has ended before the work has.
bool Session::work(const std::function<void(State&)>& function) {
  try {
    enter_group();
    function(state_);
    has_returned_ = true;
    meeting_->barrier();  // nobody goes while another may have to take a step again
    membership_->finished();
    return true;
  } catch (const EndOfGroup&) {
    leave_group(-1);
  } catch (const Error& error) {
    if (!membership_->ends_group(error)) throw;
    log::info("generation {} has ended: {}", membership_->generation(), error.message());
    restore();
    leave_group(error.rank().value_or(-1));
  }
  return false;
}

/// Whoever is asked to go before a group has taken it in leaves as at the end of a step.
void Session::join_group() {
  try {
    init(options_);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::cancelled || membership_->is_in_group()) throw;
    throw EndOfGroup{};
  }
}

void Session::enter_group() {
  has_returned_ = false;
  join_group();
  is_writer_ = world().rank() == 0;
  std::vector<int> all(static_cast<std::size_t>(world().size()));
  std::iota(all.begin(), all.end(), 0);
  meeting_ = world().subset(all);
  membership_->met();
  if (!std::exchange(is_first_, false)) state_.on_reset();
  state_.share(/*is_committed=*/true);
}

void Session::end_step() {
  auto wish = static_cast<std::int32_t>(membership_->wish());
  wish = meeting_->allreduce(wish, ReduceOp::max);
  if (wish != static_cast<std::int32_t>(Wish::go_on)) {
    gather();
    throw EndOfGroup{};
  }
  if (!files_ || state_.commits() % every_ != 0) return;
  gather();
  if (is_writer_) files_->try_write(stored_commit(), every_);
}

/// When the barrier is behind one rank, every rank has handed over: whoever makes this commit, the
/// others can follow.
void Session::hand_over() {
  has_handed_over_ = false;
  for (const auto& part : state_.contents_->parts)
    if (part->hand_over(*meeting_)) has_handed_over_ = true;
  if (has_handed_over_) meeting_->barrier();
}

void Session::gather() {
  if (!has_handed_over_) return;
  for (const auto& part : state_.contents_->parts) part->gather(*meeting_);
}

comm::elastic::StoredCommit Session::stored_commit() {
  comm::elastic::StoredCommit commit{state_.commits(), {}};
  for (const auto& part : state_.contents_->parts) commit.parts.push_back(part->bytes());
  return commit;
}

/// All ranks that had the state are gone, or the job is a resumed one.
bool Session::read_commit() {
  const auto commit = files_->read_latest();
  if (!commit) return false;
  const auto& parts = state_.contents_->parts;
  if (commit->parts.size() != parts.size())
    throw_error(
        ErrorCode::invalid_argument,
        "the commit on disk has {} values, but this program's state has {}; resume with the "
        "program that wrote it",
        commit->parts.size(), parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i) parts[i]->load(commit->parts[i]);
  state_.contents_->commits = commit->commits;
  log::info("the state of commit {} was taken from disk", commit->commits);
  return true;
}

void Session::leave_group(int blamed) {
  // Others may wait for this rank, and hear of its leaving by this. Whoever waits after the end of
  // the function is waited for by nobody, and keeps the Context in case that the work is over.
  if (!has_returned_) give_up_group();
  membership_->leave_group(blamed);
}

void Session::give_up_group() {
  meeting_.reset();
  shutdown();
}

Ending run(State& state, const std::function<void(State&)>& function,
           const ContextOptions& options) {
  return Session(state, options).run(function);
}

}  // namespace kolo::elastic
