#pragma once

/// libargosy_comm.so for a backend of another runtime: its functions, found at run time, and what
/// every such backend does with them. dlopen() without RTLD_GLOBAL keeps its Gloo and its gRPC from
/// those of the runtime. Not with RTLD_DEEPBIND: it would take free() from libc for memory of an
/// allocator that LD_PRELOAD has put before it, and crash. C++17, and of Argosy it needs comm.h
/// alone: packaging/python_backend.sh puts them into the packages of the backends.

#include <dlfcn.h>

#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include "argosy/abi/comm.h"

namespace argosy::abi {

#define ARGOSY_FUNCTIONS(X) \
  X(argosy_abi)             \
  X(argosy_text_new)        \
  X(argosy_text_free)       \
  X(argosy_text_set)        \
  X(argosy_text_get)        \
  X(argosy_group_make)      \
  X(argosy_group_close)     \
  X(argosy_group_free)      \
  X(argosy_close_all)       \
  X(argosy_group_record)    \
  X(argosy_is_defined)      \
  X(argosy_step)            \
  X(argosy_share)           \
  X(argosy_block_data)      \
  X(argosy_block_free)      \
  X(argosy_fail)            \
  X(argosy_submit)          \
  X(argosy_transfer)

/// The functions of comm.h, under their names. Call load() before any of them.
struct Library {
#define ARGOSY_DECLARE(f) decltype(&::f) f = nullptr;  // NOLINT(bugprone-macro-parentheses)
  ARGOSY_FUNCTIONS(ARGOSY_DECLARE)
#undef ARGOSY_DECLARE

  static Library& loaded() {
    static Library library;
    return library;
  }

  /// Throws std::runtime_error, which says what is missing. `package` is the backend's name, for
  /// messages.
  void load(const std::string& path, const std::string& package) {
    void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      throw std::runtime_error(package + ": " + last_error());
    }
#define ARGOSY_FIND(name) find(handle, package, #name, name);
    ARGOSY_FUNCTIONS(ARGOSY_FIND)
#undef ARGOSY_FIND
    if (argosy_abi() != ARGOSY_ABI) {
      throw std::runtime_error(package + ": " + path + " has interface " +
                               std::to_string(argosy_abi()) + ", expected " +
                               std::to_string(ARGOSY_ABI) + ". Install " + package + " again.");
    }
  }

 private:
  static std::string last_error() {
    return dlerror();  // NOLINT(concurrency-mt-unsafe): glibc has one for each thread
  }
  template <typename Function>
  static void find(void* handle, const std::string& package, const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(handle, name));
    if (function == nullptr) {
      throw std::runtime_error(package + ": " + last_error());
    }
  }
};
#undef ARGOSY_FUNCTIONS

inline Library& library() {
  return Library::loaded();
}

/// A text of the library's, for what it says.
class Text final {
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

/// Puts `value` into a text of the library's, for what it is told.
inline void tell(ArgosyText* text, const std::string& value) {
  library().argosy_text_set(text, value.data(), value.size());
}

/// Moves bytes, and computes nothing with them.
inline ArgosyStep moves(
    ArgosyStepKind kind, const void* input, void* output, int64_t bytes, int root = 0) {
  ArgosyStep step{};
  step.kind = kind;
  step.type = ARGOSY_U8;
  step.root = root;
  step.input = input;
  step.output = output;
  step.count = bytes;
  return step;
}

/// Bytes of each rank to each other: their counts live as long as the step.
inline ArgosyStep exchanges(const void* input,
                            const int64_t* sends,
                            void* output,
                            const int64_t* receives) {
  ArgosyStep step = moves(ARGOSY_ALL_TO_ALL_V, input, output, 0);
  step.send_counts = sends;
  step.receive_counts = receives;
  return step;
}

/// The `set` of a meeting: `store` takes a key and a vector of bytes, and may throw.
template <typename Store>
int set_in(Store& store, const std::string& key, const char* value, ArgosyText* why) {
  try {
    const std::string text(value);
    store.set(key, std::vector<uint8_t>(text.begin(), text.end()));
    return ARGOSY_OK;
  } catch (const std::exception& e) {
    tell(why, e.what());
    return ARGOSY_FAILED;
  }
}

/// What tells a step where it is, and does it.
class Steps final {
 public:
  explicit Steps(ArgosyHere* here) : here_(here) {}

  /// Throws what run_steps() takes; the library knows why.
  void operator()(const ArgosyStep& step) const { check(library().argosy_step(here_, &step)); }

  /// See argosy_share(). Throws likewise.
  ArgosyBlock* share(size_t bytes) const {
    ArgosyBlock* block = nullptr;
    check(library().argosy_share(here_, bytes, &block));
    return block;
  }

 private:
  template <typename Body>
  friend int run_steps(ArgosyHere* here, const Body& body) noexcept;

  struct Failed {
    int code;
  };
  static void check(int code) {
    if (code != ARGOSY_OK) {
      throw Failed{code};
    }
  }

  ArgosyHere* here_;
};

/// Calls `body` with the Steps of an operation, and returns what an ArgosyBody returns. What `body`
/// throws is told to the library.
template <typename Body>
int run_steps(ArgosyHere* here, const Body& body) noexcept {
  try {
    body(Steps(here));
    return ARGOSY_OK;
  } catch (const Steps::Failed& failed) {
    return failed.code;
  } catch (const std::exception& e) {
    library().argosy_fail(here, e.what());
  } catch (...) {
    library().argosy_fail(here, "it threw what is no std::exception");
  }
  return ARGOSY_FAILED;
}

}  // namespace argosy::abi
