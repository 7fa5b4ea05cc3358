#pragma once

#include <csetjmp>
#include <type_traits>

namespace argosy::image::codecs {

/// Calls C libraries whose error handlers must not return (libjpeg, libpng). The handler calls
/// leave(), and run() then returns false. The frames in between are skipped without their
/// destructors, so a step must hold and make nothing with a destructor. It captures by reference
/// what must outlive it.
///
///     if (!escape.run([&] { png_read_info(png, info); })) {
///       throw DataError(...);  // here, where C++ is whole again
///     }
///
/// Exceptions do not work here, because C code need not have unwind tables. Runs must not nest.
class Escape final {
 public:
  template <typename Step>
  [[nodiscard]] bool run(Step step) {
    static_assert(std::is_trivially_destructible_v<Step>, "longjmp skips destructors");
    return call([](void* argument) { (*static_cast<Step*>(argument))(); }, &step);
  }

  [[noreturn]] void leave() { std::longjmp(jump_, 1); }  // NOLINT(modernize-avoid-setjmp-longjmp)

 private:
  bool call(void (*step)(void*), void* argument);

  std::jmp_buf jump_{};
};

}  // namespace argosy::image::codecs
