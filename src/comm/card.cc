// The signature of a card is a hash of everything that the ranks must agree on. Comparing one
// number per rank is enough in the normal case; only when signatures differ are the cards compared
// field by field to say what is different.
#include "comm/card.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bit>
#include <vector>

namespace kolo::comm {
namespace {

/// Signature of a refusal; sign() never makes it.
constexpr std::uint64_t kRefused = 0;

std::string describe(const Card& card) {
  std::string text(to_string(card.kind));
  switch (card.kind) {
    case OpKind::allreduce:
    case OpKind::grouped_allreduce:
    case OpKind::reducescatter:
      text += fmt::format(" {} of {} × {}", to_string(card.op), card.count, to_string(card.type));
      if (card.prescale != 1.0 || card.postscale != 1.0)
        text += fmt::format(" scaled {:g}, {:g}", card.prescale, card.postscale);
      break;
    case OpKind::broadcast:
    case OpKind::gather:
    case OpKind::scatter:
      text += fmt::format(" of {} × {}, root {}", card.count, to_string(card.type), card.root);
      break;
    case OpKind::allgather:
    case OpKind::alltoall: text += fmt::format(" of {}", to_string(card.type)); break;
    case OpKind::barrier:
    case OpKind::subset: break;
  }
  if (card.row_size != 1) text += fmt::format(" in rows of {}", card.row_size);
  return text;
}

/// The names of the fields in which two cards differ.
std::string differences(const Card& a, const Card& b) {
  std::vector<std::string_view> fields;
  if (a.kind != b.kind) fields.push_back("operation");
  if (a.type != b.type) fields.push_back("type");
  if (a.op != b.op) fields.push_back("reduction");
  if (a.root != b.root) fields.push_back("root");
  if (a.count != b.count) fields.push_back("count");
  if (a.row_size != b.row_size) fields.push_back("row size");
  if (a.prescale != b.prescale || a.postscale != b.postscale) fields.push_back("factors");
  if (fields.empty()) fields.push_back("list of members");
  return fmt::format("{}", fmt::join(fields, ", "));
}

}  // namespace

std::string_view to_string(OpKind kind) noexcept {
  switch (kind) {
    case OpKind::barrier: return "barrier";
    case OpKind::allreduce: return "allreduce";
    case OpKind::grouped_allreduce: return "grouped_allreduce";
    case OpKind::reducescatter: return "reducescatter";
    case OpKind::allgather: return "allgather";
    case OpKind::broadcast: return "broadcast";
    case OpKind::alltoall: return "alltoall";
    case OpKind::gather: return "gather";
    case OpKind::scatter: return "scatter";
    case OpKind::subset: return "subset";
  }
  return "unknown operation";
}

void sign(Card& card, Agree what, std::uint64_t salt) {
  // A sum of products with odd constants, not a chain of mixes: this is on the path of operations
  // that take a quarter of a microsecond, and the products are independent of each other.
  std::uint64_t sum = salt;
  sum += (static_cast<std::uint64_t>(card.kind) | static_cast<std::uint64_t>(card.type) << 8 |
          static_cast<std::uint64_t>(card.op) << 16 |
          static_cast<std::uint64_t>(static_cast<std::uint32_t>(card.root)) << 32) *
         0x9e3779b97f4a7c15ULL;
  sum += card.row_size * 0xbf58476d1ce4e5b9ULL;
  if (what == Agree::all) sum += card.count * 0x94d049bb133111ebULL;
  sum += std::bit_cast<std::uint64_t>(card.prescale) * 0xd6e8feb86659fd93ULL;
  sum += std::bit_cast<std::uint64_t>(card.postscale) * 0xa0761d6478bd642fULL;
  card.signature = (sum ^ (sum >> 32)) | 1;
}

Card refusal(OpKind kind, Refusal why) {
  Card card;
  card.kind = kind;
  card.signature = kRefused;
  card.reason = static_cast<std::uint8_t>(why);
  return card;
}

Error mismatch(const Exchanged& all, int size) {
  for (int r = 0; r < size; ++r) {
    const Card& card = all.card(r);
    if (card.signature != kRefused) continue;
    if (static_cast<Refusal>(card.reason) == Refusal::no_room)
      return {ErrorCode::unavailable,
              fmt::format("{}: rank {} has no memory for the result", to_string(card.kind), r)};
    return {ErrorCode::invalid_argument,
            fmt::format("{}: the arguments of rank {} are not valid; its own error says why",
                        to_string(card.kind), r)};
  }
  for (int r = 1; r < size; ++r)
    if (all.card(r).signature != all.card(0).signature)
      return {ErrorCode::invalid_argument,
              fmt::format("ranks disagree about {}: rank 0 called {}, rank {} called {}",
                          differences(all.card(0), all.card(r)), describe(all.card(0)), r,
                          describe(all.card(r)))};
  return {ErrorCode::invalid_argument, "ranks disagree"};
}

}  // namespace kolo::comm
