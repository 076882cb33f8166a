// This process as a worker of an elastic job (docs/elastic-runs.md). The loop over groups is in
// kolo/_elastic_run.py and the states are in kolo/_elastic.py; compare src/comm/elastic/run.cc,
// which is the same for C++.
#include <pybind11/stl.h>

#include <algorithm>
#include <numeric>

#include "base/env.h"
#include "base/errors.h"
#include "blocking.h"
#include "comm/elastic/commit_files.h"
#include "comm/elastic/membership.h"
#include "comm/elastic/told.h"
#include "comm/launchers.h"
#include "errors.h"
#include "kolo/kolo.h"
#include "module.h"
#include "runtime.h"

namespace kolo::python {
namespace {

namespace py = pybind11;
using comm::elastic::CommitFiles;
using comm::elastic::Membership;
using comm::elastic::Next;
using comm::elastic::Wish;

constexpr std::int64_t kCommitEvery = 100;

/// Of an exception of Python, by its code.
Error error_of(const std::string& code) {
  for (const ErrorCode one : {ErrorCode::peer_lost, ErrorCode::timeout, ErrorCode::unavailable})
    if (code == to_string(one)) return {one, ""};
  return {ErrorCode::internal, ""};
}

/// What a worker does from its first group to its last. One thread at a time.
class Worker {
 public:
  Worker() : membership_(blocking([] { return Membership::of_this_process(); })) {
    if (membership_ == nullptr)
      throw_error(ErrorCode::failed_precondition, "this process is no worker of an elastic job");
    membership_->heed_notice();
    if (const auto directory = setting("COMMIT_DIR"); directory && !directory->empty())
      files_.emplace(*directory);
  }

  /// Collective, after init().
  void enter_group() {
    check_running();
    std::vector<int> all(static_cast<std::size_t>(size()));
    std::iota(all.begin(), all.end(), 0);
    run([&] { meeting_ = world().subset(all); });
    membership_->met();
  }
  [[nodiscard]] bool has_met() const noexcept { return membership_->has_met(); }
  [[nodiscard]] bool ends_group(const std::string& code) const {
    return membership_->ends_group(error_of(code));
  }
  /// What each rank gives, on every rank. Collective.
  std::vector<std::int64_t> gather(std::int64_t value) {
    std::vector<std::int64_t> all;
    run([&] { all = meeting().allgather(std::span<const std::int64_t>(&value, 1)); });
    return all;
  }
  /// Whether the group goes on. Collective.
  bool end_step() {
    auto wish = static_cast<std::int32_t>(membership_->wish());
    run([&] { wish = meeting().allreduce(wish, ReduceOp::max); });
    return wish == static_cast<std::int32_t>(Wish::go_on);
  }
  void leave_group(int blamed) { membership_->leave_group(blamed); }
  /// Before shutdown().
  void end_meeting() { meeting_.reset(); }
  std::string await_next() {
    switch (blocking([&] { return membership_->await_next(); })) {
      case Next::finish: return "finish";
      case Next::leave: return "leave";
      default: return "join";
    }
  }
  /// Nobody goes while another may have to take a step again. Collective.
  void finish() {
    run([&] { meeting().barrier(); });
    membership_->finished();
  }

  [[nodiscard]] bool has_launcher() const noexcept { return membership_->has_launcher(); }
  [[nodiscard]] bool has_commit_dir() const noexcept { return files_.has_value(); }
  [[nodiscard]] std::uint64_t commit_every() const noexcept { return every_; }
  void write_commit(std::uint64_t commits, const std::string& bytes) {
    blocking([&] { files_->write({commits, {bytes}}); });
  }
  void try_write_commit(std::uint64_t commits, const std::string& bytes) {
    blocking([&] { files_->try_write({commits, {bytes}}, every_); });
  }
  std::optional<std::pair<std::uint64_t, py::bytes>> read_commit() {
    auto commit = blocking([&] { return files_->read_latest(); });
    if (!commit) return std::nullopt;
    if (commit->parts.size() != 1)
      throw_error(ErrorCode::invalid_argument,
                  "the commit on disk is not that of a Python program; resume with the program "
                  "that wrote it");
    return std::pair(commit->commits, py::bytes(commit->parts.front()));
  }

 private:
  template <class Action>
  void run(Action&& action) {
    const Inside inside;
    as_operation([&] { blocking(action); });
  }
  Communicator& meeting() {
    if (!meeting_)
      throw_error(ErrorCode::failed_precondition, "this worker is in no group at the moment");
    return *meeting_;
  }

  Membership* membership_;
  std::unique_ptr<Communicator> meeting_;  // of the group, for the ends of steps
  std::optional<CommitFiles> files_;
  std::uint64_t every_ = static_cast<std::uint64_t>(
      std::max<std::int64_t>(1, setting_count("COMMIT_EVERY").value_or(kCommitEvery)));
};

/// Whether init(), which has failed with this, is to be called again, in the next group.
bool meets_again(const std::string& code, int blamed) {
  if (comm::read_launcher(environment).worker < 0) return false;
  Membership* membership = blocking([] { return Membership::of_this_process(); });
  if (membership == nullptr || !membership->ends_group(error_of(code))) return false;
  membership->leave_group(blamed);
  return true;
}

/// Whether init(), which was cancelled, was so because no group is to take this worker in.
bool is_to_leave() {
  if (comm::read_launcher(environment).worker < 0) return false;
  const Membership* membership = blocking([] { return Membership::of_this_process(); });
  return membership != nullptr && !membership->is_in_group();
}

}  // namespace

void bind_elastic(py::module_& m) {
  m.def("is_elastic_worker", [] { return comm::read_launcher(environment).worker >= 0; });
  m.def("told_count", [] { return comm::elastic::told_count(); });
  m.def("set_told_count", [](std::int64_t count) { comm::elastic::told_count() = count; });
  m.def("meets_again", &meets_again);
  m.def("is_to_leave", &is_to_leave);
  py::class_<Worker>(m, "ElasticWorker", "This process as a worker of an elastic job.")
      .def(py::init<>())
      .def("enter_group", &Worker::enter_group)
      .def("gather", &Worker::gather)
      .def("end_step", &Worker::end_step)
      .def("leave_group", &Worker::leave_group)
      .def("end_meeting", &Worker::end_meeting)
      .def("await_next", &Worker::await_next)
      .def("finish", &Worker::finish)
      .def("ends_group", &Worker::ends_group)
      .def_property_readonly("has_met", &Worker::has_met)
      .def_property_readonly("has_launcher", &Worker::has_launcher)
      .def_property_readonly("has_commit_dir", &Worker::has_commit_dir)
      .def_property_readonly("commit_every", &Worker::commit_every)
      .def("write_commit", &Worker::write_commit)
      .def("try_write_commit", &Worker::try_write_commit)
      .def("read_commit", &Worker::read_commit);
}

}  // namespace kolo::python
