// SPDX-License-Identifier: Apache-2.0
// See request_parser.h. The only file that uses Beast.
#include "net/request_parser.h"

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <utility>

#include "base/assert.h"
#include "base/text.h"

namespace mete::net {

namespace http = boost::beast::http;

struct RequestParser::Impl {
  explicit Impl(Limits given) : limits(given) {
    parser.header_limit(static_cast<std::uint32_t>(limits.header_bytes));
    parser.body_limit(limits.body_bytes);
    parser.eager(true);
  }

  void fail(int with_status, std::string why) {
    status = with_status;
    message = std::move(why);
  }
  void fail(boost::system::error_code error) {
    if (error == http::error::body_limit)
      return fail(413, "the body is larger than " + std::to_string(limits.body_bytes) + " bytes");
    if (error == http::error::header_limit)
      return fail(431,
                  "the header is larger than " + std::to_string(limits.header_bytes) + " bytes");
    fail(400, "not HTTP/1.1: " + error.message());
  }
  bool host_is_missing() const {
    return parser.get().version() >= 11 && parser.get().count(http::field::host) != 1;
  }

  Limits limits;
  http::request_parser<http::string_body> parser;
  std::size_t header_taken = 0;
  int status = 0;  // not 0: failed
  std::string message;
  bool expectation_taken = false;
};

RequestParser::RequestParser(Limits limits) : impl_(std::make_unique<Impl>(limits)) {}
RequestParser::~RequestParser() = default;

std::size_t RequestParser::feed(std::string_view bytes) {
  METE_ASSERT(!done() && !failed());
  const std::size_t all = bytes.size();
  const std::size_t limit = impl_->limits.header_bytes;
  while (!bytes.empty() && !done()) {
    const bool in_header = !impl_->parser.is_header_done();
    // Beast counts start line and fields separately; offering no more than the limit bounds their
    // sum.
    const std::string_view offer = in_header ? bytes.substr(0, limit - impl_->header_taken) : bytes;
    boost::system::error_code error;
    const std::size_t taken =
        impl_->parser.put(boost::asio::const_buffer(offer.data(), offer.size()), error);
    bytes.remove_prefix(taken);
    if (error && error != http::error::need_more) {
      impl_->fail(error);
    } else if (!impl_->parser.is_header_done()) {
      impl_->header_taken += taken;
      if (impl_->header_taken + (offer.size() - taken) >= limit)
        impl_->fail(http::error::header_limit);
    } else if (in_header) {
      if (impl_->host_is_missing()) impl_->fail(400, "HTTP/1.1 needs one Host header");
    } else if (bytes.size() > limit && !done()) {
      impl_->fail(400, "a line of a chunk has no end");  // everything else of a body is taken
    }
    if (failed() || taken < offer.size()) break;
  }
  return all - bytes.size();
}

bool RequestParser::done() const { return impl_->parser.is_done(); }
bool RequestParser::failed() const { return impl_->status != 0; }
int RequestParser::error_status() const { return impl_->status; }
const std::string& RequestParser::error() const { return impl_->message; }

bool RequestParser::take_expectation() {
  if (impl_->expectation_taken || !impl_->parser.is_header_done() || done()) return false;
  impl_->expectation_taken = true;
  const auto& fields = impl_->parser.get();
  return fields.version() == 11 &&
         boost::beast::iequals(fields[http::field::expect], "100-continue");
}

Result<Request> RequestParser::take_request() {
  METE_ASSERT(done());
  auto message = impl_->parser.release();
  Result<Target> target =
      parse_target(std::string_view(message.target().data(), message.target().size()));
  if (!target) return std::move(target).error();
  Request request;
  request.method = std::string(message.method_string());
  request.path = std::move(target->path);
  request.query = std::move(target->query);
  for (const auto& field : message)
    request.headers.emplace_back(
        base::to_lower(std::string_view(field.name_string().data(), field.name_string().size())),
        std::string(field.value()));
  request.body = std::move(message.body());
  return request;
}

bool RequestParser::keep_alive() const { return impl_->parser.keep_alive(); }
bool RequestParser::http_1_0() const { return impl_->parser.get().version() < 11; }

}  // namespace mete::net
