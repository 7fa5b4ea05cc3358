#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "argosy/formats/pickle_value.h"

namespace argosy::formats {

/// How far a pickle is believed, and what else than plain values it may hold.
struct UnpickleOptions {
  std::string path{};  ///< for errors

  /// Levels of containers inside each other, at most 1000.
  int32_t depth = 200;
  /// Objects that the pickle remembers to use again.
  int64_t memo = 10'000'000;
  /// Memory that the values take. Whatever this says, it is at most 64 MiB + 256 times the pickle:
  /// an honest one stays below.
  int64_t memory_bytes = int64_t{4} << 30;

  /// What `module.name` stands for: PickleValue::global() or anything else that call() knows again;
  /// nullopt refuses it. Asked for names that this room does not know itself.
  std::function<std::optional<PickleValue>(std::string_view module, std::string_view name)>
      global{};
  /// What `callable(*args)` is, for a callable that global() gave; nullopt refuses it. A list or
  /// dict that is returned must be new: the pickle may go on filling it.
  std::function<std::optional<PickleValue>(const PickleValue& callable,
                                           std::span<const PickleValue> args)>
      call{};
  /// The object that lies elsewhere under this id; nullopt refuses it.
  std::function<std::optional<PickleValue>(const PickleValue& id)> persistent{};
};

/// Reads what Python's pickle.dumps() wrote, protocols 2 to 5, and executes nothing.
///
///     PickleValue batch = unpickle(bytes, {.path = "data_batch_1"});
///
/// It builds None, bool, int (64 bits), float, str, bytes, bytearray, list, tuple, dict, set,
/// frozenset, collections.OrderedDict, numpy arrays and numbers of types b1 u1 i1 u2 i2 u4 i4 u8 i8
/// f4 f8. Python 2's str comes as bytes. Every other class or function in the stream is an error
/// that names it, unless the options have a handler that takes it. A handler's exceptions pass
/// through. Errors: DataError with path and the offset of the operation: truncated; damaged; a
/// global that is refused; an int beyond 64 bits; a value inside itself; a limit, by its name;
/// bytes after the end. Cost: linear in the size; nothing is allocated on the word of a length
/// field. Source: Lib/pickletools.py of CPython 3.11; numpy/core/multiarray of numpy 1 and 2.
[[nodiscard]] PickleValue unpickle(std::span<const uint8_t> bytes,
                                   const UnpickleOptions& options = {});

/// The same for a pickle that other data follow: takes it from the front of `bytes`.
[[nodiscard]] PickleValue unpickle_front(std::span<const uint8_t>& bytes,
                                         const UnpickleOptions& options = {});

}  // namespace argosy::formats
