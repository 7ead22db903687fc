// SPDX-License-Identifier: Apache-2.0
// Deliberate bugs, one at a time, to prove that the simulator finds them (README.md lists them).
// Bugs of the world around the engine ask planted() where they would happen. Bugs of the engine are
// in copies of its sources that the build makes (plants.py): what is shipped has none.
#pragma once

#include <cstdint>
#include <string>

namespace mete::sim {

// The bug of this run; empty: none.
const std::string& plant();
void set_plant(std::string name);

// Whether this is the bug of this run.
inline bool planted(const char* name) { return !plant().empty() && plant() == name; }
// planted(), but only every nth time.
bool planted_every(const char* name, std::uint32_t nth);

}  // namespace mete::sim
