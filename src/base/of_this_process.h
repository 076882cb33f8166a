// A static variable whose destructor runs in the process that made it, and not in forks of it.
//
// A fork has the memory of its parent but not its threads: a destructor that joins one would wait
// for ever.
#pragma once

#include <unistd.h>

namespace kolo {

template <class T>
class OfThisProcess {
 public:
  OfThisProcess() : value_(new T), owner_(::getpid()) {}
  ~OfThisProcess() {
    if (::getpid() == owner_) delete value_;
  }
  OfThisProcess(const OfThisProcess&) = delete;
  OfThisProcess& operator=(const OfThisProcess&) = delete;

  T& operator*() noexcept { return *value_; }

 private:
  T* value_;
  pid_t owner_;
};

}  // namespace kolo
