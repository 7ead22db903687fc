// SPDX-License-Identifier: Apache-2.0
// The name of a content: its SHA-256 (FIPS 180-4) as 64 hexadecimal digits. Equal contents have
// equal names. src/store/content_hash.cc computes it with libcrypto, so that base has no
// dependency: a program that calls this links mete::content_hash.
#pragma once

#include <string>
#include <string_view>

namespace mete::base {

std::string content_hash(std::string_view content);

}  // namespace mete::base
