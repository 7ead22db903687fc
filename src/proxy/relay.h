// SPDX-License-Identifier: Apache-2.0
// One client's connection between its socket and a replica's: bytes in, bytes out, without sockets
// and clocks. Requests follow one another; each is answered here, or passed on to a replica whose
// answer is passed back. Its states:
//
//   head ─whole─► asked ─reply()────────────────────────────────┐
//                   │ ├─collect()─► collecting ─whole─► asked    ▼
//                   │ └─forward()─► forwarding ─────────────► answered ─keep-alive─► head
//                   │                  │ 101                     │ otherwise
//                   ▼                  ▼                         ▼
//                refused            tunnel ─────────────────► closing
//
// Bodies pass as they come, with their framing. Neither buffer grows beyond the high mark: while it
// is above it, wants_*() is false and the other side waits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "proxy/head.h"

namespace mete::proxy {

class Relay {
 public:
  static constexpr std::size_t kHighMark = 64 << 10;
  static constexpr std::size_t kLowMark = 16 << 10;

  Relay() = default;
  Relay(const Relay&) = delete;  // the request points into it
  Relay& operator=(const Relay&) = delete;

  enum class State { kHead, kAsked, kCollecting, kForwarding, kTunnel, kAnswered, kClosing };
  State state() const { return state_; }

  // ---- the client's side
  // Bytes of the client. Kept, as far as they belong to a later request.
  void from_client(std::string_view bytes);
  // The client sends no more. A half-closed connection still gets its answer.
  void client_ended();
  bool client_has_ended() const { return client_ended_; }
  bool wants_client() const;
  // In kHead: a part of a head is there.
  bool has_begun() const { return !in_.empty(); }
  // To be written to the client; then sent_to_client(how many).
  std::string_view to_client() const;
  void sent_to_client(std::size_t bytes);
  // Everything is written, and the connection is to be closed.
  bool is_closed() const { return state_ == State::kClosing && to_client().empty(); }
  // The answer broke off: the connection is to be reset, so that the client does not take a part
  // for the whole.
  bool is_broken() const { return broken_; }

  // ---- in kAsked
  // Valid until reply(), collect() or forward().
  const RequestHead& request() const { return request_; }
  // An answer of our own. `fields`: further ones. The client's connection is closed if the rest of
  // its body is not worth reading.
  using Pairs = std::vector<std::pair<std::string_view, std::string_view>>;
  void reply(int status, std::string_view type, std::string_view body, const Pairs& fields = {});
  // The body is wanted before it is known where it goes. Then take_collected() until kAsked again,
  // and forward() with its length. At most `most` bytes: more is answered with 413 here.
  void collect(std::uint64_t most);
  std::string take_collected() { return std::exchange(collected_, {}); }
  bool is_collected() const { return is_collected_; }
  // Passes the request on. `path`: in place of its target. `added`: fields for the replica. After
  // collect(): `length` bytes follow by push_body().
  void forward(std::string_view path, const Pairs& added, std::uint64_t length = 0);
  void push_body(std::string_view bytes);

  // ---- the replica's side, in kForwarding and kTunnel
  std::string_view to_replica() const;
  void sent_to_replica(std::size_t bytes);
  void from_replica(std::string_view bytes);
  bool wants_replica() const;
  // The replica closed the connection, or it broke.
  enum class Loss {
    kDone,   // that was the end of the answer
    kEarly,  // no answer had come: the caller replies; or writes to another one, if is_untouched()
    kBroken  // within the answer
  };
  // `broken`: by an error, and not by its end.
  Loss replica_ended(bool broken = false);
  // It reads nothing more of the request; its answer may be there.
  void replica_is_deaf();
  // Whether nothing of the request was written to a replica yet, so that to_replica() may go to
  // another one.
  bool is_untouched() const { return written_ == 0; }
  // Whether the answer is whole, and the replica's connection can take another request.
  bool replica_reusable() const {
    return reusable_ && (state_ == State::kAnswered || state_ == State::kClosing);
  }
  // A part of the request's body is missing, and all that came has been passed on.
  bool waits_for_body() const;
  bool has_answer_head() const { return has_head_; }
  const std::string& answer_type() const { return answer_type_; }
  int answer_status() const { return answer_status_; }
  // Whether a comment may be put into the answer now: an event stream of unknown length between two
  // events. It tells a client that waits for the first byte, or for the next, that all is well.
  bool may_comment() const;
  void comment();
  // To be put into the head of the answer, when its first bytes come: "queue;dur=0, …".
  void set_server_timing(std::string text) { timing_ = std::move(text); }

  // ---- after kAnswered
  // The next request. Only once to_client() is written as far as the caller wants.
  void next();

 private:
  void read_head();
  void refuse(int status, std::string_view why);
  void pass_request_body();
  void collect_body();
  void read_answer_head();
  void pass_answer_body();
  void note_stream(std::string_view data);
  void answered();
  void break_off();
  bool keeps_client() const;

  State state_ = State::kHead;
  std::string in_;    // of the client, not looked at yet
  std::string head_;  // of the request; request_ points into it
  RequestHead request_;
  std::size_t searched_ = 0;
  bool client_ended_ = false;
  bool broken_ = false;

  // The body of the request.
  bool body_done_ = true;
  std::uint64_t body_left_ = 0;
  Chunks body_chunks_;
  bool is_collected_ = false;
  std::string collected_;
  std::uint64_t collect_most_ = 0;
  std::uint64_t collected_bytes_ = 0;

  std::string to_replica_;
  std::size_t to_replica_sent_ = 0;
  std::uint64_t written_ = 0;  // of this request
  std::string to_client_;
  std::size_t to_client_sent_ = 0;

  // The answer.
  std::string answer_in_;
  std::size_t answer_searched_ = 0;
  bool has_head_ = false;
  Body answer_body_ = Body::kNone;
  std::uint64_t answer_left_ = 0;
  Chunks answer_chunks_;
  bool unchunk_ = false;  // for a client of HTTP/1.0
  bool reusable_ = false;
  bool deaf_ = false;
  bool close_client_ = false;
  int answer_status_ = 0;
  std::string answer_type_;
  bool is_event_stream_ = false;  // that comments may be put into
  std::string stream_end_;        // its last bytes
  std::string timing_;
};

}  // namespace mete::proxy
