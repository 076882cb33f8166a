#include "cluster/standing.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>

#include "base/deadline.h"
#include "base/env.h"
#include "base/errors.h"
#include "base/files.h"
#include "base/frames.h"
#include "base/host.h"
#include "base/named_lock.h"
#include "cluster/cluster_file.h"
#include "exec/binding.h"
#include "exec/protocol.h"
#include "exec/start.h"

namespace kolo::cluster {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kAnswerWord = "kolo-standing";
constexpr std::size_t kOrderLimit = 1U << 20;
/// A custodian whose guard was killed ends its tasks, which takes a moment.
constexpr auto kOwnEnd = std::chrono::seconds(2);
constexpr auto kOrphansEnd = std::chrono::seconds(10);

std::string read_order() {
  std::string order;
  std::array<char, 4096> chunk;
  for (;;) {
    const ssize_t got = ::read(STDIN_FILENO, chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return order;
    order.append(chunk.data(), static_cast<std::size_t>(got));
    if (order.size() > kOrderLimit) throw_error(ErrorCode::corruption, "the order is too long");
  }
}

int answer(const StandingAnswer& answer) {
  std::printf("%s %s %d\n", std::string(kAnswerWord).c_str(),
              answer.address.empty() ? "none" : answer.address.c_str(), answer.process);
  return std::fflush(stdout) == 0 ? 0 : 1;
}

/// False also for processes that this user may not look into.
bool has_open(pid_t process, const struct stat& file) {
  std::error_code error;
  fs::directory_iterator entry(fmt::format("/proc/{}/fd", process), error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    struct stat opened {};
    if (::stat(entry->path().c_str(), &opened) == 0 && opened.st_ino == file.st_ino &&
        opened.st_dev == file.st_dev)
      return true;
  }
  return false;
}

std::string of_process(pid_t process, const char* what) {
  std::ifstream file(fmt::format("/proc/{}/{}", process, what));
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Another one that looks for the custodian now, or a custodian that it has started: they hold the
/// note, too.
bool is_no_task(pid_t process) {
  const auto arguments = [](pid_t of) {
    const std::string line = of_process(of, "cmdline");
    return line.substr(std::min(line.find('\0'), line.size()));
  };
  const std::string name = of_process(process, "comm");
  return name == "kolo-custodian\n" || name == "kolo-guard\n" ||
         arguments(process) == arguments(::getpid());
}

std::vector<pid_t> processes() {
  std::vector<pid_t> all;
  std::error_code error;
  fs::directory_iterator entry("/proc", error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error))
    if (const pid_t process = std::atoi(entry->path().filename().c_str()); process > 0)
      all.push_back(process);
  return all;
}

/// The note about the custodian of a cluster on this host. It is locked as long as that stands.
class Note {
 public:
  explicit Note(const std::string& cluster) {
    const fs::path folder = state_folder() / "standing";
    make_private_directory(folder);
    path_ = folder / (cluster + "@" + host_name());  // homes may be shared between hosts
  }

  /// False: another custodian stands.
  bool lock() {
    file_ = lock_named_file(path_);
    return file_.valid();
  }
  [[nodiscard]] bool is_held_by(pid_t process) const {
    struct stat file {};
    return ::stat(path_.c_str(), &file) == 0 && has_open(process, file);
  }
  /// Of a custodian that was killed together with its guard: its tasks hold the lock, and nobody
  /// else will end them.
  void end_orphans() const {
    for (const pid_t process : processes())
      if (is_held_by(process) && !is_no_task(process)) ::kill(process, SIGKILL);
  }
  void write(const std::string& text) const {
    if (::ftruncate(file_.get(), 0) != 0) throw_errno("cannot write {}", path_.string());
    const ssize_t written = ::pwrite(file_.get(), text.data(), text.size(), 0);
    if (written >= 0 && written < std::ssize(text)) errno = ENOSPC;  // the disk is full
    if (written != std::ssize(text)) throw_errno("cannot write {}", path_.string());
  }
  /// What the one that stands has written; it may be about to.
  [[nodiscard]] std::string read() const {
    const Deadline deadline = Deadline::after(std::chrono::seconds(5));
    for (;;) {
      std::error_code none;
      std::string text = fs::exists(path_, none) ? read_file(path_) : "";
      if (text.ends_with('\n') || deadline.passed()) return text;
      ::usleep(10'000);
    }
  }
  /// With what the last custodian said about its end.
  void remove() const {
    ::unlink(path_.c_str());
    ::unlink(log().c_str());
  }
  /// A new file for why the custodian ended.
  [[nodiscard]] fs::path new_log() const {
    ::unlink(log().c_str());
    return log();
  }
  [[nodiscard]] const fs::path& path() const noexcept { return path_; }
  /// For the custodian and its tasks: the lock is free when all of them are gone.
  [[nodiscard]] Fd lock_copy() const { return Fd(::fcntl(file_.get(), F_DUPFD_CLOEXEC, 3)); }

 private:
  [[nodiscard]] fs::path log() const { return path_.string() + ".log"; }

  fs::path path_;
  Fd file_;
};

}  // namespace

std::string encode(const StandingOrder& order) {
  ByteWriter writer;
  writer.string(order.cluster).string(order.key.bytes()).string(order.address);
  writer.string(exec::encode(exec::ReservationOrder{1, order.offer}));
  writer.u64(static_cast<std::uint64_t>(order.idle_time.count()));
  writer.u32(static_cast<std::uint32_t>(order.keep_alive.count())).u8(order.only_find ? 1 : 0);
  return writer.bytes();
}

StandingOrder decode_standing_order(std::string_view bytes) {
  ByteReader reader(bytes);
  StandingOrder order;
  order.cluster = reader.string();
  order.key = Secret::from_bytes(reader.string());
  order.address = reader.string();
  order.offer = exec::decode_reservation(reader.string()).want;
  order.idle_time = std::chrono::milliseconds(reader.u64());
  order.keep_alive = std::chrono::seconds(reader.u32());
  order.only_find = reader.u8() != 0;
  reader.finish();
  return order;
}

StandingAnswer parse_standing_answer(std::string_view output) {
  std::istringstream lines{std::string(output)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string word;
    StandingAnswer answer;
    if (words >> word && word == kAnswerWord && words >> answer.address >> answer.process) {
      if (answer.address == "none") answer.address.clear();
      return answer;
    }
  }
  throw_error(ErrorCode::unavailable,
              "kolo does not answer there; check that it is installed and of the same version");
}

int be_standing_custodian() {
  StandingOrder order = decode_standing_order(read_order());
  check_cluster_name(order.cluster);
  Note note(order.cluster);
  const Deadline until = Deadline::after(kOrphansEnd), patience = Deadline::after(kOwnEnd);
  while (!note.lock()) {
    std::istringstream words(note.read());
    StandingAnswer found;
    if (!(words >> found.address >> found.process))
      throw_error(ErrorCode::unavailable,
                  "a custodian of cluster {} stands here, but {} does not say where it listens; "
                  "end the process kolo-custodian there",
                  order.cluster, note.path().string());
    if (note.is_held_by(found.process)) return answer(found);
    if (until.passed())
      throw_error(ErrorCode::timeout,
                  "processes of a custodian that was killed do not end; they have {} open",
                  note.path().string());
    if (patience.passed()) note.end_orphans();
    ::usleep(20'000);
  }
  if (order.only_find) {
    note.remove();
    return answer({});
  }
  note.write("");
  if (order.address.empty()) order.address = exec::address_for_others();
  if (order.offer.slots == 0) order.offer.slots = exec::usable_processors();
  Fd listener = listen_tcp(SocketAddress::from_numeric(order.address));
  StandingAnswer made{local_address_of(listener.get()).str()};
  if (const auto home = environment("HOME")) [[maybe_unused]]
    const int changed = ::chdir(home->c_str());
  made.process = exec::start_standing_custodian(
      std::move(listener),
      {order.key, order.offer, order.idle_time, order.keep_alive, note.path(), note.new_log()},
      note.lock_copy());
  try {
    note.write(fmt::format("{} {}\n", made.address, made.process));
  } catch (const Error&) {  // a full disk: nobody would find it again
    ::kill(made.process, SIGTERM);
    ::waitpid(made.process, nullptr, 0);
    note.remove();
    throw;
  }
  return answer(made);
}

}  // namespace kolo::cluster
