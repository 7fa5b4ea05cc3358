#include "argosy/formats/pickle.h"

#include "argosy/base/error.h"
#include "argosy/formats/unpickler.h"

namespace argosy::formats {

PickleValue unpickle(std::span<const uint8_t> bytes, const UnpickleOptions& options) {
  const size_t size = bytes.size();
  PickleValue value = unpickle_front(bytes, options);
  if (!bytes.empty()) {
    throw DataError("formats.pickle",
                    "trailing bytes after the pickle's end. The file is damaged or two were joined",
                    {options.path, static_cast<int64_t>(size - bytes.size())});
  }
  return value;
}

PickleValue unpickle_front(std::span<const uint8_t>& bytes, const UnpickleOptions& options) {
  Unpickler unpickler(bytes, options);
  PickleValue value = unpickler.run();
  bytes = bytes.subspan(unpickler.consumed());
  return value;
}

}  // namespace argosy::formats
