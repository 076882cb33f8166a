#include "base/host.h"

#include <pwd.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <fstream>

namespace kolo {

std::string host_name() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') return "localhost";
  return name.data();
}

std::string host_identity() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  return host_name() + " " + boot;
}

std::string user_name() {
  std::array<char, 4096> strings{};
  passwd entry{};
  passwd* found = nullptr;
  if (::getpwuid_r(::geteuid(), &entry, strings.data(), strings.size(), &found) != 0 ||
      found == nullptr)
    return std::to_string(::geteuid());
  return found->pw_name;
}

}  // namespace kolo
