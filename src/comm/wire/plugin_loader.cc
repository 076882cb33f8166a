// Finds and loads wire plug-ins, once per process.
#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <map>

#include "base/env.h"
#include "base/errors.h"
#include "base/log.h"
#include "base/mutex.h"
#include "comm/wire/messenger.h"
#include "comm/wire/tcp/wire.h"

namespace kolo::comm {
namespace {

namespace fs = std::filesystem;

/// Debian's name of what a plug-in needs at run time.
const char* package_of(const std::string& name) {
  if (name == "openmpi") return "libopenmpi3";
  if (name == "mpich") return "libmpich12";
  return nullptr;
}

/// In order of preference. The build tree and the installation look the same from bin/. Beside a
/// program that is anywhere else, a folder "lib" has nothing to do with it.
std::vector<fs::path> search_path() {
  std::vector<fs::path> directories;
  if (auto given = setting("PLUGIN_DIR")) directories.emplace_back(*given);
  std::error_code ignored;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored);
  if (program.parent_path().filename() == "bin") {
    const fs::path up = program.parent_path().parent_path();
    directories.push_back(up / "lib" / "kolo");
    directories.push_back(up / KOLO_INSTALL_LIBDIR / "kolo");
  }
  directories.emplace_back(KOLO_INSTALL_PLUGIN_DIR);
  return directories;
}

/// Why code in this file must not run here; "" if it may. Whoever may write it, or put another one
/// in its place, decides what this process does: that may be root, this user, and the owner of the
/// program itself.
std::string why_not_trusted(const fs::path& file) {
  struct stat program {};
  const bool has_program = ::stat("/proc/self/exe", &program) == 0;
  for (const fs::path& path : {file, file.parent_path()}) {
    struct stat found {};
    if (::stat(path.c_str(), &found) != 0)
      return fmt::format("{} cannot be looked at: {}", path.string(), std::strerror(errno));
    const bool is_owned = found.st_uid == 0 || found.st_uid == ::geteuid() ||
                          (has_program && found.st_uid == program.st_uid);
    if (!is_owned)
      return fmt::format("{} belongs to another user (id {})", path.string(), found.st_uid);
    if ((found.st_mode & (S_IWGRP | S_IWOTH)) != 0)
      return fmt::format("other users may write to {}; try: chmod go-w {}", path.string(),
                         path.string());
  }
  return {};
}

/// What a loaded library offers. Libraries are never closed: threads of what is behind them may
/// still run.
const WirePlugin& plugin_in(void* library, const std::string& file) {
  auto entry = reinterpret_cast<const WirePlugin* (*)()>(::dlsym(library, kWirePluginSymbol));
  if (entry == nullptr)
    throw_error(ErrorCode::unsupported, "{} is not a kolo wire plug-in: it has no {}", file,
                kWirePluginSymbol);
  const WirePlugin& plugin = *entry();
  if (plugin.abi != WirePlugin::kAbi)
    throw_error(ErrorCode::unsupported,
                "{} was built for version {} of the plug-in interface, but this program has "
                "version {}; build both with the same kolo",
                file, plugin.abi, WirePlugin::kAbi);
  log::debug("loaded {} ({})", file, plugin.library);
  return plugin;
}

const WirePlugin& open_plugin(const std::string& name) {
  const char* package = package_of(name);
  if (package == nullptr)
    throw_error(ErrorCode::unsupported, "wire '{}' is unknown; known: tcp, openmpi, mpich", name);

  const std::string file_name = "kolo_wire_" + name + ".so";
  std::string looked_in;
  for (const fs::path& directory : search_path()) {
    const std::string file = (directory / file_name).string();
    std::error_code ignored;
    if (!fs::exists(file, ignored)) {
      if (looked_in.find(directory.string()) == std::string::npos)
        looked_in += (looked_in.empty() ? "" : ", ") + directory.string();
      continue;
    }
    if (const std::string why = why_not_trusted(file); !why.empty())
      throw_error(ErrorCode::unsupported, "the wire plug-in {} is not loaded: {}", file, why);
    void* library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr)
      throw_error(ErrorCode::unsupported,
                  "cannot load the wire plug-in {}: {} (is the package {} installed?)", file,
                  ::dlerror(), package);
    return plugin_in(library, file);
  }
  // Programs built against an installation carry its plug-in folder in their run path, wherever it
  // was moved to; see kolo-config.cmake.
  if (void* library = ::dlopen(file_name.c_str(), RTLD_NOW | RTLD_LOCAL); library != nullptr)
    return plugin_in(library, file_name);
  throw_error(ErrorCode::unsupported,
              "the wire plug-in {} is in none of {}, nor does the dynamic linker find it ({}); it "
              "is built when its library (development package of {}) is present; KOLO_PLUGIN_DIR "
              "names another directory",
              file_name, looked_in, ::dlerror(), package);
}

}  // namespace

const WirePlugin& load_wire_plugin(const std::string& name) {
  if (name == tcp::wire().name) return tcp::wire();
  static auto* mutex = new Mutex;
  static auto* loaded = new std::map<std::string, const WirePlugin*>;
  MutexLock lock(*mutex);
  auto [it, is_new] = loaded->try_emplace(name, nullptr);
  if (it->second == nullptr) it->second = &open_plugin(name);
  return *it->second;
}

bool wire_plugin_available(const std::string& name, std::string* why) {
  try {
    load_wire_plugin(name);
    return true;
  } catch (const Error& error) {
    if (why != nullptr) *why = error.message();
    return false;
  }
}

}  // namespace kolo::comm
