// Drawings, and spaces written down.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>

#include "kolo/error.h"
#include "kolo/nas.h"
#include "nas/graph/layered_layout.h"

namespace kolo::nas {
namespace {

using testing::HasSubstr;
using testing::Not;
using Arch = std::vector<std::int64_t>;

/// Reads XML's tags and texts: "" when every tag is closed in its order, quotation marks are closed
/// and nothing in a text or attribute would have needed escaping; else what is wrong.
std::string xml_fault(const std::string& text) {
  std::vector<std::string> open;
  std::size_t at = 0;
  bool any = false;
  while (at < text.size()) {
    const std::size_t next = text.find('<', at);
    const std::string between = text.substr(at, next == std::string::npos ? next : next - at);
    if (between.find('>') != std::string::npos) return "a bare > in " + between;
    for (std::size_t amp = between.find('&'); amp != std::string::npos;
         amp = between.find('&', amp + 1)) {
      const std::string entity = between.substr(amp, between.find(';', amp) - amp + 1);
      if (entity != "&amp;" && entity != "&lt;" && entity != "&gt;" && entity != "&quot;" &&
          entity != "&#39;")
        return "a bare & in " + between;
    }
    if (next == std::string::npos) break;
    const std::size_t end = text.find('>', next);
    if (end == std::string::npos) return "a tag without an end";
    std::string tag = text.substr(next + 1, end - next - 1);
    if (std::count(tag.begin(), tag.end(), '"') % 2 != 0) return "quotation marks in " + tag;
    const std::string name = tag.substr(0, tag.find_first_of(" /", 1));
    if (tag.front() == '/') {
      if (open.empty() || "/" + open.back() != name) return "unexpected <" + tag + ">";
      open.pop_back();
    } else if (tag.back() != '/') {
      if (open.empty() && any) return "two roots";
      open.push_back(name);
    }
    any = true;
    at = end + 1;
  }
  return open.empty() ? "" : "<" + open.back() + "> is open";
}

std::shared_ptr<KSearchSpace> three_layers() {
  return dense_skip_co({{10}}, {{1}}, Value{{"num_layers", 3}});
}

TEST(Drawing, TheCheckOfXmlFindsFaults) {
  EXPECT_EQ(xml_fault("<a b=\"c\"><d/>e &amp; f</a>"), "");
  EXPECT_NE(xml_fault("<a><b></a></b>"), "");
  EXPECT_NE(xml_fault("<a>b & c</a>"), "");
  EXPECT_NE(xml_fault("<a>"), "");
  EXPECT_NE(xml_fault("<a b=\"c></a>"), "");
}

TEST(Drawing, SvgIsXmlAndShowsEveryNode) {
  for (const auto& info : spaces()) {
    if (info.name == "graph") continue;
    const std::vector<Shape> inputs = info.name == "conv_cells" ? std::vector<Shape>{{1, 8, 8}}
                                      : info.name == "combo"    ? std::vector<Shape>{{9}, {5}, {5}}
                                                                : std::vector<Shape>{{10}};
    const auto space = space_function(info.name)(inputs, {{1}}, {});
    Arch arch;
    for (const std::int64_t count : space->choices()) arch.push_back(count / 2);
    for (const std::string& svg : {space->to_svg(), space->to_svg(arch)}) {
      EXPECT_EQ(xml_fault(svg), "") << info.name;
      for (const Node& node : space->nodes()) EXPECT_THAT(svg, HasSubstr(">" + node.name + "<"));
    }
    for (const std::string& dot : {space->to_dot(), space->to_dot(arch)})
      for (const Node& node : space->nodes()) EXPECT_THAT(dot, HasSubstr("\"" + node.name + "\\n"));
  }
}

TEST(Drawing, ShowsWhatAnArchitectureChose) {
  const auto space = three_layers();
  const Arch arch{3, 1, 0, 0, 1, 30, 0, 0, 0};
  const std::string svg = space->to_svg(arch);
  EXPECT_THAT(svg, HasSubstr("Dense 16 relu"));
  EXPECT_THAT(svg, HasSubstr("Dense 96 sigmoid"));
  EXPECT_THAT(svg, HasSubstr("Connect merge_1"));
  EXPECT_THAT(svg, HasSubstr("[3, 1, 0, 0, 1, 30, 0, 0, 0]"));
  EXPECT_THAT(svg, HasSubstr("(96)"));
  const auto count = [&](const std::string& part) {
    std::size_t times = 0;
    for (std::size_t at = svg.find(part); at != std::string::npos; at = svg.find(part, at + 1))
      ++times;
    return times;
  };
  EXPECT_EQ(count("class=\"variable chosen\""), 5U);  // three layers, two skips
  EXPECT_EQ(count("class=\"variable off\""), 4U);
  EXPECT_EQ(count("class=\"skip\""), 2U);
  EXPECT_EQ(count("class=\"possible\""), 0U);
  EXPECT_EQ(count("class=\"constant output\""), 1U);
  EXPECT_THROW((void)space->to_svg(Arch{1}), Error);
  EXPECT_THROW((void)space->to_dot(Arch{1, 2, 3, 4, 5, 6, 7, 8, 9}), Error);
}

TEST(Drawing, OfTheSpaceShowsChoices) {
  const std::string svg = three_layers()->to_svg();
  EXPECT_THAT(svg, HasSubstr("… and 28 more"));
  EXPECT_THAT(svg, HasSubstr("class=\"possible\""));
  EXPECT_THAT(svg, HasSubstr("1.91e+06 architectures"));
  EXPECT_THAT(svg, Not(HasSubstr("chosen\"")));
  const std::string dot = three_layers()->to_dot();
  EXPECT_EQ(dot.rfind("digraph", 0), 0U);
  EXPECT_THAT(dot, HasSubstr("n1 [label=\"layer_1\\nIdentity"));
  EXPECT_THAT(dot, HasSubstr("n0 -> n1 "));
  EXPECT_THAT(dot, HasSubstr("style=dashed"));
}

TEST(Drawing, TextsAreEscaped) {
  KSearchSpace space({{4}}, {{1}});
  const NodeId node = space.add_constant("<a & \"b\">'c'", op::dense(1));
  space.connect(space.input(), node);
  EXPECT_EQ(xml_fault(space.to_svg()), "");
  EXPECT_THAT(space.to_svg(), HasSubstr("&lt;a &amp; &quot;b&quot;&gt;&#39;c&#39;"));
  EXPECT_THAT(space.to_dot(), HasSubstr("<a & \\\"b\\\">'c'"));
}

TEST(Layout, BoxesDoNotOverlapAndArrowsGoDown) {
  // A chain 0 … 9 with an arrow from each box to the one three further.
  std::vector<LayoutBox> boxes;
  std::vector<LayoutArrow> arrows;
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < 10; ++i) {
    boxes.push_back({.width = 40.0 + static_cast<double>(i % 3) * 30, .height = 20});
    order.push_back(i);
    if (i > 0) arrows.push_back({i - 1, i});
    if (i > 2) arrows.push_back({i - 3, i});
  }
  const auto [width, height] = lay_out(boxes, arrows, order);
  for (std::size_t i = 0; i < 10; ++i) {
    EXPECT_GE(boxes[i].x - boxes[i].width / 2, -1e-6);
    EXPECT_LE(boxes[i].x + boxes[i].width / 2, width + 1e-6);
    EXPECT_LE(boxes[i].y + boxes[i].height / 2, height + 1e-6);
  }
  for (const LayoutArrow& arrow : arrows) {
    EXPECT_LT(boxes[arrow.from].y, boxes[arrow.to].y);
    EXPECT_EQ(arrow.bends.size(), arrow.to - arrow.from - 1);
    for (const auto& bend : arrow.bends)  // beside the box of its layer, not behind it
      for (const LayoutBox& box : boxes)
        if (box.y > bend.top && box.y < bend.bottom) {
          EXPECT_GT(std::abs(box.x - bend.x), box.width / 2);
        }
  }
}

TEST(WrittenSpaces, ComeBackAsTheyWere) {
  for (const auto& space :
       {three_layers(), combo({{9}, {5}, {5}}, {{1}}), conv_cells({{1, 8, 8}}, {{10}})}) {
    const Value written = space->to_value();
    const auto again = space_from_value(written);
    EXPECT_EQ(again->to_value(), written);
    EXPECT_EQ(again->choices(), space->choices());
    Arch arch;
    for (const std::int64_t count : space->choices()) arch.push_back(count - 1);
    EXPECT_EQ(again->model(arch)->named_parameters().keys(),
              space->model(arch)->named_parameters().keys());
  }
  EXPECT_FALSE(three_layers()->to_value() == dense_skip_co({{10}}, {{1}})->to_value());
}

TEST(WrittenSpaces, MayBeWrittenByHand) {
  const Value nodes(Value::List{
      Value{{"name", "layer"},
            {"kind", "variable"},
            {"operations", Value::List{"Identity", Value{{"Dense", Value{{"units", 16}}}}}},
            {"from", Value::List{"input_0"}}},
      Value{{"name", "sum"},
            {"kind", "constant"},
            {"operations", Value::List{"AddByProjecting"}},
            {"from", Value::List{"layer", "skip"}}},
      Value{
          {"name", "skip"},
          {"kind", "variable"},
          {"operations",
           Value::List{"Zero", Value{{"Connect", Value{{"sources", Value::List{"input_0"}}}}}}}}});
  const auto space = space_function("graph")({{4}}, {{2}}, Value{{"nodes", nodes}});
  EXPECT_EQ(space->size(), 4);
  EXPECT_EQ(space->model(Arch{1, 1})->num_parameters(), 80 + 80 + 34);

  const auto failure = [](const Value& settings) {
    try {
      (void)space_function("graph")({{4}}, {{2}}, settings);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("nothing was thrown");
  };
  const auto with = [](Value::Dict node) {
    return Value{{"nodes", Value::List{Value(std::move(node))}}};
  };
  EXPECT_THAT(failure({}), HasSubstr("'nodes'"));
  EXPECT_THAT(failure(with({{"name", "a"}, {"kind", "varable"}})),
              testing::AllOf(HasSubstr("'a'"), HasSubstr("variable")));
  EXPECT_THAT(failure(with({{"name", "a"}, {"kind", "constant"}})), HasSubstr("one operation"));
  EXPECT_THAT(
      failure(with({{"name", "a"}, {"kind", "variable"}, {"operations", Value::List{"Dens"}}})),
      testing::AllOf(HasSubstr("'a'"), HasSubstr("Dense")));
  EXPECT_THAT(failure(with({{"name", "a"}, {"kind", "mirror"}, {"target", "b"}})),
              testing::AllOf(HasSubstr("'a'"), HasSubstr("'b'")));
  EXPECT_THAT(failure(with({{"name", "a"}, {"kind", "constant"}, {"form", Value::List{}}})),
              testing::AllOf(HasSubstr("'form'"), HasSubstr("from")));
  EXPECT_THAT(failure(Value{{"nodes", nodes}, {"edges", 1}}), HasSubstr("'edges'"));
}

}  // namespace
}  // namespace kolo::nas
