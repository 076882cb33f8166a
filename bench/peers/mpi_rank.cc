// One rank of an MPI job; compiled once against Open MPI and once against MPICH.
#include <mpi.h>

#include "support/allreduce_loop.h"

namespace {

struct MpiPeer {
  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return size_; }
  static std::shared_ptr<float> allocate(const std::string&, std::size_t count) {
    return bench::plain_memory(count);
  }
  static void allreduce(float* data, std::size_t count) {
    MPI_Allreduce(MPI_IN_PLACE, data, static_cast<int>(count), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  }
  static void barrier() { MPI_Barrier(MPI_COMM_WORLD); }

  int rank_ = 0, size_ = 1;
};

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MpiPeer peer;
  MPI_Comm_rank(MPI_COMM_WORLD, &peer.rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &peer.size_);
  const int status = bench::rank_main(
      argc, argv, [&](const bench::RankArguments& arguments) { bench::serve(peer, arguments); });
  if (status != 0) MPI_Abort(MPI_COMM_WORLD, status);
  MPI_Finalize();
  return 0;
}
