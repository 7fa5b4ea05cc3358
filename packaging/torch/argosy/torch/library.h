// libargosy_comm.so, loaded at run time: its Gloo and its gRPC must not meet those of libtorch. Not
// with RTLD_DEEPBIND: it would take free() from libc for memory of an allocator that LD_PRELOAD has
// put before it, and crash.
#pragma once

#include <dlfcn.h>

#include <stdexcept>
#include <string>

#include "comm.h"

namespace argosy_torch {

#define ARGOSY_FUNCTIONS(X) \
  X(argosy_abi)             \
  X(argosy_text_new)        \
  X(argosy_text_free)       \
  X(argosy_text_set)        \
  X(argosy_text_get)        \
  X(argosy_group_make)      \
  X(argosy_group_close)     \
  X(argosy_group_free)      \
  X(argosy_group_record)    \
  X(argosy_step)            \
  X(argosy_fail)            \
  X(argosy_submit)          \
  X(argosy_transfer)

// The functions of comm.h, under their names.
struct Library {
#define ARGOSY_DECLARE(name) decltype(&::name) name = nullptr;
  ARGOSY_FUNCTIONS(ARGOSY_DECLARE)
#undef ARGOSY_DECLARE

  static Library& loaded() {
    static Library library;
    return library;
  }

  // Throws std::runtime_error, which says what is missing.
  void load(const std::string& path) {
    void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      throw std::runtime_error(std::string("argosy.torch: ") + dlerror());
    }
#define ARGOSY_FIND(name) find(handle, #name, name);
    ARGOSY_FUNCTIONS(ARGOSY_FIND)
#undef ARGOSY_FIND
    if (argosy_abi() != ARGOSY_ABI) {
      throw std::runtime_error("argosy.torch: " + path + " has interface " +
                               std::to_string(argosy_abi()) + ", expected " +
                               std::to_string(ARGOSY_ABI) + ". Install argosy-torch again.");
    }
  }

 private:
  template <typename Function>
  static void find(void* handle, const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(handle, name));
    if (function == nullptr) {
      throw std::runtime_error(std::string("argosy.torch: ") + dlerror());
    }
  }
};

inline Library& library() {
  return Library::loaded();
}

// A text of the library's, for what it says.
class Text {
 public:
  Text() : text_(library().argosy_text_new()) {}
  ~Text() { library().argosy_text_free(text_); }
  Text(const Text&) = delete;
  Text& operator=(const Text&) = delete;
  ArgosyText* get() { return text_; }
  std::string str() const { return library().argosy_text_get(text_); }

 private:
  ArgosyText* text_;
};

}  // namespace argosy_torch
