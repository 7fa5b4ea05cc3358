#pragma once

// Declares the same name as base/upside_down.h on purpose.
template <typename T>
struct Twice : T {};
struct ForwardOnly;
