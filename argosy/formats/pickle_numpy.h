#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "argosy/formats/pickle_value.h"

namespace argosy::formats {

/// A numpy.dtype while its pickle is read. A PickleValue holds it as opaque.
struct PickleDtype {
  PickleType type = PickleType::kU8;
  bool big_endian = false;
};

using PickleArgs = std::vector<PickleValue>;

/// Does what numpy.dtype("f4", False, True) does.
[[nodiscard]] PickleValue make_dtype(const PickleArgs& args);
/// Sets its state: (3, "<", None, None, None, -1, -1, 0).
void build_dtype(PickleDtype& dtype, const PickleValue& state);

/// Does what numpy.core.multiarray._reconstruct(numpy.ndarray, (0,), b"b") does: makes an array
/// without its content.
[[nodiscard]] PickleValue make_array(const PickleArgs& args);
/// Sets its state: (1, shape, dtype, is Fortran's order, bytes). Returns the memory that it took
/// beyond the bytes that exist already.
[[nodiscard]] int64_t build_array(const PickleValue& array, const PickleValue& state);

/// Does what numpy.core.numeric._frombuffer(bytes, dtype, shape, "C") does, protocol 5's form of an
/// array. `taken` gets what build_array() returns.
[[nodiscard]] PickleValue array_from_buffer(const PickleArgs& args, int64_t& taken);

/// Does what numpy.core.multiarray.scalar(dtype, bytes) does: makes a bool, int or float.
[[nodiscard]] PickleValue make_scalar(const PickleArgs& args);

}  // namespace argosy::formats
