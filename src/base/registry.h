// Families of implementations: one constant table of {name, summary, factory} each.
//
//     constexpr Entry<MakeTransport> kTransports[] = {
//         {"shm", "shared memory, one host", make_shm},
//         {"tcp", "sockets between hosts", make_tcp},
//     };
//     constexpr Registry<MakeTransport> transports{"transport", kTransports};
//     auto transport = transports.at(name).make(options);
//
// Adding an implementation is one file pair and one row.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kolo/error.h"

namespace kolo {

/// `Make` is a function pointer or another literal type that creates the thing.
template <class Make>
struct Entry {
  std::string_view name;
  std::string_view summary;  ///< one line, for `kolo list FAMILY`
  Make make;
};

/// "transport 'shn' is unknown; did you mean 'shm'? known: shm, tcp, mpi"
std::string unknown_name(std::string_view family, std::string_view name,
                         const std::vector<std::string_view>& known);

/// Throws that sentence.
[[noreturn]] void throw_unknown_name(std::string_view family, std::string_view name,
                                     const std::vector<std::string_view>& known,
                                     ErrorCode code = ErrorCode::not_found);

/// The known name closest to `name`, or empty when none is close.
std::string_view nearest_name(std::string_view name, const std::vector<std::string_view>& known);

template <class Make>
class Registry {
 public:
  /// `family` is what one entry is called, in singular. The table must outlive the registry.
  constexpr Registry(std::string_view family, std::span<const Entry<Make>> entries)
      : family_(family), entries_(entries) {}

  [[nodiscard]] constexpr std::string_view family() const noexcept { return family_; }
  [[nodiscard]] constexpr std::span<const Entry<Make>> entries() const noexcept { return entries_; }

  /// Null if unknown.
  [[nodiscard]] constexpr const Entry<Make>* find(std::string_view name) const noexcept {
    for (const auto& entry : entries_)
      if (entry.name == name) return &entry;
    return nullptr;
  }

  /// Throws not_found, listing the known names.
  [[nodiscard]] const Entry<Make>& at(std::string_view name) const {
    if (const auto* entry = find(name)) return *entry;
    throw_unknown_name(family_, name, names());
  }

  [[nodiscard]] std::vector<std::string_view> names() const {
    std::vector<std::string_view> all;
    all.reserve(entries_.size());
    for (const auto& entry : entries_) all.push_back(entry.name);
    return all;
  }

 private:
  std::string_view family_;
  std::span<const Entry<Make>> entries_;
};

}  // namespace kolo
