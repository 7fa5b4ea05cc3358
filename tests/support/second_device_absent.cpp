/// Where libtorch's headers do not let second_device.cpp compile: tests on it skip.
#include <stdexcept>

#include "tests/support/second_device.h"

namespace argosy::test {

bool has_second_device() {
  return false;
}
c10::Device second_device(int /*index*/) {
  throw std::logic_error("this build has no second device: ask has_second_device() first");
}
c10::Stream stream_of_last_copy_to(c10::Device device) {
  return side_stream(device);
}
c10::Stream side_stream(c10::Device /*device*/) {
  throw std::logic_error("this build has no second device: ask has_second_device() first");
}

}  // namespace argosy::test
