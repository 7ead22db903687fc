// SPDX-License-Identifier: Apache-2.0
// See lasting_client.h.
#include "runner/lasting_client.h"

#include <poll.h>

#include <algorithm>

namespace mete::runner {

namespace {

// Limits on consecutive failures; the pause between retries grows to a second.
constexpr int kMostAway = 120;        // calls to a daemon that we must not start
constexpr int kMostStarts = 8;        // calls to a daemon that we start ourselves
constexpr int kMostUnanswered = 600;  // begin() and next()
constexpr int kSayAway = 3;
constexpr int kTurnedAway = 50;  // failures counted for a busy daemon: it is asked once a second
constexpr int kLongestPauseMs = 1'000;

// The daemon gave no answer, or died at its start; its other errors are answers.
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

// Leaves no client when the daemon went away.
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
  // The first retry comes at once; later ones leave other clients time to start the daemon.
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

// Returns the error when further retries are useless.
std::optional<Error> LastingClient::lost(Error error, net::Milliseconds most) {
  client_.reset();
  sent_ = false;
  if (!is_away(error) || ++failures_ > kMostUnanswered) return error;
  if (failures_ == kSayAway && !may_start_)
    talk_("the machine's daemon is away; asking on until it is back");
  // Other clients may be starting the daemon; there is no descriptor to wait on meanwhile.
  if (failures_ > 1)
    (void)poll(nullptr, 0, std::min(20 * failures_, static_cast<int>(most.count())));
  return std::nullopt;
}

}  // namespace mete::runner
