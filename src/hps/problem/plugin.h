// Shared libraries of the user's that bring problems and run functions (include/kolo/hps/sdk.h).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kolo/hps/problem.h"
#include "kolo/hps/run.h"

namespace kolo::hps {

/// "libmy.so:Problem" taken apart; without a colon the symbol is empty.
struct PluginName {
  std::string file;
  std::string symbol;
};

/// Nothing when the text does not name a shared library (a file whose name ends in .so or .so.N).
std::optional<PluginName> parse_plugin_name(std::string_view text);

/// What its kind says; to be cast.
using AnyFunction = void (*)();

/// One loaded library. It stays loaded until the program ends: what it made may outlive this.
class Plugin {
 public:
  /// Throws not_found (no such file), unsupported (not a library, not one of kolo's, or of another
  /// version).
  explicit Plugin(const std::string& file);

  [[nodiscard]] const std::string& file() const noexcept { return file_; }
  /// The names it offers of one kind ("problem", "run"), in the order of its source.
  [[nodiscard]] std::vector<std::string_view> names(std::string_view kind) const;
  /// Null if there is none.
  [[nodiscard]] AnyFunction find(std::string_view kind, std::string_view name) const;
  /// Throws not_found, listing what there is.
  [[nodiscard]] AnyFunction at(std::string_view kind, std::string_view name) const;

  [[nodiscard]] HpProblem problem(std::string_view name) const;
  [[nodiscard]] RunFunction run(std::string_view name) const;

 private:
  std::string file_;
  const void* library_ = nullptr;
};

}  // namespace kolo::hps
