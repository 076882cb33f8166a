// Reservations on several hosts: all of them or none.
//
// Hosts are asked one after the other, everybody in the same order, and whoever is refused gives
// back what it has. So two gangs never wait for each other.
//
// Nothing blocks. One thread at a time.
#pragma once

#include <string>
#include <vector>

#include "exec/link.h"

namespace kolo::cluster {

class Gang {
 public:
  enum class State { asking, granted, refused };
  struct Part {
    exec::Link* link = nullptr;
    exec::Amounts want{};
  };

  /// `parts` are in the order of the cluster's members. Asks the first host. The links must live as
  /// long as this, unless forget() is called.
  Gang(std::vector<Part> parts, exec::ReservationId id);
  /// Gives everything back.
  ~Gang();
  Gang(const Gang&) = delete;
  Gang& operator=(const Gang&) = delete;

  /// Takes an event that came over `link`; those of others are not looked at.
  void take(const exec::Link* link, const exec::Event& event);
  /// The link is gone, and what it held with it: the gang is refused.
  void lose(const exec::Link* link);
  /// What is reserved stays until the links close.
  void keep() { parts_.clear(); }

  [[nodiscard]] State state() const noexcept { return state_; }
  [[nodiscard]] exec::ReservationId id() const noexcept { return id_; }
  /// Of a gang that was refused: "HOST: why".
  [[nodiscard]] const std::string& refusal() const noexcept { return refusal_; }

 private:
  void ask();
  void refuse(std::string why);

  std::vector<Part> parts_;
  exec::ReservationId id_;
  std::size_t asked_ = 0;  // parts that were asked for
  State state_ = State::asking;
  std::string refusal_;
};

}  // namespace kolo::cluster
