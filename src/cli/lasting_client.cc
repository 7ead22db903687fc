// SPDX-License-Identifier: Apache-2.0
// See lasting_client.h.
#include "cli/lasting_client.h"

#include <poll.h>

#include <algorithm>

namespace mete::cli {

namespace {

constexpr int kMaxFailures = 600;  // one after another, in the end with a second between them
constexpr int kSayAway = 3;
constexpr int kTurnedAway = 50;  // it is there, and is asked once a second until it has time

// Nobody answers, or it died while it was starting: not what a daemon says of itself.
bool away(const Error& error) {
  return error.code == ErrorCode::kBusy || error.code == ErrorCode::kNotFound ||
         error.code == ErrorCode::kIo;
}

}  // namespace

void LastingClient::begin(std::string target) {
  if (sent_) client_->http().abandon();
  target_ = std::move(target);
  sent_ = false;
  failures_ = 0;
}

std::optional<Result<std::string>> LastingClient::next(net::Milliseconds most) {
  if (!client_) {
    Result<DaemonClient> found = DaemonClient::open_again(
        {socket_}, may_start_ ? DaemonClient::Start::kIfNeeded : DaemonClient::Start::kNever);
    if (!found) return lost(std::move(found).error(), most);
    client_.emplace(*std::move(found));
  }
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
  if (!away(error) || ++failures_ > kMaxFailures) return error;
  if (failures_ == kSayAway && !may_start_)
    output_.say("the machine's daemon is away; asking on until it is back");
  // Others start it too. Nothing to listen to meanwhile.
  if (failures_ > 1)
    (void)poll(nullptr, 0, std::min(20 * failures_, static_cast<int>(most.count())));
  return std::nullopt;
}

}  // namespace mete::cli
