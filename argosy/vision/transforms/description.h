#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "argosy/image/geometry.h"
#include "argosy/image/image.h"
#include "argosy/image/resize.h"
#include "argosy/vision/transforms/ranges.h"

// Internal to the transforms: how they print themselves.
namespace argosy::vision::detail {

inline std::string text(double value) {
  return fmt::format("{:.6g}", value);
}
inline std::string text(int value) {
  return fmt::format("{}", value);
}
inline std::string text(std::string_view value) {
  return std::string(value);
}
/// Writes a size as a program does: 224 for a square.
inline std::string text(image::Size size) {
  return size.height == size.width ? text(size.height)
                                   : fmt::format("{{{}, {}}}", size.height, size.width);
}
inline std::string text(const Range& range) {
  return fmt::format("{{{:.6g}, {:.6g}}}", range.low, range.high);
}
inline std::string text(const std::vector<double>& values) {
  std::string all;
  for (const double value : values) {
    all += (all.empty() ? "" : ", ") + text(value);
  }
  return values.size() == 1 ? all : "{" + all + "}";
}
inline std::string text(image::Interpolation value) {
  return std::string(image::to_string(value));
}
inline std::string text(image::PadMode value) {
  switch (value) {
    case image::PadMode::kConstant:
      return "constant";
    case image::PadMode::kEdge:
      return "edge";
    case image::PadMode::kReflect:
      return "reflect";
    case image::PadMode::kSymmetric:
      return "symmetric";
  }
  return "?";
}
inline std::string text(const image::Padding& value) {
  const bool even =
      value.left == value.top && value.left == value.right && value.left == value.bottom;
  return even ? text(value.left)
              : fmt::format("{{{}, {}, {}, {}}}", value.left, value.top, value.right, value.bottom);
}
inline std::string text(const image::Fill& value) {
  return text(std::vector<double>(value.values().begin(), value.values().end()));
}
inline std::string text(bool value) {
  return value ? "true" : "false";
}
inline std::string text(const std::optional<image::PointF>& value) {
  return value.has_value() ? fmt::format("{{{:.6g}, {:.6g}}}", value->x, value->y) : "middle";
}
inline std::string text(image::Antialias value) {
  return value == image::Antialias::kOn ? "on" : "off";
}

/// "Name(argument, option=value)", with all arguments and those options that differ from the
/// default.
///
///     Description("RandomCrop").argument(size_).option("p", p, 0.5).done()
class Description final {
 public:
  explicit Description(std::string_view name) : name_(name) {}

  template <typename T>
  Description& argument(const T& value) {
    parts_.push_back(text(value));
    return *this;
  }
  template <typename T>
  Description& option(std::string_view name, const T& value, const T& usual) {
    if (!(value == usual)) {
      parts_.push_back(fmt::format("{}={}", name, text(value)));
    }
    return *this;
  }
  [[nodiscard]] std::string done() const {
    return fmt::format("{}({})", name_, fmt::join(parts_, ", "));
  }

 private:
  std::string name_;
  std::vector<std::string> parts_;
};

}  // namespace argosy::vision::detail
