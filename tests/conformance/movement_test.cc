// Operations that move data: allgather, gather, scatter, broadcast, alltoall, reducescatter.
#include <numeric>

#include "conformance/conformance.h"

namespace kolo::test {
namespace {

Bytes concatenate(const std::vector<Bytes>& parts) {
  Bytes all;
  for (const Bytes& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

// Hands out memory of a place when the sizes are known.
class Target {
 public:
  Target(Communicator& comm, Where where, DataType type)
      : comm_(comm), where_(where), width_(size_of(type)) {}
  OutputAllocator allocator() {
    return [this](std::span<const std::size_t> counts) -> void* {
      counts_.assign(counts.begin(), counts.end());
      const auto total = std::accumulate(counts.begin(), counts.end(), std::size_t{0});
      place_.emplace(comm_, where_, total * width_);
      return place_->data();
    };
  }
  [[nodiscard]] bool was_called() const { return place_.has_value(); }
  [[nodiscard]] Bytes bytes() const { return place_ ? place_->bytes() : Bytes{}; }
  [[nodiscard]] const std::vector<std::size_t>& counts() const { return counts_; }

 private:
  Communicator& comm_;
  Where where_;
  std::size_t width_;
  std::optional<Place> place_;
  std::vector<std::size_t> counts_;
};

// Rows of each rank: equal, different, some zero, only one rank's, none at all.
std::vector<std::vector<std::size_t>> row_patterns(int n, std::size_t scale) {
  std::vector<std::vector<std::size_t>> patterns(5, std::vector<std::size_t>(n, 0));
  for (int r = 0; r < n; ++r) {
    patterns[0][r] = scale;
    patterns[1][r] = scale * (r + 1) + r;
    patterns[2][r] = r % 2 == 0 ? 0 : scale + r;
    patterns[3][r] = r == n - 1 ? 3 * scale : 0;
  }
  return patterns;
}

Where where_of(const Layout& layout, int rank) { return rank % 2 == 0 ? layout.even : layout.odd; }

class Movement : public Conformance {
 protected:
  // `width` is elements per row.
  void check_allgather(DataType type, const std::vector<std::size_t>& rows, std::size_t width,
                       const Layout& layout) {
    SCOPED_TRACE(testing::Message()
                 << "allgather " << to_string(type) << " rows " << testing::PrintToString(rows)
                 << " x " << width << " " << layout.name);
    std::vector<Bytes> inputs;
    std::vector<std::size_t> counts;
    for (int r = 0; r < size(); ++r) {
      inputs.push_back(make_values(type, rows[r] * width, 17 * r + width, Range::wild));
      counts.push_back(rows[r] * width);
    }
    const Bytes expected = concatenate(inputs);
    run([&](Communicator& comm) {
      const Where where = where_of(layout, comm.rank());
      Place in(comm, where, inputs[comm.rank()]);
      Target out(comm, where, type);
      const auto got = comm.allgather(in.data(), rows[comm.rank()], width, type, out.allocator());
      EXPECT_EQ(got, counts);
      EXPECT_TRUE(out.was_called());
      EXPECT_EQ(out.counts(), counts);
      EXPECT_TRUE(same_bytes(out.bytes(), expected));
    });
  }
};

TEST_P(Movement, AllgatherEveryType) {
  std::size_t i = 0;
  for (DataType type : kAllTypes)
    for (const auto& rows : row_patterns(size(), 5)) {
      check_allgather(type, rows, 1 + i % 4, kLayouts[i % std::size(kLayouts)]);
      ++i;
    }
}

TEST_P(Movement, AllgatherSizes) {
  for (std::size_t scale : {1, 17, 1023, 4099, 70'001})
    for (const auto& rows : row_patterns(size(), scale))
      for (int layout : {0, 3, 6}) check_allgather(DataType::int16, rows, 1, kLayouts[layout]);
  check_allgather(DataType::float64, row_patterns(size(), 100'000)[1], 1, kLayouts[0]);
  check_allgather(DataType::float32, row_patterns(size(), 9)[1], 0, kLayouts[0]);
}

TEST_P(Movement, BroadcastFromEachRoot) {
  std::size_t i = 0;
  for (int root = 0; root < size(); ++root) {
    std::vector<std::pair<DataType, std::size_t>> cases;
    for (DataType type : kAllTypes) cases.emplace_back(type, 1 + 7 * cases.size());
    for (std::size_t count : {0, 3, 1023, 4099, 70'001}) cases.emplace_back(DataType::int32, count);
    if (root == size() - 1) cases.emplace_back(DataType::float64, 400'001);
    for (const auto& [type, count] : cases) {
      SCOPED_TRACE(testing::Message() << count << " " << to_string(type) << " from " << root);
      const Layout& layout = kLayouts[i++ % std::size(kLayouts)];
      const auto inputs = make_inputs(type, count, i, Range::wild);
      run([&](Communicator& comm) {
        Place data(comm, where_of(layout, comm.rank()), inputs[comm.rank()]);
        comm.broadcast(data.data(), count, type, root);
        EXPECT_TRUE(same_bytes(data.bytes(), inputs[root])) << layout.name;
      });
    }
  }
}

TEST_P(Movement, GatherToEachRoot) {
  std::size_t i = 0;
  for (int root = 0; root < size(); ++root) {
    for (std::size_t scale : {1, 300, 30'000}) {
      for (const auto& counts : row_patterns(size(), scale)) {
        const DataType type = kAllTypes[i % std::size(kAllTypes)];
        const Layout& layout = kLayouts[i++ % std::size(kLayouts)];
        std::vector<Bytes> inputs;
        for (int r = 0; r < size(); ++r)
          inputs.push_back(make_values(type, counts[r], 5 * i + r, Range::wild));
        run([&](Communicator& comm) {
          const Where where = where_of(layout, comm.rank());
          Place in(comm, where, inputs[comm.rank()]);
          Target out(comm, where, type);
          const auto got = comm.gather(in.data(), counts[comm.rank()], type, root, out.allocator());
          EXPECT_EQ(out.was_called(), comm.rank() == root);
          if (comm.rank() != root) return;
          EXPECT_EQ(got, counts);
          EXPECT_TRUE(same_bytes(out.bytes(), concatenate(inputs)))
              << to_string(type) << " to " << root << " scale " << scale;
        });
      }
    }
  }
}

TEST_P(Movement, ScatterFromEachRoot) {
  std::size_t i = 0;
  for (int root = 0; root < size(); ++root) {
    for (std::size_t scale : {1, 300, 30'000}) {
      for (const auto& counts : row_patterns(size(), scale)) {
        const DataType type = kAllTypes[i % std::size(kAllTypes)];
        const Layout& layout = kLayouts[i++ % std::size(kLayouts)];
        std::vector<Bytes> parts;
        for (int r = 0; r < size(); ++r)
          parts.push_back(make_values(type, counts[r], 3 * i + r, Range::wild));
        const Bytes whole = concatenate(parts);
        run([&](Communicator& comm) {
          const Where where = where_of(layout, comm.rank());
          const bool at_root = comm.rank() == root;
          Place in(comm, where, at_root ? whole : Bytes{});
          Place out(comm, where, parts[comm.rank()].size());
          comm.scatter(
              at_root ? in.data() : nullptr,
              at_root ? std::span<const std::size_t>(counts) : std::span<const std::size_t>{},
              out.data(), counts[comm.rank()], type, root);
          EXPECT_TRUE(same_bytes(out.bytes(), parts[comm.rank()]))
              << to_string(type) << " from " << root << " scale " << scale;
        });
      }
    }
  }
}

// splits(a, b): rows that rank a sends to rank b.
using Splits = std::function<std::size_t(int, int)>;

class Alltoall : public Conformance {
 protected:
  void check(DataType type, const Splits& splits, std::size_t width, const Layout& layout,
             bool give_splits = true) {
    SCOPED_TRACE(testing::Message() << to_string(type) << " x " << width << " " << layout.name);
    const int n = size();
    std::vector<std::vector<Bytes>> blocks(n);  // sender, receiver
    for (int a = 0; a < n; ++a)
      for (int b = 0; b < n; ++b)
        blocks[a].push_back(make_values(type, splits(a, b) * width, 100 * a + b, Range::wild));
    run([&](Communicator& comm) {
      const int me = comm.rank();
      const Where where = where_of(layout, me);
      std::vector<std::size_t> mine, expected_rows, expected_counts;
      std::vector<Bytes> expected;
      for (int r = 0; r < n; ++r) {
        mine.push_back(splits(me, r));
        expected_rows.push_back(splits(r, me));
        expected_counts.push_back(splits(r, me) * width);
        expected.push_back(blocks[r][me]);
      }
      const auto rows = std::accumulate(mine.begin(), mine.end(), std::size_t{0});
      Place in(comm, where, concatenate(blocks[me]));
      Target out(comm, where, type);
      const auto got = comm.alltoall(
          in.data(), rows, width, type,
          give_splits ? std::span<const std::size_t>(mine) : std::span<const std::size_t>{},
          out.allocator());
      EXPECT_EQ(got, expected_rows);
      EXPECT_EQ(out.counts(), expected_counts);
      EXPECT_TRUE(same_bytes(out.bytes(), concatenate(expected)));
    });
  }
};

TEST_P(Alltoall, EveryTypeAndSplit) {
  std::size_t i = 0;
  for (DataType type : kAllTypes) {
    const Layout& layout = kLayouts[i++ % std::size(kLayouts)];
    check(
        type, [](int, int) { return 3; }, 2, layout);
    check(
        type, [](int a, int b) { return static_cast<std::size_t>(a * 2 + b); }, 1, layout);
    check(
        type, [](int a, int b) { return static_cast<std::size_t>((a + b) % 2 * 40); }, 3, layout);
    check(
        type, [](int, int) { return 0; }, 4, layout);
    check(
        type, [](int, int) { return 5; }, 2, layout, false);
    check(
        type, [](int, int) { return 0; }, 2, layout, false);
  }
}

TEST_P(Alltoall, Sizes) {
  for (std::size_t rows : {1, 17, 1023, 4099, 70'001})
    for (int layout : {0, 3, 6})
      check(
          DataType::float32,
          [&](int a, int b) { return a == b ? rows : rows / (1 + static_cast<std::size_t>(b)); }, 1,
          kLayouts[layout]);
  // Everything to one, then everything from one.
  check(
      DataType::uint8, [](int, int b) { return b == 0 ? 100'003 : 0; }, 1, kLayouts[0]);
  check(
      DataType::uint8, [](int a, int) { return a == 0 ? 100'003 : 0; }, 1, kLayouts[3]);
}

TEST_P(Alltoall, BadSplitsAreRefusedAndTheNextOneWorks) {
  run([&](Communicator& comm) {
    const auto n = static_cast<std::size_t>(comm.size());
    std::vector<int> data(4 * n), out;
    auto alltoall = [&](std::size_t rows, std::vector<std::size_t> splits) {
      comm.alltoall(data.data(), rows, 1, DataType::int32, splits, Communicator::into(out));
    };
    for (int repeat = 0; repeat < 5; ++repeat) {
      std::vector<std::size_t> too_many(n, 4), too_long(n + 1, 0);
      too_many[0] = 5;
      expect_error(ErrorCode::invalid_argument, [&] { alltoall(4 * n, too_many); });
      expect_error(ErrorCode::invalid_argument, [&] { alltoall(0, too_long); });
      if (n > 1) expect_error(ErrorCode::invalid_argument, [&] { alltoall(4 * n - 1, {}); });
      alltoall(4 * n, std::vector<std::size_t>(n, 4));
      EXPECT_EQ(out.size(), 4 * n);
    }
  });
}

class Reducescatter : public Conformance {
 protected:
  void check(DataType type, ReduceOp op, std::size_t rows, std::size_t width, const Layout& layout,
             Scaling scaling = {}) {
    SCOPED_TRACE(testing::Message() << to_string(op) << " " << rows << " x " << width << " "
                                    << to_string(type) << " " << layout.name);
    const auto inputs = make_inputs(type, rows * width, rows + width, range_for(type, op));
    std::vector<Bytes> outputs(size());
    std::vector<std::size_t> shares(size());
    run([&](Communicator& comm) {
      const int me = comm.rank();
      shares[me] = comm.rows_of_rank(rows, me);
      outputs[me] = apply(comm, {layout.name, layout.even, layout.odd, false}, inputs[me],
                          shares[me] * width * size_of(type), [&](const void* in, void* out) {
                            comm.reducescatter(in, out, rows, width, type, op, scaling);
                          });
    });
    std::size_t first = 0;
    for (int r = 0; r < size(); ++r) {
      const std::size_t n = static_cast<std::size_t>(size());
      EXPECT_EQ(shares[r], rows / n + (static_cast<std::size_t>(r) < rows % n ? 1 : 0));
      EXPECT_TRUE(is_reduction(outputs[r], inputs, type, op, scaling, first * width))
          << "rank " << r;
      first += shares[r];
    }
    EXPECT_EQ(first, rows);
  }
};

TEST_P(Reducescatter, EveryTypeAndUnevenRows) {
  std::size_t i = 0;
  for (DataType type : kAllTypes) {
    for (ReduceOp op : {ReduceOp::sum, ReduceOp::average}) {
      if (!is_supported(type, op)) continue;
      for (std::size_t rows : {0, 1, 3, 8, 17}) {
        check(type, op, rows, 1 + i % 3, kLayouts[i % std::size(kLayouts)]);
        ++i;
      }
    }
  }
}

TEST_P(Reducescatter, Sizes) {
  for (std::size_t rows : {1023, 4099, 70'001})
    for (int layout : {0, 3, 6}) check(DataType::float32, ReduceOp::sum, rows, 1, kLayouts[layout]);
  check(DataType::bfloat16, ReduceOp::average, 1000, 700, kLayouts[0]);
  check(DataType::float32, ReduceOp::average, 500, 33, kLayouts[3], {0.5, 3.0});
  check(DataType::float32, ReduceOp::sum, 5, 0, kLayouts[0]);
}

// The result lies at the beginning of what was the input.
TEST_P(Reducescatter, InPlace) {
  for (std::size_t rows : {3, 400, 100'003}) {
    for (Where where : {Where::own, Where::foreign}) {
      const auto inputs = make_inputs(DataType::int32, rows, rows, Range::wild);
      std::vector<Bytes> outputs(size());
      run([&](Communicator& comm) {
        Place data(comm, where, inputs[comm.rank()]);
        comm.reducescatter(data.data(), data.data(), rows, 1, DataType::int32, ReduceOp::sum);
        outputs[comm.rank()] = data.bytes();
        outputs[comm.rank()].resize(4 * comm.rows_of_rank(rows, comm.rank()));
      });
      std::size_t first = 0;
      for (int r = 0; r < size(); ++r) {
        EXPECT_TRUE(is_reduction(outputs[r], inputs, DataType::int32, ReduceOp::sum, {}, first))
            << rows << " rows, rank " << r << (where == Where::own ? ", own" : ", foreign");
        first += outputs[r].size() / 4;
      }
    }
  }
}

TEST_P(Reducescatter, OtherOperationsAreRefused) {
  run([&](Communicator& comm) {
    std::vector<float> in(16), out(16);
    for (ReduceOp op : {ReduceOp::adasum, ReduceOp::min, ReduceOp::max, ReduceOp::product})
      expect_error(ErrorCode::invalid_argument, [&] {
        comm.reducescatter(in.data(), out.data(), 16, 1, DataType::float32, op);
      });
    comm.reducescatter(in.data(), out.data(), 16, 1, DataType::float32);
  });
}

KOLO_CONFORMANCE(Movement, all_arrangements());
KOLO_CONFORMANCE(Alltoall, all_arrangements());
KOLO_CONFORMANCE(Reducescatter, all_arrangements());

}  // namespace
}  // namespace kolo::test
