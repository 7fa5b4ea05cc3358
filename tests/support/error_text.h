#pragma once

#include <string>

namespace argosy::test {

/// The message of the E that `f` throws, or that nothing was thrown; anything else passes through.
template <typename E, typename F>
std::string error_text(F f) {
  try {
    f();
  } catch (const E& error) {
    return error.what();
  }
  return "nothing was thrown";
}

}  // namespace argosy::test
