// A unit of its own, compiled with -fopenmp and without the precompiled header: at::parallel_for is
// a header that silently runs serially in units compiled without that flag.
#include "argosy/optim/kernels/parallel.h"

#include <algorithm>

namespace argosy::optim::kernels {

std::vector<Piece> cut(const std::vector<std::size_t>& lengths) {
  std::vector<Piece> pieces;
  for (std::size_t array = 0; array < lengths.size(); ++array) {
    for (std::size_t begin = 0; begin < lengths[array]; begin += kBlock) {
      pieces.push_back({array, begin, std::min(kBlock, lengths[array] - begin)});
    }
  }
  return pieces;
}

void for_each_piece(const std::vector<Piece>& pieces,
                    int threads,
                    const std::function<void(std::size_t)>& body) {
  std::vector<std::size_t> starts;  // of batches of about kBlock elements
  std::size_t in_batch = kBlock;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (in_batch + pieces[i].count > kBlock) {
      starts.push_back(i);
      in_batch = 0;
    }
    in_batch += pieces[i].count;
  }
  const std::size_t batches = starts.size();
  starts.push_back(pieces.size());
  const int used = static_cast<int>(std::min<std::size_t>(batches, std::max(1, threads)));
#pragma omp parallel for schedule(dynamic, 1) num_threads(used) if (used > 1)
  for (std::size_t batch = 0; batch < batches; ++batch) {
    for (std::size_t i = starts[batch]; i < starts[batch + 1]; ++i) {
      body(i);
    }
  }
}

}  // namespace argosy::optim::kernels
