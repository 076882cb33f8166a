// The content of a drawing of a space, independent of its format.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kolo/nas/search_space.h"
#include "nas/graph/graph_order.h"

namespace kolo::nas {

struct Picture {
  struct Box {
    std::string title;               ///< name of the node
    std::vector<std::string> lines;  ///< its operations, or the one that it does
    NodeKind kind;
    bool off = false;     ///< nothing comes out in this architecture
    bool chosen = false;  ///< the first line is what the architecture chose
    bool is_output = false;
  };
  enum class Line {
    connection,
    possible_skip,  ///< a Connect operation that may be chosen
    skip,           ///< one that is
  };
  struct Arrow {
    std::size_t from, to;
    Line line;
    bool is_main = false;  ///< the first that comes in: the trunk of the drawing
  };
  std::vector<Box> boxes;  ///< one per node
  std::vector<Arrow> arrows;
  std::string caption;
};

using MaybeArchitecture = std::optional<std::span<const std::int64_t>>;

/// Throws as KSearchSpace::model does for an architecture that cannot be built.
Picture draw_picture(const KSearchSpace& space, const GraphOrder& order,
                     const MaybeArchitecture& arch_seq);

}  // namespace kolo::nas
