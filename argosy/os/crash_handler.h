#pragma once

namespace argosy::os {

/// From now on a process that dies by SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT or an exception that
/// nobody catches says where: a stack with function names on standard error, and, where
/// TORCHELASTIC_ERROR_FILE names a file, what happened in torchrun's form, which its agent and
/// `argosy launch` read. An Error of Argosy that nobody catches speaks for itself and comes without
/// a stack. The process ends by the same signal as without this; should telling hang (a broken
/// heap), by SIGALRM after 10 s.
///
/// Does nothing where somebody else already handles one of these signals (a sanitizer, Python's
/// faulthandler, the program itself), and with ARGOSY_CRASH_HANDLER=0. Idempotent.
void install_crash_handler();

}  // namespace argosy::os
