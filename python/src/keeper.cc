#include "keeper.h"

#include <thread>

namespace kolo::python {

Keeper& Keeper::of_this_process() {
  static auto* keeper = new Keeper;
  return *keeper;
}

Keeper::Keeper() {
  std::thread([this] { work(); }).detach();
}

void Keeper::add(Handle handle, std::function<void(const Error*)> then) {
  const MutexLock lock(mutex_);
  promises_.push_back({std::move(handle), std::move(then)});
  changed_.notify_one();
}

std::optional<Error> Keeper::last_failure() const {
  const MutexLock lock(mutex_);
  return last_failure_;
}

void Keeper::note_failure(const Error& error) {
  const MutexLock lock(mutex_);
  last_failure_ = error;
}

void Keeper::work() {
  while (true) {
    Promise next;
    {
      MutexLock lock(mutex_);
      changed_.wait(lock, [&]() KOLO_REQUIRES(mutex_) { return !promises_.empty(); });
      next = std::move(promises_.front());
      promises_.pop_front();
    }
    try {
      next.handle.wait();
      next.then(nullptr);
    } catch (const Error& error) {
      note_failure(error);
      next.then(&error);
    }
  }
}

}  // namespace kolo::python
