#pragma once

#include <concepts>
#include <string>
#include <vector>

#include "argosy/base/error.h"
#include "argosy/comm/collectives.h"

#include <nlohmann/json.hpp>

/// The _object operations for JSON values. They have a header of their own because nlohmann/json is
/// large.
///
///     std::vector<nlohmann::json> all =
///         comm::all_gather_object(nlohmann::json{{"loss", 0.5}}, world);
///
/// Values travel as CBOR, so NaN, infinities and 64-bit integers arrive unchanged. The overloads
/// take nlohmann::json only; strings stay bytes.
namespace argosy::comm {

template <typename T>
concept Json = std::same_as<T, nlohmann::json>;

namespace detail {
inline std::string pack(const nlohmann::json& value) {
  std::string bytes;
  nlohmann::json::to_cbor(value, bytes);
  return bytes;
}
inline nlohmann::json unpack(const std::string& bytes) {
  try {
    return nlohmann::json::from_cbor(bytes);
  } catch (const nlohmann::json::exception& e) {
    throw CommError("comm.object",
                    std::string("another rank sent what is no JSON value (") + e.what() +
                        "). All ranks must call the same overload.");
  }
}
inline std::vector<nlohmann::json> unpack(const std::vector<std::string>& all) {
  std::vector<nlohmann::json> values;
  for (const std::string& bytes : all) {
    values.push_back(unpack(bytes));
  }
  return values;
}
}  // namespace detail

template <Json J>
[[nodiscard]] std::vector<J> all_gather_object(const J& value,
                                               const Group& group,
                                               const TimeoutOptions& options = {}) {
  return detail::unpack(all_gather_object(detail::pack(value), group, options));
}

template <Json J>
[[nodiscard]] J broadcast_object(const J& value,
                                 const Group& group,
                                 const RootOptions& options = {}) {
  return detail::unpack(broadcast_object(detail::pack(value), group, options));
}

template <Json J>
[[nodiscard]] std::vector<J> gather_object(const J& value,
                                           const Group& group,
                                           const RootOptions& options = {}) {
  return detail::unpack(gather_object(detail::pack(value), group, options));
}

template <Json J>
[[nodiscard]] J scatter_object(const std::vector<J>& values,
                               const Group& group,
                               const RootOptions& options = {}) {
  std::vector<std::string> all;
  for (const J& value : values) {
    all.push_back(detail::pack(value));
  }
  return detail::unpack(scatter_object(all, group, options));
}

}  // namespace argosy::comm
