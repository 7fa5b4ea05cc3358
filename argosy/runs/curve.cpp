#include "argosy/runs/curve.h"

#include <algorithm>
#include <cmath>

namespace argosy::runs {
namespace {

void join(CurvePiece& a, const CurvePiece& b) {
  a.last_x = b.last_x;
  a.count += b.count;
  a.sum += b.sum;
  a.low = b.low.y < a.low.y ? b.low : a.low;
  a.high = b.high.y > a.high.y ? b.high : a.high;
}

}  // namespace

void BoundedCurve::add(double x, double y) {
  if (!std::isfinite(x)) {
    return;
  }
  if (!std::isfinite(y)) {
    first_odd_ = odd_++ == 0 ? x : first_odd_;
    return;
  }
  // Of a piece of several points none can be taken away alone: a few before x may go with it.
  while (!empty() && pieces_.back().last_x >= x) {
    pieces_.pop_back();
  }
  last_ = {x, y};
  const CurvePiece point{
      .first_x = x, .last_x = x, .count = 1, .sum = y, .low = last_, .high = last_};
  if (!empty() && pieces_.back().count < width_) {
    join(pieces_.back(), point);
  } else {
    pieces_.push_back(point);
  }
  if (pieces_.size() > kMostPieces) {
    halve();
  }
}

void BoundedCurve::halve() {
  for (size_t i = 0; i + 1 < pieces_.size(); i += 2) {
    CurvePiece both = pieces_[i];
    join(both, pieces_[i + 1]);
    pieces_[i / 2] = both;
  }
  if (pieces_.size() % 2 == 1) {
    pieces_[pieces_.size() / 2] = pieces_.back();
  }
  pieces_.resize((pieces_.size() + 1) / 2);
  width_ *= 2;
}

CurvePoint BoundedCurve::lowest() const {
  return std::ranges::min_element(pieces_, {}, [](const CurvePiece& p) { return p.low.y; })->low;
}

CurvePoint BoundedCurve::highest() const {
  return std::ranges::max_element(pieces_, {}, [](const CurvePiece& p) { return p.high.y; })->high;
}

}  // namespace argosy::runs
