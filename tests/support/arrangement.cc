#include "support/arrangement.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "comm/wire/messenger.h"
#include "support/scale.h"

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
      {"tcp2", "tcp", {0, 0}, "tcp"},
      {"tcp3", "tcp", {0, 0, 0}, "tcp"},
      {"tcp5", "tcp", {0, 1, 0, 2, 1}, "tcp"},
      {"hosts_1_1", "auto", {0, 1}, "tcp"},
      {"hosts_2_2", "auto", {0, 0, 1, 1}, "shm+tcp"},
      {"hosts_3_2", "auto", {0, 0, 0, 1, 1}, "shm+tcp"},
      {"hosts_interleaved", "auto", {0, 1, 0, 1, 1}, "shm+tcp"},
      {"hosts_1_2_1_4", "auto", {0, 1, 1, 2, 3, 3, 3, 3}, "shm+tcp"},
  };
}

std::vector<Arrangement> chosen(std::initializer_list<std::string_view> names) {
  std::vector<Arrangement> some = make_arrangements();
  std::erase_if(some, [&](const Arrangement& one) {
    return std::find(names.begin(), names.end(), one.name) == names.end();
  });
  return some;
}

}  // namespace

std::vector<Arrangement> all_arrangements() {
  // Ten times slower, and a race does not hide in the number of ranks.
  if (kThreadSanitized) return chosen({"solo", "shm2", "shm3", "tcp3", "hosts_2_2"});
  return make_arrangements();
}

std::vector<Arrangement> some_arrangements() {
  if (kThreadSanitized) return chosen({"shm3", "hosts_2_2"});
  return chosen({"solo", "shm2", "shm5", "tcp3", "hosts_2_2", "hosts_3_2"});
}

bool is_available(const Arrangement& arrangement, std::string* why) {
  if (arrangement.expected.find("tcp") == std::string::npos) return true;
  ::setenv("KOLO_NETWORK_INTERFACE", "lo", 1);  // read when a wire connects
  return comm::wire_plugin_available("tcp", why);
}

std::string name_of(const Arrangement& arrangement) { return arrangement.name; }

std::ostream& operator<<(std::ostream& out, const Arrangement& arrangement) {
  return out << arrangement.name;
}

}  // namespace kolo::test
