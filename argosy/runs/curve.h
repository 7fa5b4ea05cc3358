#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace argosy::runs {

/// A value at a step.
struct CurvePoint {
  double x = 0;
  double y = 0;
};

/// Neighbouring points of a curve, joined to one piece.
struct CurvePiece {
  double first_x = 0;
  double last_x = 0;
  int64_t count = 0;
  double sum = 0;
  CurvePoint low{};
  CurvePoint high{};

  [[nodiscard]] double mean() const { return sum / static_cast<double>(count); }
};

/// A curve of any length in bounded memory. It keeps up to kMostPieces points. Beyond that it joins
/// neighbours by their mean, lowest and highest value, so no spike is lost.
///
/// If a step goes back, as in a resumed run, everything from there on is removed.
class BoundedCurve final {
 public:
  static constexpr size_t kMostPieces = 1000;

  /// Adds a point. NaN and infinities are counted, not kept.
  void add(double x, double y);
  /// Sorted by x.
  [[nodiscard]] const std::vector<CurvePiece>& pieces() const { return pieces_; }

  [[nodiscard]] bool empty() const { return pieces_.empty(); }
  /// The latest point. The curve must not be empty.
  [[nodiscard]] CurvePoint last() const { return last_; }
  /// The lowest and the highest point, the first one of equals. The curve must not be empty.
  [[nodiscard]] CurvePoint lowest() const;
  [[nodiscard]] CurvePoint highest() const;
  /// The number of points that were not finite, and the x of the first.
  [[nodiscard]] int64_t odd() const { return odd_; }
  [[nodiscard]] double first_odd() const { return first_odd_; }

 private:
  void halve();

  std::vector<CurvePiece> pieces_{};
  int64_t width_ = 1;  // points of a piece
  CurvePoint last_{};
  int64_t odd_ = 0;
  double first_odd_ = 0;
};

}  // namespace argosy::runs
