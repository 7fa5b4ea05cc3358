#include "argosy/comm/device_queues.h"

#include "tests/support/second_device.h"

// Lets transports use the streams of the second device, where a test's backend asks for one.
namespace argosy::test {
namespace {

[[maybe_unused]] const bool kStreamsAreKnown = [] {
  // second_device(): the device has its name from the start of the program.
  comm::set_stream_handle(
      second_device().type(), &handle_of, [](c10::Device device) { return device.str(); });
  return true;
}();

}  // namespace
}  // namespace argosy::test
