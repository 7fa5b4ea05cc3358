#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "argosy/formats/pickle_value.h"

namespace argosy::formats {

/// Limits for a pickle, and handlers for what is not a plain value.
struct UnpickleOptions {
  std::string path{};  ///< for errors

  /// Most levels of nested containers; at most 1000.
  int32_t depth = 200;
  /// Most objects that the pickle remembers to use again.
  int64_t memo = 10'000'000;
  /// Most memory for the values. In any case it is at most 64 MiB + 256 times the pickle, which no
  /// honest pickle needs.
  int64_t memory_bytes = int64_t{4} << 30;

  /// Returns what `module.name` stands for: PickleValue::global() or anything else that call()
  /// recognises; nullopt refuses it. Called for names that this room does not know itself.
  std::function<std::optional<PickleValue>(std::string_view module, std::string_view name)>
      global{};
  /// Returns `callable(*args)` for a callable that global() gave; nullopt refuses it. A list or
  /// dict that it returns must be new, because the pickle may fill it further.
  std::function<std::optional<PickleValue>(const PickleValue& callable,
                                           std::span<const PickleValue> args)>
      call{};
  /// Returns the object that lies elsewhere under this id; nullopt refuses it.
  std::function<std::optional<PickleValue>(const PickleValue& id)> persistent{};
};

/// Reads what Python's pickle.dumps() wrote, protocols 2 to 5, and executes nothing.
///
///     PickleValue batch = unpickle(bytes, {.path = "data_batch_1"});
///
/// It builds None, bool, int (64 bits), float, str, bytes, bytearray, list, tuple, dict, set,
/// frozenset, collections.OrderedDict, and numpy arrays and numbers of types b1 u1 i1 u2 i2 u4 i4
/// u8 i8 f4 f8. Python 2's str becomes bytes. Every other class or function in the stream is an
/// error that names it, unless a handler of the options takes it. Exceptions of handlers pass
/// through.
/// Errors: DataError with path and the offset of the operation: the pickle is truncated or damaged,
/// a global is refused, an int needs more than 64 bits, a value contains itself, a limit (named) is
/// exceeded, or bytes follow the end.
/// Cost: linear in the size. A length field alone allocates nothing.
/// Source: Lib/pickletools.py of CPython 3.11; numpy/core/multiarray of numpy 1 and 2.
[[nodiscard]] PickleValue unpickle(std::span<const uint8_t> bytes,
                                   const UnpickleOptions& options = {});

/// Reads a pickle that other data follow, and removes it from the front of `bytes`.
[[nodiscard]] PickleValue unpickle_front(std::span<const uint8_t>& bytes,
                                         const UnpickleOptions& options = {});

}  // namespace argosy::formats
