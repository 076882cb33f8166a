// How the custodian of a cluster begins to stand on a host.
//
// `kolo custodian standing` reads one order from its standard input, the key among it: a key is
// never on a command line. It answers with one line and ends; the custodian stays, in a session of
// its own. There is one per cluster, user and host: a lock says so, and whoever comes later is told
// where the first one listens.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/secret.h"
#include "base/socket.h"
#include "exec/ledger.h"
#include "exec/protocol.h"

namespace kolo::cluster {

struct StandingOrder {
  std::string cluster;
  Secret key = Secret::random();
  std::string address{};  ///< to listen at; "" = the one that ssh was reached at
  exec::Amounts offer{};
  std::chrono::milliseconds idle_time{0};
  std::chrono::seconds keep_alive = exec::kUsualKeepAlive;
  bool only_find = false;  ///< start nothing
};

struct StandingAnswer {
  std::string address;  ///< "" = none stands here
  int process = 0;
};

std::string encode(const StandingOrder& order);
/// Throws corruption.
StandingOrder decode_standing_order(std::string_view bytes);

/// The answer's line among what a login shell printed. Throws unavailable if it is not there.
StandingAnswer parse_standing_answer(std::string_view output);

/// `kolo custodian standing`.
int be_standing_custodian();

}  // namespace kolo::cluster
