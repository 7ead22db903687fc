// SPDX-License-Identifier: Apache-2.0
// See lasting_client.h.
#include "runner/lasting_client.h"

#include <poll.h>

#include <algorithm>

namespace mete::runner {

namespace {

// Failures one after another, in the end with a second between them.
constexpr int kMostAway = 120;        // a call to a daemon that is not ours to start
constexpr int kMostStarts = 8;        // a call to one that is
constexpr int kMostUnanswered = 600;  // begin() and next()
constexpr int kSayAway = 3;
constexpr int kTurnedAway = 50;  // it is there, and is asked once a second until it has time
constexpr int kLongestPauseMs = 1'000;

// There is no answer, or it died while it was starting: not what a daemon says of itself.
bool is_away(const Error& error) {
  return error.code == ErrorCode::kBusy || error.code == ErrorCode::kNotFound ||
         error.code == ErrorCode::kIo;
}

}  // namespace

Result<void> LastingClient::find_again(int interrupt) {
  if (client_) return {};
  Result<DaemonClient> found = DaemonClient::open_again(
      {socket_}, may_start_ ? DaemonClient::Start::kIfNeeded : DaemonClient::Start::kNever,
      interrupt);
  if (!found) return std::move(found).error();
  client_.emplace(*std::move(found));
  return {};
}

Result<std::string> LastingClient::call(std::string_view method, const std::string& target,
                                        std::string_view body, const net::Wait& wait) {
  repeated_ = unknown_ = false;
  bool sent = false;
  for (int failures = 0;; ++failures) {
    Result<void> found = find_again(wait.interrupt);
    std::optional<Error> lost;
    if (found) {
      repeated_ = std::exchange(sent, true);
      Result<std::string> answer = ask(method, target, body, wait);
      if (answer || client_) return answer;
      lost = std::move(answer).error();
    } else {
      lost = std::move(found).error();
    }
    if (!try_again(*lost, failures, wait)) return *std::move(lost);
  }
}

// Without a client afterwards: the daemon went away.
Result<std::string> LastingClient::ask(std::string_view method, const std::string& target,
                                       std::string_view body, const net::Wait& wait) {
  Result<std::string> answer = heard(client_->call(method, target, body, wait));
  if (!answer && client_->went_away()) client_.reset();
  return answer;
}

Result<std::string> LastingClient::heard(Result<std::string> answer) {
  unknown_ = !answer &&
             (client_->went_away() || client_->http().stopped() != net::HttpClient::Stopped::kNo);
  return answer;
}

Result<std::string> LastingClient::call_once(std::string_view method, const std::string& target,
                                             std::string_view body, const net::Wait& wait) {
  repeated_ = unknown_ = false;
  if (!client_) return Error::busy("the daemon went away before it had answered");
  return ask(method, target, body, wait);
}

bool LastingClient::try_again(const Error& error, int failures, const net::Wait& wait) {
  if (!is_away(error) || failures >= (may_start_ ? kMostStarts : kMostAway)) return false;
  if (failures == 0) talk_("the daemon went away before it had answered; asking again");
  // The first time at once; then others start it too.
  pollfd interrupt{wait.interrupt, POLLIN, 0};
  return poll(&interrupt, 1, std::min(20 * failures, kLongestPauseMs)) <= 0;
}

Result<std::string> LastingClient::receive(const net::Wait& wait) {
  if (!client_) return Error::busy("the daemon went away before it had answered");
  return heard(client_->receive(wait));
}

void LastingClient::abandon() {
  if (client_) client_->http().abandon();
}

void LastingClient::begin(std::string target) {
  if (sent_) client_->http().abandon();
  target_ = std::move(target);
  sent_ = false;
  failures_ = 0;
}

std::optional<Result<std::string>> LastingClient::next(net::Milliseconds most) {
  if (Result<void> r = find_again(); !r) return lost(std::move(r).error(), most);
  if (!sent_) {
    if (Result<void> r = client_->send("GET", target_); !r) return lost(std::move(r).error(), most);
    sent_ = true;
  }
  Result<std::string> answer = client_->receive({most, -1});
  if (!answer && client_->http().stopped() != net::HttpClient::Stopped::kNo) return std::nullopt;
  sent_ = false;
  if (!answer && client_->turned_away()) failures_ = std::min(failures_, kTurnedAway);
  if (!answer && (client_->went_away() || client_->turned_away()))
    return lost(std::move(answer).error(), most);
  return answer;
}

// The error, when it is of no use to ask again.
std::optional<Error> LastingClient::lost(Error error, net::Milliseconds most) {
  client_.reset();
  sent_ = false;
  if (!is_away(error) || ++failures_ > kMostUnanswered) return error;
  if (failures_ == kSayAway && !may_start_)
    talk_("the machine's daemon is away; asking on until it is back");
  // Others start it too. Nothing to listen to meanwhile.
  if (failures_ > 1)
    (void)poll(nullptr, 0, std::min(20 * failures_, static_cast<int>(most.count())));
  return std::nullopt;
}

}  // namespace mete::runner
