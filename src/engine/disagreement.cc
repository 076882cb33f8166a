// Requests of one name that do not fit: what differs, between whom, in words.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/coordinator.h"

namespace kolo::runtime {
namespace {

std::string shape_text(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

/// The first dimension of gathered and exchanged tensors may differ.
bool same_shape(const Shape& a, const Shape& b, OpKind kind) {
  if (kind != OpKind::allgather && kind != OpKind::alltoall) return a == b;
  return a.size() == b.size() &&
         std::equal(a.begin() + (a.empty() ? 0 : 1), a.end(), b.begin() + (b.empty() ? 0 : 1));
}

/// "shape [2] and [3]"; nothing if they fit.
std::optional<std::string> difference(const Request& a, const Request& b) {
  if (a.kind != b.kind)
    return fmt::format("operation {} and {}", comm::to_string(a.kind), comm::to_string(b.kind));
  if (a.op != b.op) return fmt::format("reduction {} and {}", to_string(a.op), to_string(b.op));
  if (a.root != b.root) return fmt::format("root {} and {}", a.root, b.root);
  if (a.scaling.prescale != b.scaling.prescale || a.scaling.postscale != b.scaling.postscale)
    return fmt::format("factors {:g}, {:g} and {:g}, {:g}", a.scaling.prescale, a.scaling.postscale,
                       b.scaling.prescale, b.scaling.postscale);
  if (a.tensors.size() != b.tensors.size())
    return fmt::format("number of tensors {} and {}", a.tensors.size(), b.tensors.size());
  for (std::size_t i = 0; i < a.tensors.size(); ++i) {
    const std::string which = a.tensors.size() > 1 ? fmt::format(" of tensor {}", i) : "";
    if (a.tensors[i].type != b.tensors[i].type)
      return fmt::format("type{} {} and {}", which, to_string(a.tensors[i].type),
                         to_string(b.tensors[i].type));
    if (!same_shape(a.tensors[i].shape, b.tensors[i].shape, a.kind))
      return fmt::format("shape{} {} and {}", which, shape_text(a.tensors[i].shape),
                         shape_text(b.tensors[i].shape));
  }
  return std::nullopt;
}

}  // namespace

std::size_t Request::bytes() const {
  std::size_t total = 0;
  for (const auto& tensor : tensors) total += element_count(tensor.shape) * size_of(tensor.type);
  return total;
}

std::optional<std::string> describe_disagreement(
    const std::vector<std::optional<Request>>& by_member, const std::vector<int>& ranks) {
  std::optional<std::size_t> first;
  for (std::size_t m = 0; m < by_member.size(); ++m) {
    if (!by_member[m]) continue;
    if (!first) {
      first = m;
      continue;
    }
    if (auto what = difference(*by_member[*first], *by_member[m]))
      return fmt::format("{} '{}': ranks {} and {} disagree: {}",
                         comm::to_string(by_member[*first]->kind), by_member[*first]->name,
                         ranks[*first], ranks[m], *what);
  }
  return std::nullopt;
}

}  // namespace kolo::runtime
