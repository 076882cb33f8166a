#include "nas/graph/window.h"

#include <algorithm>

#include "base/errors.h"

namespace kolo::nas {

Window::Window(const Shape& shape, std::vector<std::int64_t> the_size,
               std::vector<std::int64_t> the_strides, bool same)
    : size(std::move(the_size)), strides(std::move(the_strides)) {
  for (std::size_t axis = 0; axis < size.size(); ++axis) {
    const std::int64_t extent = shape[axis + 1], width = size[axis], stride = strides[axis];
    if (!same && width > extent)
      throw_error(ErrorCode::invalid_argument,
                  "a window of {} does not fit into {} without padding \"same\"", to_string(size),
                  to_string(shape));
    places.push_back(same ? (extent + stride - 1) / stride : (extent - width) / stride + 1);
    const std::int64_t zeros =
        same ? std::max<std::int64_t>((places.back() - 1) * stride + width - extent, 0) : 0;
    before.push_back(zeros / 2);
    after.push_back(zeros - zeros / 2);
  }
}

std::vector<std::int64_t> Window::padding() const {
  std::vector<std::int64_t> zeros;
  for (std::size_t axis = size.size(); axis-- > 0;) {
    zeros.push_back(before[axis]);
    zeros.push_back(after[axis]);
  }
  return zeros;
}

bool Window::pads() const {
  return std::any_of(after.begin(), after.end(), [](std::int64_t zeros) { return zeros > 0; });
}

}  // namespace kolo::nas
