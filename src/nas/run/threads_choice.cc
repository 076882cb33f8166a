#include "nas/run/threads_choice.h"

#include <mutex>

#include "kolo/torch/threads.h"

namespace kolo::nas {

void choose_threads() {
  static std::once_flag once;
  std::call_once(once, [] {
    if (!compute_threads_are_chosen()) set_compute_threads(1);
  });
}

}  // namespace kolo::nas
