// SPDX-License-Identifier: Apache-2.0
// The daemon's work, one queue per user: the users take turns, one task each, so that one user's
// wait does not grow with the requests of another. Large answers hold a place until the client has
// read them, and a user has few places: for a client that does not read, we keep its request in
// memory, not a finished answer. No clock and no loop: the caller of next() decides for how long.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>

namespace mete::serve {

class WorkQueue {
 public:
  // Held by every copy of a large answer in memory; the last copy returns the place.
  using Place = std::shared_ptr<void>;
  using Work = std::function<void(const Place& place)>;
  static constexpr std::size_t kPlaces = 4;  // per user

  // `ready`: there may be work again, since a place was returned.
  explicit WorkQueue(std::function<void()> ready);

  void add(uid_t user, Work work);        // has a small answer; needs no place
  void add_large(uid_t user, Work work);  // may have a large answer

  // The next task, bound to its place. nullopt: there is none that can be done now.
  std::optional<std::function<void()>> next();

  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }

 private:
  struct Task {
    std::uint64_t number = 0;
    Work work;
  };
  struct User {
    std::deque<Task> small;
    std::deque<Task> large;
    std::size_t places = 0;  // taken
  };
  // Outlives the queue through the places.
  struct Shared {
    std::map<uid_t, User> users;
    std::function<void()> ready;
  };
  static void give_back(Shared& shared, uid_t uid);
  static bool is_unused(const User& user) {
    return user.small.empty() && user.large.empty() && user.places == 0;
  }
  std::deque<Task>* choose(User& user) const;
  Place take_place(uid_t uid, User& user);

  std::shared_ptr<Shared> shared_;
  uid_t last_ = static_cast<uid_t>(-1);  // the user served last
  std::uint64_t last_number_ = 0;
  std::size_t size_ = 0;
};

}  // namespace mete::serve
