// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/planted.h"

#include <utility>

namespace mete::sim {

namespace {

std::string the_plant;
std::uint32_t times = 0;

}  // namespace

const std::string& plant() { return the_plant; }
void set_plant(std::string name) { the_plant = std::move(name); }

bool planted_every(const char* name, std::uint32_t nth) {
  return planted(name) && ++times % nth == 0;
}

}  // namespace mete::sim
