// SPDX-License-Identifier: Apache-2.0
// Help texts, made from the table of verbs.
#pragma once

#include <string>

#include "cli/verbs.h"

namespace mete::cli {

inline constexpr OptionSpec kHelpOption{"--help", "", "show examples and options", "-h"};

// What `mete` alone prints: a screen at most.
std::string overview(bool all = false);
// What `mete VERB --help` prints: examples first.
std::string verb_help(const Verb& verb);

}  // namespace mete::cli
