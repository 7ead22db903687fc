// SPDX-License-Identifier: Apache-2.0
// What the daemon has to answer, a queue for each user: the users take turns, one piece of work
// each, so that the wait of one does not grow with what another asks for. Large answers hold a
// place until the client has taken them, and a user has few places: a client that does not read
// has no finished answer in our memory, only its request. No clock and no loop: whoever calls
// next() decides for how long.
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
  // Held by whatever keeps a large answer in memory; the last copy gives the place back.
  using Place = std::shared_ptr<void>;
  using Work = std::function<void(const Place& place)>;
  static constexpr std::size_t kPlaces = 4;  // of a user

  // `ready`: there may be something to do again, since a place was given back.
  explicit WorkQueue(std::function<void()> ready);

  void add(uid_t user, Work work);        // its answer is small; it gets no place
  void add_large(uid_t user, Work work);  // may have a large answer

  // The next piece of work, bound to its place. nullopt: there is none that could be done now.
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
  // Outlives the queue in the places.
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
  uid_t last_ = static_cast<uid_t>(-1);  // whose turn it was
  std::uint64_t last_number_ = 0;
  std::size_t size_ = 0;
};

}  // namespace mete::serve
