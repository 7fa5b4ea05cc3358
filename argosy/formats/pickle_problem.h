#pragma once

#include <string>

namespace argosy::formats {

/// What is wrong in a pickle. The unpickler adds the file and the place, and throws a DataError.
struct PickleProblem {
  std::string what;
};

}  // namespace argosy::formats
