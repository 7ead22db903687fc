// SPDX-License-Identifier: Apache-2.0
// An address to listen on, from a configuration: numbers only, no names, so that nothing is looked
// up and no name can mean several addresses.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace mete::base {

struct HostPort {
  std::string host;  // "127.0.0.1", "::1"
  std::uint16_t port = 0;
  bool ipv6() const { return host.find(':') != std::string::npos; }
  bool operator==(const HostPort&) const = default;
};

// "127.0.0.1:9411", "[::1]:9411". invalid for anything else; a port is 1 to 65535.
Result<HostPort> parse_host_port(std::string_view text);

}  // namespace mete::base
