// An object that only the process that made it may end.
//
// Data loaders fork, and a child that ends by exit() runs the destructors of statics. What they
// would end is shared with the parent: connections, on which the child would say goodbye for it,
// and threads that the child does not have. So the child leaves the object alone.
#pragma once

#include <unistd.h>

#include <memory>
#include <utility>

namespace kolo {

/// What a unique_ptr of the parent points to is neither ended nor freed by a fork.
template <class T>
void forget(std::unique_ptr<T> of_parent) noexcept {
  [[maybe_unused]] const T* left = of_parent.release();
}

template <class T>
class ProcessOwned {
 public:
  ProcessOwned() = default;
  ~ProcessOwned() { reset(); }
  ProcessOwned(const ProcessOwned&) = delete;
  ProcessOwned& operator=(const ProcessOwned&) = delete;

  template <class... Arguments>
  T& emplace(Arguments&&... arguments) {
    reset();
    value_ = std::make_unique<T>(std::forward<Arguments>(arguments)...);
    owner_ = ::getpid();
    return *value_;
  }
  /// In another process the object is forgotten, not destroyed.
  void reset() noexcept {
    if (owner_ != ::getpid()) forget(std::move(value_));
    value_.reset();
  }

  [[nodiscard]] T* get() const noexcept { return value_.get(); }
  explicit operator bool() const noexcept { return value_ != nullptr; }
  T& operator*() const noexcept { return *value_; }
  T* operator->() const noexcept { return value_.get(); }

 private:
  std::unique_ptr<T> value_;
  pid_t owner_ = 0;
};

}  // namespace kolo
