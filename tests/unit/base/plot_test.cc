#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "base/axis.h"
#include "base/svg_plot.h"

namespace kolo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(AxisTest, MarksAreRound) {
  EXPECT_THAT((Axis{0, 100}.marks(5)), ElementsAre(0, 20, 40, 60, 80, 100));
  EXPECT_THAT((Axis{-3, 7}.marks(5)), ElementsAre(-2, 0, 2, 4, 6));
  const auto small = Axis{0.11, 0.26}.marks(3);
  ASSERT_EQ(small.size(), 3U);
  EXPECT_NEAR(small[0], 0.15, 1e-12);
  EXPECT_NEAR(small[2], 0.25, 1e-12);
  for (const double low : {-1e6, -0.37, 0.0, 12345.6})
    for (const double range : {1e-6, 0.3, 7.0, 4e8})
      for (const double mark : Axis{low, low + range}.marks(6)) {
        EXPECT_GE(mark, low - range * 1e-6);
        EXPECT_LE(mark, low + range * (1 + 1e-6));
      }
}

TEST(AxisTest, LogarithmsHavePowersOfTen) {
  EXPECT_THAT((Axis{0.01, 1000, true}.marks(6)),
              ElementsAre(testing::DoubleNear(0.01, 1e-15), 0.1, 1, 10, 100, 1000));
  EXPECT_THAT((Axis{1, 60, true}.marks(6)), ElementsAre(1, 2, 5, 10, 20, 50));
  EXPECT_LE((Axis{1e-30, 1e30, true}.marks(6)).size(), 8U);
  EXPECT_NEAR((Axis{1, 100, true}.place(10)), 0.5, 1e-12);
  EXPECT_NEAR((Axis{10, 30}.place(15)), 0.25, 1e-12);
}

TEST(AxisTest, ShowsAllNumbersThereAre) {
  const double nan = std::nan(""), inf = std::numeric_limits<double>::infinity();
  const Axis axis = axis_around({3, nan, 5, inf, -inf}, false, 0.1);
  EXPECT_NEAR(axis.low, 2.8, 1e-12);
  EXPECT_NEAR(axis.high, 5.2, 1e-12);
  const Axis single = axis_around({7}, false);
  EXPECT_LT(single.low, 7);
  EXPECT_GT(single.high, 7);
  EXPECT_LT(axis_around({}, false).low, axis_around({}, false).high);
  const Axis positive = axis_around({-1, 0, 1, 100}, true, 0.0);
  EXPECT_EQ(positive.low, 1);
  EXPECT_EQ(positive.high, 100);
}

TEST(AxisTest, MarksReadWell) {
  EXPECT_EQ(mark_text(0, 0.1), "0");
  EXPECT_EQ(mark_text(0.30000000000000004, 0.1), "0.3");
  EXPECT_EQ(mark_text(2.5, 0.25), "2.5");
  EXPECT_EQ(mark_text(-1200, 200), "-1200");
  EXPECT_EQ(mark_text(-12500, 500), "-12,500");
  EXPECT_EQ(mark_text(1500000, 500000), "1,500,000");
  EXPECT_EQ(mark_text(2e-5, 1e-5), "2e-05");
  EXPECT_EQ(mark_text(1e9, 1e9), "1e+09");
}

TEST(SvgPlotTest, DrawsWhatIsThere) {
  Plot plot{.title = "a < b & \"c\"", .x_label = "x", .y_label = "y"};
  plot.series.push_back({.name = "first",
                         .points = {{0, 1}, {1, std::nan("")}, {2, 3}},
                         .style = PlotSeries::Style::points});
  plot.series.push_back(
      {.name = "second", .points = {{0, 1}, {1, 1}, {2, 3}}, .style = PlotSeries::Style::steps});
  const std::string svg = svg_plot(plot);
  EXPECT_THAT(svg, HasSubstr("a &lt; b &amp; &quot;c&quot;"));
  EXPECT_THAT(svg, HasSubstr(">first</text>"));
  EXPECT_THAT(svg, HasSubstr(">second</text>"));
  EXPECT_EQ(count(svg, "<circle"), 3U);  // two points and one in the legend
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_EQ(svg, svg_plot(plot));
}

TEST(SvgPlotTest, MarksWhatLiesBeyondTheEdge) {
  Plot plot{.y_low = 0, .y_high = 1};
  plot.series.push_back(
      {.points = {{0, 0.5}, {1, -700}, {2, 0.7}}, .style = PlotSeries::Style::points});
  EXPECT_EQ(count(svg_plot(plot), "<circle"), 2U);
  EXPECT_EQ(count(svg_plot(plot), "h6z"), 1U);
}

TEST(AxisTest, WholeNumbersHaveNoMarksBetweenThem) {
  EXPECT_EQ((Axis{.low = 1, .high = 3, .whole = true}.marks(8)), (std::vector<double>{1, 2, 3}));
  EXPECT_GT((Axis{.low = 1, .high = 3}.marks(8).size()), 3U);
}

TEST(SvgPlotTest, FailuresAreCrossesAtTheBottom) {
  Plot plot;
  plot.series = {
      {.name = "evaluations", .points = {{1, 5.5}, {3, 6.5}}, .style = PlotSeries::Style::points},
      {.name = "failed", .points = {{2, 0}}, .style = PlotSeries::Style::failures}};
  const std::string svg = svg_plot(plot);
  EXPECT_NE(svg.find("l6 -6m0 6l-6 -6"), std::string::npos);
  EXPECT_EQ(svg.find(">0</text>"), std::string::npos);  // it does not stretch the axis
}

TEST(SvgPlotTest, OneSeriesNeedsNoLegendAndNoneIsSaid) {
  Plot plot;
  plot.series.push_back({.name = "only", .points = {{0, 0}, {1, 1}}});
  EXPECT_THAT(svg_plot(plot), Not(HasSubstr("only")));
  EXPECT_THAT(svg_plot(Plot{}), HasSubstr("nothing to show"));
  plot.log_y = true;
  plot.series[0].points = {{0, -1}, {1, 0}};
  EXPECT_THAT(svg_plot(plot), HasSubstr("nothing to show"));
}

TEST(SvgPlotTest, LongNamesAreCutBetweenLetters) {
  Plot plot;
  std::string name;
  for (int i = 0; i < 40; ++i) name += "ä";
  for (int i = 0; i < 2; ++i) plot.series.push_back({.name = name, .points = {{0, 0}, {1, 1}}});
  std::string cut;
  for (int i = 0; i < 29; ++i) cut += "ä";
  EXPECT_THAT(svg_plot(plot), HasSubstr(">" + cut + "…</text>"));
}

}  // namespace
}  // namespace kolo
