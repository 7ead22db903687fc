// SPDX-License-Identifier: Apache-2.0
// Parses one HTTP/1.x request from untrusted bytes, as they arrive. Beast parses; this header keeps
// it out of other files. Holds at most one header and one body of the stated sizes.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "net/http.h"

namespace mete::net {

class RequestParser {
 public:
  struct Limits {
    std::size_t header_bytes;
    std::size_t body_bytes;
  };

  explicit RequestParser(Limits limits);
  ~RequestParser();

  // Takes what it can from the front of `bytes` and returns how many bytes that were; the rest is
  // to be offered again with more behind it. Not to be called once done() or failed().
  std::size_t feed(std::string_view bytes);

  bool done() const;         // the whole request is there
  bool failed() const;       // the request is invalid
  int error_status() const;  // when failed: 400, 413 (body too large), 431 (header too large)
  const std::string& error() const;

  // The client waits for "100 Continue" before it sends its body. True at most once.
  bool take_expectation();
  // When done(): the request, without its peer. invalid if the target is not valid.
  Result<Request> take_request();
  // Once the header is complete, and before take_request().
  bool keep_alive() const;
  bool http_1_0() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mete::net
