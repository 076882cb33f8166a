// No batch system: the script runs at once as a process of this machine, in a session of its own.
#include <signal.h>
#include <unistd.h>

#include <charconv>

#include "base/errors.h"
#include "base/files.h"
#include "launch/batch/batch_system.h"

namespace kolo::launch {
namespace {

/// "PID.START": the time of its start tells a process from a later one with its number. "" if it is
/// gone.
std::string identity_of(pid_t pid) {
  try {
    const std::string status = read_file(fmt::format("/proc/{}/stat", pid));
    auto place = status.rfind(')');
    if (place == std::string::npos || status.size() < place + 3 || status[place + 2] == 'Z')
      return {};
    for (int field = 0; field < 20; ++field) place = status.find(' ', place + 1);
    return fmt::format("{}.{}", pid,
                       status.substr(place + 1, status.find(' ', place + 1) - place - 1));
  } catch (const Error&) {
    return {};
  }
}

pid_t pid_of(const std::string& id) {
  pid_t pid = 0;
  std::from_chars(id.data(), id.data() + id.find('.'), pid);
  return pid;
}

class Local final : public BatchSystem {
 public:
  [[nodiscard]] std::string_view name() const override { return "local"; }
  [[nodiscard]] std::string_view script_template() const override {
    return "#!/bin/bash\n# on this machine; nodes: {{nodes}}, minutes: {{minutes}}\n"
           "exec >>{{log_word}} 2>&1\n{{queue}}\n{{project}}\n{{flags}}\n{{commands}}\n";
  }
  [[nodiscard]] std::string directive(std::string_view kind,
                                      const std::string& value) const override {
    return fmt::format("# {}: {}", kind, value);
  }

  std::string submit(const std::filesystem::path& script) override {
    // The shell starts it in the background and says its number; it stays when we go.
    const auto result = ask(
        {"sh", "-c", R"(setsid bash "$0" </dev/null >/dev/null 2>&1 & echo $!)", script.string()});
    const std::string id = identity_of(static_cast<pid_t>(std::atoi(result.output.c_str())));
    return id.empty() ? shortened(result.output) + ".0" : id;
  }

  BatchAnswer status(const std::vector<std::string>& ids) override {
    BatchAnswer answer;
    for (const auto& id : ids)
      answer.states[id] =
          identity_of(pid_of(id)) == id ? BatchState::running : BatchState::finished;
    return answer;
  }

  void cancel(const std::vector<std::string>& ids) override {
    for (const auto& id : ids)
      if (identity_of(pid_of(id)) == id) ::kill(-pid_of(id), SIGTERM);
  }

 private:
  [[nodiscard]] std::string_view not_in_log() const override { return {}; }
};

}  // namespace

std::unique_ptr<BatchSystem> make_local() { return std::make_unique<Local>(); }

}  // namespace kolo::launch
