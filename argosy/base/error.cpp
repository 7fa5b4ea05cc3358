#include "argosy/base/error.h"

#include <cxxabi.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <typeinfo>

namespace argosy {
namespace {

std::string describe(std::string_view what, const DataPlace& place) {
  // Samples that come from memory have no path.
  std::string text =
      place.path.empty() ? std::string(what) : fmt::format("{}: {}", place.path, what);
  if (place.index >= 0) {
    text += fmt::format(" (sample {})", place.index);
  }
  if (place.offset >= 0) {
    text += fmt::format(" (at byte {})", place.offset);
  }
  return text;
}

std::string describe(std::string_view what, const CheckpointPlace& place) {
  std::string text;  // a dict in memory has no path
  if (!place.path.empty()) {
    text += fmt::format("{}: ", place.path);
  }
  if (!place.key.empty()) {
    text += fmt::format("\"{}\": ", place.key);
  }
  return text.append(what);
}

}  // namespace

Error::Error(std::string_view where, std::string_view what)
    : std::runtime_error(fmt::format("[{}] {}", where, what)) {}

DataError::DataError(std::string_view where, std::string_view what, DataPlace place)
    : Error(where, describe(what, place)),
      where_(where),
      message_(what),
      place_(std::move(place)) {}

DataError DataError::with_index(int64_t index) const {
  DataPlace place = place_;
  place.index = index;
  return {where_, message_, std::move(place)};
}

DataError DataError::with_note(std::string_view note) const {
  return {where_, fmt::format("{} ({})", message_, note), place_};
}

CheckpointError::CheckpointError(std::string_view where,
                                 std::string_view what,
                                 CheckpointPlace place)
    : Error(where, describe(what, place)), place_(std::move(place)) {}

std::string type_of_current_exception() {
  const std::type_info* type = abi::__cxa_current_exception_type();
  if (type == nullptr) {
    return "";
  }
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> name(
      abi::__cxa_demangle(type->name(), nullptr, nullptr, &status), &std::free);
  return name != nullptr ? name.get() : type->name();
}

std::string errno_message(int error_number) {
  const char* words = strerrordesc_np(error_number);
  const char* name = strerrorname_np(error_number);
  if (words == nullptr || name == nullptr) {
    return fmt::format("unknown error {}", error_number);
  }
  const char* advice = error_number == EMFILE ? "; the limit: ulimit -n, at most ulimit -Hn" : "";
  return fmt::format("{} ({}{})", words, name, advice);
}

}  // namespace argosy
