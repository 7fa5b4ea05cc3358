// fuzz-sources: formats/pickle.cpp formats/pickle_input.cpp formats/pickle_numpy.cpp
//   formats/pickle_objects.cpp formats/pickle_stack.cpp formats/pickle_text.cpp
//   formats/pickle_tree.cpp formats/pickle_value.cpp formats/pickler.cpp formats/shown_name.cpp
// fuzz-options: -max_len=4096
// fuzz-rooms: argosy::formats
#include <cstdlib>

#include "argosy/base/error.h"
#include "argosy/formats/pickle.h"
#include "argosy/formats/pickler.h"

namespace {

using namespace argosy::formats;

std::span<const uint8_t> as_bytes(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

/// A reader of torch's files, as far as this room is concerned.
UnpickleOptions with_handlers() {
  UnpickleOptions options;
  options.memory_bytes = 64 << 20;
  options.global = [](std::string_view module,
                      std::string_view name) -> std::optional<PickleValue> {
    if (module == "torch" || module == "torch._utils") {
      return PickleValue::global(std::string(module), std::string(name));
    }
    return std::nullopt;
  };
  options.call = [](const PickleValue& callable,
                    std::span<const PickleValue> args) -> std::optional<PickleValue> {
    return PickleValue::call(callable, {args.begin(), args.end()});
  };
  options.persistent = [](const PickleValue& id) -> std::optional<PickleValue> {
    return PickleValue::persistent(id);
  };
  return options;
}

/// What was read is written, read and written again: both writings are the same.
void read(std::span<const uint8_t> bytes, const UnpickleOptions& options) {
  PickleValue value;
  try {
    value = unpickle(bytes, options);
    (void)value.describe();
  } catch (const argosy::DataError&) {  // what bad input is to bring
    return;
  }
  std::string once;
  try {
    once = pickle(value);
  } catch (const argosy::UsageError&) {  // a global's name with a line break
    return;
  }
  UnpickleOptions wide = options;
  wide.memory_bytes = int64_t{1} << 30;
  if (pickle(unpickle(as_bytes(once), wide)) != once) {
    std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const UnpickleOptions plain{.memory_bytes = 64 << 20};
  static const UnpickleOptions handlers = with_handlers();
  read({data, size}, plain);
  read({data, size}, handlers);
  return 0;
}
