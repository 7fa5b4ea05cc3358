#include "argosy/image/codecs/escape.h"

namespace argosy::image::codecs {

// Not inline: no local variable of a caller may live in registers across setjmp.
bool Escape::call(void (*step)(void*), void* argument) {
  if (setjmp(jump_) != 0) {
    return false;
  }
  step(argument);
  return true;
}

}  // namespace argosy::image::codecs
