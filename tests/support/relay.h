// How forked ranks talk to the test that forked them: messages of a few fields on a socket pair,
// and a Bootstrap on top, with the parent as meeting place.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "comm/bootstrap.h"

namespace kolo::test {

/// Fields of one message; the first names its kind.
using Message = std::vector<std::string>;

/// Two connected ends; each message arrives whole.
std::pair<Fd, Fd> make_message_pair();
/// Throws io when the other end is gone.
void send_message(int fd, const Message& message);
/// Waits for a message; nullopt when the other end is gone or the deadline passed.
std::optional<Message> receive_message(int fd, Deadline deadline);

/// The child's end: asks the parent to gather, hears news of the other ranks.
///   child  → parent   gather, request number, key, members, milliseconds, contribution
///   parent → child    gathered, request number, contributions …
///                     failed, request number, error code, rank, message
///   parent → child, on the second pair:   departed, rank, reason
std::shared_ptr<comm::Bootstrap> make_relay_bootstrap(int rank, std::vector<int> host_of_rank,
                                                      int control_fd, int news_fd);

/// "0,2,3" and back.
std::string join_numbers(const std::vector<int>& numbers);
std::vector<int> split_numbers(const std::string& text);

}  // namespace kolo::test
