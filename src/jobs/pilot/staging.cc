#include "jobs/pilot/staging.h"

#include <fnmatch.h>
#include <sys/stat.h>

#include <sstream>

#include "base/errors.h"

namespace kolo::jobs {
namespace {

namespace fs = std::filesystem;

/// Of a command line; the kernel takes two megabytes, with the environment.
constexpr std::size_t kMostBytesOfNames = 1U << 20;

bool matches(const std::string& name, const std::string& patterns) {
  std::istringstream words(patterns);
  for (std::string pattern; words >> pattern;)
    if (::fnmatch(pattern.c_str(), name.c_str(), 0) == 0) return true;
  return false;
}

/// A URL in the form that cp, scp or globus-url-copy take.
struct Target {
  enum class Kind { local, remote, grid } kind = Kind::local;
  std::string text;
};

Target parse_url(const std::string& url) {
  const auto colon = url.find("://");
  if (colon == std::string::npos) {
    // host:path, as scp has it; a path may have a colon after a slash.
    const auto mark = url.find_first_of(":/");
    const bool remote = mark != std::string::npos && url[mark] == ':';
    if (url.empty() || url[0] == '-')
      throw_error(ErrorCode::invalid_argument, "cannot copy files from or to '{}'", url);
    return {remote ? Target::Kind::remote : Target::Kind::local, url};
  }
  const std::string scheme = url.substr(0, colon), rest = url.substr(colon + 3);
  if (scheme == "file")
    return {Target::Kind::local, rest.substr(std::min(rest.find('/'), rest.size()))};
  if (scheme == "ssh" || scheme == "scp" || scheme == "sftp") {
    const auto slash = rest.find('/');
    if (slash == std::string::npos || slash == 0 || rest[0] == '-')
      throw_error(ErrorCode::invalid_argument, "'{}' does not have the form {}://HOST/PATH", url,
                  scheme);
    return {Target::Kind::remote, rest.substr(0, slash) + ":" + rest.substr(slash)};
  }
  if (scheme == "gsiftp" || scheme == "ftp" || scheme == "http" || scheme == "https")
    return {Target::Kind::grid, url};
  throw_error(ErrorCode::invalid_argument,
              "'{}': {}:// is unknown; known: file, ssh, scp, gsiftp, or a path", url, scheme);
}

}  // namespace

void make_folder(const fs::path& folder) {
  // Usually all but the last part is there.
  if (::mkdir(folder.c_str(), 0777) == 0 || errno == EEXIST) return;
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    throw_error(ErrorCode::io, "cannot create the folder {}: {}", folder.string(), error.message());
}

void link_inputs(const fs::path& folder, const fs::path& parent_folder, JobId parent,
                 const std::string& patterns) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(parent_folder, error)) {
    const std::string name = entry.path().filename().string();
    if (!matches(name, patterns)) continue;
    // What the parent was given by its own parents is linked only where it is asked for.
    std::error_code not_a_link;
    if (patterns == "*" && fs::read_symlink(entry.path(), not_a_link).is_absolute()) continue;
    fs::path link = folder / name;
    std::error_code existing;
    if (fs::exists(fs::symlink_status(link, existing))) {
      if (fs::read_symlink(link, existing) == entry.path()) continue;  // from an earlier try
      link += fmt::format("_{}", static_cast<std::int64_t>(parent));
    }
    fs::create_symlink(entry.path(), link, existing);
    if (existing && existing != std::errc::file_exists)
      throw_error(ErrorCode::io, "cannot link {}: {}", link.string(), existing.message());
  }
}

std::vector<std::string> stage_in_command(const std::string& url, const fs::path& folder) {
  const Target from = parse_url(url);
  const std::string to = folder.string() + "/";
  switch (from.kind) {
    case Target::Kind::local: {
      // A folder is what it holds.
      std::error_code unknown;  // cp says what is wrong with it
      const bool is_folder = fs::is_directory(from.text, unknown);
      return {"cp", "-r", "--", is_folder ? from.text + "/." : from.text, to};
    }
    case Target::Kind::remote: return {"scp", "-q", "-B", "-r", "--", from.text, to};
    case Target::Kind::grid: return {"globus-url-copy", "-r", from.text, "file://" + to};
  }
  throw_error(ErrorCode::internal, "no such kind of URL");
}

std::optional<std::vector<std::string>> stage_out_command(const fs::path& folder,
                                                          const std::string& patterns,
                                                          const std::string& url) {
  const Target to = parse_url(url);
  std::vector<std::string> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (matches(entry.path().filename().string(), patterns)) files.push_back(entry.path().string());
  if (files.empty()) return std::nullopt;
  std::size_t bytes = 0;
  for (const auto& file : files) bytes += file.size() + 1;
  if (bytes > kMostBytesOfNames)
    throw_error(ErrorCode::invalid_argument,
                "{} files match '{}', which is more than one command can copy; choose fewer, or "
                "have the job put them into a folder or an archive",
                files.size(), patterns);
  std::vector<std::string> command;
  switch (to.kind) {
    case Target::Kind::local:
      make_folder(to.text);
      command = {"cp", "-rL", "-t", to.text, "--"};
      break;
    case Target::Kind::remote: command = {"scp", "-q", "-B", "-r", "--"}; break;
    case Target::Kind::grid:
      if (files.size() > 1)
        throw_error(ErrorCode::invalid_argument, "{}: one file can be copied there, not {}", url,
                    files.size());
      return std::vector<std::string>{"globus-url-copy", "file://" + files[0], to.text};
  }
  command.insert(command.end(), files.begin(), files.end());
  if (to.kind == Target::Kind::remote) command.push_back(to.text);
  return command;
}

}  // namespace kolo::jobs
