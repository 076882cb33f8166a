#include "support/random_operations.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <stdexcept>

#include "support/values.h"

namespace kolo::test {
namespace {

std::uint64_t hash_of(const Bytes& bytes) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;  // FNV-1a
  for (std::byte b : bytes) hash = (hash ^ static_cast<std::uint64_t>(b)) * 0x100000001b3ULL;
  return hash;
}

/// Zero to a few elements, seldom many.
std::size_t random_count(Random& random) {
  switch (random.below(10)) {
    case 0: return 0;
    case 1: return 1;
    case 2: return 1 + random.below(4000);
    case 3: return random.below(10) == 0 ? random.below(60'000) : random.below(2000);
    default: return random.below(40);
  }
}

class Sequence {
 public:
  Sequence(Communicator& world, std::uint64_t seed) : world_(world), random_(seed) {}

  std::uint64_t run(int count) {
    for (int i = 0; i < count; ++i) {
      number_ = i;
      if (i % 500 == 0) remake_groups();
      one();
    }
    return hash_;
  }

 private:
  // Draws that differ between ranks come from a stream of their own, so that `random_` stays equal
  // everywhere, in and outside of the chosen group.
  Bytes values(int rank, DataType type, std::size_t count) const {
    return make_values(type, count, static_cast<std::uint64_t>(number_) * 64 + rank,
                       Range::moderate);
  }

  void remake_groups() {
    groups_.clear();
    for (int g = 0; g < 3; ++g) {
      std::vector<int> ranks(world_.size());
      std::iota(ranks.begin(), ranks.end(), 0);
      for (std::size_t i = ranks.size(); i > 1; --i)
        std::swap(ranks[i - 1], ranks[random_.below(i)]);
      ranks.resize(1 + random_.below(ranks.size()));
      groups_.push_back(world_.subset(ranks));
    }
  }

  void one() {
    const std::uint64_t which = random_.below(6), kind = random_.below(9);
    Communicator* comm = which < 3 ? &world_ : groups_[which - 3].get();
    const DataType type = kAllTypes[random_.below(std::size(kAllTypes))];
    const auto op = static_cast<ReduceOp>(random_.below(kReduceOpCount));
    const std::size_t count = random_count(random_);
    const std::uint64_t draw = random_.next();
    if (comm == nullptr) return;
    what_ = fmt::format("operation {} (kind {}, {} × {}, {}) on a group of {}", number_, kind,
                        count, to_string(type), to_string(op), comm->size());
    const int root = static_cast<int>(draw % static_cast<std::uint64_t>(comm->size()));
    switch (kind) {
      case 0:
      case 1:
      case 2: return allreduce(*comm, type, op, count, draw);
      case 3: return broadcast(*comm, type, count, root);
      case 4: return allgather(*comm, type, count, draw);
      case 5: return alltoall(*comm, type, count % 300, draw);
      case 6: return reducescatter(*comm, count);
      case 7: return gather_and_scatter(*comm, type, count, root);
      default: return ring(*comm, type, count % 8000);
    }
  }

  void require(bool condition, const char* why) const {
    if (!condition) throw std::runtime_error(what_ + ": " + why);
  }
  /// All members of the communicator must have these bytes. Only the world's are comparable
  /// between all ranks, a group's among its members.
  void agree(Communicator& comm, const Bytes& bytes) {
    std::uint64_t hash = hash_of(bytes);
    if (&comm == &world_) {
      hash_ = (hash_ ^ hash) * 0x9e3779b97f4a7c15ULL;
      return;
    }
    std::uint64_t first = hash;
    comm.broadcast(&first, 1, DataType::int64, 0);
    require(first == hash, "the members have different results");
  }

  void allreduce(Communicator& comm, DataType type, ReduceOp op, std::size_t count,
                 std::uint64_t draw) {
    if (type == DataType::boolean && op == ReduceOp::average) op = ReduceOp::sum;
    if (op == ReduceOp::adasum && !is_float(type)) op = ReduceOp::max;
    Bytes data = values(comm.rank(), type, count);
    if (draw % 3 == 0) {
      auto own = comm.allocate<std::byte>(data.size());
      std::copy(data.begin(), data.end(), own.data());
      comm.allreduce(own.data(), own.data(), count, type, op);
      data.assign(own.begin(), own.end());
    } else {
      comm.allreduce(data.data(), data.data(), count, type, op);
    }
    agree(comm, data);
  }

  void broadcast(Communicator& comm, DataType type, std::size_t count, int root) {
    Bytes data = values(comm.rank(), type, count);
    comm.broadcast(data.data(), count, type, root);
    require(data == values(root, type, count), "not the root's data");
  }

  void allgather(Communicator& comm, DataType type, std::size_t count, std::uint64_t draw) {
    const auto rows_of = [&](int r) { return (draw >> r & 1) != 0 ? count / (r + 1) : r; };
    const Bytes mine = values(comm.rank(), type, rows_of(comm.rank()));
    Bytes out;
    comm.allgather(mine.data(), rows_of(comm.rank()), 1, type, [&](auto counts) {
      out.resize(std::accumulate(counts.begin(), counts.end(), std::size_t{0}) * size_of(type));
      return out.data();
    });
    Bytes expected;
    for (int r = 0; r < comm.size(); ++r) {
      const Bytes part = values(r, type, rows_of(r));
      expected.insert(expected.end(), part.begin(), part.end());
    }
    require(out == expected, "not the concatenation");
  }

  void alltoall(Communicator& comm, DataType type, std::size_t count, std::uint64_t draw) {
    const auto split = [&](int from, int to) { return (count + draw % 7 * from + 3 * to) % 50; };
    const auto block = [&](int from, int to) {
      return values(8 * from + to, type, split(from, to));
    };
    std::vector<std::size_t> splits;
    Bytes in, out, expected;
    for (int r = 0; r < comm.size(); ++r) {
      splits.push_back(split(comm.rank(), r));
      const Bytes mine = block(comm.rank(), r), theirs = block(r, comm.rank());
      in.insert(in.end(), mine.begin(), mine.end());
      expected.insert(expected.end(), theirs.begin(), theirs.end());
    }
    comm.alltoall(in.data(), in.size() / size_of(type), 1, type, splits, [&](auto counts) {
      out.resize(std::accumulate(counts.begin(), counts.end(), std::size_t{0}) * size_of(type));
      return out.data();
    });
    require(out == expected, "not the blocks for this rank");
  }

  void reducescatter(Communicator& comm, std::size_t rows) {
    std::vector<std::int64_t> in(rows), out(comm.rows_of_rank(rows, comm.rank()));
    for (std::size_t i = 0; i < rows; ++i) in[i] = static_cast<std::int64_t>(i) + comm.rank();
    comm.reducescatter(in.data(), out.data(), rows, 1, DataType::int64, ReduceOp::sum);
    std::size_t first = 0;
    for (int r = 0; r < comm.rank(); ++r) first += comm.rows_of_rank(rows, r);
    const std::int64_t n = comm.size();
    for (std::size_t i = 0; i < out.size(); ++i)
      require(out[i] == n * static_cast<std::int64_t>(first + i) + n * (n - 1) / 2,
              "not the sum of the rows");
  }

  void gather_and_scatter(Communicator& comm, DataType type, std::size_t count, int root) {
    const auto count_of = [&](int r) { return (count + 13 * r) % 2500; };
    const Bytes mine = values(comm.rank(), type, count_of(comm.rank()));
    Bytes all, back(mine.size());
    std::vector<std::size_t> counts;
    const auto got = comm.gather(mine.data(), count_of(comm.rank()), type, root, [&](auto sizes) {
      all.resize(std::accumulate(sizes.begin(), sizes.end(), std::size_t{0}) * size_of(type));
      return all.data();
    });
    if (comm.rank() == root) counts = got;
    comm.scatter(all.data(), counts, back.data(), count_of(comm.rank()), type, root);
    require(back == mine, "did not come back from the root");
  }

  void ring(Communicator& comm, DataType type, std::size_t count) {
    const int n = comm.size(), me = comm.rank();
    if (n == 1) return comm.barrier();
    const Bytes mine = values(me, type, count);
    Bytes got(mine.size());
    comm.send(mine.data(), count, type, (me + 1) % n);
    comm.recv(got.data(), count, type, (me + n - 1) % n);
    require(got == values((me + n - 1) % n, type, count), "not the neighbour's message");
  }

  Communicator& world_;
  Random random_;
  std::vector<std::unique_ptr<Communicator>> groups_;
  int number_ = 0;
  std::string what_;
  std::uint64_t hash_ = 1;
};

}  // namespace

std::uint64_t run_random_operations(Communicator& world, std::uint64_t seed, int count) {
  return Sequence(world, seed).run(count);
}

}  // namespace kolo::test
