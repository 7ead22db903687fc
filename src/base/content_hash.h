// SPDX-License-Identifier: Apache-2.0
// The name of a content: its SHA-256 (FIPS 180-4) as 64 hexadecimal digits. Equal contents have
// equal names, and nobody can make two that share one.
#pragma once

#include <string>
#include <string_view>

namespace mete::base {

std::string content_hash(std::string_view content);

}  // namespace mete::base
