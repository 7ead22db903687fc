// SPDX-License-Identifier: Apache-2.0
// Requests and responses as values, and the text that both sides share: targets, status lines,
// header lines. Nothing here reads or writes a socket.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace mete::net {

// The process at the other end of a Unix socket when it connected, as the kernel reports it.
struct Peer {
  uid_t uid = static_cast<uid_t>(-1);
  gid_t gid = static_cast<gid_t>(-1);
  pid_t pid = 0;
  std::vector<gid_t> groups = {};  // supplementary ones
};

using Fields = std::vector<std::pair<std::string, std::string>>;

struct Request {
  std::string method;  // "GET", as written
  std::string path;    // "/v1/jobs/12": begins with '/', percent-decoded
  Fields query;        // in order, percent-decoded; "?a" gives {"a", ""}
  Fields headers;      // in order, names in lower case
  std::string body;
  Peer peer;

  // The first of that name (in lower case), or nullptr.
  const std::string* header(std::string_view name) const;
  const std::string* parameter(std::string_view name) const;
};

struct Response {
  int status = 200;
  std::string body;
  std::string content_type = "application/json";
  Fields headers = {};  // further ones; control characters in them are sent as spaces
  // Dropped when the socket has taken the whole body, or the client is gone.
  std::shared_ptr<void> held = {};
};

struct Target {
  std::string path;
  Fields query;
};
// "/v1/a%20b?x=1&y=%C3%A4" or "http://anything/v1/…". '+' in a query is a space. invalid for
// anything else, for a broken or a zero escape, and for an encoded slash: it would move the
// boundaries between the parts of a path.
Result<Target> parse_target(std::string_view text);

// Everything but letters, digits and "-._~" as %XX: for building targets.
std::string percent_encode(std::string_view text);

// "Not Found"; "Unknown" for a number without a name.
std::string_view reason_phrase(int status);

}  // namespace mete::net
