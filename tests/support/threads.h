// Runs one thread per rank and says what they threw.
#pragma once

#include <exception>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace kolo::test {

inline void run_threads(int count, const std::function<void(int)>& body) {
  std::vector<std::thread> threads;
  std::vector<std::string> errors(static_cast<std::size_t>(count));
  for (int rank = 0; rank < count; ++rank)
    threads.emplace_back([&, rank] {
      try {
        body(rank);
      } catch (const std::exception& error) {
        errors[rank] = error.what();
      }
    });
  for (std::thread& thread : threads) thread.join();
  std::string all;
  for (int rank = 0; rank < count; ++rank)
    if (!errors[rank].empty()) all += "rank " + std::to_string(rank) + ": " + errors[rank] + "\n";
  if (!all.empty()) throw std::runtime_error(all);
}

}  // namespace kolo::test
