// What the launcher and its agents, one per host, say to each other over a pair of pipes.
//
// The agent opens with kAgentGreeting (so that what a login shell printed before can be skipped),
// then both speak in frames (base/frames.h), version 1.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/frames.h"

namespace kolo::launch {

using namespace std::string_view_literals;
inline constexpr std::string_view kAgentGreeting = "\0kolo agent 1\n"sv;
inline constexpr std::size_t kAgentFrameLimit = 256U << 20;

/// Numbers are part of the protocol: never reuse one.
enum class AgentMessage : std::uint8_t {
  // launcher to agent
  start = 1,  ///< StartJob
  stop = 2,   ///< SIGTERM to all, SIGKILL after the grace time
  kill = 3,   ///< SIGKILL to all
  // agent to launcher
  hello = 64,         ///< AgentHello
  start_failed = 65,  ///< text; nothing runs on this host
  started = 66,       ///< all ranks of this host run
  output = 67,        ///< RankOutput
  exited = 68,        ///< RankExit
  done = 69,          ///< nothing of the job is left on this host
};

struct AgentHello {
  std::string host;    ///< the machine's own name for itself
  std::string from;    ///< the launcher's address as this host sees it, "" if not known
  int processors = 1;  ///< that the agent may use
};

enum class BindTo : std::uint8_t { none = 0, core = 1, socket = 2 };

struct RankStart {
  int rank = 0;
  std::vector<std::string> environment;  ///< NAME=VALUE on top of the job's
};

struct StartJob {
  std::string directory;
  std::vector<std::string> argv;
  std::vector<std::string> environment;  ///< NAME=VALUE on top of the agent's own
  std::string secret;
  BindTo bind_to = BindTo::none;
  std::uint32_t grace_ms = 5000;  ///< between SIGTERM and SIGKILL
  std::vector<RankStart> ranks;
};

enum class Stream : std::uint8_t { out = 1, err = 2 };

struct RankOutput {
  int rank = 0;
  Stream stream = Stream::out;
  std::string bytes;  ///< empty: this stream has ended
};

struct RankExit {
  int rank = 0;
  int status = 0;  ///< as from waitpid
};

std::string encode(const AgentHello& message);
std::string encode(const StartJob& message);
std::string encode(const RankOutput& message);
std::string encode(const RankExit& message);
AgentHello decode_agent_hello(std::string_view payload);
StartJob decode_start_job(std::string_view payload);
RankOutput decode_rank_output(std::string_view payload);
RankExit decode_rank_exit(std::string_view payload);

inline std::string frame(AgentMessage type, std::string_view payload = {}) {
  return encode_frame(static_cast<std::uint8_t>(type), payload);
}

}  // namespace kolo::launch
