#pragma once

inline const char* version() {
  return ARGOSY_VERSION;
}
