// Collectives on tensors, with threads as ranks.
#include "kolo/torch/collectives.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kolo/error.h"
#include "support/thread_ranks.h"

namespace kolo {
namespace {

using test::ThreadRanks;

/// Runs `body` on so many ranks, each with an engine of its own.
void on_ranks(int ranks, const std::function<void(Engine&, CollectiveOptions)>& body) {
  test::ThreadRanksOptions options;
  options.host_of_rank.assign(static_cast<std::size_t>(ranks), 0);
  ThreadRanks job(options);
  job.run([&](Communicator& world) {
    Engine engine(world);
    CollectiveOptions how;
    how.engine = &engine;
    body(engine, how);
    world.barrier();
  });
}

torch::Tensor numbers(int rank, torch::IntArrayRef shape,
                      torch::ScalarType type = torch::kFloat64) {
  int64_t count = 1;
  for (int64_t size : shape) count *= size;
  return (torch::arange(count, torch::kFloat64) + 100 * rank).to(type).view(shape);
}

void check(bool right, const char* what) {
  if (!right) throw std::runtime_error(what);
}

TEST(TensorAllreduce, ReducesEveryTypeAndLayout) {
  on_ranks(3, [](Engine& engine, CollectiveOptions how) {
    const int rank = engine.rank();
    for (auto type : {torch::kFloat32, torch::kFloat64, torch::kInt32, torch::kInt64,
                      torch::kBFloat16, torch::kFloat16}) {
      torch::Tensor mine = torch::full({2, 3}, rank + 1, torch::TensorOptions(type));
      how.op = ReduceOp::sum;
      check(allreduce(mine, how).equal(torch::full({2, 3}, 6, type)), "sum");
      check(mine.equal(torch::full({2, 3}, rank + 1, type)), "the input is unchanged");
      how.op = ReduceOp::average;
      check(allreduce(mine, how).equal(torch::full({2, 3}, 2, type)), "average");
    }
    how.op = ReduceOp::max;
    torch::Tensor turned = numbers(rank, {2, 3}).t();
    check(allreduce(turned, how).equal(numbers(2, {2, 3}).t()), "not contiguous");
    allreduce_(turned, how);
    check(turned.equal(numbers(2, {2, 3}).t()), "not contiguous, in place");
    torch::Tensor scalar = torch::tensor(rank + 1.0);
    how.op = ReduceOp::sum;
    how.prescale_factor = 0.5;
    how.postscale_factor = 10;
    allreduce_(scalar, how);
    check(scalar.item<double>() == 30, "factors");
    try {
      (void)allreduce(torch::zeros({2}, torch::kComplexFloat), how);
      check(false, "complex numbers");
    } catch (const Error& error) {
      check(error.code() == ErrorCode::unsupported, "complex numbers");
    }
  });
}

TEST(TensorAllreduce, IsAsynchronousByName) {
  on_ranks(2, [](Engine& engine, CollectiveOptions how) {
    how.op = ReduceOp::sum;
    std::vector<TensorHandle> handles(4);
    for (int i = 0; i < 4; ++i) {
      const int k = engine.rank() == 0 ? i : 3 - i;  // in opposite orders
      how.name = "t" + std::to_string(k);
      handles[static_cast<std::size_t>(k)] =
          allreduce_async(torch::full({5}, k + engine.rank()), how);
    }
    for (int k = 0; k < 4; ++k) {
      const TensorHandle& handle = handles[static_cast<std::size_t>(k)];
      check(synchronize(handle).equal(torch::full({5}, 2 * k + 1)), "value");
      check(poll(handle), "done");
      check(synchronize(handle).equal(torch::full({5}, 2 * k + 1)), "again");
    }
    check(!poll(TensorHandle()), "no handle");
    how.name = "dropped";  // waits for itself
    { auto dropped = allreduce_async(torch::ones({1000}), how); }
  });
}

TEST(TensorAllreduce, GroupsCompleteTogether) {
  on_ranks(2, [](Engine& engine, CollectiveOptions how) {
    how.op = ReduceOp::sum;
    how.name = "group";
    const double mine = engine.rank() + 1;
    auto results =
        grouped_allreduce({torch::full({2}, mine), torch::full({3}, mine, torch::kFloat64)}, how);
    check(results.size() == 2 && results[0].equal(torch::full({2}, 3.0)) &&
              results[1].equal(torch::full({3}, 3.0, torch::kFloat64)),
          "values");
    std::vector<torch::Tensor> in_place{torch::full({2}, mine), torch::full({4}, mine)};
    grouped_allreduce_(in_place, how);
    check(in_place[1].equal(torch::full({4}, 3.0)), "in place");
  });
}

TEST(TensorAllreduce, HasTheGradientOfTheSameReduction) {
  on_ranks(3, [](Engine& engine, CollectiveOptions how) {
    for (ReduceOp op : {ReduceOp::sum, ReduceOp::average}) {
      how.op = op;
      how.prescale_factor = 0.5;
      torch::Tensor x = numbers(engine.rank(), {4}).requires_grad_();
      torch::Tensor weights = torch::full({4}, engine.rank() + 1.0, torch::kFloat64);
      (allreduce(x, how) * weights).sum().backward();
      const double expected = op == ReduceOp::sum ? 3.0 : 1.0;  // 0.5 · (1 + 2 + 3), or that / 3
      check(x.grad().allclose(torch::full({4}, expected, torch::kFloat64)), "gradient");
      torch::Tensor y = numbers(engine.rank(), {4}).requires_grad_();
      auto group = grouped_allreduce({y, y * 2}, how);
      (group[0].sum() + group[1].sum()).backward();
      check(y.grad().allclose(torch::full({4}, op == ReduceOp::sum ? 4.5 : 1.5, torch::kFloat64)),
            "gradient of a group");
    }
    how.op = ReduceOp::min;
    how.prescale_factor = 1;
    torch::Tensor z = numbers(engine.rank(), {2}).requires_grad_();
    try {
      (void)allreduce(z, how);
      check(false, "min has no gradient");
    } catch (const Error& error) {
      check(error.code() == ErrorCode::unsupported, "min has no gradient");
    }
    check(allreduce(z.detach(), how).equal(numbers(0, {2})), "detached");
  });
}

TEST(TensorAllgather, JoinsRowsAndSendsGradientsBack) {
  on_ranks(3, [](Engine& engine, CollectiveOptions how) {
    const int rank = engine.rank();
    torch::Tensor mine = numbers(rank, {rank + 1, 2}).requires_grad_();
    torch::Tensor all = allgather(mine, how);
    check(all.detach().equal(
              torch::cat({numbers(0, {1, 2}), numbers(1, {2, 2}), numbers(2, {3, 2})})),
          "values");
    torch::Tensor weights = torch::arange(12, torch::kFloat64).view({6, 2}) * (rank + 1);
    (all * weights).sum().backward();
    // The average over the ranks: weights of (1 + 2 + 3)/3 = 2 times the place.
    const int64_t first = rank * (rank + 1) / 2;
    torch::Tensor expected =
        (torch::arange(12, torch::kFloat64).view({6, 2}) * 2).narrow(0, first, rank + 1);
    check(mine.grad().allclose(expected), "gradient");
    auto group = grouped_allgather({torch::full({1}, rank), torch::full({2, 1}, rank)}, how);
    check(group[0].numel() == 3 && group[1].size(0) == 6, "group");
    torch::Tensor none = rank == 1 ? torch::empty({0, 3}) : torch::ones({1, 3});
    check(allgather(none, how).size(0) == 2, "a rank without rows");
    try {
      (void)allgather(torch::tensor(1.0), how);
      check(false, "scalar");
    } catch (const Error& error) {
      check(error.code() == ErrorCode::invalid_argument, "scalar");
    }
  });
}

TEST(TensorBroadcast, CopiesTheRootsAndSumsGradientsThere) {
  on_ranks(3, [](Engine& engine, CollectiveOptions how) {
    const int rank = engine.rank();
    torch::Tensor x = numbers(rank, {3}).requires_grad_();
    torch::Tensor y = broadcast(x, 1, how);
    check(y.detach().equal(numbers(1, {3})), "values");
    (y * (rank + 1)).sum().backward();
    check(x.grad().equal(torch::full({3}, rank == 1 ? 2.0 : 0.0, torch::kFloat64)), "gradient");
    torch::Tensor z = numbers(rank, {3, 2}).t();
    broadcast_(z, 2, how);
    check(z.equal(numbers(2, {3, 2}).t()), "in place");
  });
}

TEST(TensorAlltoall, SendsRowsAndTheirGradients) {
  on_ranks(2, [](Engine& engine, CollectiveOptions how) {
    const int rank = engine.rank();
    // Rank 0 keeps one row and sends two; rank 1 sends one and keeps none.
    torch::Tensor x = numbers(rank, {rank == 0 ? 3 : 1, 2}).requires_grad_();
    const std::vector<int64_t> splits =
        rank == 0 ? std::vector<int64_t>{1, 2} : std::vector<int64_t>{1, 0};
    torch::Tensor y = alltoall(x, splits, how);
    torch::Tensor expected =
        rank == 0 ? torch::cat({numbers(0, {3, 2}).narrow(0, 0, 1), numbers(1, {1, 2})})
                  : numbers(0, {3, 2}).narrow(0, 1, 2);
    check(y.detach().equal(expected), "values");
    (y * (rank + 1)).sum().backward();
    torch::Tensor gradient =
        rank == 0 ? torch::tensor({{1.0, 1.0}, {2.0, 2.0}, {2.0, 2.0}}, torch::kFloat64)
                  : torch::tensor({{1.0, 1.0}}, torch::kFloat64);
    check(x.grad().equal(gradient), "gradient");
    auto handle = alltoall_async(numbers(rank, {4}), {}, how);
    check(synchronize(handle).numel() == 4, "equal parts");
    check(received_splits(handle) == std::vector<int64_t>{2, 2}, "splits");
  });
}

TEST(TensorReducescatter, GivesSharesAndGathersGradients) {
  on_ranks(2, [](Engine& engine, CollectiveOptions how) {
    const int rank = engine.rank();
    how.op = ReduceOp::sum;
    torch::Tensor x = numbers(rank, {3, 2}).requires_grad_();
    torch::Tensor y = reducescatter(x, how);
    torch::Tensor sum = numbers(0, {3, 2}) + numbers(1, {3, 2});
    check(y.detach().equal(rank == 0 ? sum.narrow(0, 0, 2) : sum.narrow(0, 2, 1)), "values");
    (y * (rank + 1)).sum().backward();
    // Horovod's: gathered, times the number of ranks for sum.
    check(x.grad().equal(torch::tensor({{2.0, 2.0}, {2.0, 2.0}, {4.0, 4.0}}, torch::kFloat64)),
          "gradient");
    auto group = grouped_reducescatter({numbers(rank, {4}), numbers(rank, {2, 3})}, how);
    check(group[0].numel() == 2 && group[1].size(0) == 1, "group");
  });
}

TEST(TensorSparse, SumsEntriesOfAllRanks) {
  on_ranks(3, [](Engine& engine, CollectiveOptions how) {
    const int rank = engine.rank();
    // Every rank touches row 0 (twice) and a row of its own.
    torch::Tensor indices = torch::tensor({0, 0, rank + 1}, torch::kLong).unsqueeze(0);
    torch::Tensor values = torch::full({3, 2}, rank + 1.0);
    torch::Tensor mine = torch::sparse_coo_tensor(indices, values, {5, 2});
    torch::Tensor all = sparse_allreduce(mine, how).to_dense();
    torch::Tensor expected = torch::zeros({5, 2});
    expected[0] = 4.0;
    for (int r = 0; r < 3; ++r) expected[r + 1] = (r + 1) / 3.0;
    check(all.allclose(expected), "average");
    how.op = ReduceOp::sum;
    how.name = "s";
    check(sparse_allreduce(mine, how).to_dense().allclose(expected * 3), "sum");
    torch::Tensor none =
        torch::sparse_coo_tensor(torch::empty({1, 0}, torch::kLong), torch::empty({0, 2}), {5, 2});
    torch::Tensor some = sparse_allreduce(rank == 0 ? mine : none, how).to_dense();
    check(some.allclose(mine.to_dense() * (rank == 0 ? 1 : 0) + (rank == 0 ? 0 : 1) * some),
          "ranks without entries");
    try {
      (void)sparse_allreduce(torch::ones({2}), how);
      check(false, "dense");
    } catch (const Error& error) {
      check(error.code() == ErrorCode::invalid_argument, "dense");
    }
  });
}

TEST(TensorCollectives, WorkInProcessSets) {
  on_ranks(3, [](Engine& engine, CollectiveOptions how) {
    how.process_set = engine.add_process_set({0, 2});
    how.op = ReduceOp::sum;
    if (engine.rank() != 1) {
      check(allreduce(torch::full({2}, engine.rank() + 1.0), how).equal(torch::full({2}, 4.0)),
            "sum");
      torch::Tensor x = torch::full({2}, engine.rank() + 1.0);
      broadcast_(x, 2, how);
      check(x.equal(torch::full({2}, 3.0)), "broadcast");
      check(reducescatter(torch::ones({3}), how).numel() == (engine.rank() == 0 ? 2 : 1), "shares");
    }
  });
}

TEST(TensorCollectives, TellEveryRankOfAMismatch) {
  on_ranks(2, [](Engine& engine, CollectiveOptions how) {
    how.name = "gradient";
    try {
      (void)allreduce(torch::ones({engine.rank() + 2}), how);
      check(false, "shapes differ");
    } catch (const Error& error) {
      check(error.code() == ErrorCode::invalid_argument, error.what());
      check(error.message().find("gradient") != std::string::npos, error.what());
    }
    check(allreduce(torch::ones({2}), how).equal(torch::ones({2})), "and the next works");
  });
}

}  // namespace
}  // namespace kolo
