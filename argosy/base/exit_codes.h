#pragma once

namespace argosy {

/// "Start me again": what a program leaves with that has saved where it is, because it was told to
/// stop, and goes on from there when the same command runs again. `argosy launch` leaves with it
/// too. Source: sysexits.h, EX_TEMPFAIL, which requeues in several job systems.
constexpr int kResumeExitCode = 75;

}  // namespace argosy
