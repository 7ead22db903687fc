// SPDX-License-Identifier: Apache-2.0
// See retrying_client.h.
#include "cli/retrying_client.h"

#include <poll.h>

#include <algorithm>
#include <utility>

namespace mete::cli {

namespace {

// Failures one after another, in the end with a second between them.
constexpr int kMostAway = 120;  // of a daemon that is not ours to start
constexpr int kMostStarts = 8;  // of one that is
constexpr int kLongestPauseMs = 1'000;

// Nobody answers, or it died while it was starting: not what a daemon says of itself.
bool no_daemon_there(const Error& error) {
  return error.code == ErrorCode::kBusy || error.code == ErrorCode::kNotFound ||
         error.code == ErrorCode::kIo;
}

}  // namespace

Result<std::string> RetryingClient::call(std::string_view method, const std::string& target,
                                         std::string_view body, const net::Wait& wait) {
  repeated_ = unknown_ = false;
  bool sent = false;
  for (int failures = 0;; ++failures) {
    std::optional<Error> lost;
    if (!client_) {
      Result<DaemonClient> found = DaemonClient::open_again(
          {socket_}, may_start_ ? DaemonClient::Start::kIfNeeded : DaemonClient::Start::kNever,
          wait.interrupt);
      if (found)
        client_.emplace(*std::move(found));
      else
        lost = std::move(found).error();
    }
    if (client_) {
      repeated_ = std::exchange(sent, true);
      Result<std::string> answer = ask(method, target, body, wait);
      if (answer || client_) return answer;
      lost = std::move(answer).error();
    }
    if (!try_again(*lost, failures, wait)) return *std::move(lost);
  }
}

// Without a client afterwards: the daemon went away.
Result<std::string> RetryingClient::ask(std::string_view method, const std::string& target,
                                        std::string_view body, const net::Wait& wait) {
  Result<std::string> answer = client_->call(method, target, body, wait);
  unknown_ = !answer &&
             (client_->went_away() || client_->http().stopped() != net::HttpClient::Stopped::kNo);
  if (!answer && client_->went_away()) client_.reset();
  return answer;
}

Result<std::string> RetryingClient::call_once(std::string_view method, const std::string& target,
                                              std::string_view body, const net::Wait& wait) {
  repeated_ = unknown_ = false;
  if (!client_) return Error::busy("the daemon went away before it had answered");
  return ask(method, target, body, wait);
}

bool RetryingClient::try_again(const Error& error, int failures, const net::Wait& wait) {
  if (!no_daemon_there(error) || failures >= (may_start_ ? kMostStarts : kMostAway)) return false;
  if (failures == 0) output_.say("the daemon went away before it had answered; asking again");
  // The first time at once; then others start it too.
  pollfd interrupt{wait.interrupt, POLLIN, 0};
  return poll(&interrupt, 1, std::min(20 * failures, kLongestPauseMs)) <= 0;
}

Result<std::string> RetryingClient::receive(const net::Wait& wait) {
  if (!client_) return Error::busy("the daemon went away before it had answered");
  Result<std::string> answer = client_->receive(wait);
  unknown_ = !answer &&
             (client_->went_away() || client_->http().stopped() != net::HttpClient::Stopped::kNo);
  return answer;
}

void RetryingClient::abandon() {
  if (client_) client_->http().abandon();
}

}  // namespace mete::cli
