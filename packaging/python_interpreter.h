#pragma once

/// libargosy_comm.so for a backend that Python calls: what waits for a group's thread lets go of
/// the interpreter's lock, for that thread may let go of what Python knows, and need the lock.
/// C++17. packaging/python_backend.sh puts it beside library.h, as interpreter.h.

#include <Python.h>

#include "argosy/abi/library.h"

namespace argosy::abi {

template <typename Function>
void without_interpreter(Function function) {
  if (Py_IsInitialized() == 0 || PyGILState_Check() == 0) {
    function();
    return;
  }
  struct Released {
    PyThreadState* const state = PyEval_SaveThread();
    ~Released() { PyEval_RestoreThread(state); }
  };
  const Released released;
  function();
}

inline void free_group(ArgosyGroup* group) {
  without_interpreter([group] { library().argosy_group_free(group); });
}

/// Closes all groups, while there still is a Python.
inline void close_all_groups() {
  without_interpreter([] { library().argosy_close_all(5000); });
}

}  // namespace argosy::abi
