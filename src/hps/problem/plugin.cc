#include "hps/problem/plugin.h"

#include <dlfcn.h>

#include <algorithm>
#include <filesystem>

#include "base/errors.h"
#include "base/files.h"
#include "base/registry.h"
#include "kolo/version.h"

// The header is written for the libraries; here only its types are wanted, not its entry point.
#define KOLO_HPS_SDK_TYPES_ONLY
#include "kolo/hps/sdk.h"

namespace kolo::hps {
namespace {

namespace fs = std::filesystem;

const sdk::Library& library_of(const void* library) {
  return *static_cast<const sdk::Library*>(library);
}

std::string reason_of_dlerror() {
  const char* const text = ::dlerror();
  return text == nullptr ? "unknown reason" : text;
}

/// A library with another libtorch than this program's must not even be loaded: it would bring its
/// own, and two in one process crash. Both carry a text that says theirs (kolo/nas/sdk.h).
void check_libtorch(const fs::path& path, const std::string& file) {
  const auto* const mine =
      static_cast<const char*>(::dlsym(RTLD_DEFAULT, "kolo_built_with_libtorch"));
  if (mine == nullptr) return;  // this program has none
  constexpr std::string_view kMark = "kolo: built with libtorch ";
  const std::string bytes = read_file(path);
  const auto at = bytes.find(kMark);
  if (at == std::string::npos) return;
  const std::string theirs = bytes.c_str() + at + kMark.size();
  if (theirs != mine + kMark.size())
    throw_error(
        ErrorCode::unsupported,
        "load {}: it was built with libtorch {}, this kolo with libtorch {}; build it again "
        "with that one (cmake -DCMAKE_PREFIX_PATH=...)",
        file, theirs, mine + kMark.size());
}

const sdk::Library* open_library(const std::string& file) {
  std::error_code ignored;
  // A bare name would be looked for by the dynamic linker, not here.
  const fs::path path = fs::absolute(file, ignored);
  if (!fs::exists(path, ignored))
    throw_error(ErrorCode::not_found, "load {}: there is no such file", file);
  check_libtorch(path, file);
  void* const handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const std::string reason = reason_of_dlerror();
    const bool symbol = reason.find("undefined symbol") != std::string::npos;
    throw_error(ErrorCode::unsupported, "load {}: {}{}", file, reason,
                symbol ? fmt::format("; build it with the headers of this kolo ({}), and link what "
                                     "it uses besides",
                                     KOLO_VERSION)
                       : "; it must be a shared library (g++ -std=c++20 -shared -fPIC)");
  }
  const auto entry =
      reinterpret_cast<const sdk::Library* (*)()>(::dlsym(handle, "kolo_hps_library"));
  if (entry == nullptr)
    throw_error(ErrorCode::unsupported,
                "load {}: the library offers nothing to kolo: include <kolo/hps/sdk.h> and use "
                "KOLO_HPS_PROBLEM and KOLO_HPS_RUN",
                file);
  const sdk::Library* const library = entry();
  if (library->sdk != sdk::kSdk || std::string_view(library->version) != KOLO_VERSION)
    throw_error(ErrorCode::unsupported,
                "load {}: it was built for kolo {} (sdk {}), this is kolo {} (sdk {}); build it "
                "again with the headers of this one",
                file, library->version, library->sdk, KOLO_VERSION, sdk::kSdk);
  return library;
}

}  // namespace

std::optional<PluginName> parse_plugin_name(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  const std::string_view file = text.substr(0, colon);
  const std::string base = fs::path(file).filename().string();
  if (!base.ends_with(".so") && base.find(".so.") == std::string::npos) return std::nullopt;
  // A program called with words may mention a library, too.
  if (file.find(' ') != std::string_view::npos && !fs::exists(fs::path(file))) return std::nullopt;
  return PluginName{std::string(file), colon == std::string_view::npos
                                           ? std::string()
                                           : std::string(text.substr(colon + 1))};
}

Plugin::Plugin(const std::string& file) : file_(file), library_(open_library(file)) {}

std::vector<std::string_view> Plugin::names(std::string_view kind) const {
  std::vector<std::string_view> names;
  for (const sdk::Export* entry = library_of(library_).first; entry != nullptr; entry = entry->next)
    if (entry->kind == kind) names.emplace_back(entry->name);
  std::reverse(names.begin(), names.end());  // the last registered comes first
  return names;
}

AnyFunction Plugin::find(std::string_view kind, std::string_view name) const {
  for (const sdk::Export* entry = library_of(library_).first; entry != nullptr; entry = entry->next)
    if (entry->kind == kind && entry->name == name) return entry->function;
  return nullptr;
}

AnyFunction Plugin::at(std::string_view kind, std::string_view name) const {
  if (const AnyFunction found = find(kind, name)) return found;
  throw Error(ErrorCode::not_found, file_ + ": " + unknown_name(kind, name, names(kind)));
}

HpProblem Plugin::problem(std::string_view name) const {
  const auto make = reinterpret_cast<sdk::MakeProblem>(at("problem", name));
  HpProblem problem;
  make(problem);
  return problem;
}

RunFunction Plugin::run(std::string_view name) const {
  const auto call = reinterpret_cast<sdk::CallRun>(at("run", name));
  return [call](RunningJob& job) {
    RunResult result(0.0);
    call(job, result);
    return result;
  };
}

}  // namespace kolo::hps
