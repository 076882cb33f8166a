#include "support/arrangement.h"

#include <cstdlib>

#include "comm/wire/messenger.h"

namespace kolo::test {
namespace {

std::vector<Arrangement> make_arrangements() {
  return {
      {"solo", "auto", {0}, "solo"},
      {"shm2", "auto", {0, 0}, "shm"},
      {"shm3", "shm", {0, 0, 0}, "shm"},
      {"shm4", "auto", {0, 0, 0, 0}, "shm"},
      {"shm5", "auto", {0, 0, 0, 0, 0}, "shm"},
      {"shm6", "auto", {0, 0, 0, 0, 0, 0}, "shm"},
      {"shm7", "auto", {0, 0, 0, 0, 0, 0, 0}, "shm"},
      {"shm8", "auto", {0, 0, 0, 0, 0, 0, 0, 0}, "shm"},
      {"gloo2", "gloo", {0, 0}, "gloo"},
      {"gloo3", "gloo", {0, 0, 0}, "gloo"},
      {"gloo5", "gloo", {0, 1, 0, 2, 1}, "gloo"},
      {"hosts_1_1", "auto", {0, 1}, "gloo"},
      {"hosts_2_2", "auto", {0, 0, 1, 1}, "shm+gloo"},
      {"hosts_3_2", "auto", {0, 0, 0, 1, 1}, "shm+gloo"},
      {"hosts_interleaved", "auto", {0, 1, 0, 1, 1}, "shm+gloo"},
      {"hosts_1_2_1_4", "auto", {0, 1, 1, 2, 3, 3, 3, 3}, "shm+gloo"},
  };
}

}  // namespace

const std::vector<Arrangement>& all_arrangements() {
  static const std::vector<Arrangement> all = make_arrangements();
  return all;
}

std::vector<Arrangement> some_arrangements() {
  std::vector<Arrangement> some;
  for (const Arrangement& one : all_arrangements())
    for (const char* name : {"solo", "shm2", "shm5", "gloo3", "hosts_2_2", "hosts_3_2"})
      if (one.name == name) some.push_back(one);
  return some;
}

bool is_available(const Arrangement& arrangement, std::string* why) {
  if (arrangement.expected.find("gloo") == std::string::npos) return true;
  ::setenv("KOLO_NETWORK_INTERFACE", "lo", 1);  // read when a wire connects
  return comm::wire_plugin_available("gloo", why);
}

std::string name_of(const Arrangement& arrangement) { return arrangement.name; }

std::ostream& operator<<(std::ostream& out, const Arrangement& arrangement) {
  return out << arrangement.name;
}

}  // namespace kolo::test
