// kolo top: what goes on in studies, runs, jobs and clusters, live in a terminal.
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/clock.h"
#include "base/deadline.h"
#include "base/host.h"
#include "base/text_table.h"
#include "commands.h"
#include "study_store.h"
#include "top_page.h"
#include "tune/trial/trial_names.h"
#include "watching.h"

namespace kolo::app {
namespace {

using namespace std::chrono_literals;

/// The page is not to stand still while a large study is read.
constexpr auto kReadAtOnce = 500ms;
constexpr auto kToTheEnd = 24h;

struct TopOptions {
  double interval = 2;
  bool once = false;
  std::string storage;
  void declare(OptionSet& set);
};
constexpr Option<TopOptions> kTopRows[] = {
    {&TopOptions::interval, "interval", "SECONDS", "Refresh after this many seconds.",
     aliases("-d"), least(0.1)},
    {&TopOptions::once, "once", "",
     "Print everything once as plain lines and exit. This is the default when the output is not a "
     "terminal and --interval is not given."},
};
void TopOptions::declare(OptionSet& set) {
  set.add("Options", kTopRows, *this);
  set.add("Options", kStorage, &storage);
}

/// The whole screen of a terminal, and its keys without echo; as it was when this is gone.
class Screen {
 public:
  Screen() {
    reads_keys_ = ::tcgetattr(STDIN_FILENO, &before_) == 0;
    if (reads_keys_) {
      termios keys = before_;
      keys.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
      ::tcsetattr(STDIN_FILENO, TCSANOW, &keys);
    }
    // Not restarted: a new size ends the wait for a key.
    struct sigaction resized {};
    resized.sa_handler = [](int) {};
    ::sigaction(SIGWINCH, &resized, nullptr);
    put("\x1b[?1049h\x1b[?25l");
  }
  ~Screen() {
    put("\x1b[?25h\x1b[?1049l");
    if (reads_keys_) ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  [[nodiscard]] static winsize size() {
    winsize size{};
    if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0)
      size = {24, 80, 0, 0};
    return size;
  }
  void draw(const std::vector<std::string>& lines) {
    std::string text = "\x1b[H";
    for (std::size_t i = 0; i < lines.size(); ++i)
      text += (i == 0 ? "" : "\n") + lines[i] + "\x1b[K";
    put(text + "\x1b[J");
  }
  /// A key, or 0 when the time is over or the size has changed.
  [[nodiscard]] char wait_for_key(Deadline deadline) const {
    pollfd key{reads_keys_ ? STDIN_FILENO : -1, POLLIN, 0};
    char letter = 0;
    if (::poll(&key, 1, deadline.poll_timeout_ms()) > 0 && ::read(STDIN_FILENO, &letter, 1) != 1)
      return 'q';  // nobody types any more
    return letter;
  }

 private:
  static void put(const std::string& text) {
    std::fputs(text.c_str(), stdout);
    std::fflush(stdout);
  }

  termios before_{};
  bool reads_keys_ = false;
};

std::string title_of_page() {
  double load = 0;
  if (::getloadavg(&load, 1) != 1) load = 0;
  return fmt::format("kolo top on {}, {}, load {:.2f}; q ends", host_name(),
                     tune::date_text(system_clock().date()), load);
}

void show_live(const TopOptions& options, std::chrono::milliseconds interval) {
  const auto* const interrupted = catch_interrupts();
  Screen screen;
  TopReader reader(options.storage);
  while (!*interrupted) {
    const auto sections = reader.sections(kReadAtOnce);
    const Deadline next = Deadline::after(interval);
    do {  // once more with what is known when only the size has changed
      const winsize size = Screen::size();
      auto lines = top_page(sections, size.ws_col, size.ws_row > 2 ? size.ws_row - 2U : 0U);
      lines.insert(lines.begin(), {shortened(title_of_page(), size.ws_col), ""});
      lines.resize(std::min<std::size_t>(lines.size(), size.ws_row));
      screen.draw(lines);
      const char key = screen.wait_for_key(next);
      if (key == 'q' || key == 'Q') return;
    } while (!*interrupted && !next.passed());
  }
}

void print_page(TopReader& reader) {
  constexpr std::size_t kAsLongAsItIs = 100'000;
  for (const auto& line : top_page(reader.sections(kToTheEnd), kAsLongAsItIs, kAsLongAsItIs))
    fmt::print("{}\n", line);
  std::fflush(stdout);
}

int run_top(TopOptions& options, OptionSet& given) {
  const auto interval = std::chrono::milliseconds(std::llround(options.interval * 1000));
  if (::isatty(STDOUT_FILENO) != 0 && !options.once) {
    show_live(options, interval);
    return 0;
  }
  TopReader reader(options.storage);
  print_page(reader);
  if (options.once || !given.given("interval")) return 0;
  const auto* const interrupted = catch_interrupts();
  while (!*interrupted) {
    ::poll(nullptr, 0, static_cast<int>(interval.count()));  // a signal ends it
    if (*interrupted) break;
    fmt::print("\n");
    print_page(reader);
  }
  return 0;
}

}  // namespace

constinit const Command kTop{
    .name = "top",
    .summary = "Show studies, trials, runs, jobs and hosts in the terminal, live",
    .examples = "kolo top\nkolo top --once\n",
    .notes =
        "It reads the database of studies and, where one is active, that of jobs, and asks the "
        "hosts of your clusters. q ends it.",
    .options = declared<TopOptions>,
    .run = run_declared<TopOptions, run_top>,
};

}  // namespace kolo::app
