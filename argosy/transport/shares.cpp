#include "argosy/transport/shares.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace argosy::transport {
namespace {

/// The shares that a rank may have if it is to send at most `most` times the data.
struct Bounds {
  double low = 0;
  double high = 1;
};

/// `nodes`: the rank's; `others`: how many other ranks there are.
Bounds bounds(double nodes, double others, double most) {
  if (nodes < others) {  // the more it adds, the more it sends
    return {0, std::clamp((most - nodes) / (others - nodes), 0.0, 1.0)};
  }
  if (nodes > others) {
    return {std::clamp((nodes - most) / (nodes - others), 0.0, 1.0), 1};
  }
  return {};
}

struct Range {
  double low = 0;
  double high = 0;
};

Range sum_of_bounds(const LeafDeal& deal, double most) {
  Range sum;
  for (int rank = 0; rank < deal.ranks(); ++rank) {
    const Bounds of_rank =
        bounds(static_cast<double>(deal.nodes(rank).size()), deal.ranks() - 1, most);
    sum.low += of_rank.low;
    sum.high += of_rank.high;
  }
  return sum;
}

/// The least that is enough for shares that are 1 together.
double least_that_is_enough(const LeafDeal& deal) {
  double too_little = 0;  // whatever its share, a rank sends the smaller of these two
  for (int rank = 0; rank < deal.ranks(); ++rank) {
    const double nodes = static_cast<double>(deal.nodes(rank).size());
    too_little = std::max(too_little, std::min(nodes, static_cast<double>(deal.ranks() - 1)));
  }
  double enough = deal.most_nodes() + deal.ranks();
  for (int i = 0; i < 60; ++i) {
    const double middle = (too_little + enough) / 2;
    const Range sum = sum_of_bounds(deal, middle);
    (sum.low <= 1 && sum.high >= 1 ? enough : too_little) = middle;
  }
  return enough;
}

}  // namespace

std::vector<int64_t> ends_of_shares(const LeafDeal& deal, int64_t count) {
  const int ranks = deal.ranks();
  std::vector<int64_t> ends;
  bool equal = true;
  for (int rank = 0; rank < ranks; ++rank) {
    equal = equal && deal.nodes(rank).size() == deal.nodes(0).size();
  }
  if (equal) {
    const int64_t share = (count + ranks - 1) / ranks;
    for (int rank = 0; rank < ranks; ++rank) {
      ends.push_back(std::min(count, (rank + 1) * share));
    }
    return ends;
  }
  const double most = least_that_is_enough(deal);
  const Range sum = sum_of_bounds(deal, most);
  const double part = sum.high > sum.low ? (1 - sum.low) / (sum.high - sum.low) : 0;
  double end = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    const Bounds of_rank = bounds(static_cast<double>(deal.nodes(rank).size()), ranks - 1, most);
    end += of_rank.low + part * (of_rank.high - of_rank.low);
    const int64_t rounded = std::llround(end * static_cast<double>(count));
    ends.push_back(std::clamp(rounded, ends.empty() ? int64_t{0} : ends.back(), count));
  }
  ends.back() = count;
  return ends;
}

}  // namespace argosy::transport
