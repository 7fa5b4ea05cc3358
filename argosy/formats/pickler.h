#pragma once

#include <string>

#include "argosy/formats/pickle_value.h"

namespace argosy::formats {

/// Returns `value` as Python's pickle.dumps(value, protocol=2) would write it. Every Python can
/// read it.
///
///     const PickleValue type = PickleValue::global("torch", "FloatStorage");
///     const PickleValue storage = PickleValue::persistent(
///         PickleValue::tuple({"storage", type, "0", "cpu", 6}));
///     const PickleValue tensor = PickleValue::call(
///         PickleValue::global("torch._utils", "_rebuild_tensor_v2"),
///         {storage, 0, PickleValue::tuple({2, 3}), PickleValue::tuple({3, 1}), false,
///          PickleValue::ordered_dict({})});
///     file << pickle(PickleValue::ordered_dict({{"weight", tensor}}));
///
/// Handles of one value are written once and then referred to, so that Python gets one object. Two
/// values that are only equal are written twice, so keep the handle of a global that is used often.
/// Errors: UsageError for an opaque value, for more than 1000 levels, and for a str that is not
/// UTF-8 or has 4 GiB or more.
/// Source: PEP 307; Lib/pickletools.py of CPython 3.11.
[[nodiscard]] std::string pickle(const PickleValue& value);

}  // namespace argosy::formats
