#pragma once

namespace argosy::os {

/// Makes this process report its own crash: SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT or an
/// exception that nobody catches. It prints a stack with function names on standard error. If
/// TORCHELASTIC_ERROR_FILE names a file, it also writes there what happened, in torchrun's form,
/// which torchrun's agent and `argosy launch` read. For an Error of Argosy it prints the message
/// and no stack. The process still ends by the same signal. If the report hangs (the heap may be
/// broken), SIGALRM ends the process after 10 s.
///
/// Does nothing if somebody else already handles one of these signals (a sanitizer, Python's
/// faulthandler, the program itself), or with ARGOSY_CRASH_HANDLER=0. Idempotent.
void install_crash_handler();

}  // namespace argosy::os
