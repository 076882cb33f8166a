// The short pass of the test suite: every target with its corpus and with random changes of it,
// without a fuzzer's feedback. The same seed gives the same inputs.
//
//   kolo_fuzz CORPUS [--runs N] [--seed N] [TARGET …]
//
// The input that a target fails on is left in fuzz-TARGET.input.
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "base/files.h"
#include "fuzz/targets.h"
#include "kolo/random.h"

namespace kolo::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLongestInput = 4096;

std::string current_input, current_file;

/// For a crash: whatever handles signals may not allocate.
void leave_input() {
  const int fd = ::open(current_file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  [[maybe_unused]] const auto written = ::write(fd, current_input.data(), current_input.size());
  ::close(fd);
}
void on_crash(int signal) {
  leave_input();
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

std::vector<std::string> corpus_of(const fs::path& directory) {
  std::vector<fs::path> files;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(directory, none)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::vector<std::string> inputs{""};
  for (const auto& file : files) inputs.push_back(read_file(file));
  return inputs;
}

/// Bytes that parsers look for, and numbers at the edges of their types.
std::string token(Random& random) {
  static const std::string kTokens[] = {"{",
                                        "}",
                                        "[",
                                        "]",
                                        "\"",
                                        "\\",
                                        ":",
                                        ",",
                                        "\n",
                                        "'",
                                        "(",
                                        ")",
                                        "=",
                                        "-",
                                        "#",
                                        "\t",
                                        "1e999",
                                        "NaN",
                                        "-1",
                                        "0",
                                        "null",
                                        "true",
                                        "..",
                                        "/",
                                        "\\u0000",
                                        "18446744073709551616",
                                        "-9223372036854775808",
                                        "9223372036854775807",
                                        std::string("\0", 1),
                                        "\377",
                                        "\x7f",
                                        std::string("\xff\xff\xff\xff", 4),
                                        std::string("\0\0\0\0", 4),
                                        std::string("\1\0\0\0", 4)};
  return kTokens[random.below(std::size(kTokens))];
}

void change(std::string& input, const std::vector<std::string>& corpus, Random& random) {
  const std::size_t at = random.below(input.size() + 1);
  const std::size_t length = random.below(std::min<std::size_t>(input.size() - at, 64) + 1);
  switch (random.below(7)) {
    case 0:
      if (at < input.size()) input[at] = static_cast<char>(input[at] ^ (1 << random.below(8)));
      break;
    case 1: input.erase(at, length); break;
    case 2: input.insert(at, token(random)); break;
    case 3: input.replace(at, length, token(random)); break;
    case 4: input.insert(at, input.substr(at, length)); break;
    case 5: {
      const std::string& other = corpus[random.below(corpus.size())];
      input = input.substr(0, at) +
              other.substr(std::min(other.size(), random.below(other.size() + 1)));
      break;
    }
    default:
      if (at < input.size()) input[at] = static_cast<char>(random.below(256));
  }
  if (input.size() > kLongestInput) input.resize(kLongestInput);
}

void pass(const Target& target, const fs::path& corpus_directory, std::uint64_t runs,
          std::uint64_t seed) {
  current_file = fmt::format("fuzz-{}.input", target.name);
  const auto corpus = corpus_of(corpus_directory / target.name);
  Random random = Random(seed).stream(target.name);
  const auto run = [&target](std::string input) {
    current_input = std::move(input);
    try {
      target.run(current_input);
    } catch (...) {
      leave_input();
      throw;
    }
  };
  for (const auto& input : corpus) run(input);
  for (std::uint64_t i = 0; i < runs / target.cost; ++i) {
    std::string input = corpus[random.below(corpus.size())];
    for (std::uint64_t changes = 1 + random.below(6); changes > 0; --changes)
      change(input, corpus, random);
    run(std::move(input));
  }
  fmt::print("{}: {} inputs\n", target.name, corpus.size() + runs / target.cost);
}

int main(const std::vector<std::string>& arguments) {
  fs::path corpus;
  std::uint64_t runs = 100'000, seed = 1;
  std::vector<const Target*> chosen;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == "--runs" && i + 1 < arguments.size()) {
      runs = std::stoull(arguments[++i]);
    } else if (arguments[i] == "--seed" && i + 1 < arguments.size()) {
      seed = std::stoull(arguments[++i]);
    } else if (corpus.empty()) {
      corpus = arguments[i];
    } else if (const Target* target = find_target(arguments[i])) {
      chosen.push_back(target);
    } else {
      fmt::print(stderr, "there is no target '{}'; known:", arguments[i]);
      for (const auto& known : targets()) fmt::print(stderr, " {}", known.name);
      fmt::print(stderr, "\n");
      return 2;
    }
  }
  for (const int signal : {SIGSEGV, SIGABRT, SIGFPE, SIGBUS, SIGILL}) ::signal(signal, on_crash);
  if (chosen.empty())
    for (const auto& target : targets()) chosen.push_back(&target);
  for (const Target* target : chosen) pass(*target, corpus, runs, seed);
  return 0;
}

}  // namespace
}  // namespace kolo::fuzz

int main(int argc, char** argv) { return kolo::fuzz::main({argv + 1, argv + argc}); }
