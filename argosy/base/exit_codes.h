#pragma once

namespace argosy {

/// Means "start me again". A program exits with it when it was told to stop and has saved its
/// state; the same command then resumes. `argosy launch` exits with it too. Source: sysexits.h,
/// EX_TEMPFAIL, on which several job systems requeue a job.
constexpr int kResumeExitCode = 75;

}  // namespace argosy
