// The life of an operation: submit() files it under its name and wakes the thread. The thread sends
// its request to the leader (take_submissions), where the Coordinator decides when all members have
// it. The decision goes to every member, and each thread carries out decisions one after the other
// (execute), which wakes whoever synchronizes. So all members run the same collectives in the same
// order, and no thread but this one uses data_.
//
// A set of one member has no thread and no leader: whoever submits executes at once. When a member
// is lost, end() fails everything that is in flight, and every later call throws the same error.
#include "engine/set_engine.h"

#include <algorithm>
#include <cctype>
#include <exception>
#include <thread>

#include "base/errors.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "comm/group.h"
#include "comm/internals.h"

namespace kolo::runtime {
namespace {

constexpr auto kStartTime = std::chrono::seconds(120);
constexpr auto kFarewellTime = std::chrono::milliseconds(200);
constexpr std::size_t kNameLimit = 4096;
constexpr std::size_t kNameShown = 60;
constexpr std::size_t kTraceBytes = std::size_t{8} << 20;

std::vector<int> everybody(const Communicator& communicator) {
  std::vector<int> all(static_cast<std::size_t>(communicator.size()));
  for (int r = 0; r < communicator.size(); ++r) all[static_cast<std::size_t>(r)] = r;
  return all;
}

Error no_room(const Request& request, const char* why) {
  return {ErrorCode::unavailable, fmt::format("{} '{}': there is no memory for the result: {}",
                                              comm::to_string(request.kind), request.name, why)};
}

/// What travels to the leader and back is not the data, and has limits of its own.
void check_size(const Request& request) {
  const std::string_view kind = comm::to_string(request.kind);
  if (request.name.size() > kNameLimit)
    throw_error(ErrorCode::invalid_argument,
                "{} '{}…': the name has {} bytes, but at most {} are allowed; use a shorter one",
                kind, request.name.substr(0, kNameShown), request.name.size(), kNameLimit);
  if (encoded_bytes(request) > kRequestLimit)
    throw_error(ErrorCode::invalid_argument,
                "{} '{}': {} tensors with these shapes are more than one operation can have; use "
                "several operations",
                kind, request.name, request.tensors.size());
}

/// Horovod's word for an operation in a timeline; it has none of its own for groups.
std::string word_of(OpKind kind) {
  std::string word(comm::to_string(kind == OpKind::grouped_allreduce ? OpKind::allreduce : kind));
  for (char& letter : word) letter = static_cast<char>(std::toupper(letter));
  return word;
}

/// Horovod's name for a tensor in a timeline: "allreduce.loss".
std::string row_of(const Request& request) {
  const std::string kind(comm::to_string(
      request.kind == OpKind::grouped_allreduce ? OpKind::allreduce : request.kind));
  return request.name.starts_with(kind + '.') ? request.name : kind + '.' + request.name;
}

}  // namespace

SetEngine::SetEngine(Communicator& parent, std::vector<int> world_ranks, int id,
                     const Coordinator::Options& options, std::shared_ptr<Timeline> timeline)
    : ranks_(std::move(world_ranks)),
      id_(id),
      data_(parent.subset(ranks_)),
      timeline_(std::move(timeline)),
      carries_timeline_(id == 0) {
  if (data_ == nullptr) return;
  control_ = data_->subset(everybody(*data_));
  executor_.emplace(*data_);
  if (data_->size() == 1) return;  // whoever submits executes
  star_.emplace(*data_, Deadline::after(kStartTime));
  if (leads()) coordinator_.emplace(ranks_, options);
  thread_ = std::thread([this] { run(); });
}

SetEngine::~SetEngine() {
  if (thread_.joinable()) {
    {
      MutexLock lock(mutex_);
      stopping_ = true;
    }
    star_->wake();
    thread_.join();
  }
  end(Error(ErrorCode::cancelled, "the engine was shut down before the operation was done"));
}

void SetEngine::nudge() noexcept {
  if (star_) star_->wake();
}

// --- callers -------------------------------------------------------------------------------------

void SetEngine::submit(const std::shared_ptr<Operation>& operation) {
  Request& request = operation->request;
  operation->submitted = Timeline::Clock::now();
  bool must_wake = false;
  {
    MutexLock lock(mutex_);
    if (ended_) throw *ended_;
    if (request.name.empty())
      request.name = fmt::format("{}.noname.{}", comm::to_string(request.kind),
                                 unnamed_[static_cast<int>(request.kind)]++);
    check_size(request);
    if (!in_flight_.try_emplace(request.name, operation).second)
      throw_error(ErrorCode::invalid_argument,
                  "{} '{}': an operation with this name is already in flight; synchronize it "
                  "first, or use another name",
                  comm::to_string(request.kind), request.name);
    if (star_) {
      must_wake = submitted_.empty();
      submitted_.push_back(operation);
    }
  }
  if (must_wake) star_->wake();
  if (star_) return;
  MutexLock lock(alone_mutex_);
  Decision decision;
  decision.requests.push_back(request);
  execute(decision);
  if (carries_timeline_) carry_timeline();
}

template <class Done>
void SetEngine::wait_to_join(MutexLock& lock, Done done) {
  constexpr auto kSlice = std::chrono::milliseconds(50);
  while (!join_changed_.wait_for(lock, kSlice, done)) throw_if_interrupted();
}

// A rank that has joined still takes part in the collectives of its guests (the pipelines of
// optimizers), with zeros, until all ranks have joined.
int SetEngine::join() {
  if (!star_) return ranks_[0];
  std::vector<Guest*> guests;
  {
    MutexLock lock(mutex_);
    if (ended_) throw *ended_;
    if (is_joining_)
      throw_error(ErrorCode::failed_precondition, "join: this rank has already joined");
    is_joining_ = true;
    join_announced_ = join_noted_ = false;
    last_joined_.reset();
    guests = guests_;
  }
  star_->wake();
  {
    // Not before the leader knows: whoever joins after a step in which this rank stood in would
    // else seem to have joined before it.
    MutexLock lock(mutex_);
    wait_to_join(lock, [&]() KOLO_REQUIRES(mutex_) { return join_noted_ || ended_; });
  }
  // A guest that another rank does not answer any more fails; all others are waited for first.
  std::vector<std::exception_ptr> failures(guests.size());
  const auto stand_in = [&](std::size_t i) {
    try {
      guests[i]->stand_in();
    } catch (...) {
      failures[i] = std::current_exception();
    }
  };
  std::vector<std::thread> others;
  for (std::size_t i = 1; i < guests.size(); ++i) others.emplace_back(stand_in, i);
  if (!guests.empty()) stand_in(0);
  for (auto& thread : others) thread.join();
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
  MutexLock lock(mutex_);
  wait_to_join(lock, [&]() KOLO_REQUIRES(mutex_) { return last_joined_ || ended_; });
  is_joining_ = false;
  if (!last_joined_) throw *ended_;
  return *last_joined_;
}

std::unique_ptr<Communicator> SetEngine::make_communicator() {
  MutexLock lock(control_mutex_);
  return control_->subset(everybody(*control_));
}

void SetEngine::add_guest(Guest* guest) {
  MutexLock lock(mutex_);
  guests_.push_back(guest);
}

void SetEngine::remove_guest(Guest* guest) {
  MutexLock lock(mutex_);
  std::erase(guests_, guest);
}

void SetEngine::set_trace(std::unique_ptr<TraceFile> file) {
  MutexLock lock(mutex_);
  trace_ = std::move(file);
}

// --- the engine's thread -------------------------------------------------------------------------

/// What is thrown here, such as for want of memory, ends the set on every rank: this one takes part
/// no more, and the others see that its connections are closed.
void SetEngine::run() {
  try {
    while (take_turn()) {
    }
    if (carries_timeline_) carry_timeline();
    star_->flush(Deadline::after(kFarewellTime));
    return;
  } catch (const Error& error) {
    end(error);
  } catch (const std::exception& error) {
    end(Error(ErrorCode::internal, fmt::format("engine: {}", error.what())));
  }
  star_->close();
}

bool SetEngine::take_turn() {
  std::optional<Coordinator::Clock::time_point> until;
  if (coordinator_) until = coordinator_->next_check();
  const Star::News news = star_->wait(until);
  {
    MutexLock lock(mutex_);
    if (stopping_) return false;
  }
  negotiate(news);
  for (const Decision& decision : std::exchange(decisions_, {})) carry_out(decision);
  // After the decisions: who has gone was there for what was decided before.
  for (const Lost& lost : std::exchange(losses_, {})) note_lost(lost.member, lost.reason);
  return true;
}

void SetEngine::negotiate(const Star::News& news) {
  // Events first: whoever waits for an operation that was submitted later finds them in the file.
  if (carries_timeline_) carry_timeline();
  take_submissions();
  const auto now = Coordinator::Clock::now();
  for (const auto& [from, frame] : news.messages) {
    switch (static_cast<MessageType>(frame.type)) {
      case MessageType::submit:
        for (Request& request : decode_submit(frame.payload))
          coordinator_->submit(from, std::move(request), now);
        break;
      case MessageType::join:
        coordinator_->join(from);
        star_->send(from, encode_join_noted());
        break;
      case MessageType::join_noted: note_join(); break;
      case MessageType::decide:
        for (Decision& decision : decode_decisions(frame.payload))
          decisions_.push_back(std::move(decision));
        break;
      case MessageType::lost: losses_.push_back(decode_lost(frame.payload)); break;
      case MessageType::trace: {
        MutexLock lock(mutex_);
        if (trace_) trace_->append(frame.payload);
        break;
      }
    }
  }
  if (coordinator_) {
    if (const auto text = coordinator_->check_stalls(now)) log::warning("{}", *text);
    auto decided = coordinator_->take_decisions();
    send_decisions(decided);
    for (auto& decision : decided) decisions_.push_back(std::move(decision));
  }
  for (const auto& [member, reason] : news.closed) {
    if (leads())
      for (int other = 1; other < size(); ++other)
        if (other != member) star_->send(other, encode_lost({member, reason}));
    losses_.push_back({member, reason});
  }
}

void SetEngine::take_submissions() {
  std::vector<std::shared_ptr<Operation>> operations;
  bool announces_join = false;
  {
    MutexLock lock(mutex_);
    operations.swap(submitted_);
    announces_join = is_joining_ && !join_announced_;
    join_announced_ = join_announced_ || announces_join;
  }
  const auto now = Coordinator::Clock::now();
  if (leads()) {
    for (const auto& operation : operations) coordinator_->submit(0, operation->request, now);
    if (announces_join) {
      coordinator_->join(0);
      note_join();
    }
    return;
  }
  send_submissions(operations);
  if (announces_join) star_->send(0, encode_join());
}

// However many operations there are, a frame stays far below the receiver's limit.
void SetEngine::send_submissions(const std::vector<std::shared_ptr<Operation>>& operations) {
  std::vector<Request> requests;
  std::size_t bytes = 0;
  const auto flush = [&] {
    if (!requests.empty()) star_->send(0, encode_submit(requests));
    requests.clear();
    bytes = 0;
  };
  for (const auto& operation : operations) {
    const std::size_t more = encoded_bytes(operation->request);
    if (bytes + more > kRequestLimit) flush();
    requests.push_back(operation->request);
    bytes += more;
  }
  flush();
}

void SetEngine::send_decisions(const std::vector<Decision>& decisions) {
  std::vector<Decision> together;
  std::size_t bytes = 0;
  const auto flush = [&] {
    if (together.empty()) return;
    const std::string frame = encode_decisions(together);
    for (int member = 1; member < size(); ++member) star_->send(member, frame);
    together.clear();
    bytes = 0;
  };
  for (const Decision& decision : decisions) {
    const std::size_t more = encoded_bytes(decision);
    if (bytes + more > kRequestLimit) flush();
    together.push_back(decision);
    bytes += more;
  }
  flush();
}

void SetEngine::note_join() {
  MutexLock lock(mutex_);
  join_noted_ = true;
  join_changed_.notify_all();
}

void SetEngine::carry_out(const Decision& decision) {
  switch (decision.kind) {
    case Decision::Kind::execute: return execute(decision);
    case Decision::Kind::fail:
      if (std::find(decision.absent.begin(), decision.absent.end(), rank()) !=
          decision.absent.end())
        return;
      for (const Request& request : decision.requests)
        if (const auto operation = take(request.name))
          operation->fail(decision.rank < 0 ? Error(decision.code, decision.text)
                                            : Error(decision.code, decision.text, decision.rank));
      return;
    case Decision::Kind::joined: {
      MutexLock lock(mutex_);
      last_joined_ = decision.rank;
      join_changed_.notify_all();
      return;
    }
  }
}

void SetEngine::execute(const Decision& decision) {
  std::vector<std::shared_ptr<Operation>> operations;
  operations.reserve(decision.requests.size());
  for (const Request& request : decision.requests) operations.push_back(take(request.name));
  struct Span {
    Timeline::Clock::time_point begin, end;
  };
  std::vector<Span> copies;
  CopyNote note;
  if (timeline_->is_on()) note = [&](auto from, auto to) { copies.push_back({from, to}); };
  const auto begin = Timeline::Clock::now();
  timeline_->cycle(begin);
  std::optional<Error> error;
  try {
    executor_->execute(decision.requests, operations, note);
  } catch (const Error& why) {
    error = why.rank()
                ? Error(why.code(), why.message(), ranks_[static_cast<std::size_t>(*why.rank())])
                : why;
  } catch (const std::exception& why) {  // from an allocator of the caller's
    error = no_room(decision.requests[0], why.what());
  } catch (...) {
    error = no_room(decision.requests[0], "its allocator threw");
  }
  const auto done = Timeline::Clock::now();
  for (const auto& operation : operations) {
    if (operation == nullptr) continue;
    if (timeline_->is_on()) {
      const std::string what = word_of(operation->request.kind);
      const std::string name = row_of(operation->request);
      const std::size_t bytes = operation->request.bytes();
      timeline_->mark("ready", name, operation->submitted);
      timeline_->span("NEGOTIATE_" + what, name, operation->submitted, begin, bytes);
      timeline_->span(what, name, begin, done, bytes);
      // In and out by turns, for each type of the tensors.
      for (std::size_t i = 0; i < copies.size(); ++i)
        timeline_->span(i % 2 == 0 ? "MEMCPY_IN_FUSION_BUFFER" : "MEMCPY_OUT_FUSION_BUFFER", name,
                        copies[i].begin, copies[i].end, bytes);
    }
    if (error)
      operation->fail(*error);
    else
      operation->complete();
  }
  if (error && error->code() == ErrorCode::peer_lost) end(*error);
}

void SetEngine::carry_timeline() {
  const std::string lines = timeline_->take();
  if (lines.empty()) return;
  if (leads()) {
    MutexLock lock(mutex_);
    if (trace_) trace_->append(lines);
    return;
  }
  // Many events of a long collective may come at once.
  for (std::string_view rest = lines; !rest.empty();) {
    const std::string_view part = rest.substr(0, kTraceBytes);
    star_->send(0, encode_trace(part));
    rest.remove_prefix(part.size());
  }
}

void SetEngine::note_lost(int member, const std::string& reason) {
  const int rank = ranks_[static_cast<std::size_t>(member)];
  comm::Internals::group_of(*data_).give_up(member);
  end(Error(ErrorCode::peer_lost, fmt::format("engine: rank {} {}", rank, reason), rank));
}

void SetEngine::end(const Error& why) {
  std::unordered_map<std::string, std::shared_ptr<Operation>> open;
  {
    MutexLock lock(mutex_);
    if (!ended_) ended_ = why;
    open.swap(in_flight_);
    submitted_.clear();
    join_changed_.notify_all();
  }
  for (const auto& [name, operation] : open) operation->fail(why);
}

std::shared_ptr<Operation> SetEngine::take(const std::string& name) {
  MutexLock lock(mutex_);
  const auto found = in_flight_.find(name);
  if (found == in_flight_.end()) return nullptr;
  auto operation = std::move(found->second);
  in_flight_.erase(found);
  return operation;
}

}  // namespace kolo::runtime
