// Rank 0 starts a server and writes its addresses and a fresh secret to the file. The others look
// for the file until its server answers, so that a file left behind by an earlier job is only
// waited past. All ranks then exchange the identity of their host (name and boot id), from which
// the topology follows. What was found is remembered in the process, so that a second Context needs
// no file.
#include "comm/rendezvous/hosted.h"

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <filesystem>
#include <map>
#include <numeric>
#include <optional>
#include <sstream>

#include "base/env.h"
#include "base/errors.h"
#include "base/files.h"
#include "base/host.h"
#include "base/log.h"
#include "comm/network_interface.h"
#include "comm/rendezvous/client.h"
#include "comm/rendezvous/server.h"

namespace kolo::comm::rendezvous {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFileHeader = "kolo rendezvous 1";
constexpr auto kLookAgain = std::chrono::milliseconds(10);

/// What the file says.
struct Place {
  std::vector<SocketAddress> addresses;
  Secret secret = Secret::random();
};

/// Found once per process: the file is gone when init() is called again.
struct Known {
  std::string job;
  Place place;
  std::shared_ptr<Server> server;  // in rank 0
};
std::optional<Known>& known() {
  static auto* instance = new std::optional<Known>;  // outlives other statics
  return *instance;
}

fs::path meeting_file(const std::string& job) {
  fs::path directory;
  if (auto given = setting("RENDEZVOUS_DIR")) {
    directory = *given;
  } else if (auto home = environment("HOME")) {
    directory = fs::path(*home) / ".kolo" / "rendezvous";
  } else {
    throw_error(ErrorCode::failed_precondition,
                "there is no directory for the rendezvous; set KOLO_RENDEZVOUS_DIR to a directory "
                "that all hosts share");
  }
  make_private_directory(directory);
  std::string name = job;
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '-' && c != '_' && c != '.') c = '_';
  return directory / name;
}

std::string hex(std::string_view bytes) {
  std::string text;
  for (unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

/// Stops at what is no digit; Secret::from_bytes() then misses the rest.
std::string unhex(std::string_view text) {
  std::string bytes;
  for (; text.size() >= 2; text.remove_prefix(2)) {
    unsigned char byte = 0;
    const char* const digits = &text.front();
    auto [end, error] = std::from_chars(digits, digits + 2, byte, 16);
    if (error != std::errc() || end != digits + 2) break;
    bytes.push_back(static_cast<char>(byte));
  }
  return bytes;
}

std::string encode_file(const Place& place) {
  std::string text = fmt::format("{}\nsecret {}\n", kFileHeader, hex(place.secret.bytes()));
  for (const auto& address : place.addresses) text += fmt::format("address {}\n", address.str());
  return text;
}

/// Nothing if there is no such file yet. Throws corruption, failed_precondition.
std::optional<Place> read_place(const fs::path& file) {
  struct stat info {};
  if (::stat(file.c_str(), &info) != 0) return std::nullopt;
  if (info.st_uid != ::geteuid() || (info.st_mode & 0077) != 0)
    throw_error(ErrorCode::failed_precondition,
                "{} must belong to this user and be readable by nobody else; remove it",
                file.string());
  std::string text;
  try {
    text = read_file(file);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::not_found) return std::nullopt;  // removed meanwhile
    throw;
  }
  std::istringstream lines(text);
  std::string line, word, value;
  std::getline(lines, line);
  Place place;
  bool has_secret = false;
  while (lines >> word >> value) {
    if (word == "secret") {
      place.secret = Secret::from_bytes(unhex(value));
      has_secret = true;
    } else if (word == "address") {
      place.addresses.push_back(SocketAddress::parse(value));
    }
  }
  if (line != kFileHeader || !has_secret || place.addresses.empty())
    throw_error(ErrorCode::corruption, "{} is not a rendezvous file of kolo; remove it",
                file.string());
  return place;
}

Known host(const Launched& launched, const fs::path& file) {
  Known hosted;
  hosted.job = launched.job;
  ServerOptions options;
  options.size = launched.size;
  options.secret = hosted.place.secret;
  options.listen = addresses_to_listen(launched.one_host);
  options.broken_connection_is_departure = true;
  options.on_all_joined = [file] { ::unlink(file.c_str()); };
  hosted.server = std::make_shared<Server>(std::move(options));
  hosted.place.addresses = hosted.server->addresses();
  write_file_atomically(file, encode_file(hosted.place), kPrivateFile);
  log::debug("rendezvous: rank 0 meets the others at {}", hosted.place.addresses[0].str());
  return hosted;
}

ClientOptions client_options(const Launched& launched, const Place& place,
                             const SocketAddress& address) {
  // Until the ranks have told each other where they are, each is on a host of its own.
  std::vector<int> hosts(static_cast<std::size_t>(launched.size));
  std::iota(hosts.begin(), hosts.end(), 0);
  return {address,
          place.secret,
          Topology(launched.rank, std::move(hosts)),
          describe(launched.launcher) + ", met at rank 0",
          0,
          nullptr};
}

/// Tries the addresses in turn; null if none of them answers as this job's server.
std::shared_ptr<Client> try_place(const Launched& launched, const Place& place, Deadline deadline) {
  constexpr auto kPerAddress = std::chrono::seconds(2);
  for (const auto& address : place.addresses) {
    const auto soon = Deadline::Clock::now() + kPerAddress;
    try {
      return std::make_shared<Client>(client_options(launched, place, address),
                                      Deadline::at(std::min(soon, deadline.when())));
    } catch (const Error& error) {
      log::debug("rendezvous: {}", error.message());
    }
  }
  return nullptr;
}

std::shared_ptr<Client> find_host(const Launched& launched, const fs::path& file,
                                  Deadline deadline) {
  std::string stale;  // what did not lead anywhere
  while (!deadline.passed()) {
    if (auto place = read_place(file)) {
      if (auto client = try_place(launched, *place, deadline)) {
        known() = Known{launched.job, *place, nullptr};
        return client;
      }
      stale =
          fmt::format("; nothing answers at {}, which that file names", place->addresses[0].str());
    }
    ::poll(nullptr, 0, static_cast<int>(kLookAgain.count()));
  }
  throw_error(ErrorCode::timeout,
              "rank 0 did not arrive in time: waited for the file {}{}; the file must be on a file "
              "system that all hosts share, and KOLO_RENDEZVOUS_DIR chooses another directory",
              file.string(), stale);
}

Topology meet_for_topology(Client& client, const Launched& launched, Deadline deadline) {
  std::vector<int> all(static_cast<std::size_t>(launched.size));
  std::iota(all.begin(), all.end(), 0);
  std::map<std::string, int> numbers;
  std::vector<int> host_of_rank;
  for (const auto& host : client.allgather("kolo/hosts", all, host_identity(), deadline))
    host_of_rank.push_back(
        numbers.try_emplace(host, static_cast<int>(numbers.size())).first->second);
  return {launched.rank, std::move(host_of_rank)};
}

}  // namespace

std::shared_ptr<Bootstrap> make_hosted_bootstrap(const Launched& launched, Deadline deadline) {
  if (launched.job.empty())
    throw_error(ErrorCode::failed_precondition,
                "{} gives its jobs no id by which ranks on several hosts can find each other; set "
                "KOLO_JOB_ID to the same fresh value on all ranks",
                describe(launched.launcher));
  const fs::path file = meeting_file(launched.job);
  const bool is_host = launched.rank == 0;
  auto& found = known();
  if (found && found->job != launched.job) found.reset();
  if (!found && is_host) found = host(launched, file);
  std::shared_ptr<Client> client;
  try {
    if (!found) {
      client = find_host(launched, file, deadline);
    } else {
      client = try_place(launched, found->place, deadline);
      if (!client)
        throw_error(ErrorCode::unavailable, "the rendezvous server of rank 0 at {} is gone",
                    found->place.addresses[0].str());
    }
    client->set_topology(meet_for_topology(*client, launched, deadline));
  } catch (...) {
    if (is_host) ::unlink(file.c_str());
    throw;
  }
  return client;
}

}  // namespace kolo::comm::rendezvous
