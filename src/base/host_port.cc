// SPDX-License-Identifier: Apache-2.0
#include "base/host_port.h"

#include <arpa/inet.h>

#include "base/text.h"

namespace mete::base {

Result<HostPort> parse_host_port(std::string_view text) {
  const Error no = Error::invalid(quote(text) + " is no address with a port")
                       .with_hint("127.0.0.1:9411 or [::1]:9411");
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return no;
  const std::string_view digits = text.substr(colon + 1);
  const Result<std::uint64_t> port = parse_uint(digits);
  if (!port || *port == 0 || *port > 65'535 || digits.size() > 5) return no;
  std::string_view host = text.substr(0, colon);
  const bool brackets = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (brackets) host = host.substr(1, host.size() - 2);
  HostPort address{std::string(host), static_cast<std::uint16_t>(*port)};
  unsigned char bytes[sizeof(in6_addr)];
  // inet_pton stops at a NUL.
  if (host.find('\0') != std::string_view::npos || address.ipv6() != brackets ||
      inet_pton(brackets ? AF_INET6 : AF_INET, address.host.c_str(), bytes) != 1)
    return no;
  return address;
}

}  // namespace mete::base
