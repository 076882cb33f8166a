// A group of one: everything is a copy.
#include <cstring>
#include <vector>

#include "base/errors.h"
#include "comm/group.h"
#include "comm/reduce_kernels.h"

namespace kolo::comm {
namespace {

class SoloGroup final : public Group {
 public:
  SoloGroup() : Group(0, 1) {}

  [[nodiscard]] std::string describe() const override { return "solo"; }
  [[nodiscard]] std::size_t eager_bytes() const noexcept override { return kEagerBytes; }

  Exchanged exchange(const Card& card, const void* payload, std::size_t bytes) override {
    KOLO_CHECK(bytes <= kEagerBytes);
    row_.card = card;
    if (bytes != 0) std::memcpy(row_.payload, payload, bytes);
    constexpr std::size_t kPayload = offsetof(Row, payload);
    return {&row_address_,
            {.card = 0, .small = kPayload, .small_limit = kEagerBytes, .large = kPayload},
            card.signature != 0};
  }

  void allreduce(const void* input, void* output, std::size_t count,
                 const Reduction& how) override {
    reduce({&input, 1}, {&output, 1}, count, how);
  }
  void reducescatter(const void* input, void* output, std::span<const std::size_t> counts,
                     const Reduction& how) override {
    reduce({&input, 1}, {&output, 1}, counts[0], how);
  }
  void allgather(const void* input, void* output, std::span<const std::size_t> bytes) override {
    copy_bytes(output, input, bytes[0]);
  }
  void broadcast(void*, std::size_t, int) override {}
  void alltoall(const void* input, std::span<const std::size_t>, void* output,
                std::span<const std::size_t> recv_bytes) override {
    copy_bytes(output, input, recv_bytes[0]);
  }

  void send(int, std::span<const std::byte>, const void*, std::size_t) override { no_peer(); }
  std::size_t recv_header(int, std::span<std::byte>) override { no_peer(); }
  void recv_body(int, void*, std::size_t) override { no_peer(); }

  std::unique_ptr<Group> subset(const std::vector<int>&) override {
    return std::make_unique<SoloGroup>();
  }

 private:
  static constexpr std::size_t kEagerBytes = 512;
  struct Row {
    Card card;
    alignas(64) std::byte payload[kEagerBytes];
  };
  [[noreturn]] static void no_peer() {
    throw_error(ErrorCode::internal, "a group of one has nobody to talk to");
  }

  Row row_;
  const std::byte* row_address_ = reinterpret_cast<const std::byte*>(&row_);
};

}  // namespace

bool Group::carries(std::size_t, DataType) const noexcept { return false; }
Exchanged Group::exchange_and_allreduce(const Card&, const void*, void*, std::size_t,
                                        const Reduction&) {
  throw_error(ErrorCode::internal, "{}: meetings carry no allreduce here", describe());
}

void Group::post(const Card&, const void*, std::size_t) {
  throw_error(ErrorCode::internal, "{}: meetings cannot be posted here", describe());
}
bool Group::all_posted() const noexcept { return false; }
void Group::await_posted() {
  throw_error(ErrorCode::internal, "{}: meetings cannot be posted here", describe());
}
Exchanged Group::take_up() {
  throw_error(ErrorCode::internal, "{}: meetings cannot be posted here", describe());
}
void Group::reduce_own_part(std::size_t, const Reduction&) {
  throw_error(ErrorCode::internal, "{}: meetings cannot be posted here", describe());
}

std::unique_ptr<Group> make_solo_group() { return std::make_unique<SoloGroup>(); }

}  // namespace kolo::comm
