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

/// Neighbouring points of a curve, taken together.
struct CurvePiece {
  double first_x = 0;
  double last_x = 0;
  int64_t count = 0;
  double sum = 0;
  CurvePoint low{};
  CurvePoint high{};

  [[nodiscard]] double mean() const { return sum / static_cast<double>(count); }
};

/// A curve of any length in bounded memory: up to kMostPieces points as they are; when they become
/// more, neighbours are taken together, by their mean, their lowest and their highest, so that no
/// spike is lost.
///
/// A step that goes back (a resumed run goes over it again) takes what came from there on away.
class Curve final {
 public:
  static constexpr size_t kMostPieces = 1000;

  /// NaN and infinities are counted, not kept.
  void add(double x, double y);
  /// Ascending in x.
  [[nodiscard]] const std::vector<CurvePiece>& pieces() const { return pieces_; }

  [[nodiscard]] bool empty() const { return pieces_.empty(); }
  /// The latest point; only where it is not empty.
  [[nodiscard]] CurvePoint last() const { return last_; }
  /// The lowest and the highest point, the first of equal ones; only where it is not empty.
  [[nodiscard]] CurvePoint lowest() const;
  [[nodiscard]] CurvePoint highest() const;
  /// Points that were no finite number, and where the first was.
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
