#pragma once

namespace argosy::terminal {

/// By $TERM: a terminal that can draw over what it shows, should there be one. Not where it is
/// unset or "dumb".
[[nodiscard]] bool type_redraws();

/// `fd` is such a terminal.
[[nodiscard]] bool redraws(int fd);

/// `fd` is such a terminal, and the locale says UTF-8: what draws with blocks may.
[[nodiscard]] bool shows_blocks(int fd);

/// Characters in a line of `fd`: the terminal's, else what $COLUMNS says (10 to 1,000), else 80.
[[nodiscard]] int columns(int fd);

}  // namespace argosy::terminal
