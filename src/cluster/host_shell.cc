// Input is written into a pipe before the command starts; this cannot block, since it is smaller
// than the pipe's buffer. A guarded command reads from a pipe that this process holds open: when
// the process dies, the input ends and a watcher on the host kills its process group. Files are
// copied by tar on both sides with a pipe between them, so the host needs no scp or rsync. A single
// file is unpacked beside its destination and renamed, so that nobody sees half of it. A link to a
// file is copied as that file: what it points to may not be there. Of two programs that failed,
// both are reported, since either may have the cause; a sender that died of a broken pipe has not.
#include "cluster/host_shell.h"

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>

#include "base/env.h"
#include "base/errors.h"
#include "base/files.h"
#include "base/pipe.h"
#include "base/running_command.h"
#include "base/words.h"
#include "launch/hosts.h"

namespace kolo::cluster {
namespace fs = std::filesystem;
namespace {

/// Below the size of a pipe, so that it can be written before anybody reads.
constexpr std::size_t kInputLimit = 60'000;

/// A path that begins with ~ is below the home directory of whoever logs in there.
std::string quoted_path(const std::string& path) {
  if (path == "~") return "\"$HOME\"";
  return path.starts_with("~/") ? "\"$HOME\"/" + shell_quoted(path.substr(2)) : shell_quoted(path);
}

/// Runs its argument in a session of its own, and ends all of that when standard input ends, as it
/// does when whoever wants this is gone.
constexpr const char* kGuardedScript = R"(exec 3<&0
/bin/sh -c "$1" </dev/null 3<&- &
work=$!
(cat <&3; kill -s TERM -- -$$) >/dev/null 2>&1 &
watch=$!
exec 3<&-
wait $work
status=$?
kill -KILL $watch
exit $status)";

/// Packs a directory's content, or a file, to standard output.
std::string pack_line(const std::string& path) {
  const std::string quoted = quoted_path(path);
  return fmt::format(
      "export LC_ALL=C; if [ -d {0} ]; then exec tar -C {0} -cf - .; "
      "else exec tar -C \"$(dirname {0})\" -chf - \"./$(basename {0})\"; fi",
      quoted);
}

/// Takes what pack_line() wrote of a directory.
std::string unpack_directory_line(const std::string& path) {
  return fmt::format("export LC_ALL=C; mkdir -p {0} && exec tar -C {0} -xf -", quoted_path(path));
}

/// Takes what pack_line() wrote of a file of this name. A path that ends with a slash is the
/// directory to put it in.
std::string unpack_file_line(const std::string& path, const std::string& name) {
  const std::string quoted = quoted_path(path);
  return fmt::format(
      "export LC_ALL=C; d={2} && mkdir -p \"$d\" && t=\"$(mktemp -d \"$d/.kolo.XXXXXX\")\" && "
      "tar -C \"$t\" -xf - && mv -f \"$t\"/{1} {0}; s=$?; rm -rf \"$t\"; exit $s",
      quoted, shell_quoted(name),
      path.ends_with('/') ? quoted : fmt::format("\"$(dirname {})\"", quoted));
}

/// One program's output is the other's input. Throws for the first that fails.
void run_pipe(const std::vector<std::string>& from, const std::vector<std::string>& to,
              Deadline deadline, const std::string& host) {
  Pipe data = make_pipe();
  CommandOptions packing, taking;
  packing.argv = from;
  taking.argv = to;
  packing.environment = taking.environment = current_environment();
  packing.standard_output = data.write.get();
  packing.gathers_output = false;
  taking.standard_input = data.read.get();
  packing.die_with_parent = taking.die_with_parent = true;
  RunningCommand packer(std::move(packing));
  data.write.reset();
  RunningCommand taker(std::move(taking));
  data.read.reset();
  RunningCommand::wait({&packer, &taker}, deadline);
  std::string why;
  for (const RunningCommand* command : {&taker, &packer}) {
    const CommandResult& result = command->result();
    const bool is_broken_pipe = WIFSIGNALED(result.status) && WTERMSIG(result.status) == SIGPIPE;
    if (!result.ok() && (why.empty() || !is_broken_pipe))
      why += (why.empty() ? "" : "; ") + last_line_of(result);
  }
  if (!why.empty()) throw_error(ErrorCode::unavailable, "{}: cannot copy: {}", host, why);
}

/// Takes the last line away. What tar says at its end tells nothing.
std::string_view take_last_line(std::string_view& text) {
  for (;;) {
    while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0)
      text.remove_suffix(1);
    const auto start = text.find_last_of("\r\n");
    const auto line = start == std::string_view::npos ? text : text.substr(start + 1);
    text.remove_suffix(line.size());
    const bool is_farewell = line.starts_with("tar: Exiting with failure status") ||
                             line.starts_with("tar: Error is not recoverable");
    if (!is_farewell || text.empty()) return line;
  }
}

}  // namespace

std::string last_line_of(const CommandResult& result) {
  std::string_view text = result.errors.empty() ? result.output : result.errors;
  const std::string_view line = take_last_line(text);
  if (!line.empty()) return std::string(line);
  constexpr int kOfSsh = 255;
  return describe_wait_status(result.status) +
         (exit_code_of(result.status) == kOfSsh ? ", as ssh does when the connection is lost" : "");
}

std::string guarded_line(const std::string& line) {
  return fmt::format("exec setsid -w /bin/sh -c {} kolo {}", shell_quoted(kGuardedScript),
                     shell_quoted(line));
}

HostShell::HostShell(const SshAccess& access, std::string host, const std::string& kolo)
    : host_(std::move(host)),
      ssh_(exec::ssh_from_environment(fs::read_symlink("/proc/self/exe"))),
      login_(access.user.empty() ? host_ : access.user + "@" + host_),
      shell_(access.shell),
      is_local_(shell_.empty() && launch::is_this_machine(host_)) {
  if (!kolo.empty()) ssh_.remote_kolo = kolo;
  if (access.port > 0) ssh_.port = access.port;
  if (!access.identity_file.empty()) ssh_.identity_file = access.identity_file;
  ssh_.connect_timeout_seconds = 10;
}

std::vector<std::string> HostShell::words_for(const std::string& line) const {
  if (is_local_) return {"/bin/sh", "-c", line};
  if (!shell_.empty()) {
    auto words = split_words(shell_, "provider.shell");
    for (auto& word : words)
      for (std::size_t at = 0; (at = word.find("{host}", at)) != std::string::npos;)
        word.replace(at, 6, host_), at += host_.size();
    words.push_back(line);
    return words;
  }
  return exec::ssh_command(ssh_, login_, line);
}

std::vector<std::string> HostShell::login_words() const {
  if (is_local_) return {environment("SHELL").value_or("/bin/sh"), "-l"};
  auto words = words_for("exec \"${SHELL:-/bin/sh}\" -l");
  std::replace(words.begin(), words.end(), std::string("-T"), std::string("-t"));
  return words;
}

std::string HostShell::run(const std::string& line, Deadline deadline,
                           std::string_view input) const {
  KOLO_CHECK(input.size() <= kInputLimit);
  Pipe pipe = make_pipe();
  write_all(pipe.write.get(), input, "a pipe");
  pipe.write.reset();
  return run(line, deadline, pipe.read.get());
}

void HostShell::run_guarded(const std::string& line, Deadline deadline) const {
  const Pipe held = make_pipe();  // its other end closes with this process
  run(guarded_line(line), deadline, held.read.get());
}

std::string HostShell::run(const std::string& line, Deadline deadline, int standard_input) const {
  CommandResult result;
  try {
    result = run_command(words_for(line), deadline, standard_input);
  } catch (const Error& error) {
    throw_error(error.code(), "{}: {}", host_, error.message());
  }
  if (!result.ok()) throw_error(ErrorCode::unavailable, "{}: {}", host_, last_line_of(result));
  return result.output;
}

std::string HostShell::run_kolo(const std::string& arguments, Deadline deadline,
                                std::string_view input) const {
  const std::string kolo = shell_quoted(ssh_.remote_kolo);
  const std::string advice =
      shell_quoted(fmt::format("there is no program {}; install kolo there, or say where it is by "
                               "the key `kolo` of the file",
                               ssh_.remote_kolo));
  const std::string script =
      fmt::format("command -v {} >/dev/null || {{ echo {} >&2; exit 127; }}; exec {} {}", kolo,
                  advice, kolo, arguments);
  // The login shell may be one of another language.
  return run("exec /bin/sh -c " + shell_quoted(script), deadline, input);
}

void HostShell::copy_to(const fs::path& here, const std::string& there, Deadline deadline) const {
  if (!fs::exists(here)) throw_error(ErrorCode::not_found, "{} does not exist here", here.string());
  run_pipe({"/bin/sh", "-c", pack_line(here)},
           words_for(fs::is_directory(here) ? unpack_directory_line(there)
                                            : unpack_file_line(there, here.filename())),
           deadline, host_);
}

void HostShell::copy_from(const std::string& there, const fs::path& here, Deadline deadline) const {
  const std::string kind = run(fmt::format("if [ -d {0} ]; then echo directory; elif [ -e {0} ]; "
                                           "then echo file; else echo nothing; fi",
                                           quoted_path(there)),
                               deadline);
  if (kind.find("nothing") != std::string::npos)
    throw_error(ErrorCode::not_found, "{} does not exist on {}", there, host_);
  const std::string target = fs::absolute(here);
  const bool is_directory = kind.find("directory") != std::string::npos;
  run_pipe(words_for(pack_line(there)),
           {"/bin/sh", "-c",
            is_directory ? unpack_directory_line(target)
                         : unpack_file_line(target, fs::path(there).filename())},
           deadline, host_);
}

}  // namespace kolo::cluster
