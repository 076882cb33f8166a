#include "cluster/gang.h"

#include <algorithm>

namespace kolo::cluster {

Gang::Gang(std::vector<Part> parts, exec::ReservationId id) : parts_(std::move(parts)), id_(id) {
  ask();
}

Gang::~Gang() {
  for (std::size_t i = 0; i < std::min(asked_, parts_.size()); ++i)
    if (parts_[i].link != nullptr) parts_[i].link->release(id_);
}

void Gang::ask() {
  if (asked_ == parts_.size()) {
    state_ = State::granted;
    return;
  }
  const Part& part = parts_[asked_++];
  part.link->reserve(id_, part.want);
}

void Gang::refuse(std::string why) {
  state_ = State::refused;
  refusal_ = std::move(why);
  for (std::size_t i = 0; i < asked_; ++i)
    if (parts_[i].link != nullptr) parts_[i].link->release(id_);
  asked_ = 0;
}

void Gang::take(const exec::Link* link, const exec::Event& event) {
  if (state_ != State::asking || parts_[asked_ - 1].link != link) return;
  if (const auto* reserved = std::get_if<exec::Reserved>(&event)) {
    if (reserved->id == id_) ask();
  } else if (const auto* refusal = std::get_if<exec::Refusal>(&event)) {
    if (refusal->id == id_) refuse(link->name() + ": " + refusal->reason);
  }
}

void Gang::lose(const exec::Link* link) {
  for (auto& part : parts_) {
    if (part.link != link) continue;
    part.link = nullptr;
    if (state_ != State::refused) refuse(link->name() + " was lost");
  }
}

}  // namespace kolo::cluster
