// SPDX-License-Identifier: Apache-2.0
// See top_source.h.
#include "cli/top_source.h"

#include "base/time.h"

namespace mete::cli {

namespace {

using std::chrono::seconds;

constexpr seconds kHistoryEvery{5};  // its shortest step
constexpr seconds kPatience{5};      // for an answer, before that is said

std::int64_t seconds_since(seam::Nanoseconds then) {
  return std::chrono::duration_cast<seconds>(seam::system_clock().monotonic() - then).count();
}

}  // namespace

Result<std::string> TopSource::document() { return client_->call("GET", "/v1/snapshot"); }

void TopSource::ask() {
  if (asked_) return;
  if (!client_) {
    Result<DaemonClient> again = DaemonClient::open_again(socket_, DaemonClient::Start::kNever);
    if (!again) return lost("the daemon has gone");
    client_ = *std::move(again);
    history_at_.reset();
  }
  const seam::Nanoseconds now = seam::system_clock().monotonic();
  const bool history = !history_at_ || now - *history_at_ >= kHistoryEvery;
  const Result<void> sent =
      client_->send("GET", history ? "/v1/snapshot" : "/v1/snapshot?history=0");
  if (!sent) return lost("the daemon has gone");
  if (history) history_at_ = now;
  asked_ = true;
  asked_at_ = now;
}

bool TopSource::hear(net::Milliseconds most) {
  if (!asked_) return false;
  const Result<std::string> body = client_->receive({most, -1});
  if (!body && client_->http().stopped() != net::HttpClient::Stopped::kNo) return false;
  asked_ = false;
  if (!body) {
    if (client_->went_away())
      lost("the daemon has gone");
    else
      refusal_ = body.error();
    return false;
  }
  Result<wire::Snapshot> next = wire::decode_snapshot(*body);
  if (!next) {
    refusal_ = next.error();
    return false;
  }
  if (snapshot_) wire::carry_history(*next, *std::move(snapshot_));
  snapshot_ = *std::move(next);
  heard_at_ = seam::system_clock().monotonic();
  away_.clear();
  return true;
}

void TopSource::lost(std::string why) {
  client_.reset();
  asked_ = false;
  away_ = std::move(why);
}

std::string TopSource::trouble() const {
  std::string why = away_;
  if (why.empty() && asked_ && seconds_since(*asked_at_) >= kPatience.count())
    why = "the daemon does not answer";
  if (why.empty() || !heard_at_) return why;
  return why + "; this is what was " + base::duration_in_words(seconds_since(*heard_at_)) + " ago";
}

}  // namespace mete::cli
