// What a launcher and its workers, one per node, say to each other over a pair of pipes.
//
// The worker opens with kWorkerGreeting (what a login shell printed before is skipped), then both
// speak in frames (base/frames.h), version 1.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/frames.h"

namespace kolo::jobs {

using namespace std::string_view_literals;
inline constexpr std::string_view kWorkerGreeting = "\0kolo worker 1\n"sv;
inline constexpr std::size_t kWorkerFrameLimit = 64U << 20;

/// Numbers are part of the protocol: never reuse one.
enum class WorkerMessage : std::uint8_t {
  // launcher to worker
  environment = 1,  ///< list of NAME=VALUE: what tasks get instead of the worker's own
  start = 2,        ///< StartTask
  end = 3,  ///< number of a task: SIGTERM to its process group, SIGKILL after the grace time
  // worker to launcher
  hello = 64,   ///< WorkerHello
  ended = 65,   ///< TaskEnd
  failed = 66,  ///< number of a task and text: it could not be started
  line = 67,    ///< nothing but the end of a line: srun holds back what has none
};

struct WorkerHello {
  std::string host;
  int processors = 1;
};

struct StartTask {
  std::uint64_t task = 0;
  std::vector<std::string> argv;
  std::vector<std::string> environment;  ///< NAME=VALUE on top of the worker's
  std::string directory;
  std::string output;  ///< file, both streams are appended to it; "" = nowhere
  std::uint32_t grace_ms = 10'000;
  std::vector<int> cores;  ///< processors it may use; empty = all
};

struct TaskEnd {
  std::uint64_t task = 0;
  int status = 0;    ///< as from waitpid
  std::string tail;  ///< the end of its output, if it did not end well
};

struct TaskFailure {
  std::uint64_t task = 0;
  std::string why;
};

std::string encode(const WorkerHello& message);
std::string encode(const StartTask& message);
std::string encode(const TaskEnd& message);
std::string encode(const TaskFailure& message);
std::string encode(const std::vector<std::string>& environment);
std::string encode_task(std::uint64_t task);
WorkerHello decode_hello(std::string_view payload);
StartTask decode_start(std::string_view payload);
TaskEnd decode_end(std::string_view payload);
TaskFailure decode_failure(std::string_view payload);
std::vector<std::string> decode_environment(std::string_view payload);
std::uint64_t decode_task(std::string_view payload);

inline std::string frame(WorkerMessage type, std::string_view payload = {}) {
  return encode_frame(static_cast<std::uint8_t>(type), payload);
}

}  // namespace kolo::jobs
