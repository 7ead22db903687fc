// SPDX-License-Identifier: Apache-2.0
// See runner_line.h.
#include "runner/runner_line.h"

#include <chrono>

namespace mete::runner {

void RunnerLine::listen() {
  listening_ = client_->send("GET", "/v1/jobs/" + to_string(id_) + "?tag=" + tag_).ok();
  if (!listening_) client_.reset();
}

std::optional<wire::RunReply> RunnerLine::hear() {
  listening_ = false;
  const Result<std::string> body = client_->receive({net::Milliseconds(0), -1});
  if (!body && client_->http().stopped() != net::HttpClient::Stopped::kNo) {
    listening_ = true;  // an incomplete answer
    return std::nullopt;
  }
  Result<wire::RunReply> reply =
      body ? wire::decode_run_reply(*body) : Result<wire::RunReply>(body.error());
  if (!reply) {
    client_.reset();
    return std::nullopt;
  }
  tag_ = reply->tag;
  listen();
  return *std::move(reply);
}

void RunnerLine::mend() {
  const seam::Nanoseconds now = seam::system_clock().monotonic();
  if (listening_ || now < next_try_) return;
  next_try_ = now + std::chrono::seconds(1);
  Result<DaemonClient> client = DaemonClient::open_again(where_, DaemonClient::Start::kNever);
  if (!client) return;
  client_.emplace(*std::move(client));
  tag_ = "-";
  listen();
}

}  // namespace mete::runner
