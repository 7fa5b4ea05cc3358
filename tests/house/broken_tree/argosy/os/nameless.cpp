// Breaks the rule of names on purpose: no header has this name, and no list names this file.
