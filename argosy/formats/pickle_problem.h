#pragma once

#include <string>

namespace argosy::formats {

/// A mistake in a pickle. The unpickler adds the file and the place, and throws a DataError.
struct PickleProblem {
  std::string what;
};

}  // namespace argosy::formats
