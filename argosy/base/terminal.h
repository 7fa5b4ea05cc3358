#pragma once

namespace argosy::terminal {

/// True if $TERM names a type of terminal that can draw over what it shows. False when it is unset
/// or "dumb".
[[nodiscard]] bool type_redraws();

/// True if `fd` is such a terminal.
[[nodiscard]] bool redraws(int fd);

/// True if `fd` is such a terminal and the locale says UTF-8, so that block characters can be
/// drawn.
[[nodiscard]] bool shows_blocks(int fd);

/// True if `fd` is a file on a disk, which keeps what is written, escape sequences included.
[[nodiscard]] bool is_file(int fd);

/// Returns how many characters a line of `fd` takes: the terminal's number, else $COLUMNS (10 to
/// 1,000), else 80.
[[nodiscard]] int columns(int fd);

}  // namespace argosy::terminal
