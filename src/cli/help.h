// SPDX-License-Identifier: Apache-2.0
// Help texts, made from the table of verbs.
#pragma once

#include <string>

#include "cli/verbs.h"

namespace mete::cli {

inline constexpr OptionSpec kHelpOption{"--help", "", "show examples and options", "-h"};

// The output of `mete` alone: one screen at most.
std::string overview(bool all = false);
// The output of `mete VERB --help`: examples first.
std::string verb_help(const Verb& verb);

}  // namespace mete::cli
